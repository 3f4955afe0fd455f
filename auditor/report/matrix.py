"""Attributes against models: the difference that leads in each place, every contrast, all changes, and earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from auditor.core.record import Claim, RunRecord
from auditor.core.record.base import Part, Provenance, Spec
from auditor.measure.claims import MIN_TEXTS, OTHERS
from auditor.report import charts, claimed, run_checks, view, words
from auditor.report.document import Block, Cell, Chart, Facts, Fold, Line, Section, Table, Text, section, table
from auditor.report.first_screen import FAMILIES, Row, Screen, subjects

Names = Mapping[tuple[str, str], str]
TITLES = {
    "refusal": "Refusals and unreadable answers",
    "instability": "Any change of the answer, beyond edits that change no group",
    "interaction": "Interactions: two attributes together beyond each alone",
}


def sections(record: RunRecord, screen: Screen | None) -> Iterator[Section]:
    """Table, chart, and one fold for each attribute, of a run that makes claims."""
    if screen is not None:
        blocks = _blocks(record, screen) if screen.rows else [Text("No two groups were compared on six texts or more.")]
        yield section("matrix", "By attribute", blocks, short="Attributes", brief=True)


def _blocks(record: RunRecord, screen: Screen) -> Iterator[Block]:
    claims = [c for c in record.claims or () if c.verdict != "not_tested" and c.texts >= MIN_TEXTS]
    yield _table(record, screen)
    yield from _chart(record, screen)
    kinds = {row.claim.verdict for row in screen.rows}
    for kind in (kind for kind in words.VERDICTS if kind in kinds):
        yield Text(f"{words.verdict(kind)}: {words.named('verdicts')[kind]}", tone="meta")
    yield from _folds(record, claims, subjects(claims))


def _about(claim: Claim) -> str:
    """The attribute, and what is compared where that is not the net difference."""
    name = words.attributes(claim.attribute.split("+"))
    return name if claim.family == "net" else f"{name} ({FAMILIES[claim.family]})"


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


def _table(record: RunRecord, screen: Screen) -> Table:
    models = list(dict.fromkeys(row.model for row in screen.rows))
    caption = "The pair of groups that matters most, one row for each attribute"
    if len(models) == 1:
        columns = ("Attribute", *(name[:1].upper() + name[1:] for name in screen.columns[1:-1]), "Verdict")
        lines: Iterable[Line] = (
            (
                Cell(text=_about(row.claim), sub="; ".join(filter(None, (pair(record, row.claim), screen.share(row))))),
                *screen.cells(row)[1:-1],
                Cell(mark=claimed.verdict(row.claim), kind=row.claim.verdict, sub=claimed.reason(row.claim)),
            )
            for row in screen.rows
        )
        return table(caption, columns, lines, right=["Texts"])
    by_place: dict[str, dict[str, Row]] = {}
    for row in screen.rows:
        by_place.setdefault(_about(row.claim), {})[row.model] = row
    cells: Iterable[Line] = (
        (name, *(_cell(record, by_model.get(model)) for model in models)) for name, by_model in by_place.items()
    )
    return table(f"{caption}, one column for each model", ("Attribute", *models), cells)


def _cell(record: RunRecord, row: Row | None) -> Cell:
    if row is None:
        return Cell(text="–", sub="too few texts")
    sub = f"{pair(record, row.claim)}, {words.plural(row.claim.texts, 'text')}"
    return cell(row.claim, ": ".join(filter(None, (sub, claimed.reason(row.claim)))))


def _chart(record: RunRecord, screen: Screen) -> Iterator[Chart]:
    strips = []
    for row in screen.rows:
        effect = claimed.effect(row.claim)
        if row.claim.family == "net" and effect is not None and not effect.vague:
            label = f"{_about(row.claim)}: {pair(record, row.claim)}"
            figures = f"{claimed.net(row.claim)}, {claimed.verdict(row.claim)}"
            strips.append((label, row.model, effect, row.claim.verdict, figures))
    labels = [label for label, *_ in strips]
    strips.sort(key=lambda strip: labels.index(strip[0]))
    if len({(effect.scale, effect.unit) for _, _, effect, _, _ in strips}) == 1:
        drawn = charts.net(strips, name="net", title="Net differences by attribute")
        yield Chart(drawn, f"In {strips[0][2].unit or 'the unit of the answers'}. {words.text('net_marks')}")


def _folds(record: RunRecord, claims: Sequence[Claim], names: Names) -> Iterator[Fold]:
    """Every contrast of each attribute, then those of the other families, those that show something first."""
    groups: dict[str, list[Claim]] = {}
    for claim in sorted(claims, key=lambda c: (c.family != "net", c.family, c.attribute)):
        groups.setdefault(TITLES.get(claim.family) or f"Every contrast of {claim.attribute}", []).append(claim)
    for title, mine in groups.items():
        shown = sum(c.verdict == "shown" for c in mine)
        ranked = sorted(mine, key=lambda c: (words.RANK[c.verdict], claimed.order(c)))
        yield Fold(f"{title} ({len(mine):,}, {shown or 'none'} shown)", (_contrasts(record, title, ranked, names),))


def _contrasts(record: RunRecord, title: str, claims: Sequence[Claim], names: Names) -> Table:
    labels = {c.label for c in claims if c.shares is not None}
    label = labels.pop() if len(labels) == 1 else ""
    share = f"“{words.visible(label, newlines=False)}”" if label else "Share"
    attributes = len({c.attribute for c in claims}) > 1
    several = len(set(names.values())) > 1
    levels = any(c.shares is not None for c in claims)
    columns = [
        *(["Attribute"] if attributes else []),
        "Groups",
        *(["Model"] if several else []),
        "Texts",
        *([share] if levels else []),
        "Net difference (95 %)",
        "Verdict",
    ]
    lines = (
        (
            *((words.attributes(c.attribute.split("+")),) if attributes else ()),
            pair(record, c) + (f", “{c.label}”" if share == "Share" and c.label else ""),
            *((names[c.model, c.format],) if several else ()),
            words.count(c.texts),
            *((claimed.levels(c) or "–",) if levels else ()),
            claimed.net(c),
            Cell(mark=claimed.verdict(c), kind=c.verdict, sub=claimed.reason(c)),
        )
        for c in claims
    )
    return table(title, columns, lines, right=["Texts"])


# -- how often answers changed at all ----------------------------------------------------------------------


def rates(shown: view.View, *, folded: bool) -> Section:
    """How often answers changed at all, whoever got the better one."""
    blocks: list[Block] = [Text(f"{name} {said}", "plain" if folded else "lead") for name, said in view.answer(shown)]
    rows = [r for r in shown.rows if r.seeds is None or r.seeds >= MIN_TEXTS] or list(shown.rows)
    if rows:
        blocks += [_rates(shown, rows), *_forest(shown, rows, "rates", f"How often the {shown.noun} changed")]
        if any(c.placebo for r in rows for c in r.cells):
            blocks.append(Text(words.text("placebo_note")))
    else:
        blocks.append(Text("No rate could be estimated."))
    if few := len(shown.rows) - len(rows):
        blocks.append(Text(f"{words.plural(few, 'attribute set')} {run_checks.FEW}: see report.csv.", "meta"))
    if any(shown.record.hinter.values()):
        from auditor.contrib.hinter import paper_figures

        blocks += paper_figures.blocks(shown.record)
    if not folded:
        meaning, verdicts = words.named("verdicts"), dict.fromkeys(c.verdict for r in rows for c in r.cells)
        blocks += [Text(f"{words.verdict(name)}: {meaning[name]}", "meta") for name in verdicts if name in meaning]
        blocks.append(Facts("What was asked", view.asked(shown.record)))
    title = f"How often the {shown.noun} changed" + (" at all" if folded else "")
    return Section(id="rates", title=title, short="Rates", blocks=tuple(blocks), folded=folded, brief=not folded)


def _rates(shown: view.View, rows: Sequence[view.Row]) -> Table:
    counts = ("Texts", "Variants", "Discarded")
    lines: list[tuple[str | Cell, ...]] = [
        (r.label, *map(words.count, (r.seeds, r.valid, r.discarded)), *map(_rate, r.cells)) for r in rows
    ]
    lines.append(("same prompt again", *("" for _ in counts), *(run_checks.noise(c.noise) for c in rows[0].cells)))
    level = words.confidence(next((c.rate.level for r in rows for c in r.cells if c.rate), None))
    caption = f"Share of valid variants whose {shown.noun} differs from that for their original"
    columns = ("Changed", *counts, *(s.name for s in shown.subjects))
    return table(f"{caption}, with the {level} interval by text", columns, lines, right=counts)


def _rate(cell: view.Cell) -> Cell:
    sub = [f"hidden {words.interval(cell.hidden)}"] if cell.hidden is not None else []
    sub += [f"placebo {words.interval(cell.placebo)}"] if cell.placebo is not None else []
    mark = words.verdict(cell.verdict)
    return Cell(text=words.interval(cell.rate), sub="; ".join(sub), mark=mark, kind=cell.verdict)


def _forest(shown: view.View, rows: Sequence[view.Row], name: str, title: str) -> Iterator[Chart]:
    drawn = charts.forest(rows, shown.subjects, name=name, title=title, delta=shown.record.spec.delta)
    if drawn:
        yield Chart(drawn, words.text("forest"))


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


def _key(claim: Claim) -> tuple[object, ...]:
    return claim.family, claim.attribute, claim.groups, claim.label, claim.model, claim.format


def _of_model(record: RunRecord, runs: Iterable[Earlier], claims: Sequence[Claim], n: int) -> Iterator[Block]:
    """A chart of the first comparison over time, and a table of the first few."""
    names = [f"{claim.attribute.replace('+', ' + ')}: {pair(record, claim)}" for claim in claims]
    strips = []
    lines: list[Line] = []
    for run in runs:
        by_key = {_key(claim): claim for claim in run.claims or ()}
        mine = [by_key.get(_key(claim)) for claim in claims]
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
