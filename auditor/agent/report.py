"""The report of a session: goal, steps with reasons, what was measured, what was not looked at, budget used.

Everything that came from outside is made visible and escaped where it is laid out; the planner's own words stand in
quotation marks and are called that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.agent import answer, reading
from auditor.report import words
from auditor.report.document import Block, Chart, Document, Items, Section, Table, Text

PURPOSES = {
    "pilot": "pilot (exploratory)",
    "fresh": "fresh texts",
    "search": "search (exploratory)",
}


def build(record: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> Document:
    """Lay a session out: the answer, how it was read, what fresh runs show, steps, runs, what was not seen, budget."""
    parts = (
        ("answer", "Answer", _answer(record), False),
        ("read", "How the question was read", _goal(record), False),
        ("fresh", "What the runs on fresh texts show", _answers(record), False),
        ("runs", "Runs", _runs(record), False),
        ("unseen", "What was not looked at", _unseen(record), False),
        ("budget", "Budget", _used(record), False),
        ("steps", "Steps and reasons", _steps(record, steps), True),
        ("method", "Method and limits", _method(), True),
    )
    return Document(
        title=record["goal"]["text"],
        name=f"Audit session {record['id']}",
        meta="",
        banners=(),
        first=None,
        sections=tuple(
            Section(id=id, title=title, short=title, blocks=tuple(blocks), folded=folded)
            for id, title, blocks, folded in parts
        ),
    )


def _answer(record: Mapping[str, Any]) -> list[Block]:
    further = answer.others(record)
    return [
        *(Text(told, "lead") for told in answer.lead(record)),
        *_chart(record),
        *((Text("Each part, and smaller sets:"), Items(tuple(further))) if further else ()),
    ]


def _goal(record: Mapping[str, Any]) -> list[Block]:
    goal = record["goal"]
    names = "those that the texts name" if goal["attributes"] is None else words.listing(goal["attributes"])
    groups = "; ".join(
        f"{name}: {words.listing([words.group(g) for g in found])}" for name, found in goal["groups"].items()
    )
    items = [
        f"Task: {goal['task']}. Attributes: {names}, up to {goal['order']} together."
        + (f" Groups named: {groups}." if groups else ""),
        f"Model: {words.listing(list(record['models']))}. Texts: {record['texts']['source']}, "
        f"{record['texts']['n']:,} distinct.",
        f"Planner: {record['planner']}. Session: {record['status']}"
        + (f" ({record['status_reason']})." if record["status_reason"] else "."),
    ]
    if goal["read"]:
        items.append(f"Read from the goal: {'; '.join(goal['read'])}.")
    if goal["assumed"]:
        items.append(f"Filled in: {'; '.join(goal['assumed'])}.")
    return [Items(tuple(items))]


def _answers(record: Mapping[str, Any]) -> list[Block]:
    rows = []
    several = len(record["models"]) > 1
    for q in record["questions"]:
        if not (q["declared"] or q["run"]):
            continue
        row = q["row"]
        measured = reading.told(row).partition(": ")[2] if row else "no fresh run reached it"
        seen = f"looked at in {', '.join(q['explored'])}" if q["explored"] else ""
        where = f"{q['run']} {q['finding']}, level {q['level']:g}" if q["run"] else "–"
        name = words.attributes(q["attributes"])
        rows.append(
            [f"{q['model']}: {name}" if several else name, words.verdict(q["verdict"]), measured, where, seen]
        )
    return [
        Text(
            "A verdict stands here only where a run on texts that no earlier run had asked gave it, by a plan that was "
            "on disk before. What pilots and searches saw is exploratory: it chose where to look next.",
        ),
        *(
            [
                _table(
                    "Verdicts of fresh runs", ("Changed", "Verdict", "Measured", "From", "Exploratory"), rows
                )
            ]
            if rows
            else []
        ),
        *_directions(record),
    ]


def _not_changed(goal: Mapping[str, Any]) -> str:
    """Which changes of the attributes of the goal were not made."""
    compared = goal.get("against") or {}
    if set(compared) >= set(goal["groups"]):
        return "Changes between other groups than those that the goal compares with each other."
    told = "Changes between groups that the goal does not name: each change leads to a named group, or from one to any"
    if not compared:
        return f"{told} other."
    return f"{told} other; of {words.listing(sorted(compared))}, it is between the groups that the goal compares."


def _directions(record: Mapping[str, Any]) -> list[Block]:
    """Directions that fresh runs showed, those that touch the groups of the goal where it names some."""
    named = {(a, g) for a, groups in record["goal"]["groups"].items() for g in groups}
    items = []
    for run in record["runs"]:
        if not (run["counts_as_fresh"] and run["figures"]):
            continue
        for row in run["figures"]["directions"]:
            ends = {(a, g) for a, source, target in row["steps"] for g in (source, target)}
            if not named or named & ends:
                items.append(f"{run['name']} {row['finding']}: {words.direction(row['steps'])}")
    if not items:
        return []
    what = "Directions that these runs showed" + (" and that touch the groups of the goal:" if named else ":")
    return [Text(what), Items(tuple(items))]


def _steps(record: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> list[Block]:
    items: list[str | Items] = []
    for number, step in enumerate(steps, 1):
        text = f"{number}. {step['kind']}"
        if step.get("run"):
            text += f" {step['run']}"
        text += f": {step['reason']}"
        figures = step.get("figures") or {}
        note = figures.get("planner_note")
        if step["kind"] != "read" and (told := _told(figures)):
            text += f" [{'; '.join(told)}]"
        if step.get("error"):
            text += f" [{step['error']}]"
        if note:
            text += f" — the planner's own words, no result: “{note}”"
        items.append(text)
        if step["kind"] == "read" and (below := reading.lines(figures)):
            items.append(Items(tuple(below)))
    return [Items(tuple(items))]


FIGURES = {
    "texts": "{} texts",
    "usable": "{} of them can be changed",
    "joint": "{} name all the attributes",
    "usable_with_insertions": "with words put in: {} can be changed",
    "joint_with_insertions": "{} then name all",
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


def _told(figures: Mapping[str, Any]) -> list[str]:
    """The figures behind a step, in words; what is None had no limit or was not measured."""
    given = {name: value for name, value in figures.items() if value is not None}
    out = []
    if "open" in given:
        out.append(f"open: {words.listing([words.attributes(names) for names in given['open']])}")
    out += [told.format(words.percent(given[name])) for name, told in SHARES.items() if name in given]
    out += [told.format(words.figure(given[name])) for name, told in FIGURES.items() if name in given]
    if given.get("cost_usd"):
        out.append(f"cost {given['cost_usd']:.4f} USD")
    return out


def _runs(record: Mapping[str, Any]) -> list[Block]:
    out: list[Block] = []
    for run in record["runs"]:
        request = run["request"]
        asked = request["attributes"]
        names = words.attributes(asked) if asked else "attributes that the texts name"
        what = (
            f"{run['name']}: {PURPOSES[run['purpose']]}, {words.plural(run['texts'], 'text')}, "
            f"{names}, order {request['order']}, suite {request['suite']}"
            f"{', words inserted' if request['insertions'] else ''}"
            f"{', groups ' + words.listing(list(request['groups'])) if request.get('groups') else ''}"
            f", {request['strategy']}; "
            f"{words.plural(run['calls'], 'call')}{_cost(run)}"
        )
        if run["figures"] is None:
            what += "; not finished"
        elif not run["figures"]["complete"]:
            what += "; partial"
        out.append(
            Text(what, link=f"{run['folder']}/report.html" if run["folder"] and run["figures"] else "")
        )
        if run["figures"]:
            rows = [
                [
                    row["finding"],
                    words.attributes(row["attributes"]),
                    words.verdict(row["verdict"])
                    + ("" if run["counts_as_fresh"] else " (in this run; exploratory)"),
                    reading.told(row).partition(": ")[2],
                ]
                for row in run["figures"]["sets"]
            ]
            out.append(
                _table(
                    f"Verdicts of {run['name']}",
                    ("Finding", "Changed", "Verdict of the run", "Measured"),
                    rows,
                )
            )
        if run["notes"]:
            out.append(Items(tuple(run["notes"])))
    return out


def _cost(run: Mapping[str, Any]) -> str:
    """What a run cost; nothing is said of models on this machine."""
    priced = run.get("priced", "free")
    return {"free": "", "unknown": ", cost not known"}.get(priced, f", {run['cost_usd']:.4f} USD")


def _unseen(record: Mapping[str, Any]) -> list[Block]:
    from auditor.perturb import dictionaries

    goal = record["goal"]
    looked = {
        name
        for run in record["runs"]
        if run["figures"]
        for s in run["figures"]["sets"]
        for name in s["attributes"]
    }
    others = sorted(set(dictionaries.builtin()) - looked)
    items = []
    if others:
        why = (
            "the goal does not name them"
            if goal["attributes"]
            else "the texts do not name them, or too few do"
        )
        items.append(f"Attributes {words.listing(others)}: {why}.")
    if goal["groups"]:
        items.append(
            _not_changed(goal)
            if any(r["request"].get("groups") for r in record["runs"])
            else "The goal names groups; sentences of a grammar were asked for all groups of their attributes."
        )
    if record["texts_left"]:
        items.append(f"{words.plural(record['texts_left'], 'text')} that can be changed: no run asked them.")
    skipped = record["texts"]["n"] - record["texts_left"]
    if not record["runs"]:
        items.append("Nothing was asked: no run was made.")
    elif skipped and not any(r["request"]["suite"] == "grammar" for r in record["runs"]):
        items.append("Generated texts (suite grammar): no run asked any.")
    items.append("Other prompt formats, other wordings of the task, other languages: not part of a session.")
    return [Items(tuple(items))]


def _used(record: Mapping[str, Any]) -> list[Block]:
    spent, limits = record["spent"], record["limits"]
    priced = {run.get("priced", "free") for run in record["runs"]} or {"free"}
    cost = (
        "none: the model runs on this machine"
        if priced == {"free"}
        else "not known: no price for this model (--price-in, --price-out)"
        if "unknown" in priced
        else f"{spent['cost_usd']:.4f}"
    )

    def of(value: str, limit: object) -> str:
        return value if limit is None else f"{value} of {limit}"

    rows = [
        ["calls of the model", of(f"{spent['calls']:,}", limits["max_calls"])],
        ["cost of the model, USD", of(cost, limits["max_cost"])],
        ["seconds", of(f"{spent.get('seconds', 0.0):.0f}", limits["max_seconds"])],
        [
            "calls of the planner",
            "none: rules"
            if record["planner"] == "rules"
            else of(f"{spent['planner_calls']}", limits["planner_max_calls"]),
        ],
        *(
            []
            if record["planner"] == "rules"
            else [
                [
                    "cost of the planner, USD",
                    of(f"{spent['planner_cost_usd']:.4f}", limits["planner_max_cost"]),
                ]
            ]
        ),
    ]
    return [_table("What was used", ("What", "Used"), rows)]


def _method() -> list[Block]:
    text = (
        "The planner proposes runs; verdicts come from oracles and statistics alone. The first fresh run tests at "
        "level 0.025, each later one at half the level before, so that all fresh runs of a session together keep 5 %. "
        "Within a run, Holm's correction covers all its claims."
    )
    return [Text(text), Items(words.LIMITS)]


def _table(caption: str, columns: tuple[str, ...], rows: Sequence[Sequence[str]]) -> Table:
    return Table(caption=caption, columns=columns, lines=tuple(map(tuple, rows)))


def _chart(record: Mapping[str, Any]) -> Iterable[Chart]:
    """Rates of the attribute sets with their intervals, noise and placebo edits beside them."""
    from auditor.report import charts, view

    asked = [q for q in answer.ordered(record) if q["row"]["rate"] is not None]
    if not asked:
        return
    models = sorted({q["model"] for q in asked})
    subjects = [view.Subject(model=m, format="", name=record["models"][int(m[1:]) - 1]) for m in models]
    sets = list(dict.fromkeys(tuple(q["attributes"]) for q in asked))
    found = {(q["model"], tuple(q["attributes"])): q for q in asked}
    empty = view.Cell(rate=None, noise=None, verdict="not_tested", hidden=None, claim=None)
    rows = []
    for names in sets:
        cells = []
        for m in models:
            q = found.get((m, names))
            if q is None:
                cells.append(empty)
                continue
            between = q["row"].get("intervals") or {}
            cells.append(
                view.Cell(
                    rate=q["row"]["rate"],
                    noise=between.get("noise"),
                    verdict=q["verdict"],
                    hidden=None,
                    claim=None,
                    placebo=between.get("placebo"),
                )
            )
        label = " + ".join(words.group(a) for a in names)
        rows.append(
            view.Row(
                label=label,
                attributes=names,
                steps=(),
                seeds=None,
                valid=None,
                discarded=None,
                cells=tuple(cells),
            )
        )
    drawn = charts.forest(
        rows, subjects, name="answers", title="Share of changed versions with another answer"
    )
    told = (
        "Share of changed versions in which the answer changed, with 95 % intervals, in the fresh run that the verdict "
        "comes from. Triangle: shown; circle: not determined. Grey band: the same prompt asked again; grey bar: edits "
        "that change no group."
    )
    yield Chart(drawn, told)
