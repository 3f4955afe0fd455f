"""Documents of what is more than one run: choices and rankings, changed prompts, a series over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from auditor.core.record import Claim
from auditor.measure.drift import ANSWERS, Key, Point, Series, Watched
from auditor.measure.impact import ImpactTable, ratio_text
from auditor.measure.mitigation import Change, Effect, Mitigated, Side
from auditor.report import charts, claimed, matrix, words
from auditor.report.document import Block, Cell, Chart, Document, Section, section, sheet, table

# -- who is chosen ----------------------------------------------------------------------------------------


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
    lines = [
        (
            f"{c.attribute}: {c.groups[0]}",
            c.groups[1],
            c.model,
            str(c.texts),
            claimed.net(c),
            Cell(text=claimed.verdict(c), kind=c.verdict),
        )
        for c in net
    ]
    columns = "Group | Compared with | Model | Texts | Difference (95 %) | Verdict"
    sections = sheet("net", "Who is chosen", [words.text(f"{kind}_points")], columns, lines)
    columns = "Group | Model | Rankings | First place | Mean rank | Impact ratio | 95 %"
    note = ["Intervals of the ratios take each ranking for independent; the differences above do not."]
    sections += sheet("groups", "First places and impact ratios", note, columns, _groups(ranks, ratios))
    return Document(title=title, meta=meta, sections=tuple(sections))


def _groups(ranks: Mapping[str, Mapping[str, float]], ratios: Mapping[str, ImpactTable]) -> Iterator[tuple[str, ...]]:
    for model, impact in ratios.items():
        for row in impact.rows:
            group = row.count.category
            yield (
                group,
                model,
                str(row.count.n),
                words.percent(float(row.count.rate)) if row.count.rate is not None else "–",
                f"{ranks[model].get(group, 0):.2f}",
                ratio_text(row.ratio) if row.ratio is not None else "–",
                f"{row.interval[0]:.2f} to {row.interval[1]:.2f}" if row.interval else "–",
            )


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
    sections = (
        *sheet("changes", title_of_changes, [words.text("mitigated"), *said], changes, _changes(tested)),
        *sheet("sides", "Accuracy and instability", [], sides, map(_side, trial.sides)),
        *sheet("costs", "What was asked", [], spent, costs),
    )
    return Document(title=title, meta=f"{meta} {helps(trial)}".strip(), banners=tuple(notes), sections=sections)


def helps(trial: Mitigated) -> str:
    """What was shown, in one or two sentences; nothing else is recommended."""
    good = trial.helps()
    turned = sorted({c.mitigation for c in trial.changes if c.effect == "reversed"})
    out = "No difference was shown under the first prompt, so none can be shown to shrink."
    if good:
        out = f"Shown to reduce a difference, and not shown to do harm: {', '.join(good)}."
    elif any(c.before.verdict == "shown" for c in trial.changes):
        out = "Of no prompt it was shown that it reduces a difference without harm."
    return out + (f" Reversed by: {', '.join(turned)}." if turned else "")


def _changes(changes: Iterable[Change]) -> Iterator[tuple[str | Cell, ...]]:
    for one in sorted(changes, key=lambda c: list(EFFECTS).index(c.effect)):
        mark, kind = EFFECTS[one.effect]
        yield (
            one.mitigation,
            Cell(text=f"{one.before.attribute}: {' / '.join(one.before.groups)}", sub=one.before.label),
            matrix.cell(one.before),
            matrix.cell(one.after),
            _difference(one.change, one.unit),
            Cell(text=mark, kind=kind),
            words.number(one.change.p_adjusted),
        )


def _difference(claim: Claim, unit: str) -> str:
    value, low, high = claim.estimate, claim.low, claim.high
    if value is None or low is None or high is None:
        return "–"
    return f"{words.span(value, low, high, '+.2f')} {unit}".strip()


def _side(one: Side) -> tuple[str, ...]:
    return (
        one.mitigation,
        MEASURES[one.what],
        str(one.texts),
        words.percent(one.before),
        words.percent(one.after),
        f"{words.span(one.after - one.before, one.low, one.high, '+.1f', scale=100)} points",
        words.number(one.p_adjusted),
    )


# -- a series of runs -------------------------------------------------------------------------------------

LOOKS = {True: Cell(mark="▲ changed", kind="shown"), False: Cell(mark="no change shown", kind="not_determined")}


def watched(series: Watched) -> Document:
    """A series of runs: each figure by date, when the model changed, and which texts did."""
    several = len({(one.key.model, one.key.format) for one in series.series}) > 1
    titles = [_figure(one.key, several) for one in series.series]
    changed = [
        (p.date, p.run, title, "–" if p.look.difference is None else _signed(p.look.difference), f"{p.look.texts:,}")
        for one, title in zip(series.series, titles, strict=True)
        for p in one.changed
    ]
    none = [] if changed else ["No change was shown."]
    when = table("When a change was found", "Began | Run | Figure | Difference from before | Texts", changed)
    sections = [section("changes", "Changes", words.text("watched"), none, when, brief=True)]
    if series.moved:
        moved = [(one.id, one.text[:300], f"{one.before:.2f}", f"{one.now:.2f}") for one in series.moved]
        caption = f"Texts whose answers moved most at {series.moved_at}"
        texts = table(caption, "Text |  | Before | Now", moved)
        sections.append(section("moved", "Texts that moved", texts, short="Texts"))
    for n, (one, title) in enumerate(zip(series.series, titles, strict=True)):
        folded = n > 3 and not one.changed
        sections.append(Section(id=f"figure-{n}", title=title, blocks=tuple(_over_time(one, n, title)), folded=folded))
    left = table("Runs that were left out", "Run | Why", series.others.items())
    sections += [section("others", "Left out", left, folded=True)] if left.lines else []
    of, n = words.plural(len(series.runs) + len(series.others), "run"), len(series.runs)
    meta = f"{n} of {of} {words.verb(n, 'has', 'have')} the plan of the last one: {_last(series)}"
    return Document(title=f"History of {series.folder}", name=series.folder, meta=meta, sections=tuple(sections))


def _figure(key: Key, several: bool) -> str:
    """What a figure is called."""
    what = f"share of “{key.label}”" if key.label else "mean answer"
    who = "all answers" if key.group == ANSWERS else f"{key.attribute}: {key.group} and {key.reference}"
    place = f"{key.model}, {key.format}" if key.format not in ("", "bare") else key.model
    return f"{place}: {who}, {what}" if several else f"{who}, {what}"


def _last(series: Watched) -> str:
    """Whether the last run shows a change, in one line."""
    if len(series.runs) < 2:
        return "one run; changes are looked for from the second on"
    if last := [one for one in series.series if one.points and one.points[-1].look.changed]:
        return f"changed at the last run: {words.plural(len(last), 'figure')}"
    before = sum(len(one.changed) for one in series.series)
    return "no change shown at the last run" + (f"; {words.plural(before, 'change')} before it" if before else "")


def _over_time(one: Series, n: int, title: str) -> Iterator[Block]:
    strips = [
        (p.date, "", claimed.Effect(value=p.value, low=p.low, high=p.high, unit=one.unit), kind, _value(p))
        for p in one.points
        if p.value is not None and p.low is not None and p.high is not None and (kind := LOOKS[p.look.changed].kind)
    ]
    if len(strips) > 1:
        drawn = charts.net(strips, name=f"watched-{n}", title=f"{title} over time")
        yield Chart(drawn, "By date, with 95 % intervals.")
    columns = "Began | Run | Figure (95 %) | Difference from before | Texts | p | Evidence | "
    yield table(title, columns, map(_point, one.points))


def _point(p: Point) -> tuple[str | Cell, ...]:
    look = p.look
    if look.p_value is None:
        return (p.date, p.run, _value(p), "–", "–", "–", "–", "the first")
    return (
        p.date,
        p.run,
        _value(p),
        "–" if look.difference is None else _signed(look.difference),
        f"{look.texts:,}",
        f"{look.p_value:.4f}",
        f"{look.capital:.2g} of {look.needed:.0f}",
        LOOKS[look.changed],
    )


def _value(p: Point) -> str:
    return "–" if p.value is None or p.low is None or p.high is None else _signed(p.value, p.low, p.high)


def _signed(value: float, low: float | None = None, high: float | None = None) -> str:
    return words.span(value, low, high, "+.3f")
