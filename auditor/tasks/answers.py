"""What a model's output means for a task: strict, total, and linear in the length of the output.

An output is a label only where it can be read in one way. Everything else is an outcome of its own:
``unparsed`` (with a reason) or ``refused``. The order in which a chat answer is read:

1. Reasoning in ``<think>`` tags is set aside.
2. *Decisive* places: a JSON object with one of the task's keys, a line "Answer: X" (or another of the task's
   markers). All of them have to agree; the last marker line has to be clear.
3. A line, the first or the last, that holds a label and nothing else.
4. Running text: the labels named there, longest names first and whole words only. One label counts if no
   negation, condition or question mark stands around it and the first or the last sentence names it ("Sure!",
   "Let me know …" and the like set aside), or a sentence says that it is the answer; two labels do not.
5. A refusal phrase makes an answer without a label ``refused``; beside one, only 2, 3, or a label as the last
   word is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from auditor.core.types import Answer
from auditor.tasks import units
from auditor.tasks.prose import is_refusal, mentions, name_pattern, unsure
from auditor.tasks.wording import bare, normalise

Style = Literal["chat", "text"]

PARSER = "strict.v2"
FORMER = ("strict.v1",)  # lost answers between sentences of courtesy; a file that names it gets the new one
_OBJECTS = 64  # JSON objects looked at in one answer: keeps the work linear
_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
_OPEN = re.compile(r"\{\s*[\"}]")
_LEAD = r"(?:(?:so|thus|therefore|hence|overall),? )?(?:(?:the|my|our) )?(?:(?:final|overall|correct|best) )?"
_HEAD = re.compile(r"[.;!(\n\u2013\u2014]| - ")
_CORRECTION = re.compile(r"\b(?:wait|actually|correction|scratch that|i mean|on second thought|rather)\b")
_BULLET = re.compile(r"^ ?(?:[-\u2022\u00b7+]|\d{1,3}[.)]) +", re.MULTILINE)
_GLUE = re.compile(r"(?:[\s,;|&/.\"'()\[\]{}\u2022]|\band\b)*")
_FIGURE = r"[-+]?(?:\d{1,3}(?:,\d{3})++(?:\.\d++)?|\d++(?:\.\d++)?|\.\d++)"
_NUMBER = re.compile(rf"(?<![\w.,])(?<!\w-){_FIGURE}(?!\w|[.,]\d)")
_OUT_OF = re.compile(r" ?\(?(?:/|out of) ?")
_SCORE_LINE = re.compile(rf"{_FIGURE}(?: ?(?:/|out of) ?{_FIGURE})?(?: ?(?:%|percent|points?|stars?))?")
_DIGITS = re.compile(r"\d+")
_EXACT_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?")

_Found = tuple[str, ...] | str | float  # a value of the task, as `Answer.value` holds it


class _Unclear(Exception):
    """A signal inside this module: the answer cannot be read in one way; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """Reads answers of one task.

    Parameters
    ----------
    kind : str
        ``classification``, ``decision``, ``coreference``, ``fill-mask``, ``multilabel``, ``score`` or ``generation``.
    names : mapping of str to str
        Names in normal form (`auditor.tasks.wording.normalise`) to labels: labels and aliases.
    keys : tuple of str
        Keys of a JSON answer, in normal form.
    markers : tuple of str
        Words that start the decisive line, in normal form.
    scale : tuple of float or None
        Lowest and highest score, both possible.
    none : tuple of str
        What stands for "no label" in a multi-label answer, in normal form.
    unit : str
        Of scores, as in ``USD/year``; an amount in another currency or for another period is not read.
    """

    kind: str
    names: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ("label", "answer")
    markers: tuple[str, ...] = ("answer", "label")
    scale: tuple[float, float] | None = None
    none: tuple[str, ...] = ("none",)
    unit: str = ""

    def read(self, output: str, style: Style = "chat") -> Answer:
        """Say what ``output`` means; never raises on a string.

        Parameters
        ----------
        output : str
            What the model gave back.
        style : {"chat", "text"}
            "chat" reads a generator's answer; "text" takes a classifier's label, which has to be a name of a
            label and nothing more, case and surrounding blanks aside.
        """
        if not output.strip() or not normalise(output):
            return Answer(status="unparsed", reason="empty answer")
        try:
            if self.kind == "generation":
                return self._generation(output, style)
            value = self._text(output) if style == "text" else self._chat(output)
        except _Unclear as error:
            # Refusals are looked for last: a label that can be read wins over an apology.
            if style == "chat" and is_refusal(normalise(output)):
                return Answer(status="refused", reason="declines to answer")
            return Answer(status="unparsed", reason=str(error))
        return Answer(status="ok", value=value)

    # -- generators -----------------------------------------------------------------------------

    def _chat(self, output: str) -> _Found:
        text = after_reasoning(output)
        decided, rest = self._json(text)
        plain = normalise(_FENCE.sub("\n", rest))
        decided += self._marked(plain)
        if not decided:
            decided = self._label_lines(plain)
        if decided:
            if any(value != decided[0] for value in decided):
                raise _Unclear("decisive places disagree: " + _listed(str(v) for v in decided))
            return decided[0]
        return self._prose(plain)

    def _json(self, text: str) -> tuple[list[_Found], str]:
        """Values of the JSON objects in ``text``, and the text without those objects."""
        whole = _decode(_FENCE.sub("", text).strip().lstrip("\ufeff"))
        if isinstance(whole, list):
            if self.kind != "multilabel":
                raise _Unclear("the JSON answer is a list, not one object")
            return [self._value(whole)], ""
        if isinstance(whole, str):
            return [self._value(whole)], ""
        found: list[_Found] = []
        rest: list[str] = []
        at = tried = keyless = 0
        while tried < _OBJECTS and (match := _OPEN.search(text, at)):
            tried += 1
            try:
                obj, end = _DECODER.raw_decode(text, match.start())
            except (ValueError, RecursionError):
                rest.append(text[at : match.start() + 1])
                at = match.start() + 1
                continue
            rest.append(text[at : match.start()])
            at = end
            values = [value for key, value in obj.pairs if normalise(key) in self.keys]
            keyless += not values
            found += [self._value(value) for value in values]
        rest.append(text[at:])
        if keyless and not found and not "".join(rest).strip(" \n`"):
            raise _Unclear(f"the JSON answer has no key {_listed(self.keys)}")
        return found, "\n".join(rest)

    def _value(self, value: object) -> _Found:
        """Read one JSON value; strict about types."""
        if self.kind == "score":
            if isinstance(value, str):
                return self._number(normalise(value))
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _Unclear(f"the score in the JSON answer is {_kind_of(value)}")
            return self._in_range(value)
        if self.kind == "multilabel":
            if isinstance(value, str):
                return self._list(normalise(value))
            if not isinstance(value, list):
                raise _Unclear(f"the labels in the JSON answer are {_kind_of(value)}")
            if len(value) == 1 and isinstance(value[0], str) and normalise(value[0]) not in self.names:
                return self._list(normalise(value[0]))
            return tuple(sorted({self._json_label(item) for item in value}))
        return self._json_label(value)

    def _json_label(self, value: object) -> str:
        if isinstance(value, int) and abs(value) < 10**9:
            # A task may call its labels "0" and "1"; then the number is the label, verbatim.
            label = self.names.get(str(value))
            if label == str(value):
                return label
        if not isinstance(value, str):
            raise _Unclear(f"the label in the JSON answer is {_kind_of(value)}")
        label = self.exact(normalise(value))
        if label is None:
            raise _Unclear(f"{_short(value)} is no label of the task")
        return label

    def _marked(self, plain: str) -> list[_Found]:
        """Read the lines "Answer: X". Earlier ones may be unclear, the last one may not."""
        hits = list(_marker(self.markers).finditer(plain))
        found: list[_Found] = []
        for i, hit in enumerate(hits):
            limit = hits[i + 1].start() if i + 1 < len(hits) else len(plain)
            content = plain[hit.end() : limit]
            if self.kind != "multilabel" or content.partition("\n")[0].strip(" \"'"):
                content = _first_line(content)
            try:
                value = self._content(content)
            except _Unclear:
                if i + 1 == len(hits):
                    raise
                continue
            if value is not None:
                found.append(value)
        return found

    def _content(self, content: str) -> _Found | None:
        """Read the words after a marker; None if they name none at all."""
        if not bare(content):
            return None
        if self.kind == "score":
            return self._number(content) if _DIGITS.search(content) else None
        if self.kind == "multilabel":
            return self._list(content)
        if (label := self.exact(content)) is not None:
            return label
        head = _HEAD.split(content, maxsplit=1)
        if (label := self.exact(head[0])) is not None and not _CORRECTION.search(head[-1]):
            return label
        seen = mentions(content, self.names)
        return self._single(seen.clear, seen.blocked) if seen.clear or seen.blocked else None

    def _label_lines(self, plain: str) -> list[_Found]:
        """Labels that have a line to themselves, if the first or the last line is one of them."""
        if self.kind == "multilabel":
            return []
        lines = [line for line in plain.split("\n") if bare(line)]
        if self.kind == "score":
            if not lines:
                return []
            ends = lines[:1] + lines[-1:]
            if self.unit:
                ends = [units.bare_amount(units.thousands(bare(x), self.unit), self.unit) for x in ends]
            return [self._number(line) for line in ends if _SCORE_LINE.fullmatch(bare(line))]
        labels = [self.exact(line) for line in lines]
        if not labels or (labels[0] is None and labels[-1] is None):
            return []
        return [label for label in labels if label is not None]

    def _prose(self, plain: str) -> _Found:
        if self.kind == "score":
            if is_refusal(plain):
                raise _Unclear("no score")
            return self._number(plain)
        if self.kind == "multilabel":
            return self._list(plain)
        seen = mentions(plain, self.names)
        label = self._single(seen.clear, seen.blocked)
        if not seen.at_edge:
            raise _Unclear(f"names {label!r} neither in its first nor in its last sentence")
        if not seen.last_word and is_refusal(plain):
            raise _Unclear("declines, and names a label in passing")
        return label

    def _single(self, clear: Iterable[str], blocked: Iterable[str]) -> str:
        named = sorted({*clear, *blocked})
        if len(named) > 1:
            raise _Unclear(f"names several labels: {_listed(named)}")
        if not named:
            raise _Unclear("names no label of the task")
        if tuple(blocked):
            raise _Unclear(f"names {named[0]!r} with a negation, a condition or a question")
        return named[0]

    # -- the kinds ------------------------------------------------------------------------------

    def _text(self, output: str) -> _Found:
        """Read a classifier's output: the name itself."""
        plain = normalise(output)
        if self.kind == "score":
            if not _EXACT_NUMBER.fullmatch(plain):
                raise _Unclear(f"{_short(output)} is no number")
            return self._in_range(float(plain))
        if self.kind == "multilabel":
            decoded = _decode(output.strip())
            return self._value(decoded) if isinstance(decoded, list) else self._list(plain)
        label = self.names.get(plain)
        if label is None:
            raise _Unclear(f"{_short(output)} is no label of the task")
        return label

    def _generation(self, output: str, style: Style) -> Answer:
        text = after_reasoning(output) if style == "chat" else output
        if not text.strip():
            return Answer(status="unparsed", reason="empty answer")
        # A refusal opens the answer; the same words further down belong to the text that was asked for.
        if style == "chat" and is_refusal(normalise(text[:300])):
            return Answer(status="refused", reason="declines to answer")
        return Answer(status="ok", value=text.strip())

    def exact(self, piece: str) -> str | None:
        """Return the label that ``piece`` (in normal form) names, punctuation around it aside."""
        label = self.names.get(piece)
        return label if label is not None else self.names.get(bare(piece))

    def _list(self, plain: str) -> tuple[str, ...]:
        """Labels of a list: nothing but names and what stands between them."""
        plain = _BULLET.sub("", plain)
        if bare(plain) in self.none and bare(plain) not in self.names:
            return ()
        labels: set[str] = set()
        at = 0
        for match in name_pattern(tuple(self.names)).finditer(plain):
            self._glue(plain[at : match.start()])
            labels.add(self.names[match.group()])
            at = match.end()
        self._glue(plain[at:])
        if not labels:
            raise _Unclear("names no label of the task")
        return tuple(sorted(labels))

    def _glue(self, text: str) -> None:
        if not _GLUE.fullmatch(text):
            raise _Unclear(f"{_short(bare(text))} is no label of the task")

    def _number(self, plain: str) -> float:
        """Read the one number in ``plain``; "7/10" is 7 where 10 is the highest score."""
        plain = units.thousands(plain, self.unit)
        hits = list(_NUMBER.finditer(plain))
        if len(_DIGITS.findall(plain)) > 1 and units.is_range(plain):
            raise _Unclear("is a range, not one number")
        if not hits:
            raise _Unclear("holds no number that can be read")
        first = hits[0]
        if len(_DIGITS.findall(plain)) != sum(len(_DIGITS.findall(m.group())) for m in hits):
            raise _Unclear("holds a number that is written in a way this parser does not read")
        if len(hits) == 2 and _OUT_OF.fullmatch(plain, first.end(), hits[1].start()):
            top = _float(hits[1].group())
            if self.scale is None or top != self.scale[1]:
                raise _Unclear(f"is out of {hits[1].group()}, which is not the highest score of the task")
        elif len(hits) > 1:
            raise _Unclear("holds several numbers")
        if unsure(plain, first.start(), first.end()):
            raise _Unclear("names the number with a negation, a condition or a question")
        if wrong := units.problem(plain, first.start(), first.end(), self.unit):
            raise _Unclear(wrong)
        return self._in_range(_float(first.group()))

    def _in_range(self, number: float) -> float:
        low, high = self.scale if self.scale is not None else (float("-inf"), float("inf"))
        if not low <= number <= high:
            raise _Unclear(f"the score {_short(f'{number:.10g}')} is outside {low:g} to {high:g}")
        try:
            return float(number) + 0.0  # + 0.0: -0.0 and 0.0 are one score
        except OverflowError:
            raise _Unclear("the score is too large") from None


def after_reasoning(output: str) -> str:
    """Return the part of ``output`` after its ``<think>`` block."""
    tags = list(_THINK.finditer(output))
    if not tags:
        return output
    last = tags[-1]
    if not last.group(1):
        raise _Unclear("the answer ends inside its reasoning")
    return output[last.end() :]


@lru_cache(maxsize=64)
def _marker(markers: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(m) for m in sorted(markers, key=lambda m: (-len(m), m)))
    anywhere = rf"(?<![\w-])(?:{words})[\"')\]]{{0,2}} ?[:=]"
    at_start = (
        rf"^[^\w\n]{{0,4}}{_LEAD}(?:{words})(?: is(?: ?:)?(?=\s)|[ ]?(?:->|=>|[-\u2013\u2014\u2192])(?=\s))"
    )
    return re.compile(f"{anywhere}|{at_start}", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Object:
    pairs: list[tuple[str, object]]  # duplicates kept: two different labels in one object disagree


_DECODER = json.JSONDecoder(object_pairs_hook=_Object)


def _decode(text: str) -> object:
    """Return the JSON list or string that ``text`` is, or None; numbers are left to the readers of text."""
    if not text.startswith(("[", '"')):
        return None
    try:
        value: object = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value


def _first_line(content: str) -> str:
    return next((line for line in content.split("\n") if bare(line)), "")


def _float(text: str) -> float:
    return float(text.replace(",", ""))


def _kind_of(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", str: "a text"}
    return "empty (null)" if value is None else names.get(type(value), "an object")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 40 else text[:37] + "…")


def _listed(items: Iterable[str]) -> str:
    distinct = sorted(set(items))
    return ", ".join(distinct[:5]) + (", …" if len(distinct) > 5 else "")
