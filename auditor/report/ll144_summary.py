"""The summary that 6 RCNY 5-303 has published: its items and nothing else, one page for each set of tables."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.core.record import RunRecord
from auditor.report import ll144
from auditor.report.document import TO_FILL, Document, Entry, Form, Section, Table

EMPTY = f"[{TO_FILL}]"
KIND = "Historical or test data"
CAPTIONS = {"sex": "Sex", "race_ethnicity": "Race/ethnicity", "intersectional": "Race/ethnicity and sex"}


def build(record: RunRecord) -> Document:
    """The sheet: what was not given is a field."""
    own = _own(record)
    listed = items(record)
    missing = [e.label for e in listed if e.value is None]
    told = f"Not ready to publish. To be filled in: {'; '.join(missing)}."
    found = []
    for i, part in enumerate(ll144.parts(record)):
        form = Form("Items of the rule", f"item-{i + 1}", (*listed, *_left_out(record, part)))
        title, tables = part.title or "Results", (_table(record, part, name) for name in ll144.TITLES)
        found.append(Section(id=f"part-{i + 1}", title=title, short=title, blocks=(form, *tables)))
    return Document(
        title="Summary of the results of the bias audit",
        name="",
        meta=" · ".join(own[key] for key in ("tool", "employer") if own.get(key)),
        banners=(told,) if missing else (),
        first=None,
        sections=tuple(found),
        inert=True,
        bare=True,
    )


def _own(record: RunRecord) -> dict[str, str]:
    """What people filled in for this page."""
    return {} if record.responsible is None else record.responsible.pages.get("ll144", {})


def _left_out(record: RunRecord, part: ll144.Part) -> Iterable[Entry]:
    """The categories that stand in no ratio (5-301(d))."""
    for rows in part.tables.values():
        for row in rows:
            if row.excluded:
                rate = f"{ll144.rate_name(record).lower()} {row.rate_text or '–'}"
                told = f"{row.category}: {row.n:,} applicants, {rate}. {row.justification}"
                yield Entry("left_out", "Left out of the impact ratios", told)


def _table(record: RunRecord, part: ll144.Part, name: str) -> Table:
    columns = ("Category", "Applicants", ll144.rate_name(record), "Impact ratio")
    lines = tuple(
        (
            row.category,
            f"{row.n:,}",
            row.rate_text or "–",
            row.impact_ratio_text or ("left out" if row.excluded else "–"),
        )
        for row in part.tables[name]
    )
    return Table(caption=CAPTIONS[name], columns=columns, lines=lines, right=frozenset(columns[1:]))


def items(record: RunRecord) -> tuple[Entry, ...]:
    """What the rule asks for beside the tables; None where it was not given."""
    block, data = record.outcomes, record.data
    found = [
        Entry("audit_date", "Date of the bias audit", block.audit_date),
        Entry("distribution_date", "Distribution date", block.distribution_date),
        Entry("source", "Source and explanation of the data", data.source),
        Entry("data_kind", KIND, f"{block.data_kind} data" if block.data_kind else None),
    ]
    if block.data_kind == "test":
        found += [
            Entry("test_data_reason", "Why no historical data were used", block.test_data_reason),
            Entry(
                "test_data_generation",
                "How the test data were made and obtained",
                block.test_data_generation,
            ),
        ]
    unknown = f"{block.unknown_count:,} people with an unknown sex or race/ethnicity are not included"
    if block.partly_known:
        unknown += " in the intersectional table; who has one known attribute is in the table of that one"
    return (*found, Entry("unknown", "Unknown category", unknown + "."))


def fields(record: RunRecord) -> list[tuple[str, str]]:
    """The fields of the draft, with those of the auditor; what was not given is said to be missing."""
    given = _own(record)
    auditor = [
        ("Independent auditor", given.get("auditor") or EMPTY),
        ("Statement of independence", given.get("independence") or EMPTY),
    ]
    return [*auditor, *((e.label, e.value or EMPTY) for e in items(record))]
