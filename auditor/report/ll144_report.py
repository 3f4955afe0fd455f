"""Recorded outcomes as documents: results with tables, the summary to publish, two of them side by side, a CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from auditor.core.provenance import head
from auditor.core.record import RunRecord
from auditor.core.shown import csv_text
from auditor.measure.compared import TablesComparison
from auditor.report import ll144, prose, words
from auditor.report.document import (
    TO_FILL,
    Block,
    Cell,
    Chart,
    Document,
    Entry,
    Facts,
    Form,
    Items,
    Section,
    Table,
    Text,
    beside,
    noted,
)
from auditor.report.ll144 import dots


def build(record: RunRecord) -> Document:
    """Lay out a record of ``audit ll144``."""
    computed: list[Block] = [Facts("", tuple(ll144.facts(record)), grid=True)]
    if record.warnings:
        computed += [Text("Take note", "heading"), Items(tuple(record.warnings))]
    found = [
        Section(id="result", title="Result", short="Result", blocks=(Items(tuple(sentences(record))),)),
        Section(id="computed", title="What was computed", short="Computed", blocks=tuple(computed)),
    ]
    for i, part in enumerate(ll144.parts(record)):
        title = part.title or "Tables"
        found.append(Section(id=f"part-{i + 1}", title=title, short=title, blocks=_part_blocks(record, part, i)))
    found += [*_sensitivity(record), *_published(record), *_draft(record)]
    for id, title, told in (
        ("how", "How", ll144.how(record)),
        ("not", "What this is not", prose.lines("ll144_not_this")),
    ):
        found.append(Section(id=id, title=title, short=title, blocks=(Items(tuple(told)),)))
    return Document(
        title=ll144.heading(record),
        name="",
        meta="",
        banners=(ll144.banner(record),),
        first=None,
        sections=tuple(found),
        footer=f"SHA-256 of the record (canonical JSON): {head(record.raw)}",
        inert=True,
    )


def sentences(record: RunRecord) -> list[str]:
    """What each table comes to, in a sentence or two; how many published ratios come out."""
    published = [ll144.published_sentence(record)] if record.outcomes.published else []
    return [*(ll144.result_sentence(found) for found in ll144.results(record)), *published]


def impact(record: RunRecord) -> tuple[Block, ...]:
    """The tables of a record as part of another report."""
    blocks: list[Block] = []
    for i, part in enumerate(ll144.parts(record)):
        blocks += [Text(part.title, "heading")] if part.title else []
        blocks += _part_blocks(record, part, i)
    return (*blocks, Items(tuple(ll144.how(record))))


CHART = (
    "Mark: impact ratio. Line: its 95 % interval. Triangle: below four-fifths of the highest rate, p (Holm) at most "
    "0.05; circle: any other. Dashed: 0.80, a rule of thumb of 29 CFR 1607.4(D), not of Local Law 144. An arrow: the "
    "interval goes on."
)


def _part_blocks(record: RunRecord, part: ll144.Part, i: int) -> tuple[Block, ...]:
    """Chart and table of each kind of category, then what people of unknown category could change."""
    blocks: list[Block] = []
    for name, title in ll144.TITLES.items():
        about = f"{title}{', ' + part.title if part.title else ''}"
        blocks.append(Text(title, "heading"))
        if drawn := dots(part.tables[name], name=f"dots-{i}-{name}", title=f"Impact ratios, {about}"):
            blocks.append(Chart(drawn, "As in the first chart." if i or name != "sex" else CHART))
        blocks += [
            _table(record, part, name, about),
            Text(ll144.table_note(part.facts[name], ll144.unit(record)), "meta"),
        ]
    if not part.bounds:
        return (*blocks, Text(f"No bounds for people of unknown category: {part.bounds_reason}."))
    bounds = Table(
        caption="Lowest and highest ratio that people of unknown category could make true",
        columns=("Category", "Table", "Against", "Lowest", "Highest"),
        lines=tuple((b.category, ll144.TITLES[b.table], b.reference, b.low_text, b.high_text) for b in part.bounds),
        right=frozenset({"Lowest", "Highest"}),
    )
    return (*blocks, Text("People of unknown category", "heading"), Text(ll144.bounds_sentence(part)), bounds)


def _table(record: RunRecord, part: ll144.Part, name: str, about: str) -> Table:
    beside = bool(part.facts[name].excluded_reference)
    numbers = (ll144.rate_name(record), "Ratio", "95 %", *(("To left out",) if beside else ()), "p", "p (Holm)", "Z")
    lines = tuple(
        (
            row.category,
            ll144.rate(row),
            row.impact_ratio_text or "–",
            Cell(text=ll144.limits(row)),
            *((row.ratio_to_excluded_text or "–",) if beside else ()),
            ll144.p_value(row.fisher_p),
            ll144.p_value(row.fisher_p_holm),
            "–" if row.z is None else f"{row.z:.2f}",
            ll144.remarks(row),
        )
        for row in part.tables[name]
    )
    return Table(
        caption=f"{ll144.rate_name(record)} and impact ratio: {about}",
        columns=("Category", *numbers, "Remarks"),
        lines=lines,
        right=frozenset(numbers) - {"95 %"},
    )


def _sensitivity(record: RunRecord) -> Iterable[Section]:
    if (other := record.outcomes.sensitivity) is not None:
        columns = ("Category", "Scoring rate", "Impact ratio")
        tables = [
            Table(
                caption=f"{title}, with the other median",
                columns=columns,
                lines=tuple((r.category, ll144.rate(r), r.impact_ratio_text or "–") for r in other.tables[name] if r.n),
                right=frozenset(columns[1:]),
            )
            for name, title in ll144.TITLES.items()
        ]
        title = "With the other median"
        yield Section(
            id="other", title=title, short="Median", blocks=noted([ll144.sensitivity_sentence(other)], tables)
        )


def _published(record: RunRecord) -> Iterable[Section]:
    if published := record.outcomes.published:
        lines = tuple(
            (
                ll144.TITLES[row.table],
                row.category,
                row.published,
                row.computed or "–",
                f"{row.verdict}: {row.how}" if row.how else row.verdict,
            )
            for row in published.rows
        )
        table = Table(
            caption="Published impact ratios and those computed here",
            columns=("Table", "Category", "Published", "Computed", "Comes out"),
            lines=lines,
        )
        title = "Against the published ratios"
        yield Section(id="published", title=title, short="Published", blocks=(table,))


def _draft(record: RunRecord) -> Iterable[Section]:
    if record.kind != "ranking":
        title = "Draft of the published summary"
        yield Section(id="summary", title=title, short="Draft summary", blocks=draft(record))


def draft(record: RunRecord) -> tuple[Block, ...]:
    """The fields of the summary, with what is left out and where the tables stand."""
    pairs = [*fields(record)]
    for row in ll144.excluded(record):
        told = f"{row.category}: {row.n:,} people, rate {row.rate_text or '–'}; {row.justification}"
        pairs.append(("Left out of the ratios (5-301(d))", told))
    pairs.append(("Tables", "Number of people, rates and impact ratios of all categories: as above."))
    note = (
        "After 6 RCNY 5-303. Fields in square brackets are for the people responsible; nothing is filled in for them."
    )
    return Text(note), Facts("Fields of the summary", tuple(pairs))


EMPTY = f"[{TO_FILL}]"
KIND = "Historical or test data"
CAPTIONS = {"sex": "Sex", "race_ethnicity": "Race/ethnicity", "intersectional": "Race/ethnicity and sex"}


def summary(record: RunRecord) -> Document:
    """The sheet: what was not given is a field."""
    own = _own(record)
    listed = items(record)
    missing = [e.label for e in listed if e.value is None]
    told = f"Not ready to publish. To be filled in: {'; '.join(missing)}."
    found = []
    for i, part in enumerate(ll144.parts(record)):
        form = Form("Items of the rule", f"item-{i + 1}", (*listed, *_left_out(record, part)))
        title, tables = part.title or "Results", (_sheet(record, part, name) for name in ll144.TITLES)
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


def _sheet(record: RunRecord, part: ll144.Part, name: str) -> Table:
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
            Entry("test_data_generation", "How the test data were made and obtained", block.test_data_generation),
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


CSV_COLUMNS = (
    "group", "table", "category", "n", "x", "rate", "impact_ratio", "impact_ratio_exact", "low", "high", "p_value",
    "p_adjusted", "z", "share", "below_four_fifths", "one_person_flip", "below_two_percent", "excluded",
    "justification", "reason",
)  # fmt: skip
COMPARED = ("Category", "Before", "After", "Ratio before", "after", "p", "p (Holm)")
MEANING = (
    "p: Fisher's exact test of the two rates of a category, adjusted for all categories here (Holm). It takes the "
    "people of the two for different people. A ratio may change because the rate of the category did, or that of "
    "the reference."
)


def to_csv(record: RunRecord) -> str:
    """One line for each category of each table; shares in [0, 1], texts safe for spreadsheets."""
    lines: list[list[object]] = [list(CSV_COLUMNS)]
    for part in ll144.parts(record):
        for name, rows in part.tables.items():
            for row in rows:
                low, high = row.interval or (None, None)
                own = {"group": part.title, "table": name, "low": low, "high": high}
                own |= {"p_value": row.fisher_p, "p_adjusted": row.fisher_p_holm}
                told = own | msgspec.structs.asdict(row)
                lines.append([told[key] for key in CSV_COLUMNS])
    return csv_text(lines, newlines=False)


def compared(compared: TablesComparison) -> Document:
    """Lay the comparison out."""
    sections = [
        Section(
            id=f"tables-{n}",
            title=title,
            short=title,
            blocks=noted(
                [] if n else [MEANING],
                [Table(caption=title, columns=COMPARED, lines=tuple(map(tuple, rows)), right=frozenset(COMPARED[1:]))],
            ),
        )
        for n, (title, rows) in enumerate(_compared(compared))
    ]
    return beside(compared, "", sections, what="Tables")


def _compared(compared: TablesComparison) -> list[tuple[str, list[Sequence[str]]]]:
    found: dict[str, list[Sequence[str]]] = {}
    for row in compared.rows:
        name = ll144.TITLES[row.table]
        title = f"{row.group}: {name}" if row.group else name
        found.setdefault(title, []).append(
            (
                row.category,
                _share_of(row.n_before, row.x_before, row.rate_before),
                _share_of(row.n_after, row.x_after, row.rate_after),
                row.ratio_text_before or "–",
                row.ratio_text_after or "–",
                ll144.p_value(row.p_value),
                ll144.p_value(row.p_adjusted),
            )
        )
    return list(found.items())


def _share_of(n: int | None, x: int | None, share: float | None) -> str:
    if n is None:
        return "nobody"
    counts = f"({words.count(x)}/{words.count(n)})"
    return counts if share is None else f"{words.percent(share)} {counts}"
