"""The report of a session: goal, steps with reasons, what was measured, what was not looked at, budget used.

Everything that came from outside is made visible and escaped where it is laid out; the planner's own words stand in
quotation marks and are called that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from auditor.agent import answer
from auditor.agent import figures as measured
from auditor.agent.goal import Goal
from auditor.agent.session import Step
from auditor.agent.values import Entry, Figures, Rate, Record
from auditor.core.record.controls import Control
from auditor.core.types import Estimate
from auditor.report import words
from auditor.report.document import Block, Chart, Document, Items, Section, Table, Text

PURPOSES = {"pilot": "pilot (exploratory)", "fresh": "fresh texts", "search": "search (exploratory)"}


def build(record: Record, steps: Sequence[Step]) -> Document:
    """Lay a session out: the answer, how it was read, what fresh runs show, steps, runs, what was not seen, budget."""
    parts = (
        ("answer", "Answer", _answer(record), False),
        ("read", "How the question was read", _goal(record), False),
        ("fresh", "What the runs on fresh texts show", _answers(record), False),
        ("runs", "Runs", _runs(record), False),
        ("unseen", "What was not looked at", _unseen(record), False),
        ("budget", "Budget", _used(record), False),
        ("steps", "Steps and reasons", _steps(steps), True),
        ("method", "Method and limits", _method(), True),
    )
    return Document(
        title=record.goal.text,
        name=f"Audit session {record.id}",
        meta="",
        banners=(),
        first=None,
        sections=tuple(
            Section(id=id, title=title, short=title, blocks=tuple(blocks), folded=folded)
            for id, title, blocks, folded in parts
        ),
    )


def _answer(record: Record) -> list[Block]:
    further = answer.others(record)
    return [
        *(Text(line, "lead") for line in answer.lead(record)),
        *_chart(record),
        *((Text("Each part, and smaller sets:"), Items(tuple(further))) if further else ()),
    ]


def _goal(record: Record) -> list[Block]:
    goal = record.goal
    names = "those that the texts name" if goal.attributes is None else words.listing(goal.attributes)
    groups = "; ".join(
        f"{name}: {words.listing([words.group(g) for g in groups])}" for name, groups in goal.groups.items()
    )
    items = [
        f"Task: {goal.task}. Attributes: {names}, up to {goal.order} together."
        + (f" Groups named: {groups}." if groups else ""),
        f"Model: {words.listing(record.models)}. Texts: {record.texts.source}, {record.texts.n:,} distinct.",
        f"Planner: {record.planner}. Session: {record.status}"
        + (f" ({record.status_reason})." if record.status_reason else "."),
    ]
    for what, notes in (("Read from the goal", goal.read), ("Filled in", goal.assumed)):
        if notes:
            items.append(f"{what}: {'; '.join(notes)}.")
    return [Items(tuple(items))]


def _answers(record: Record) -> list[Block]:
    rows = []
    for q in record.questions:
        if not (q.declared or q.run):
            continue
        name = words.attributes(q.attributes)
        rows.append(
            (
                f"{q.model}: {name}" if len(record.models) > 1 else name,
                words.verdict(q.verdict),
                measured.sentence(q.row).partition(": ")[2] if q.row else "no fresh run reached it",
                f"{q.run} {q.finding}, level {q.level:g}" if q.run else "–",
                f"looked at in {', '.join(q.explored)}" if q.explored else "",
            )
        )
    return [
        Text(
            "A verdict stands here only where a run on texts that no earlier run had asked gave it, by a plan that was "
            "on disk before. What pilots and searches saw is exploratory: it chose where to look next."
        ),
        *_table("Verdicts of fresh runs", ("Changed", "Verdict", "Measured", "From", "Exploratory"), rows),
        *_directions(record),
    ]


def _directions(record: Record) -> list[Block]:
    """Directions that fresh runs showed, those that touch the groups of the goal where it names some."""
    named = {(a, g) for a, groups in record.goal.groups.items() for g in groups}
    items = []
    for run in record.done:
        for row in run.figures.directions if run.figures and run.counts_as_fresh else ():
            ends = {(a, g) for a, source, target in row.steps for g in (source, target)}
            if not named or named & ends:
                items.append(f"{run.name} {row.finding}: {words.direction(row.steps)}")
    if not items:
        return []
    what = "Directions that these runs showed" + (" and that touch the groups of the goal:" if named else ":")
    return [Text(what), Items(tuple(items))]


class _Step(msgspec.Struct):
    """What the report reads of a step; ``figures`` of a run are `Figures`, others are counts by name."""

    kind: str
    reason: str
    run: str = ""
    error: str = ""
    figures: dict[str, object] = {}


def _steps(steps: Sequence[Step]) -> list[Block]:
    items: list[str | Items] = []
    for number, step in enumerate(msgspec.convert(steps, list[_Step]), 1):
        text = f"{number}. {' '.join(filter(None, (step.kind, step.run)))}: {step.reason}"
        if step.kind != "read" and (listed := _in_words(step.figures)):
            text += f" [{'; '.join(listed)}]"
        if step.error:
            text += f" [{step.error}]"
        if note := step.figures.get("planner_note"):
            text += f" — the planner's own words, no result: “{note}”"
        items.append(text)
        if step.kind == "read" and (below := measured.lines(msgspec.convert(step.figures, Figures))):
            items.append(Items(tuple(below)))
    return [Items(tuple(items))]


FIGURES = {
    "texts": "{} texts",
    "usable": "{} of them can be changed",
    "joint": "{} name all the attributes",
    "least": "{} name the attribute that the fewest name",
    "calls": "{} calls",
    "calls_per_text": "{} calls a text, controls included",
    "cases": "{} cases",
    "valid": "{} valid variants",
    "texts_chosen": "{} texts chosen",
    "texts_wanted": "{} texts wanted",
    "texts_left": "{} left that no run asked",
    "texts_affordable": "the budget reaches for {}",
    "calls_left": "{} calls left",
}
SHARES = {
    "noise": "same prompt, other answer: {}",
    "share_of_seeds_changed": "answers changed on {} of the texts of the rarest set",
}


def _in_words(figures: Mapping[str, object]) -> list[str]:
    """The figures behind a step, in words; what is None had no limit or was not measured."""
    out = []
    if isinstance(open_sets := figures.get("open"), list):
        out.append(f"open: {words.listing([words.attributes(names) for names in open_sets])}")
    for forms, written in ((SHARES, words.percent), (FIGURES, words.figure)):
        for name, form in forms.items():
            if isinstance(value := figures.get(name), int | float):
                said = form.format(written(value))
                out.append(re.sub(r"(text|call|case|variant)s\b", r"\1", said, count=1) if value == 1 else said)
    if isinstance(cost := figures.get("cost_usd"), int | float) and cost:
        out.append(f"cost {cost:.4f} USD")
    return out


def _runs(record: Record) -> list[Block]:
    out: list[Block] = []
    for run in record.runs:
        request, figures = run.request, run.figures
        state = "; not finished" if figures is None else "" if figures.complete else "; partial"
        what = (
            f"{run.name}: {PURPOSES[run.purpose]}, {words.plural(run.texts, 'text')}, "
            f"{words.attributes(request.attributes) if request.attributes else 'attributes that the texts name'}, "
            f"order {request.order}, suite {request.suite}"
            f"{', groups ' + words.listing(request.groups) if request.groups else ''}"
            f"; {words.plural(run.calls, 'call')}{_cost(run)}{state}"
        )
        out.append(Text(what, link=f"{run.folder}/report.html" if run.folder and figures else ""))
        beside = "" if run.counts_as_fresh else " (in this run; exploratory)"
        out += _table(
            f"Verdicts of {run.name}",
            ("Finding", "Changed", "Verdict of the run", "Measured"),
            [
                (
                    row.finding,
                    words.attributes(row.attributes),
                    words.verdict(row.verdict) + beside,
                    measured.sentence(row).partition(": ")[2],
                )
                for row in (figures.sets if figures else ())
            ],
        )
        if run.notes:
            out.append(Items(tuple(run.notes)))
    return out


def _cost(run: Entry) -> str:
    """What a run cost; nothing is said of models on this machine."""
    return {"free": "", "unknown": ", cost not known"}.get(run.priced, f", {run.cost_usd:.4f} USD")


def _unseen(record: Record) -> list[Block]:
    from auditor.perturb import dictionaries

    goal = record.goal
    looked = {name for run in record.done if run.figures for s in run.figures.sets for name in s.attributes}
    items = []
    if others := sorted(set(dictionaries.builtin()) - looked):
        why = "the goal does not name them" if goal.attributes else "the texts do not name them, or too few do"
        items.append(f"Attributes {words.listing(others)}: {why}.")
    if goal.groups:
        items.append(
            _not_changed(goal)
            if any(r.request.groups for r in record.runs)
            else "The goal names groups; sentences of a grammar were asked for all groups of their attributes."
        )
    if record.texts_left:
        items.append(f"{words.plural(record.texts_left, 'text')} that can be changed: no run asked them.")
    if not record.runs:
        items.append("Nothing was asked: no run was made.")
    elif record.texts.n > record.texts_left and not any(r.request.grammar for r in record.runs):
        items.append("Generated texts (suite grammar): no run asked any.")
    items.append("Other prompt formats, other wordings of the task, other languages: not part of a session.")
    return [Items(tuple(items))]


def _not_changed(goal: Goal) -> str:
    """Which changes of the attributes of the goal were not made."""
    if set(goal.against) >= set(goal.groups):
        return "Changes between other groups than those that the goal compares with each other."
    text = "Changes between groups that the goal does not name: each change leads to a named group, or from one to any"
    if not goal.against:
        return f"{text} other."
    return f"{text} other; of {words.listing(sorted(goal.against))}, it is between the groups that the goal compares."


def _used(record: Record) -> list[Block]:
    spent, limits = record.spent, record.limits
    priced = {run.priced for run in record.runs} or {"free"}
    cost = (
        "none: the model runs on this machine"
        if priced == {"free"}
        else "not known: no price for this model (--price-in, --price-out)"
        if "unknown" in priced
        else f"{spent.cost_usd:.4f}"
    )
    rows = [
        ("calls of the model", _of(f"{spent.calls:,}", limits.max_calls)),
        ("cost of the model, USD", _of(cost, limits.max_cost)),
        ("seconds", _of(f"{spent.seconds:.0f}", limits.max_seconds)),
    ]
    if record.planner == "rules":
        rows.append(("calls of the planner", "none: rules"))
    else:
        rows += [
            ("calls of the planner", _of(f"{spent.planner_calls}", limits.planner_max_calls)),
            ("cost of the planner, USD", _of(f"{spent.planner_cost_usd:.4f}", limits.planner_max_cost)),
        ]
    return _table("What was used", ("What", "Used"), rows)


def _of(value: str, limit: object) -> str:
    return value if limit is None else f"{value} of {limit}"


def _method() -> list[Block]:
    text = (
        "The planner proposes runs; verdicts come from oracles and statistics alone. The first fresh run tests at "
        "level 0.025, each later one at half the level before, so that all fresh runs of a session together keep 5 %. "
        "Within a run, Holm's correction covers all its claims."
    )
    return [Text(text), Items(words.lines("limits"))]


def _table(caption: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[Block]:
    """A table, where it has rows."""
    return [Table(caption=caption, columns=columns, lines=tuple(rows))] if rows else []


def _estimate(rate: Rate | None, n: int) -> Estimate | None:
    if rate is None:
        return None
    return Estimate(value=rate.value, low=rate.low, high=rate.high, level=0.95, n=n, n_skipped=0, method="")


def _chart(record: Record) -> Iterable[Chart]:
    """Rates of the attribute sets with their intervals, noise and placebo edits beside them."""
    from auditor.report import charts, view

    asked = {(q.model, q.attributes): (q, q.row) for q in answer.ordered(record) if q.row is not None and q.row.rate}
    if not asked:
        return
    models = sorted({model for model, _ in asked})
    empty = view.Cell(rate=None, noise=None, verdict="not_tested", hidden=None, claim=None)
    cells = {
        key: view.Cell(
            rate=_estimate(row.rate, row.seeds),
            noise=Control.of(noise) if (noise := _estimate(row.intervals.get("noise"), row.seeds)) else None,
            verdict=q.verdict,
            hidden=None,
            claim=None,
            placebo=_estimate(row.intervals.get("placebo"), row.seeds),
        )
        for key, (q, row) in asked.items()
    }
    rows = [
        view.Row(
            label=" + ".join(words.group(a) for a in names),
            attributes=names,
            seeds=None,
            valid=None,
            discarded=None,
            cells=tuple(cells.get((model, names), empty) for model in models),
        )
        for names in dict.fromkeys(names for _, names in asked)
    ]
    subjects = [view.Subject(model=m, format="", name=record.models[int(m[1:]) - 1]) for m in models]
    drawn = charts.forest(rows, subjects, name="answers", title="Share of changed versions with another answer")
    caption = (
        "Share of changed versions in which the answer changed, with 95 % intervals, in the fresh run that the verdict "
        "comes from. Triangle: shown; circle: not determined. Grey band: the same prompt asked again; grey bar: edits "
        "that change no group."
    )
    yield Chart(drawn, caption)
