"""Documents of changed prompts, and of choices and rankings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from auditor.core.record import Claim
from auditor.measure.impact import ImpactTable, ratio_text
from auditor.measure.mitigation import Change, Effect, Mitigated, Side
from auditor.report import claimed, sections, words
from auditor.report.document import Cell, Document, sheet

# -- what changed prompts do ------------------------------------------------------------------------------

EFFECTS: Mapping[Effect, tuple[str, str]] = {  # how it is written, and the verdict that colours it; first what is worst
    "reversed": ("▲ reversed", "shown"),
    "larger": ("▲ larger", "shown"),
    "reduced": ("▼ reduced", "bounded"),
    "not_shown": ("? no change shown", "not_determined"),
    "not_tested": ("– not tested", "not_tested"),
}
MEASURES = {"accuracy": "answers like the label", "instability": "answers that an edit changes"}


def mitigated(
    title: str, meta: str, trial: Mitigated, costs: Sequence[tuple[str, ...]] = (), notes: Iterable[str] = ()
) -> Document:
    """What changed prompts do to a run; ``costs`` are lines of the table of what was asked."""
    tested = [c for c in trial.changes if c.effect != "not_tested"]
    left = len(trial.changes) - len(tested)
    said = [f"Not tested, for want of texts: {words.plural(left, 'comparison')}."] if left else []
    changes = "Prompt | Difference | Before | After | Change (95 %) | Effect | p, corrected"
    sides = "Prompt | Measure | Texts | Before | After | Difference (95 %) | p, corrected"
    spent = "Prompt | What | Answers | Calls | Unread | Tokens in | Tokens out | Cost | Run"
    title_of_changes = "Net differences and interactions"
    helps = "No difference was shown under the first prompt, so none can be shown to shrink."
    if good := trial.helps():
        helps = f"Shown to reduce a difference, and not shown to do harm: {', '.join(good)}."
    elif any(c.before.verdict == "shown" for c in trial.changes):
        helps = "Of no prompt it was shown that it reduces a difference without harm."
    if turned := sorted({c.mitigation for c in trial.changes if c.effect == "reversed"}):
        helps += f" Reversed by: {', '.join(turned)}."
    sections = (
        *sheet("changes", title_of_changes, [words.text("mitigated"), *said], changes, _changes(tested)),
        *sheet("sides", "Accuracy and instability", [], sides, map(_side, trial.sides)),
        *sheet("costs", "What was asked", [], spent, costs),
    )
    return Document(title=title, meta=f"{meta} {helps}".strip(), banners=tuple(notes), sections=sections)


def _changes(changes: Iterable[Change]) -> Iterator[tuple[str | Cell, ...]]:
    for one in sorted(changes, key=lambda c: list(EFFECTS).index(c.effect)):
        mark, kind = EFFECTS[one.effect]
        change = "–"
        if (value := one.change.estimate) is not None and one.change.low is not None:
            change = f"{words.span(value, one.change.low, one.change.high, '+.2f')} {one.unit}".strip()
        yield (
            one.mitigation,
            Cell(text=f"{one.before.attribute}: {' / '.join(one.before.groups)}", sub=one.before.label),
            sections.cell(one.before),
            sections.cell(one.after),
            change,
            Cell(text=mark, kind=kind),
            words.number(one.change.p_adjusted),
        )


def _side(one: Side) -> tuple[str, ...]:
    moved = f"{words.span(one.after - one.before, one.low, one.high, '+.1f', scale=100)} points"
    both = words.percent(one.before), words.percent(one.after)
    return (one.mitigation, MEASURES[one.what], str(one.texts), *both, moved, words.number(one.p_adjusted))


def choices(
    title: str,
    kind: str,
    meta: str,
    claims: Sequence[Claim],
    ranks: Mapping[str, Mapping[str, float]],
    ratios: Mapping[str, ImpactTable],
) -> Document:
    """Choices (``kind`` "choice") or rankings of a panel; ``ranks`` and ``ratios`` are by model."""
    net = sorted((c for c in claims if c.family == "net" and c.verdict != "not_tested"), key=claimed.order)
    lines = []
    for c in net:
        verdict = Cell(text=claimed.verdict(c), kind=c.verdict)
        lines.append((f"{c.attribute}: {c.groups[0]}", c.groups[1], c.model, str(c.texts), claimed.net(c), verdict))
    columns = "Group | Compared with | Model | Texts | Difference (95 %) | Verdict"
    sections = sheet("net", "Who is chosen", [words.text(f"{kind}_points")], columns, lines)
    columns = "Group | Model | Rankings | First place | Mean rank | Impact ratio | 95 %"
    shares = (
        (
            row.count.category,
            model,
            str(row.count.n),
            None if row.count.rate is None else words.percent(float(row.count.rate)),
            f"{ranks[model].get(row.count.category, 0):.2f}",
            None if row.ratio is None else ratio_text(row.ratio),
            f"{row.interval[0]:.2f} to {row.interval[1]:.2f}" if row.interval else None,
        )
        for model, impact in ratios.items()
        for row in impact.rows
    )
    note = ["Intervals of the ratios take each ranking for independent; the differences above do not."]
    sections += sheet("groups", "First places and impact ratios", note, columns, shares)
    return Document(title=title, meta=meta, sections=tuple(sections))
