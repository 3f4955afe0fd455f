"""Which builder lays out which kind of run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from auditor.report.document import Document


def document(record: Mapping[str, Any], evidence: Any = None) -> Document:
    """The report of a run, whatever its kind, with what people filled in."""
    from auditor.report import compliance_fill, figures

    made = _own(record, evidence)
    more = (*figures.measured(record), *figures.chosen(record, evidence), *compliance_fill.sections(record))
    return replace(made, sections=(*made.sections, *more))


def _own(record: Mapping[str, Any], evidence: Any) -> Document:
    if (record.get("spec") or {}).get("kind") == "tabular":
        from auditor.report import tabular

        return tabular.build(record)
    if "ll144" in record:
        from auditor.report import ll144_report

        return ll144_report.build(record)
    from auditor.report import texts

    return texts.build(record, evidence)
