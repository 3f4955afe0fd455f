"""Two runs side by side: what differs in their plans, which rates rose or fell, which findings came and went.

Rates are compared on what both runs asked: the same variant (case, text, prompt format) of the same seed. The
seed is the unit: one pair of "did an answer change on this seed" for each, tested by McNemar's exact test. Where
the runs share no judged variant, the shares of the seeds are compared as two samples by a permutation test. Holm's
correction runs over all rates that were tested. Findings are matched by their key (`auditor.core.waivers.key`).

References
----------
Q. McNemar, Psychometrika 12 (1947); S. Holm, Scand. J. Statist. 6 (1979).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from auditor.core import waivers
from auditor.core.types import Verdict

LEVEL = 0.05
RESAMPLES = 4999
CHUNK = 2_000_000  # seeds that are dealt at once: memory must not grow with them
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
Change = Literal["better", "worse", "same", "unclear", "untested"]
Fate = Literal["new", "gone", "kept"]
Cells = dict[str, dict[str, bool]]  # seed -> variant text -> whether the answer changed


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanDifference:
    """One entry of the plans (or of what they resolved to) that is not the same."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """What a comparison of one figure said; units are seeds of texts, or rows."""

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


T = TypeVar("T", bound=Tested)


@dataclass(frozen=True, kw_only=True, slots=True)
class RateChange(Tested):
    """One rate in both runs: the mean over seeds of the share of changed answers."""

    model: str
    format: str
    attributes: tuple[str, ...]
    n_variants: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreChange(Tested):
    """One score of a search over rows in both runs."""

    name: str
    columns: tuple[str, ...]
    population: str


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One run as the comparison reads it: the record, the verdicts, and the text of each variant."""

    record: Mapping[str, Any]
    verdicts: Sequence[Verdict]
    texts: Mapping[str, str]
    directed: frozenset[str] = frozenset()


def read(path: Path) -> Side:
    """Read a run folder.

    Raises
    ------
    RunFolderError
        It is none, or holds no result yet.
    """
    import json

    from auditor.store.folder import RunFolder

    folder = RunFolder.open(path)
    record = folder.record()
    texts: dict[str, str] = {}
    directed = set()
    for case, _ in folder.cases():
        if case.sampling == "directed":
            directed.add(case.id)
        for variant in case.variants:
            value = variant.input
            texts[variant.id] = value if isinstance(value, str) else json.dumps(dict(value), sort_keys=True)
    return Side(record=record, verdicts=tuple(folder.verdicts()), texts=texts, directed=frozenset(directed))


def compare(first: Side, second: Side, *, seed: int = 7) -> Comparison:
    """Compare two runs; ``first`` is the one before.

    Parameters
    ----------
    first, second : Side
        What `read` returned.
    seed : int
        For the permutation test of two samples.

    Returns
    -------
    Comparison
        Plans first, then rates, then findings.
    """
    renamed = _renamed(first.record, second.record)
    plans = tuple(plan_differences(first.record, second.record))
    rates = tuple(_rates(first, second, renamed, seed))
    notes = []
    if renamed:
        ((old, new),) = renamed.items()
        notes.append(f"each run asked one model: {old} before and {new} after are compared as one")
    for name, side in (("before", first), ("after", second)):
        if side.record.get("status") == "partial":
            notes.append(f"the run {name} is partial: {side.record.get('status_reason')}")
    return Comparison(
        before=str(first.record.get("id", "")),
        after=str(second.record.get("id", "")),
        plans=plans,
        rates=rates,
        findings=tuple(_findings(first, second, renamed)),
        notes=tuple(notes),
    )


def _models(record: Mapping[str, Any]) -> list[str]:
    return list(record.get("models") or {})


def _renamed(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, str]:
    """Old to new name where each run has one model and they differ."""
    old, new = _models(first), _models(second)
    return {old[0]: new[0]} if len(old) == len(new) == 1 and old != new else {}


def plan_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[PlanDifference]:
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


def _show(value: Any) -> str:
    if value in UNSET:
        return "not set"
    return ", ".join(str(v) for v in value) if isinstance(value, (list, tuple)) else str(value)


def _cells(side: Side, renamed: Mapping[str, str]) -> dict[tuple[str, str, tuple[str, ...]], Cells]:
    """Judged variants by question, seed and text; placebo variants and directed cases are left out."""
    out: dict[tuple[str, str, tuple[str, ...]], Cells] = defaultdict(dict)
    for v in side.verdicts:
        if not v.order or v.case_id in side.directed or v.outcome not in ("pass", "violation"):
            continue
        where = (renamed.get(v.model, v.model), v.format, tuple(sorted(v.attributes)))
        text = side.texts.get(v.variant_id, v.variant_id)
        out[where].setdefault(v.case_id, {})[text] = v.outcome == "violation"
    return out


def _rates(first: Side, second: Side, renamed: Mapping[str, str], seed: int) -> list[RateChange]:
    import numpy as np

    from auditor.measure.multiplicity import resamples_for

    before, after = _cells(first, renamed), _cells(second, {})
    rng = np.random.default_rng(seed)
    wanted = resamples_for(len(before.keys() & after.keys()), least=RESAMPLES)
    made = []
    for where in sorted(before.keys() | after.keys(), key=lambda w: (w[0], w[1], len(w[2]), w[2])):
        if where not in before or where not in after:
            only = "after" if where in after else "before"
            made.append(_untested(where, f"judged only in the run {only}"))
        else:
            made.append(_tested(where, before[where], after[where], rng, wanted))
    return corrected(made)


def corrected(made: Sequence[T]) -> list[T]:
    """Tested figures with Holm's correction over all of them, and what each then says."""
    import dataclasses

    from auditor.measure.multiplicity import holm

    return [
        one if p is None else dataclasses.replace(one, p_adjusted=p, change=_change(one, p))
        for one, p in zip(made, holm([one.p_value for one in made]), strict=True)
    ]


def _change(one: Tested, p: float) -> Change:
    if p >= LEVEL or not one.difference or one.reason:
        return "unclear"
    return "worse" if one.difference > 0 else "better"


def _untested(where: tuple[str, str, tuple[str, ...]], reason: str) -> RateChange:
    return RateChange(model=where[0], format=where[1], attributes=where[2], reason=reason)


def _tested(
    where: tuple[str, str, tuple[str, ...]], before: Cells, after: Cells, rng: Any, wanted: int
) -> RateChange:
    shared = {
        case: sorted(before[case].keys() & after[case].keys())
        for case in sorted(before.keys() & after.keys())
    }
    shared = {case: texts for case, texts in shared.items() if texts}
    if shared:
        a = [[before[case][text] for text in texts] for case, texts in shared.items()]
        b = [[after[case][text] for text in texts] for case, texts in shared.items()]
        return _paired(where, a, b)
    a = [list(cells.values()) for cells in before.values()]
    b = [list(cells.values()) for cells in after.values()]
    return _two_samples(where, a, b, rng, wanted)


def _paired(
    where: tuple[str, str, tuple[str, ...]], a: Sequence[Sequence[bool]], b: Sequence[Sequence[bool]]
) -> RateChange:
    import dataclasses

    found = dataclasses.asdict(paired(a, b, "McNemar, exact, by seed"))
    if found["reason"]:
        found["reason"] = "more seeds changed one way, more variants the other"
    n = sum(len(x) for x in a)
    return RateChange(model=where[0], format=where[1], attributes=where[2], n_variants=n, **found)


def paired(a: Sequence[Sequence[bool]], b: Sequence[Sequence[bool]], test: str) -> Tested:
    """The same units in both runs, each with whether its answers changed; ``reason`` where test and mean differ.

    The test sees whether a unit changed at all; where the shares point the other way, it decides nothing.
    """
    from auditor.measure.paired import mcnemar, signed_limits

    only_before = sum(any(x) and not any(y) for x, y in zip(a, b, strict=True))
    only_after = sum(any(y) and not any(x) for x, y in zip(a, b, strict=True))
    d = [sum(y) / len(y) - sum(x) / len(x) for x, y in zip(a, b, strict=True)]
    value = sum(d) / len(d)
    low, high = signed_limits(d, 1 - LEVEL)
    return Tested(
        test=test,
        before=_mean(a),
        after=_mean(b),
        difference=value,
        low=low,
        high=high,
        p_value=mcnemar(only_before, only_after),
        n_before=len(a),
        n_after=len(b),
        only_before=only_before,
        only_after=only_after,
        reason="opposed" if (only_after - only_before) * value < 0 else "",
    )


def _two_samples(
    where: tuple[str, str, tuple[str, ...]],
    a: Sequence[Sequence[bool]],
    b: Sequence[Sequence[bool]],
    rng: Any,
    wanted: int,
) -> RateChange:
    from auditor.measure.intervals import mean_share
    from auditor.measure.multiplicity import too_coarse
    from auditor.measure.paired import apart

    x, y = [sum(s) / len(s) for s in a], [sum(s) / len(s) for s in b]
    first, second = (mean_share(v, sum(map(len, s)), 1 - LEVEL) for v, s in ((x, a), (y, b)))
    low, high = apart(second, first)
    p: float | None = None
    reason = ""
    if min(len(x), len(y)) < 2:
        reason = "fewer than two seeds in one of the runs"
    elif len(set(x) | set(y)) == 1:
        p = 1.0
    else:
        p = _exchanged(x, y, rng, RESAMPLES)
        if too_coarse(p, RESAMPLES, wanted):
            p = _exchanged(x, y, rng, wanted)
    return RateChange(
        model=where[0],
        format=where[1],
        attributes=where[2],
        test="two samples, permutation of seeds",
        before=first.value,
        after=second.value,
        difference=second.value - first.value,
        low=max(-1.0, low),
        high=min(1.0, high),
        p_value=p,
        n_before=len(a),
        n_after=len(b),
        n_variants=sum(len(s) for s in (*a, *b)),
        reason=reason,
    )


def _exchanged(x: Sequence[float], y: Sequence[float], rng: Any, resamples: int) -> float:
    """P value of "the seeds of both runs are exchangeable"."""
    from scipy.stats import permutation_test

    found = permutation_test(
        (y, x),
        lambda u, v, axis: u.mean(axis=axis) - v.mean(axis=axis),
        permutation_type="independent",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, CHUNK // (len(x) + len(y))),
        rng=rng,
    )
    return float(min(1.0, found.pvalue))


def _mean(seeds: Sequence[Sequence[bool]]) -> float:
    return sum(sum(s) / len(s) for s in seeds) / len(seeds)


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


def _by_key(record: Mapping[str, Any], renamed: Mapping[str, str]) -> dict[str, list[Mapping[str, Any]]]:
    out: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for finding in record.get("findings", ()):
        model = renamed.get(finding["model"], finding["model"])
        out[waivers.key({**finding, "model": model})].append(finding)
    return out


def _shown(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(f["id"]) for f in findings if f["verdict"] == "shown"]


def _why(
    found: Sequence[Mapping[str, Any]], there: Sequence[Mapping[str, Any]], own: Side, other: Side, name: str
) -> str:
    """Why a finding of one run is not shown in the other."""
    if there:
        states = sorted({str(f["verdict"]).replace("_", " ") for f in there})
        return f"{', '.join(states)} in the run {name}"
    if found[0]["kind"] == "claim":
        return f"the run {name} made no such claim"
    texts = {own.texts.get(v) for f in found for v in f.get("exemplars") or ()} - {None}
    format_ = found[0].get("format") or ""
    models = {str(f["model"]) for f in found}
    if len(_models(other.record)) == 1:
        models |= set(_models(other.record))
    judged = [
        v
        for v in other.verdicts
        if v.order
        and other.texts.get(v.variant_id) in texts
        and v.format in (format_, "")
        and v.model in models
        and v.outcome in ("pass", "violation")
    ]
    if not judged:
        return f"the run {name} did not judge these texts"
    changed = sum(v.outcome == "violation" for v in judged)
    return f"the run {name} judged {len(judged)} of these texts; the answer changed in {changed}"
