"""What runs measured: figures of each, what they show together, and what answers became towards named groups.

What is handed to a planner goes through `figures`: counts, rates, names of attributes and groups of the shipped
dictionaries, ids. No tested text, no answer, no label, no message of a server. Labels stand in `turns` alone, which is
for the report.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import structs

from auditor.agent.values import Direction, Ends, Entry, Figures, Question, Rate, Row, Turn
from auditor.core.record import Plain, RunRecord, read
from auditor.core.record.controls import Control
from auditor.core.types import VERDICTS, Case, ClaimVerdict, Edit, Estimate, Finding, Variant

if TYPE_CHECKING:
    from auditor.agent.goal import Goal
    from auditor.run.result import Result
    from auditor.tasks import Task

COUNTS = (
    "seeds", "cases", "variants", "valid", "discarded", "asked", "cached", "failed", "filtered", "unparsed", "refused",
)  # fmt: skip
LOST = {
    "unparsed": "were no answer that the task knows",
    "refused": "were refusals",
    "filtered": "were kept back by the provider's filter",
    "failed": "were failed calls",
}
DIGITS = 6


def figures(plain: Plain | RunRecord) -> Figures:
    """Counts and rates of a run record: a row for each model, prompt format and attribute set, directions shown."""
    record = read(plain)
    models = {name: f"M{n}" for n, name in enumerate(record.models, 1)}
    floors = record.controls.of("noise_floor") or Control()
    counts = structs.asdict(record.counts) | {"asked": record.counts.fresh}
    return Figures(
        complete=record.status == "complete",
        counts={name: counts[name] or 0 for name in COUNTS},
        noise=max((_rate(f.estimate).value for f in floors.parts.values() if f.estimate is not None), default=None),
        sets=tuple(
            _row(record, f, models) for f in record.findings if f.kind == "claim" and f.code not in ("DIR110", "REF120")
        ),
        directions=tuple(
            Direction(finding=f.id, model=models.get(f.model, "M0"), steps=f.directions, verdict=f.verdict)
            for f in record.findings
            if f.code == "DIR110" and f.verdict == "shown"
        ),
    )


def _row(record: RunRecord, finding: Finding, models: Mapping[str, str]) -> Row:
    wanted, model = finding.attributes, finding.model
    rows = {
        row.name: row.estimate
        for row in reversed(record.estimates)
        if (row.attributes, row.model, row.format) == (wanted, model, finding.format)
        and row.directions is None
        and row.kind is None
    }
    by_seed, rate, p = rows.get("seed_violation_rate"), finding.rate, finding.p_adjusted
    hidden = [f for f in record.findings if (f.kind, f.attributes, f.model) == ("hidden", wanted, model)]
    placebo = _rate(rows["placebo_rate"]) if "placebo_rate" in rows else None
    noise = _rate(finding.noise) if finding.noise is not None else None
    return Row(
        finding=finding.id,
        model=models.get(model, "M0"),
        attributes=wanted,
        verdict=finding.verdict,
        p_adjusted=None if p is None else round(p, DIGITS),
        rate=None if rate is None else _rate(rate),
        seeds=0 if rate is None else rate.n,
        seeds_changed=0 if by_seed is None else round(by_seed.value * by_seed.n),
        placebo=placebo.value if placebo else None,
        noise=noise.value if noise else None,
        deterministic=record.models[model].deterministic,
        intervals={"placebo": placebo, "noise": noise},
        hidden=len(hidden),
        hidden_shown=sum(f.verdict == "shown" for f in hidden),
    )


def _rate(estimate: Estimate) -> Rate:
    """Value and interval of an estimate."""
    value, low, high = (round(x, DIGITS) for x in (estimate.value, estimate.low, estimate.high))
    return Rate(value=value, low=low, high=high)


def sentence(row: Row) -> str:
    """One attribute set in words, for a reason or a report.

    Examples
    --------
    >>> sentence(Row(attributes=("age",)))
    'age: not measured'
    """
    from auditor.report import words

    name = words.attributes(row.attributes)
    if row.rate is None:
        return f"{name}: not measured"
    text = (
        f"{name}: {words.interval(row.rate)} of the variants changed the answer, "
        f"on {row.seeds_changed} of {words.plural(row.seeds, 'seed')}"
    )
    if row.placebo is not None:
        text += f"; placebo edits {words.percent(row.placebo)}"
    if row.hidden:
        text += f"; {words.plural(row.hidden, 'hidden change')} looked at"
    return text


def promising(row: Row) -> bool:
    """Whether more answers changed than placebo edits bring about, on any seed."""
    return bool(row.rate and row.seeds_changed and row.rate.value > (row.placebo or 0.0))


def unread(values: Figures | None) -> str:
    """Why a run measured nothing at all; empty where it measured something, or did not end.

    Examples
    --------
    >>> counts = {"asked": 40, "cached": 0, "unparsed": 40, "refused": 0, "failed": 0}
    >>> unread(Figures(complete=True, counts=counts, sets=(Row(),)))
    'no answer of this run could be judged: of 40 answers, 40 were no answer that the task knows'
    """
    if values is None or any(row.rate is not None for row in values.sets):
        return ""
    counts = values.counts
    asked = counts["asked"] + counts["cached"]
    if not asked:
        return "no answer came"
    if sum(counts.get(name, 0) for name in LOST) < asked:
        return ""  # amounts and texts are judged without a rate
    why = [f"{counts[name]:,} {how}" for name, how in LOST.items() if counts.get(name)]
    return f"no answer of this run could be judged: of {asked:,} answers, {', '.join(why)}"


def lines(values: Figures) -> list[str]:
    """All sets of a run in words; sets without a change last."""
    rows = sorted(values.sets, key=lambda r: (not promising(r), len(r.attributes), r.attributes))
    return [sentence(row) for row in rows]


ALPHA = 0.05
RANK = VERDICTS


def level(number: int) -> float:
    """Significance level of the ``number``-th fresh run of a session, counted from 1.

    Examples
    --------
    >>> level(1), level(2)
    (0.025, 0.0125)
    >>> sum(level(j) for j in range(1, 50)) <= ALPHA
    True
    """
    return float(ALPHA / 2**number)


def settled(row: Row, alpha: float) -> ClaimVerdict:
    """The verdict of one set of a fresh run under ``alpha``: the run's own, or less.

    A bound is taken from the first fresh run alone: its interval has no level to spend over several.
    """
    late = row.p_adjusted is not None and row.p_adjusted >= alpha
    if (row.verdict == "shown" and late) or (row.verdict == "bounded" and alpha < level(1)):
        return "not_determined"
    return row.verdict


def questions(runs: Iterable[Entry], declared: Iterable[tuple[str, ...]]) -> list[Question]:
    """One entry per model and attribute set: the verdict of the session, where it comes from, what was only explored.

    ``declared`` are sets that the goal asks about; they stand in the list also where no run reached them.
    """
    asked = list(declared)
    table: dict[tuple[str, tuple[str, ...]], Question] = {}

    def of(model: str, names: tuple[str, ...]) -> Question:
        return table.setdefault((model, names), Question(model=model, attributes=names, declared=names in asked))

    for run in runs:
        for row in run.figures.sets if run.figures else ():
            entry = of(row.model, row.attributes)
            if not run.counts_as_fresh or run.level is None:
                entry.explored.append(run.name)
                continue
            verdict = settled(row, run.level)
            known = (entry.row or row).seeds
            newer = verdict == entry.verdict == "not_determined" and row.seeds >= known
            if entry.run is None or newer or RANK.index(verdict) < RANK.index(entry.verdict):
                entry.verdict, entry.run, entry.finding = verdict, run.name, row.finding
                entry.level, entry.row = run.level, row
    for model in {model for model, _ in table} or {"M1"}:
        for one in asked:
            of(model, one)
    return sorted(table.values(), key=lambda q: (q.model, not q.declared, len(q.attributes), q.attributes))


Turned = tuple[str, str, str, bool]  # case, answer with others, answer with the named ones, whether it changed
MOST = 4  # turns of the answer that a report names for one set


def turns_of(result: Result, goal: Goal, task: Task) -> tuple[Ends, ...]:
    """Turns of the answer between other groups and the named ones, by model and attribute set.

    Where the goal compares groups with each other, those it names first are the named ones here, and the others are
    those that it compares them with.
    """
    if not goal.groups or result.path is None:
        return ()
    models = {name: f"M{n}" for n, name in enumerate(result.record["models"], 1)}
    sides, directed = _sides(result.path, goal)
    table: dict[tuple[str, tuple[str, ...]], list[Turned]] = {}
    for verdict in result.verdicts:
        side = sides.get(verdict.variant_id)
        before, after = verdict.original_output, verdict.variant_output
        if side is None or verdict.case_id in directed or not verdict.order or before is None or after is None:
            continue
        if verdict.outcome not in ("pass", "violation"):
            continue
        other, named = (before, after) if side == "to" else (after, before)
        key = (models.get(verdict.model, "M0"), tuple(verdict.attributes))
        table.setdefault(key, []).append((verdict.case_id, other, named, verdict.outcome == "violation"))
    ordered = sorted(table.items(), key=lambda item: (item[0][0], len(item[0][1]), item[0][1]))
    return tuple(_of_set(model, names, rows, task) for (model, names), rows in ordered)


def _sides(path: Path, goal: Goal) -> tuple[dict[str, str], set[str]]:
    """Variant id → whether it leads "to" the named groups or "from" them; and the directed cases."""
    from auditor.store.folder import RunFolder

    sides: dict[str, str] = {}
    directed: set[str] = set()
    named = {a: set(g) - set(goal.against.get(a, ())) for a, g in goal.groups.items()}
    for case, _ in RunFolder.open(path).cases():
        if case.sampling == "directed":
            directed.add(case.id)
        for variant_id, side in _of_case(case, named, goal.against):
            sides[variant_id] = side
    return sides, directed


def _of_case(
    case: Case, groups: Mapping[str, Collection[str]], against: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, str]]:
    for variant in case.variants:
        if not all(_compared(edit, groups, against) for edit in variant.edits if edit.attribute in against):
            continue  # the sentences of a grammar change between all groups
        to = _named_at(variant, groups, "target_group")
        away = _named_at(variant, groups, "source_group")
        if to != away:  # an exchange inside one text leads to and from
            yield variant.id, "to" if to else "from"


def _compared(edit: Edit, groups: Mapping[str, Collection[str]], against: Mapping[str, Collection[str]]) -> bool:
    """Whether an edit is between a named group and one that the goal compares it with."""
    ends = (edit.source_group, edit.target_group)
    named, other = groups[edit.attribute], against[edit.attribute]
    return edit.kind == "agreement" or any(a in named and b in other for a, b in (ends, ends[::-1]))


def _named_at(variant: Variant, groups: Mapping[str, Collection[str]], end: str) -> bool:
    """Whether each named attribute that ``variant`` changes has a named group at this end."""
    ends: dict[str, bool] = {}
    for edit in variant.edits:
        if edit.kind != "agreement" and edit.attribute in groups:
            hit = getattr(edit, end) in groups[edit.attribute]
            ends[edit.attribute] = ends.get(edit.attribute, False) or hit
    return bool(ends) and all(ends.values())


def _of_set(model: str, attributes: tuple[str, ...], rows: Sequence[Turned], task: Task) -> Ends:
    if task.kind.number:
        return Ends(model=model, attributes=attributes, difference=_difference(rows))
    known, good = set(task.labels), task.favourable
    changed = [(case_id, other, named) for case_id, other, named, turned in rows if turned]
    turns: dict[tuple[str, str], set[str]] = {}
    for case_id, other, named in changed:
        if {other, named} <= known:
            turns.setdefault((other, named), set()).add(case_id)
    ranked = sorted(turns.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST]
    return Ends(
        model=model,
        attributes=attributes,
        better=None if good is None else len({case for case, other, named in changed if named == good != other}),
        worse=None if good is None else len({case for case, other, named in changed if other == good != named}),
        turns=tuple(Turn(other=a, named=b, seeds=len(cases)) for (a, b), cases in ranked),
    )


def _difference(rows: Sequence[Turned]) -> float | None:
    """Mean over texts of the amount with the named groups minus the one with others."""
    by_case: dict[str, list[float]] = {}
    for case_id, other, named, _ in rows:
        try:
            gap = float(named.replace(",", "")) - float(other.replace(",", ""))
        except ValueError:
            continue
        by_case.setdefault(case_id, []).append(gap)
    return round(fmean(map(fmean, by_case.values())), 6) if by_case else None


def originals(path: Path) -> set[str]:
    """The original texts of a run's cases."""
    from auditor.store.folder import RunFolder

    return {str(case.original.input) for case, _ in RunFolder.open(path).cases()}
