"""The controls of a run as typed values: what came of each, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from auditor.core.record.base import Losses, Part
from auditor.core.types import Estimate


class GroupAnswers(Losses, frozen=True, kw_only=True):
    """What became of the answers about one group."""

    model: str
    attribute: str
    group: str
    n: int


class Shift(Part, frozen=True, kw_only=True):
    """Whether the same prompts were answered alike at the start and at the end of a run."""

    shifted: bool
    p_value: float
    prompts: int
    answers: int


class PositiveControl(Part, frozen=True, kw_only=True):
    """What came of pairs of texts that need different answers, and whether all answers were the same.

    ``seen`` goes by the scale of the claims: by the mean difference within the pairs where answers have scores, by the
    share of pairs that were answered differently where they are labels. Limits are None where there is no interval.
    """

    seen: bool
    differ: int  # pairs that were answered differently
    pairs: int
    scale: str = "share"  # or log_odds, number
    mean: float | None = None  # difference of the scores, first text of a pair less the second
    low: float | None = None
    high: float | None = None
    alike: bool = False  # every answer that came until then is the same
    answers: int = 0  # how many came until then
    answer: str | None = None  # the one that all are, where it is a label or a number

    @property
    def hopeless(self) -> bool:
        """Whether nothing can be learned of groups: the model reacts to nothing that it was asked."""
        return self.alike and not self.seen


class Control:
    """One control: a figure, a test, a declaration, why there is none, or several of these by name."""

    __slots__ = ("declared", "estimate", "n", "parts", "positive", "rate", "reason", "shift", "text")

    def __init__(self, value: object = None) -> None:
        self.estimate: Estimate | None = None
        self.positive: PositiveControl | None = None
        self.rate: float | None = None
        self.n: int | None = None
        self.shift: Shift | None = None
        self.declared = False
        self.reason: str | None = None  # why it was not run
        self.text = ""  # anything else
        self.parts: dict[str, Control] = {}
        if not isinstance(value, Mapping):
            self.text = "" if value is None else str(value)
            self.rate = value if isinstance(value, float) else None
            return
        plain: dict[str, Any] = dict(value)
        if plain.pop("status", None) == "not_tested":
            self.reason = str(plain.pop("reason", None) or "no reason given")
        elif plain.get("declared"):
            self.declared = True
        elif {"seen", "differ"} <= plain.keys():
            self.positive = msgspec.convert(plain, PositiveControl)
        elif {"value", "low", "high"} <= plain.keys():
            seen = plain.pop("seen", None)  # of a positive control until 0.2: the share of the pairs
            self.estimate = made = msgspec.convert(plain, Estimate)
            if seen is not None:
                self.positive = PositiveControl(seen=seen, differ=round(made.value * made.n), pairs=made.n)
        elif "shifted" in plain:
            self.shift = msgspec.convert(plain, Shift)
        elif "rate" in plain:
            self.rate, self.n = plain.pop("rate"), plain.pop("n", None)
        else:
            self.parts = {str(name): Control(part) for name, part in plain.items()}

    @classmethod
    def of(cls, estimate: Estimate) -> Control:
        """A figure as a control."""
        made = cls()
        made.estimate = estimate
        return made

    def walk(self) -> Iterator[Control]:
        """All figures, tests and declarations in it."""
        if not self.parts:
            yield self
        for part in self.parts.values():
            yield from part.walk()


class Controls:
    """The controls of a run by name, and what became of answers by group."""

    __slots__ = ("answers_by_group", "every")

    def __init__(self, plain: Mapping[str, object] | None = None) -> None:
        every = dict(plain or {})
        groups = every.pop("answers_by_group", None) or ()
        self.answers_by_group = msgspec.convert(groups, tuple[GroupAnswers, ...])
        self.every = {name: Control(value) for name, value in every.items() if value is not None}

    def of(self, name: str, model: str | None = None) -> Control | None:
        """A control, or the part of it that is about one model; None where there is none."""
        control = self.every.get(name)
        return control if model is None or control is None else control.parts.get(model)
