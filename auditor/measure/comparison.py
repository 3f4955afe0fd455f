"""Rates of changes beside each other: of two runs, with their plans and findings, and of the models of one run.

Rates are shares of variants, as everywhere. They are compared on what both sides asked: the same variant (case, text,
prompt format) of the same source text, which is the unit: exchanging the sides changes the sign of what a text adds to
the difference, so the sign-flip test is exact under "both change equally often on each text". Where two runs share no
judged variant, the texts are two samples (permutation test). Holm's correction runs over all rates that were tested.
Findings are matched by their key (`auditor.core.waivers.key`).

References
----------
S. Holm, Scand. J. Statist. 6 (1979).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.core import waivers
from auditor.core.record import RunRecord
from auditor.core.types import Finding
from auditor.measure.claims import MIN_TEXTS
from auditor.measure.intervals import apart, difference_of_rates, korn_graubard
from auditor.measure.observations import Arm, Bools, Codes, Floats, Ints, Judged, Observations, Place
from auditor.measure.p_values import CHUNK, fine_enough, holm, resamples_for, sign_flip
from auditor.measure.rates import VIOLATION
from auditor.measure.run_changes import (
    Change,
    Comparison,
    Fate,
    FindingChange,
    RateChange,
    Tested,
    Unit,
    plan_differences,
)

ALPHA = 0.05
LEVEL = 1 - ALPHA
BY_TEXT = "sign flips, by text"
TWO_SAMPLES = "two samples, permutation of texts"
METHOD = "difference of two rates on the same variants, by text; sign-flip test, Holm"
TINY = 1e-12
Attributes = tuple[str, ...]
Keys = NDArray[np.uint64]
T = TypeVar("T", bound=Tested)


class Asked(NamedTuple):
    """A table of a run, and a number for each version that is the same for the same text of the same case."""

    table: Observations
    keys: Keys


NOTHING = Asked(Observations(), np.zeros(0, dtype=np.uint64))


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One run as the comparison reads it.

    Attributes
    ----------
    drawn, directed : Asked
        What was judged: of cases drawn at random, and of those that earlier verdicts led to.
    exemplars : mapping of str to int
        The keys of the variants that its findings name.
    """

    record: RunRecord
    drawn: Asked = NOTHING
    directed: Asked = NOTHING
    exemplars: Mapping[str, int] = field(default_factory=dict)


# -- rates on what two sides judged ---------------------------------------------------------------------------


class Cells(NamedTuple):
    """Judged variants: which they are, their texts, and whether their answers changed."""

    key: Keys | Ints
    text: Ints
    changed: Ints

    def by_text(self) -> tuple[Ints, Ints]:
        """Changed variants and all variants of each text."""
        _, text = np.unique(self.text, return_inverse=True)
        return np.bincount(text, self.changed).astype(np.int64), np.bincount(text)

    def beside(self, other: Cells) -> tuple[Ints, Ints, Ints]:
        """Of each text the shared variants: changed on this side, on the other, and all."""
        _, own, there = np.intersect1d(self.key, other.key, assume_unique=True, return_indices=True)
        _, text = np.unique(self.text[own], return_inverse=True)
        x, y = (np.bincount(text, c).astype(np.int64) for c in (self.changed[own], other.changed[there]))
        return x, y, np.bincount(text)


def _edited(table: Observations, judged: Judged) -> Bools:
    """Which judgements say of an edited version whether the answer changed."""
    return np.asarray(table.in_arm(Arm.EDITED)[judged.shape] & (judged.outcome <= VIOLATION))


def _cells(table: Observations, keys: Keys | Ints, text: Ints) -> dict[Place, dict[Attributes, Cells]]:
    """What was judged of edited versions; ``keys`` number the versions, ``text`` the texts."""
    judged = table.judged()
    codes: Codes[Attributes] = Codes()
    sets = np.array([codes.of(s.attributes) for s in table.shapes.values], dtype=np.int64)[judged.shape]
    use = np.flatnonzero(_edited(table, judged))
    asked = np.column_stack([judged.model, judged.format, sets])[use]
    questions, at = np.unique(asked, axis=0, return_inverse=True)
    out: dict[Place, dict[Attributes, Cells]] = {}
    for number, (model, name, code) in enumerate(questions.tolist()):
        own = use[at == number]
        key, first = np.unique(keys[judged.version[own]], return_index=True)
        changed = (judged.outcome[own[first]] == VIOLATION).astype(np.int64)
        place = Place(table.models.values[model], table.formats.values[name])
        out.setdefault(place, {})[codes.values[code]] = Cells(key, text[judged.text[own[first]]], changed)
    return out


def _sign_flip(d: Ints, rng: np.random.Generator, wanted: int) -> float:
    return fine_enough(lambda resamples: sign_flip(d, rng=rng, resamples=resamples), wanted)


# -- the models of one run ------------------------------------------------------------------------------------


def two_models(table: Observations, *, seed: int = 7) -> dict[str, object]:
    """Compare every two models of a run, overall and by attribute set, as ``comparison`` of the run record has it.

    ``seed`` is for the sign patterns that are drawn where they are too many to enumerate; more of them where there are
    so many comparisons that a test could else show nothing. P values are None with fewer than `MIN_TEXTS` texts.
    """
    pairs = list(_model_pairs(table))
    wanted = resamples_for(len(pairs))
    rows: list[dict[str, object]] = []
    p_values: list[float | None] = []
    for number, (first, second, attributes, (x, y, n)) in enumerate(pairs):
        value, low, high = difference_of_rates(x, y, n)
        p = _sign_flip(x - y, np.random.default_rng([seed, number]), wanted) if len(n) >= MIN_TEXTS else None
        p_values.append(p)
        rows.append(
            {"first": first._asdict(), "second": second._asdict(), "attributes": list(attributes)}
            | {"n": len(n), "n_variants": int(n.sum()), "value": value, "low": low, "high": high}
            | {"discordant": int((x != y).sum()), "p_value": p}
        )
    adjusted = [row | {"p_adjusted": p} for row, p in zip(rows, holm(p_values), strict=True)]
    return {"method": METHOD, "level": LEVEL, "pairs": adjusted}


def _model_pairs(table: Observations) -> Iterator[tuple[Place, Place, Attributes, tuple[Ints, Ints, Ints]]]:
    """Two models on one attribute set (none: all together): changes of either, and variants, of each text."""
    versions = np.arange(len(table.columns().version_text))
    by_name = np.unique(np.array(table.texts.values, dtype=np.str_), return_inverse=True)[1]
    cells = _cells(table, versions, by_name)
    for first, second in combinations(cells, 2):
        if first.model == second.model or not _comparable(first, second, list(cells)):
            continue
        one, other = cells[first], cells[second]
        shared = {a: one[a].beside(other[a]) for a in sorted(one.keys() & other.keys(), key=lambda a: (len(a), a))}
        shared = {a: counts for a, counts in shared.items() if len(counts[2])}
        if len(shared) > 1:  # with one attribute set, "all" would be the same comparison twice
            yield first, second, (), _together(one).beside(_together(other))
        for attributes, counts in shared.items():
            yield first, second, attributes, counts


def _together(cells: Mapping[Attributes, Cells]) -> Cells:
    return Cells(*(np.concatenate(column) for column in zip(*cells.values(), strict=True)))


def _comparable(first: Place, second: Place, subjects: Sequence[Place]) -> bool:
    """Equal formats, or two models that share none (a classifier reads the bare text)."""
    if first.format == second.format:
        return True
    formats = [{p.format for p in subjects if p.model == model} for model in (first.model, second.model)]
    return not formats[0] & formats[1]


# -- two runs -------------------------------------------------------------------------------------------------


def compare(first: Side, second: Side, *, seed: int = 7) -> Comparison:
    """Compare two runs, as `auditor.run.observed.side` read them; ``seed`` is for the test of two samples."""
    return comparison_of(first, second, _rates(first, second, _renamed(first.record, second.record), seed))


def comparison_of(
    first: Side, second: Side, rates: Iterable[RateChange], *, notes: Iterable[str] = (), unit: Unit = "text"
) -> Comparison:
    """Compare two runs whose rates were compared already."""
    renamed, said = _renamed(first.record, second.record), list(notes)
    for old, new in renamed.items():
        said.append(f"each run asked one model: {old} before and {new} after are compared as one")
    for name, side in (("before", first), ("after", second)):
        if side.record.status == "partial":
            said.append(f"the run {name} is partial: {side.record.status_reason}")
    return Comparison(
        before=first.record.id or "",
        after=second.record.id or "",
        plans=tuple(plan_differences(first.record.raw, second.record.raw)),
        rates=tuple(rates),
        findings=tuple(_findings(first, second, renamed)),
        notes=tuple(said),
        unit=unit,
    )


def _renamed(first: RunRecord, second: RunRecord) -> dict[str, str]:
    """Old to new name where each run has one model and they differ."""
    old, new = list(first.models), list(second.models)
    return {old[0]: new[0]} if len(old) == len(new) == 1 and old != new else {}


def _questions(side: Side, renamed: Mapping[str, str]) -> dict[tuple[Place, Attributes], Cells]:
    table, keys = side.drawn
    return {
        (place._replace(model=renamed.get(place.model, place.model)), attributes): cells
        for place, by_set in _cells(table, keys, np.arange(len(table.texts.values))).items()
        for attributes, cells in by_set.items()
    }


def _rates(first: Side, second: Side, renamed: Mapping[str, str], seed: int) -> list[RateChange]:
    before, after = _questions(first, renamed), _questions(second, {})
    rng = np.random.default_rng(seed)
    wanted = resamples_for(len(before.keys() & after.keys()))
    made = []
    for where in sorted(before.keys() | after.keys(), key=lambda w: (w[0], len(w[1]), w[1])):
        if where not in before or where not in after:
            tested, n = Tested(reason=f"judged only in the run {'after' if where in after else 'before'}"), 0
        else:
            tested, n = _tested(before[where], after[where], rng, wanted)
        about = {**where[0]._asdict(), "attributes": where[1], "n_variants": n}
        made.append(RateChange(**about, **dataclasses.asdict(tested)))
    return corrected(made)


def corrected(made: Sequence[T]) -> list[T]:
    """Tested figures with Holm's correction over all of them, and what each then says."""
    return [
        one if p is None else dataclasses.replace(one, p_adjusted=p, change=_change(one, p))
        for one, p in zip(made, holm([one.p_value for one in made]), strict=True)
    ]


def _change(one: Tested, p: float) -> Change:
    if p >= ALPHA or not one.difference:
        return "unclear"
    return "worse" if one.difference > 0 else "better"


def _tested(before: Cells, after: Cells, rng: np.random.Generator, wanted: int) -> tuple[Tested, int]:
    """The comparison of one rate, and how many variants it rests on."""
    x, y, n = before.beside(after)
    if not len(n):
        tested = _two_samples(before.by_text(), after.by_text(), rng, wanted)
        return tested, len(before.key) + len(after.key)
    difference, low, high = difference_of_rates(y, x, n)
    tested = Tested(
        test=BY_TEXT,
        before=float(x.sum() / n.sum()),
        after=float(y.sum() / n.sum()),
        difference=difference,
        low=low,
        high=high,
        p_value=_sign_flip(y - x, rng, wanted),
        n_before=len(n),
        n_after=len(n),
        only_before=int(((x > 0) & (y == 0)).sum()),
        only_after=int(((y > 0) & (x == 0)).sum()),
    )
    return tested, int(n.sum())


def _two_samples(before: tuple[Ints, Ints], after: tuple[Ints, Ints], rng: np.random.Generator, wanted: int) -> Tested:
    """Changed variants and all variants of each text, in two runs on other texts."""
    first, second = (korn_graubard(*side) for side in (before, after))
    low, high = apart(second, first)
    few = min(len(before[0]), len(after[0])) < 2
    return Tested(
        test=TWO_SAMPLES,
        before=first.value,
        after=second.value,
        difference=second.value - first.value,
        low=max(-1.0, low),
        high=min(1.0, high),
        p_value=None if few else fine_enough(lambda resamples: _exchanged(before, after, rng, resamples), wanted),
        n_before=len(before[0]),
        n_after=len(after[0]),
        reason="fewer than two texts in one of the runs" if few else "",
    )


def _exchanged(before: tuple[Ints, Ints], after: tuple[Ints, Ints], rng: np.random.Generator, resamples: int) -> float:
    """P value of "the texts of both runs are exchangeable"; two-sided, what was seen counted in."""
    events, sizes = (np.concatenate(both).astype(float) for both in zip(before, after, strict=True))
    own = len(before[0])

    def distance(order: Ints) -> Floats:
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
        a, b = (tuple(f.id for f in side.get(key, ()) if f.verdict == "shown") for side in (before, after))
        if not a and not b:
            continue
        fate: Fate = "kept" if a and b else "new" if b else "gone"
        note = ""
        if fate == "gone":
            note = _why(before[key], after.get(key, ()), first, second, "after")
        elif fate == "new":
            note = _why(after[key], before.get(key, ()), second, first, "before")
        out.append(FindingChange(key=key, fate=fate, before=a, after=b, note=note))
    return sorted(out, key=lambda f: (order[f.fate], f.key))


def _by_key(record: RunRecord, renamed: Mapping[str, str]) -> dict[str, list[Finding]]:
    out: dict[str, list[Finding]] = defaultdict(list)
    for finding in record.findings:
        model = renamed.get(finding.model, finding.model)
        out[waivers.key(dataclasses.replace(finding, model=model))].append(finding)
    return out


def _why(shown: Sequence[Finding], there: Sequence[Finding], own: Side, other: Side, name: str) -> str:
    """Why a finding of one run is not shown in the other."""
    if there:
        states = sorted({f.verdict.replace("_", " ") for f in there})
        return f"{', '.join(states)} in the run {name}"
    if shown[0].kind == "claim":
        return f"the run {name} made no such claim"
    keys = {own.exemplars[v] for f in shown for v in f.exemplars if v in own.exemplars}
    models = {f.model for f in shown}
    if len(other.record.models) == 1:
        models |= set(other.record.models)
    changed = list(_changed(other, keys, models, {shown[0].format, ""}))
    if not changed:
        return f"the run {name} did not judge these texts"
    return f"the run {name} judged {len(changed)} of these texts; the answer changed in {sum(changed)}"


def _changed(side: Side, keys: Iterable[int], models: Iterable[str], formats: Iterable[str]) -> Iterator[bool]:
    """Whether the answer changed, of each edited version with one of the keys."""
    for table, own in (side.drawn, side.directed):
        judged = table.judged()
        use = _edited(table, judged) & np.isin(own[judged.version], np.array(sorted(keys), dtype=np.uint64))
        for names, codes, column in ((models, table.models, judged.model), (formats, table.formats, judged.format)):
            use &= np.isin(column, [code for one in names if (code := codes.get(one)) is not None])
        yield from (judged.outcome[use] == VIOLATION).tolist()
