"""Widths of the columns of a plain-text table in which no number is broken in the middle of its digits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rich.cells import cell_len, set_cell_size

# Where a figure may go on in the next line: behind a space, a dash between two figures, or a stroke.
_AFTER = re.compile(r"(?<=[\d)%][–—/-])(?=[\d(])")
_LONG = 24  # a longer word without figures may be cut where the table is too wide
_SHORT = 4  # and any such word into pieces of this length, where nothing else helps
GAP = 3  # between two columns


def _figure(word: str) -> bool:
    """A number with its unit; the name of a model, a date or a hash is a word."""
    return any(c.isdigit() for c in word) and sum(c.isalpha() for c in word) < _SHORT


def _whole(text: str) -> list[str]:
    """Words, each in one piece."""
    return [word if _figure(word) else word[:_LONG] for word in text.split()]


def _parts(text: str) -> list[str]:
    """Words, figures divided where they may be."""
    return [
        part for word in text.split() for part in (_AFTER.split(word) if _figure(word) else [word[:_LONG]])
    ]


def _pieces(text: str) -> list[str]:
    """Divided figures, and pieces of words."""
    return [part if _figure(part) else part[:_SHORT] for part in _parts(text)]


def widths(rows: Sequence[Sequence[str]], page: int) -> list[int]:
    """How wide each column has to be so that the table fits on the page.

    Columns are as wide as their longest line where there is room. Where there is not, the widest give way first:
    to their longest word, then to their longest part of a figure, then words are cut. Figures never are: the widths
    of a table that does not fit even so are more than the page has.

    Parameters
    ----------
    rows : sequence of rows
        All cells, the header among them.
    page : int
        Columns of the page.

    Examples
    --------
    >>> widths([["Category", "Rate"], ["Two or More Races", "45.1 (96/213)"]], 27)
    [12, 12]
    >>> widths([["Category", "Rate"], ["Two or More Races", "45.1 (96/213)"]], 10)
    [4, 4]
    """
    columns = list(zip(*rows, strict=True))
    found = [max(_longest(cell, lambda c: c.split("\n")) for cell in column) for column in columns]
    room = page - GAP * (len(columns) - 1)
    for split in (_whole, _parts, _pieces):
        least = [max(_longest(cell, split) for cell in column) for column in columns]
        while sum(found) > room and (over := [i for i, w in enumerate(found) if w > max(1, least[i])]):
            found[max(over, key=lambda i: found[i])] -= 1
    return found


def _longest(cell: str, split: Callable[[str], list[str]]) -> int:
    return max((cell_len(part) for part in split(cell)), default=0)


def wrap(cell: str, width: int) -> str:
    """Break a cell at spaces, then inside figures where that is allowed, then inside words.

    Examples
    --------
    >>> wrap("45.1 (96/213)", 9).split(chr(10)), wrap("45.1 (96/213)", 5).split(chr(10))
    (['45.1', '(96/213)'], ['45.1', '(96/', '213)'])
    """
    lines: list[str] = []
    for line in cell.split("\n"):
        current = indent = " " * (len(line) - len(line.lstrip(" ")))
        for word in line.split():
            between = "" if current == indent else " "
            if cell_len(current + between + word) <= width:
                current += between + word
                continue
            lines += [current] if current.strip() else []
            current = ""
            for part in _AFTER.split(word) if _figure(word) else [word]:
                if cell_len(current) + cell_len(part) > width and current:
                    lines.append(current)
                    current = ""
                current += part
                while cell_len(current) > width and not _figure(current):
                    piece = set_cell_size(current, width).rstrip()
                    lines.append(piece)
                    current = current[len(piece) :]
        lines.append(current)
    return "\n".join(lines)
