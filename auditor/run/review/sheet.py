"""The sheet that two readers fill: what is written into it, and how a filled one is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from auditor.core import csvfile
from auditor.core.errors import DataFileError
from auditor.core.shown import csv_text

COLUMNS = ("id", "original", "variant", "reader_1", "reader_2")
VALUES = ("ok", "wrong", "unsure")
INSTRUCTIONS = """# How to read {sheet}

Each row has an original text and a variant in which words for people were replaced. Two people fill the sheet
independently and without talking about it: one the column `reader_1`, the other the column `reader_2`.

Read both texts and enter one of three values:

- `ok`: the variant is English that somebody could have written, and it says the same as the original about
  another person.
- `wrong`: the change broke the grammar, made the text contradict itself (he … her for one person), or changed its
  meaning beyond the person named. Mistakes that the original has as well do not count.
- `unsure`: neither can be said.

Judge the text only, not what a model should answer to it and not whether you like what it says.

Keep all rows and leave `id`, `original` and `variant` as they are. A text that begins with `=`, `+`, `-` or `@` has
an apostrophe in front, so that a spreadsheet shows it instead of computing it. Save as CSV (UTF-8), then run:

    audit validity import {run} {sheet}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One variant to read. ``discarded`` is what the automatic check said; it is not in the sheet."""

    id: str
    case: str
    attributes: tuple[str, ...]
    discarded: bool
    original: str
    variant: str


def sheet(rows: Iterable[Row]) -> str:
    """The rows as CSV with empty columns for the readers."""
    return csv_text([COLUMNS, *([r.id, r.original, r.variant, "", ""] for r in rows)])


def plain(text: str) -> str:
    """Spreadsheets write line ends in their own way."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def records(path: Path) -> Iterable[tuple[int, dict[str, str]]]:
    """Line number and cells of each row that is not blank."""
    table = csvfile.parse(path, csvfile.decode(path, csvfile.content(path)), wanted=COLUMNS)
    header = [name.casefold() for name in table.columns]
    if lost := [column for column in COLUMNS if header.count(column) != 1]:
        raise DataFileError(
            f"{path}, line 1: each column once, and {', '.join(lost)} is not. Needed: {', '.join(COLUMNS)}."
        )
    for line, cells in table.rows:
        if any(cell.strip() for cell in cells):
            yield line, dict(zip(header, cells, strict=True))
