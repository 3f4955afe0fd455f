"""Which builder lays out which kind of run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from auditor.core.errors import PluginError
from auditor.core.record import Plain, RunRecord, read
from auditor.report import words
from auditor.report.document import Document, Section, section, table


def document(record: Plain | RunRecord, evidence: object = None) -> Document:
    """The report of a run, whatever its kind, with what people filled in.

    The record may be as `Renderer.render` gets it: as it stands in ``run.json``.
    """
    from auditor.report import compliance_fill

    record = read(record)
    made = _own(record, evidence)
    more = (*measured(record), *chosen(record, evidence), *compliance_fill.sections(record))
    return replace(made, sections=(*made.sections, *more))


def _own(record: RunRecord, evidence: object) -> Document:
    if record.tabular is not None:
        from auditor.report import tabular_report

        return tabular_report.build(record)
    if record.ll144 is not None:
        from auditor.report import ll144_report

        return ll144_report.build(record)
    from auditor.report import texts

    return texts.build(record, evidence)


def measured(record: RunRecord) -> Iterator[Section]:
    """What the suite of a run measured by its own rule."""
    lines = []
    for row in record.figures or ():
        shown = [words.number(value, "+.3f") for value in (row.value, row.low, row.high)]
        between = f"{shown[1]} to {shown[2]}" if row.low is not None else "–"
        lines.append((row.figure, row.model, row.format, shown[0], between, str(row.cases), str(row.left_out)))
    columns = "Measure | Model | Format | #Mean | 95 % | #Cases | #Left out"
    meaning = {row.figure: f"{row.figure}: {row.what}" for row in record.figures or ()}
    if lines:
        means = table("Mean over cases, each of which counts once", columns, lines)
        title = f"What the suite {record.spec.suite} measures"
        yield section("figures", title, meaning.values(), means, short="Suite", brief=True)


def chosen(record: RunRecord, evidence: object) -> Iterator[Section]:
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
