"""Tables that were shuffled, have gaps, or say things twice: claims follow what is said, and every row is counted."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.contrib.imports import inference, observe
from auditor.contrib.imports.answer_files import Source, Table
from auditor.contrib.imports.observe import Imported
from auditor.core.errors import DataFileError
from auditor.core.record.measured import Claim
from auditor.measure.findings import claims

Line = dict[str, str]
TEXTS = 7


def planted(seed: int) -> list[Line]:
    """Both groups of each text, an unchanged one and a placebo, each asked twice."""
    rng = Random(seed)
    rows = []
    for text in range(TEXTS):
        own = ("female", "male")[text % 2]
        other = ("male", "female")[text % 2]
        for arm, gender in (("original", own), ("edited", other), ("placebo", own)):
            for run in range(2):
                score = f"{50 + 4 * (gender == 'female') + rng.gauss(0, 2):.2f}"
                rows.append({"text_id": f"t{text}", "arm": arm, "gender": gender, "run": str(run), "score": score})
    return rows


def imported(rows: list[Line]) -> Imported:
    columns = {name: [row[name] or None for row in rows] for name in rows[0]}
    table = Table(columns=columns, sources=(Source(file="a.csv", sha256="", rows=len(rows)),))
    return observe.observe(table, inference.infer(table))


def net(found: Imported) -> Claim:
    return next(c for c in claims(found.table, found.question) if c.family == "net")


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 99), order=st.randoms(use_true_random=False), twice=st.sets(st.integers(0, 6 * TEXTS - 1)))
def test_order_and_repetition_change_nothing(seed: int, order: Random, twice: set[int]) -> None:
    rows = planted(seed)
    before, others = imported(rows), rows + [dict(rows[n]) for n in sorted(twice)]
    order.shuffle(others)
    after = imported(others)
    assert (after.counted.repeated, after.counted.contradictory) == (len(twice), 0)
    assert after.counted.used == before.counted.used == len(rows)
    first, again = net(before), net(after)
    assert (again.estimate, again.low, again.high) == pytest.approx((first.estimate, first.low, first.high))
    assert (again.verdict, again.texts, again.groups) == (first.verdict, first.texts, first.groups)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 99),
    gaps=st.sets(st.integers(0, 6 * TEXTS - 1)),
    other=st.sets(st.integers(0, 6 * TEXTS - 1)),
    nobody=st.sets(st.integers(0, 6 * TEXTS - 1)),
)
def test_every_row_is_counted_once(seed: int, gaps: set[int], other: set[int], nobody: set[int]) -> None:
    """Rows that are missing, that say something else of a replicate, and edited ones that name no group."""
    all_rows = planted(seed)
    for n in nobody:
        all_rows[n]["gender"] = ""
    rows = [row for n, row in enumerate(all_rows) if n not in gaps]
    rows += [dict(all_rows[n], score="1") for n in sorted(other - gaps)]
    if not rows:
        return
    edited = [row for row in rows if row["arm"] == "edited" and not row["gender"]]
    try:
        found = imported(rows)
    except DataFileError:
        assert len(edited) == len(rows)
        return
    counted = found.counted
    assert counted.rows == len(rows)
    assert counted.no_group == len(edited)
    assert counted.rows == counted.used + counted.no_group + counted.repeated + counted.contradictory
    assert counted.contradictory == sum(row not in edited for row in rows[len(rows) - len(other - gaps) :])
    both = {row["text_id"] for row in rows if row not in edited and row["arm"] == "edited"} & {
        row["text_id"] for row in rows if row["arm"] == "original"
    }
    made = [c for c in claims(found.table, found.question) if c.family == "net"]
    assert all(claim.texts <= len(both) for claim in made)
