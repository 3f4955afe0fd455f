"""The document of a run: of texts here, others by their own builders; and the sections that any run may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from auditor.core import waivers
from auditor.core.record import RunRecord, head
from auditor.core.record.controls import GroupAnswers
from auditor.measure.claims import MIN_TEXTS
from auditor.report import also_measured, cards, change_rates, claimed, first_screen, matrix, planned, run_checks, words
from auditor.report.document import (
    Block,
    Document,
    Evidence,
    Facts,
    Findings,
    Items,
    Section,
    Table,
    Text,
    facts,
    section,
    table,
)

MAX_GROUPS = 12  # groups whose lost answers are listed
MAX_CARDS = 16  # findings with their texts; the others are listed
RANK = {"claim": 0, "hidden": 1, "violation": 2}
STYLES = {"text": "the bare text", "chat": "a chat prompt"}


def document(record: RunRecord, evidence: object = None) -> Document:
    """The report of a run, whatever its kind, with what people filled in."""
    if record.tabular is not None:
        from auditor.report import tabular_report

        made = tabular_report.build(record, conditional(record))
    elif record.ll144 is not None:
        from auditor.report import outcome_report

        made = outcome_report.build(record)
    else:
        made = _texts(record, evidence)
    return replace(made, sections=(*made.sections, *measured(record), *_filled(record)))


# -- runs over texts -------------------------------------------------------------------------------------


def _texts(record: RunRecord, evidence: object) -> Document:
    """Lay out a run; what it did not measure is missing, or said to be."""
    first, names = first_screen.build(record, evidence), change_rates.Rates(record).places
    rates = [matrix.of_changes(record)]  # the answer of a run that makes no claims
    meta = (f"status: {record.status}", record.provenance.started, f"version {record.tool_version or '–'}")
    return Document(
        title=claimed.title(record),
        name=f"Run {record.id}",
        meta=" · ".join(filter(None, (*meta, claimed.summary(record)))),
        banners=first.banners,
        first=first,
        sections=(
            *matrix.sections(record),
            *([] if record.claims else rates),
            _examples(record, evidence, first),
            _checks(record),
            *(rates if record.claims else []),
            *conditional(record),
            *also_measured.generated(record, names),
            *also_measured.texts(record, names),
            *also_measured.tokens(record, names),
            *also_measured.performance(record, names, words.noun(record)),
            _method(),
            _provenance(record),
        ),
        footer=f"SHA-256 of the run record (canonical JSON): {head(record.raw)}",
    )


# -- examples ---------------------------------------------------------------------------------------------


def _examples(record: RunRecord, evidence: object, first: first_screen.Screen) -> Section:
    def strength(row: cards.Card) -> tuple[object, ...]:
        f = row.finding
        statement = claimed.of_finding(record, f)
        own = (9,) if statement is None else claimed.order(statement.claim)
        headline = first.example is not None and f.id == first.example.finding_id
        return not headline, words.RANK[f.verdict], RANK[f.kind], own

    rows = sorted(claimed.rows(record), key=strength)
    with_texts = [
        r for r in rows if r.finding.exemplars and (r.finding.kind != "claim" or r.finding.verdict == "shown")
    ]
    made = [
        Evidence(cards.with_evidence(r, evidence, record))
        for r in (with_texts[:MAX_CARDS] if evidence is not None else ())
    ]
    blocks: list[Block] = []
    if claimed.hidden(record):
        blocks.append(Text(words.text("hidden_finding")))
    elif not made:
        blocks.append(Text(claimed.none_hidden(record)))
    blocks += made
    kept = {block.card.finding.id for block in made}
    if rest := tuple(_with_example(r, evidence) for r in rows if r.finding.id not in kept):
        blocks.append(Findings(f"{words.plural(len(rest), 'further finding')}, in a sentence each", rest))
    return section("findings", "Examples and findings", blocks, short="Examples", brief=True)


def _with_example(row: cards.Card, evidence: object) -> cards.Card:
    """A shown claim that is told in a sentence, with its clearest example."""
    f = row.finding
    if evidence is None or f.kind != "claim" or f.verdict != "shown" or not f.exemplars:
        return row
    return replace(row, brief=cards.brief(evidence, f.exemplars[0], f.model, f.format))


# -- checks ----------------------------------------------------------------------------------------------


def _checks(record: RunRecord) -> Section:
    every = list(run_checks.controls(record))
    single = [(c.name, c.scope, c.result) for c in every if not c.few and " + " not in c.scope]
    joint = [(c.name, c.scope, c.result) for c in every if not c.few and " + " in c.scope]
    blocks: list[Block] = [
        table(
            "Controls, run and not run",
            "Control | For | Result",
            [*single, *joint],
            most=len(single),
            left=("further control", "further controls"),
        )
    ]
    if few := sum(c.few for c in every):
        blocks.append(Text(f"{words.plural(few, 'control')} {run_checks.FEW}: see report.csv.", "meta"))
    blocks.append(Text(f"Answers that are no {words.noun(record)}: {run_checks.lost(record.counts)}."))
    groups = record.controls.answers_by_group
    lost = [a for a in groups if any(a.lost.values())]
    blocks += [_lost(lost)] if lost else []
    if complete := len(groups) - len(lost):
        blocks.append(Text(f"{words.plural(complete, 'group')} of a model and attribute lost no answer.", "meta"))
    return Section(id="controls", title="Checks", blocks=tuple(blocks))


def _lost(answers: Sequence[GroupAnswers]) -> Table:
    """Groups by the share of their answers that were lost, most first."""
    ranked = sorted(answers, key=lambda a: -sum(a.lost.values()) / max(1, a.n))
    kinds = run_checks.kinds_lost(ranked)
    counts = ("Asked", *(k.capitalize() for k in kinds))
    return table(
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


def _method() -> Section:
    limits = (Text("Limits", "meta"), Items(words.lines("limits")))
    return section("method", "Method and limits", words.lines("method"), limits, short="Method", folded=True)


def _provenance(record: RunRecord) -> Section:
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
        Facts("What was asked", planned.asked(record)),
        table("Models", "Model | Reads | Repeats itself | Fingerprint | Reported by the server", models),
        facts("Versions and hashes", record.raw.get("provenance")),
        facts("Counts of this run", record.raw.get("counts")),
        facts("The plan, resolved before the first call", record.raw.get("spec")),
    )
    return Section(id="provenance", title="Provenance", blocks=blocks, folded=True)


# -- sections that runs over texts and over rows may have, each only where there is something to tell -------


def conditional(record: RunRecord) -> tuple[Section, ...]:
    """Those of a run, in the order of a report."""
    return (*discarded(record), *frozen(record), *waived(record))


def discarded(record: RunRecord) -> Iterator[Section]:
    """What variants that the check discarded would have added."""
    rows, examples = record.discarded.rows, record.discarded.exemplars
    if not rows:
        return
    several = len({(r.model, r.format) for r in rows}) > len({r.model for r in rows})
    lines = (
        (
            f"{r.model}, {r.format}" if several else r.model,
            words.attributes(r.attributes),
            words.count(r.estimate.n),
            words.interval(r.estimate),
            words.interval(r.estimate_valid),
            "no change"
            if (share := r.share_of_all_changes) is None
            else f"{words.percent(share)} ({words.count(r.changes)} of {words.count(r.changes + r.changes_valid)})",
        )
        for r in rows
        if r.estimate.n >= MIN_TEXTS
    )
    columns = "Model | Attributes | #Texts | Discarded ones changed | Valid ones changed | Share of all changes"
    shown = [f"Examples: audit show {words.run_name(record)} {examples[0]}"] if examples else []
    answers = table("Answers to discarded and to valid variants", columns, lines)
    title = "What the discarded variants would have added"
    yield section("discarded", title, words.lines("discarded"), shown, answers, short="Discarded", folded=True)


def frozen(record: RunRecord) -> Iterator[Section]:
    """The frozen plan, and what was done otherwise."""
    if (plan := record.frozen) is not None:
        by = f" by {plan.frozen_by}" if plan.frozen_by else ", no name given"
        notes = [f"The plan was frozen {plan.frozen_at}{by}. SHA-256: {plan.sha256}."]
        notes += [f"Reasons given: {words.sentence(plan.reason)}"] if plan.reason else []
        notes += planned.frozen(record)
        notes += [] if plan.deviations else ["No deviation was recorded."]
        otherwise = table(
            "What was done otherwise than planned", "What | As planned | As run", planned.deviations(record)
        )
        yield section("frozen", "The frozen plan", notes, otherwise, short="Plan", brief=True)


def waived(record: RunRecord) -> Iterator[Section]:
    """Findings that somebody lets stand."""
    if record.waivers.items:
        note = "Somebody lets these findings stand. They are shown all the same, and change no figure."
        source, date = record.waivers.source or "not recorded", record.waivers.date or "not recorded"
        about = Text(f"File: {source}, as of: {date}.", "meta")
        yield section("waivers", "Waivers", note, Items(tuple(waivers.lines(record))), about, brief=True)


def measured(record: RunRecord) -> Iterator[Section]:
    """What the suite of a run measured by its own rule."""
    lines = []
    for row in record.figures or ():
        shown = [words.number(value, "+.3f") for value in (row.value, row.low, row.high)]
        between = f"{shown[1]} to {shown[2]}" if row.low is not None else "–"
        lines.append((row.figure, row.model, row.format, shown[0], between, str(row.cases), str(row.left_out)))
    columns = "Measure | Model | Format | #Mean | 95 % | #Cases | #Left out"
    meaning = {row.figure: f"{row.figure}: {row.what}" for row in record.figures or ()}
    if lines:
        means = table("Mean over cases, each of which counts once", columns, lines)
        title = f"What the suite {record.spec.suite} measures"
        yield section("figures", title, meaning.values(), means, short="Suite", brief=True)


def _filled(record: RunRecord) -> Iterator[Section]:
    if record.responsible is not None:
        from auditor.report.legal import fill

        yield fill.section(record)
