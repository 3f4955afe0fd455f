"""The report as Markdown (GitHub's dialect): for issues, pull requests and wikis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from auditor import waivers
from auditor.render import answer, cards, controls, diff, exchange, extras, tabular, view, words

MAX_CARDS = 20
_START = re.compile(r"^(\d{0,9})([-+=.)])")
_SPECIAL = re.compile(r"[\\`*_\[\]|~$#]")
# What GitHub turns into links by itself: an empty comment parts it, and shows nothing.
_LINKS = re.compile(r"(?<=[A-Za-z])(?=://)|(?<=www)(?=\.)|(?<=@)(?=\w)", re.IGNORECASE)


class MarkdownReport:
    """Claims, hidden changes with their texts, controls, waivers and limits, as tables and lists.

    Text from models and files is escaped: it makes no link, no image, no heading and no HTML.

    Parameters
    ----------
    full : bool
        Whether texts, controls and limits are told too.
    """

    name = "markdown.v1"
    suffix = ".md"

    def __init__(self, *, full: bool = True) -> None:
        self.full = full

    def render(self, record: Mapping[str, Any], evidence: Any = None) -> str:
        """Write the report."""
        rows = exchange.rows(record)
        lines = [f"# {escape(exchange.title(record))}", "", escape(exchange.summary(record)), ""]
        partial = exchange.partial(record)
        banners = [partial] if partial else []
        if not exchange.is_tabular(record):
            banners = list(view.build(record).banners)
        for banner in banners:
            lines += [f"> **Note** {escape(banner)}", ""]
        first = answer.build(record, evidence)
        if first is not None:
            lines += _first(first)
        of_rows = exchange.is_tabular(record)
        if of_rows:
            lines += markdown_rows().summary(record)
        lines += _findings("Claims", [r for r in rows if r.kind == "claim"])
        if self.full:
            lines += markdown_rows().body(record) if of_rows else _answer(record)
        others = [r for r in rows if r.kind != "claim"]
        lines += _findings("Single variants", others)
        lines += _frozen(record, full=self.full)
        lines += _waivers(record)
        if self.full:
            limits = tabular.LIMITS if of_rows else words.LIMITS
            lines += _cards(record, others, evidence)
            lines += _controls(record)
            lines += ["## Limits", "", *(f"- {escape(limit)}" for limit in limits), ""]
            lines += _provenance(record)
        return "\n".join(lines).rstrip() + "\n"


def markdown_rows() -> ModuleType:
    """What is told of rows only; imported late, since it writes with the functions of this module."""
    from auditor.render import markdown_rows as module

    return module


def escape(text: object) -> str:
    r"""Text that stays text in any place of a line, table cells included.

    Examples
    --------
    >>> escape("[x](https://e.org) <b>|")
    '\\[x\\](https<!-- -->://e.org) &lt;b&gt;\\|'
    """
    plain = words.visible(str(text), newlines=False)
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        plain = plain.replace(char, entity)
    return _LINKS.sub("<!-- -->", _SPECIAL.sub(r"\\\g<0>", plain))


def block(text: object) -> str:
    r"""Text that begins a line or a list item: no list, rule, heading or code block comes of it.

    Examples
    --------
    >>> block('- x'), block('1. x'), block('    x')
    ('\\- x', '1\\. x', 'x')
    """
    return _START.sub(r"\1\\\2", escape(text).strip())


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; the cells are escaped here."""
    lines = [f"| {' | '.join(columns)} |", f"|{'|'.join(' --- ' for _ in columns)}|"]
    lines += [f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows]
    return [*lines, ""]


def _findings(heading: str, rows: Sequence[exchange.Row]) -> list[str]:
    if not rows:
        return []
    cells = (
        (words.finding_verdict(r.finding) + (" (waived)" if r.waiver else ""), r.id, r.code, r.sentence)
        for r in rows
    )
    note = [words.HIDDEN_FINDING, ""] if any(r.kind == "hidden" for r in rows) else []
    return [f"## {heading}", "", *note, *table(("Verdict", "Finding", "Code", "What was measured"), cells)]


def _first(screen: answer.Screen) -> list[str]:
    """The answer: who, how much, how sure, what next."""
    mark = words.SYMBOLS.get(screen.kind, words.SYMBOLS["shown"])
    lines = ["## Answer", "", block(screen.ran), ""]
    lines += [f"**{mark} {escape(words.sentence(screen.claim + screen.between + screen.figures))}**", ""]
    lines += [block(" · ".join(screen.support)), ""] if screen.support else []
    lines += [line for also in screen.also for line in (f"Also: {escape(also)}", "")]
    if (one := screen.example) is not None:
        lines += [f"> “{escape(one.text)}”: {escape(one.before)} → {escape(one.after)}", ""]
    if screen.rows:
        several = any(r.model for r in screen.rows)
        cells = [
            (
                *((r.model,) if several else ()),
                r.name + (f" + {words.plural(r.more, 'more group')}" if r.more else ""),
                *screen.cells(r)[1:-1],
                f"{r.verdict}: {r.reason}" if r.reason else r.verdict,
            )
            for r in screen.rows
        ]
        lines += table((*(("Model",) if several else ()), *map(escape, screen.columns)), cells)
    lines += [f"- Checks: {escape(line)}" for line in screen.checks]
    lines += [f"- Not tested: {escape(line)}" for line in screen.not_tested]
    lines += [f"- Next: <code>{escape(command)}</code> ({what})" for command, what in screen.next]
    return [*lines, ""]


def _answer(record: Mapping[str, Any]) -> list[str]:
    shown = view.build(record)
    lines = ["## In short", "", *(f"- {block(name)} {escape(text)}" for name, text in shown.answer), ""]
    return [*lines, "## What was asked", "", *table(("", ""), shown.asked)]


def _frozen(record: Mapping[str, Any], *, full: bool) -> list[str]:
    """The frozen plan: when, by whom, what it expected, and what was done otherwise."""
    told = next((s for s in extras.build(record) if s.id == "frozen"), None)
    if told is None:
        return []
    lines = [
        f"## {told.title}",
        "",
        *(f"{block(note)}\n" for note in (told.notes if full else told.notes[:1])),
    ]
    for part in told.tables:
        lines += table(part.columns, part.lines)
    return lines


def _waivers(record: Mapping[str, Any]) -> list[str]:
    told = waivers.lines(record)
    return ["## Waivers", "", *(f"- {escape(line)}" for line in told), ""] if told else []


def _cards(record: Mapping[str, Any], rows: Sequence[exchange.Row], evidence: Any) -> list[str]:
    if evidence is None or not rows:
        return []
    noun = exchange.noun_of(record)
    lines = ["## Texts", ""]
    for row in rows[:MAX_CARDS]:
        card = cards.build(row.finding, evidence, noun=noun, record=record)
        lines += [f"### {escape(row.id)}: {escape(row.place)}", "", block(row.sentence), ""]
        if card.missing:
            lines += [block(card.missing), ""]
            continue
        lines += [f"> Original: {_marked(card.original)}", ">", f"> Variant: {_marked(card.variant)}", ""]
        answers = (
            (cell.label, ", ".join(f"{old} → {new}" for _, old, new in cell.changes), cell.tally.text)
            for cell in card.cells
        )
        lines += table(("Changed", "Words", "Answers"), answers)
        lines += [
            f"- {block(words.sentence(note))}" for note in row.finding.get("notes") or () if note.strip()
        ]
        lines.append("")
    if len(rows) > MAX_CARDS:
        left = words.plural(len(rows) - MAX_CARDS, "further finding")
        lines += [f"{left}: `audit show {words.run_name(record)} ID`.", ""]
    return lines


def _marked(segments: Sequence[diff.Segment]) -> str:
    """Changed words in bold."""
    out = []
    for segment in segments:
        text = escape(segment.text)
        core = text.strip()
        out.append(text.replace(core, f"<b>{core}</b>", 1) if segment.changed and core else text)
    return "".join(out)


def _controls(record: Mapping[str, Any]) -> list[str]:
    if exchange.is_tabular(record):
        return []
    told = ((c.name, c.scope, c.result) for c in controls.lines(record))
    counts = record.get("counts", {})
    return [
        "## Controls",
        "",
        *table(("Control", "For", "Result"), told),
        escape(f"Lost answers: {controls.lost(counts)}."),
        "",
    ]


def _provenance(record: Mapping[str, Any]) -> list[str]:
    told = record.get("provenance", {})
    pairs = [
        ("Run", record.get("id", "")),
        ("Tool", record.get("tool_version", "")),
        ("Started", told.get("started", "")),
        ("Plan (SHA-256)", told.get("plan_sha256") or "not recorded"),
    ]
    if exchange.is_tabular(record):
        pairs += [
            ("Code of the tool (SHA-256)", (told.get("code") or {}).get("sha256") or "not recorded"),
            ("Schema (SHA-256)", record["tabular"]["schema"]["sha256"]),
            ("Rows (SHA-256)", (told.get("rows") or {}).get("sha256") or "no file was given"),
        ]
    pairs += [
        (f"Model {name}", model.get("fingerprint", "")) for name, model in record.get("models", {}).items()
    ]
    return ["## Provenance", "", *table(("", ""), [(str(a), str(b)) for a, b in pairs])]
