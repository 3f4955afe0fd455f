"""Which builder lays out which kind of run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from auditor.core.record import Plain, RunRecord, read
from auditor.report.document import Document


def document(record: Plain | RunRecord, evidence: Any = None) -> Document:
    """The report of a run, whatever its kind, with what people filled in.

    The record may be as `Renderer.render` gets it: as it stands in ``run.json``.
    """
    from auditor.report import compliance_fill, figures

    record = read(record)
    made = _own(record, evidence)
    more = (*figures.measured(record), *figures.chosen(record, evidence), *compliance_fill.sections(record))
    return replace(made, sections=(*made.sections, *more))


def _own(record: RunRecord, evidence: Any) -> Document:
    if record.tabular is not None:
        from auditor.report import tabular

        return tabular.build(record)
    if record.ll144 is not None:
        from auditor.report import ll144_report

        return ll144_report.build(record)
    from auditor.report import texts

    return texts.build(record, evidence)
