"""Reports of tabular search: terminal and one self-contained HTML page, from the run record alone."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from auditor.provenance import head
from auditor.render import extras, waived, words
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
    "group": "largest minus smallest share of one label over the groups, all else drawn alike",
    "apparent_causal": "the causal score on the given rows or the profile",
    "apparent_group": "the group score on the given rows or the profile, as they are",
    "discriminatory_share": "share of cases with different labels, over uniform draws of their own",
}
LIMITS = (
    "Labels of a model were compared; whether a difference is justified is for people to judge.",
    "Only the protected columns were changed, and only to values of the schema. Silence about other columns and "
    "values is not evidence.",
    "Columns that go along with a protected one (a postcode, a first name) stayed as they were: what a model does "
    "through them is in no causal score and in no pair.",
    "Uniform rows fill the domain of the schema evenly; they are not the people whom the model meets.",
    "Cases that a search was led to are counted, but enter no rate.",
    "Rows that break a rule of the schema are counted apart. A rule that the schema lacks lets rows through that "
    "nobody could be.",
    "Hidden means that the label changed only when several protected columns changed together. It does not mean that "
    "anybody hid it.",
    "Models change. The figures hold for the model, schema and date named here; this report is no legal advice.",
)
LATTICE_FINDS = (
    "Rows of the cases that the search found, so every one of them changes with some set: the shares compare the sets, "
    "and are no rates."
)
LATTICE_FIRST = (
    "The first cases that were judged (4,096 at most), one row for every combination of protected values."
)
ROWS = {  # what a population is called in a sentence
    "domain (uniform)": "rows drawn uniformly from the domain",
    "domain (all rows)": "rows, all that the domain has",
    "given rows": "given rows",
    "profile": "rows drawn from the profile",
}


def shown(record: Mapping[str, Any]) -> dict[str, Any]:
    """What both reports say, as plain texts and rows."""
    section = record["tabular"]
    options, counts = section["options"], section["counts"]
    protected = section["schema"]["protected"]
    if section["mode"] == "search":
        protected = list(options.get("columns") or protected)
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
        "lattice_note": LATTICE_FINDS if section["sampling"] == "directed" else LATTICE_FIRST,
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
        "pairs": [_pair(p) for p in _varied(section["pairs"])],
        "blocks": blocks(section),
        "counts": [(key.replace("_", " "), value) for key, value in counts.items()],
        "options": [(key, "default" if value is None else str(value)) for key, value in options.items()],
        "notes": list(section["notes"]),
        "directed": section["sampling"] == "directed",
        "limits": LIMITS,
        "extras": extras.build(record),
        "reason": record["status_reason"] if record["status"] != "complete" else "",
    }


def rate_text(estimate: Mapping[str, Any]) -> str:
    """A score with its interval; an exact one says so."""
    if estimate["method"].startswith("enumeration"):
        return f"{words.percent(estimate['value'], 2)} (exact)"
    if "not valid" in estimate["note"]:
        return f"{words.percent(estimate['value'], 2)} (no valid interval)"
    return words.interval(estimate).replace("(", f"({words.confidence(estimate['level'])}: ", 1)


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

    label = f"label {detail['label']}" + (", called favourable" if detail["favourable"] else "")
    unsaid = (
        "" if detail["favourable"] else ". Nothing was said about which label is good (--favourable LABEL)"
    )
    if detail["largest"]["rate"] == detail["smallest"]["rate"]:
        rate = words.percent(detail["largest"]["rate"])
        return f"{label}: equally often in all groups ({rate}){unsaid}"
    return f"{label}: most often for {group('largest')}; least often for {group('smallest')}{unsaid}"


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
        verb = "change" if len(protected) > 1 else "changes"
        lines.append(
            f"{counts['discriminatory']:,} of {counts['generated']:,} distinct cases that the search made get "
            f"different labels when {named} {verb}. They were searched for: this is not a rate."
        )
    else:
        for score in section["scores"]:
            if score["name"].endswith("causal"):
                rows = ROWS.get(score["population"], f"rows ({score['population']})")
                binned = section["schema"].get("binned") if score["population"].startswith("domain") else None
                only = f" (one value for each bin of {words.listing(binned)})" if binned else ""
                lines.append(
                    f"The label changed with {named} in {rate_text(score['estimate'])} of "
                    f"{score['estimate']['n']:,} {rows}{only}."
                )
                if left := score["estimate"]["n_skipped"]:
                    why = "break a rule of the schema" + (
                        ", or got no label" if section.get("answers") else ""
                    )
                    are = words.verb(left, "it is", "they are")
                    lines.append(f"{words.plural(left, 'further row')} {why}: {are} in no score.")
    whole = section["lattice"][-1] if section["lattice"] else {}
    if len(protected) > 1 and whole.get("hidden") is not None:
        of_finds = " of the cases found" if section["sampling"] == "directed" else " of the domain"
        lines.append(
            f"In {whole['hidden']:,} of {whole['rows']:,} rows{of_finds} that were looked at, the label changes only "
            f"when several protected columns change together (hidden)."
        )
    if counts.get("off_manifold"):
        lines.append(
            f"{words.plural(counts['off_manifold'], 'further case')} "
            f"{words.verb(counts['off_manifold'], 'changes', 'change')} only through rows that break a constraint; "
            f"they are counted apart."
        )
    if said := answers_line(section):
        lines.append(said)
    noise = (section.get("noise") or {}).get("same_row")
    if noise:
        times = section["answers"]["replicates"]
        lines.append(
            f"Asked {times} times, the model gave answers that differ to one and the same row for {rate_text(noise)} "
            f"of {words.plural(noise['n_variants'], 'row')}."
        )
    if not section.get("answers"):  # else the rows were told
        asked = counts.get("evaluations_in_all", counts["evaluations"])
        lines.append(
            f"The model was asked about {asked:,} rows; the whole run took {counts['seconds']:.3g} s."
        )
    return lines


def _varied(pairs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The pairs so that those which come first change different columns, and different values of them."""
    seen: Counter[str] = Counter()
    ranked = []
    for pair in pairs:
        kind = ", ".join(f"{c}: {pair['row'][c]} → {pair['other'][c]}" for c in pair["changed"])
        ranked.append((seen[kind], pair))
        seen[kind] += 1
    return [pair for _, pair in sorted(ranked, key=lambda entry: entry[0])]


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
        page.paragraph(what["lattice_note"])
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
    for section_ in what["extras"]:
        if section_.id == "waivers":  # in sentences below
            continue
        page.heading(section_.title)
        for line in section_.notes:
            page.paragraph(line)
        for table in section_.tables:
            page.table([(name, name in table.right) for name in table.columns], table.lines)
    waived.section(page, record)
    page.heading("Notes")
    for note in (*what["notes"], *what["limits"]):
        page.paragraph(note, first="- ", indent="  ")
    return page.value()


def finding_text(record: Mapping[str, Any], id: str, *, width: int | None = None) -> str:
    """One finding with its figure, its notes, and pairs of rows, for a terminal.

    Raises
    ------
    UnknownPlugin
        The run has no such finding.
    """
    from auditor.errors import UnknownPlugin
    from auditor.render.page import Page

    known = {str(f["id"]): f for f in record["findings"]}
    if id not in known:
        raise UnknownPlugin("finding", id, known)
    f = known[id]
    page = Page(width=width or 100, encoding=getattr(sys.stdout, "encoding", None) or "utf-8", color=False)
    place = words.attributes(f["attributes"])
    page.line(f"{id} · {place} · {f['model']} · {words.verdict(f['verdict'])}", "bold")
    page.paragraph(words.sentence(f["text"]))
    if f.get("rate"):
        page.paragraph(f"Measured: {rate_text(f['rate'])} of {words.plural(int(f['rate']['n']), 'row')}.")
    for note in f.get("notes") or ():
        page.paragraph(words.sentence(note), first="- ", indent="  ")
    pairs = [p for p in record["tabular"]["pairs"] if set(p["changed"]) <= set(f["attributes"])]
    page.heading("Pairs that differ in protected columns only")
    for pair in map(_pair, pairs):
        page.paragraph(f"{pair['changed']}   label {pair['labels']}")
        page.paragraph(pair["rest"], indent="    ")
    if not pairs:
        page.paragraph("The run kept none.")
    waived.of_finding(page, record, id)
    page.paragraph(f"What {f['code']} means: audit explain {f['code']}")
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
        record_sha256=head(record),
    )
