"""The report of a search over rows, from the run record alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import asdict

from auditor.core.provenance import head
from auditor.core.record import Counts, RunRecord
from auditor.core.record.rows import GroupRate, RowPair, Score, Tabular
from auditor.report import exchange, finding, prose, words
from auditor.report import sections as further
from auditor.report.document import Block, Cell, Commands, Document, Findings, Items, Section, Table, Text, facts, noted
from auditor.report.tabular_tables import answers_line, sections

TITLES = {"themis": "Themis", "aequitas": "Aequitas", "sg": "SG"}
SCORES = {
    "causal": "Causal score",
    "group": "Group score",
    "apparent_causal": "Apparent causal score",
    "apparent_group": "Apparent group score",
    "discriminatory_share": "Share of discriminatory cases",
}
PAIRS = "Pairs that differ in protected columns only"
MAX_PAIRS = 10
LATTICE_FINDS = (
    "Rows of the cases that the search found, so every one of them changes with some set: the shares compare the sets, "
    "and are no rates."
)
LATTICE_FIRST = "The first cases that were judged (4,096 at most), one row for every combination of protected values."
ROWS = {  # what a population is called in a sentence
    "domain (uniform)": "rows drawn uniformly from the domain",
    "domain (all rows)": "rows, all that the domain has",
    "given rows": "given rows",
    "profile": "rows drawn from the profile",
}


def build(record: RunRecord) -> Document:
    """Lay out a run over rows: summary, scores, sets of columns, pairs, what the method adds, method, provenance."""
    section = record.rows
    protected = list(section.varied)
    banners = []
    if record.status != "complete":
        banners.append(f"Incomplete: {record.status_reason}")
    if section.sampling == "directed":
        banners.append("Cases were searched for; their number is not a rate.")
    started = record.provenance.started
    return Document(
        title=f"Tabular search: {TITLES.get(section.method, section.method)}",
        name=f"Run {record.id or '–'}",
        meta=f"status: {record.status} · {started} · version {record.tool_version} · {exchange.summary(record)}",
        banners=tuple(banners),
        first=None,
        sections=(
            _answer(record, section, protected),
            *_scores(record, section),
            *_lattice(section),
            *_findings(record),
            *_pairs(section),
            *sections(section),
            *further.build(record),
            *_next(record),
            _method(record, section),
            _provenance(record, section),
        ),
        footer=f"SHA-256 of the record (canonical JSON): {head(record.raw)}",
    )


def _answer(record: RunRecord, section: Tabular, protected: list[str]) -> Section:
    lead = (
        f"Rows of {section.schema.name} were given to {record.spec.model}; only "
        f"{words.listing(protected or ['the columns'])} changed, all else stayed as it was. "
        f"A case is everything else in a row."
    )
    told = _summary(section, section.counts, protected)
    blocks: tuple[Block, ...] = (Text(lead, "lead"), Items(tuple(told)))
    return Section(id="summary", title="Answer", short="Answer", blocks=blocks, brief=True)


def _scores(record: RunRecord, section: Tabular) -> list[Section]:
    scores = section.measured
    if not scores:
        return []
    meaning = prose.named("rows_scores")
    lines = []
    told = []
    for s in scores:
        name, verdict = SCORES.get(s.name, s.name), _verdict(record, s)
        mark = words.verdict(verdict)
        lines.append(
            (
                Cell(text=name, sub=s.population),
                ", ".join(s.columns),
                words.rate_text(s.estimate),
                f"{s.estimate.n:,}",
                s.estimate.method,
                Cell(text="", mark=mark, kind=verdict),
            )
        )
        detail = "; ".join(t for t in (meaning.get(s.name, ""), _detail(s), s.estimate.note) if t)
        told.append(f"{name}, {s.population}: {detail}.")
    table = Table(
        caption="Each score with its interval, the rows behind it, and how it was obtained",
        columns=("Score", "Columns", "Value", "Rows", "Interval by", "Verdict"),
        lines=tuple(lines),
        right=frozenset({"Rows"}),
    )
    title = "Minimal sets" if section.mode == "search" else "Scores"
    return [Section(id="scores", title=title, short=title, blocks=(table, Items(tuple(told))), brief=True)]


def _findings(record: RunRecord) -> list[Section]:
    rows = tuple(exchange.rows(record))
    if not rows:
        return []
    block = Findings(f"{words.plural(len(rows), 'finding')}, in a sentence each", rows)
    return [Section(id="findings", title="Findings", short="Findings", blocks=(block,), brief=True)]


def _lattice(section: Tabular) -> list[Section]:
    if not section.lattice:
        return []
    columns = ("Changed together", "Rows looked at", "Label changes", "Share", "No smaller set does")
    lines = tuple(
        (
            " + ".join(s.columns),
            f"{s.rows:,}",
            f"{s.changes:,}",
            words.percent(s.changes / s.rows if s.rows else None),
            f"{s.minimal:,}",
        )
        for s in section.lattice
    )
    caption = (
        "Rows whose label changes when a set of columns changes, and those that no smaller set changes (hidden, for "
        "two and more)"
    )
    table = Table(caption=caption, columns=columns, lines=lines, right=frozenset(columns[1:]))
    note = LATTICE_FINDS if section.sampling == "directed" else LATTICE_FIRST
    return [Section(id="lattice", title="Sets of protected columns", short="Sets", blocks=(table, Text(note)))]


def _pairs(section: Tabular) -> list[Section]:
    lines = tuple(map(pair, _varied(section.pairs)))
    if not lines:
        return []
    table = Table(
        caption="No smaller change of the protected columns changes the label of the first row",
        columns=("Changed", "Label", "The same in both rows"),
        lines=lines[:MAX_PAIRS],
        more=lines[MAX_PAIRS:],
        left=("further pair", "further pairs"),
    )
    return [Section(id="pairs", title=PAIRS, short="Pairs", blocks=(table,))]


def _next(record: RunRecord) -> list[Section]:
    """What to look at: the first finding that was shown."""
    run, first = (words.run_name(record), min(record.findings, key=lambda f: f.verdict != "shown", default=None))
    show = () if first is None else ((f"audit show {run} {first.id}", "its figure and pairs of rows"),)
    lines = (
        *show,
        (f"audit report {run} --full", "all that was measured"),
        (f"audit report {run} --format html", "the full report, one file"),
    )
    return [Section(id="next", title="Next", short="Next", blocks=(Commands(lines),))] if record.id else []


def _method(record: RunRecord, section: Tabular) -> Section:
    raw = record.raw.get("tabular") or {}
    blocks = (
        *noted(section.notes),
        Items(prose.lines("rows_limits")),
        facts("Counts", raw.get("counts")),
        facts("Options", raw.get("options")),
        facts("Details", raw.get("details")),
    )
    return Section(id="method", title="Method and limits", short="Method", blocks=blocks, folded=True)


def _provenance(record: RunRecord, section: Tabular) -> Section:
    blocks = (
        facts("Versions and hashes", record.raw.get("provenance")),
        facts("Schema", asdict(section.schema)),
        facts("The plan", record.raw.get("spec")),
    )
    return Section(id="provenance", title="Provenance", short="Provenance", blocks=blocks, folded=True)


def _verdict(record: RunRecord, score: Score) -> str:
    """The verdict of the finding that is about a score: the one with its estimate."""
    code = f"tabular-{score.name.replace('_', '-')}"
    about = (f for f in record.findings if (f.code, f.attributes) == (code, score.columns))
    return next((f.verdict for f in about if f.rate == score.estimate), "not_tested")


def _detail(score: Score) -> str:
    detail = score.detail
    largest, smallest = detail.largest, detail.smallest
    if largest is None or smallest is None:
        return ""

    def group(told: GroupRate) -> str:
        named = ", ".join(f"{k} = {v}" for k, v in told.group.items())
        return f"{named}: {words.percent(told.rate)} of {told.n:,}"

    label = f"label {detail.label}" + (", called favourable" if detail.favourable else "")
    unsaid = "" if detail.favourable else ". Nothing was said about which label is good (--favourable LABEL)"
    if largest.rate == smallest.rate:
        rate = words.percent(largest.rate)
        return f"{label}: equally often in all groups ({rate}){unsaid}"
    return f"{label}: most often for {group(largest)}; least often for {group(smallest)}{unsaid}"


def _apart(score: Score) -> str:
    """Who gets a label how often: of a group score whose groups differ."""
    detail, rows = score.detail, {"domain (all rows)": "rows of the domain"}.get(score.population, "rows")
    rows = "given rows" if score.population == "given rows" else rows
    most, least = detail.largest, detail.smallest
    if most is None or least is None or most.rate == least.rate:
        return ""
    groups = [", ".join(f"{k} = {v}" for k, v in told.group.items()) for told in (least, most)]
    return (
        f"Label {detail.label} goes to {words.percent(least.rate)} of the {least.n:,} {rows} with {groups[0]}, and to "
        f"{words.percent(most.rate)} of the {most.n:,} with {groups[1]}: {words.rate_text(score.estimate)} apart."
    )


def _summary(section: Tabular, counts: Counts, protected: list[str]) -> list[str]:
    named = words.listing(protected) if protected else "the columns"
    lines = []
    if section.mode == "search":
        sets = [", ".join(s.columns) for s in section.minimal_sets]
        theta = section.options.theta
        lines.append(
            f"Minimal sets of columns with a {section.options.measure} score above {theta}: "
            + ("; ".join("{" + s + "}" for s in sets) if sets else "none was found")
            + "."
        )
    elif section.sampling == "directed":
        verb = "change" if len(protected) > 1 else "changes"
        lines.append(
            f"{counts.discriminatory or 0:,} of {counts.generated or 0:,} distinct cases that the search made get "
            f"different labels when {named} {verb}. They were searched for: this is not a rate."
        )
    else:
        lines += [told for score in section.scores if (told := _apart(score))]
        for score in section.scores:
            if score.name.endswith("causal"):
                rows = ROWS.get(score.population, f"rows ({score.population})")
                binned = section.schema.binned if score.population.startswith("domain") else ()
                only = f" (one value for each bin of {words.listing(binned)})" if binned else ""
                lines.append(
                    f"The label changed with {named} in {words.rate_text(score.estimate)} of "
                    f"{score.estimate.n:,} {rows}{only}."
                )
                if left := score.estimate.n_skipped:
                    why = "break a rule of the schema" + (", or got no label" if section.answers else "")
                    are = words.verb(left, "it is", "they are")
                    lines.append(f"{words.plural(left, 'further row')} {why}: {are} in no score.")
    whole = section.lattice[-1] if section.lattice else None
    if len(protected) > 1 and whole is not None and whole.hidden is not None:
        of_finds = " of the cases found" if section.sampling == "directed" else " of the domain"
        lines.append(
            f"In {whole.hidden:,} of {whole.rows:,} rows{of_finds} that were looked at, the label changes only "
            f"when several protected columns change together (hidden)."
        )
    if counts.off_manifold:
        lines.append(
            f"{words.plural(counts.off_manifold, 'further case')} "
            f"{words.verb(counts.off_manifold, 'changes', 'change')} only through rows that break a constraint; "
            f"they are counted apart."
        )
    if said := answers_line(section):
        lines.append(said)
    noise = section.noise.same_row if section.noise is not None else None
    if noise is not None and section.answers is not None:
        times = section.answers.replicates
        lines.append(
            f"Asked {times} times, the model gave answers that differ to one and the same row for "
            f"{words.rate_text(noise)} of {words.plural(noise.n_variants or 0, 'row')}."
        )
    if not section.answers:  # else the rows were told
        asked = counts.evaluations_in_all or counts.evaluations or 0
        lines.append(f"The model was asked about {asked:,} rows; the whole run took {counts.seconds or 0.0:.3g} s.")
    return lines


def _varied(pairs: Sequence[RowPair]) -> list[RowPair]:
    """The pairs so that those which come first change different columns, and different values of them."""
    seen: Counter[str] = Counter()
    ranked = []
    for pair in pairs:
        kind = ", ".join(f"{c}: {pair.row[c]} → {pair.other[c]}" for c in pair.changed)
        ranked.append((seen[kind], pair))
        seen[kind] += 1
    return [pair for _, pair in sorted(ranked, key=lambda entry: entry[0])]


def pair(pair: RowPair) -> tuple[str, str, str]:
    """A pair of rows in words: what changed, both labels, what stayed."""
    changed = ", ".join(f"{c}: {pair.row[c]} → {pair.other[c]}" for c in pair.changed)
    rest = ", ".join(f"{k} = {v}" for k, v in pair.row.items() if k not in pair.changed)
    return changed, f"{pair.label} → {pair.other_label}", rest


def finding_text(record: RunRecord, id: str, *, width: int = 100, encoding: str = "utf-8", color: bool = False) -> str:
    """One finding with its figure, its notes, and pairs of rows, for a terminal.

    Raises
    ------
    UnknownPlugin
        The run has no such finding.
    """
    from auditor.core.errors import UnknownPlugin
    from auditor.report.page import Page

    known = {f.id: f for f in record.findings}
    if id not in known:
        raise UnknownPlugin("finding", id, known)
    f = known[id]
    page = Page(width=width, encoding=encoding, color=color)
    place = words.attributes(f.attributes)
    page.line(f"{id} · {place} · {f.model} · {words.verdict(f.verdict)}", "bold")
    page.paragraph(words.sentence(f.text))
    if f.rate:
        page.paragraph(f"Measured: {words.rate_text(f.rate)} of {words.plural(f.rate.n, 'row')}.")
    for note in f.notes:
        page.paragraph(words.sentence(note), first="- ", indent="  ")
    pairs = [p for p in record.rows.pairs if set(p.changed) <= set(f.attributes)]
    page.heading(PAIRS)
    for changed, labels, rest in map(pair, pairs):
        page.paragraph(f"{changed}   label {labels}")
        page.paragraph(rest, indent="    ")
    if not pairs:
        page.paragraph("The run kept none.")
    finding.waiver(page, record, id)
    page.paragraph(f"What {f.code} means: audit explain {f.code}")
    return page.value()
