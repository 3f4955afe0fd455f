"""The comparisons of groups as a plot and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from auditor.core.record import Claim, RunRecord
from auditor.measure.claims import MIN_TEXTS, OTHERS
from auditor.report import change_rates, charts, claimed, run_checks, words
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


def sections(record: RunRecord) -> Iterator[Section]:
    """Every comparison of a run that makes claims, in one table for each family."""
    if record.claims:
        claims = [c for c in record.claims if c.verdict != "not_tested" and c.texts >= MIN_TEXTS]
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


# -- how often answers changed at all ---------------------------------------------------------------------


def rate_table(rates: change_rates.Rates, rows: Sequence[change_rates.Rate], caption: str = "") -> Table:
    """Draw one line for each rate, then what the same prompt asked again did."""
    further = {"Placebo": [r.placebo for r in rows], "Hidden": [r.hidden for r in rows]}
    shown = {title: values for title, values in further.items() if any(values)}
    lines: list[tuple[str | Cell, ...]] = [
        (
            words.attributes(r.attributes),
            r.name,
            words.interval(r.rate),
            *(words.interval(values[n]) if values[n] else "–" for values in shown.values()),
            words.count(r.rate.n),
            Cell(mark=words.verdict(r.verdict), kind=r.verdict),
        )
        for n, r in enumerate(rows)
    ]
    floors = rates.record.controls.of("noise_floor")
    for (model, _), name in rates.places.items():
        floor = floors and (floors.parts.get(model) or floors)
        lines.append(("same prompt again", name, run_checks.noise(floor), *("",) * (len(shown) + 2)))
    level = words.confidence(next((r.rate.level for r in rows), None))
    usual = f"Share of valid variants whose {words.noun(rates.record)} differs from that for their original"
    columns = ("Attributes", "Model", "Changed", *shown, "Texts", "Verdict")
    return table(f"{caption or usual}, with the {level} interval by text", columns, lines, right=["Texts"])


def of_changes(record: RunRecord) -> Section:
    """Return the rates of a run; they are folded away where it makes claims."""
    rates, folded = change_rates.Rates(record), bool(record.claims)
    rows = change_rates.enough(rates.rows)
    blocks: list[str | Block] = list(rates.said()) if folded else []  # else the answer says it
    blocks.append(rate_table(rates, rows) if rows else "No rate could be estimated.")
    blocks += [words.text("placebo_note")] if any(row.placebo for row in rows) else []
    if few := len({row.attributes for row in rates.rows} - {row.attributes for row in rows}):
        blocks.append(Text(f"{words.plural(few, 'attribute set')} {run_checks.FEW}: see report.csv.", "meta"))
    if any(record.hinter.values()):
        from auditor.contrib.hinter import paper_figures

        blocks += paper_figures.blocks(record)
    meaning, verdicts = words.named("verdicts"), {} if folded else dict.fromkeys(row.verdict for row in rows)
    blocks += [Text(f"{words.verdict(name)}: {meaning[name]}", "meta") for name in verdicts if name in meaning]
    title = f"How often the {words.noun(record)} changed" + (" at all" if folded else "")
    return section("rates", title, blocks, short="Rates", folded=folded, brief=not folded)
