"""Two runs side by side: what differs in their plans, which rates rose or fell, which findings came and went.

Rates are shares of variants, as everywhere. They are compared on what both runs asked: the same variant (case, text,
prompt format) of the same source text, which is the unit: exchanging the runs changes the sign of what a text adds to
the difference (sign-flip test). Where the runs share no judged variant, the texts are two samples (permutation test).
Holm's correction runs over all rates that were tested. Findings are matched by their key
(`auditor.core.waivers.key`).

References
----------
S. Holm, Scand. J. Statist. 6 (1979).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.core import waivers
from auditor.core.record import RunRecord
from auditor.core.types import Finding
from auditor.measure.compared import Change, Comparison, Fate, FindingChange, PlanDifference, RateChange, Tested
from auditor.measure.intervals import korn_graubard
from auditor.measure.multiplicity import RESAMPLES, holm, resamples_for, too_coarse
from auditor.measure.observations import Arm, Codes, Ints, Judged, Observations
from auditor.measure.paired import apart, difference_of_rates, sign_flip
from auditor.measure.rates import VIOLATION

LEVEL = 0.05
CHUNK = 2_000_000  # numbers that are drawn at once: memory must not grow with the texts
BY_TEXT = "sign flips, by text"
TINY = 1e-12
TWO_SAMPLES = "two samples, permutation of texts"
IGNORED = {
    "engine",
    "jobs",
    "out",
    "fail_on",
    "cache",
    "concurrency",
    "max_calls",
    "max_cost",
    "max_seconds",
    "price_in",
    "price_out",
}
UNSET: tuple[Any, ...] = (None, [], ())
Where = tuple[str, str, tuple[str, ...]]  # model, format, attributes


T = TypeVar("T", bound=Tested)


class Asked(NamedTuple):
    """A table of a run, and a number for each version that is the same for the same text of the same case."""

    table: Observations
    keys: NDArray[np.uint64]


NOTHING = Asked(Observations(), np.zeros(0, dtype=np.uint64))


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One run as the comparison reads it.

    Attributes
    ----------
    record : mapping
        Its run record.
    drawn, directed : Asked
        What was judged: of cases drawn at random, and of those that earlier verdicts led to.
    exemplars : mapping of str to int
        The keys of the variants that its findings name.
    """

    record: RunRecord
    drawn: Asked
    directed: Asked = NOTHING
    exemplars: Mapping[str, int] = field(default_factory=dict)


def compare(first: Side, second: Side, *, seed: int = 7) -> Comparison:
    """Compare two runs; ``first`` is the one before.

    Parameters
    ----------
    first, second : Side
        What `auditor.run.observed.side` read.
    seed : int
        For the permutation test of two samples.

    Returns
    -------
    Comparison
        Plans first, then rates, then findings.
    """
    renamed = _renamed(first.record, second.record)
    plans = tuple(plan_differences(first.record.raw, second.record.raw))
    rates = tuple(_rates(first, second, renamed, seed))
    notes = []
    if renamed:
        ((old, new),) = renamed.items()
        notes.append(f"each run asked one model: {old} before and {new} after are compared as one")
    for name, side in (("before", first), ("after", second)):
        if side.record.status == "partial":
            notes.append(f"the run {name} is partial: {side.record.status_reason}")
    return Comparison(
        before=first.record.id or "",
        after=second.record.id or "",
        plans=plans,
        rates=rates,
        findings=tuple(_findings(first, second, renamed)),
        notes=tuple(notes),
    )


def _models(record: RunRecord) -> list[str]:
    return list(record.models)


def _renamed(first: RunRecord, second: RunRecord) -> dict[str, str]:
    """Old to new name where each run has one model and they differ."""
    old, new = _models(first), _models(second)
    return {old[0]: new[0]} if len(old) == len(new) == 1 and old != new else {}


def plan_differences(first: Mapping[str, object], second: Mapping[str, object]) -> list[PlanDifference]:
    """Entries of plan and inputs that differ; where results go and what they may cost is left out."""
    out = []
    a, b = _flat(first), _flat(second)
    for name in sorted(a.keys() | b.keys()):
        before, after = a.get(name), b.get(name)
        if before != after and not (before in UNSET and after in UNSET):
            out.append(PlanDifference(name=name, before=_show(before), after=_show(after)))
    return out


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    spec = {k: v for k, v in record.get("spec", {}).items() if k not in IGNORED}
    told = record.get("provenance", {})
    for name in ("task_sha256", "seeds", "rows", "schema", "profile", "parser", "grammar", "dictionaries"):
        value = told.get(name)
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
        spec[f"{name}: fingerprint"] = model.get("fingerprint")
        spec[f"{name}: reported as"] = model.get("reported")
    return spec | {"tool_version": record.get("tool_version")}


def _show(value: object) -> str:
    if value in UNSET:
        return "not set"
    return ", ".join(str(v) for v in value) if isinstance(value, (list, tuple)) else str(value)


class Cells(NamedTuple):
    """The judged variants of one question: which they are, their texts, and whether their answers changed."""

    key: NDArray[np.uint64]
    text: Ints
    changed: Ints


def _cells(side: Side, renamed: Mapping[str, str]) -> dict[Where, Cells]:
    """Judged variants by question; placebo variants and directed cases are left out."""
    table, keys = side.drawn
    told = table.judged()
    edited = np.array([s.arm == Arm.EDITED for s in table.shapes.values], dtype=bool)
    known: Codes[tuple[str, ...]] = Codes()
    sets = np.array([known.of(s.attributes) for s in table.shapes.values], dtype=np.int64)[told.shape]
    use = np.flatnonzero(edited[told.shape] & (told.outcome <= VIOLATION))
    asked = np.column_stack([told.model, told.format, sets])[use]
    places, at = np.unique(asked, axis=0, return_inverse=True)
    out = {}
    for number, (model, name, code) in enumerate(places.tolist()):
        own = use[at == number]
        key, first = np.unique(keys[told.version[own]], return_index=True)
        old = table.models.values[model]
        where = (renamed.get(old, old), table.formats.values[name], known.values[code])
        changed = (told.outcome[own[first]] == VIOLATION).astype(np.int64)
        out[where] = Cells(key, told.text[own[first]], changed)
    return out


def _rates(first: Side, second: Side, renamed: Mapping[str, str], seed: int) -> list[RateChange]:
    before, after = _cells(first, renamed), _cells(second, {})
    rng = np.random.default_rng(seed)
    wanted = resamples_for(len(before.keys() & after.keys()))
    made = []
    for where in sorted(before.keys() | after.keys(), key=lambda w: (w[0], w[1], len(w[2]), w[2])):
        if where not in before or where not in after:
            found = Tested(reason=f"judged only in the run {'after' if where in after else 'before'}")
            n = 0
        else:
            found, n = _tested(before[where], after[where], rng, wanted)
        told = dataclasses.asdict(found)
        made.append(RateChange(model=where[0], format=where[1], attributes=where[2], n_variants=n, **told))
    return corrected(made)


def corrected(made: Sequence[T]) -> list[T]:
    """Tested figures with Holm's correction over all of them, and what each then says."""
    return [
        one if p is None else dataclasses.replace(one, p_adjusted=p, change=_change(one, p))
        for one, p in zip(made, holm([one.p_value for one in made]), strict=True)
    ]


def _change(one: Tested, p: float) -> Change:
    if p >= LEVEL or not one.difference:
        return "unclear"
    return "worse" if one.difference > 0 else "better"


def _tested(before: Cells, after: Cells, rng: np.random.Generator, wanted: int) -> tuple[Tested, int]:
    """The comparison of one rate, and how many variants it rests on."""
    _, own, other = np.intersect1d(before.key, after.key, assume_unique=True, return_indices=True)
    if len(own):
        _, text = np.unique(before.text[own], return_inverse=True)
        x, y = (np.bincount(text, c).astype(np.int64) for c in (before.changed[own], after.changed[other]))
        return _paired(x, y, np.bincount(text), rng, wanted), len(own)
    return _two_samples(_by_text(before), _by_text(after), rng, wanted), len(before.key) + len(after.key)


def _paired(x: Ints, y: Ints, n: Ints, rng: np.random.Generator, wanted: int) -> Tested:
    """The same variants in both runs: changed before and after, and all, of each text."""
    difference, low, high = difference_of_rates(y, x, n, 1 - LEVEL)
    p = sign_flip(y - x, rng=rng)
    if too_coarse(p, RESAMPLES, wanted):
        p = sign_flip(y - x, rng=rng, resamples=wanted)
    return Tested(
        test=BY_TEXT,
        before=float(x.sum() / n.sum()),
        after=float(y.sum() / n.sum()),
        difference=difference,
        low=low,
        high=high,
        p_value=p,
        n_before=len(n),
        n_after=len(n),
        only_before=int(((x > 0) & (y == 0)).sum()),
        only_after=int(((y > 0) & (x == 0)).sum()),
    )


def _by_text(cells: Cells) -> tuple[Ints, Ints]:
    """Changed variants and all variants of each text."""
    _, text = np.unique(cells.text, return_inverse=True)
    return np.bincount(text, cells.changed).astype(np.int64), np.bincount(text)


def _two_samples(before: tuple[Ints, Ints], after: tuple[Ints, Ints], rng: np.random.Generator, wanted: int) -> Tested:
    first, second = (korn_graubard(*side, 1 - LEVEL) for side in (before, after))
    low, high = apart(second, first)
    p: float | None = None
    reason = ""
    if min(len(before[0]), len(after[0])) < 2:
        reason = "fewer than two texts in one of the runs"
    else:
        p = _exchanged(before, after, rng, RESAMPLES)
        if too_coarse(p, RESAMPLES, wanted):
            p = _exchanged(before, after, rng, wanted)
    return Tested(
        test=TWO_SAMPLES,
        before=first.value,
        after=second.value,
        difference=second.value - first.value,
        low=max(-1.0, low),
        high=min(1.0, high),
        p_value=p,
        n_before=len(before[0]),
        n_after=len(after[0]),
        reason=reason,
    )


def _exchanged(before: tuple[Ints, Ints], after: tuple[Ints, Ints], rng: np.random.Generator, resamples: int) -> float:
    """P value of "the texts of both runs are exchangeable"; two-sided, what was seen counted in."""
    events, sizes = (np.concatenate(both).astype(float) for both in zip(before, after, strict=True))
    own = len(before[0])

    def distance(order: Ints) -> NDArray[np.float64]:
        x, n = events[order], sizes[order]
        a = x[..., :own].sum(axis=-1) / n[..., :own].sum(axis=-1)
        return np.asarray(np.abs(x[..., own:].sum(axis=-1) / n[..., own:].sum(axis=-1) - a))

    seen = float(distance(np.arange(len(events))))
    hits, left, most = 0, resamples, max(1, CHUNK // len(events))
    while left:
        drawn = rng.permuted(np.tile(np.arange(len(events)), (min(left, most), 1)), axis=1)
        hits += int((distance(drawn) >= seen - TINY).sum())
        left -= len(drawn)
    return (hits + 1) / (resamples + 1)


def _findings(first: Side, second: Side, renamed: Mapping[str, str]) -> list[FindingChange]:
    before, after = _by_key(first.record, renamed), _by_key(second.record, {})
    order = {"new": 0, "gone": 1, "kept": 2}
    out = []
    for key in before.keys() | after.keys():
        a, b = _shown(before.get(key, ())), _shown(after.get(key, ()))
        if not a and not b:
            continue
        fate: Fate = "kept" if a and b else "new" if b else "gone"
        note = ""
        if fate != "kept":
            other, own = (second, first) if fate == "gone" else (first, second)
            there = (after if fate == "gone" else before).get(key, ())
            found = (before if fate == "gone" else after)[key]
            note = _why(found, there, own, other, "after" if fate == "gone" else "before")
        out.append(FindingChange(key=key, fate=fate, before=tuple(a), after=tuple(b), note=note))
    return sorted(out, key=lambda f: (order[f.fate], f.key))


def _by_key(record: RunRecord, renamed: Mapping[str, str]) -> dict[str, list[Finding]]:
    out: dict[str, list[Finding]] = defaultdict(list)
    for finding in record.findings:
        model = renamed.get(finding.model, finding.model)
        out[waivers.key(dataclasses.replace(finding, model=model))].append(finding)
    return out


def _shown(findings: Iterable[Finding]) -> list[str]:
    return [f.id for f in findings if f.verdict == "shown"]


def _why(found: Sequence[Finding], there: Sequence[Finding], own: Side, other: Side, name: str) -> str:
    """Why a finding of one run is not shown in the other."""
    if there:
        states = sorted({f.verdict.replace("_", " ") for f in there})
        return f"{', '.join(states)} in the run {name}"
    if found[0].kind == "claim":
        return f"the run {name} made no such claim"
    keys = {own.exemplars[v] for f in found for v in f.exemplars if v in own.exemplars}
    models = {f.model for f in found}
    if len(_models(other.record)) == 1:
        models |= set(_models(other.record))
    changed = list(_judged(other, keys, models, {found[0].format, ""}))
    if not changed:
        return f"the run {name} did not judge these texts"
    return f"the run {name} judged {len(changed)} of these texts; the answer changed in {sum(changed)}"


def _judged(side: Side, keys: Iterable[int], models: Iterable[str], formats: Iterable[str]) -> Iterator[bool]:
    """Whether the answer changed, of each edited version with one of the keys."""
    for table, own in (side.drawn, side.directed):
        told: Judged = table.judged()
        edited = np.array([s.arm == Arm.EDITED for s in table.shapes.values], dtype=bool)
        use = edited[told.shape] & (told.outcome <= VIOLATION)
        use &= np.isin(own[told.version], np.array(sorted(keys), dtype=np.uint64))
        for names, codes, column in ((models, table.models, told.model), (formats, table.formats, told.format)):
            use &= np.isin(column, [code for one in names if (code := codes.get(one)) is not None])
        yield from (told.outcome[use] == VIOLATION).tolist()
