"""Tasks whose answers are amounts, with a unit or without.

English wording only. A unit is written as in a task file: ``USD/year``, ``points``; the part before the slash
may be the code of a currency, the part behind it a period.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from auditor.tasks.answers import Reader, Unclear, Value, kind_of, short
from auditor.tasks.kinds import Kind
from auditor.tasks.phrases import EXPRESSIONS, bare, is_refusal, normalise, unsure

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
