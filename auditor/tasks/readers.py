"""Rows of the file types that hold texts. Each reader gives the columns (None: per row) and the rows."""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from auditor.core import csvfile
from auditor.core.decoded import from_json
from auditor.core.errors import ConfigError, DataFileError, MissingDependency

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".txt")
Row = tuple[str, Mapping[str, object]]  # where it stands ("line 3"), its fields
Table = tuple[list[str] | None, Iterable[Row]]


def content(path: Path) -> bytes:
    """Read the bytes of a file of texts.

    Raises
    ------
    DataFileError
        It is missing (near misses are named), a folder, unreadable, empty, or of an unknown type.
    """
    hint = " Check the path. Without --data the task's own texts are used, where it has some: audit tasks list"
    raw = csvfile.content(path, what=f"one file of texts ({', '.join(SUFFIXES)})", missing=hint)
    if path.suffix.lower() not in SUFFIXES:
        hint = " For JSON, write one object per line (.jsonl)." if path.suffix.lower() == ".json" else ""
        raise DataFileError(f"{path}: unknown type of file; texts come as {', '.join(SUFFIXES)}.{hint}")
    return raw


def from_file(path: Path, raw: bytes, text_column: str) -> Table:
    """Parse ``raw``, the content of ``path``, by the ending of its name."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _parquet(path, raw)
    text = csvfile.decode(path, raw)
    if suffix in (".jsonl", ".ndjson"):
        return None, _json_lines(path, text)
    if suffix == ".txt":
        return ["text"], ((f"line {n}", {"text": line}) for n, line in enumerate(csvfile.lines(text), start=1))
    return _table(path, text, text_column, ("\t",) if suffix == ".tsv" else csvfile.DELIMITERS)


def _json_lines(path: Path, text: str) -> Iterator[Row]:
    for n, line in enumerate(csvfile.lines(text), start=1):
        if not line.strip():
            continue
        try:
            value = from_json(line)
        except json.JSONDecodeError as error:
            hint = ""
            if n == 1 and line.lstrip().startswith("["):
                hint = "; one JSON array is no JSON lines: write one object per line"
            elif n == 1 and line.strip() == "{":
                hint = "; each object has to stand in one line"
            raise DataFileError(f"{path}, line {n}: broken JSON at column {error.colno}: {error.msg}{hint}") from None
        if not isinstance(value, dict):
            raise DataFileError(f'{path}, line {n}: expected an object such as {{"text": "…"}}')
        yield f"line {n}", value


def _table(path: Path, text: str, text_column: str, delimiters: tuple[str, ...]) -> Table:
    table = csvfile.parse(path, text, wanted=(text_column,), delimiters=delimiters)
    rows = ((f"line {line}", dict(zip(table.columns, row, strict=True))) for line, row in table.rows)
    return list(table.columns), rows


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
                {c: _named(value, classes[c]) if c in classes else _joined(value) for c, value in row.items()},
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


def _class_names(feature: object) -> list[str] | None:
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
