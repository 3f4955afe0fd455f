"""The first screen as lines of a terminal: at most `MOST` of them, at the width that there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.report import claimed, words
from auditor.report.answer import Screen
from auditor.report.page import Page

MOST = 40  # lines
LEAST = 14  # columns of a row's name
STYLES = {
    "shown": "bold red",
    "shown_for_words": "red",
    "bounded": "green",
    "not_determined": "yellow",
    "not_tested": "dim",
}
FULL = "--full"


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is told: reasons of rows, rows, notes, what each command gives."""

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


def write(page: Page, screen: Screen, *, full: bool) -> None:
    """Lay the first screen out; with ``full`` nothing is left out of it."""
    if full:
        _put(page, screen, Detail(rows=10_000, notes=100))
        return
    for detail in LEVELS:
        trial = Page(width=page.width, encoding=page.encoding, color=page.color)
        _put(trial, screen, detail)
        if trial.value().count("\n") <= MOST:
            break
    _put(page, screen, detail)


def _put(page: Page, screen: Screen, detail: Detail) -> None:
    page.line(page.cut(screen.ran) if not detail.whole else screen.ran, "bold")
    for banner in screen.banners[: detail.notes]:
        _told(page, banner, "!! ", "yellow", whole=detail.whole or banner is screen.banners[0])
    if (left := len(screen.banners) - detail.notes) > 0:
        page.line(f"   + {words.plural(left, 'more note')}: {FULL}", "yellow")
    mark = words.SYMBOLS[screen.kind]
    style = STYLES[screen.kind]
    page.paragraph(
        f"{claimed.loud(screen.claim)}{screen.between}{screen.figures}",
        first=f"{mark} ",
        indent="  ",
        style=style,
    )
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
        _table(page, screen, detail)
    page.line()
    for line in screen.checked:
        page.paragraph(line, first="CHECKS  ", indent="        ")
    if screen.not_tested:
        page.paragraph("; ".join(screen.not_tested), first="NOT TESTED  ", indent="        ")
    page.commands(screen.next, lead=" " * 8, first="NEXT    ")


def _told(page: Page, text: str, first: str, style: str, *, whole: bool) -> None:
    if whole:
        page.paragraph(text, first=first, indent=" " * len(first), style=style)
    else:
        page.line(page.cut(first + text), style)


def _table(page: Page, screen: Screen, detail: Detail) -> None:
    """Columns side by side, the reason of a row below it; the name gives way where the page is narrow."""
    rows = screen.rows[: detail.rows]
    cells = [screen.cells(r) for r in rows]
    widths = [max(map(page.size, column)) for column in zip(screen.columns, *cells, strict=True)]
    gap = 2 if sum(widths) + 2 * len(widths) <= page.width else 1
    widths[0] = max(LEAST, min(widths[0], page.width - sum(widths[1:]) - gap * (len(widths) - 1) - 2))
    page.line(page.cut(_line(page, screen.columns, widths, gap)), "bold")
    model = ""
    for row, cell in zip(rows, cells, strict=True):
        if row.model != model:
            model = row.model
            page.line(page.cut(f"  {model}"), "bold")
        page.line(page.cut(_line(page, cell, widths, gap)), STYLES[row.kind])
        more = f"+ {row.left}: {FULL}" if row.left else ""
        reason = row.reason if detail.reasons else ""
        if told := "; ".join(part for part in (more, reason) if part):
            _told(page, told, "      ", "dim", whole=detail.whole)
    if (hidden := len(screen.rows) - len(rows)) > 0:
        page.line(f"  + {words.plural(hidden, 'more row')}: {FULL}", "dim")


def _line(page: Page, cells: Sequence[str], widths: Sequence[int], gap: int) -> str:
    out = [page.padded(page.cut(cells[0], widths[0]), widths[0])]
    for i, (cell, width) in enumerate(zip(cells[1:], widths[1:], strict=True), start=1):
        out.append(page.padded(cell, width, right=i == 1))
    return "  " + (" " * gap).join(out).rstrip()
