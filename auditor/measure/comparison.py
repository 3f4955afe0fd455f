"""Two runs compared: their plans, their rates of changes, and their findings.

Rates are shares of variants, as everywhere. They are compared on what both runs asked: the same variant (case, text,
prompt format) of the same source text, which is the unit: exchanging the runs changes the sign of what a text adds to
the difference, so the sign-flip test is exact under "both change equally often on each text". Holm's correction runs
over all rates that were tested. Findings are matched by their key (`auditor.core.waivers.key`).

References
----------
S. Holm, Scand. J. Statist. 6 (1979).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.core import waivers
from auditor.core.record import RunRecord
from auditor.core.types import Finding
from auditor.measure.intervals import difference_of_rates, fine_enough, holm, resamples_for, sign_flip
from auditor.measure.observations import Arm, Ints, Observations, Place
from auditor.measure.rates import VIOLATION

ALPHA = 0.05
BY_TEXT = "sign flips, by text"
Change = Literal["better", "worse", "same", "unclear", "untested"]
Fate = Literal["new", "gone", "kept"]
Unit = Literal["text", "row"]
Attributes = tuple[str, ...]
Keys = NDArray[np.uint64]
IGNORED = {*("jobs", "out", "fail_on", "cache", "concurrency"), *("max_calls", "max_cost", "max_seconds", "price")}
UNSET: tuple[Any, ...] = (None, [], ())


# -- results ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One entry of the plans (or of what they resolved to) that is not the same."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RateChange:
    """One rate in both runs: the share of variants whose answer changed, or a score of rows (``format`` names it)."""

    model: str = ""
    format: str = ""
    attributes: Attributes = ()
    n_variants: int = 0
    change: Change = "untested"
    test: str = ""
    before: float | None = None  # on the texts, or rows, that were compared
    after: float | None = None
    difference: float | None = None  # ``after - before``, with its 95 % interval
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    n_before: int = 0  # texts or rows compared; equal in a paired test
    n_after: int = 0
    only_before: int | None = None  # those of a paired test that changed in one run only
    only_after: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FindingChange:
    """One key of shown findings: in which runs, with which ids, and why it may be missing in one."""

    key: str
    fate: Fate
    before: tuple[str, ...]
    after: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two runs compared."""

    before: str
    after: str
    plans: tuple[PlanDifference, ...]
    rates: tuple[RateChange, ...]
    findings: tuple[FindingChange, ...]
    notes: tuple[str, ...] = ()
    unit: Unit = "text"


class Side(NamedTuple):
    """One run as the comparison reads it; ``keys`` number the versions, alike for the same text of the same case."""

    record: RunRecord
    table: Observations
    keys: Keys


# -- two runs ---------------------------------------------------------------------------------------------------


def compare(first: Side, second: Side) -> Comparison:
    """Compare two runs, as `auditor.run.state.side` read them."""
    return comparison_of(first.record, second.record, _rates(first, second))


def comparison_of(
    first: RunRecord, second: RunRecord, rates: Iterable[RateChange], *, notes: Iterable[str] = (), unit: Unit = "text"
) -> Comparison:
    """Compare two runs whose rates were compared already."""
    renamed, said = _renamed(first, second), list(notes)
    for old, new in renamed.items():
        said.append(f"each run asked one model: {old} before and {new} after are compared as one")
    for name, record in (("before", first), ("after", second)):
        if record.status == "partial":
            said.append(f"the run {name} is partial: {record.status_reason}")
    return Comparison(
        before=first.id or "",
        after=second.id or "",
        plans=tuple(plan_differences(first.raw, second.raw)),
        rates=tuple(rates),
        findings=tuple(_findings(first, second, renamed)),
        notes=tuple(said),
        unit=unit,
    )


def _renamed(first: RunRecord, second: RunRecord) -> dict[str, str]:
    """Old to new name where each run has one model and they differ."""
    old, new = list(first.models), list(second.models)
    return {old[0]: new[0]} if len(old) == len(new) == 1 and old != new else {}


# -- rates ------------------------------------------------------------------------------------------------------


Cells = dict[int, tuple[int, bool]]  # judged variants: the text of each, and whether its answer changed


def _cells(side: Side, renamed: Mapping[str, str]) -> dict[tuple[Place, Attributes], Cells]:
    """What was judged of edited versions."""
    table, judged = side.table, side.table.judged()
    out: dict[tuple[Place, Attributes], Cells] = defaultdict(dict)
    use = table.in_arm(Arm.EDITED)[judged.shape] & (judged.outcome <= VIOLATION)
    columns = side.keys[judged.version], judged.text, judged.model, judged.format, judged.shape, judged.outcome
    for key, text, model, form, shape, outcome in zip(*(column[use].tolist() for column in columns), strict=True):
        name = table.models.values[model]
        place = Place(renamed.get(name, name), table.formats.values[form])
        out[place, table.shapes.values[shape].attributes].setdefault(key, (text, outcome == VIOLATION))
    return out


def _shared(before: Cells, after: Cells) -> tuple[Ints, Ints, Ints]:
    """Of each text the variants that both have: changed before, changed after, and all."""
    by_text: dict[int, list[tuple[bool, bool]]] = defaultdict(list)
    for key in before.keys() & after.keys():
        text, changed = before[key]
        by_text[text].append((changed, after[key][1]))
    counts = [(*map(sum, zip(*both, strict=True)), len(both)) for _, both in sorted(by_text.items())]
    x, y, n = np.array(counts, dtype=np.int64).reshape(-1, 3).T
    return x, y, n


def _rates(first: Side, second: Side) -> list[RateChange]:
    before, after = _cells(first, _renamed(first.record, second.record)), _cells(second, {})
    rng = np.random.default_rng(7)
    wanted = resamples_for(len(before.keys() & after.keys()))
    made = []
    for where in sorted(before.keys() | after.keys(), key=lambda w: (w[0], len(w[1]), w[1])):
        if where in before and where in after:
            one = _tested(*_shared(before[where], after[where]), rng, wanted)
        else:
            one = RateChange(reason=f"judged only in the run {'after' if where in after else 'before'}")
        place, attributes = where
        made.append(dataclasses.replace(one, model=place.model, format=place.format, attributes=attributes))
    return corrected(made)


def _tested(x: Ints, y: Ints, n: Ints, rng: np.random.Generator, wanted: int) -> RateChange:
    """The comparison of one rate: changes before and after, and variants, of each text."""
    if not len(n):
        return RateChange(reason="the runs share no variant")
    difference, low, high = difference_of_rates(y, x, n)
    return RateChange(
        n_variants=int(n.sum()),
        test=BY_TEXT,
        before=float(x.sum() / n.sum()),
        after=float(y.sum() / n.sum()),
        difference=difference,
        low=low,
        high=high,
        p_value=fine_enough(lambda resamples: sign_flip(y - x, rng=rng, resamples=resamples), wanted),
        n_before=len(n),
        n_after=len(n),
        only_before=int(((x > 0) & (y == 0)).sum()),
        only_after=int(((y > 0) & (x == 0)).sum()),
    )


def corrected(made: Sequence[RateChange]) -> list[RateChange]:
    """Tested figures with Holm's correction over all of them, and what each then says."""
    adjusted = holm([one.p_value for one in made])
    return [
        one if p is None else dataclasses.replace(one, p_adjusted=p, change=_change(one, p))
        for one, p in zip(made, adjusted, strict=True)
    ]


def _change(one: RateChange, p: float) -> Change:
    if p >= ALPHA or not one.difference:
        return "unclear"
    return "worse" if one.difference > 0 else "better"


# -- findings and plans -----------------------------------------------------------------------------------------


def _findings(first: RunRecord, second: RunRecord, renamed: Mapping[str, str]) -> list[FindingChange]:
    before, after = _by_key(first, renamed), _by_key(second, {})
    order: dict[Fate, int] = {"new": 0, "gone": 1, "kept": 2}
    out = []
    for key in before.keys() | after.keys():
        a, b = (tuple(f.id for f in side.get(key, ()) if f.verdict == "shown") for side in (before, after))
        if a or b:
            fate: Fate = "kept" if a and b else "new" if b else "gone"
            name, there = ("before", before) if b else ("after", after)
            states = sorted({f.verdict.replace("_", " ") for f in there.get(key, ())})
            why = f"{', '.join(states)} in the run {name}" if states else f"the run {name} has no such finding"
            note = "" if a and b else why
            out.append(FindingChange(key, fate, a, b, note))
    return sorted(out, key=lambda one: (order[one.fate], one.key))


def _by_key(record: RunRecord, renamed: Mapping[str, str]) -> dict[str, list[Finding]]:
    out: dict[str, list[Finding]] = defaultdict(list)
    for finding in record.findings:
        model = renamed.get(finding.model, finding.model)
        out[waivers.key(dataclasses.replace(finding, model=model))].append(finding)
    return out


def plan_differences(first: Mapping[str, object], second: Mapping[str, object]) -> list[PlanDifference]:
    """Entries of plan and inputs that differ; where results go and what they may cost is left out."""
    a, b = _flat(first), _flat(second)
    return [
        PlanDifference(name, _show(a.get(name)), _show(b.get(name)))
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
