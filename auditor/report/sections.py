"""Sections that stand only where a run has something for them: comparison, discarded variants, plan, waivers."""

from __future__ import annotations

from collections.abc import Collection

from auditor.contrib.adaptive import report as adaptive
from auditor.core import waivers
from auditor.core.record import RunRecord
from auditor.core.record.sections import DiscardedRow, ModelPair
from auditor.measure.two_models import MIN_SEEDS
from auditor.report import planned, prose, words
from auditor.report.document import Items, Section, Table, Text, noted

DISCARDED = ("Model", "Attributes", "Texts", "Discarded ones changed", "Valid ones changed", "Share of all changes")
DEVIATIONS = ("What", "As planned", "As run")


def build(record: RunRecord) -> tuple[Section, ...]:
    """Lay out what the record has, in the order of the report."""
    found = (_comparison(record), _adaptive(record), _discarded(record), _frozen(record), _waivers(record))
    return tuple(section for section in found if section is not None)


def _comparison(record: RunRecord) -> Section | None:
    """Whether two models differ; their rates stand in the table of rates."""
    if record.comparison is None or len({e.model for e in record.estimates if e.name == "violation_rate"}) < 2:
        return None
    measured = record.comparison.pairs
    sides = {(side.model, side.format) for row in measured for side in (row.first, row.second)}
    several = {m for m, _ in sides if sum(other == m for other, _ in sides) > 1}
    lines = tuple(_pair(row, several) for row in measured if row.n >= MIN_SEEDS)
    none = ("No two models were judged on the same variants, so none were compared.",)
    table = Table(caption="Two models on the variants that both answered", columns=PAIRS, lines=lines, right=RIGHT)
    return Section(
        id="comparison",
        title="The models beside each other",
        short="Models",
        blocks=noted(prose.lines("two_models") if measured else none, [table]),
        folded=True,
    )


def _pair(row: ModelPair, several: Collection[str]) -> tuple[str, ...]:
    first, second = (f"{s.model}, {s.format}" if s.model in several else s.model for s in (row.first, row.second))
    p = row.p_adjusted
    return (
        words.attributes(row.attributes) if row.attributes else "all",
        first,
        second,
        words.count(row.n),
        f"{points(row.value)} ({points(row.low)} to {points(row.high)})",
        "–" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001",
        words.verdict("not_tested" if p is None else "shown" if p <= ALPHA else "not_determined"),
    )


def _adaptive(record: RunRecord) -> Section | None:
    told = adaptive.build(record)
    if told is None:
        return None
    tables = (
        Table(
            caption="Estimates from what was drawn with known chances",
            columns=adaptive.RATES,
            lines=told.rates,
            right=adaptive.RIGHT,
        ),
        Table(caption="What the questions went to", columns=adaptive.CALLS, lines=told.calls, right=adaptive.RIGHT),
        Table(
            caption="Arms on fresh texts (95 % intervals)",
            columns=adaptive.FRESH,
            lines=told.fresh,
            right=adaptive.RIGHT,
        ),
    )
    return Section(id="adaptive", title=adaptive.TITLE, short="Search", blocks=noted(told.notes, tables), folded=True)


def _discarded(record: RunRecord) -> Section | None:
    rows = record.discarded.rows
    if not rows:
        return None
    several = len({(r.model, r.format) for r in rows}) > len({r.model for r in rows})
    lines = tuple(
        (
            f"{r.model}, {r.format}" if several else r.model,
            words.attributes(r.attributes),
            words.count(r.estimate.n),
            words.interval(r.estimate),
            words.interval(r.estimate_valid),
            _share(r),
        )
        for r in rows
        if r.estimate.n >= MIN_SEEDS
    )
    exemplars = record.discarded.exemplars
    notes = [
        "A figure about the validity check, not about the model: variants that the check discarded were asked too. "
        "They enter no other figure of this report.",
        "The last column is the part of all changes that would have been reported from discarded variants had nothing "
        "been checked.",
    ]
    if exemplars:
        notes.append(f"Examples: audit show {words.run_name(record)} {exemplars[0]}")
    return Section(
        id="discarded",
        title="What the discarded variants would have added",
        short="Discarded",
        blocks=noted(
            notes,
            [Table(caption="Answers to discarded and to valid variants", columns=DISCARDED, lines=lines, right=RIGHT)],
        ),
        folded=True,
    )


def _share(row: DiscardedRow) -> str:
    changes = row.changes + row.changes_valid
    if row.share_of_all_changes is None:
        return "no change"
    return f"{words.percent(row.share_of_all_changes)} ({words.count(row.changes)} of {words.count(changes)})"


def _frozen(record: RunRecord) -> Section | None:
    frozen = record.frozen
    if frozen is None:
        return None
    by = f" by {frozen.frozen_by}" if frozen.frozen_by else ", no name given"
    notes = [f"The plan was frozen {frozen.frozen_at}{by}. SHA-256: {frozen.sha256}."]
    if frozen.reason:
        notes.append(f"Reasons given: {words.sentence(frozen.reason)}")
    notes += planned.frozen(record)
    lines = tuple(planned.deviations(record))
    if not lines:
        notes.append("No deviation was recorded.")
    table = Table(caption="What was done otherwise than planned", columns=DEVIATIONS, lines=lines)
    return Section(id="frozen", title="The frozen plan", short="Plan", blocks=noted(notes, (table,)), brief=True)


def _waivers(record: RunRecord) -> Section | None:
    if not record.waivers.items:
        return None
    note = "Somebody lets these findings stand. They are shown all the same, and change no figure."
    source, date = record.waivers.source or "not recorded", record.waivers.date or "not recorded"
    about = f"File: {source}, as of: {date}."
    return Section(
        id="waivers",
        title="Waivers",
        short="Waivers",
        blocks=(Text(note), Items(tuple(waivers.lines(record))), Text(about, "meta")),
        brief=True,
    )


ALPHA = 0.05  # adjusted p values up to it are told as a difference shown
PAIRS = ("Attributes", "First", "Second", "Texts", "Difference", "p, adjusted", "Verdict")
RIGHT = frozenset({"Texts"})


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points(0.0312), points(-0.5), points(0.0)
    ('+3.1', '−50.0', '0.0')
    """
    text = f"{abs(100 * share):.1f}"
    return text if float(text) == 0 else f"{'+' if share > 0 else '−'}{text}"
