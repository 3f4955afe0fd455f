"""Reports of tabular search: terminal and one self-contained HTML page, from the run record alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from auditor.render import words
from auditor.render.tabular_tables import answers_line, blocks

TITLES = {"themis": "Themis", "aequitas": "Aequitas", "sg": "SG"}
SCORES = {
    "causal": "Causal score",
    "group": "Group score",
    "apparent_causal": "Apparent causal score",
    "apparent_group": "Apparent group score",
    "discriminatory_share": "Share of discriminatory cases",
}
MEANING = {
    "causal": "share of rows whose label changes when these columns change and nothing else",
    "group": "largest minus smallest share of the favourable label over the groups, all else drawn alike",
    "apparent_causal": "the causal score on the given rows or the profile",
    "apparent_group": "the group score on the given rows or the profile, as they are",
    "discriminatory_share": "share of cases with different labels, over uniform draws of their own",
}
LIMITS = (
    "Labels of a model were compared; whether a difference is justified is for people to judge.",
    "Uniform rows fill the domain of the schema evenly; they are not the people whom the model meets.",
    "Cases that a search was led to are counted, but enter no rate.",
)


def shown(record: Mapping[str, Any]) -> dict[str, Any]:
    """What both reports say, as plain texts and rows."""
    section = record["tabular"]
    options, counts = section["options"], section["counts"]
    protected = section["schema"]["protected"]
    verdicts = {(f["code"], tuple(f["attributes"]), f["text"]): f["verdict"] for f in record["findings"]}
    rows = [
        {
            "name": SCORES.get(s["name"], s["name"]),
            "columns": ", ".join(s["columns"]),
            "rate": rate_text(s["estimate"]),
            "n": s["estimate"]["n"],
            "population": s["population"],
            "method": s["estimate"]["method"],
            "verdict": _verdict(verdicts, s),
            "meaning": MEANING.get(s["name"], ""),
            "detail": _detail(s),
            "note": s["estimate"]["note"],
        }
        for s in (*section["scores"], *section["minimal_sets"])
    ]
    model = record["spec"]["model"]
    return {
        "title": f"Tabular search: {TITLES.get(section['method'], section['method'])}",
        "lead": (
            f"Rows of {section['schema']['name']} were given to {model}; only "
            f"{words.listing(protected or ['the columns'])} changed, all else stayed as it was. "
            f"A case is everything else in a row."
        ),
        "summary": _summary(section, counts, protected),
        "scores": rows,
        "search": section["mode"] == "search",
        "lattice": [
            {
                "columns": " + ".join(s["columns"]),
                "changes": s["changes"],
                "share": words.percent(s["changes"] / s["rows"] if s["rows"] else None),
                "minimal": s["minimal"],
                "hidden": len(s["columns"]) > 1,
                "rows": s["rows"],
            }
            for s in section["lattice"]
        ],
        "pairs": [_pair(p) for p in section["pairs"]],
        "blocks": blocks(section),
        "counts": [(key.replace("_", " "), value) for key, value in counts.items()],
        "options": [(key, "default" if value is None else str(value)) for key, value in options.items()],
        "notes": list(section["notes"]),
        "directed": section["sampling"] == "directed",
        "limits": LIMITS,
        "reason": record["status_reason"] if record["status"] != "complete" else "",
    }


def rate_text(estimate: Mapping[str, Any]) -> str:
    """A score with its interval; an exact one says so."""
    if estimate["method"].startswith("enumeration"):
        return f"{words.percent(estimate['value'], 2)} (exact)"
    return f"{words.interval(estimate)} at {estimate['level'] * 100:g} %"


def _verdict(verdicts: Mapping[Any, str], score: Mapping[str, Any]) -> str:
    code = f"tabular-{score['name'].replace('_', '-')}"
    return next(
        (
            v
            for (c, names, text), v in verdicts.items()
            if c == code and names == tuple(score["columns"]) and text.endswith(score["population"])
        ),
        "not_tested",
    )


def _detail(score: Mapping[str, Any]) -> str:
    detail = score["detail"]
    if "largest" not in detail:
        return ""

    def group(key: str) -> str:
        named = ", ".join(f"{k} = {v}" for k, v in detail[key]["group"].items())
        return f"{named}: {words.percent(detail[key]['rate'])} of {detail[key]['n']:,}"

    return f"label {detail['favourable']}: most often for {group('largest')}; least often for {group('smallest')}"


def _summary(section: Mapping[str, Any], counts: Mapping[str, Any], protected: list[str]) -> list[str]:
    named = words.listing(protected) if protected else "the columns"
    lines = []
    if section["mode"] == "search":
        sets = [", ".join(s["columns"]) for s in section["minimal_sets"]]
        theta = section["options"].get("theta")
        lines.append(
            f"Minimal sets of columns with a {section['options'].get('measure')} score above {theta}: "
            + ("; ".join("{" + s + "}" for s in sets) if sets else "none was found")
            + "."
        )
    elif section["sampling"] == "directed":
        lines.append(
            f"{counts['discriminatory']:,} of {counts['generated']:,} distinct cases that the search made get "
            f"different labels when {named} changes. They were searched for: this is not a rate."
        )
    else:
        for score in section["scores"]:
            if score["name"].endswith("causal"):
                lines.append(
                    f"The label changed with {named} in {rate_text(score['estimate'])} of "
                    f"{score['estimate']['n']:,} rows ({score['population']})."
                )
    hidden = sum(s["minimal"] for s in section["lattice"] if len(s["columns"]) > 1)
    if len(protected) > 1 and section["lattice"]:
        lines.append(
            f"In {hidden:,} of {section['lattice'][0]['rows']:,} rows looked at, the label changes only when "
            f"several protected columns change together (hidden)."
        )
    if counts.get("off_manifold"):
        lines.append(
            f"{counts['off_manifold']:,} further cases change only through rows that break a constraint; "
            f"they are counted apart."
        )
    if said := answers_line(section):
        lines.append(said)
    lines.append(f"The model was asked about {counts['evaluations']:,} rows in {counts['seconds']:.3g} s.")
    return lines


def _pair(pair: Mapping[str, Any]) -> dict[str, Any]:
    changed = list(pair["changed"])
    return {
        "changed": ", ".join(f"{c}: {pair['row'][c]} → {pair['other'][c]}" for c in changed),
        "labels": f"{pair['label']} → {pair['other_label']}",
        "rest": ", ".join(f"{k} = {v}" for k, v in pair["row"].items() if k not in changed),
    }


def text(record: Mapping[str, Any], *, width: int | None = None) -> str:
    """The terminal report.

    Parameters
    ----------
    record : mapping
        ``run.json`` of a tabular run as plain data.
    width : int, optional
        Columns; default: the terminal's.
    """
    import shutil

    from auditor.render.page import Page

    what = shown(record)
    page = Page(
        width=width or min(shutil.get_terminal_size((100, 24)).columns, 120),
        encoding=getattr(sys.stdout, "encoding", None) or "utf-8",
        color=False,
    )
    page.line(what["title"], "bold")
    page.paragraph(what["lead"])
    if what["reason"]:
        page.paragraph(f"Incomplete: {what['reason']}.")
    page.heading("Summary")
    for line in what["summary"]:
        page.paragraph(line)
    if what["scores"]:
        page.heading("Minimal sets" if what["search"] else "Scores")
        columns = [
            ("score", False),
            ("columns", False),
            ("value (interval)", False),
            ("rows", True),
            ("verdict", False),
        ]
        page.table(
            columns,
            [
                (
                    f"{s['name']}, {s['population']}",
                    s["columns"],
                    s["rate"],
                    f"{s['n']:,}",
                    words.verdict(s["verdict"]),
                )
                for s in what["scores"]
            ],
        )
        for s in what["scores"]:
            if s["detail"]:
                page.paragraph(f"{s['name']}, {s['population']}: {s['detail']}")
    if what["lattice"]:
        page.heading("Sets of protected columns")
        page.table(
            [
                ("changed together", False),
                ("rows whose label changes", True),
                ("share", True),
                ("no smaller set does", True),
            ],
            [(s["columns"], f"{s['changes']:,}", s["share"], f"{s['minimal']:,}") for s in what["lattice"]],
        )
    if what["pairs"]:
        page.heading("Pairs that differ in protected columns only")
        for pair in what["pairs"][:5]:
            page.paragraph(f"{pair['changed']}   label {pair['labels']}")
            page.paragraph(pair["rest"], indent="    ")
    for block in what["blocks"]:
        page.heading(block.title)
        for line in block.lines:
            page.paragraph(line)
        if block.rows:
            page.table(block.columns, block.rows)
    page.heading("Notes")
    for note in (*what["notes"], *what["limits"]):
        page.paragraph(note, first="- ", indent="  ")
    return page.value()


def html(record: Mapping[str, Any]) -> str:
    """The whole page, doctype to end tag; no script, nothing from outside."""
    from auditor.render.html import _environment, flat

    template = _environment().get_template("tabular.html.j2")
    return template.render(
        record=record,
        t=shown(record),
        details=list(flat(record["tabular"]["details"])),
        schema=list(flat(record["tabular"]["schema"])),
        provenance=list(flat(record["provenance"])),
        plan=list(flat(record["spec"])),
    )
