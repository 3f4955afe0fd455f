"""The summary that 6 RCNY 5-303 has published: its items and nothing else, one page for each set of tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from auditor.report.compliance_fill import TO_FILL, Entry

if TYPE_CHECKING:
    from jinja2 import Template

Data = Mapping[str, Any]
EMPTY = f"[{TO_FILL}]"
KIND = "Historical or test data"


class Ll144Summary:
    """``--format ll144-summary``: one HTML page to print or to publish, with fields for what was not given."""

    name, suffix = "ll144-summary.v1", ".ll144-summary.html"

    def render(self, record: Data, evidence: Any = None) -> str:
        """Write the page.

        Raises
        ------
        ConfigError
            The run holds no outcomes of people, or they are rankings of made-up applications.
        """
        from auditor.report import compliance, ll144

        found = compliance.people(record, evidence, "ll144-summary")
        own = ((found.get("responsible") or {}).get("pages") or {}).get("ll144") or {}
        listed = items(found)
        return _template().render(
            record=found,
            items=listed,
            missing=[e.label for e in listed if e.value is None],
            parts=ll144.parts(found),
            about=[own[key] for key in ("tool", "employer") if own.get(key)],
            left_out=[
                row
                for part in ll144.parts(found)
                for rows in part.tables.values()
                for row in rows
                if row["excluded"]
            ],
            version=found["tool"]["version"],
        )


def items(record: Data) -> tuple[Entry, ...]:
    """What the rule asks for beside the tables; None where it was not given."""
    block, data = record["ll144"], record["data"]
    found = [
        Entry("audit_date", "Date of the bias audit", block["audit_date"]),
        Entry("distribution_date", "Distribution date", block["distribution_date"]),
        Entry("source", "Source and explanation of the data", data["source"]),
        Entry("data_kind", KIND, f"{block['data_kind']} data" if block["data_kind"] else None),
    ]
    if block["data_kind"] == "test":
        found += [
            Entry("test_data_reason", "Why no historical data were used", block["test_data_reason"]),
            Entry(
                "test_data_generation",
                "How the test data were made and obtained",
                block["test_data_generation"],
            ),
        ]
    unknown = f"{block['unknown_count']:,} people with an unknown sex or race/ethnicity are not included"
    if block["partly_known"]:
        unknown += " in the intersectional table; who has one known attribute is in the table of that one"
    return (*found, Entry("unknown", "Unknown category", unknown + "."))


def fields(record: Data) -> list[tuple[str, str]]:
    """The fields of the draft, with those of the auditor; what was not given is said to be missing."""
    given = ((record.get("responsible") or {}).get("pages") or {}).get("ll144") or {}
    auditor = [
        ("Independent auditor", given.get("auditor") or EMPTY),
        ("Statement of independence", given.get("independence") or EMPTY),
    ]
    return [*auditor, *((e.label, e.value or EMPTY) for e in items(record))]


@cache
def _template() -> Template:
    from auditor.report import html, ll144

    environment = html._environment()
    environment.globals |= {"ll": ll144, "to_fill": TO_FILL}
    return environment.get_template("ll144-summary.html.j2")
