"""Sections that runs over texts and over rows may have, each only where there is something to tell."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.contrib.adaptive import search_report as adaptive
from auditor.core import waivers
from auditor.core.record import RunRecord
from auditor.measure.comparison import MIN_SEEDS
from auditor.report import planned, words
from auditor.report.document import Items, Section, Text, section, table

ALPHA = 0.05  # adjusted p values up to it are told as a difference shown


def build(record: RunRecord) -> tuple[Section, ...]:
    """Those of a run, in the order of a report."""
    return (*models(record), *searched(record), *discarded(record), *frozen(record), *waived(record))


def models(record: RunRecord) -> Iterator[Section]:
    """Whether two models differ; their rates stand in the table of rates."""
    if record.comparison is None or len({e.model for e in record.estimates if e.name == "violation_rate"}) < 2:
        return
    pairs = record.comparison.pairs
    names = words.places((side.model, side.format) for pair in pairs for side in (pair.first, pair.second))
    lines = []
    for pair in pairs:
        p = pair.p_adjusted
        if pair.n >= MIN_SEEDS:
            line = (
                words.attributes(pair.attributes) if pair.attributes else "all",
                *(names[side.model, side.format] for side in (pair.first, pair.second)),
                words.count(pair.n),
                f"{points(pair.value)} ({points(pair.low)} to {points(pair.high)})",
                "< 0.001" if p is not None and p < 0.001 else words.number(p, ".3f"),
                words.verdict("not_tested" if p is None else "shown" if p <= ALPHA else "not_determined"),
            )
            lines.append(line)
    columns = "Attributes | First | Second | #Texts | Difference | p, adjusted | Verdict"
    compared = table("Two models on the variants that both answered", columns, lines)
    notes = words.lines("two_models" if pairs else "no_two_models")
    yield section("comparison", "The models beside each other", notes, compared, short="Models", folded=True)


def searched(record: RunRecord) -> Iterator[Section]:
    """The directed search for hidden findings."""
    if (made := adaptive.build(record)) is not None:
        tables = [
            table(caption, columns, lines, right=adaptive.RIGHT)
            for caption, columns, lines in (
                ("Estimates from what was drawn with known chances", adaptive.RATES, made.rates),
                ("What the questions went to", adaptive.CALLS, made.calls),
                ("Arms on fresh texts (95 % intervals)", adaptive.FRESH, made.fresh),
            )
        ]
        yield section("adaptive", adaptive.TITLE, made.notes, tables, short="Search", folded=True)


def discarded(record: RunRecord) -> Iterator[Section]:
    """What variants that the check discarded would have added."""
    rows, examples = record.discarded.rows, record.discarded.exemplars
    if not rows:
        return
    several = len({(r.model, r.format) for r in rows}) > len({r.model for r in rows})
    lines = []
    for r in rows:
        share = f"{words.percent(r.share_of_all_changes)} ({words.count(r.changes)} of "
        if r.estimate.n >= MIN_SEEDS:
            line = (
                f"{r.model}, {r.format}" if several else r.model,
                words.attributes(r.attributes),
                words.count(r.estimate.n),
                words.interval(r.estimate),
                words.interval(r.estimate_valid),
                "no change"
                if r.share_of_all_changes is None
                else f"{share}{words.count(r.changes + r.changes_valid)})",
            )
            lines.append(line)
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


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points(0.0312), points(-0.5), points(0.0)
    ('+3.1', '−50.0', '0.0')
    """
    text = f"{abs(100 * share):.1f}"
    return text if float(text) == 0 else f"{'+' if share > 0 else '−'}{text}"
