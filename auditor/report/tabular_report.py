"""The report of a search over rows, from the run record alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import asdict

from auditor.core.record import RunRecord, head
from auditor.core.record.rows import METHODS, GroupRate, RowAnswers, RowPair, Score, Tabular
from auditor.report import claimed, words
from auditor.report import document as doc

SCORES = {
    "causal": "Causal score",
    "group": "Group score",
    "apparent_causal": "Apparent causal score",
    "apparent_group": "Apparent group score",
    "discriminatory_share": "Share of discriminatory cases",
}
PAIRS = "Pairs that differ in protected columns only"
MAX_PAIRS = 10
NO_GROUP = "No group score"  # how a note begins that says why


def build(record: RunRecord, conditional: Iterable[doc.Section] = ()) -> doc.Document:
    """Lay out a run over rows; ``conditional`` are sections that runs of any kind may have."""
    search = record.rows
    banners = [f"Incomplete: {record.status_reason}"] if record.status != "complete" else []
    if search.sampling == "directed":
        banners.append("Cases were searched for; their number is not a rate.")
    started = record.provenance.started
    return doc.Document(
        title=f"Tabular search: {METHODS.get(search.method, search.method)}",
        name=f"Run {record.id or '–'}",
        meta=f"status: {record.status} · {started} · version {record.tool_version} · {claimed.summary(record)}",
        banners=tuple(banners),
        sections=(*measured(record), *conditional, *_further(record)),
        footer=f"SHA-256 of the record (canonical JSON): {head(record.raw)}",
    )


def answer(record: RunRecord) -> doc.Section:
    """Return what was changed, and what that did."""
    search = record.rows
    lead = (
        f"Rows of {search.schema.name} were given to {record.spec.model}; only "
        f"{words.listing(list(search.varied) or ['the columns'])} changed, all else stayed as it was. "
        f"A case is everything else in a row."
    )
    return doc.section("summary", "Answer", doc.Text(lead, "lead"), doc.Items(tuple(_summary(search))), brief=True)


def measured(record: RunRecord) -> Iterator[doc.Section]:
    """Yield what a search measured and found, each only where there is something to tell."""
    yield answer(record)
    search, meaning, lines, notes = record.rows, words.named("rows_scores"), [], []
    for s in search.measured:
        name, code = SCORES.get(s.name, s.name), f"tabular-{s.name.replace('_', '-')}"
        about = (f for f in record.findings if (f.code, f.attributes, f.rate) == (code, s.columns, s.estimate))
        verdict = next((f.verdict for f in about), "not_tested")
        titled, marked = doc.Cell(text=name, sub=s.population), doc.Cell(mark=words.verdict(verdict), kind=verdict)
        value = words.rate_text(s.estimate)
        lines.append((titled, ", ".join(s.columns), value, s.estimate.n, s.estimate.method, marked))
        details = "; ".join(filter(None, (meaning.get(s.name), _detail(s), s.estimate.note)))
        notes.append(f"{name}, {s.population}: {details}.")
    if lines:
        caption = "Each score with its interval, the rows behind it, and how it was obtained"
        scores = doc.table(caption, "Score | Columns | Value | #Rows | Interval by | Verdict", lines)
        yield doc.section("scores", "Minimal sets" if search.mode == "search" else "Scores", scores, brief=True)
        yield doc.section("meanings", "What each score means", doc.Items(tuple(notes)))
    if search.lattice:
        caption = (
            "Rows whose label changes when a set of columns changes, and those that no smaller set changes (hidden, "
            "for two and more)"
        )
        columns = "Changed together | #Rows looked at | #Label changes | #Share | #No smaller set does"
        sets = doc.table(
            caption,
            columns,
            (
                (
                    " + ".join(s.columns),
                    s.rows,
                    s.changes,
                    words.percent(s.changes / s.rows if s.rows else None),
                    s.minimal,
                )
                for s in search.lattice
            ),
        )
        note = words.text("lattice_finds" if search.sampling == "directed" else "lattice_first")
        yield doc.section("lattice", "Sets of protected columns", sets, note, short="Sets")
    if rows := tuple(claimed.rows(record)):
        block = doc.Findings(f"{words.plural(len(rows), 'finding')}, in a sentence each", rows)
        shown = any(row.finding.verdict == "shown" for row in rows)
        yield doc.section("findings", "Findings", block, brief=shown)
    if search.pairs:
        caption = "No smaller change of the protected columns changes the label of the first row"
        seen: Counter[str] = Counter()
        ranked = []  # first those that change different columns, and different values of them
        for line in map(pair, search.pairs):
            ranked.append((seen[line[0]], line))
            seen[line[0]] += 1
        columns, ordered = "Changed | Label | The same in both rows", sorted(ranked, key=lambda entry: entry[0])
        pairs = doc.table(caption, columns, (line for _, line in ordered), most=MAX_PAIRS, of="pair")
        yield doc.section("pairs", PAIRS, pairs, short="Pairs")


def _further(record: RunRecord) -> Iterator[doc.Section]:
    """What to do next, and how it was done."""
    search, raw = record.rows, record.raw.get("tabular") or {}
    run, first = words.run_name(record), min(record.findings, key=lambda f: f.verdict != "shown", default=None)
    commands = (
        *(() if first is None else ((f"audit show {run} {first.id}", "its figure and pairs of rows"),)),
        (f"audit report {run} --full", "all that was measured"),
        (f"audit report {run} --format html", "the full report, one file"),
    )
    if record.id:
        yield doc.section("next", "Next", doc.Commands(commands), brief=True)
    limits = doc.Items(words.lines("rows_limits"))
    details = [doc.facts(name.capitalize(), raw.get(name)) for name in ("counts", "options", "details")]
    yield doc.section("method", "Method and limits", search.notes, limits, details, short="Method", folded=True)
    blocks = (
        doc.facts("Versions and hashes", record.raw.get("provenance")),
        doc.facts("Schema", asdict(search.schema)),
        doc.facts("The plan", record.raw.get("spec")),
    )
    yield doc.section("provenance", "Provenance", blocks, folded=True)


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
    detail, known = score.detail, {"domain (all rows)": "rows of the domain", "given rows": "given rows"}
    if (most := detail.largest) is None or (least := detail.smallest) is None or most.rate == least.rate:
        return ""
    rows = known.get(score.population, "rows")
    points = words.rate_text(score.estimate).replace(" %", " points", 1).replace(" %)", ")")
    return (
        f"Label {detail.label} goes to {words.percent(least.rate)} of the {least.n:,} {rows} with {_group(least)}, and "
        f"to {words.percent(most.rate)} of the {most.n:,} with {_group(most)}: {points} apart."
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
        yield from (note for note in search.notes if note.startswith(NO_GROUP))
    whole = search.lattice[-1] if search.lattice else None
    if len(protected) > 1 and whole is not None and whole.hidden is not None:
        yield (
            f"In {whole.hidden:,} of {whole.rows:,} rows{' of the cases found' if directed else ' of the domain'} that "
            "were looked at, the label changes only when several protected columns change together (hidden)."
        )
    if search.details.ended:
        yield f"The search ended because {search.details.ended}."
    if n := counts.off_manifold:
        yield (
            f"{words.plural(n, 'further case')} {words.verb(n, 'changes', 'change')} only through rows that break a "
            "constraint; they are counted apart."
        )
    if search.answers is None:
        asked = counts.evaluations_in_all or counts.evaluations or 0
        yield f"The model was asked about {asked:,} rows; the whole run took {counts.seconds or 0.0:.3g} s."
        return
    yield _answered(search.answers)
    if search.noise is not None and (noise := search.noise.same_row) is not None:
        yield (
            f"Asked {search.answers.replicates} times, the model gave answers that differ to one and the same row for "
            f"{words.rate_text(noise)} of {words.plural(noise.n_variants or 0, 'row')}."
        )


def _changes(search: Tabular, score: Score, named: str) -> Iterator[str]:
    rate = score.estimate
    rows = words.named("row_populations").get(score.population, f"rows ({score.population})")
    binned = search.schema.binned if score.population.startswith("domain") else ()
    only = f" (one value for each bin of {words.listing(binned)})" if binned else ""
    yield f"The label changed with {named} in {words.rate_text(rate)} of {rate.n:,} {rows}{only}."
    if left := rate.n_skipped:
        why = "break a rule of the schema" + (", or got no label" if search.answers else "")
        yield f"{words.plural(left, 'further row')} {why}: {words.verb(left, 'it is', 'they are')} in no score."


def pair(pair: RowPair) -> tuple[str, str, str]:
    """A pair of rows in words: what changed, both labels, what stayed."""
    changed = ", ".join(f"{c}: {pair.row[c]} → {pair.other[c]}" for c in pair.changed)
    rest = ", ".join(f"{k} = {v}" for k, v in pair.row.items() if k not in pair.changed)
    return changed, f"{pair.label} → {pair.other_label}", rest


def _answered(answers: RowAnswers) -> str:
    """How a language model was asked, and how many rows got no label."""
    lost = {key: n for key, n in answers.rows.items() if key != "ok" and n}
    total = sum(answers.rows.values())
    times = "" if answers.replicates == 1 else f", each {answers.replicates} times"
    through = f" through the task {answers.task} (format {answers.format}{times})" if answers.task else times
    text = (
        f"{words.plural(total, 'row')} {words.verb(total, 'was', 'were')} asked{through}: "
        f"{words.plural(answers.calls, 'call')}, {words.plural(answers.cached, 'answer')} from the cache. "
    )
    if not lost:
        return text + ("Every row got a label." if total else "No row got a label.")
    listed = ", ".join(f"{n:,} {key}" for key, n in lost.items())
    count = words.plural(sum(lost.values()), "row")
    return f"{text}{count} got no label ({listed}): they are not judged, and count neither as equal nor as different."
