"""The scores of two searches over rows side by side, as rates of `auditor.measure.comparison`.

Causal scores are compared on the rows that both runs judged, by their exact keys: one pair of "did the label change"
for each row, tested by McNemar's exact test, with Holm's correction over the scores that were tested. Elsewhere two
scores differ if their intervals do not overlap, which asks for more than a test does.

References
----------
Q. McNemar, Psychometrika 12 (1947); S. Holm, Scand. J. Statist. 6 (1979).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.core.record import RunRecord
from auditor.core.types import Estimate
from auditor.measure import comparison
from auditor.measure.intervals import difference_of_rates
from auditor.measure.p_values import mcnemar
from auditor.measure.run_changes import Change, Comparison, RateChange, Tested
from auditor.store.folder import RunFolder
from auditor.tables.finds import arrays
from auditor.tables.method_options import NOTE
from auditor.tables.tabular_record import NAMES

EXACT = "both exact"
PAIRED = "McNemar, exact, by row"
APART = "intervals that do not overlap"
JUDGED = "judged.npz"
PLACES = {("causal", "domain"): "domain", ("apparent_causal", "given rows"): "given"}  # whose verdicts are kept
SLICE = "tabular-slice"  # which slices are kept hangs on the others, so none of them is new or gone
Where = tuple[str, tuple[str, ...], str]  # a score: its name, columns and population
# Key of a row -> whether its label changes, and how often it stands there.
Verdicts = dict[bytes, tuple[bool, int]]


class Side(NamedTuple):
    """One run as the comparison reads it: its record, and by place whether the label of each row changes."""

    record: RunRecord
    judged: Mapping[str, Verdicts]


def read(path: Path) -> Side:
    """Read the folder of a search over rows."""
    record, kept = RunFolder.open(path).run(), arrays(path / JUDGED)
    return Side(record, {place: verdicts(kept, place) for place in PLACES.values() if f"{place}_codes" in kept})


def verdicts(kept: Mapping[str, NDArray[np.generic]], place: str) -> Verdicts:
    """Return by the key of a row whether its label changes, and how often it was drawn."""
    out: Verdicts = {}
    values = kept.get(f"{place}_values")
    changes = kept[f"{place}_changes"].tolist()
    for i, (row, change) in enumerate(zip(kept[f"{place}_codes"], changes, strict=True)):
        key = row.tobytes() + (b"" if values is None else values[i].tobytes())
        out[key] = (change, out[key][1] + 1 if key in out else 1)
    return out


def compare(first: Side, second: Side) -> Comparison:
    """Compare two runs; ``first`` is the one before."""
    same = first.record.rows.schema.sha256 == second.record.rows.schema.sha256
    notes = []
    if not same:
        notes.append(
            "the schemas are not the same, so no row of one run is known to be a row of the other: nothing is paired, "
            "and a score may differ because its rows do"
        )
    for name, side in (("before", first), ("after", second)):
        if side.record.rows.sampling == "directed":
            notes.append(
                f"the cases of the run {name} were searched for: their number hangs on the search and its length"
            )
    before, after = (comparison.Side(record=side.record) for side in (first, second))
    rates = _scores(first, second, same)
    return comparison.comparison_of(before, after, rates, notes=notes, without=SLICE, unit="row")


def _scores(first: Side, second: Side, same: bool) -> list[RateChange]:
    # The whole domain is one population, however it was looked at.
    before, after = (
        {(s.name, s.columns, s.population.partition(" (")[0]): s.estimate for s in side.record.rows.measured}
        for side in (first, second)
    )
    made = []
    for where in sorted(before.keys() | after.keys()):
        if where in before and where in after:
            tested = _score(where, before[where], after[where], first, second, same)
        else:
            tested = Tested(reason=f"measured only in the run {'after' if where in after else 'before'}")
        name, columns, population = where
        said = f"{NAMES.get(name, name + ' score')}, {population}"
        made.append(RateChange(model="", format=said, attributes=columns, **dataclasses.asdict(tested)))
    return comparison.corrected(made)


def _score(where: Where, a: Estimate, b: Estimate, first: Side, second: Side, same: bool) -> Tested:
    name, columns, population = where
    valid = not any(NOTE in e.note for e in (a, b))
    exact = all(e.method.startswith("enumeration") for e in (a, b))
    place = PLACES.get((name, population), "")
    whole = all(set(columns) == set(side.record.rows.schema.protected) for side in (first, second))
    if same and whole and not exact:
        pairs = _pairs(first.judged.get(place, {}), second.judged.get(place, {}))
        if any(pairs):
            return _paired(*pairs)
    difference = b.value - a.value
    change: Change = "unclear"
    if exact and not difference:
        change = "same"
    elif not valid:
        change = "untested"
    elif exact or a.high < b.low or b.high < a.low:
        change = "worse" if difference > 0 else "better"
    return Tested(
        change=change,
        test=EXACT if exact else APART if valid else "",
        reason="" if valid else NOTE,
        before=a.value,
        after=b.value,
        difference=difference,
        n_before=a.n,
        n_after=b.n,
    )


def _pairs(before: Verdicts, after: Verdicts) -> tuple[int, int, int, int]:
    """Rows that both runs judged: unchanged in both, changed before only, after only, in both."""
    rows = [0, 0, 0, 0]
    for key in before.keys() & after.keys():
        (x, n), (y, m) = before[key], after[key]
        rows[x + 2 * y] += min(n, m)
    return rows[0], rows[1], rows[2], rows[3]


def _paired(neither: int, only_before: int, only_after: int, both: int) -> Tested:
    n = neither + only_before + only_after + both
    groups = (both, only_before, only_after, neither)
    x, y = (np.repeat(changed, groups) for changed in ([1, 1, 0, 0], [1, 0, 1, 0]))
    difference, low, high = difference_of_rates(y, x, np.ones(n, dtype=np.int64))
    return Tested(
        test=PAIRED,
        before=(both + only_before) / n,
        after=(both + only_after) / n,
        difference=difference,
        low=low,
        high=high,
        p_value=mcnemar(only_before, only_after),
        n_before=n,
        n_after=n,
        only_before=only_before,
        only_after=only_after,
    )
