"""The report of a session as one HTML file, without scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from auditor.agent import answer, report
from auditor.render import words

PLAIN = "list-style: none; padding-left: 0"


def html(record: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> str:
    """The report as one HTML file without scripts."""
    from auditor import render

    style = (Path(render.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    body = [
        f"<header><p class='kicker'>Audit session</p><h1>{_safe(record['goal']['text'])}</h1></header><main>"
    ]
    for block in report.blocks(record, steps):
        body.append(_block(block, record))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>Audit session {_safe(record['id'])}</title><style>{style}</style></head><body>"
        + "\n".join(filter(None, body))
        + "</main></body></html>\n"
    )


def _block(block: report.Block, record: Mapping[str, Any]) -> str:
    if block.kind == "heading":
        return f"<h2>{_safe(block.text)}</h2>"
    if block.kind == "lead":
        return f"<div class='lead'><p>{_safe(block.text)}</p></div>"
    if block.kind == "text":
        link = f" <a href='{escape(block.link, quote=True)}'>report</a>" if block.link else ""
        return f"<p>{_safe(block.text)}{link}</p>"
    if block.kind == "items":
        return _items([item for (item,) in block.rows])
    if block.kind == "table":
        head = "".join(f"<th scope='col'>{_safe(c)}</th>" for c in block.columns)
        rows = "".join("<tr>" + "".join(f"<td>{_safe(c)}</td>" for c in row) + "</tr>" for row in block.rows)
        return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    return _chart(record) if block.kind == "chart" else ""


def _items(items: Sequence[str]) -> str:
    """A list; items that begin with four spaces are a list within the one before."""
    out: list[str] = []
    inner = False
    for item in items:
        deeper = item.startswith("    ")
        if deeper != inner:
            out.append("<ul>" if deeper else "</ul></li>")
        elif out:
            out.append("</li>")
        out.append(f"<li>{_safe(item.strip())}")
        inner = deeper
    if not out:
        return ""
    numbered = re.match(r"\d+\. ", items[0]) is not None
    begin = f"<ul style='{PLAIN}'>" if numbered else "<ul>"
    return begin + "".join(out) + ("</li></ul></li></ul>" if inner else "</li></ul>")


def _chart(record: Mapping[str, Any]) -> str:
    """Rates of the attribute sets with their intervals, noise and placebo edits beside them."""
    from auditor.render import charts, view

    asked = [q for q in answer.ordered(record) if q["row"]["rate"] is not None]
    if not asked:
        return ""
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
    return f"<figure>{drawn}<figcaption>{told}</figcaption></figure>"


def _safe(text: str) -> str:
    return escape(words.visible(str(text), newlines=False), quote=True)
