"""What the codes in a run record mean, in plain words: ``audit explain CODE``."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass

from auditor.core import data
from auditor.core.errors import UnknownPlugin

AREAS = {
    "finding": "Findings",
    "verdict": "Verdicts of a claim",
    "outcome": "Outcomes of a variant",
    "estimate": "Estimates",
    "score": "Scores of tables",
    "control": "Controls",
    "status": "Status of a run, of an answer, of a waiver",
    "call": "Failed calls",
    "validity": "Validity of a variant",
    "edit": "Kinds of edit",
    "sampling": "How cases were drawn",
    "comparison": "Changes between two runs",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """What one code means.

    ``pattern`` codes end in ``*`` or hold ``…`` for what varies: reasons with a number or a word in them.
    """

    code: str
    area: str
    title: str
    text: str
    see: tuple[str, ...] = ()

    def matches(self, code: str) -> bool:
        """Whether this page is about ``code``."""
        told, asked = self.code.lower(), code.strip().lower()
        if "…" not in told:
            return told == asked
        first, *rest = told.split("…")
        at = len(first)
        if not asked.startswith(first):
            return False
        for part in rest:
            found = asked.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return told.endswith("…") or asked.endswith(rest[-1])


@functools.cache
def pages() -> tuple[Page, ...]:
    """Every page, in the order of the file."""
    raw = tomllib.loads(data.path("embedded", "explain", "codes.toml").read_text(encoding="utf-8"))
    return tuple(
        Page(
            code=entry["code"],
            area=entry["area"],
            title=entry["title"],
            text=" ".join(entry["text"].split()),
            see=tuple(entry.get("see", ())),
        )
        for entry in raw["page"]
    )


def find(code: str) -> Page | None:
    """The page about ``code``; exact codes before patterns, None where there is none."""
    exact = [p for p in pages() if "…" not in p.code and p.matches(code)]
    return next(iter(exact or [p for p in pages() if p.matches(code)]), None)


def every(code: str) -> list[Page]:
    """All pages about ``code``: one word may be a verdict and a status."""
    exact = [p for p in pages() if "…" not in p.code and p.matches(code)]
    return exact or [p for p in pages() if p.matches(code)]


def explain(code: str) -> str:
    """The page (or pages) about ``code`` as text.

    Raises
    ------
    UnknownPlugin
        No such code; near misses are offered.

    Examples
    --------
    >>> explain("HID201").splitlines()[0]
    'HID201 — the answer changed only when several attributes changed together'
    """
    found = every(code)
    if not found:
        raise UnknownPlugin("code", code, {p.code for p in pages()}, "List them with: audit explain")
    return "\n".join(_text(page) for page in found)


def _text(page: Page) -> str:
    import textwrap

    body = textwrap.fill(page.text, 96, initial_indent="  ", subsequent_indent="  ")
    see = f"\n  See also: {', '.join(page.see)}" if page.see else ""
    return f"{page.code} — {page.title}\n  {AREAS[page.area]}\n\n{body}{see}\n"


def overview() -> str:
    """All codes with their titles, by area."""
    lines = []
    for area, heading in AREAS.items():
        mine = [p for p in pages() if p.area == area]
        if mine:
            lines += [heading, *(f"  {p.code:<28} {p.title}" for p in mine), ""]
    return "\n".join([*lines, "One page: audit explain CODE", ""])
