"""What the answers became towards the groups that a goal names.

Labels stand here, so none of this is handed to a planner that is a language model; it is for the report.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from auditor.agent.records import Ends, Turn
from auditor.core.types import Case, Edit, Variant

if TYPE_CHECKING:
    from auditor.agent.goal import Goal
    from auditor.run.result import Result
    from auditor.tasks import Task

Turned = tuple[str, str, str, bool]  # case, answer with others, answer with the named ones, whether it changed
MOST = 4  # turns of the answer that a report names for one set


def read(result: Result, goal: Goal, task: Task) -> tuple[Ends, ...]:
    """Turns of the answer between other groups and the named ones, by model and attribute set.

    Where the goal compares groups with each other, those it names first are the named ones here, and the others are
    those that it compares them with.

    Parameters
    ----------
    result : Result
        A run of the session.
    goal : Goal
        Whose groups are named.
    task : Task
        For its labels, and which of them is favourable.
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
        to = _all(variant, groups, "target_group")
        away = _all(variant, groups, "source_group")
        if to != away:  # an exchange inside one text leads to and from
            yield variant.id, "to" if to else "from"


def _compared(edit: Edit, groups: Mapping[str, Collection[str]], against: Mapping[str, Collection[str]]) -> bool:
    """Whether an edit is between a named group and one that the goal compares it with."""
    ends = (edit.source_group, edit.target_group)
    named, other = groups[edit.attribute], against[edit.attribute]
    return edit.kind == "agreement" or any(a in named and b in other for a, b in (ends, ends[::-1]))


def _all(variant: Variant, groups: Mapping[str, Collection[str]], end: str) -> bool:
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
