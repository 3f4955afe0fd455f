"""The report of a session; the planner's own words are in quotation marks and are called that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from auditor.agent import figures as measured
from auditor.agent.session import Step
from auditor.agent.values import Question, Record
from auditor.core.types import VERDICTS
from auditor.perturb import dictionaries
from auditor.report import words
from auditor.report.document import Block, Document, Items, Section, Table, Text

LEADS = {
    "shown": "A difference was shown",
    "bounded": "Changes were bounded below δ",
    "not_determined": "Not determined: a difference was neither shown nor bounded",
    "not_tested": "Not tested on fresh texts",
    "unfit": "The model cannot be judged",
}
PURPOSES = {"pilot": "pilot (exploratory)", "fresh": "fresh texts"}
FRESH = (
    "A verdict comes only from a run on texts that no earlier run had asked, by a plan that was on disk before. Pilots "
    "are exploratory: they choose where to look next."
)
METHOD = (
    "The planner proposes runs; verdicts come from oracles and statistics alone. The first fresh run tests at level "
    "0.025, each later one at half the level before. So all fresh runs of a session together keep 5 %. "
    "Within a run, Holm's correction covers all its claims."
)


def build(record: Record, steps: Sequence[Step]) -> Document:
    """Lay a session out: the answer, how it was read, runs, what was not seen, budget, steps."""
    ahead = record.status == "outline"
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
            Section(id=id, title=title, blocks=tuple(blocks), folded=id in ("steps", "method") and not ahead)
            for id, title, blocks in parts
            if not ahead or id in ("answer", "read", "budget", "steps")
        ),
    )


def _answer(record: Record) -> Iterable[Block]:
    if record.status == "outline":
        yield Text("Nothing was asked.", "lead")
        return
    yield from (Text(line, "lead") for line in lead(record))
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
        if run.notes:
            yield Items(tuple(run.notes))


def _unseen(record: Record) -> Iterable[str]:
    goal = record.goal
    looked = {name for run in record.done if run.figures for s in run.figures.sets for name in s.attributes}
    if left := sorted(set(dictionaries.builtin()) - looked):
        why = "the goal does not name them" if goal.attributes else "the texts do not name them, or too few do"
        yield f"Attributes {words.listing(left)}: {why}."
    if goal.groups and record.runs and not any(r.request.groups for r in record.runs):
        yield "Named groups alone: sentences of a grammar were asked for all groups of their attributes."
    elif goal.groups:
        yield f"Changes other than {words.listing(goal.changes)}: the goal does not name them."
    if record.texts_left:
        yield f"{words.plural(record.texts_left, 'text')} that can be changed: no run asked them."
    if not record.runs:
        yield "Nothing was asked: no run was made."
    yield "Other prompt formats, other wordings of the task, other languages: not part of a session."


def _used(record: Record) -> Iterable[tuple[str, str]]:
    spent, limits = record.spent, record.limits
    priced = {run.priced for run in record.runs} or {"free"}
    cost = "not known: no price for this model (--price IN,OUT)" if "unknown" in priced else f"{spent.cost_usd:.4f}"
    if priced == {"free"}:
        cost, limits = "none: the model runs on this machine", replace(limits, max_cost=None)
    used: tuple[tuple[str, object, object], ...] = (
        ("calls of the model", f"{spent.calls:,}", limits.max_calls),
        ("cost of the model, USD", cost, limits.max_cost),
        ("seconds", f"{round(spent.seconds):,}", limits.max_seconds),
    )
    return ((what, f"{used}" if limit is None else f"{used} of {limit}") for what, used, limit in used)


def _steps(record: Record, steps: Sequence[Step]) -> Iterable[str]:
    for number, step in enumerate(steps, 1):
        figures = step.get("figures") or {}
        listed = [f"{words.group(n)} {words.figure(v)}" for n, v in figures.items() if isinstance(v, int | float)]
        if "cost_usd" in figures and figures["cost_usd"] is None:
            listed.append("cost not known")
        if sets := figures.get("open"):
            listed.append(f"open: {words.listing([words.attributes(names) for names in sets])}")
        text = f"{number}. {' '.join(filter(None, (step['kind'], step.get('run'))))}: {step['reason']}"
        text += f" [{'; '.join(listed)}]" if listed and step["kind"] != "read" else ""
        text += f" [{step['error']}]" if step.get("error") else ""
        if note := figures.get("planner_note"):
            text += f" — the planner's own words, no result: “{note}”"
        yield text


# -- the answer, one paragraph for each model --------------------------------------------------------------


def lead(record: Record) -> list[str]:
    """Return the answer to the question, one paragraph for each model, or why there is none."""
    runs = record.done
    if not runs:
        return [f"Nothing was measured: {(record.status_reason or 'no run came to its end').rstrip('.')}."]
    empty = [why for r in runs if (why := measured.unread(r.figures))]
    if len(empty) < len(runs):
        return [_answer_of(record, model, questions) for model, questions in _by_model(record)]
    if not any(r.figures and r.figures.counts["asked"] + r.figures.counts["cached"] for r in runs):
        return [f"Nothing was measured: {empty[0]}. {words.sentence('; '.join(runs[0].notes))}"]
    return [
        f"Nothing was measured: {empty[0]}. What the model answered, and what the task {record.goal.task} reads, is in "
        "the report of the run. Give a model that answers so, or a task file of your own (--task)."
    ]


def _by_model(record: Record) -> Iterable[tuple[str, list[Question]]]:
    """Yield each model with its questions, first the one that the goal asks."""
    asked = record.goal.attributes

    def first(q: Question) -> tuple[float, int]:
        if asked is not None:
            return -len(set(q.attributes) & set(asked)), len(q.attributes)
        # Nothing in particular was asked: what is best supported, and of that what changed most, answers.
        changed = q.row.rate.value if q.row and q.row.rate else 0.0
        return VERDICTS.index(q.verdict) - min(0.99, changed), len(q.attributes)

    for model in sorted({q.model for q in record.questions}):
        mine = [q for q in record.questions if q.model == model and (q.declared or q.run)]
        if mine:
            yield model, sorted(mine, key=first)


def _answer_of(record: Record, model: str, questions: Sequence[Question]) -> str:
    leading = _leading(questions) if record.goal.attributes else questions[:1]
    said = " ".join(_set(record, q, alone=len(leading) == len(questions) == 1) for q in leading)
    return f"{record.models[int(model[1:]) - 1]}: {said}" if len(record.models) > 1 else said


def _leading(questions: Sequence[Question]) -> list[Question]:
    """Return the smallest sets with a shown difference; without one, what the goal asks."""
    shown = [q for q in questions if q.declared and q.verdict == "shown" and q.row is not None]
    least = [q for q in shown if not any(set(o.attributes) < set(q.attributes) for o in shown)]
    largest = len(questions[0].attributes)
    asked = [q for q in questions if q.declared and len(q.attributes) == largest]
    return least or asked or list(questions[:1])


def _set(record: Record, q: Question, *, alone: bool) -> str:
    """Say what was measured of one set, in full."""
    row = q.row
    if row is None or not (row.rate or row.said):
        return (
            f"{LEADS['not_tested']}: {words.attributes(q.attributes)}. {words.sentence(record.status_reason)}".rstrip()
        )
    names = words.listing([words.group(a) for a in q.attributes])
    about = "" if alone else f" for {names}" + (" together" if len(q.attributes) > 1 else "")
    head, colon, rest = LEADS[q.verdict].partition(":")
    mine = next((run.figures for run in record.runs if run.name == q.run), None)
    if mine is not None and q.verdict != "shown" and (unfit := mine.unfit.get(q.model)):
        head, colon, rest = LEADS["unfit"], ": ", unfit
    why = "" if q.verdict == "shown" else row.why
    if q.verdict == "not_determined" and row.verdict != q.verdict:
        why = f"the run alone says {words.verdict(row.verdict, symbol=False)}, at a level above that of a session"
    again = "" if row.deterministic else "The same prompt was not asked again."
    if row.noise is not None:
        again = f"The same prompt asked again got another answer in {words.percent(row.noise.value)}."
    parts = [
        f"{head}{about}{colon}{rest}.",
        *(row.said or [words.sentence(measured.measure(row))]),
        again,
        why and f"Why: {words.sentence(why)}",
        f"(Run {q.run}, finding {q.finding}.)",
        mine is not None and not mine.complete and f"Run {q.run} is partial: this rests on the texts that it reached.",
    ]
    return " ".join(filter(None, parts))
