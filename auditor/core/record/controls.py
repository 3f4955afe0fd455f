"""The controls of a run as typed values: what came of each, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    prompts: int  # that were answered at two or more times
    answers: int
    differing: int = 0  # prompts whose most frequent answer is not the same at all times


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


@dataclass(slots=True)
class Control:
    """One control: a figure, a test, a declaration, why there is none, or several of these by name."""

    estimate: Estimate | None = None
    positive: PositiveControl | None = None
    rate: float | None = None
    n: int | None = None
    shift: Shift | None = None
    declared: bool = False
    reason: str | None = None  # why it was not run
    text: str = ""  # anything else
    parts: Mapping[str, Control] = field(default_factory=dict)

    @classmethod
    def read(cls, value: object) -> Control:
        """What a record says of one control."""
        if not isinstance(value, Mapping):
            return cls(text="" if value is None else str(value), rate=value if isinstance(value, float) else None)
        plain: dict[str, Any] = dict(value)
        if plain.pop("status", None) == "not_tested":
            return cls(reason=str(plain.pop("reason", None) or "no reason given"))
        if plain.get("declared"):
            return cls(declared=True)
        if {"seen", "differ"} <= plain.keys():
            return cls(positive=msgspec.convert(plain, PositiveControl))
        if {"value", "low", "high"} <= plain.keys():
            seen = plain.pop("seen", None)  # of a positive control until 0.2: the share of the pairs
            made = cls(estimate=(known := msgspec.convert(plain, Estimate)))
            if seen is not None:
                made.positive = PositiveControl(seen=seen, differ=round(known.value * known.n), pairs=known.n)
            return made
        if "shifted" in plain:
            return cls(shift=msgspec.convert(plain, Shift))
        if "rate" in plain:
            return cls(rate=plain["rate"], n=plain.get("n"))
        return cls(parts={str(name): cls.read(part) for name, part in plain.items()})

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
        self.every = {name: Control.read(value) for name, value in every.items() if value is not None}

    def of(self, name: str, model: str | None = None) -> Control | None:
        """A control, or the part of it that is about one model; None where there is none."""
        control = self.every.get(name)
        return control if model is None or control is None else control.parts.get(model)
