"""A table of observations from verdicts, for tests of what is computed from one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from auditor.core.record import read
from auditor.core.types import Edit, Verdict
from auditor.measure.comparison import Side
from auditor.measure.observations import Arm, Direction, Observations, Shape
from auditor.store.journal import short


def shape(
    attributes: tuple[str, ...],
    *directions: Direction,
    arm: Arm = Arm.EDITED,
    kind: str = "swap",
    words: Iterable[str] = (),
) -> Shape:
    """The shape of a version whose edits put ``words`` in."""
    steps, put = tuple(sorted(directions)), tuple(sorted(words))
    return Shape(
        arm=arm, attributes=attributes, directions=steps, words_out=(), words_in=put, spans=len(attributes),
        more_words=0, more_chars=0, kind=kind,
    )  # fmt: skip


def edit(source: str, target: str, groups: tuple[str, str] = ("male", "female"), at: int = 0, **more: Any) -> Edit:
    """A word of a text in place of another; if not told otherwise, a swap of gender."""
    told = {"attribute": "gender", "kind": "swap", "where": (at, at + len(source))} | more
    return Edit(source=source, target=target, source_group=groups[0], target_group=groups[1], **told)


def swap(attribute: str, target: str, at: int) -> Edit:
    """One letter of a text in place of another."""
    return edit("x", target, ("a", "b"), attribute=attribute, at=at)


def table_of(verdicts: Iterable[Verdict], shapes: Mapping[str, Shape] | None = None) -> Observations:
    """A table with what an oracle said of the variants; one without a shape (by its id) gets the plainest one."""
    known, table = shapes or {}, Observations()
    rows: dict[str, int] = {}
    for v in verdicts:
        if v.variant_id not in rows:
            plain = shape(v.attributes, arm=Arm.EDITED if v.order else Arm.PLACEBO)
            rows[v.variant_id] = table.shape(v.case_id, known.get(v.variant_id, plain), v.variant_id)
        table.judge(rows[v.variant_id], v)
    return table


def side(verdicts: Iterable[Verdict], record: Mapping[str, object], prefix: str = "") -> Side:
    """One side of a comparison: variants of two runs are the same where their ids and prefixes are."""
    table = table_of(verdicts)
    rows = range(len(table.columns().version_text))
    keys = np.array([short(prefix + table.name(row)) for row in rows], dtype=np.uint64)
    return Side(read(record), table, keys)
