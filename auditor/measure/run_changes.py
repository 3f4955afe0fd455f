"""What a comparison of two runs gives: of texts or rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Change = Literal["better", "worse", "same", "unclear", "untested"]
Fate = Literal["new", "gone", "kept"]
Unit = Literal["text", "row"]
IGNORED = {*("jobs", "out", "fail_on", "cache", "concurrency"), *("max_calls", "max_cost", "max_seconds", "price")}
UNSET: tuple[Any, ...] = (None, [], ())


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanDifference:
    """One entry of the plans (or of what they resolved to) that is not the same."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """What a comparison of one figure said; units are source texts, or rows."""

    change: Change = "untested"
    test: str = ""
    before: float | None = None  # on the units that were compared
    after: float | None = None
    difference: float | None = None  # ``after - before``, with its 95 % interval
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    n_before: int = 0  # units compared; equal in a paired test
    n_after: int = 0
    only_before: int | None = None  # units of a paired test that changed in one run only
    only_after: int | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RateChange(Tested):
    """One rate in both runs: the share of variants whose answer changed, or a score of rows (``format`` names it)."""

    model: str
    format: str
    attributes: tuple[str, ...]
    n_variants: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingChange:
    """One key of shown findings: in which runs, with which ids, and why it may be missing in one."""

    key: str
    fate: Fate
    before: tuple[str, ...]
    after: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What `compare` hands out."""

    before: str
    after: str
    plans: tuple[PlanDifference, ...]
    rates: tuple[RateChange, ...]
    findings: tuple[FindingChange, ...]
    notes: tuple[str, ...] = ()
    unit: Unit = "text"


def plan_differences(first: Mapping[str, object], second: Mapping[str, object]) -> list[PlanDifference]:
    """Entries of plan and inputs that differ; where results go and what they may cost is left out."""
    a, b = _flat(first), _flat(second)
    return [
        PlanDifference(name=name, before=_show(a.get(name)), after=_show(b.get(name)))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name) and not (a.get(name) in UNSET and b.get(name) in UNSET)
    ]


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    spec = {k: v for k, v in record.get("spec", {}).items() if k not in IGNORED}
    inputs = record.get("provenance", {})
    for name in ("task_sha256", "seeds", "rows", "schema", "profile", "parser", "grammar", "dictionaries"):
        value = inputs.get(name)
        if isinstance(value, Mapping):
            spec |= {f"{name}.{k}": v for k, v in value.items() if k in ("sha256", "name", "n", "source")}
        elif isinstance(value, list) and all(isinstance(v, Mapping) for v in value):
            spec |= {f"{name}.{v.get('name')}": v.get("sha256") for v in value}
        elif value is not None:
            spec[name] = value
    models = record.get("models") or {}
    if len(models) == 1:
        models = {"model": next(iter(models.values()))}
    for name, model in models.items():
        spec |= {f"{name}: fingerprint": model.get("fingerprint"), f"{name}: reported as": model.get("reported")}
    return spec | {"tool_version": record.get("tool_version")}


def _show(value: object) -> str:
    if value in UNSET:
        return "not set"
    return ", ".join(str(v) for v in value) if isinstance(value, (list, tuple)) else str(value)
