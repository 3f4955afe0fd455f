"""Files of rows, read in one way everywhere: CSV, and of texts also JSON lines, Parquet and plain lines.

Text files are in UTF-8, also gzipped; CSV has one header line, and commas, semicolons or tabs.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from auditor.core import reading
from auditor.core.errors import DataFileError, MissingDependency
from auditor.core.reading import from_json
from auditor.core.shown import plural

DELIMITERS = (",", ";", "\t")
SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".txt")  # of files of texts
Row = tuple[str, Mapping[str, object]]  # where it stands ("line 3"), its fields
Table = tuple[list[str] | None, Iterable[Row]]  # columns, where rows have the same; the rows
SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class CsvTable(NamedTuple):
    """The header of a file, and an iterator over its records with the line that each begins in.

    ``columns`` are stripped, fields are not; ``rows`` can be walked once.
    """

    columns: tuple[str, ...]
    rows: Iterator[tuple[int, list[str]]]


def content(path: Path, *, what: str = "one CSV file", missing: str = "") -> bytes:
    """The bytes of a file that is not empty, as `reading.read_bytes`; a folder: ``what`` is to be named."""
    raw = reading.read_bytes(path, missing=missing, folder=f"; name {what}")
    if not raw.strip():
        raise DataFileError(f"{path}: the file is empty")
    return raw


def decode(path: Path, raw: bytes) -> str:
    """The text of a file in UTF-8; one that ends in ``.gz`` is unpacked first."""
    if path.suffix.lower() == ".gz" and raw.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(io.BytesIO(raw)) as file:
                raw = file.read(reading.LARGEST + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{path}: damaged gzip file: {error}") from None
        if len(raw) > reading.LARGEST:
            raise reading.too_large(f"{path}, unpacked", reading.LARGEST)
    text = reading.decoded(path, raw)
    if (at := text.find("\0")) >= 0:
        line = text.count("\n", 0, at) + 1
        raise DataFileError(f"{path}, line {line}: a zero byte; a binary file, or UTF-16 without its mark?")
    return text


def lines(text: str) -> Iterator[str]:
    """Lines by line feed (or carriage return) alone: U+2028 and its like may stand inside a text."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    return (line.removesuffix("\r") for line in text.removesuffix("\n").split("\n"))


def parse(path: Path, text: str, *, wanted: Sequence[str] = (), delimiters: Sequence[str] = DELIMITERS) -> CsvTable:
    """Header and records of a CSV text.

    The delimiter is the one that makes most of the ``wanted`` names columns, and of those the one that makes most
    columns. While the rows are walked, malformed quotation and records of another length than the header are a
    `DataFileError`.
    """
    # The limit is one for the whole process and guards nothing here: the text is in memory already.
    if csv.field_size_limit() <= len(text):
        csv.field_size_limit(len(text) + 1)
    first = next(lines(text), "")
    split = {d: [name.strip() for name in next(csv.reader([first], delimiter=d), [])] for d in delimiters}
    sign = max(delimiters, key=lambda d: (sum(name in split[d] for name in wanted), len(split[d])))
    rows = _records(path, text, sign)
    columns = tuple(name.strip() for name in next(rows, (0, []))[1])
    return CsvTable(columns, rows)


def distinct(path: Path, columns: Sequence[str], among: Sequence[str] | None = None) -> None:
    """Refuse a header in which a column has no name, or two have the same; ``among``: only these matter."""
    if among is None and "" in columns:
        place = columns.index("") + 1
        index = " (an index that a program wrote? In pandas: to_csv(…, index=False))" if place == 1 else ""
        raise DataFileError(f"{path}: column {place} of the header has no name{index}. Name or remove it")
    twice = [n for n in dict.fromkeys(columns) if columns.count(n) > 1 and (among is None or n in among)]
    if twice:
        places = {name: " and ".join(str(i) for i, n in enumerate(columns, 1) if n == name) for name in twice}
        listed = "; ".join(f"the column {name!r} more than once (columns {at})" for name, at in places.items())
        raise DataFileError(f"{path}: the header has {listed}. Rename or remove all but one")


def _records(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The header and the records, with the lines that they begin in; each as long as the header."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start, width = 1, 0
    while True:
        try:
            record = next(reader, None)
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise DataFileError(
                    f"{path}, line {start}: a quotation mark in the record that begins here is never closed"
                ) from None
            raise DataFileError(
                f'{path}, line {start}: malformed CSV: {error} (inside a quoted field, write "" for ")'
            ) from None
        if record is None:
            return
        width = width or len(record)
        if record and len(record) != width:
            raise DataFileError(
                f"{path}, line {start}: {plural(len(record), 'field')} where the header has {width}; "
                f"a text with {SIGNS[delimiter]} needs quotation marks around it"
            )
        if record:
            yield start, record
        start = reader.line_num + 1


def text_file(path: Path) -> bytes:
    """The bytes of a file of texts; `DataFileError` where it is missing, empty, or of no known type."""
    hint = " Check the path. Without --data the task's own texts are used, where it has some: audit list tasks"
    raw = content(path, what=f"one file of texts ({', '.join(SUFFIXES)})", missing=hint)
    if path.suffix.lower() not in SUFFIXES:
        hint = " For JSON, write one object per line (.jsonl)." if path.suffix.lower() == ".json" else ""
        raise DataFileError(f"{path}: unknown type of file; texts come as {', '.join(SUFFIXES)}.{hint}")
    return raw


def tidy(columns: Iterable[str] | None, rows: Iterable[Row]) -> Table:
    """Strip the blanks around names of columns, as in the header of a CSV file."""

    def stripped() -> Iterator[Row]:
        for where, row in rows:
            odd = any(isinstance(name, str) and name != name.strip() for name in row)
            yield where, {str(name).strip(): value for name, value in row.items()} if odd else row

    return None if columns is None else [name.strip() for name in columns], stripped()


def from_file(path: Path, raw: bytes, text_column: str) -> Table:
    """Parse ``raw``, the content of ``path``, by the ending of its name."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix == ".parquet":
        return tidy(*_parquet(path, raw))
    text = decode(path, raw)
    if suffix in (".jsonl", ".ndjson"):
        return tidy(None, _json_lines(path, text))
    if suffix == ".txt":
        return ["text"], ((f"line {n}", {"text": line}) for n, line in enumerate(lines(text), start=1))
    table = parse(path, text, wanted=(text_column,), delimiters=("\t",) if suffix == ".tsv" else DELIMITERS)
    rows = ((f"line {line}", dict(zip(table.columns, row, strict=True))) for line, row in table.rows)
    return list(table.columns), rows


def _json_lines(path: Path, text: str) -> Iterator[Row]:
    for n, line in enumerate(lines(text), start=1):
        if not line.strip():
            continue
        try:
            value = from_json(line)
        except json.JSONDecodeError as error:
            hint = ""
            if n == 1 and line.lstrip().startswith("["):
                hint = "; one JSON array is no JSON lines: write one object per line"
            elif n == 1 and line.strip() == "{":
                hint = "; each object must be on one line"
            raise DataFileError(f"{path}, line {n}: broken JSON at column {error.colno}: {error.msg}{hint}") from None
        if not isinstance(value, dict):
            raise DataFileError(f'{path}, line {n}: expected an object such as {{"text": "…"}}')
        yield f"line {n}", value


def _parquet(path: Path, raw: bytes) -> Table:
    pyarrow = package("pyarrow", "Reading Parquet files")
    parquet = importlib.import_module("pyarrow.parquet")
    try:
        file = parquet.ParquetFile(io.BytesIO(raw))
        columns = list(file.schema_arrow.names)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataFileError(f"{path}: this is no Parquet file: {error}") from None

    def rows() -> Iterator[Row]:
        n = 0
        try:
            for batch in file.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    n += 1
                    yield f"row {n}", row
        except (pyarrow.ArrowException, OSError) as error:
            raise DataFileError(f"{path}, after row {n}: damaged Parquet file: {error}") from None

    return columns, rows()


def package(name: str, feature: str) -> Any:
    """A package that ``feature`` needs; `MissingDependency` where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        # The extra datasets brings pyarrow too, and much that a file does not need.
        raise MissingDependency(feature, name, "parquet" if name == "pyarrow" else name) from None
