"""The report of a run over texts: answer, matrix, examples, checks, what else was measured, method, provenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from auditor.contrib.hinter import paper_figures as hinter
from auditor.core.record import RunRecord, head
from auditor.core.record.base import GroupAnswers
from auditor.core.types import SHOWN
from auditor.report import (
    also_measured,
    cards,
    charts,
    claimed,
    conditional,
    exchange,
    first_screen,
    matrix,
    proposed,
    run_checks,
    view,
    words,
)
from auditor.report import document as doc

MAX_CARDS = 16  # findings with their texts; the others are listed
MAX_GROUPS = 12  # groups whose lost answers are listed
RANK = {"claim": 0, "hidden": 1, "violation": 2}
STYLES = {"text": "the bare text", "chat": "a chat prompt"}
FEW = "on fewer than six texts"


def build(record: RunRecord, evidence: object) -> doc.Document:
    """Lay out a run; what it did not measure is missing, or said to be."""
    shown = view.build(record)
    first = first_screen.build(record, evidence)
    started = record.provenance.started
    meta = (
        f"status: {record.status}",
        *([str(started)] if started else []),
        f"version {record.tool_version or '–'}",
        exchange.summary(record),
    )
    further = list(_further(record, shown))
    texts = [] if first else [made for made in further if made.id == "texts"]  # who gets other texts
    return doc.Document(
        title=exchange.title(record),
        name=f"Run {record.id}",
        meta=" · ".join(meta),
        banners=run_checks.banners(record),
        first=first,
        sections=(
            *matrix.sections(record, first),
            *texts,
            *([] if first else [_rates(shown, folded=False)]),
            _examples(record, shown, evidence, first),
            _checks(shown),
            *(made for made in further if made not in texts),
            *([_rates(shown, folded=True)] if first else []),
            *([] if first else _next(record, shown)),
            *matrix.history(record, evidence, first),
            _method(),
            _provenance(record),
        ),
        footer=f"SHA-256 of the run record (canonical JSON): {head(record.raw)}",
    )


def _further(record: RunRecord, shown: view.View) -> Iterator[doc.Section]:
    names = {(s.model, s.format): s.name for s in shown.subjects}
    yield from conditional.build(record)
    yield from also_measured.generated(record, names)
    yield from also_measured.scores(record)
    yield from also_measured.texts(record, names)
    yield from also_measured.tokens(record, names)
    yield from also_measured.performance(record, names, shown.noun)


def _next(record: RunRecord, shown: view.View) -> Iterator[doc.Section]:
    if commands := proposed.commands(record, (*shown.hidden, *record.findings)):
        yield doc.section("next", "Next", doc.Commands(commands))


# -- rates ----------------------------------------------------------------------------------------------


def _rates(shown: view.View, *, folded: bool) -> doc.Section:
    """How often answers changed at all, whoever got the better one."""
    blocks: list[doc.Block] = [
        doc.Text(f"{name} {said}", "plain" if folded else "lead") for name, said in view.answer(shown)
    ]
    rows = [r for r in shown.rows if r.seeds is None or r.seeds >= view.MIN_SEEDS] or list(shown.rows)
    if rows:
        blocks += [_comparison(shown, rows), *_forest(shown, rows, "rates", f"How often the {shown.noun} changed")]
        if any(c.placebo for r in rows for c in r.cells):
            blocks.append(doc.Text(words.text("placebo_note")))
    else:
        blocks.append(doc.Text("No rate could be estimated."))
    if few := len(shown.rows) - len(rows):
        blocks.append(doc.Text(f"{words.plural(few, 'attribute set')} {FEW}: see report.csv.", "meta"))
    blocks += _paper(shown.record)
    if not folded:
        meaning, verdicts = words.named("verdicts"), dict.fromkeys(c.verdict for r in rows for c in r.cells)
        blocks += [doc.Text(f"{words.verdict(name)}: {meaning[name]}", "meta") for name in verdicts if name in meaning]
        blocks.append(doc.Facts("What was asked", view.asked(shown.record)))
    title = f"How often the {shown.noun} changed" + (" at all" if folded else "")
    return doc.Section(id="rates", title=title, short="Rates", blocks=tuple(blocks), folded=folded, brief=not folded)


def _comparison(shown: view.View, rows: Sequence[view.Row]) -> doc.Table:
    counts = ("Texts", "Variants", "Discarded")
    lines: list[tuple[str | doc.Cell, ...]] = [
        (r.label, *map(words.count, (r.seeds, r.valid, r.discarded)), *map(_cell, r.cells)) for r in rows
    ]
    lines.append(("same prompt again", *("" for _ in counts), *(run_checks.noise(c.noise) for c in rows[0].cells)))
    level = words.confidence(next((c.rate.level for r in rows for c in r.cells if c.rate), None))
    caption = f"Share of valid variants whose {shown.noun} differs from that for their original"
    columns = ("Changed", *counts, *(s.name for s in shown.subjects))
    return doc.table(f"{caption}, with the {level} interval by text", columns, lines, right=counts)


def _cell(cell: view.Cell) -> doc.Cell:
    sub = [f"hidden {words.interval(cell.hidden)}"] if cell.hidden is not None else []
    sub += [f"placebo {words.interval(cell.placebo)}"] if cell.placebo is not None else []
    mark = words.verdict(cell.verdict)
    return doc.Cell(text=words.interval(cell.rate), sub="; ".join(sub), mark=mark, kind=cell.verdict)


def _forest(shown: view.View, rows: Sequence[view.Row], name: str, title: str) -> Iterator[doc.Chart]:
    drawn = charts.forest(rows, shown.subjects, name=name, title=title, delta=shown.record.spec.delta)
    if drawn:
        yield doc.Chart(drawn, words.text("forest"))


def _paper(record: RunRecord) -> Iterator[doc.Block]:
    """The paper's own counting, and its tables and figures."""
    lines = [
        (
            model,
            words.attributes(pair.attributes),
            _share(pair.joint.errors, pair.joint.tested),
            "; ".join(f"{a}: {_share(x.errors, x.tested)}" for a, x in pair.atomic.items()),
            _share(pair.hidden, pair.joint.errors),
            _share(pair.joint.valid, pair.joint.generated),
        )
        for model, pairs in record.hinter.items()
        for pair in pairs
    ]
    if not lines:
        return
    columns = "Model | Pair | Joint errors | Atomic errors | Hidden | Valid, joint"
    yield doc.table("The paper's own counting: every mutant alike, no intervals", columns, lines)
    for figure, drawn in hinter.drawn(record):
        title = f"HInter, {figure.title}"
        yield doc.Text(f"{title}: {figure.note}")
        if drawn:
            yield doc.Chart(drawn, title)
        if figure.lines:
            yield doc.table(title, figure.columns, figure.lines, right=hinter.RIGHT)


def _share(part: int, whole: int) -> str:
    value = words.percent(part / whole) if whole else "none"
    return f"{value} ({words.count(part)} of {words.count(whole)})"


# -- examples ---------------------------------------------------------------------------------------------


def _examples(record: RunRecord, shown: view.View, evidence: object, first: first_screen.Screen | None) -> doc.Section:
    claims = claimed.index(record)

    def strength(row: exchange.Row) -> tuple[object, ...]:
        f = row.finding
        statement = claimed.of_finding(record, f, claims)
        own = (9,) if statement is None else claimed.order(statement.claim)
        headline = first is not None and first.example is not None and f.id == first.example.finding_id
        return not headline, words.RANK[f.verdict], RANK[f.kind], own

    rows = sorted(exchange.rows(record), key=strength)
    with_texts = [r for r in rows if r.finding.exemplars and (r.finding.kind != "claim" or r.finding.verdict in SHOWN)]
    made = [
        doc.Evidence(cards.build(r.finding, evidence, record=record, sentence=r.sentence))
        for r in (with_texts[:MAX_CARDS] if evidence is not None else ())
    ]
    blocks: list[doc.Block] = []
    if shown.hidden:
        blocks.append(doc.Text(words.text("hidden_finding")))
    elif not made:
        blocks.append(doc.Text(shown.none_hidden))
    blocks += made
    kept = {block.card.finding.id for block in made}
    if rest := tuple(_with_example(r, evidence) for r in rows if r.finding.id not in kept):
        blocks.append(doc.Findings(f"{words.plural(len(rest), 'further finding')}, in a sentence each", rest))
    return doc.section("findings", "Examples and findings", blocks, short="Examples", brief=True)


def _with_example(row: exchange.Row, evidence: object) -> exchange.Row:
    """A shown claim that is told in a sentence, with its clearest example."""
    f = row.finding
    if evidence is None or f.kind != "claim" or f.verdict not in SHOWN or not f.exemplars:
        return row
    return replace(row, example=cards.brief(evidence, f.exemplars[0], f.model, f.format))


# -- checks -----------------------------------------------------------------------------------------------


def _checks(shown: view.View) -> doc.Section:
    record = shown.record
    controls = list(run_checks.controls(record))
    single = [(c.name, c.scope, c.result) for c in controls if not c.few and " + " not in c.scope]
    joint = [(c.name, c.scope, c.result) for c in controls if not c.few and " + " in c.scope]
    blocks: list[doc.Block] = [
        doc.table(
            "Controls, run and not run",
            "Control | For | Result",
            [*single, *joint],
            most=len(single),
            left=("further control", "further controls"),
        )
    ]
    if few := sum(c.few for c in controls):
        blocks.append(doc.Text(f"{words.plural(few, 'control')} {FEW}: see report.csv.", "meta"))
    blocks.append(doc.Text(f"Answers that are no {shown.noun}: {run_checks.lost(record.counts)}."))
    groups = record.controls.answers_by_group
    lost = [a for a in groups if any(a.lost.values())]
    blocks += [_lost(lost)] if lost else []
    if complete := len(groups) - len(lost):
        blocks.append(doc.Text(f"{words.plural(complete, 'group')} of a model and attribute lost no answer.", "meta"))
    return doc.Section(id="controls", title="Checks", blocks=tuple(blocks))


def _lost(answers: Sequence[GroupAnswers]) -> doc.Table:
    """Groups by the share of their answers that were lost, most first."""
    ranked = sorted(answers, key=lambda a: -sum(a.lost.values()) / max(1, a.n))
    kinds = run_checks.kinds_lost(ranked)
    counts = ("Asked", *(k.capitalize() for k in kinds))
    return doc.table(
        "Refusals, unreadable answers and failures by the group that the text names",
        ("Group", "Attribute", "Model", *counts),
        (
            (words.group(a.group), a.attribute, a.model, *map(words.count, (a.n, *(a.lost.get(k) for k in kinds))))
            for a in ranked
        ),
        right=counts,
        most=MAX_GROUPS,
        left=("further group", "further groups"),
    )


# -- method and provenance ----------------------------------------------------------------------------------


def _method() -> doc.Section:
    limits = (doc.Text("Limits", "meta"), doc.Items(words.lines("limits")))
    return doc.section("method", "Method and limits", words.lines("method"), limits, short="Method", folded=True)


def _provenance(record: RunRecord) -> doc.Section:
    models = (
        (
            name,
            STYLES.get(m.style, "–"),
            "declared" if m.deterministic else "not declared",
            m.fingerprint or "–",
            words.listing(m.reported or ("–",)),
        )
        for name, m in record.models.items()
    )
    blocks = (
        doc.Facts("What was asked", view.asked(record)),
        doc.table("Models", "Model | Reads | Repeats itself | Fingerprint | Reported by the server", models),
        doc.facts("Versions and hashes", record.raw.get("provenance")),
        doc.facts("Counts of this run", record.raw.get("counts")),
        doc.facts("The plan, resolved before the first call", record.raw.get("spec")),
    )
    return doc.Section(id="provenance", title="Provenance", blocks=blocks, folded=True)
