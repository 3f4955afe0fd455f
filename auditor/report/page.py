"""A page of plain text that untrusted strings cannot act on."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from io import StringIO
from typing import Literal

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from auditor.report import words

# Stands for a space that does not break while a table is laid out: rich breaks at U+00A0 too. `words.visible` lets
# no lone surrogate through, so none comes from a text.
_UNBROKEN = "\ud800"


class Page:
    """Collects lines of one report, of at least 40 columns: everything laid out here is made visible first."""

    def __init__(self, *, width: int = 100, encoding: str = "utf-8", color: bool = False) -> None:
        self.width, self.encoding, self.color = max(40, width), encoding, color
        self._file = StringIO()
        self._console = Console(
            file=self._file,
            width=self.width,
            color_system="standard" if color else None,
            force_terminal=color,
            no_color=not color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            safe_box=False,
            _environ={},
        )

    def plain(self, text: object, *, newlines: bool = True) -> str:
        """Text that may be laid out: no controls, only what the encoding can carry."""
        return words.encodable(words.visible(str(text), newlines=newlines), self.encoding)

    def text(self, text: object, style: str = "") -> Text:
        """Wrap a piece of `plain` text, never read as markup."""
        return Text(self.plain(text), style=style)

    def heading(self, text: str) -> None:
        """Print a section title with a rule under it."""
        self.line()
        self._console.print(self.text(text, "bold"))
        self._console.print(self.plain("─" if words.is_utf8(self.encoding) else "-") * self.width, style="dim")

    def title(self, text: str) -> None:
        """A line that stands apart over what follows; only the gap, if empty."""
        self.line()
        if text:
            self.line(text, "bold")

    def line(self, text: object = "", style: str = "", *, whole: bool = False) -> None:
        """One line; a longer one wraps, unless it is to stay ``whole``: a command to copy."""
        self._console.print(self.text(text, style), soft_wrap=whole)

    def size(self, text: str) -> int:
        """Columns that a text takes."""
        return cell_len(self.plain(text, newlines=False))

    def cut(self, text: str, width: int | None = None) -> str:
        """Text that fits into ``width`` columns (the page's, if not given), ``…`` where something was cut off."""
        line, width = self.plain(text, newlines=False), self.width if width is None else width
        if self.size(line) <= width:
            return line
        mark = self.plain("…")
        return set_cell_size(line, max(0, width - self.size(mark))).rstrip() + mark

    def padded(self, text: str, width: int, *, right: bool = False) -> str:
        """Text filled up to ``width`` columns."""
        line = self.plain(text, newlines=False)
        room = " " * max(0, width - self.size(line))
        return room + line if right else line + room

    def paragraph(self, text: str, *, indent: str = "", first: str | None = None, style: str = "") -> None:
        """Prose, wrapped at spaces, figures kept together with their unit."""
        plain = words.glue(self.plain(text, newlines=False))
        lead, rest = self.plain(indent if first is None else first), self.plain(indent)
        current = lead
        for word in plain.split(" "):
            fits = cell_len(current) + cell_len(word) + 1 <= self.width
            if current in (lead, rest) or fits:
                current += word if current in (lead, rest) else f" {word}"
            else:
                self._emit(current, style)
                current = rest + word
        self._emit(current, style)

    def commands(self, lines: Sequence[tuple[str, str]], *, lead: str = "", first: str = "") -> None:
        """Commands to copy, each whole on a line of its own, after what it gives: next to it where it has room."""
        widest = max((len(what) for _, what in lines), default=0)
        for n, (command, what) in enumerate(lines):
            start = lead if n or not first else first
            if not what or len(start) + widest + 2 + len(command) <= self.width:
                self.line(f"{start}{f'{what:<{widest}}  ' if what else ''}{command}", whole=True)
            else:
                self.paragraph(f"{what}:", first=start, indent=" " * len(start))
                self.line(f"{' ' * (len(start) + 2)}{command}", whole=True)

    def _emit(self, text: str, style: str) -> None:
        self.line(text.replace("\u00a0", " "), style)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], right: Container[str] = ()) -> None:
        """Print a table with a header; the columns in ``right`` are aligned to the right."""
        cells = [[self._cell(cell) for cell in row] for row in (columns, *rows)]
        fitting = widths(cells, self.width)
        if sum(fitting) + GAP * (len(fitting) - 1) > self.width:
            self._stack(cells)
            return
        shape = box.SIMPLE_HEAD if words.is_utf8(self.encoding) else box.ASCII2
        table = Table(box=shape, show_edge=False, pad_edge=False, header_style="bold")
        for name, title, width in zip(columns, cells[0], fitting, strict=True):
            justify: Literal["right", "left"] = "right" if name in right else "left"
            table.add_column(Text(title), justify=justify, width=width, overflow="fold", vertical="top")
        for row in cells[1:]:
            table.add_row(*map(Text, row))
        self._console.print(table)

    def _stack(self, rows: Sequence[Sequence[str]]) -> None:
        """A table on a page that is too narrow for it: a row below the other, each cell with its title."""
        for row in rows[1:]:
            cells = zip(rows[0][1:], row[1:], strict=True)
            lines = (f"  {title}: {cell}" if title else f"  {cell}" for title, cell in cells if cell.strip())
            for line in (row[0].strip(), *lines):
                self._console.print(Text(line, overflow="fold"))

    def _cell(self, text: object) -> str:
        return words.glue(self.plain(text)).replace("\u00a0", _UNBROKEN)

    def pair(self, left: tuple[str, Text], right: tuple[str, Text]) -> None:
        """Two texts side by side, or one below the other where the page is narrow."""
        if self.width < 80:
            for title, text in (left, right):
                self.line(title, "bold")
                self._console.print(text)
                self.line()
            return
        table = Table(box=None, expand=True, padding=(0, 2, 0, 0), show_edge=False)
        for title, _ in (left, right):
            table.add_column(self.text(title, "bold"), ratio=1, overflow="fold")
        table.add_row(left[1], right[1])
        self._console.print(table)

    def value(self) -> str:
        """Everything so far, without white space at line ends."""
        lines = (line.rstrip(" ") for line in self._file.getvalue().replace(_UNBROKEN, " ").split("\n"))
        text = "\n".join(lines).strip("\n") + "\n"
        return words.encodable(text, self.encoding)  # what the layout cut off is marked in its own way


_LONG = 24  # a longer word may be cut where the table is too wide
GAP = 3  # between two columns


def widths(rows: Sequence[Sequence[str]], page: int) -> list[int]:
    """Return how wide each column has to be so that the table fits on the page."""
    columns = list(zip(*rows, strict=True))
    fitting = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    words = [[cell_len(word) for cell in column for word in cell.split()] for column in columns]
    least = [max((min(size, _LONG) for size in sizes), default=1) for sizes in words]
    while sum(fitting) + GAP * (len(columns) - 1) > page and (
        over := [i for i, width in enumerate(fitting) if width > least[i]]
    ):
        fitting[max(over, key=lambda i: fitting[i])] -= 1
    return fitting
