"""A legal page as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from auditor.report import compliance_fill as fill
from auditor.report import compliance_groups as groups
from auditor.report import ll144, words
from auditor.report.compliance_page import MAX_LISTED, Page
from auditor.report.markdown import escape, table

FORMAT = "legal-page.v1"


def to_json(page: Page) -> str:
    """The page as data, ASCII only; what nobody filled in is null."""
    return json.dumps(plain(page), indent=2, sort_keys=True, allow_nan=False, default=str) + "\n"


def plain(page: Page) -> dict[str, Any]:
    """The page as plain data."""
    framework = page.framework
    return {
        "format": FORMAT,
        "framework": {
            key: value
            for key, value in asdict(framework).items()
            if key not in ("clauses", "grounds", "fields")
        },
        "report": page.report,
        "kind": page.kind,
        "record_sha256": page.record_sha256,
        "status": dict(page.status),
        "fields": {e.key: e.value for e in page.form.fields},
        "measures": [
            {e.key: e.value for e in line} for line in page.form.measures if any(e.value for e in line)
        ],
        "signature": {e.key: e.value for e in page.form.signature},
        "to_be_filled_in": list(page.form.missing),
        "not_tested": list(page.untested),
        "claims": [asdict(c) for c in (*page.claims, *page.more_claims)],
        "delta": page.delta,
        "plan": dict(page.plan),
        "deviations": [dict(zip(("what", "planned", "actual"), d, strict=True)) for d in page.deviations],
        "materials": dict(page.materials),
        "words": [asdict(w) for w in page.written],
        "accuracy": [asdict(a) for a in page.accuracy],
        "grounds": [asdict(g) for g in page.grounds],
        "controls": [asdict(g) for g in page.gates],
        "impact": page.outcomes["ll144"] if page.outcomes is not None else None,
        "clauses": [
            {
                "ref": c.clause.ref,
                "asks": c.clause.asks,
                "level": c.level,
                "gives": c.clause.gives,
                "lacking": list(c.lacking),
                "sections": list(c.sections),
                "read": c.clause.read,
                "source": c.source,
                "consulted": c.consulted,
            }
            for c in page.crossings
        ],
        "says": list(page.says),
        "limits": list(page.limits),
        "hashes": dict(page.hashes),
    }


def scope(entry: groups.Accuracy) -> str:
    """Which texts an accuracy is of."""
    return f"{entry.attribute}: {words.group(entry.group)}" if entry.attribute else "all texts"


def to_markdown(page: Page) -> str:
    """The page as Markdown; texts are escaped. Charts and examples stand in the HTML."""
    title = f"{page.title}, laid beside {page.framework.within}"
    lines = [f"# {escape(title)}", ""]
    for banner in (*page.banners, *([page.gate_banner] if page.gate_banner else [])):
        lines += [f"> **Note** {escape(banner)}", ""]
    for id, name in page.sections.items():
        if (writer := _WRITERS.get(id)) is not None:
            lines += [f"## {escape(name)}", "", *writer(page)]
    return "\n".join(lines).rstrip() + f"\n\nSHA-256 of the record: `{page.record_sha256}`\n"


def _facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return table(("", ""), pairs)


def _entries(entries: Iterable[fill.Entry]) -> list[str]:
    lines = ["| | |", "| --- | --- |"]
    lines += [f"| {escape(e.label)} | {_value(e)} |" for e in entries]
    return [*lines, ""]


def _value(entry: fill.Entry) -> str:
    return f"**{fill.TO_FILL}**" if entry.value is None else escape(entry.value)


def _items(lines: Iterable[str]) -> list[str]:
    return [*(f"- {escape(line)}" for line in lines), ""]


def _says(page: Page) -> list[str]:
    return [*_items(page.says), "Not tested here:", "", *_items(page.untested)]


def _claims(page: Page) -> list[str]:
    columns = (
        "Claim",
        "Changed",
        "Model",
        "Measured",
        "Same prompt again",
        "Placebo",
        "n",
        "p, adjusted",
        "Verdict",
    )
    cells: list[Sequence[str]] = [
        (
            c.id,
            c.what,
            c.model,
            c.effect,
            c.noise,
            c.placebo,
            words.count(c.seeds),
            c.p,
            words.verdict(c.verdict),
        )
        for c in (*page.claims, *page.more_claims[:MAX_LISTED])
    ]
    return table(columns, cells) if cells else ["This record makes no claim.", ""]


def _system(page: Page) -> list[str]:
    return [*(_facts(page.system) if page.system else []), *_entries(page.form.fields)]


def _plan(page: Page) -> list[str]:
    lines = [escape(page.plan_told), "", *_facts(page.plan)]
    return lines + (table(("Deviation", "As planned", "As run"), page.deviations) if page.deviations else [])


def _materials(page: Page) -> list[str]:
    lines = _facts(page.materials)
    if page.coverage:
        lines += table(("Attributes", "Seeds", "Variants", "Discarded", "Verdicts"), page.coverage)
    if page.written:
        cells = ((w.attribute, words.group(w.group), ", ".join(w.words)) for w in page.written)
        lines += table(("Attribute", "Group", "Words written"), cells)
    return lines


def _grounds(page: Page) -> list[str]:
    cells = ((g.ground, ", ".join(g.attributes) or "not tested") for g in page.grounds)
    return table(("Ground", "Tested as"), cells)


def _accuracy(page: Page) -> list[str]:
    cells = [(a.model, scope(a), words.count(a.texts), words.interval(a.estimate)) for a in page.accuracy]
    return table(("Model", "Texts that name", "Texts", "Accuracy"), cells) if cells else ["Not measured.", ""]


def _controls(page: Page) -> list[str]:
    cells = ((g.name, g.word, g.result, g.depends) for g in page.gates)
    return table(("Control", "State", "Result", "What hangs on it"), cells)


def _impact(page: Page) -> list[str]:
    if page.outcomes is None:
        return ["Not tested: no outcomes of people are recorded with this run.", ""]
    lines = []
    for part in page.parts:
        for name, rows in part.tables.items():
            of = " ".join(filter(None, (part.title, ll144.TITLES[name])))
            columns = (of, ll144.rate_name(page.outcomes), "Impact ratio", "95 %", "p (Holm)", "Remarks")
            lines += table(
                columns,
                (
                    (
                        r["category"],
                        ll144.rate(r),
                        r["impact_ratio_text"] or "–",
                        ll144.limits(r),
                        ll144.p_value(r["fisher_p_holm"]),
                        ", ".join(ll144.remarks(r)),
                    )
                    for r in rows
                ),
            )
    return lines


def _response(page: Page) -> list[str]:
    lines = [line for line in page.form.measures if any(e.value for e in line)] or page.form.measures[:1]
    head = [e.label for e in lines[0]]
    made = [f"| {' | '.join(map(escape, head))} |", f"|{' --- |' * len(head)}"]
    return [*made, *(f"| {' | '.join(map(_value, line))} |" for line in lines), ""]


def _crosswalk(page: Page) -> list[str]:
    framework = page.framework
    cells = ((c.clause.ref, c.clause.asks, c.word, c.gives, c.read) for c in page.crossings)
    lines = [escape(f"{framework.text}; consulted {framework.consulted}. {framework.how}"), ""]
    return [
        *lines,
        *_items(framework.notes),
        *table(("Clause", "Asks", "This report", "Gives", "Read from"), cells),
    ]


_WRITERS: dict[str, Callable[[Page], list[str]]] = {
    "status": lambda page: _facts(page.status),
    "says": _says,
    "claims": _claims,
    "system": _system,
    "plan": _plan,
    "materials": _materials,
    "grounds": _grounds,
    "accuracy": _accuracy,
    "controls": _controls,
    "impact": _impact,
    "response": _response,
    "crosswalk": _crosswalk,
    "limits": lambda page: _items(page.limits),
    "provenance": lambda page: _facts(page.hashes),
    "signature": lambda page: _entries(page.form.signature),
}
