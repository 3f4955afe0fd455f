"""The document of a run: of texts here, others by their own builders; and the sections that any run may have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from auditor.core import waivers
from auditor.core.record import RunRecord, head
from auditor.measure.claims import MIN_TEXTS
from auditor.report import cards, claimed, first_screen, run_checks, sections, words
from auditor.report.document import (
    Block,
    Document,
    Facts,
    Findings,
    Items,
    Screen,
    Section,
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
    return replace(made, sections=(*made.sections, *_last(record)))


# -- runs over texts -------------------------------------------------------------------------------------


def _texts(record: RunRecord, evidence: object) -> Document:
    """Lay out a run; what it did not measure is missing, or said to be."""
    first, names = first_screen.build(record, evidence), sections.Rates(record).places
    rates = [sections.of_changes(record)]  # the answer of a run that makes no claims
    limits = (Text("Limits", "meta"), Items(words.lines("limits")))
    meta = (f"status: {record.status}", record.provenance.started, f"version {record.tool_version or '–'}")
    return Document(
        title=claimed.title(record),
        name=f"Run {record.id}",
        meta=" · ".join(filter(None, (*meta, claimed.summary(record)))),
        banners=first.banners,
        first=first,
        sections=(
            *sections.by_attribute(record),
            *([] if record.claims else rates),
            _examples(record, evidence, first),
            _checks(record),
            *(rates if record.claims else []),
            *conditional(record),
            *sections.generated(record, names),
            *sections.texts(record, names),
            *sections.tokens(record, names),
            *sections.performance(record, names, words.noun(record)),
            section("method", "Method and limits", words.lines("method"), limits, short="Method", folded=True),
            _provenance(record),
        ),
        footer=f"SHA-256 of the run record (canonical JSON): {head(record.raw)}",
    )


# -- examples ---------------------------------------------------------------------------------------------


def _examples(record: RunRecord, evidence: object, first: Screen) -> Section:
    def strength(row: cards.Card) -> tuple[object, ...]:
        f = row.finding
        claim = claimed.of_finding(record, f)
        own = (9,) if claim is None else claimed.order(claim)
        headline = first.example is not None and f.id == first.example.finding_id
        return not headline, words.RANK[f.verdict], RANK[f.kind], own

    rows = sorted(claimed.rows(record), key=strength)
    with_texts = [
        r for r in rows if r.finding.exemplars and (r.finding.kind != "claim" or r.finding.verdict == "shown")
    ]
    made = [cards.with_evidence(r, evidence, record) for r in (with_texts[:MAX_CARDS] if evidence is not None else ())]
    blocks: list[Block] = []
    if claimed.hidden(record):
        blocks.append(Text(words.text("hidden_finding")))
    elif not made:
        blocks.append(Text(claimed.none_hidden(record)))
    blocks += made
    kept = {card.finding.id for card in made}
    rest: list[cards.Card] = []
    for row in (row for row in rows if row.finding.id not in kept):
        f = row.finding
        with_line = evidence is not None and f.kind == "claim" and f.verdict == "shown" and bool(f.exemplars)
        line = cards.brief(evidence, f.exemplars[0], f.model, f.format) if with_line else None
        rest.append(replace(row, brief=line))
    if rest:
        blocks.append(Findings(f"{words.plural(len(rest), 'further finding')}, in a sentence each", tuple(rest)))
    return section("findings", "Examples and findings", blocks, short="Examples", brief=True)


# -- checks ----------------------------------------------------------------------------------------------


def _checks(record: RunRecord) -> Section:
    every = list(run_checks.controls(record))
    single = [(c.name, c.scope, c.result) for c in every if not c.few and " + " not in c.scope]
    joint = [(c.name, c.scope, c.result) for c in every if not c.few and " + " in c.scope]
    blocks: list[Block] = [
        table("Controls, run and not run", "Control | For | Result", [*single, *joint], most=len(single), of="control")
    ]
    if few := sum(c.few for c in every):
        blocks.append(Text(f"{words.plural(few, 'control')} {run_checks.FEW}: see report.csv.", "meta"))
    blocks.append(Text(f"Answers that are no {words.noun(record)}: {run_checks.lost(record.counts)}."))
    groups = record.controls.answers_by_group
    lost = sorted((a for a in groups if any(a.lost.values())), key=lambda a: -sum(a.lost.values()) / max(1, a.n))
    kinds = run_checks.kinds_lost(lost)
    blocks.append(
        table(
            "Refusals, unreadable answers and failures by the group that the text names",
            f"Group | Attribute | Model | #Asked{''.join(f' | #{kind.capitalize()}' for kind in kinds)}",
            ((words.group(a.group), a.attribute, a.model, a.n, *(a.lost.get(kind) for kind in kinds)) for a in lost),
            most=MAX_GROUPS,
            of="group",
        )
    )
    if complete := len(groups) - len(lost):
        blocks.append(Text(f"{words.plural(complete, 'group')} of a model and attribute lost no answer.", "meta"))
    return section("controls", "Checks", blocks)


# -- provenance ---------------------------------------------------------------------------------------------


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
        Facts("What was asked", run_checks.asked(record)),
        table("Models", "Model | Reads | Repeats itself | Fingerprint | Reported by the server", models),
        facts("Versions and hashes", record.raw.get("provenance")),
        facts("Counts of this run", record.raw.get("counts")),
        facts("The plan, resolved before the first call", record.raw.get("spec")),
    )
    return section("provenance", "Provenance", blocks, folded=True)


# -- sections that runs over texts and over rows may have, each only where there is something to tell -------


def conditional(record: RunRecord) -> Iterator[Section]:
    """What discarded variants would have added, the frozen plan and its deviations, and what somebody lets stand."""
    rows, examples = record.discarded.rows, record.discarded.exemplars
    if rows:
        several = len({(r.model, r.format) for r in rows}) > len({r.model for r in rows})
        lines = (
            (
                f"{r.model}, {r.format}" if several else r.model,
                words.attributes(r.attributes),
                r.estimate.n,
                r.estimate,
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
    if (plan := record.frozen) is not None:
        by = f" by {plan.frozen_by}" if plan.frozen_by else ", no name given"
        notes = [f"The plan was frozen {plan.frozen_at}{by}. SHA-256: {plan.sha256}."]
        notes += [f"Reasons given: {words.sentence(plan.reason)}"] if plan.reason else []
        notes += run_checks.frozen(record)
        notes += [] if plan.deviations else ["No deviation was recorded."]
        columns = "What | As planned | As run"
        otherwise = table("What was done otherwise than planned", columns, run_checks.deviations(record))
        yield section("frozen", "The frozen plan", notes, otherwise, short="Plan", brief=True)
    if record.waivers.items:
        note = "Somebody lets these findings stand. They are shown all the same, and change no figure."
        source, date = record.waivers.source or "not recorded", record.waivers.date or "not recorded"
        about = Text(f"File: {source}, as of: {date}.", "meta")
        yield section("waivers", "Waivers", note, Items(tuple(waivers.lines(record))), about, brief=True)


def _last(record: RunRecord) -> Iterator[Section]:
    """What the suite of a run measured by its own rule, and what people filled in."""
    if record.figures:
        lines = []
        for row in record.figures:
            mean, low, high = (words.number(value, "+.3f") for value in (row.value, row.low, row.high))
            between = None if row.low is None else f"{low} to {high}"
            lines.append((row.figure, row.model, row.format, mean, between, str(row.cases), str(row.left_out)))
        columns = "Measure | Model | Format | #Mean | 95 % | #Cases | #Left out"
        meaning = {row.figure: f"{row.figure}: {row.what}" for row in record.figures}
        means = table("Mean over cases, each of which counts once", columns, lines)
        title = f"What the suite {record.spec.suite} measures"
        yield section("figures", title, meaning.values(), means, short="Suite", brief=True)
    if record.responsible is not None:
        from auditor.report.legal import fill

        yield fill.section(record)
