"""The sheet that two readers fill: what is written into it, and how a filled one is read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from auditor.core import userfile
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
    try:
        text = userfile.content(path).decode("utf-8-sig")
    except OSError as error:
        raise DataFileError(f"{path} could not be read: {error.strerror}. Check the path.") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataFileError(f"{path}, line {line}: not UTF-8. Save the sheet as CSV (UTF-8).") from error
    # The limit is one for the whole process and guards nothing here: the text is in memory already.
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    head = text.split("\n", 1)[0]
    # Spreadsheets of some countries separate columns by semicolons.
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=";" if head.count(";") > head.count(",") else ","
    )
    line, header = 1, None
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip().casefold() for cell in cells]
                lost = [c for c in COLUMNS if header.count(c) != 1]
                if lost:
                    raise DataFileError(
                        f"{path}, line {start}: each column once, and {', '.join(lost)} is not. "
                        f"Needed: {', '.join(COLUMNS)}."
                    )
                continue
            if len(cells) < len(header):
                cells = [*cells, *[""] * (len(header) - len(cells))]
            yield start, dict(zip(header, cells, strict=False))
    except csv.Error as error:
        raise DataFileError(f"{path}, line {reader.line_num}: not CSV: {error}.") from error
    if header is None:
        raise DataFileError(f"{path}, line 1: the file is empty. Needed: {', '.join(COLUMNS)}.")
