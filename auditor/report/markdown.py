"""A document as Markdown (GitHub's dialect): for issues, pull requests and wikis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from auditor.core.protocols import Renderer
from auditor.core.record import RunRecord
from auditor.report import cards, words
from auditor.report import document as doc

_START = re.compile(r"^(\d{0,9})([-+=.)])")
_SPECIAL = re.compile(r"[\\`*_\[\]|~$#]")
# What GitHub turns into links by itself: an empty comment parts it, and shows nothing.
_LINKS = re.compile(r"(?<=[A-Za-z])(?=://)|(?<=www)(?=\.)|(?<=@)(?=\w)", re.IGNORECASE)


class MarkdownReport(Renderer):
    """The report of any kind of run as tables and lists."""

    name = "markdown"
    suffix = ".md"

    def __init__(self, *, full: bool = True) -> None:
        self.full = full

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the report."""
        from auditor.report import build

        return write(build.document(record, evidence), full=self.full)


MAX_BYTES = 1_000_000  # a summary of a step may hold 1 MiB
CUT = "\n\nThe rest was cut off: GitHub shows 1 MiB. The other formats have everything.\n"


class GithubSummary(Renderer):
    """The job summary (``$GITHUB_STEP_SUMMARY``); `exchange.workflow_commands` gives the lines for stdout."""

    name = "github"
    suffix = ".md"

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the summary, at most 1 MiB."""
        text = MarkdownReport(full=False).render(record, evidence)
        text += f"\nRun {escape(record.id)}. {words.named('verdicts')['not_determined']}\n"
        data = text.encode("utf-8")
        if len(data) <= MAX_BYTES:
            return text
        kept = data[: MAX_BYTES - len(CUT)].decode("utf-8", "ignore")
        return kept[: kept.rfind("\n")] + CUT


def write(document: doc.Document, *, full: bool = True) -> str:
    """A document as Markdown; without ``full`` only what is brief."""
    lines = [f"# {escape(document.title)}", ""]
    lines += [line for banner in document.banners for line in (f"> **Note** {escape(banner)}", "")]
    if document.first is not None:
        lines += _first(document.first)
    lines += [block(" · ".join(filter(None, (document.name, document.meta)))), ""]
    for section in document.sections:
        if full or section.brief:
            lines += [f"## {escape(section.title)}", ""]
            lines += [line for part in section.blocks for line in _block(part, full, section.title)]
    if full and document.footer:
        lines += [block(document.footer)]
    return "\n".join(lines).rstrip() + "\n"


def _block(part: doc.Block, full: bool, heading: str = "") -> Iterable[str]:
    match part:
        case doc.Text(tone="heading"):
            yield from (f"### {escape(part.text)}", "")
        case doc.Text():
            yield ("> " * (part.tone == "note") + block(part.text) + (f" ([report]({part.link}))" if part.link else ""))
            yield ""
        case doc.Items():
            yield from (*(f"- {block(line)}" for line in part.lines), "")
        case doc.Facts():
            yield from table(("", ""), part.pairs, part.caption)
        case doc.Table():
            rows = part.lines if full else part.lines[: part.most]
            caption = None if part.caption == heading else part.caption
            yield from table(list(map(escape, part.columns)), rows, caption)
        case doc.Commands():
            yield from (f"- <code>{escape(command)}</code>: {escape(what)}" for command, what in part.lines)
            yield ""
        case cards.Card() if full:
            yield from _card(part)
        case cards.Card():
            f = part.finding
            yield from (f"- {escape(f'{f.id} {words.finding_verdict(f)}: {part.sentence}')}", "")
        case doc.Findings():
            marks = (words.finding_verdict(r.finding) + (" (waived)" if r.waiver else "") for r in part.rows)
            cells = ((m, r.finding.id, r.finding.code, r.sentence) for m, r in zip(marks, part.rows, strict=True))
            yield from table(("Verdict", "Finding", "Code", "What was measured"), cells, part.title)


def _card(card: cards.Card) -> Iterable[str]:
    finding = card.finding
    place = words.direction(finding.directions) or words.attributes(finding.attributes)
    yield from (f"### {escape(finding.id)}: {escape(place)}", "")
    yield from (f"{escape(words.finding_verdict(finding))}. {block(card.sentence)}", "")
    if card.missing:
        yield from (block(card.missing), "")
        return
    yield from (f"> Original: {_marked(card.original)}", ">", f"> Variant: {_marked(card.variant)}", "")
    answers = (
        (cell.label, ", ".join(f"{old} → {new}" for _, old, new in cell.changes), cell.tally.text)
        for cell in card.cells
    )
    yield from table(("Changed", "Words", "Answers"), answers)
    yield from (f"- {block(words.sentence(note))}" for note in card.notes if note.strip())
    yield from (f"- “{escape(b.text)}”: {escape(b.before)} → {escape(b.after)}" for b in card.more)
    yield ""


def escape(text: object) -> str:
    """Text that stays text in any place of a line, table cells included."""
    plain = words.visible(str(text), newlines=False)
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        plain = plain.replace(char, entity)
    return _LINKS.sub("<!-- -->", _SPECIAL.sub(r"\\\g<0>", plain))


def block(text: object) -> str:
    """Text that begins a line or a list item: no list, rule, heading or code block comes of it."""
    return _START.sub(r"\1\\\2", escape(text).strip())


def table(columns: Sequence[str], rows: Iterable[doc.Line], caption: str | None = None) -> list[str]:
    """A table; the cells are escaped here."""
    lines = [] if caption is None else [f"**{escape(caption)}**", ""]
    lines += [f"| {' | '.join(columns)} |", f"|{'|'.join(' --- ' for _ in columns)}|"]
    return [*lines, *(f"| {' | '.join(map(_cell, row))} |" for row in rows), ""]


def _cell(cell: str | doc.Cell | doc.Entry) -> str:
    blank = isinstance(cell, doc.Entry) and cell.value is None
    return f"**{doc.TO_FILL}**" if blank else escape(doc.plain(cell))


def _first(screen: doc.Screen) -> list[str]:
    mark = words.SYMBOLS[screen.kind]
    lines = ["## Answer", "", block(screen.ran), ""]
    lines += [f"**{mark} {escape(' '.join(screen.headline))}**", ""]
    lines += [block(" ".join(screen.sure)), ""] if screen.sure else []
    lines += [line for also in screen.also for line in (f"Also: {escape(also)}", "")]
    if (one := screen.example) is not None:
        lines += [f"> “{escape(one.text)}”: {escape(one.before)} → {escape(one.after)}", ""]
    lines += [f"- Checks: {escape(line)}" for line in screen.checked]
    lines += [f"- Not tested: {escape(line)}" for line in screen.not_tested]
    lines += [f"- Do: {escape(what)}: <code>{escape(command)}</code>" for command, what in screen.next]
    return [*lines, ""]


def _marked(segments: Sequence[cards.Segment]) -> str:
    out = []
    for segment in segments:
        text = escape(segment.text)
        core = text.strip()
        out.append(text.replace(core, f"<b>{core}</b>", 1) if segment.changed and core else text)
    return "".join(out)
