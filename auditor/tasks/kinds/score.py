"""Tasks whose answers are amounts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditor.tasks import units
from auditor.tasks.answers import Reader, Unclear, Value, kind_of, short
from auditor.tasks.kinds.base import Kind, Sketch, two_forms
from auditor.tasks.prose import is_refusal, unsure
from auditor.tasks.wording import bare, normalise

_FIGURE = r"[-+]?(?:\d{1,3}(?:,\d{3})++(?:\.\d++)?|\d++(?:\.\d++)?|\.\d++)"
_NUMBER = re.compile(rf"(?<![\w.,])(?<!\w-){_FIGURE}(?!\w|[.,]\d)")
_OUT_OF = re.compile(r" ?\(?(?:/|out of) ?")
_LINE = re.compile(rf"{_FIGURE}(?: ?(?:/|out of) ?{_FIGURE})?(?: ?(?:%|percent|points?|stars?))?")
_DIGITS = re.compile(r"\d+")
_EXACT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?")


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
            ends = [units.bare_amount(units.thousands(bare(x), self.unit), self.unit) for x in ends]
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
            raise Unclear(f"{short(output)} is no number")
        return self._in_range(float(plain))

    def _number(self, plain: str) -> float:
        """Read the one number in ``plain``; "7/10" is 7 where 10 is the highest score."""
        plain = units.thousands(plain, self.unit)
        hits = list(_NUMBER.finditer(plain))
        if len(_DIGITS.findall(plain)) > 1 and units.is_range(plain):
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
        if wrong := units.problem(plain, first.start(), first.end(), self.unit):
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
    sketch = Sketch(
        labels="\nscale: {low: 0, high: 10}    # both ends are possible scores\n",
        question="How urgent is this message, from 0 (can wait) to 10 (at once)?",
        example=("The kettle gave off smoke. What should be done now?", "9"),
        forms=two_forms("Answer with the number and nothing else.", "score", "the number"),
    )

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """Both ends of the scale."""
        return list(scale or ())
