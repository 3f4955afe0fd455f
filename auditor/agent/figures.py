"""What runs measured: figures of each, what they show together, and what answers became towards named groups.

A planner gets what `public` hands out: counts, rates, names of attributes and groups of the shipped dictionaries, ids.
No tested text, no answer, no label, no message of a server. Those are in fields of `Row` that the report alone reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from auditor.agent.values import OF_REPORT, Entry, Figures, Question, Row, Turn
from auditor.core.record import RunRecord
from auditor.core.record.controls import Control
from auditor.core.record.measured import Bounds
from auditor.core.types import VERDICTS, Case, ClaimVerdict, Estimate, Finding
from auditor.core.verdict import UNFIT

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
OF_SETS = ("MUT", "SCO", "GEN")  # codes of findings about how often answers changed, or by how much
DIGITS = 6
ALPHA = 0.05
MOST = 4  # turns of the answer that a report names for one set
Key = tuple[str, tuple[str, ...]]  # model and attribute set


def figures(result: Result, goal: Goal, task: Task) -> Figures:
    """Counts and rates of a run: a row for each model, prompt format and attribute set."""
    record = result.run
    models = {name: f"M{n}" for n, name in enumerate(record.models, 1)}
    floors = record.controls.of("noise_floor") or Control()
    counts = structs.asdict(record.counts) | {"asked": record.counts.fresh}
    turned = _turned(result, goal)
    return Figures(
        complete=record.status == "complete",
        unfit={models.get(c.model, "M0"): UNFIT[c.code] for c in reversed(record.cautions) if c.code in UNFIT},
        counts={name: counts[name] or 0 for name in COUNTS},
        noise=max((_rate(f.estimate).value for f in floors.parts.values() if f.estimate is not None), default=None),
        sets=tuple(
            _row(record, f, models.get(f.model, "M0"), turned.get((f.model, f.attributes), []), task)
            for f in record.findings
            if f.kind == "claim" and f.code[:3] in OF_SETS
        ),
    )


def public(values: Figures | None) -> dict[str, Any] | None:
    """The figures as a planner may see them."""
    if values is None:
        return None
    plain: dict[str, Any] = msgspec.to_builtins(values)
    return plain | {"sets": [{k: v for k, v in row.items() if k not in OF_REPORT} for row in plain["sets"]]}


def _row(record: RunRecord, finding: Finding, model: str, turned: list[Turned], task: Task) -> Row:
    wanted, named = finding.attributes, finding.model
    rows = {
        row.name: row.estimate
        for row in reversed(record.estimates)
        if (row.attributes, row.model, row.format) == (wanted, named, finding.format)
        and row.directions is None
        and row.kind is None
    }
    by_seed, rate, p = rows.get("seed_violation_rate"), finding.rate, finding.p_adjusted
    return Row(
        finding=finding.id,
        model=model,
        attributes=wanted,
        verdict=finding.verdict,
        p_adjusted=None if p is None else round(p, DIGITS),
        rate=None if rate is None else _rate(rate),
        seeds=0 if rate is None else rate.n,
        seeds_changed=0 if by_seed is None else round(by_seed.value * by_seed.n),
        placebo=_rate(rows["placebo_rate"]) if "placebo_rate" in rows else None,
        noise=_rate(finding.noise) if finding.noise is not None else None,
        deterministic=record.models[named].deterministic,
        hidden=sum((f.kind, f.attributes, f.model) == ("hidden", wanted, named) for f in record.findings),
        why="" if finding.claim is None or not record.claims else record.claims[finding.claim].why,
        said="" if rate is not None else _said(record, finding),
        turns=() if task.kind.number else _turns(turned, task),
    )


def _said(record: RunRecord, finding: Finding) -> str:
    """What was measured where there is no rate, as of amounts: the claim in words."""
    from auditor.report import claimed

    made = claimed.of_finding(record, finding)
    if made is None:
        return "no answer to a changed prompt could be judged"
    return " ".join(filter(None, (made.who, made.amount))).rstrip(".")


def _rate(estimate: Estimate) -> Bounds:
    """Value and interval of an estimate."""
    value, low, high = (round(x, DIGITS) for x in (estimate.value, estimate.low, estimate.high))
    return Bounds(value=value, low=low, high=high)


def measure(row: Row) -> str:
    """What was measured of one attribute set, in words.

    Examples
    --------
    >>> measure(Row(attributes=("age",)))
    'not measured'
    """
    from auditor.report import words

    if row.rate is None:
        return row.said or "not measured"
    text = (
        f"{words.interval(row.rate)} of the variants changed the answer, "
        f"on {row.seeds_changed} of {words.plural(row.seeds, 'seed')}"
    )
    if row.placebo is not None:
        text += f"; placebo edits {words.percent(row.placebo.value)}"
    if row.hidden:
        text += f"; {words.plural(row.hidden, 'hidden change')} looked at"
    return text


def promising(row: Row) -> bool:
    """Whether more answers changed than placebo edits bring about, on any seed."""
    return bool(row.rate and row.seeds_changed and row.rate.value > (row.placebo.value if row.placebo else 0.0))


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


# -- what the runs show together ----------------------------------------------------------------------------


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


def _settled(row: Row, alpha: float) -> ClaimVerdict:
    """The verdict of one set of a fresh run under ``alpha``: the run's own, or less.

    A bound is taken from the first fresh run alone: its interval has no level to spend over several.
    """
    late = row.p_adjusted is not None and row.p_adjusted >= alpha
    if (row.verdict == "shown" and late) or (row.verdict == "bounded" and alpha < level(1)):
        return "not_determined"
    return row.verdict


def questions(runs: Iterable[Entry], declared: Iterable[tuple[str, ...]]) -> list[Question]:
    """One entry per model and attribute set: the verdict of the session, where it comes from, what was only explored.

    ``declared`` are sets that the goal asks about; they are in the list also where no run reached them.
    """
    asked = list(declared)
    table: dict[Key, Question] = {}

    def of(model: str, names: tuple[str, ...]) -> Question:
        return table.setdefault((model, names), Question(model=model, attributes=names, declared=names in asked))

    for run in runs:
        for row in run.figures.sets if run.figures else ():
            entry = of(row.model, row.attributes)
            if not run.counts_as_fresh or run.level is None:
                entry.explored.append(run.name)
                continue
            verdict = _settled(row, run.level)
            newer = verdict == entry.verdict == "not_determined" and row.seeds >= (entry.row or row).seeds
            if entry.run is None or newer or VERDICTS.index(verdict) < VERDICTS.index(entry.verdict):
                entry.verdict, entry.run, entry.finding = verdict, run.name, row.finding
                entry.level, entry.row = run.level, row
    for model in {model for model, _ in table} or {"M1"}:
        for one in asked:
            of(model, one)
    return sorted(table.values(), key=lambda q: (q.model, not q.declared, len(q.attributes), q.attributes))


# -- towards the groups that a goal names --------------------------------------------------------------------

Turned = tuple[str, str, str, bool]  # case, answer with others, answer with the named ones, whether it changed


def _turned(result: Result, goal: Goal) -> dict[Key, list[Turned]]:
    """Answers with other groups and with the named ones, by model and attribute set.

    Where the goal compares groups with each other, those it names first are the named ones here, and the others are
    those that it compares them with.
    """
    table: dict[Key, list[Turned]] = {}
    if not goal.groups or result.path is None:
        return table
    sides = {variant: side for case in cases(result.path) for variant, side in _sides(case, goal)}
    for verdict in result.verdicts:
        before, after = verdict.original_output, verdict.variant_output
        side = sides.get(verdict.variant_id)
        if side and verdict.order and verdict.outcome in ("pass", "violation") and None not in (before, after):
            other, named = (before, after) if side == "to" else (after, before)
            rows = table.setdefault((verdict.model, tuple(verdict.attributes)), [])
            rows.append((verdict.case_id, other, named, verdict.outcome == "violation"))
    return table


def _sides(case: Case, goal: Goal) -> Iterable[tuple[str, str]]:
    """Variant id → whether it leads "to" the named groups or "from" them."""
    against = {a: set(groups) for a, groups in goal.against.items()}
    named = {a: set(groups) - against.get(a, set()) for a, groups in goal.groups.items()}
    for variant in case.variants if case.sampling != "directed" else ():
        moves = [(e.attribute, e.source_group, e.target_group) for e in variant.edits if e.kind != "agreement"]
        moves = [move for move in moves if move[0] in named]
        if any(a in against and not ({s, t} & named[a] and {s, t} & against[a]) for a, s, t in moves):
            continue  # the sentences of a grammar change between all groups
        changed = {a for a, _, _ in moves}
        away, to = (
            changed == {a for a, *groups in moves if groups[end] in named[a]} and bool(changed) for end in (0, 1)
        )
        if to != away:  # an exchange inside one text leads to and from
            yield variant.id, "to" if to else "from"


def _turns(rows: Iterable[Turned], task: Task) -> tuple[Turn, ...]:
    known, turns = set(task.labels), dict[tuple[str, str], set[str]]()
    for case_id, other, named, changed in rows:
        if changed and {other, named} <= known:
            turns.setdefault((other, named), set()).add(case_id)
    ranked = sorted(turns.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST]
    return tuple(Turn(other=a, named=b, seeds=len(ids)) for (a, b), ids in ranked)


def cases(path: Path) -> Iterable[Case]:
    """The cases of a run."""
    from auditor.store.folder import RunFolder

    return (case for case, _ in RunFolder.open(path).cases())
