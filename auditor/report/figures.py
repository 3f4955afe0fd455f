"""The measures that a suite brought, and the sections of other packages that were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from auditor.core.errors import PluginError
from auditor.core.record import RunRecord
from auditor.core.record.parts import SuiteFigure
from auditor.report.document import Section, Table, Text


def measured(record: RunRecord) -> Iterator[Section]:
    """What the suite of a run measured by its own rule."""
    rows = record.figures
    if not rows:
        return
    told = {row.figure: row.what for row in rows}
    yield Section(
        id="figures",
        title=f"What the suite {record.spec.suite} measures",
        short="Suite",
        blocks=(
            *(Text(f"{name}: {what}") for name, what in told.items()),
            Table(
                caption="Mean over cases, each of which counts once",
                columns=("Measure", "Model", "Format", "Mean", "95 %", "Cases", "Left out"),
                lines=tuple(_line(row) for row in rows),
                right=frozenset(("Mean", "Cases", "Left out")),
            ),
        ),
        brief=True,
    )


def _line(row: SuiteFigure) -> tuple[str, ...]:
    shown = [f"{value:+.3f}" if value is not None else "–" for value in (row.value, row.low, row.high)]
    between = f"{shown[1]} to {shown[2]}" if row.low is not None else "–"
    return (
        row.figure,
        row.model,
        row.format,
        shown[0],
        between,
        str(row.cases),
        str(row.left_out),
    )


def chosen(record: RunRecord, evidence: Any) -> Iterator[Section]:
    """The sections that ``audit report --section`` names.

    Raises
    ------
    PluginError
        A plug-in built something else than a section.
    """
    from auditor.core.registry import SECTIONS

    for name in record.sections:
        made = SECTIONS.create(name).build(record.raw, evidence)
        if made is not None and not isinstance(made, Section):
            raise PluginError(f"section {name!r} built a {type(made).__name__} and no Section")
        if made is not None:
            yield made
