"""A document as plain text for a terminal: the answer on one screen, and all else below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auditor.core.protocols import Renderer
from auditor.core.record import Plain, RunRecord, read
from auditor.report import claimed, words
from auditor.report import document as doc
from auditor.report.finding import card
from auditor.report.first_screen import Screen
from auditor.report.page import Page

MAX_CARDS = 3  # findings with their texts
MAX_LINES = 20  # of a table
MAX_FOLDED = 8  # of one that a page opens on a click
FEW_LINES = 5  # of each below an answer
NAMED = 6  # lines for the commands, and for the names of what had no room
LOOKED_UP = frozenset({"method", "provenance"})
MOST = 40  # lines of a screen
LEAST = 14  # columns of a row's name
STYLES = {"shown": "bold red", "bounded": "green", "not_determined": "yellow", "not_tested": "dim"}


class TerminalReport(Renderer):
    """The answer on one screen; with ``full`` all that was asked, measured and found.

    Of a run without claims (free texts, rows, a paper's own protocol, an old record) the first sections stand.

    Parameters
    ----------
    width : int, default 100
        Columns of the page.
    encoding : str, default "utf-8"
        Encoding of the terminal; other than UTF means ASCII symbols.
    color : bool, default False
        ANSI styles for headings and marks.
    full : bool, default False
        Everything that was measured, below the answer.
    """

    name = "terminal"
    suffix = ".txt"

    def __init__(self, *, width: int = 100, encoding: str = "utf-8", color: bool = False, full: bool = False) -> None:
        self.width, self.encoding, self.color, self.full = width, encoding, color, full

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the report as text that ends in a line break."""
        from auditor.report import build, first_screen

        page = Page(width=self.width, encoding=self.encoding, color=self.color)
        record = read(record)
        first = None if self.full or record.claims is None else first_screen.build(record, evidence)
        if first is not None:  # the rest of the document is not needed
            answer_screen(page, first)
            return page.value()
        return write(page, build.document(record, evidence), full=self.full)


def write(page: Page, document: doc.Document, *, full: bool = True) -> str:
    """Lay a document out: every part but drawings, those within folds too.

    Below an answer stands what a reader goes on to: the first lines of each table, without what the answer said, and
    nothing of what is looked up by name (hashes, settings), which the page, the CSV and ``run.json`` have. Without
    ``full`` it is the answer, or the first sections that have room on a screen.
    """
    answered = document.first is not None
    if document.first is not None:
        answer_screen(page, document.first)
        if not full:
            return page.value()
        page.line()
    page.line(document.title, "bold")
    for banner in () if answered else document.banners:
        page.paragraph(banner, first="!! ", indent="   ")
    page.paragraph(" · ".join(filter(None, (document.name, document.meta))))
    left: list[doc.Section] = []
    for section in document.sections:
        if full:
            if not (answered and section.id in LOOKED_UP):
                _section(page, section, answered=answered, short=answered)
        elif (
            section.id == "next" or section.whole or (not left and section.id not in LOOKED_UP and _fits(page, section))
        ):
            _section(page, section, answered=False, short=True)
        else:
            left += [section] if left else _begun(page, section)
    if left:
        page.line()
        page.paragraph(f"--full tells more: {', '.join(section.title for section in left)}.")
    if answered:
        page.line()
        page.paragraph("Method, limits, settings and hashes: the HTML report. Every figure: --format csv.")
    return page.value()


def _fits(page: Page, section: doc.Section) -> bool:
    """Whether a section has room on the screen below what stands there."""
    trial = Page(width=page.width, encoding=page.encoding, color=False)
    _section(trial, section, answered=False, short=True)
    return page.value().count("\n") + trial.value().count("\n") + 1 + NAMED <= MOST


def _begun(page: Page, section: doc.Section) -> list[doc.Section]:
    """Lay out what has room of a section that is too long, if anything has; it is still to be named."""
    for n in range(len(section.blocks) - 1, 0, -1):
        part, last = replace(section, blocks=section.blocks[:n]), section.blocks[n - 1]
        if isinstance(last, doc.Text) and last.tone == "heading":
            continue  # the title of what has no room
        if section.id not in LOOKED_UP and _fits(page, part):
            _section(page, part, answered=False, short=True)
            break
    return [section]


def _section(page: Page, section: doc.Section, *, answered: bool, short: bool) -> None:
    page.heading(section.title)
    blocks = [b for b in section.blocks if not (answered and _said(section, b))]
    cards = [block for block in blocks if isinstance(block, doc.Evidence)]
    left = cards[1 if short else MAX_CARDS :]
    for block in blocks:
        if block not in left:
            named = isinstance(block, doc.Table) and block.caption == section.title
            if named and block is not blocks[0]:
                page.line()
            brief = short and not section.whole
            _put(page, block, FEW_LINES if brief else MAX_LINES, short=brief, inside=named)
    if left:
        page.paragraph(f"{words.plural(len(left), 'further example')}: see the HTML report.")


def _said(section: doc.Section, block: doc.Block) -> bool:
    """Whether the answer above, or the first paragraph of a section that a page folds, says enough of a part."""
    if section.id == "matrix":
        return not isinstance(block, doc.Fold)
    return section.folded and isinstance(block, doc.Text) and block is not section.blocks[0]


def _put(page: Page, block: doc.Block, most: int = MAX_LINES, *, short: bool = False, inside: bool = False) -> None:
    match block:
        case doc.Text(tone="heading"):
            page.title(block.text)
        case doc.Text():
            page.paragraph(block.text, first="! " if block.tone == "note" else None)
            if block.link:
                page.line(f"  {block.link}")
        case doc.Items():
            _items(page, block.lines)
        case doc.Facts():
            _facts(page, block.caption, block.pairs)
        case doc.Table(fields=True):
            for line in block.lines:
                _facts(page, block.caption, list(zip(block.columns, line, strict=True)))
        case doc.Table():
            if not inside:
                page.title(block.caption)
            rows = (*block.lines, *block.more)
            lines = ([_short(cell) if short else doc.plain(cell, "\n") for cell in line] for line in rows[:most])
            page.table(block.columns, lines, block.right)
            if (left := len(rows) - most) > 0:
                page.paragraph(f"{words.plural(left, *block.left)}: see the HTML report.")
        case doc.Commands():
            page.commands(block.lines)
        case doc.Evidence():
            card(page, block.card)
        case doc.Findings():
            page.title(block.title)
            kept = block.rows[:most] if short else block.rows
            for row in kept:
                page.paragraph(f"{row.finding.id} {words.finding_verdict(row.finding)}: {row.sentence}", indent="  ")
            if left := len(block.rows) - len(kept):
                page.paragraph(f"{words.plural(left, 'further finding')}: see the CSV (--format csv).")
        case doc.Fold() if not all(isinstance(inner, doc.Chart) for inner in block.blocks):
            page.title(block.title)
            for inner in block.blocks if not (short and "none shown" in block.title) else ():
                _put(page, inner, MAX_FOLDED if not short else FEW_LINES, short=short, inside=short)


def _short(cell: str | doc.Cell | doc.Entry) -> str:
    """The figure and the mark of a cell, without what stands below."""
    return " ".join(filter(None, (cell.text, cell.mark))) if isinstance(cell, doc.Cell) else doc.plain(cell)


def _facts(page: Page, caption: str, pairs: Sequence[tuple[str, str | doc.Cell | doc.Entry]]) -> None:
    page.title(caption)
    widest = min(36, max((len(name) for name, _ in pairs), default=0))
    for name, value in pairs:
        page.paragraph(doc.plain(value), first=f"  {name:<{widest}}  ", indent=" " * (widest + 4))


def _items(page: Page, lines: Iterable[str | doc.Items], depth: int = 0) -> None:
    for line in lines:
        if isinstance(line, doc.Items):
            _items(page, line.lines, depth + 1)
        else:
            page.paragraph(line, first="    " * depth + "· ", indent="    " * depth + "  ")


# -- the answer on one screen -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Detail:
    """How much has room: reasons of rows, rows, notes, what each command gives."""

    reasons: bool = True
    rows: int = 16
    notes: int = 3
    whole: bool = True  # notes and reasons in full, else their first line
    also: int = 10  # further differences beside the headline; the table has them too


LEVELS = (
    Detail(),
    Detail(whole=False),
    Detail(reasons=False, whole=False),
    Detail(False, 8, 2, False),
    Detail(False, 8, 2, False, 1),
    Detail(False, 4, 1, False, 1),
)


def answer_screen(page: Page, screen: Screen) -> None:
    """Lay the first screen out, with as much as has room."""
    for detail in LEVELS:
        trial = Page(width=page.width, encoding=page.encoding, color=page.color)
        _put_answer(trial, screen, detail)
        if trial.value().count("\n") <= MOST:
            break
    _put_answer(page, screen, detail)


def _put_answer(page: Page, screen: Screen, detail: Detail) -> None:
    page.line(screen.ran if detail.whole else page.cut(screen.ran), "bold")
    for banner in screen.banners[: detail.notes]:
        _note(page, banner, "!! ", "yellow", whole=detail.whole or banner is screen.banners[0])
    if (left := len(screen.banners) - detail.notes) > 0:
        page.line(f"   + {words.plural(left, 'more note')}: --full", "yellow")
    headline, mark = f"{_loud(screen.claim)}{screen.between}{screen.figures}", words.SYMBOLS[screen.kind]
    page.paragraph(headline, first=f"{mark} ", indent="  ", style=STYLES[screen.kind])
    if screen.support:
        page.paragraph(" · ".join(screen.support), indent="  ")
    for line in screen.also_of(detail.also):
        page.paragraph(f"also: {line}", indent="  ")
    if (one := screen.example) is not None:
        page.paragraph(f"e.g. “{one.text}”: {one.before} → {one.after}", indent="  ")
        if one.more and screen.next:
            page.line(f"  {words.plural(one.more, 'more example')}: see NEXT")
    if screen.rows:
        page.line()
        _rows_of(page, screen, detail)
    page.line()
    for line in screen.checked:
        page.paragraph(line, first="CHECKS  ", indent="        ")
    if screen.not_tested:
        page.paragraph("; ".join(screen.not_tested), first="NOT TESTED  ", indent="        ")
    page.commands(screen.next, lead=" " * 8, first="NEXT    ")


def _loud(text: str) -> str:
    """In capital letters, but for what a task calls its labels."""
    before, *labelled = text.split("“")
    after = ((label, rest) for label, _, rest in (part.partition("”") for part in labelled))
    return before.upper() + "".join(f"“{label}”{rest.upper()}" for label, rest in after)


def _note(page: Page, text: str, first: str, style: str, *, whole: bool) -> None:
    if whole:
        page.paragraph(text, first=first, indent=" " * len(first), style=style)
    else:
        page.line(page.cut(first + text), style)


def _rows_of(page: Page, screen: Screen, detail: Detail) -> None:
    """Columns side by side, the reason of a row below it; the name gives way where the page is narrow."""
    rows = screen.rows[: detail.rows]
    cells = [screen.cells(r) for r in rows]
    widths = [max(map(page.size, column)) for column in zip(screen.columns, *cells, strict=True)]
    gap = 2 if sum(widths) + 2 * len(widths) <= page.width else 1
    widths[0] = max(LEAST, min(widths[0], page.width - sum(widths[1:]) - gap * (len(widths) - 1) - 2))
    page.line(page.cut(_line_of(page, screen.columns, widths, gap)), "bold")
    model = ""
    for row, cell in zip(rows, cells, strict=True):
        if row.model != model:
            model = row.model
            page.line(page.cut(f"  {model}"), "bold")
        page.line(page.cut(_line_of(page, cell, widths, gap)), STYLES[row.claim.verdict])
        more = f"+ {row.left}: --full" if row.left else ""
        why = claimed.reason(row.claim) if detail.reasons else ""
        if below := "; ".join(filter(None, (screen.share(row), more, why))):
            _note(page, below, "      ", "dim", whole=detail.whole)
    if (hidden := len(screen.rows) - len(rows)) > 0:
        page.line(f"  + {words.plural(hidden, 'more row')}: --full", "dim")


def _line_of(page: Page, cells: Sequence[str], widths: Sequence[int], gap: int) -> str:
    out = [page.padded(page.cut(cells[0], widths[0]), widths[0])]
    for i, (cell, width) in enumerate(zip(cells[1:], widths[1:], strict=True), start=1):
        out.append(page.padded(cell, width, right=i == 1))
    return "  " + (" " * gap).join(out).rstrip()
