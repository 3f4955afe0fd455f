"""The first lines of a report: the question that was asked, answered with figures and a verdict.

Verdicts are those of `auditor.agent.figures`; nothing else is concluded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.agent import figures as measured
from auditor.agent.settings import LABELS
from auditor.agent.values import Question, Record, Row
from auditor.core.types import VERDICTS
from auditor.report import words

LEADS = {
    "shown": "A difference was shown",
    "bounded": "Changes were bounded below δ",
    "not_determined": "Not determined: a difference was neither shown nor bounded",
    "not_tested": "Not tested on fresh texts",
    "unfit": "The model cannot be judged",
}


def lead(record: Record) -> list[str]:
    """The answer to the question, one paragraph for each model; why there is none where there is none."""
    runs = record.done
    if not runs:
        return [f"Nothing was measured: {(record.status_reason or 'no run came to its end').rstrip('.')}."]
    empty = [why for r in runs if (why := measured.unread(r.figures))]
    if len(empty) < len(runs):
        return [_prefix(record, model) + _main(record, questions) for model, questions in _by_model(record)]
    if not any(r.figures and r.figures.counts["asked"] + r.figures.counts["cached"] for r in runs):
        return [f"Nothing was measured: {empty[0]}. {words.sentence('; '.join(runs[0].notes))}"]
    known = "reads answers of another form"
    if record.labels:
        such = "the answers" if len(record.labels) < LABELS else "answers such as"
        known = f"knows {such} {words.listing(record.labels, 'or')}"
    return [
        f"Nothing was measured: {empty[0]}. The task {record.goal.task} {known}; what the model answered "
        "is in the report of the run. Give a model that answers so, or a task file of your own (--task)."
    ]


def _by_model(record: Record) -> Iterable[tuple[str, list[Question]]]:
    """Model → its questions; the one that the goal asks is first."""
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


def _prefix(record: Record, model: str) -> str:
    return f"{record.models[int(model[1:]) - 1]}: " if len(record.models) > 1 else ""


def _leading(questions: Sequence[Question]) -> list[Question]:
    """What the first lines answer with.

    The smallest sets for which a difference was shown: where one of age is shown, one of age and gender together need
    have nothing to do with gender. Where none was shown: what the goal asks, each set of several that are asked alone.
    """
    shown = [q for q in questions if q.declared and q.verdict == "shown" and q.row is not None]
    least = [q for q in shown if not any(set(o.attributes) < set(q.attributes) for o in shown)]
    largest = len(questions[0].attributes)
    asked = [q for q in questions if q.declared and len(q.attributes) == largest]
    return least or asked or list(questions[:1])


def _main(record: Record, questions: Sequence[Question]) -> str:
    """The answer for one model: the sets that lead in full, then what came of the sets around them."""
    if record.goal.attributes is None:
        return _overview(record, questions)
    leading, full = _leading(questions), questions[0]
    parts = [_set(record, q, alone=len(leading) == len(questions) == 1) for q in leading]
    around = [full] if full not in leading and len(full.attributes) > 1 else []
    if len(leading) == 1 and leading[0].verdict == "shown":
        mine = set(leading[0].attributes)
        around += [q for q in questions if len(q.attributes) == 1 and set(q.attributes) < mine]
    for q in around:
        if q.row is not None:
            how = "together" if len(q.attributes) > 1 else "alone"
            text = f"{_names(q)} {how}: {words.verdict(q.verdict, symbol=False)}"
            changed = f", the answer changed on {_on(q.row)}" if q.row.rate is not None else ""
            parts.append(words.sentence(text + changed))
    return " ".join(parts)


def _set(record: Record, q: Question, *, alone: bool) -> str:
    """What was measured of one set, in full."""
    if q.row is None or not (q.row.rate or q.row.said):
        why = words.sentence(record.status_reason or "")
        return f"{LEADS['not_tested']}: {words.attributes(q.attributes)}. {why} {_explored(record, q)}".rstrip()
    about = "" if alone else f" for {_names(q)}" + (" together" if len(q.attributes) > 1 else "")
    head, colon, rest = LEADS[q.verdict].partition(":")
    mine = next((run.figures for run in record.runs if run.name == q.run), None)
    partial = mine is not None and not mine.complete
    if mine is not None and q.verdict != "shown" and (unfit := mine.unfit.get(q.model)):
        head, colon, rest = LEADS["unfit"], ": ", unfit
    parts = [
        f"{head}{about}{colon}{rest}. {words.sentence(_measured(record, q))}",
        words.sentence(_turned(record, q).removeprefix("; ")),
        *_support(q, q.row),
        f"Run {q.run} is partial: this rests on the texts that it reached." if partial else "",
    ]
    return " ".join(filter(None, parts))


def _overview(record: Record, questions: Sequence[Question]) -> str:
    """What was shown of everything that the texts name, where the goal names nobody in particular."""
    tested = [q for q in questions if q.row is not None and q.row.rate is not None]
    if not tested:
        return f"{LEADS['not_tested']}. {words.sentence(record.status_reason or '')}".rstrip()
    n = {verdict: sum(q.verdict == verdict for q in tested) for verdict in VERDICTS}
    return (
        f"Of {words.plural(len(tested), 'attribute set')} that the texts name, a difference was shown for "
        f"{n['shown']}; changes were bounded for {n['bounded']}; {n['not_determined']} stay open. First: "
        f"{_set(record, tested[0], alone=False)}"
    )


def _names(q: Question) -> str:
    return words.listing([words.group(a) for a in q.attributes])


def _on(row: Row) -> str:
    return f"{row.seeds_changed} of {words.plural(row.seeds, 'text')}"


def _measured(record: Record, q: Question) -> str:
    row = q.row
    if row is None or row.rate is None:
        return (row.said if row else "") or f"{words.attributes(q.attributes)}: no answer could be judged"
    changed = words.interval(row.rate)
    return f"when words of {_people(record, q)}, the answer changed on {_on(row)}, in {changed} of the changed versions"


def _people(record: Record, q: Question) -> str:
    """Which words were changed: the attributes, and the groups they led to or from."""
    goal = record.goal
    text = f"{_names(q)} were changed" + (" together" if len(q.attributes) > 1 else "")
    if not any(run.name == q.run and run.request.groups for run in record.runs):
        return text
    named, other = _sides(record, q.attributes)
    wanted = [f"from {other} to {named} or back"] if other else []
    free = [a for a in q.attributes if a in goal.groups and not goal.against.get(a)]
    if free:
        listed = [words.listing([words.group(g) for g in goal.groups[a]], "or") for a in free]
        wanted.append(f"to or from {words.listing(listed)}")
    return f"{text}, {words.listing(wanted)}" if wanted else text


def _sides(record: Record, attributes: Sequence[str]) -> tuple[str, str]:
    """The groups of ``attributes`` that the goal compares with others, and those others; empty without a comparison."""
    groups, against = record.goal.groups, record.goal.against
    both = [a for a in attributes if against.get(a)]
    named = [words.group(g) for a in both for g in groups[a] if g not in against[a]]
    others = [words.group(g) for a in both for g in against[a]]
    last = "or" if len(both) == 1 else "and"
    return words.listing(named, last), words.listing(others, last)


def _turned(record: Record, q: Question) -> str:
    """Towards which answer the named groups led, in counts."""
    row, goal = q.row, record.goal
    if row is None or not row.turns:
        return ""
    listed = [words.group(g) for a in q.attributes for g in goal.groups.get(a, ()) if g not in goal.against.get(a, ())]
    compared = all(goal.against.get(a) for a in q.attributes if a in goal.groups)
    named = words.listing(listed, "or" if len(q.attributes) == 1 else "and")
    others = (compared and _sides(record, q.attributes)[1]) or "other groups"
    turns = [f"“{turn.named}” instead of “{turn.other}” on {words.plural(turn.seeds, 'text')}" for turn in row.turns]
    return f"; with {named} rather than {others}, the answer was {words.listing(turns)}"


def _support(q: Question, row: Row) -> Iterable[str]:
    """What a rate is compared with, why a set is open, and where the figures come from."""
    if row.noise is not None:
        again = f"the same prompt asked again got another answer in {words.percent(row.noise.value)}"
    elif row.deterministic:
        again = "the model declares that it answers the same prompt always alike"
    else:
        again = "the same prompt was not asked again"
    if row.rate is not None:
        if row.placebo is not None:
            joined = " and " if row.noise else "; "
            again += f"{joined}edits that change no group changed the answer in {words.percent(row.placebo.value)}"
        yield words.sentence(again)
    why = "" if q.verdict == "shown" else row.why
    if q.verdict == "not_determined" and row.verdict != q.verdict:
        why = f"the run alone says {words.verdict(row.verdict, symbol=False)}, at a level above that of a session"
    yield f"Why: {words.sentence(why)}" if why else ""
    yield f"(Run {q.run}, finding {q.finding}.)"


def _explored(record: Record, q: Question) -> str:
    for run in reversed(record.runs):
        for row in run.figures.sets if run.figures and run.name in q.explored else ():
            if row.model == q.model and row.attributes == q.attributes:
                return f"Exploratory, {run.name}: {words.sentence(measured.measure(row))}"
    return ""
