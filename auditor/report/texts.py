"""The report of a run over texts: answer, matrix, examples, checks, what else was measured, method, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from auditor.contrib.hinter import report as hinter
from auditor.core.provenance import head
from auditor.core.record import RunRecord
from auditor.core.record.parts import GroupAnswers
from auditor.core.types import SHOWN
from auditor.report import answer, cards, charts, claimed, controls, exchange, history, matrix, prose, view, words
from auditor.report.document import (
    Block,
    Cell,
    Chart,
    Commands,
    Document,
    Evidence,
    Facts,
    Findings,
    Items,
    Section,
    Table,
    Text,
    facts,
)

Data = Mapping[str, object]
MAX_CARDS = 16  # findings with their texts; the others are listed
MAX_GROUPS = 12  # groups whose lost answers are listed
RANK = {"claim": 0, "hidden": 1, "violation": 2}


def build(record: RunRecord, evidence: object) -> Document:
    """Lay out a run; what it did not measure is missing, or said to be."""
    shown = view.build(record)
    first = answer.build(record, evidence)
    started = record.provenance.started
    meta = (
        f"status: {record.status}",
        *([str(started)] if started else []),
        f"version {record.tool_version or '–'}",
        exchange.summary(record),
    )
    compared = tuple(section for section in shown.sections if section.id == "texts")  # who gets other texts
    sections = (
        *_matrix(record, first),
        *([] if first else compared),
        *([] if first else [_rates(shown, folded=False)]),
        _examples(record, shown, evidence, first),
        _checks(shown),
        *(section for section in shown.sections if first or section not in compared),
        *([_rates(shown, folded=True)] if first else []),
        *_next(shown, first),
        *history.sections(record, evidence, first),
        _method(),
        _provenance(record, shown),
    )
    return Document(
        title=shown.title,
        name=f"Run {record.id}",
        meta=" · ".join(meta),
        banners=shown.banners,
        first=first,
        sections=sections,
        footer=f"SHA-256 of the run record (canonical JSON): {head(record.raw)}",
    )


def _matrix(record: RunRecord, first: answer.Screen | None) -> Iterable[Section]:
    if first is not None:
        yield Section(
            id="matrix", title="By attribute", short="Attributes", blocks=matrix.build(record, first), brief=True
        )


# -- rates ----------------------------------------------------------------------------------------------


def _rates(shown: view.View, *, folded: bool) -> Section:
    """How often answers changed at all, whoever got the better one."""
    blocks: list[Block] = [Text(f"{name} {text}", "plain" if folded else "lead") for name, text in shown.answer]
    rows = [r for r in shown.rows if r.seeds is None or r.seeds >= view.MIN_SEEDS] or list(shown.rows)
    if rows:
        blocks += [
            _comparison(
                shown, rows, f"Share of valid variants whose {shown.noun} differs from that for their original"
            ),
            *_forest(shown, rows, "rates", f"How often the {shown.noun} changed"),
        ]
        if any(c.placebo for r in rows for c in r.cells):
            blocks.append(
                Text(
                    "Placebo: the same for edits of the same form that change no group. Where there are any, shown "
                    "means: more than these."
                )
            )
    else:
        blocks.append(Text("No rate could be estimated."))
    if few := len(shown.rows) - len(rows):
        blocks.append(Text(f"{words.plural(few, 'attribute set')} {FEW}: see report.csv.", "meta"))
    blocks += _paper(shown)
    if not folded:
        meaning = prose.named("verdicts")
        blocks += [
            Text(f"{words.verdict(name)}: {meaning[name]}", "meta")
            for name in dict.fromkeys(c.verdict for r in rows for c in r.cells)
            if name in meaning
        ]
        blocks.append(Facts("What was asked", shown.asked))
    title = f"How often the {shown.noun} changed" + (" at all" if folded else "")
    return Section(id="rates", title=title, short="Rates", blocks=tuple(blocks), folded=folded, brief=not folded)


FEW = "on fewer than six texts"


def _comparison(shown: view.View, rows: Sequence[view.Row], caption: str) -> Table:
    counts = ("Texts", "Variants", "Discarded")
    lines: list[tuple[str | Cell, ...]] = [
        (r.label, *(words.count(n) for n in (r.seeds, r.valid, r.discarded)), *map(_cell, r.cells)) for r in rows
    ]
    again = (view.noise_text(c.noise) for c in rows[0].cells)
    lines.append(("same prompt again", *("" for _ in counts), *again))
    names = tuple(s.name for s in shown.subjects)
    return Table(
        caption=f"{caption}, with the {words.confidence(_level(rows))} interval by text",
        columns=("Changed", *counts, *names),
        lines=tuple(lines),
        right=frozenset(counts),
    )


def _level(rows: Sequence[view.Row]) -> float | None:
    return next((c.rate.level for r in rows for c in r.cells if c.rate), None)


def _cell(cell: view.Cell) -> Cell:
    sub = [f"hidden {words.interval(cell.hidden)}"] if cell.hidden is not None else []
    sub += [f"placebo {words.interval(cell.placebo)}"] if cell.placebo is not None else []
    mark = words.verdict(cell.verdict)
    return Cell(text=words.interval(cell.rate), sub="; ".join(sub), mark=mark, kind=cell.verdict)


def _forest(shown: view.View, rows: Sequence[view.Row], name: str, title: str) -> Iterable[Chart]:
    drawn = charts.forest(rows, shown.subjects, name=name, title=title, delta=shown.record.spec.delta)
    if drawn:
        yield Chart(
            drawn,
            "Mark: share changed. Line: interval by text. Dashed tick on a grey band: the same prompt asked again. Low "
            "bar with a tick: placebo edits, which change no group. Triangle: shown. Filled circle: bounded. Open "
            "circle: not determined. Open diamond: not tested.",
        )


def _paper(shown: view.View) -> Iterable[Block]:
    """The paper's own counting, and its tables and figures."""
    if not shown.paper:
        return
    yield Table(
        caption="The paper's own counting: every mutant alike, no intervals",
        columns=controls.PAPER_COLUMNS,
        lines=shown.paper,
    )
    for figure, drawn in hinter.drawn(shown.record):
        title = f"HInter, {figure.title}"
        yield Text(f"{title}: {figure.note}")
        if drawn:
            yield Chart(drawn, title)
        if figure.lines:
            yield Table(caption=title, columns=figure.columns, lines=figure.lines, right=frozenset(hinter.RIGHT))


# -- examples ---------------------------------------------------------------------------------------------


def _examples(record: RunRecord, shown: view.View, evidence: object, first: answer.Screen | None) -> Section:
    rows = exchange.rows(record)
    claims = claimed.index(record)

    def strength(row: exchange.Row) -> tuple[object, ...]:
        told = claimed.told(record, row.finding, claims)
        own = (9,) if told is None else claimed.order(told.claim)
        return _leads(first, row), exchange.ORDER[row.verdict], RANK[row.kind], own

    rows.sort(key=strength)
    told = [r for r in rows if r.finding.exemplars and (r.kind != "claim" or r.verdict in SHOWN)]
    made = [
        Evidence(cards.build(r.finding, evidence, record=record, sentence=r.sentence))
        for r in (told[:MAX_CARDS] if evidence is not None else ())
    ]
    blocks: list[Block] = []
    if shown.hidden:
        blocks.append(Text(prose.text("hidden_finding")))
    elif not made:
        blocks.append(Text(shown.none_hidden))
    blocks += made
    kept = {block.card.finding.id for block in made}
    if rest := tuple(_with_example(r, evidence) for r in rows if r.id not in kept):
        blocks.append(Findings(f"{words.plural(len(rest), 'further finding')}, in a sentence each", rest))
    return Section(id="findings", title="Examples and findings", short="Examples", blocks=tuple(blocks), brief=True)


def _with_example(row: exchange.Row, evidence: object) -> exchange.Row:
    """A shown claim that is told in a sentence, with its clearest example."""
    f = row.finding
    if evidence is None or row.kind != "claim" or row.verdict not in SHOWN or not f.exemplars:
        return row
    return replace(row, example=cards.brief(evidence, f.exemplars[0], f.model, f.format))


def _leads(first: answer.Screen | None, row: exchange.Row) -> bool:
    """Whether a finding is another than the one of the headline."""
    return first is None or first.example is None or row.id != first.example.finding_id


# -- checks -----------------------------------------------------------------------------------------------


def _checks(shown: view.View) -> Section:
    told = [c for c in shown.controls if not c.few]
    joint = [c for c in told if " + " in c.scope]
    blocks: list[Block] = [
        Table(
            caption="Controls, run and not run",
            columns=("Control", "For", "Result"),
            lines=tuple((c.name, c.scope, c.result) for c in told if c not in joint),
            more=tuple((c.name, c.scope, c.result) for c in joint),
            left=("further control", "further controls"),
        )
    ]
    if few := sum(c.few for c in shown.controls):
        blocks.append(Text(f"{words.plural(few, 'control')} {FEW}: see report.csv.", "meta"))
    blocks.append(Text(f"Answers that are no {shown.noun}: {shown.lost}."))
    if shown.answers:
        blocks += _lost(shown.answers)
    if shown.complete:
        blocks.append(
            Text(f"{words.plural(len(shown.complete), 'group')} of a model and attribute lost no answer.", "meta")
        )
    return Section(id="controls", title="Checks", short="Checks", blocks=tuple(blocks))


def _lost(answers: Sequence[GroupAnswers]) -> list[Block]:
    """Groups by the share of their answers that were lost, most first."""
    ranked = sorted(answers, key=lambda a: -sum(a.lost.values()) / max(1, a.n))
    kinds = controls.losses(ranked)
    lines = tuple(
        (words.group(a.group), a.attribute, a.model, words.count(a.n), *(words.count(a.lost.get(k)) for k in kinds))
        for a in ranked
    )
    columns = ("Group", "Attribute", "Model", "Asked", *(k.capitalize() for k in kinds))
    return [
        Table(
            caption="Refusals, unreadable answers and failures by the group that the text names",
            columns=columns,
            lines=lines[:MAX_GROUPS],
            right=frozenset(columns[3:]),
            more=lines[MAX_GROUPS:],
            left=("further group", "further groups"),
        )
    ]


def _next(shown: view.View, first: answer.Screen | None) -> Iterable[Section]:
    if first is None and shown.commands:
        yield Section(id="next", title="Next", short="Next", blocks=(Commands(shown.commands),))


# -- method and provenance ----------------------------------------------------------------------------------


def _method() -> Section:
    return Section(
        id="method",
        title="Method and limits",
        short="Method",
        blocks=(*map(Text, prose.lines("method")), Text("Limits", "meta"), Items(prose.lines("limits"))),
        folded=True,
    )


def _provenance(record: RunRecord, shown: view.View) -> Section:
    models = tuple(
        (
            name,
            {"text": "the bare text", "chat": "a chat prompt"}.get(m.style, "–"),
            "declared" if m.deterministic else "not declared",
            m.fingerprint or "–",
            words.listing(m.reported or ("–",)),
        )
        for name, m in record.models.items()
    )
    return Section(
        id="provenance",
        title="Provenance",
        short="Provenance",
        blocks=(
            Facts("What was asked", shown.asked),
            Table(
                caption="Models",
                columns=("Model", "Reads", "Repeats itself", "Fingerprint", "Reported by the server"),
                lines=models,
            ),
            facts("Versions and hashes", record.raw.get("provenance")),
            facts("Counts of this run", record.raw.get("counts")),
            facts("The plan, resolved before the first call", record.raw.get("spec")),
        ),
        folded=True,
    )
