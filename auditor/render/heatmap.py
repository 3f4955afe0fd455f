"""Attributes against attributes, as a table whose cells carry their figures and are tinted by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from auditor.render import view, words

STEPS = 5  # tints; the style sheet has a class for each
KINDS = {"single": "alone", "joint": "together", "hidden": "hidden"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One square. ``text`` is its figure, ``detail`` what it rests on; ``step`` is the tint, 0 (none) to `STEPS`."""

    kind: str  # key of `KINDS`
    text: str
    detail: str
    step: int


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatMap:
    """One subject's square table: ``rows`` are (attribute, cells), one cell per name."""

    name: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    scale: tuple[str, ...]  # what each tint stands for, from 1 on


def build(shown: view.View) -> tuple[HeatMap, ...]:
    """Lay out one table per subject; none where no two attributes were changed together.

    Diagonal: rate of single changes; below it: rate of joint changes; above it: how many variants of the pair are
    hidden changes, and their share of the judged ones. The tint is the rate's part of the highest rate in the table.
    """
    made = (_table(shown, i) for i in range(len(shown.subjects)))
    return tuple(m for m in made if m is not None)


def _table(shown: view.View, column: int) -> HeatMap | None:
    cells = {r.attributes: r.cells[column] for r in shown.rows if 1 <= len(r.attributes) <= 2}
    names = tuple(sorted({a for key in cells for a in key}))
    if len(names) < 2 or not any(len(key) == 2 for key in cells):
        return None
    top = max((float(e["value"]) for c in cells.values() for e in (c.rate, c.hidden) if e), default=0.0)
    rows = []
    for i, down in enumerate(names):
        line = []
        for j, across in enumerate(names):
            kind = "single" if i == j else "joint" if j < i else "hidden"
            cell = cells.get((down,) if i == j else (min(down, across), max(down, across)))
            found = None if cell is None else cell.hidden if kind == "hidden" else cell.rate
            line.append(_cell(kind, found, top))
        rows.append((down, tuple(line)))
    ends = [words.percent(top * k / STEPS) for k in range(1, STEPS + 1)]
    return HeatMap(
        name=shown.subjects[column].name,
        names=names,
        rows=tuple(rows),
        scale=tuple(f"up to {end}" for end in ends) if top else (),
    )


def _cell(kind: str, found: Mapping[str, Any] | None, top: float) -> Cell:
    if found is None:
        return Cell(kind=kind, text="–", detail="not measured", step=0)
    value = float(found["value"])
    step = 0 if not top or not value else max(1, min(STEPS, -int(-STEPS * value / top // 1)))
    judged = found.get("n_variants")
    seeds = words.plural(int(found["n"]), "seed")
    if kind == "hidden" and judged is not None:
        count = round(value * int(judged))
        detail = f"{words.percent(value)} of {words.plural(int(judged), 'variant')}"
        return Cell(kind=kind, text=words.count(count), detail=detail, step=step)
    return Cell(kind=kind, text=words.percent(value), detail=seeds, step=step)
