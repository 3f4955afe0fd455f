"""The comparisons of groups as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from auditor.core.record import Claim, RunRecord
from auditor.core.types import DECIDED
from auditor.measure.claims import MIN_TEXTS, OTHERS
from auditor.report import change_rates, claimed, run_checks, words
from auditor.report.document import Block, Cell, Section, Table, Text, Value, section, table
from auditor.report.first_screen import subjects

Names = Mapping[tuple[str, str], str]
TITLES = {
    "refusal": "Refusals and unreadable answers",
    "instability": "Any change of the answer, beyond edits that change no group",
    "omnibus": "Words about an attribute, beyond neutral words",
    "interaction": "Interactions: two attributes together beyond each alone",
}
FIRST = 12  # comparisons of a family that a page does not fold away, and half of it where none is decided


def sections(record: RunRecord) -> Iterator[Section]:
    """Every comparison of a run that makes claims, in one table for each family."""
    if not record.claims:
        return
    claims = [c for c in record.claims if c.verdict != "not_tested" and c.texts >= MIN_TEXTS]
    claims.sort(key=lambda c: (words.RANK[c.verdict], claimed.order(c)))
    names = subjects(claims)
    blocks: list[str | Block] = [
        _contrasts(record, family, [c for c in claims if c.family == family], names)
        for family in sorted({c.family for c in claims}, key=lambda family: (family != "net", family))
    ]
    if any(map(claimed.apart, claims)):
        blocks.append(Text(words.text("net_differs"), tone="meta"))
    for kind in (kind for kind in words.VERDICTS if any(c.verdict == kind for c in claims)):
        blocks.append(Text(f"{words.verdict(kind)}: {words.named('verdicts')[kind]}", tone="meta"))
    none = "No two groups were compared on six texts or more."
    yield replace(section("matrix", "By attribute", blocks or none, short="Attributes", brief=True), whole=True)


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


def _contrasts(record: RunRecord, family: str, claims: Sequence[Claim], names: Names) -> Table:
    several, levels = len(set(names.values())) > 1, any(c.shares is not None for c in claims)
    labels = {c.label for c in claims if c.shares is not None}
    share = f"“{words.visible(labels.pop(), newlines=False)}”" if len(labels) == 1 and labels != {""} else "Share"
    model = ["Model"] if several else []
    columns = ["Attribute", share if levels else "Groups", *model, "#Texts", "Net difference (95 %)", "Verdict"]
    known = record.vocabulary.groups
    lines = (
        (
            words.attributes(c.attribute.split("+")),
            (claimed.levels(c, known.get(c.attribute)) or pair(record, c))
            + (f", “{c.label}”" if share == "Share" and c.label else ""),
            *((names[c.model, c.format],) if several else ()),
            c.texts,
            claimed.net(c),
            Cell(mark=claimed.verdict(c), kind=c.verdict, sub=claimed.reason(c)),
        )
        for c in claims
    )
    title = TITLES.get(family, "Every comparison of groups")
    most = FIRST if family == "net" or any(c.verdict in DECIDED for c in claims) else FIRST // 2
    return table(title, columns, lines, most=most, of="comparison")


# -- how often answers changed at all ---------------------------------------------------------------------


def rate_table(rates: change_rates.Rates, rows: Sequence[change_rates.Rate], caption: str = "") -> Table:
    """Draw one line for each rate, then what the same prompt asked again did."""
    further = {"Placebo": [r.placebo for r in rows], "Hidden": [r.hidden for r in rows]}
    shown = {title: values for title, values in further.items() if any(values)}
    lines: list[tuple[Value, ...]] = []
    for n, r in enumerate(rows):
        verdict = Cell(mark=words.verdict(r.verdict), kind=r.verdict)
        beside = (values[n] for values in shown.values())
        lines.append((words.attributes(r.attributes), r.name, r.rate, *beside, r.rate.n, verdict))
    floors = rates.record.controls.of("noise_floor")
    for (model, _), name in rates.places.items():
        floor = floors and (floors.parts.get(model) or floors)
        lines.append(("same prompt again", name, run_checks.result(floor or None), *("",) * (len(shown) + 2)))
    level = words.confidence(next((r.rate.level for r in rows), None))
    usual = f"Share of valid variants whose {words.noun(rates.record)} differs from that for their original"
    columns = ("Attributes", "Model", "Changed", *shown, "#Texts", "Verdict")
    return table(f"{caption or usual}, with the {level} interval by text", columns, lines)


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
