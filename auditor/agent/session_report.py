"""The report of a session: answer, verdicts, runs, what was not looked at, budget used, steps with reasons.

Everything that came from outside is made visible and escaped where it is laid out; the planner's own words are in
quotation marks and are called that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from auditor.agent import answer
from auditor.agent import figures as measured
from auditor.agent.session_folder import Step
from auditor.agent.values import Entry, Record
from auditor.report import words
from auditor.report.document import Block, Document, Items, Section, Table, Text

PURPOSES = {"pilot": "pilot (exploratory)", "fresh": "fresh texts"}
NO_GROUPS = "The goal names groups; sentences of a grammar were asked for all groups of their attributes."
FRESH = (
    "A verdict is given only where a run on texts that no earlier run had asked gave it, by a plan that was on disk "
    "before. What pilots saw is exploratory: it chose where to look next."
)
METHOD = (
    "The planner proposes runs; verdicts come from oracles and statistics alone. The first fresh run tests at "
    "level 0.025, each later one at half the level before, so that all fresh runs of a session together keep 5 %. "
    "Within a run, Holm's correction covers all its claims."
)


def build(record: Record, steps: Sequence[Step]) -> Document:
    """Lay a session out: the answer, how it was read, runs, what was not seen, budget, steps."""
    parts: tuple[tuple[str, str, Iterable[Block]], ...] = (
        ("answer", "Answer", _answer(record)),
        ("read", "How the question was read", [Items(tuple(_goal(record)))]),
        ("runs", "Runs", _runs(record)),
        ("unseen", "What was not looked at", [Items(tuple(_unseen(record)))]),
        ("budget", "Budget", [Table(caption="What was used", columns=("What", "Used"), lines=tuple(_used(record)))]),
        ("steps", "Steps and reasons", [Items(tuple(_steps(record, steps)))]),
        ("method", "Method and limits", [Text(METHOD), Items(words.lines("limits"))]),
    )
    return Document(
        title=record.goal.text,
        name=f"Audit session {record.id}",
        sections=tuple(
            Section(id=id, title=title, blocks=tuple(blocks), folded=id in ("steps", "method"))
            for id, title, blocks in parts
        ),
    )


def _answer(record: Record) -> Iterable[Block]:
    yield from (Text(line, "lead") for line in answer.lead(record))
    yield from _verdicts(record)
    yield Text(FRESH)


def _goal(record: Record) -> Iterable[str]:
    goal = record.goal
    names = "those that the texts name" if goal.attributes is None else words.listing(goal.attributes)
    groups = "; ".join(f"{name}: {words.listing([words.group(g) for g in of])}" for name, of in goal.groups.items())
    named = f" Groups named: {groups}." if groups else ""
    yield f"Task: {goal.task}. Attributes: {names}, up to {goal.order} together.{named}"
    yield f"Model: {words.listing(record.models)}. Texts: {record.texts.source}, {record.texts.n:,} distinct."
    why = f" ({record.status_reason})" if record.status_reason else ""
    yield f"Planner: {record.planner}. Session: {record.status}{why}."
    for what, notes in (("Read from the goal", goal.read), ("Filled in", goal.assumed)):
        if notes:
            yield f"{what}: {'; '.join(notes)}."


def _verdicts(record: Record) -> Iterable[Block]:
    rows = tuple(
        (
            f"{q.model}: " * (len(record.models) > 1) + words.attributes(q.attributes),
            words.verdict(q.verdict),
            measured.measure(q.row) if q.row else "no fresh run reached it",
            f"{q.run} {q.finding}, level {q.level:g}" if q.run else "–",
            f"looked at in {', '.join(q.explored)}" if q.explored else "",
        )
        for q in record.questions
        if q.declared or q.run
    )
    if rows:
        columns = ("Changed", "Verdict", "Measured", "From", "Exploratory")
        yield Table(caption="Verdicts of fresh runs", columns=columns, lines=rows)


def _runs(record: Record) -> Iterable[Block]:
    for run in record.runs:
        request = run.request
        state = "; not finished" if run.figures is None else "" if run.figures.complete else "; partial"
        names = words.attributes(request.attributes) if request.attributes else "attributes that the texts name"
        groups = f", groups {words.listing(request.groups)}" if request.groups else ""
        cost = {"free": "", "unknown": ", cost not known"}.get(run.priced, f", {run.cost_usd:.4f} USD")
        yield Text(
            f"{run.name}: {PURPOSES[run.purpose]}, {words.plural(run.texts, 'text')}, {names}, order {request.order}, "
            f"suite {request.suite}{groups}; {words.plural(run.calls, 'call')}{cost}{state}",
            link=f"{run.folder}/report.html" if run.folder and run.figures else "",
        )
        if lines := [*_seen(run), *run.notes]:
            yield Items(tuple(lines))


def _seen(run: Entry) -> list[str]:
    """What a run saw of each set, with its own verdict; sets without a change last."""
    own = "" if run.counts_as_fresh else " (in this run; exploratory)"
    rows = sorted(run.figures.sets if run.figures else (), key=lambda r: (not measured.promising(r), len(r.attributes)))
    return [
        f"{row.finding} {words.attributes(row.attributes)}: {words.verdict(row.verdict)}{own}; {measured.measure(row)}"
        for row in rows
    ]


def _unseen(record: Record) -> Iterable[str]:
    from auditor.perturb import dictionaries

    goal = record.goal
    looked = {name for run in record.done if run.figures for s in run.figures.sets for name in s.attributes}
    if left := sorted(set(dictionaries.builtin()) - looked):
        why = "the goal does not name them" if goal.attributes else "the texts do not name them, or too few do"
        yield f"Attributes {words.listing(left)}: {why}."
    if goal.groups and not any(r.request.groups for r in record.runs):
        yield NO_GROUPS
    elif goal.groups and set(goal.against) >= set(goal.groups):
        yield "Changes between other groups than those that the goal compares with each other."
    elif goal.groups:
        compared = f"; of {words.listing(sorted(goal.against))}, it is between the groups that the goal compares"
        yield (
            "Changes between groups that the goal does not name: each change leads to a named group, or from one to "
            f"any other{compared if goal.against else ''}."
        )
    if record.texts_left:
        yield f"{words.plural(record.texts_left, 'text')} that can be changed: no run asked them."
    if not record.runs:
        yield "Nothing was asked: no run was made."
    yield "Other prompt formats, other wordings of the task, other languages: not part of a session."


def _used(record: Record) -> Iterable[tuple[str, str]]:
    spent, limits = record.spent, record.limits
    priced = {run.priced for run in record.runs} or {"free"}
    cost = "not known: no price for this model (--price-in, --price-out)" if "unknown" in priced else spent.cost_usd
    yield "calls of the model", _of(spent.calls, limits.max_calls)
    free = priced == {"free"}
    yield "cost of the model, USD", "none: the model runs on this machine" if free else _of(cost, limits.max_cost)
    yield "seconds", _of(round(spent.seconds), limits.max_seconds)
    if record.planner != "rules":
        yield "calls of the planner", _of(spent.planner_calls, limits.planner_max_calls)
        yield "cost of the planner, USD", _of(spent.planner_cost_usd, limits.planner_max_cost)


def _of(value: float | str, limit: object) -> str:
    used = f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
    return used if limit is None else f"{used} of {limit}"


def _steps(record: Record, steps: Sequence[Step]) -> Iterable[str]:
    for number, step in enumerate(steps, 1):
        figures = step.get("figures") or {}
        text = f"{number}. {' '.join(filter(None, (step['kind'], step.get('run'))))}: {step['reason']}"
        if step["kind"] != "read" and (listed := _listed(figures)):
            text += f" [{'; '.join(listed)}]"
        if error := step.get("error"):
            text += f" [{error}]"
        if note := figures.get("planner_note"):
            text += f" — the planner's own words, no result: “{note}”"
        yield text


def _listed(figures: Mapping[str, object]) -> Iterable[str]:
    """The figures behind a step, by name; what is None had no limit or was not measured."""
    for name, value in figures.items():
        if isinstance(value, int | float):
            yield f"{words.group(name)} {words.figure(value)}"
        elif name == "open" and isinstance(value, list):
            yield f"open: {words.listing([words.attributes(names) for names in value])}"
