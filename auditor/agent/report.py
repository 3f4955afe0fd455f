"""The report of a session: goal, steps with reasons, what was measured, what was not looked at, budget used.

One list of blocks, written three ways (terminal, Markdown, HTML). Everything that came from outside is made visible
and escaped where it is laid out; the planner's own words stand in quotation marks and are called that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from auditor.agent import answer, reading
from auditor.render import markdown as md
from auditor.render import words
from auditor.render.page import Page


class Block(NamedTuple):
    """A piece of the report: a heading, a paragraph, items, or a table with columns.

    Paragraphs of kind ``lead`` are large; one of kind ``asked`` is the title of the HTML report, and ``chart`` the
    place of a drawing there. ``link`` is a relative address. Items that begin with four spaces belong to the one
    before.
    """

    kind: str
    text: str = ""
    rows: Sequence[Sequence[str]] = ()
    columns: Sequence[str] = ()
    link: str = ""


PURPOSES = {
    "pilot": "pilot (exploratory)",
    "fresh": "fresh texts",
    "search": "search (exploratory)",
}


def blocks(record: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> list[Block]:
    """The report of a session as blocks."""
    return [
        *_answer(record),
        *_goal(record),
        *_answers(record),
        *_steps(record, steps),
        *_runs(record),
        *_unseen(record),
        *_used(record),
        *_method(),
    ]


def _answer(record: Mapping[str, Any]) -> list[Block]:
    further = answer.others(record)
    return [
        Block("heading", "Answer"),
        Block("asked", f"Asked: “{record['goal']['text']}”"),
        *(Block("lead", told) for told in answer.lead(record)),
        Block("chart"),
        *([Block("text", "Each part, and smaller sets:")] if further else []),
        *([Block("items", rows=[[line] for line in further])] if further else []),
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
    return [Block("heading", "How the question was read"), Block("items", rows=[[i] for i in items])]


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
        Block("heading", "What the runs on fresh texts show"),
        Block(
            "text",
            "A verdict stands here only where a run on texts that no earlier run had asked gave it, by a plan that was "
            "on disk before. What pilots and searches saw is exploratory: it chose where to look next.",
        ),
        *(
            [Block("table", rows=rows, columns=("changed", "verdict", "measured", "from", "exploratory"))]
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
                items.append([f"{run['name']} {row['finding']}: {words.direction(row['steps'])}"])
    if not items:
        return []
    what = "Directions that these runs showed" + (" and that touch the groups of the goal:" if named else ":")
    return [Block("text", what), Block("items", rows=items)]


def _steps(record: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> list[Block]:
    items = []
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
        items.append([text])
        if step["kind"] == "read":
            items += [[f"    {line}"] for line in reading.lines(figures)]
    return [Block("heading", "Steps and reasons"), Block("items", rows=items)]


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
    out = [Block("heading", "Runs")]
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
            Block(
                "text", what, link=f"{run['folder']}/report.html" if run["folder"] and run["figures"] else ""
            )
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
                Block("table", rows=rows, columns=("finding", "changed", "verdict of the run", "measured"))
            )
        if run["notes"]:
            out.append(Block("items", rows=[[note] for note in run["notes"]]))
    return out


def _cost(run: Mapping[str, Any]) -> str:
    """What a run cost; nothing is said of models on this machine."""
    priced = run.get("priced", "free")
    return {"free": "", "unknown": ", cost not known"}.get(priced, f", {run['cost_usd']:.4f} USD")


def _unseen(record: Mapping[str, Any]) -> list[Block]:
    from auditor import dictionaries

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
    return [Block("heading", "What was not looked at"), Block("items", rows=[[i] for i in items])]


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
    return [Block("heading", "Budget"), Block("table", rows=rows, columns=("what", "used"))]


def _method() -> list[Block]:
    text = (
        "The planner proposes runs; verdicts come from oracles and statistics alone. The first fresh run tests at "
        "level 0.025, each later one at half the level before, so that all fresh runs of a session together keep 5 %. "
        "Within a run, Holm's correction covers all its claims."
    )
    return [
        Block("heading", "Method and limits"),
        Block("text", text),
        Block("items", rows=[[line] for line in words.LIMITS]),
    ]


def text(
    record: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    *,
    width: int = 100,
    encoding: str = "utf-8",
) -> str:
    """The report for a terminal."""
    page = Page(width=width, encoding=encoding, color=False)
    for block in blocks(record, steps):
        if block.kind == "heading":
            page.heading(block.text)
        elif block.kind in ("text", "lead", "asked"):
            page.paragraph(block.text)
            if block.link:
                page.line(f"  {block.link}")
        elif block.kind == "items":
            for (item,) in block.rows:
                deeper = item.startswith("    ")
                page.paragraph(
                    item.strip(), indent="      " if deeper else "  ", first="    · " if deeper else "· "
                )
        elif block.kind == "table":
            page.table([(name, False) for name in block.columns], block.rows)
    return page.value()


def markdown(record: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> str:
    """The report as Markdown."""
    lines = [f"# Audit session {md.escape(record['id'])}", ""]
    for block in blocks(record, steps):
        if block.kind == "heading":
            lines += [f"## {md.escape(block.text)}", ""]
        elif block.kind in ("text", "lead", "asked"):
            lines += [md.block(block.text) + (f" ([report]({block.link}))" if block.link else ""), ""]
        elif block.kind == "items":
            lines += [
                ("  " if item.startswith("    ") else "") + f"- {md.block(item)}" for (item,) in block.rows
            ] + [""]
        elif block.kind == "table":
            lines += [*md.table(block.columns, [[md.escape(c) for c in row] for row in block.rows]), ""]
    return "\n".join(lines).rstrip("\n") + "\n"
