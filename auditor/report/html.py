"""A document as one HTML file that asks for nothing from outside; one small script filters, sorts and copies."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.core.protocols import Renderer
from auditor.core.record import RunRecord
from auditor.core.types import Finding
from auditor.report import cards, sections, words
from auditor.report.document import TO_FILL, Commands, Document, Findings

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = Path(__file__).parent / "templates"
CHUNK = 200  # lines of one part of a list: a browser lays out those in sight only
KINDS = {"hidden": "hidden", "violation": "single example", "claim": "claim"}
MIN_FILTER = 6  # fewer findings need no filter


class HtmlReport(Renderer):
    """The report of any kind of run as a page."""

    name = "html"
    suffix = ".html"

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the whole page, doctype to end tag."""
        from auditor.report.build import document

        return write(document(record, evidence), record)


def write(document: Document, record: RunRecord | None = None) -> str:
    """A document as a page; the record is for the commands about its findings."""
    record, blocks = record or RunRecord(), [block for section in document.sections for block in section.blocks]
    findings = [b.finding for b in blocks if isinstance(b, cards.Card)]
    findings += [row.finding for b in blocks if isinstance(b, Findings) for row in b.rows]
    # Something to filter, to sort or to copy.
    alive = document.first is not None or bool(findings) or any(isinstance(b, Commands) for b in blocks)
    return _template().render(
        d=document,
        plot=() if document.first is None else list(sections.net(document.first)),
        run=words.run_name(record),
        version=record.tool_version or record.tool.version or "–",  # tables of outcomes name it elsewhere
        filtered=len(findings) >= MIN_FILTER,
        choices=choices(findings),
        linked={f.id for f in findings},
        scripted=alive and not document.inert,
    )


def choices(findings: Sequence[Finding]) -> list[tuple[str, str, list[str]]]:
    """(key, label, values) of each filter that splits the findings."""
    every = [
        ("kind", "Kind", [name for kind, name in KINDS.items() if any(f.kind == kind for f in findings)]),
        ("model", "Model", sorted({f.model for f in findings})),
        ("set", "Attributes", sorted({words.attributes(f.attributes) for f in findings})),
        ("verdict", "Verdict", [v for v in words.VERDICTS if any(f.verdict == v for f in findings)]),
    ]
    return [(key, label, values) for key, label, values in every if len(values) > 1]


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    script = (TEMPLATES / "filter.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        # Every string is made visible before it is escaped; markup made here stays as it is.
        finalize=lambda text: words.visible(text) if isinstance(text, str) and not hasattr(text, "__html__") else text,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "direction": words.direction,
        "attributes": words.attributes,
        "excerpt": cards.excerpt,
        "glue": words.glue,
        "kind": lambda block: type(block).__name__.lower(),
    }
    environment.globals |= {
        "chunk": CHUNK,
        "kinds": KINDS,
        "script": Markup(script),  # noqa: S704 - our own file
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "css": Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        "words": words,
        "plural": words.plural,
        "tint": tint,
        "to_fill": TO_FILL,
    }
    return environment.get_template("document.html.j2")


def tint(attribute: str, names: Iterable[str]) -> int:
    """Pick the tint (0–5) of an attribute on one card; a repair has 6."""
    known = sorted(names)
    return known.index(attribute) % 6 if attribute in known else 6
