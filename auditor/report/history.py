"""Earlier runs of the same task, texts and models in the same folder: what each of them measured, by date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from auditor.core.record import RunRecord
from auditor.core.record.parts import Part, Provenance, Spec
from auditor.measure.claims import Claim
from auditor.report import charts, claimed, matrix
from auditor.report.answer import Screen
from auditor.report.document import Block, Cell, Chart, Section, Table, Text

Key = tuple[str, str, tuple[str, ...], str, str, str]
MOST = 12  # earlier runs, the latest
COLUMNS = 4  # comparisons, in the order of the first screen
NOTE = (
    "Runs of this folder with the same task, texts and model, this one last. They may differ in what else was set, and "
    "share texts: a difference between two lines is tested by audit compare, not here."
)


def sections(record: RunRecord, evidence: object, screen: Screen | None) -> Iterator[Section]:
    """The section, where a run before this one measured the same."""
    path = getattr(evidence, "path", None)
    rows = [] if screen is None else [row.claim for row in screen.rows if row.claim.family == "net"]
    if path is None or not rows:
        return
    earlier = list(_earlier(record, Path(path)))
    blocks: list[Block] = []
    for n, model in enumerate(dict.fromkeys(claim.model for claim in rows)):
        blocks += _of_model(record, earlier, [claim for claim in rows if claim.model == model][:COLUMNS], n)
    if blocks:
        title = "Earlier runs"
        yield Section(id="history", title=title, short="History", blocks=(Text(NOTE), *blocks), folded=True)


class Earlier(Part, frozen=True, kw_only=True):
    """What is read of an earlier run: most of a record is estimates, and they are skipped."""

    id: str | None = None
    provenance: Provenance = Provenance()
    claims: tuple[Claim, ...] | None = None


class Planned(Part, frozen=True, kw_only=True):
    """The plan of an earlier run."""

    plan: Spec


def _earlier(record: RunRecord, folder: Path) -> Iterator[Earlier]:
    """Runs beside ``folder`` that began before it and asked the same, the oldest first."""
    wanted = _asked(record.spec)
    for beside in sorted(p for p in folder.parent.iterdir() if p.name < folder.name)[-MOST:]:
        try:
            plan = msgspec.json.decode((beside / "plan.json").read_bytes(), type=Planned).plan
            if _asked(plan) != wanted:
                continue
            found = msgspec.json.decode((beside / "run.json").read_bytes(), type=Earlier)
        except (OSError, ValueError, msgspec.MsgspecError):  # no run folder, or one that was cut off
            continue
        if found.claims:
            yield found


def _asked(spec: Spec) -> tuple[object, ...]:
    """Task and texts of a run: what has to be the same."""
    return spec.task, spec.data, spec.suite, spec.protocol


def _key(claim: Claim) -> Key:
    return claim.family, claim.attribute, claim.groups, claim.label, claim.model, claim.format


def _of_model(record: RunRecord, earlier: Iterable[Earlier], claims: Sequence[Claim], n: int) -> Iterator[Block]:
    """A chart of the first comparison over time, and a table of the first few."""
    last = Earlier(id=record.id, provenance=record.provenance, claims=record.claims)
    told = [(found, {_key(claim): claim for claim in found.claims or ()}) for found in (*earlier, last)]
    told = [(found, by_key) for found, by_key in told if any(_key(claim) in by_key for claim in claims)]
    if len(told) < 2:
        return
    names = [f"{claim.attribute.replace('+', ' + ')}: {matrix.pair(record, claim)}" for claim in claims]
    strips = []
    lines: list[tuple[str | Cell, ...]] = []
    for found, by_key in told:
        mine = [by_key.get(_key(claim)) for claim in claims]
        lines.append((_date(found), found.id or "–", *map(_cell, mine)))
        first = mine[0]
        effect = None if first is None else claimed.effect(first)
        if first is not None and effect is not None and not effect.vague:
            strips.append((_date(found), "", effect, first.verdict, claimed.net(first)))
    if len(strips) > 1 and len({(strip[2].scale, strip[2].unit) for strip in strips}) == 1:
        drawn = charts.net(strips, name=f"history-{n}", title=f"{names[0]} over time")
        yield Chart(drawn, f"{claims[0].model}, {names[0]}, by date. {matrix.MARKS}")
    caption = f"Net differences of {claims[0].model} by date (95 % intervals)"
    yield Table(caption=caption, columns=("Began", "Run", *names), lines=tuple(lines))


def _cell(claim: Claim | None) -> str | Cell:
    if claim is None or claim.verdict == "not_tested":
        return "–"
    return Cell(text=claimed.net(claim), mark=claimed.verdict(claim), kind=claim.verdict)


def _date(record: Earlier) -> str:
    """When a run began, to the minute."""
    started = record.provenance.started or ""
    return started[:16].replace("T", " ") or "not recorded"
