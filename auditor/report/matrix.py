"""The comparisons of groups as a plot and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from auditor.core.record import Claim, RunRecord
from auditor.measure.claims import MIN_TEXTS, OTHERS
from auditor.report import charts, claimed, words
from auditor.report.document import Block, Cell, Chart, Section, Table, Text, section, table
from auditor.report.first_screen import Screen, subjects

Names = Mapping[tuple[str, str], str]
TITLES = {
    "refusal": "Refusals and unreadable answers",
    "instability": "Any change of the answer, beyond edits that change no group",
    "omnibus": "Words about an attribute, beyond neutral words",
    "interaction": "Interactions: two attributes together beyond each alone",
}
FIRST = 12  # comparisons of a family that a page does not fold away
DRAWN = 18  # lines of a plot, and of one attribute of a model
DRAWN_EACH = 4


def sections(record: RunRecord, screen: Screen | None) -> Iterator[Section]:
    """Every comparison of a run that makes claims, in one table for each family."""
    if screen is not None:
        claims = [c for c in record.claims or () if c.verdict != "not_tested" and c.texts >= MIN_TEXTS]
        blocks = [*_tables(record, claims, subjects(claims))] or [
            Text("No two groups were compared on six texts or more.")
        ]
        yield replace(section("matrix", "By attribute", blocks, short="Attributes", brief=True), whole=True)


def plot(screen: Screen, rows: int = DRAWN, each: int = DRAWN_EACH) -> Iterator[Chart]:
    """The forest plot: one line for each comparison, its interval around zero."""
    strips = []
    for row in screen.chosen(rows, each):
        if (effect := screen.drawn(row)) is not None:
            name = f"{row.name} ({row.model})" if row.model else row.name
            figures = f"{claimed.net(row.claim)}, {claimed.verdict(row.claim)}"
            strips.append(
                (": ".join(filter(None, (name, row.label))), claimed.net(row.claim), effect, row.claim.verdict, figures)
            )
    if strips:
        deltas = {row.claim.delta for row in screen.rows if row.claim.delta}
        title = words.sentence(screen.axis).rstrip(".")
        drawn = charts.net(strips, name="net", title=title, delta=max(deltas, default=None))
        yield Chart(drawn, " ".join(filter(None, (f"{title}.", words.text("net_marks"), screen.note))))


def pair(record: RunRecord, claim: Claim) -> str:
    """Who is compared with whom."""
    if not claim.groups:
        return "any edit against edits that change no group"
    group, reference = claim.groups
    if "+" in claim.attribute:
        sides = zip(claim.attribute.split("+"), group.split("+"), reference.split("+"), strict=False)
        return " × ".join(_pair(record, *side) for side in sides)
    return _pair(record, claim.attribute, group, reference)


def _pair(record: RunRecord, attribute: str, group: str, reference: str) -> str:
    other = "others" if reference == OTHERS else claimed.name(record, attribute, reference)
    return f"{claimed.name(record, attribute, group)} / {other}"


def cell(claim: Claim, sub: str = "") -> Cell:
    """The difference of a claim with its verdict."""
    return Cell(text=claimed.net(claim), mark=claimed.verdict(claim), kind=claim.verdict, sub=sub)


def _tables(record: RunRecord, claims: Sequence[Claim], names: Names) -> Iterator[Block]:
    families: dict[str, list[Claim]] = {}
    for claim in sorted(claims, key=lambda c: (words.RANK[c.verdict], claimed.order(c))):
        families.setdefault(claim.family, []).append(claim)
    for family in sorted(families, key=lambda family: (family != "net", family)):
        yield _contrasts(record, TITLES.get(family, "Every comparison of groups"), families[family], names)
    for kind in (kind for kind in words.VERDICTS if any(c.verdict == kind for c in claims)):
        yield Text(f"{words.verdict(kind)}: {words.named('verdicts')[kind]}", tone="meta")


def _contrasts(record: RunRecord, title: str, claims: Sequence[Claim], names: Names) -> Table:
    several, levels = len(set(names.values())) > 1, any(c.shares is not None for c in claims)
    labels = {c.label for c in claims if c.shares is not None}
    share = f"“{words.visible(labels.pop(), newlines=False)}”" if len(labels) == 1 and labels != {""} else "Share"
    columns = [
        "Attribute",
        share if levels else "Groups",
        *(["Model"] if several else []),
        "Texts",
        "Net difference (95 %)",
        "Verdict",
    ]
    known = record.vocabulary.groups
    lines = (
        (
            words.attributes(c.attribute.split("+")),
            (claimed.levels(c, known.get(c.attribute)) or pair(record, c))
            + (f", “{c.label}”" if share == "Share" and c.label else ""),
            *((names[c.model, c.format],) if several else ()),
            words.count(c.texts),
            claimed.net(c),
            Cell(mark=claimed.verdict(c), kind=c.verdict, sub=claimed.reason(c)),
        )
        for c in claims
    )
    left = ("further comparison", "further comparisons")
    return table(title, columns, lines, right=["Texts"], most=FIRST, left=left)


def key(claim: Claim) -> tuple[object, ...]:
    """What makes claims of two runs the same."""
    return claim.family, claim.attribute, tuple(sorted(claim.groups)), claim.label, claim.model, claim.format
