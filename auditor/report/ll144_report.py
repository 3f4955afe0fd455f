"""The report of recorded outcomes as a document: results, tables, the draft of the published summary."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.core.provenance import head
from auditor.core.record import RunRecord
from auditor.report import ll144
from auditor.report import ll144_summary as summary
from auditor.report.document import Block, Cell, Chart, Document, Facts, Items, Section, Table, Text, noted
from auditor.report.ll144_chart import dots


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
        found.append(
            Section(id=f"part-{i + 1}", title=title, short=title, blocks=_part_blocks(record, part, i))
        )
    found += [*_sensitivity(record), *_published(record), *_draft(record)]
    for id, title, told in (("how", "How", ll144.how(record)), ("not", "What this is not", ll144.NOT_THIS)):
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
        lines=tuple(
            (b.category, ll144.TITLES[b.table], b.reference, b.low_text, b.high_text) for b in part.bounds
        ),
        right=frozenset({"Lowest", "Highest"}),
    )
    return (*blocks, Text("People of unknown category", "heading"), Text(ll144.bounds_sentence(part)), bounds)


def _table(record: RunRecord, part: ll144.Part, name: str, about: str) -> Table:
    beside = bool(part.facts[name].excluded_reference)
    numbers = (
        ll144.rate_name(record),
        "Ratio",
        "95 %",
        *(("To left out",) if beside else ()),
        "p",
        "p (Holm)",
        "Z",
    )
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
                lines=tuple(
                    (r.category, ll144.rate(r), r.impact_ratio_text or "–") for r in other.tables[name] if r.n
                ),
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
    pairs = [*summary.fields(record)]
    for row in ll144.excluded(record):
        told = f"{row.category}: {row.n:,} people, rate {row.rate_text or '–'}; {row.justification}"
        pairs.append(("Left out of the ratios (5-301(d))", told))
    pairs.append(("Tables", "Number of people, rates and impact ratios of all categories: as above."))
    note = (
        "After 6 RCNY 5-303. Fields in square brackets are for the people responsible; nothing is filled in for "
        "them."
    )
    return Text(note), Facts("Fields of the summary", tuple(pairs))
