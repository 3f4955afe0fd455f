"""The comparisons of groups as a plot and as tables, and those of earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from auditor.core.record import Claim, RunRecord
from auditor.core.record.base import Part, Provenance, Spec
from auditor.measure.claims import MIN_TEXTS, OTHERS
from auditor.report import charts, claimed, words
from auditor.report.document import Block, Cell, Chart, Line, Section, Table, Text, section, table
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


# -- earlier runs of the same task, texts and models in the same folder -----------------------------------

MOST = 12  # earlier runs, the latest
COLUMNS = 4  # comparisons, in the order of the first screen


class Earlier(Part, frozen=True, kw_only=True):
    """What is read of an earlier run: most of a record is estimates, and they are skipped."""

    id: str | None = None
    provenance: Provenance = Provenance()
    claims: tuple[Claim, ...] | None = None


class Planned(Part, frozen=True, kw_only=True):
    """The plan of an earlier run."""

    plan: Spec


def history(record: RunRecord, evidence: object, screen: Screen | None) -> Iterator[Section]:
    """What runs before this one measured, by date, where they measured the same."""
    path = getattr(evidence, "path", None)
    claims = [] if screen is None else [row.claim for row in screen.rows if row.claim.family == "net"]
    if path is None or not claims:
        return
    runs = [*_earlier(record, Path(path)), Earlier(id=record.id, provenance=record.provenance, claims=record.claims)]
    blocks: list[Block] = []
    for n, model in enumerate(dict.fromkeys(claim.model for claim in claims)):
        blocks += _of_model(record, runs, [claim for claim in claims if claim.model == model][:COLUMNS], n)
    if blocks:
        yield section("history", "Earlier runs", words.text("history"), blocks, short="History", folded=True)


def _earlier(record: RunRecord, folder: Path) -> Iterator[Earlier]:
    """Runs beside ``folder`` that began before it and asked the same, the oldest first."""
    for beside in sorted(p for p in folder.parent.iterdir() if p.name < folder.name)[-MOST:]:
        try:
            plan = msgspec.json.decode((beside / "plan.json").read_bytes(), type=Planned).plan
            if _asked(plan) != _asked(record.spec):
                continue
            run = msgspec.json.decode((beside / "run.json").read_bytes(), type=Earlier)
        except (OSError, ValueError, msgspec.MsgspecError):  # no run folder, or one that was cut off
            continue
        if run.claims:
            yield run


def _asked(spec: Spec) -> tuple[object, ...]:
    """Task and texts of a run: what has to be the same."""
    return spec.task, spec.data, spec.suite, spec.protocol


def key(claim: Claim) -> tuple[object, ...]:
    """What makes claims of two runs the same."""
    return claim.family, claim.attribute, tuple(sorted(claim.groups)), claim.label, claim.model, claim.format


def _of_model(record: RunRecord, runs: Iterable[Earlier], claims: Sequence[Claim], n: int) -> Iterator[Block]:
    """A chart of the first comparison over time, and a table of the first few."""
    names = [f"{claim.attribute.replace('+', ' + ')}: {pair(record, claim)}" for claim in claims]
    strips = []
    lines: list[Line] = []
    for run in runs:
        by_key = {key(claim): claim for claim in run.claims or ()}
        mine = [by_key.get(key(claim)) for claim in claims]
        if not any(mine):
            continue
        date = (run.provenance.started or "")[:16].replace("T", " ") or "not recorded"  # to the minute
        cells = ("–" if c is None or c.verdict == "not_tested" else cell(c) for c in mine)
        lines.append((date, run.id or "–", *cells))
        if (first := mine[0]) is not None and (effect := claimed.effect(first)) is not None and not effect.vague:
            strips.append((date, "", effect, first.verdict, claimed.net(first)))
    if len(lines) < 2:
        return
    if len(strips) > 1 and len({(effect.scale, effect.unit) for _, _, effect, _, _ in strips}) == 1:
        drawn = charts.net(strips, name=f"history-{n}", title=f"{names[0]} over time")
        yield Chart(drawn, f"{claims[0].model}, {names[0]}, by date. {words.text('net_marks')}")
    yield table(f"Net differences of {claims[0].model} by date (95 % intervals)", ("Began", "Run", *names), lines)
