"""Kinds of tasks: each is one class, and a package may offer more (entry points ``auditor.kinds``).

Answers are labels, sets of labels, texts, or amounts. A unit of amounts is written as in a task file: ``USD/year``,
``points``. The part before the slash may be the code of a currency, the part behind it a period.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import ClassVar, Literal

from auditor.core import reading
from auditor.core.errors import ConfigError
from auditor.core.protocols import Registry
from auditor.core.types import Answer
from auditor.tasks.answers import (
    EXPRESSIONS,
    Reader,
    Style,
    Unclear,
    Value,
    after_reasoning,
    bare,
    decode,
    is_refusal,
    kind_of,
    name_pattern,
    normalise,
    short,
    unsure,
)


class Kind:
    """Base of the kinds of tasks; the defaults are those of one label per answer.

    A kind is one class, offered as an entry point of the group ``auditor.kinds``; task files choose it by its name.
    """

    name: ClassVar[str]
    reader: ClassVar[type[Reader]] = Reader
    oracle: ClassVar[str] = "label"  # that compares answers, unless a plan names another
    labelled: ClassVar[bool] = True  # a task file lists labels, two or more
    several: ClassVar[bool] = False  # an answer may hold any number of them
    number: ClassVar[bool] = False  # answers are amounts, and the task file has a ``scale``
    text: ClassVar[bool] = False  # answers are texts, of which only figures are kept
    keys: ClassVar[tuple[str, ...]] = ("label", "answer")  # of JSON, with those of the task file
    markers: ClassVar[tuple[str, ...]] = ("answer", "label")  # that start the line of the answer
    answered_with: ClassVar[str] = "an answer"  # where there are no labels
    noun: ClassVar[str] = "labels"  # for answers, in the plural
    column: ClassVar[Literal["label", "labels", "number", "text"]] = "label"  # as ``audit import`` takes it
    options: ClassVar[frozenset[str]] = frozenset()  # of the plan, that belong to this kind and not to every other
    grammar: ClassVar[bool] = False  # its texts come from a grammar that has the name of the kind

    def __str__(self) -> str:
        return self.name

    @property
    def one_label(self) -> bool:
        """Whether an answer is one of the task's labels."""
        return self.labelled and not self.several

    @property
    def by_degrees(self) -> bool:
        """Whether answers differ by degrees and are compared as such."""
        return self.number or self.text

    def value(self, label: str | float | tuple[str, ...]) -> Value:
        """The value of a worked example, as `Answer.value` holds it."""
        return label

    def wrong(self, value: Value, labels: Collection[str]) -> bool:
        """Whether ``value`` cannot be the answer of a worked example."""
        return self.one_label and value not in labels

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """Answers that every format has to be able to write and read back."""
        return list(labels)


_BULLET = re.compile(r"^ ?(?:[-\u2022\u00b7+]|\d{1,3}[.)]) +", re.MULTILINE)
_GLUE = re.compile(r"(?:[\s,;|&/.\"'()\[\]{}\u2022]|\band\b)*")


class Classification(Kind):
    """A text is put into one of several classes."""

    name = "classification"


class Decision(Kind):
    """Something is decided about the person whom a text is about."""

    name = "decision"


class Coreference(Kind):
    """Whom a pronoun means."""

    name = "coreference"
    grammar = True


class FillMask(Kind):
    """Which of several words stands in a blank."""

    name = "fill-mask"
    grammar = True


class LabelSetReader(Reader):
    """Reads sets of labels: lists of names and nothing else."""

    lists = True

    def value(self, value: object) -> tuple[str, ...]:
        """Read one JSON value; strict about types."""
        if isinstance(value, str):
            return self._list(normalise(value))
        if not isinstance(value, list):
            raise Unclear(f"the labels in the JSON answer are {kind_of(value)}")
        if len(value) == 1 and isinstance(value[0], str) and normalise(value[0]) not in self.names:
            return self._list(normalise(value[0]))
        return tuple(sorted({self.label(item) for item in value}))

    def content(self, content: str) -> tuple[str, ...]:
        """Read the words after a marker."""
        return self._list(content)

    def lines(self, plain: str) -> list[Value]:
        """No line of a list decides by itself."""
        return []

    def prose(self, plain: str) -> tuple[str, ...]:
        """Read running text."""
        return self._list(plain)

    def exactly(self, output: str) -> tuple[str, ...]:
        """Read a classifier's output: a list, in JSON or in words."""
        decoded = decode(output.strip())
        return self.value(decoded) if isinstance(decoded, list) else self._list(normalise(output))

    def _list(self, plain: str) -> tuple[str, ...]:
        """Labels of a list: nothing but names and what stands between them."""
        plain = _BULLET.sub("", plain)
        if bare(plain) in self.none and bare(plain) not in self.names:
            return ()
        labels: set[str] = set()
        at = 0
        for match in name_pattern(tuple(self.names)).finditer(plain):
            _glue(plain[at : match.start()])
            labels.add(self.names[match.group()])
            at = match.end()
        _glue(plain[at:])
        if not labels:
            raise Unclear("names no label of the task")
        return tuple(sorted(labels))


def _glue(text: str) -> None:
    if not _GLUE.fullmatch(text):
        raise Unclear(f"{short(bare(text))} is not a label of the task")


class Multilabel(Kind):
    """Any number of labels apply to a text."""

    name = "multilabel"
    reader = LabelSetReader
    oracle = "labelset"
    several = True
    keys = ("labels", "label", "answer")
    markers = ("answer", "label", "labels")
    column = "labels"

    def value(self, label: str | float | tuple[str, ...]) -> tuple[str, ...]:
        """The labels of a worked example, sorted; one may stand there without a list."""
        return tuple(sorted((label,) if isinstance(label, str) else label if isinstance(label, tuple) else ()))

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """No label, each alone, and all."""
        return [(), *((label,) for label in labels), tuple(sorted(labels))]


class TextReader(Reader):
    """Takes an answer as it is."""

    def understood(self, output: str, style: Style) -> Answer:
        """The text after its reasoning."""
        text = after_reasoning(output) if style == "chat" else output
        if not text.strip():
            return Answer(status="unparsed", reason="empty answer")
        # A refusal opens the answer; the same words further down belong to the text that was asked for.
        if style == "chat" and is_refusal(normalise(text[:300])):
            return Answer(status="refused", reason="declines to answer")
        return Answer(status="ok", value=text.strip())


class Generation(Kind):
    """A text is written."""

    name = "generation"
    reader = TextReader
    oracle = "generation"
    labelled = False
    text = True
    answered_with = "a text"
    noun = "texts"
    options = frozenset({"judge"})
    column = "text"

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """Any text can be written."""
        return []


# -- amounts: English wording only -------------------------------------------------------------------------------------


_FIGURE = r"[-+]?(?:\d{1,3}(?:,\d{3})++(?:\.\d++)?|\d++(?:\.\d++)?|\.\d++)"
_NUMBER = re.compile(rf"(?<![\w.,])(?<!\w-){_FIGURE}(?!\w|[.,]\d)")
_OUT_OF = re.compile(r" ?\(?(?:/|out of) ?")
_LINE = re.compile(rf"{_FIGURE}(?: ?(?:/|out of) ?{_FIGURE})?(?: ?(?:%|percent|points?|stars?))?")
_DIGITS = re.compile(r"\d+")
_EXACT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?")
_CURRENCIES: Mapping[str, str] = EXPRESSIONS["currencies"]
_PERIODS: Mapping[str, str] = EXPRESSIONS["periods"]
# Longer spellings first: "us$" before "$".
_ANY_CURRENCY = "|".join(sorted("|".join(_CURRENCIES.values()).split("|"), key=len, reverse=True))
_ANY_PERIOD = "|".join(_PERIODS.values())
_BEFORE = re.compile(rf"(?<![\w$€£¥₹])({_ANY_CURRENCY}) ?$")
_BEHIND = re.compile(rf" ?({_ANY_CURRENCY})?(?:[ ,(]{{0,2}}({_ANY_PERIOD}))?")
_THOUSANDS = re.compile(r"(?<![\w.,])((?:\d{1,3}(?:,\d{3})+|\d{1,9})(?:\.\d{1,3})?) ?k(?!\w)")
_RANGE = re.compile(
    rf"\d ?k? ?(?:{_ANY_CURRENCY})? ?(?:-|\u2010|\u2013|\u2014|to|and|or|through) ?(?:{_ANY_CURRENCY})? ?\d"
)


class NumberReader(Reader):
    """Reads the one number in an answer."""

    def value(self, value: object) -> float:
        """Read one JSON value; strict about types."""
        if isinstance(value, str):
            return self._number(normalise(value))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unclear(f"the score in the JSON answer is {kind_of(value)}")
        return self._in_range(value)

    def content(self, content: str) -> float | None:
        """Read the words after a marker; None where there is no digit."""
        return self._number(content) if _DIGITS.search(content) else None

    def lines(self, plain: str) -> list[Value]:
        """Numbers that have the first or the last line to themselves."""
        lines = [line for line in plain.split("\n") if bare(line)]
        ends = lines[:1] + lines[-1:]
        if self.unit:
            ends = [bare_amount(thousands(bare(x), self.unit), self.unit) for x in ends]
        return [self._number(line) for line in ends if _LINE.fullmatch(bare(line))]

    def prose(self, plain: str) -> float:
        """Read running text."""
        if is_refusal(plain):
            raise Unclear("no score")
        return self._number(plain)

    def exactly(self, output: str) -> float:
        """Read a classifier's output: a number and nothing else."""
        plain = normalise(output)
        if not _EXACT.fullmatch(plain):
            raise Unclear(f"{short(output)} is not a number")
        return self._in_range(float(plain))

    def _number(self, plain: str) -> float:
        """Read the one number in ``plain``; "7/10" is 7 where 10 is the highest score."""
        plain = thousands(plain, self.unit)
        hits = list(_NUMBER.finditer(plain))
        if len(_DIGITS.findall(plain)) > 1 and _RANGE.search(plain):
            raise Unclear("is a range, not one number")
        if not hits:
            raise Unclear("holds no number that can be read")
        first = hits[0]
        if len(_DIGITS.findall(plain)) != sum(len(_DIGITS.findall(m.group())) for m in hits):
            raise Unclear("holds a number that is written in a way this parser does not read")
        if len(hits) == 2 and _OUT_OF.fullmatch(plain, first.end(), hits[1].start()):
            top = _float(hits[1].group())
            if self.scale is None or top != self.scale[1]:
                raise Unclear(f"is out of {hits[1].group()}, which is not the highest score of the task")
        elif len(hits) > 1:
            raise Unclear("holds several numbers")
        if unsure(plain, first.start(), first.end()):
            raise Unclear("names the number with a negation, a condition or a question")
        if wrong := problem(plain, first.start(), first.end(), self.unit):
            raise Unclear(wrong)
        return self._in_range(_float(first.group()))

    def _in_range(self, number: float) -> float:
        low, high = self.scale if self.scale is not None else (float("-inf"), float("inf"))
        if not low <= number <= high:
            raise Unclear(f"the score {short(f'{number:.10g}')} is outside {low:g} to {high:g}")
        try:
            return float(number) + 0.0  # + 0.0: -0.0 and 0.0 are one score
        except OverflowError:
            raise Unclear("the score is too large") from None


def _float(text: str) -> float:
    return float(text.replace(",", ""))


class Score(Kind):
    """A text gets a number."""

    name = "score"
    reader = NumberReader
    oracle = "score"
    labelled = False
    number = True
    keys = ("score", "answer", "label")
    markers = ("answer", "score")
    noun = "amounts"
    options = frozenset({"tolerance"})
    column = "number"

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """Both ends of the scale."""
        return list(scale or ())


def currency_of(unit: str) -> str:
    """The code of the currency that ``unit`` counts in; empty where it is none."""
    code = unit.partition("/")[0].strip().upper()
    return code if code in _CURRENCIES else ""


def thousands(plain: str, unit: str) -> str:
    """Write "85k" as 85000 where the unit is a currency; leave all else as it is."""
    if not currency_of(unit):
        return plain
    return _THOUSANDS.sub(lambda m: f"{float(m.group(1).replace(',', '')) * 1000:.10g}", plain)


def bare_amount(line: str, unit: str) -> str:
    """The figure of a line that holds an amount and nothing else, its currency and period taken off."""
    if not unit:
        return line
    figure = re.search(r"\d[\d,]*(?:\.\d+)?", line)
    if figure is None or problem(line, figure.start(), figure.end(), unit):
        return line
    before, behind = _BEFORE.search(line[: figure.start()]), _BEHIND.match(line, figure.end())
    start = figure.start() if before is None else before.start()
    end = figure.end() if behind is None else behind.end()
    return figure.group() if not line[:start].strip() and not line[end:].strip(" .)") else line


def problem(plain: str, start: int, end: int, unit: str) -> str:
    """Why the number at ``[start, end)`` of ``plain``, in normal form, is no amount of ``unit``; empty where it is."""
    if not unit:
        return ""
    wanted, _, period = unit.partition("/")
    wanted, period = currency_of(wanted), period.strip().lower()
    before, behind = _BEFORE.search(plain[:start]), _BEHIND.match(plain, end)
    for sign in (before and before.group(1), behind and behind.group(1)):
        if wanted and sign and not re.fullmatch(_CURRENCIES[wanted], sign):
            code = next(c for c, form in _CURRENCIES.items() if re.fullmatch(form, sign))
            return f"is an amount in {code}, not in {wanted}"
    every = behind and behind.group(2)
    if period in _PERIODS and every and not re.fullmatch(_PERIODS[period], every):
        other = next(name for name, form in _PERIODS.items() if re.fullmatch(form, every))
        return f"is an amount per {other}, not per {period}"
    return ""


# -- kinds by name -----------------------------------------------------------------------------------------------------


KINDS = Registry("kind", Kind)


@cache
def of(name: str) -> Kind:
    """The kind that task files call ``name``; `UnknownPlugin` where there is none."""
    return KINDS.create(name)


def template(name: str, kind: str = "classification") -> str:
    """The YAML text of a new task file; `auditor.tasks.load` accepts it as it is.

    Raises `ConfigError` where the name has other characters than a-z, 0-9, ``_`` and ``-``, or there is no such kind.

    Examples
    --------
    >>> template("refunds", "decision").splitlines()[3]
    'name: refunds'
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise ConfigError(f"{name!r} is not a name for a task: 1 to 64 of a-z, 0-9, - and _, a letter or digit first")
    if kind not in KINDS.names():
        raise ConfigError(f"no template for tasks of kind {kind!r}; kinds: {', '.join(KINDS.names())}")
    # The kind of another package begins with the template of the kind that it derives from.
    files = (f"{vars(one).get('name', 'classification')}.yaml" for one in type(of(kind)).__mro__)
    path = next(path for file in files if (path := reading.shipped("embedded", "task_templates", file)).is_file())
    return path.read_text(encoding="utf-8").replace("@name@", name).replace("@kind@", kind)
