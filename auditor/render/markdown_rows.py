"""The Markdown of a search over rows: summary, scores, sets of columns, pairs, what a method adds, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.render import tabular, words
from auditor.render.markdown import block, escape, table

MAX_PAIRS = 10


def summary(record: Mapping[str, Any]) -> list[str]:
    """What was changed and what came of it, in sentences; for the job summary too."""
    shown = tabular.shown(record)
    lines = ["## In short", "", block(shown["lead"]), ""]
    lines += [f"- {block(line)}" for line in shown["summary"]]
    return [*lines, ""]


def body(record: Mapping[str, Any]) -> list[str]:
    """Scores, sets of protected columns, minimal pairs, and the tables of the method."""
    shown = tabular.shown(record)
    lines: list[str] = []
    if shown["scores"]:
        columns = ("Score", "Columns", "Value", "Rows", "Population", "Verdict")
        cells = (
            (s["name"], s["columns"], s["rate"], f"{s['n']:,}", s["population"], words.verdict(s["verdict"]))
            for s in shown["scores"]
        )
        lines += ["## Minimal sets" if shown["search"] else "## Scores", "", *table(columns, cells)]
        for s in shown["scores"]:
            told = "; ".join(text for text in (s["meaning"], s["detail"], s["note"]) if text)
            lines += [f"- {block(s['name'])}, {escape(s['population'])}: {escape(told)}."]
        lines.append("")
    if shown["lattice"]:
        sets = ("Changed together", "Rows looked at", "Label changes", "Share", "No smaller set does")
        counted = (
            (s["columns"], f"{s['rows']:,}", f"{s['changes']:,}", s["share"], f"{s['minimal']:,}")
            for s in shown["lattice"]
        )
        lines += ["## Sets of protected columns", "", *table(sets, counted), block(shown["lattice_note"]), ""]
    if shown["pairs"]:
        names = ("Changed", "Label", "The same in both rows")
        same = ((p["changed"], p["labels"], p["rest"]) for p in shown["pairs"][:MAX_PAIRS])
        lines += ["## Pairs that differ in protected columns only", "", *table(names, same)]
        lines += ["No smaller change of the protected columns changes the label of the first row.", ""]
    for part in shown["blocks"]:
        lines += [f"## {escape(part.title)}", "", *(f"{block(line)}\n" for line in part.lines)]
        if part.rows:
            lines += table([escape(name.capitalize()) for name, _ in part.columns], part.rows)
    if shown["notes"]:
        lines += ["## Method", "", *(f"- {block(note)}" for note in shown["notes"]), ""]
    return lines
