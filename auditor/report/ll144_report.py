"""Recorded outcomes as documents: results with tables, and the summary to publish; and as a CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from auditor.core.record import RunRecord, head
from auditor.core.record.outcome_tables import Pool
from auditor.core.shown import csv_text
from auditor.report import charts, ll144_words, words
from auditor.report import document as doc
from auditor.report.ll144_words import TITLES

EMPTY = f"[{doc.TO_FILL}]"
CAPTIONS = {**TITLES, "intersectional": "Race/ethnicity and sex"}
CSV_COLUMNS = (
    "group", "table", "category", "n", "x", "rate", "impact_ratio", "impact_ratio_exact", "low", "high", "p_value",
    "p_adjusted", "z", "share", "below_four_fifths", "one_person_flip", "below_two_percent", "excluded",
    "justification", "reason",
)  # fmt: skip


def build(record: RunRecord) -> doc.Document:
    """Lay out a record of ``audit ll144``."""
    computed: list[doc.Block] = [doc.Facts("", ll144_words.facts(record), grid=True)]
    computed += [doc.Text("Take note", "heading"), doc.Items(tuple(record.warnings))] if record.warnings else []
    title = "Rates and impact ratios by category"
    if record.kind == "ranking":
        title = "First places in recorded rankings, by group (test data)"
    return doc.Document(
        title=title,
        sections=(
            replace(doc.section("result", "Result", finding(record)), whole=True),
            *(
                doc.Section(
                    id=f"part-{i + 1}", title=title or "Tables", blocks=tuple(_pool(record, title, pool, i)), whole=True
                )
                for i, (title, pool) in enumerate(ll144_words.pools(record))
            ),
            doc.section("computed", "What was computed", computed, short="Computed"),
            doc.section("unknown", "People of unknown category", _unknown(record), short="Unknown people"),
            *_sensitivity(record),
            *_published(record),
            *_draft(record),
            doc.section("how", "How", doc.Items(ll144_words.how(record))),
            doc.section("not", "What this is not", doc.Items(words.lines("ll144_not_this"))),
        ),
        footer=f"SHA-256 of the record (canonical JSON): {head(record.raw)}",
        inert=True,
    )


def finding(record: RunRecord) -> tuple[doc.Block, ...]:
    """Return what the tables show, then what they are not."""
    return doc.Items(tuple(ll144_words.sentences(record))), doc.Text(ll144_words.banner(record), "note")


def impact(record: RunRecord) -> Iterator[doc.Block]:
    """The tables of a record as part of another report."""
    for i, (title, pool) in enumerate(ll144_words.pools(record)):
        yield from [doc.Text(title, "heading")] if title else []
        yield from _pool(record, title, pool, i)
    yield from _unknown(record)
    yield doc.Items(ll144_words.how(record))


def _pool(record: RunRecord, title: str, pool: Pool, i: int) -> Iterator[doc.Block]:
    """Table and chart of each kind of category."""
    rate = ll144_words.rate_name(record)
    for name, rows, facts in ll144_words.tables(pool, TITLES):
        about = f"{TITLES[name]}{', ' + title if title else ''}"
        further = {"To left out": "ratio_to_excluded_text"} if facts.excluded_reference else {}
        further |= {"To larger": "ratio_to_steady_text"} if facts.steady_reference else {}
        numbers = (rate, "Ratio", "95 %", *further)
        lines = (
            (
                row.category,
                ll144_words.rate(row),
                row.impact_ratio_text or "–",
                doc.Cell(text=ll144_words.limits(row)),
                *(getattr(row, name) or "–" for name in further.values()),
                ll144_words.remarks(row),
            )
            for row in rows
            if row.n
        )
        columns, right = ("Category", *numbers, "Remarks"), [name for name in numbers if name != "95 %"]
        yield doc.table(f"{about}: {rate.lower()} and impact ratio", columns, lines, right=right)
        empty = [row.category for row in rows if not row.n]
        yield doc.Text(ll144_words.table_note(facts, ll144_words.unit(record), empty), "meta")
        drawn = charts.ratios(
            [(row, ll144_words.ratio(row)) for row in rows if row.impact_ratio is not None],
            name=f"dots-{i}-{name}",
            title=f"Impact ratios, {about}",
        )
        if drawn:
            yield doc.Chart(drawn, "As in the first chart." if i or name != "sex" else words.text("ll144_chart"))


def _unknown(record: RunRecord) -> Iterator[doc.Block]:
    """What people of unknown category could change, in each pool."""
    for title, pool in ll144_words.pools(record):
        place = f" ({title})" if title else ""
        if not pool.unknown_bounds:
            yield doc.Text(f"No bounds for people of unknown category{place}: {pool.unknown_bounds_reason}.")
            continue
        yield doc.Text(words.text("ll144_bounds").format(unknown=f"{pool.unknown_count:,}"))
        bounds = ((b.category, TITLES[b.table], b.reference, b.low_text, b.high_text) for b in pool.unknown_bounds)
        caption = f"Lowest and highest ratio that people of unknown category could make true{place}"
        yield doc.table(caption, "Category | Table | Against | #Lowest | #Highest", bounds)


def _sensitivity(record: RunRecord) -> Iterator[doc.Section]:
    if (other := record.outcomes.sensitivity) is not None:
        tables = [
            doc.table(
                f"{title}, with the other median",
                "Category | #Scoring rate | #Impact ratio",
                ((r.category, ll144_words.rate(r), r.impact_ratio_text or "–") for r in other.tables[name] if r.n),
            )
            for name, title in TITLES.items()
        ]
        yield doc.section(
            "other", "With the other median", ll144_words.sensitivity_sentence(other), tables, short="Median"
        )


def _published(record: RunRecord) -> Iterator[doc.Section]:
    if published := record.outcomes.published:
        lines = (
            (
                TITLES[row.table],
                row.category,
                row.published,
                row.computed or "–",
                f"{row.verdict}: {row.how}" if row.how else row.verdict,
            )
            for row in published.rows
        )
        columns = "Table | Category | Published | Computed | Comes out"
        rows = doc.table("Published impact ratios and those computed here", columns, lines)
        yield doc.Section(id="published", title="Against the published ratios", short="Published", blocks=(rows,))


# -- the summary ------------------------------------------------------------------------------------------


def _draft(record: RunRecord) -> Iterator[doc.Section]:
    if record.kind != "ranking":
        yield doc.section("summary", "Draft of the published summary", draft(record), short="Draft summary")


def draft(record: RunRecord) -> tuple[doc.Block, ...]:
    """The fields of the summary, with what is left out and where the tables stand."""
    left_out = (
        f"{row.category}: {row.n:,} people, rate {row.rate_text or '–'}; {row.justification}"
        for _, pool in ll144_words.pools(record)
        for _, rows, _ in ll144_words.tables(pool)
        for row in rows
        if row.excluded
    )
    pairs = (
        *fields(record),
        *(("Left out of the ratios (5-301(d))", text) for text in left_out),
        ("Tables", "Number of people, rates and impact ratios of all categories: as above."),
    )
    return doc.Text(words.text("ll144_summary")), doc.Facts("Fields of the summary", pairs)


def summary(record: RunRecord) -> doc.Document:
    """The sheet: what was not given is a field."""
    own, listed = _own(record), items(record)
    missing = [e.label for e in listed if e.value is None]
    parts = []
    for i, (title, pool) in enumerate(ll144_words.pools(record)):
        form = doc.form("Items of the rule", f"item-{i + 1}", (*listed, *_left_out(record, pool)))
        parts.append(doc.Section(id=f"part-{i + 1}", title=title or "Results", blocks=(form, *_sheets(record, pool))))
    return doc.Document(
        title="Summary of the results of the bias audit",
        meta=" · ".join(own[key] for key in ("tool", "employer") if own.get(key)),
        banners=(f"Not ready to publish. To be filled in: {'; '.join(missing)}.",) if missing else (),
        sections=tuple(parts),
        inert=True,
        bare=True,
    )


def _own(record: RunRecord) -> dict[str, str]:
    """What people filled in for this page."""
    return {} if record.responsible is None else record.responsible.pages.get("ll144", {})


def _left_out(record: RunRecord, pool: Pool) -> Iterator[doc.Entry]:
    """The categories that stand in no ratio (5-301(d))."""
    for _, rows, _ in ll144_words.tables(pool):
        for row in rows:
            if row.excluded:
                rate = f"{ll144_words.rate_name(record).lower()} {row.rate_text or '–'}"
                text = f"{row.category}: {row.n:,} applicants, {rate}. {row.justification}"
                yield doc.Entry("left_out", "Left out of the impact ratios", text)


def _sheets(record: RunRecord, pool: Pool) -> Iterator[doc.Table]:
    for name, rows, _ in ll144_words.tables(pool, TITLES):
        lines = (
            (
                row.category,
                f"{row.n:,}",
                row.rate_text or "–",
                row.impact_ratio_text or ("left out" if row.excluded else "–"),
            )
            for row in rows
        )
        columns = f"Category | #Applicants | #{ll144_words.rate_name(record)} | #Impact ratio"
        yield doc.table(CAPTIONS[name], columns, lines)


def items(record: RunRecord) -> tuple[doc.Entry, ...]:
    """What the rule asks for beside the tables; None where it was not given."""
    block = record.outcomes
    test = (
        doc.Entry("test_data_reason", "Why no historical data were used", block.test_data_reason),
        doc.Entry("test_data_generation", "How the test data were made and obtained", block.test_data_generation),
    )
    unknown = f"{block.unknown_count:,} people with an unknown sex or race/ethnicity are not included"
    if block.partly_known:
        unknown += " in the intersectional table; who has one known attribute is in the table of that one"
    return (
        doc.Entry("audit_date", "Date of the bias audit", block.audit_date),
        doc.Entry("distribution_date", "Distribution date", block.distribution_date),
        doc.Entry("source", "Source and explanation of the data", record.data.source),
        doc.Entry("data_kind", "Historical or test data", f"{block.data_kind} data" if block.data_kind else None),
        *(test if block.data_kind == "test" else ()),
        doc.Entry("unknown", "Unknown category", f"{unknown}."),
    )


def fields(record: RunRecord) -> list[tuple[str, str]]:
    """The fields of the draft, with those of the auditor; what was not given is said to be missing."""
    own = _own(record)
    auditor = (("Independent auditor", "auditor"), ("Statement of independence", "independence"))
    filled = [(label, own.get(key) or EMPTY) for label, key in auditor]
    return [*filled, *((e.label, e.value or EMPTY) for e in items(record))]


def to_csv(record: RunRecord) -> str:
    """One line for each category of each table; shares in [0, 1], texts safe for spreadsheets."""
    lines: list[list[object]] = [list(CSV_COLUMNS)]
    for title, pool in ll144_words.pools(record):
        for name, rows, _ in ll144_words.tables(pool):
            for row in rows:
                low, high = row.interval or (None, None)
                own = {"group": title, "table": name, "low": low, "high": high, "below_four_fifths": row.alarm}
                own |= {"p_value": row.fisher_p, "p_adjusted": row.fisher_p_holm}
                values = msgspec.structs.asdict(row) | own
                lines.append([values[key] for key in CSV_COLUMNS])
    return csv_text(lines, newlines=False)
