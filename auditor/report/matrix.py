"""Attributes against models: the difference that leads in each place, and below it every contrast of the attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from auditor.core.record import RunRecord
from auditor.core.types import SHOWN
from auditor.measure.claims import MIN_TEXTS, OTHERS, Claim
from auditor.report import charts, claimed, prose, words
from auditor.report.answer import FAMILIES, Row, Screen, subjects
from auditor.report.document import Block, Cell, Chart, Fold, Lines, Table, Text

Names = Mapping[tuple[str, str], str]
NET = "Net difference (95 %)"
MARKS = (
    "Mark: the net difference; line: its 95 % interval. Triangle: shown (open: for these words); filled circle: "
    "bounded; open circle: not determined. Left of zero: fewer favourable answers, or lower numbers."
)


def build(record: RunRecord, screen: Screen) -> tuple[Block, ...]:
    """Table, chart, and one fold for each attribute; nothing without claims that were tested."""
    if not screen.rows:
        return (Text("No two groups were compared on six texts or more."),)
    claims = [c for c in claimed.of(record) if c.verdict != "not_tested" and c.texts >= MIN_TEXTS]
    names = subjects(claims)
    return (_table(record, screen), *_chart(record, screen), *_legend(screen.rows), *_folds(record, claims, names))


def _about(claim: Claim) -> str:
    """The attribute, and what is compared where that is not the net difference."""
    told = words.attributes(claim.attribute.split("+"))
    return told if claim.family == "net" else f"{told} ({FAMILIES[claim.family]})"


def pair(record: RunRecord, claim: Claim) -> str:
    """Who is compared with whom."""
    if not claim.groups:
        return "any edit against edits that change no group"
    group, reference = claim.groups
    if "+" in claim.attribute:
        parts = zip(claim.attribute.split("+"), group.split("+"), reference.split("+"), strict=False)
        return " × ".join(
            f"{claimed.name(record, a, g)} / {'others' if r == OTHERS else claimed.name(record, a, r)}"
            for a, g, r in parts
        )
    other = "others" if reference == OTHERS else claimed.name(record, claim.attribute, reference)
    return f"{claimed.name(record, claim.attribute, group)} / {other}"


def _table(record: RunRecord, screen: Screen) -> Table:
    models = list(dict.fromkeys(row.model for row in screen.rows))
    caption = "The pair of groups that matters most, one row for each attribute"
    if len(models) == 1:
        columns = ("Attribute", *(name[:1].upper() + name[1:] for name in screen.columns[1:-1]), "Verdict")
        lines: Lines = tuple(
            (
                Cell(text=_about(row.claim), sub=pair(record, row.claim)),
                *screen.cells(row)[1:-1],
                Cell(text="", mark=row.verdict, kind=row.kind, sub=row.reason),
            )
            for row in screen.rows
        )
        return Table(caption=caption, columns=columns, lines=lines, right=frozenset({"Texts"}))
    found: dict[str, dict[str, Row]] = {}
    for row in screen.rows:
        found.setdefault(_about(row.claim), {})[row.model] = row
    lines = tuple(
        (about, *(_cell(record, by_model.get(model)) for model in models)) for about, by_model in found.items()
    )
    return Table(caption=f"{caption}, one column for each model", columns=("Attribute", *models), lines=lines)


def _cell(record: RunRecord, row: Row | None) -> Cell:
    if row is None:
        return Cell(text="–", sub="too few texts")
    about = f"{pair(record, row.claim)}, {words.plural(row.claim.texts, 'text')}"
    told = f"{about}: {row.reason}" if row.reason else about
    return Cell(text=row.net, sub=told, mark=row.verdict, kind=row.kind)


def _chart(record: RunRecord, screen: Screen) -> Iterable[Chart]:
    strips = []
    for row in screen.rows:
        found = claimed.effect(row.claim)
        if row.claim.family == "net" and found is not None and not found.vague:
            label = f"{_about(row.claim)}: {pair(record, row.claim)}"
            strips.append((label, row.model, found, row.kind, f"{row.net}, {row.verdict}"))
    labels = [label for label, *_ in strips]
    strips.sort(key=lambda strip: labels.index(strip[0]))
    if len({(found.scale, found.unit) for _, _, found, _, _ in strips}) == 1:
        drawn = charts.net(strips, name="net", title="Net differences by attribute")
        yield Chart(drawn, f"In {strips[0][2].unit or 'the unit of the answers'}. {MARKS}")


def _legend(rows: Sequence[Row]) -> Iterable[Text]:
    kinds = {row.kind for row in rows}
    for kind in words.VERDICTS:
        if kind in kinds:
            yield Text(f"{words.verdict(kind)}: {prose.named('verdicts')[kind]}", tone="meta")


TITLES = {
    "refusal": "Refusals and unreadable answers",
    "instability": "Any change of the answer, beyond edits that change no group",
    "interaction": "Interactions: two attributes together beyond each alone",
}


def _folds(record: RunRecord, claims: Sequence[Claim], names: Names) -> Iterable[Fold]:
    """Every contrast of each attribute, then those of the other families, those that show something first."""
    groups: dict[str, list[Claim]] = {}
    for claim in sorted(claims, key=lambda c: (c.family != "net", c.family, c.attribute)):
        groups.setdefault(TITLES.get(claim.family) or f"Every contrast of {claim.attribute}", []).append(claim)
    for title, mine in groups.items():
        shown = sum(c.verdict in SHOWN for c in mine)
        table = _contrasts(
            record, title, sorted(mine, key=lambda c: (claimed.RANK[c.verdict], claimed.order(c))), names
        )
        yield Fold(f"{title} ({len(mine):,}, {shown or 'none'} shown)", (table,))


def _contrasts(record: RunRecord, title: str, claims: Sequence[Claim], names: Names) -> Table:
    labels = {c.label for c in claims if c.shares is not None}
    label = labels.pop() if len(labels) == 1 else ""
    share = f"“{words.visible(label, newlines=False)}”" if label else "Share"
    about = len({c.attribute for c in claims}) > 1
    several = len(set(names.values())) > 1
    levels = any(c.shares is not None for c in claims)
    columns = [
        *(["Attribute"] if about else []),
        "Groups",
        *(["Model"] if several else []),
        "Texts",
        *([share] if levels else []),
        NET,
        "Verdict",
    ]
    lines: Lines = tuple(
        (
            *((words.attributes(c.attribute.split("+")),) if about else ()),
            pair(record, c) + (f", “{c.label}”" if share == "Share" and c.label else ""),
            *((names[c.model, c.format],) if several else ()),
            words.count(c.texts),
            *((claimed.levels(c) or "–",) if levels else ()),
            claimed.net(c),
            Cell(text="", mark=claimed.verdict(c), kind=c.verdict, sub=claimed.reason(c)),
        )
        for c in claims
    )
    return Table(caption=title, columns=tuple(columns), lines=lines, right=frozenset({"Texts"}))
