"""A document as plain text for a terminal: the answer on one screen, and all else below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from auditor.core.protocols import Renderer
from auditor.core.record import RunRecord
from auditor.report import claimed, words
from auditor.report import document as doc
from auditor.report.cards import Card
from auditor.report.finding import card
from auditor.report.first_screen import Row, Screen
from auditor.report.page import Page

MAX_CARDS = 3  # findings with their texts
MAX_LINES = 20  # of a table
FEW_LINES = 5  # of each below an answer
LOOKED_UP = frozenset({"method", "provenance"})
MOST = 40  # lines of a screen
STYLES = {"shown": "bold red", "bounded": "green", "not_determined": "yellow", "not_tested": "dim"}


class TerminalReport(Renderer):
    """The answer on one screen; with ``full`` all that was asked, measured and found."""

    name = "terminal"
    suffix = ".txt"

    def __init__(self, *, width: int = 100, encoding: str = "utf-8", color: bool = False, full: bool = False) -> None:
        self.width, self.encoding, self.color, self.full = width, encoding, color, full

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the report as text that ends in a line break."""
        from auditor.report import build, first_screen

        page = Page(width=self.width, encoding=self.encoding, color=self.color)
        if not self.full and record.claims:  # the rest is not needed
            answer_screen(page, first_screen.build(record, evidence))
            return page.value()
        return write(page, build.document(record, evidence), full=self.full)


def write(page: Page, document: doc.Document, *, full: bool = True) -> str:
    """Lay a document out: every part but drawings; without ``full`` the answer and what is brief, or whole."""
    first = document.first
    answered = first is not None and bool(first.rows)
    if first is not None:
        answer_screen(page, first)
    if full or first is None:
        page.title(document.title)
        for banner in document.banners if first is None else ():
            page.paragraph(banner, first="!! ", indent="   ")
        page.paragraph(" · ".join(filter(None, (document.name, document.meta))))
    shown = [s for s in document.sections if s.id not in LOOKED_UP or (full and not answered)]
    if not full:
        shown = [s for s in shown if s.brief or s.whole] or shown
    for section in shown:
        _section(page, section, answered=answered, short=answered or not full)
    if not full and (left := [s.title for s in document.sections if s not in shown]):
        page.line()
        page.paragraph(f"More with --full: {', '.join(left)}.")
    if answered and full:
        page.line()
        page.paragraph("Method, limits, settings and hashes: the HTML report. Every figure: --format csv.")
    return page.value()


def _section(page: Page, section: doc.Section, *, answered: bool, short: bool) -> None:
    page.heading(section.title)
    blocks = section.blocks
    if answered and section.folded:  # its first paragraph says enough of what a page folds
        blocks = tuple(b for b in blocks if b is blocks[0] or not isinstance(b, doc.Text))
    cards = [block for block in blocks if isinstance(block, Card)]
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


def _put(page: Page, block: doc.Block, most: int = MAX_LINES, *, short: bool = False, inside: bool = False) -> None:
    match block:
        case doc.Text(tone="heading"):
            page.title(block.text)
        case doc.Text():
            page.paragraph(block.text, first="! " if block.tone == "note" else None)
            if block.link:
                page.line(f"  {block.link}")
        case doc.Items():
            for item in block.lines:
                page.paragraph(item, first="· ", indent="  ")
        case doc.Facts():
            _facts(page, block.caption, block.pairs)
        case doc.Table(fields=True):
            for line in block.lines:
                _facts(page, block.caption, list(zip(block.columns, line, strict=True)))
        case doc.Table():
            if not inside:
                page.title(block.caption)
            rows = block.lines
            lines = ([_short(cell) if short else doc.plain(cell, "\n") for cell in line] for line in rows[:most])
            page.table(block.columns, lines, block.right)
            if (left := len(rows) - most) > 0:
                page.paragraph(f"{words.plural(left, f'further {block.of}')}: see the HTML report.")
        case doc.Commands():
            page.commands(block.lines)
        case Card():
            card(page, block)
        case doc.Findings():
            page.title(block.title)
            kept = block.rows[:most] if short else block.rows
            for row in kept:
                page.paragraph(f"{row.finding.id} {words.finding_verdict(row.finding)}: {row.sentence}", indent="  ")
            if left := len(block.rows) - len(kept):
                page.paragraph(f"{words.plural(left, 'further finding')}: see the CSV (--format csv).")


def _short(cell: str | doc.Cell | doc.Entry) -> str:
    """The figure and the mark of a cell, without what stands below."""
    return " ".join(filter(None, (cell.text, cell.mark))) if isinstance(cell, doc.Cell) else doc.plain(cell)


def _facts(page: Page, caption: str, pairs: Sequence[tuple[str, str | doc.Cell | doc.Entry]]) -> None:
    page.title(caption)
    widest = min(36, max((len(name) for name, _ in pairs), default=0))
    for name, value in pairs:
        page.paragraph(doc.plain(value), first=f"  {name:<{widest}}  ", indent=" " * (widest + 4))


# -- the answer on one screen -----------------------------------------------------------------------------


class Detail(NamedTuple):
    """How much has room: rows, rows of one attribute, notes, further differences."""

    rows: int
    each: int
    notes: int
    also: int


# The first has whole lines, the last no reasons for its commands.
LEVELS = tuple(
    Detail(*most) for most in ((24, 8, 3, 3), (16, 6, 3, 3), (12, 4, 3, 3), (10, 3, 2, 3), (8, 2, 2, 1), (4, 1, 1, 0))
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
    whole = detail is LEVELS[0]
    page.line(screen.ran if whole else page.cut(screen.ran), "bold")
    for banner in screen.banners[: detail.notes]:
        if whole or banner is screen.banners[0]:
            page.paragraph(banner, first="!! ", indent="   ", style="yellow")
        else:
            page.line(page.cut(f"!! {banner}"), "yellow")
    if (left := len(screen.banners) - detail.notes) > 0:
        page.line(f"   + {words.plural(left, 'more note')}: --full", "yellow")
    mark = words.SYMBOLS[screen.kind]
    page.paragraph(" ".join(screen.headline), first=f"{mark} ", indent="  ", style=STYLES[screen.kind])
    if screen.sure:
        page.paragraph(" ".join(screen.sure), indent="  ")
    for line in screen.also[: detail.also]:
        page.paragraph(line, first="  also: ", indent="  ")
    if (one := screen.example) is not None:
        page.paragraph(f"e.g. “{one.text}”: {one.before} → {one.after}", indent="  ")
    if screen.rows:
        page.line()
        forest(page, screen, rows=detail.rows, each=detail.each)
    page.line()
    for line in screen.checked:
        page.paragraph(line, first="CHECKS  ", indent="        ")
    if screen.not_tested:
        page.paragraph("; ".join(screen.not_tested), first="NOT TESTED  ", indent="        ")
    commands = [(command, what if detail is not LEVELS[-1] else "") for command, what in screen.next]
    page.commands(commands, lead=" " * 8, first="DO      ")


# -- the forest plot ---------------------------------------------------------------------------------------

PLOT = 25  # columns of the plot where there is room
LABEL = 34  # columns of a row's name, where there is no more room
LEAST_PLOT = 11  # where there is less, figures stand alone
CHARACTERS = {True: "│┊─├┤●", False: "|:-[]o"}  # by whether there is Unicode: zero, delta, line, ends, estimate


def forest(page: Page, screen: Screen, *, rows: int, each: int) -> None:
    """One line for each comparison: verdict, shares, interval around zero, figures, texts."""
    chosen = screen.chosen(rows, each)
    alone = {place for place, n in Counter((row.model, row.name) for row in screen.rows).items() if n == 1}
    alone = {(r.model, r.name) for r in chosen if (r.model, r.name) in alone and page.size(_named(r, alone)) <= LABEL}
    labels = [_named(row, alone) for row in chosen]
    effects = [screen.drawn(row) for row in chosen]
    figures = [claimed.net(row.claim) if e is None else e.text for row, e in zip(chosen, effects, strict=True)]
    texts = [words.count(row.claim.texts) for row in chosen]
    right = max(map(page.size, figures)) + 2 + max(5, *map(len, texts))
    widest = max(map(page.size, labels))
    room = page.width - right - 4
    plot = min(PLOT, room - min(widest, LABEL) - 1)
    plot = plot - 1 + plot % 2 if plot >= LEAST_PLOT else 0
    left = max(10, min(widest, room - plot - 1))
    reach = max([0.0, *(max(abs(e.low), abs(e.high)) for e in effects if e), *(r.claim.delta or 0.0 for r in chosen)])
    end = claimed.signed(screen.scale[0] * reach, 0 if screen.scale[0] * reach >= 10 else 1)
    ends = (end.replace("+", "−"), end) if 2 * len(end) + 3 <= plot and end != "0" else ("less", "more")
    axis = f"{ends[0]:<{plot // 2}}0{ends[1]:>{plot // 2}}"
    page.line(page.cut(screen.axis.rjust(min(page.width - 7, left + plot + right - 4)) + "  texts"), "bold")
    if plot:
        page.line(f"{'':{left + 3}}{axis}", "dim")
    model = name = ""
    for row, label, effect, figure, n in zip(chosen, labels, effects, figures, texts, strict=True):
        if row.model != model:
            model, name = row.model, ""
            page.line(page.cut(f"  {model}"), "bold")
        if row.name != name and (row.model, row.name) not in alone:
            page.line(page.cut(f"  {row.name}"))
        name = row.name
        strip = _strip(effect, screen, reach, plot, unicode=words.is_utf8(page.encoding)) if plot else ""
        shown = page.padded(page.cut(label, left), left)
        numbers = page.padded(figure, right - 2 - max(5, *map(len, texts)), right=True)
        line = f"{words.SYMBOLS[row.claim.verdict]} {shown} {strip} {numbers}  {n:>5}"
        page.line(page.cut(line), STYLES[row.claim.verdict])
    kinds = dict.fromkeys(row.claim.verdict for row in chosen)
    page.line(f"  {'   '.join(words.verdict(kind) for kind in kinds)}", "dim")
    if screen.note:
        page.paragraph(screen.note, indent="  ", style="dim")
    left_out = Counter(row.claim.verdict for row in screen.rows) - Counter(row.claim.verdict for row in chosen)
    if left_out:
        listed = ", ".join(f"{words.count(n)} {words.verdict(kind)}" for kind, n in left_out.items())
        page.line(page.cut(f"  further comparisons, with --full: {listed}"), "dim")


def _named(row: Row, alone: Container[tuple[str, str]]) -> str:
    """The groups of a row, after its attribute where that has no line of its own."""
    return f"{row.name}: {row.label}".removesuffix(": ") if (row.model, row.name) in alone else f"  {row.label}"


def _strip(effect: claimed.Effect | None, screen: Screen, reach: float, width: int, *, unicode: bool) -> str:
    zero, limit, line, left, right, mark = list(CHARACTERS[unicode])
    cells = [" "] * width

    def at(value: float) -> int:
        return round((min(max(value / reach, -1.0), 1.0) + 1) / 2 * (width - 1)) if reach else width // 2

    for delta in {row.claim.delta for row in screen.rows if row.claim.delta and screen.drawn(row) is not None}:
        cells[at(-delta)] = cells[at(delta)] = limit
    cells[width // 2] = zero
    if effect is not None:
        low, high = at(effect.low), at(effect.high)
        cells[low : high + 1] = [line] * (high + 1 - low)
        cells[low], cells[high] = left, right
        cells[at(effect.value)] = mark
    return "".join(cells)
