"""Rows of the file types that hold texts. Each reader gives the columns (None: per row) and the rows."""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from auditor.errors import ConfigError, DataFileError, MissingDependency
from auditor.shown import quoted
from auditor.tasks.seeds import SUFFIXES, Row
from auditor.tasks.yamlfile import near_files

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
_DELIMITERS = (",", ";", "\t")

Table = tuple[list[str] | None, Iterable[Row]]


def content(path: Path) -> bytes:
    """Read the bytes of a file of texts.

    Raises
    ------
    DataFileError
        It is missing (near misses are named), a folder, unreadable, empty, or of an unknown type.
    """
    try:
        if path.is_dir():
            raise DataFileError(f"{path}: this is a folder; name one file of texts ({', '.join(SUFFIXES)})")
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        further = near_files(path) or (
            " Check the path. Without --data the task's own texts are used, where it has some: audit tasks list"
        )
        raise DataFileError(f"{path}: no such file.{further}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataFileError(f"{path}: cannot be read: {reason}") from None
    if path.suffix.lower() not in SUFFIXES:
        hint = " For JSON, write one object per line (.jsonl)." if path.suffix.lower() == ".json" else ""
        raise DataFileError(f"{path}: unknown type of file; texts come as {', '.join(SUFFIXES)}.{hint}")
    if not raw.strip():
        raise DataFileError(f"{path}: the file is empty")
    return raw


def from_file(path: Path, raw: bytes, text_column: str) -> Table:
    """Parse ``raw``, the content of ``path``, by the ending of its name."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _parquet(path, raw)
    text = _decode(path, raw)
    if suffix in (".jsonl", ".ndjson"):
        return None, _json_lines(path, text)
    if suffix == ".txt":
        return ["text"], ((f"line {n}", {"text": line}) for n, line in enumerate(_lines(text), start=1))
    return _table(path, text, text_column, ("\t",) if suffix == ".tsv" else _DELIMITERS)


def _convert(encoding: str, path: Path) -> str:
    return f"Run: iconv -f {encoding} -t UTF-8 {quoted(path.name)} > {quoted('utf8' + path.suffix)}"


def _decode(path: Path, raw: bytes) -> str:
    if raw.startswith(_UTF16):
        raise DataFileError(
            f"{path}: the file is UTF-16, not UTF-8; convert it.",
            below=_convert("UTF-16", path),
        )
    for magic, kind in _COMPRESSED.items():
        if raw.startswith(magic):
            raise DataFileError(f"{path}: the file is compressed ({kind}); unpack it first")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise DataFileError(
            f"{path}, line {line}: byte 0x{raw[error.start]:02x} (byte {column} of the line, offset "
            f"{error.start}) is not UTF-8. If the file is in a Western Windows encoding, convert it.",
            below=_convert("WINDOWS-1252", path),
        ) from None
    at = text.find("\0")
    if at >= 0:
        line = text.count("\n", 0, at) + 1
        raise DataFileError(f"{path}, line {line}: a zero byte; a binary file, or UTF-16 without its mark?")
    return text


def _lines(text: str) -> Iterator[str]:
    """Lines by line feed (or carriage return) alone: U+2028 and its like may stand inside a text."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return (line.removesuffix("\r") for line in lines)


def _json_lines(path: Path, text: str) -> Iterator[Row]:
    for n, line in enumerate(_lines(text), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            hint = ""
            if n == 1 and line.lstrip().startswith("["):
                hint = "; one JSON array is no JSON lines: write one object per line"
            elif n == 1 and line.strip() == "{":
                hint = "; each object has to stand in one line"
            raise DataFileError(
                f"{path}, line {n}: broken JSON at column {error.colno}: {error.msg}{hint}"
            ) from None
        except (RecursionError, ValueError):
            raise DataFileError(f"{path}, line {n}: JSON that cannot be read") from None
        if not isinstance(value, dict):
            raise DataFileError(f'{path}, line {n}: expected an object such as {{"text": "…"}}')
        yield f"line {n}", value


def _table(path: Path, text: str, text_column: str, delimiters: tuple[str, ...]) -> Table:
    # The limit is one for the whole process and guards nothing here: the text is in memory already.
    if csv.field_size_limit() <= len(text):
        csv.field_size_limit(len(text) + 1)
    first = next(_lines(text), "")
    delimiter = _delimiter(first, text_column, delimiters)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows = _records(path, reader)
    _, header = next(rows, (0, []))
    columns = [name.strip() for name in header]
    return columns, _dicts(path, columns, rows, delimiter)


def _delimiter(first: str, text_column: str, delimiters: tuple[str, ...]) -> str:
    """Choose by the header: the delimiter that isolates the text column, else the one that splits most."""
    split = {d: [name.strip() for name in next(csv.reader([first], delimiter=d), [])] for d in delimiters}
    for delimiter, names in split.items():
        if text_column in names:
            return delimiter
    return max(delimiters, key=lambda d: len(split[d]))


def _records(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield records with the line each begins in."""
    start = 1
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
        if record:
            yield start, record
        start = reader.line_num + 1


def _dicts(
    path: Path, columns: list[str], rows: Iterator[tuple[int, list[str]]], delimiter: str
) -> Iterator[Row]:
    sign = {",": "commas", ";": "semicolons", "\t": "tabs"}[delimiter]
    for line, record in rows:
        if len(record) != len(columns):
            raise DataFileError(
                f"{path}, line {line}: {len(record)} fields where the header has {len(columns)}; "
                f"a text that holds {sign} has to stand in quotation marks"
            )
        yield f"line {line}", dict(zip(columns, record, strict=True))


def _parquet(path: Path, raw: bytes) -> Table:
    pyarrow = _package("pyarrow", "Reading Parquet files")
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


def from_hub(spec: str) -> Table:
    """Rows of ``hf:DATASET[:CONFIG][@SPLIT]``, through the package datasets.

    Without a split, the only one there is; several have to be told apart.
    """
    name, config, split = parse_hub(spec)
    datasets = _package("datasets", f"{spec}: reading data sets by name")
    # What loading raises: no such data set or split (OSError, ValueError), an unreadable file, no connection.
    try:
        loaded = datasets.load_dataset(name, config, split=split)
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise DataFileError(f"{spec}: the data set could not be loaded: {reason}") from error
    if split is None:
        splits = sorted(loaded)
        if len(splits) != 1:
            raise ConfigError(f"{spec}: name the split: {', '.join(f'{spec}@{s}' for s in splits)}")
        loaded = loaded[splits[0]]
    return from_dataset(loaded)


def from_dataset(dataset: Any) -> Table:
    """Rows of a data set of the package datasets."""
    # Class labels come as numbers, alone or in lists; the data set says what they are called.
    classes = {c: names for c, f in (dataset.features or {}).items() if (names := _class_names(f))}

    def rows() -> Iterator[Row]:
        for n, row in enumerate(dataset, start=1):
            yield (
                f"row {n}",
                {
                    c: _named(value, classes[c]) if c in classes else _joined(value)
                    for c, value in row.items()
                },
            )

    columns = dataset.column_names  # None where a stream does not say
    return None if columns is None else list(columns), rows()


def parse_hub(spec: str) -> tuple[str, str | None, str | None]:
    """Split ``hf:DATASET[:CONFIG][@SPLIT]`` into its parts.

    Examples
    --------
    >>> parse_hub("hf:lex_glue:ecthr_a@test")
    ('lex_glue', 'ecthr_a', 'test')
    """
    rest, at, split = spec.removeprefix("hf:").partition("@")
    name, colon, config = rest.partition(":")
    if not name or (at and not split) or (colon and not config):
        raise ConfigError(f"{spec!r}: a data set is named hf:DATASET[:CONFIG][@SPLIT]")
    return name, config or None, split or None


def _class_names(feature: Any) -> list[str] | None:
    """Names of a column of class labels, or of lists of them."""
    names = getattr(feature, "names", None) or getattr(getattr(feature, "feature", None), "names", None)
    return list(names) if names else None


def _named(value: object, names: list[str]) -> object:
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    return names[value] if isinstance(value, int) and _is_index(value, names) else value


def _joined(value: object) -> object:
    """Put a text that comes as a list of paragraphs (LexGLUE's ECtHR cases) into one, a paragraph a line."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return value


def _is_index(value: object, names: list[str]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names)


def _package(name: str, feature: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        # The extra datasets brings pyarrow too, and much that a file does not need.
        raise MissingDependency(feature, name, "parquet" if name == "pyarrow" else name) from None
