"""Tables of Local Law 144 for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.report import ll144
from auditor.report import ll144_summary as summary
from auditor.report.ll144 import Part, limits, p_value, rate
from auditor.report.page import Page


def text(record: Mapping[str, Any], *, width: int = 110, encoding: str = "utf-8") -> str:
    """Write the report for a terminal."""
    page = Page(width=width, encoding=encoding, color=False)
    page.line(ll144.heading(record), "bold")
    page.paragraph(ll144.banner(record), first="!! ", indent="   ")
    page.heading("Result")
    for found in ll144.results(record):
        page.paragraph(ll144.result_sentence(found), indent="  ")
    page.heading("What was computed")
    for name, value in ll144.facts(record):
        page.paragraph(value, first=f"{name}: ", indent="  ")
    for part in ll144.parts(record):
        _text_part(page, part, record)
    _text_sensitivity(page, record)
    if record["ll144"].get("published"):
        page.heading("Against the published ratios")
        page.paragraph(ll144.published_sentence(record))
        page.table([(title, False) for title in ll144.PUBLISHED], ll144.published_rows(record))
    if record["warnings"]:
        page.heading("Take note")
        for warning in record["warnings"]:
            page.paragraph(warning, first="! ", indent="  ")
    if record["kind"] != "ranking":
        page.heading("Draft of the published summary (6 RCNY 5-303)")
        for name, value in summary.fields(record):
            page.paragraph(value, first=f"{name}: ", indent="  ")
        page.paragraph("Number of people, rates and impact ratios of all categories: the tables above.")
    page.heading("What this is not")
    for sentence in ll144.NOT_THIS:
        page.paragraph(sentence, first="· ", indent="  ")
    return page.value()


def _text_part(page: Page, part: Part, record: Mapping[str, Any]) -> None:
    name = ll144.rate_name(record)
    for table, rows in part.tables.items():
        beside = bool(part.facts[table]["excluded_reference"])
        page.heading(f"{part.title + ': ' if part.title else ''}{ll144.TITLES[table]}")
        columns = [("Category", False), (name, True), ("Ratio", True), ("95 %", False), ("p", True)]
        columns += [
            ("p (Holm)", True),
            ("Z", True),
            *([("To left out", True)] if beside else []),
            ("", False),
        ]
        page.table(columns, (_text_row(row, beside) for row in rows))
        page.line()
        page.paragraph(ll144.table_note(part.facts[table], ll144.unit(record)))
        for row in rows:
            if row["excluded"]:
                page.paragraph(f"{row['category']}: {row['reason']}")
    if part.bounds:
        page.line()
        page.paragraph(ll144.bounds_sentence(part))
        page.table(
            [("Table", False), ("Category", False), ("Ratio could be", False)],
            (
                (ll144.TITLES[b["table"]], b["category"], f"{b['low_text']} … {b['high_text']}")
                for b in part.bounds
            ),
        )
    else:
        page.paragraph(f"No bounds for unknown people: {part.bounds_reason}.")


def _text_row(row: Mapping[str, Any], beside: bool) -> list[str]:
    z = "–" if row["z"] is None else f"{row['z']:.2f}"
    line = [row["category"], rate(row), row["impact_ratio_text"] or "–", limits(row)]
    line += [p_value(row["fisher_p"]), p_value(row["fisher_p_holm"]), z]
    line += [row["ratio_to_excluded_text"] or "–"] if beside else []
    told = ll144.marks(row) if row["impact_ratio_text"] or row["excluded"] else [row["reason"] or ""]
    return [*line, ", ".join(told)]


def _text_sensitivity(page: Page, record: Mapping[str, Any]) -> None:
    other = record["ll144"]["sensitivity"]
    if other is None:
        return
    page.heading("With the other median")
    page.paragraph(ll144.sensitivity_sentence(other))
    page.table(
        [("Category", False), ("Scoring rate", True), ("Ratio", True)],
        (
            (r["category"], rate(r), r["impact_ratio_text"] or "–")
            for r in _all_rows(other["tables"])
            if r["n"]
        ),
    )


def _all_rows(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterable[Mapping[str, Any]]:
    for name in ll144.TITLES:
        yield from tables[name]
