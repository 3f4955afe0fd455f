"""The report of a search over rows, from the run record alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import asdict

from auditor.core.provenance import head
from auditor.core.record import RunRecord
from auditor.core.record.rows import GroupRate, RowPair, Score, Tabular
from auditor.report import conditional, exchange, tabular_methods, words
from auditor.report.document import (
    Block,
    Cell,
    Commands,
    Document,
    Findings,
    Items,
    Section,
    Text,
    facts,
    section,
    table,
)

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
ROWS = {  # what a population is called in a sentence
    "domain (uniform)": "rows drawn uniformly from the domain",
    "domain (all rows)": "rows, all that the domain has",
    "given rows": "given rows",
    "profile": "rows drawn from the profile",
}


def build(record: RunRecord) -> Document:
    """Lay out a run over rows: summary, scores, sets of columns, pairs, what the method adds, method, provenance."""
    search = record.rows
    banners = [f"Incomplete: {record.status_reason}"] if record.status != "complete" else []
    if search.sampling == "directed":
        banners.append("Cases were searched for; their number is not a rate.")
    started = record.provenance.started
    return Document(
        title=f"Tabular search: {TITLES.get(search.method, search.method)}",
        name=f"Run {record.id or '–'}",
        meta=f"status: {record.status} · {started} · version {record.tool_version} · {exchange.summary(record)}",
        banners=tuple(banners),
        sections=(
            _answer(record, search),
            *_scores(record, search),
            *_lattice(search),
            *_findings(record),
            *_pairs(search),
            *tabular_methods.sections(search),
            *conditional.build(record),
            *_next(record),
            _method(record, search),
            _provenance(record, search),
        ),
        footer=f"SHA-256 of the record (canonical JSON): {head(record.raw)}",
    )


def _answer(record: RunRecord, search: Tabular) -> Section:
    lead = (
        f"Rows of {search.schema.name} were given to {record.spec.model}; only "
        f"{words.listing(list(search.varied) or ['the columns'])} changed, all else stayed as it was. "
        f"A case is everything else in a row."
    )
    return section("summary", "Answer", Text(lead, "lead"), Items(tuple(_summary(search))), brief=True)


def _scores(record: RunRecord, search: Tabular) -> Iterator[Section]:
    meaning, lines, notes = words.named("rows_scores"), [], []
    for s in search.measured:
        name, verdict = SCORES.get(s.name, s.name), _verdict(record, s)
        line = (
            Cell(text=name, sub=s.population),
            ", ".join(s.columns),
            words.rate_text(s.estimate),
            f"{s.estimate.n:,}",
            s.estimate.method,
            Cell(mark=words.verdict(verdict), kind=verdict),
        )
        lines.append(line)
        details = "; ".join(filter(None, (meaning.get(s.name), _detail(s), s.estimate.note)))
        notes.append(f"{name}, {s.population}: {details}.")
    if lines:
        caption = "Each score with its interval, the rows behind it, and how it was obtained"
        scores = table(caption, "Score | Columns | Value | #Rows | Interval by | Verdict", lines)
        title = "Minimal sets" if search.mode == "search" else "Scores"
        yield section("scores", title, scores, Items(tuple(notes)), brief=True)


def _findings(record: RunRecord) -> Iterator[Section]:
    if rows := tuple(exchange.rows(record)):
        block = Findings(f"{words.plural(len(rows), 'finding')}, in a sentence each", rows)
        yield section("findings", "Findings", block, brief=True)


def _lattice(search: Tabular) -> Iterator[Section]:
    lines = (
        (
            " + ".join(s.columns),
            f"{s.rows:,}",
            f"{s.changes:,}",
            words.percent(s.changes / s.rows if s.rows else None),
            f"{s.minimal:,}",
        )
        for s in search.lattice
    )
    caption = (
        "Rows whose label changes when a set of columns changes, and those that no smaller set changes (hidden, for "
        "two and more)"
    )
    columns = "Changed together | #Rows looked at | #Label changes | #Share | #No smaller set does"
    note = words.text("lattice_finds" if search.sampling == "directed" else "lattice_first")
    if search.lattice:
        yield section("lattice", "Sets of protected columns", table(caption, columns, lines), note, short="Sets")


def _pairs(search: Tabular) -> Iterator[Section]:
    caption = "No smaller change of the protected columns changes the label of the first row"
    columns, left = "Changed | Label | The same in both rows", ("further pair", "further pairs")
    pairs = table(caption, columns, map(pair, _varied(search.pairs)), most=MAX_PAIRS, left=left)
    if pairs.lines:
        yield section("pairs", PAIRS, pairs, short="Pairs")


def _next(record: RunRecord) -> Iterator[Section]:
    """What to look at: the first finding that was shown."""
    run, first = words.run_name(record), min(record.findings, key=lambda f: f.verdict != "shown", default=None)
    lines = (
        *(() if first is None else ((f"audit show {run} {first.id}", "its figure and pairs of rows"),)),
        (f"audit report {run} --full", "all that was measured"),
        (f"audit report {run} --format html", "the full report, one file"),
    )
    if record.id:
        yield section("next", "Next", Commands(lines))


def _method(record: RunRecord, search: Tabular) -> Section:
    raw = record.raw.get("tabular") or {}
    details = [facts(name.capitalize(), raw.get(name)) for name in ("counts", "options", "details")]
    content: tuple[Block, ...] = (Items(words.lines("rows_limits")), *details)
    return section("method", "Method and limits", search.notes, content, short="Method", folded=True)


def _provenance(record: RunRecord, search: Tabular) -> Section:
    blocks = (
        facts("Versions and hashes", record.raw.get("provenance")),
        facts("Schema", asdict(search.schema)),
        facts("The plan", record.raw.get("spec")),
    )
    return section("provenance", "Provenance", blocks, folded=True)


def _verdict(record: RunRecord, score: Score) -> str:
    """The verdict of the finding that is about a score: the one with its estimate."""
    code = f"tabular-{score.name.replace('_', '-')}"
    about = (f for f in record.findings if (f.code, f.attributes) == (code, score.columns))
    return next((f.verdict for f in about if f.rate == score.estimate), "not_tested")


def _group(rate: GroupRate) -> str:
    return ", ".join(f"{column} = {value}" for column, value in rate.group.items())


def _detail(score: Score) -> str:
    """Which group gets a label most often, and which least; empty for scores without groups."""
    detail = score.detail
    if (largest := detail.largest) is None or (smallest := detail.smallest) is None:
        return ""
    label = f"label {detail.label}" + (", called favourable" if detail.favourable else "")
    unsaid = "" if detail.favourable else ". Nothing was said about which label is good (--favourable LABEL)"
    if largest.rate == smallest.rate:
        return f"{label}: equally often in all groups ({words.percent(largest.rate)}){unsaid}"
    most, least = (f"{_group(g)}: {words.percent(g.rate)} of {g.n:,}" for g in (largest, smallest))
    return f"{label}: most often for {most}; least often for {least}{unsaid}"


def _apart(score: Score) -> str:
    """Who gets a label how often: of a group score whose groups differ."""
    detail, known = score.detail, {"domain (all rows)": "rows of the domain", "given rows": "given rows"}
    if (most := detail.largest) is None or (least := detail.smallest) is None or most.rate == least.rate:
        return ""
    rows = known.get(score.population, "rows")
    return (
        f"Label {detail.label} goes to {words.percent(least.rate)} of the {least.n:,} {rows} with {_group(least)}, and "
        f"to {words.percent(most.rate)} of the {most.n:,} with {_group(most)}: {words.rate_text(score.estimate)} apart."
    )


def _summary(search: Tabular) -> Iterator[str]:
    protected, counts = list(search.varied), search.counts
    named = words.listing(protected) if protected else "the columns"
    directed = search.sampling == "directed"
    if search.mode == "search":
        sets = "; ".join("{" + ", ".join(s.columns) + "}" for s in search.minimal_sets) or "none was found"
        theta = search.options.theta
        yield f"Minimal sets of columns with a {search.options.measure} score above {theta}: {sets}."
    elif directed:
        yield (
            f"{counts.discriminatory or 0:,} of {counts.generated or 0:,} distinct cases that the search made get "
            f"different labels when {named} {words.verb(max(1, len(protected)), 'changes', 'change')}. They were "
            "searched for: this is not a rate."
        )
    else:
        yield from filter(None, map(_apart, search.scores))
        for score in search.scores:
            if score.name.endswith("causal"):
                yield from _changes(search, score, named)
    whole = search.lattice[-1] if search.lattice else None
    if len(protected) > 1 and whole is not None and whole.hidden is not None:
        yield (
            f"In {whole.hidden:,} of {whole.rows:,} rows{' of the cases found' if directed else ' of the domain'} that "
            "were looked at, the label changes only when several protected columns change together (hidden)."
        )
    if n := counts.off_manifold:
        yield (
            f"{words.plural(n, 'further case')} {words.verb(n, 'changes', 'change')} only through rows that break a "
            "constraint; they are counted apart."
        )
    if search.answers is None:
        asked = counts.evaluations_in_all or counts.evaluations or 0
        yield f"The model was asked about {asked:,} rows; the whole run took {counts.seconds or 0.0:.3g} s."
        return
    yield tabular_methods.answered(search.answers)
    if search.noise is not None and (noise := search.noise.same_row) is not None:
        yield (
            f"Asked {search.answers.replicates} times, the model gave answers that differ to one and the same row for "
            f"{words.rate_text(noise)} of {words.plural(noise.n_variants or 0, 'row')}."
        )


def _changes(search: Tabular, score: Score, named: str) -> Iterator[str]:
    """How often the label changed, of how many rows, and which rows are in no score."""
    rate = score.estimate
    rows = ROWS.get(score.population, f"rows ({score.population})")
    binned = search.schema.binned if score.population.startswith("domain") else ()
    only = f" (one value for each bin of {words.listing(binned)})" if binned else ""
    yield f"The label changed with {named} in {words.rate_text(rate)} of {rate.n:,} {rows}{only}."
    if left := rate.n_skipped:
        why = "break a rule of the schema" + (", or got no label" if search.answers else "")
        yield f"{words.plural(left, 'further row')} {why}: {words.verb(left, 'it is', 'they are')} in no score."


def _varied(pairs: Sequence[RowPair]) -> list[RowPair]:
    """The pairs so that those which come first change different columns, and different values of them."""
    seen: Counter[str] = Counter()
    ranked = []
    for one in pairs:
        changed, _, _ = pair(one)
        ranked.append((seen[changed], one))
        seen[changed] += 1
    return [one for _, one in sorted(ranked, key=lambda entry: entry[0])]


def pair(pair: RowPair) -> tuple[str, str, str]:
    """A pair of rows in words: what changed, both labels, what stayed."""
    changed = ", ".join(f"{c}: {pair.row[c]} → {pair.other[c]}" for c in pair.changed)
    rest = ", ".join(f"{k} = {v}" for k, v in pair.row.items() if k not in pair.changed)
    return changed, f"{pair.label} → {pair.other_label}", rest
