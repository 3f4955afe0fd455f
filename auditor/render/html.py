"""The report as one HTML file that asks for nothing from outside; one small script filters its findings."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.provenance import head
from auditor.render import (
    answer,
    cards,
    charts,
    controls,
    diff,
    heatmap,
    hinter,
    view,
    words,
)

if TYPE_CHECKING:
    from jinja2 import Environment, Template

TEMPLATES = Path(__file__).parent / "templates"
MAX_CARDS = 60  # findings with their full evidence; the others are listed
MAX_VIOLATIONS = 20
CHUNK = 200  # rows of one table in the list of further findings: a browser lays out those in sight only
KINDS = {"hidden": "hidden", "violation": "single example", "claim": "claim"}
MIN_FILTER = 6  # fewer findings need no filter


class HtmlReport:
    """Summary first, then findings with their evidence, controls, method, limits, provenance.

    Every text passes through `words.visible` and is escaped; the Content-Security-Policy in the file
    forbids all requests and every script but the page's own, by its hash.
    """

    name = "html.v1"
    suffix = ".html"

    def render(self, record: Mapping[str, Any], evidence: Any) -> str:
        """Write the whole page, doctype to end tag."""
        shown = view.build(record)
        delta = (record.get("spec") or {}).get("delta")
        claims = [f for f in record.get("findings", ()) if f["kind"] == "claim"]
        hidden, violations = shown.hidden[:MAX_CARDS], shown.violations[:MAX_VIOLATIONS]

        def made(findings: Iterable[Mapping[str, Any]]) -> list[cards.Card]:
            return [cards.build(f, evidence, noun=shown.noun, record=record) for f in findings]

        return _template().render(
            record=record,
            v=shown,
            first=answer.build(record, evidence),
            hidden=made(hidden),
            violations=made(violations),
            more_hidden=chunks(shown.hidden[MAX_CARDS:]),
            more_violations=chunks(shown.violations[MAX_VIOLATIONS:]),
            filtered=len(shown.hidden) + len(shown.violations) + len(claims) >= MIN_FILTER,
            choices=choices([*shown.hidden, *shown.violations, *claims]),
            kinds=KINDS,
            n_claims=len(claims),
            heat=heatmap.build(shown),
            floors=charts.floors(shown, name="floors"),
            claims=chunks(claims),
            forest=charts.forest(
                shown.main,
                shown.subjects,
                name="rates",
                title=f"How often the {shown.noun} changed",
                delta=delta,
            ),
            arrows=charts.forest(
                shown.directions,
                shown.subjects,
                name="arrows",
                title="Rates by direction",
                delta=delta,
                record=record,
            ),
            level=next((e["estimate"]["level"] for e in record.get("estimates", ())), 0.95),
            delta=delta,
            provenance=list(flat(record.get("provenance") or {})),
            named=sorted({a for row in shown.rows for a in row.attributes}),
            paper_columns=controls.PAPER_COLUMNS,
            paper_figures=list(hinter.drawn(record)),
            paper_right=hinter.RIGHT,
            plan=list(flat(record.get("spec") or {})),
            counts=list(flat(record.get("counts") or {})),
            record_sha256=head(record),
        )


def chunks(findings: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
    """Cut a list into tables of at most `CHUNK` rows."""
    return [findings[i : i + CHUNK] for i in range(0, len(findings), CHUNK)]


def choices(findings: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, list[str]]]:
    """(key, label, values) of each filter that splits the findings."""
    found = [
        ("kind", "Kind", [name for kind, name in KINDS.items() if any(f["kind"] == kind for f in findings)]),
        ("model", "Model", sorted({str(f.get("model") or "") for f in findings})),
        ("set", "Attributes", sorted({words.attributes(f["attributes"]) for f in findings})),
        ("verdict", "Verdict", [v for v in words.VERDICTS if any(f["verdict"] == v for f in findings)]),
    ]
    return [(key, label, values) for key, label, values in found if len(values) > 1]


def flat(value: object, prefix: str = "") -> Iterable[tuple[str, str]]:
    """Nested plain data as (path, text) lines; missing values say so.

    Examples
    --------
    >>> list(flat({"a": {"b": 1}, "c": None}))
    [('a.b', '1'), ('c', 'not given')]
    """
    if isinstance(value, Mapping) and value:
        for key in sorted(value, key=str):
            yield from flat(value[key], f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list | tuple) and all(not isinstance(v, Mapping | list | tuple) for v in value):
        yield prefix, ", ".join(map(str, value)) or "none"
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from flat(item, f"{prefix}[{i}]")
    else:
        yield prefix, "not given" if value is None or value == {} else str(value)


def _finalize(value: object) -> object:
    """Make every string of the page visible before it is escaped; markup made here stays as it is."""
    return words.visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@cache
def _template() -> Template:
    return _environment().get_template("report.html.j2")


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    script = (TEMPLATES / "filter.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "interval": words.interval,
        "percent": words.percent,
        "count": words.count,
        "direction": words.direction,
        "attributes": words.attributes,
        "confidence": words.confidence,
        "excerpt": diff.excerpt,
        "noise": view.noise_text,
        "glue": words.glue,
    }
    environment.globals |= {
        "heat_kinds": heatmap.KINDS,
        "few_seeds": view.MIN_SEEDS,
        "split": view.split,
        "script": Markup(script),  # noqa: S704 - our own file
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "css": Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        "words": words,
        "plural": words.plural,
        "tint": tint,
        "estimate_of": view.find,
    }
    return environment


def tint(attribute: str, names: Iterable[str]) -> int:
    """Pick the tint (0–5) of an attribute on one card; a repair has 6."""
    known = sorted(names)
    return known.index(attribute) % 6 if attribute in known else 6
