"""Recorded answers as columns of text: CSV, JSON lines, JSON, Parquet, in folders, zip files and gzip files.

JSON objects are flattened: ``response.body.choices.0.text`` is a column. Of a JSON document the longest list of objects
is the table.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import json
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import jsonpath
import msgspec

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError, UnknownValue
from auditor.core.reading import distinct, from_json, read_data, unpacked
from auditor.core.shown import inline, quoted
from auditor.tasks.seeds import from_file

Column: TypeAlias = "list[str | None]"
EVAL = ".eval"  # a log of inspect_ai: a zip file
KINDS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
DOCUMENT = 1 << 28  # bytes of a JSON document, which is held as a whole
CELLS = 2 * 10**8  # rows times columns
COLUMNS = 10_000
NAMED = 40  # columns in a message
FILE = "file"  # the column that names the file of each row, where there are several
EXAMPLE = 80  # characters of a cell in a message
MAC = ("__MACOSX/", "._")  # what a Mac adds to zip files
DEEPEST = 12  # levels of a JSON object that become columns


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A file that was read: its name, its SHA-256 and how many rows it had."""

    file: str
    sha256: str
    rows: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Columns of equal length; what a row lacks is None."""

    columns: dict[str, Column]
    sources: tuple[Source, ...]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


def read(paths: Sequence[Path], rows_at: str = "") -> Table:
    """Read files and folders as one table; ``rows_at`` is a JSON path of the rows, else the longest list of objects."""
    columns: dict[str, Column] = {}
    sources: list[Source] = []
    files: list[str] = []
    total = 0
    kept: dict[str, str] = {}  # values come again and again: one string for each
    for path in chain.from_iterable(map(_files, paths)):
        rows, left = 0, reading.LARGEST  # a dictionary of Parquet makes long texts of a few bytes
        for file, row in _rows(path, rows_at):
            left -= sum(len(value) for value in row.values() if value)
            if left < 0:
                raise reading.too_large(f"{path}, unpacked", reading.LARGEST)
            files.append(kept.setdefault(file, file))
            for name, value in row.items():
                column = columns.setdefault(name, [])
                column += [None] * (total - len(column))
                column.append(None if value is None else kept.setdefault(value, value) if len(value) < 80 else value)
            total += 1
            rows += 1
            if len(columns) > COLUMNS or total * len(columns) > CELLS:
                raise DataFileError(
                    f"{path}: more than {COLUMNS:,} columns, or {CELLS:,} cells, the most that are read. "
                    "Every field of a JSON object, and every place of a list in it, is a column"
                )
        sources.append(Source(file=path.name, sha256=reading.sha256(path), rows=rows))
    if not total:
        raise DataFileError(f"{', '.join(map(str, paths))}: no rows. Answers come as {', '.join(KINDS)}")
    for column in columns.values():
        column += [None] * (total - len(column))
    if len(set(files)) > 1:
        shared = os.path.commonpath([PurePosixPath(file).parent for file in set(files)])  # a folder of all
        labels = {file: PurePosixPath(file).relative_to(shared).as_posix() for file in set(files)}
        columns.setdefault(FILE, [labels[file] for file in files])
    return Table(columns=columns, sources=tuple(sources))


def named(columns: Iterable[str]) -> str:
    """The names of columns for a message, the first of many."""
    names = list(map(quoted, columns))
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def joined(table: Table, other: Table, on: str) -> Table:
    """``table`` with the columns of ``other`` beside the rows that agree in ``on`` (batch output and its input).

    Raises `UnknownValue` where one of them lacks the column.
    """
    for one in (table, other):
        if on not in one.columns:
            raise UnknownValue(f"{one.sources[0].file}: --on", on, "column", one.columns)
    where = {value: row for row, value in enumerate(other.columns[on])}
    rows = [where.get(value, -1) for value in table.columns[on]]
    fresh = {
        name: [column[row] if row >= 0 else None for row in rows]
        for name, column in other.columns.items()
        if name not in table.columns
    }
    return Table(columns=table.columns | fresh, sources=(*table.sources, *other.sources))


def divided(table: Table, parts: Mapping[str, str]) -> Table:
    """Return ``table`` with a column for each named group of the patterns that ``parts`` has for its columns.

    A pattern may match a part of a cell; it matches the whole cell where it can.
    """
    fresh: dict[str, Column] = {}
    for name, pattern in parts.items():
        if name == FILE and FILE not in table.columns:
            raise ConfigError("parts: there is a column 'file' only where rows come from several files; this is one")
        if name not in table.columns:
            raise UnknownValue("parts", name, "column", table.columns)
        try:
            regex = re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"parts.{name}: {pattern!r} is not a pattern: {error}") from None
        if not regex.groupindex:
            raise ConfigError(f"parts.{name}: {pattern!r} names no group; write (?P<NAME>…) for each new column")
        matches = {v: regex.fullmatch(v) or regex.search(v) for v in table.columns[name] if v is not None}
        if not any(matches.values()):
            cell = next((inline(v) for v in matches), "")
            shown = f"such as {cell[:EXAMPLE]!r}" if cell else "which is empty"
            raise ConfigError(f"parts.{name}: the pattern {pattern!r} matches no cell of the column, {shown}")
        for group in regex.groupindex:
            fresh[group] = [m[group] if v and (m := matches[v]) else None for v in table.columns[name]]
    return Table(columns=table.columns | fresh, sources=table.sources)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(p for p in path.rglob("*") if p.is_file() and _kind(p.name) in (*KINDS, ".zip"))
    if not files:
        raise DataFileError(f"{path}: no file of answers in this folder ({', '.join(KINDS)})")
    return files


def _kind(name: str) -> str:
    return PurePosixPath(name.lower().removesuffix(".gz")).suffix


def _stem(name: str) -> str:
    """Return a path without the kind of file."""
    plain = name[:-3] if name.lower().endswith(".gz") else name
    return plain.removesuffix(PurePosixPath(plain).suffix)


def _rows(path: Path, rows_at: str) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Return the rows, each with the path of its file."""
    kind = _kind(path.name)
    if kind not in (*KINDS, ".zip", EVAL):
        read_data(path)  # says where it is missing
        raise DataFileError(f"{path}: answers come as {', '.join(KINDS)}, also gzipped or in a zip file")
    if kind in KINDS:
        inside = _stem(path.absolute().as_posix())
        yield from ((inside, row) for row in _member(path, read_data(path), rows_at))
        return
    try:
        reading.check(path)
        yield from _packed(path, rows_at, log=kind == EVAL)
    except FileNotFoundError:
        raise DataFileError(f"{path}: no such file.{reading.near_files(path)}") from None
    except NotImplementedError as error:  # a compression that zipfile does not know
        hint = ": pip install zipfile-zstd, or inspect log convert --to json" if kind == EVAL else ""
        raise DataFileError(f"{path}: cannot be unpacked ({error}){hint}") from None
    except (OSError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise DataFileError(f"{path}: cannot be read: {error}") from None


def _packed(path: Path, rows_at: str, *, log: bool) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Rows of the members of a zip file; of a log of inspect_ai, of its samples."""
    if log:
        with contextlib.suppress(ImportError):  # teaches zipfile the compression of newer logs
            importlib.import_module("zipfile_zstd")
    with zipfile.ZipFile(path) as packed:
        wanted = [m for m in packed.infolist() if not m.is_dir() and _kind(m.filename) in KINDS]
        wanted = [m for m in wanted if not any(f"/{m.filename}".count(f"/{sign}") for sign in MAC)]
        if log:
            wanted = [m for m in wanted if m.filename.startswith(SAMPLES)]
        if sum(member.file_size for member in wanted) > reading.LARGEST:
            raise reading.too_large(f"{path}, unpacked", reading.LARGEST)
        for member in wanted:  # zipfile gives no more than the size that was added up
            where, at = Path(f"{path}, {member.filename}"), "$" if log else rows_at
            name = _stem(str(path.absolute()) if log else f"{path.absolute()}/{member.filename}")
            yield from ((name, row) for row in _member(where, packed.read(member), at))


def _member(where: Path, raw: bytes, rows_at: str) -> Iterator[dict[str, str | None]]:
    """Rows of one file, which ``where`` names."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            raw = raw.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise DataFileError(f"{where}: damaged UTF-16 ({error.reason} at byte {error.start})") from None
    if _kind(where.name) != ".json":
        columns, rows = from_file(where, raw, "")
        if columns is not None:
            distinct(where, columns)
        yield from (flat({**row, **said_last(row), **output(row)}) for _, row in rows)
        return
    text = unpacked(where, raw)
    if len(text) > DOCUMENT:
        raise reading.too_large(where, DOCUMENT)
    try:
        document = from_json(text)
        path = rows_at or path_of(document)
        objects = at_path(document, path) if path else _longest(document)
        yield from (flat(slim(row)) for row in objects)
    except json.JSONDecodeError as error:
        raise DataFileError(f"{where}: not JSON: {error}") from None


def flat(value: Mapping[str, Any], *, before: str = "", depth: int = 0) -> dict[str, str | None]:
    """Return an object as columns, nested names joined by dots; a list of texts is one column, as are its items."""
    out: dict[str, str | None] = {}
    for name, inner in value.items():
        key = f"{before}{name}"
        if isinstance(inner, list) and depth < DEEPEST:
            if all(isinstance(item, str) for item in inner):
                out[key] = json.dumps(inner, ensure_ascii=False)
            inner = {str(n): item for n, item in enumerate(inner)}
        if isinstance(inner, dict) and depth < DEEPEST:
            out |= flat(inner, before=f"{key}.", depth=depth + 1)
        elif isinstance(inner, str) or inner is None:
            out[key] = inner or None
        else:
            out[key] = json.dumps(inner, default=str)
    return out


def _longest(value: Json) -> list[dict[str, Json]]:
    """The longest list of objects in a JSON document; an object without one is a single row."""
    best: list[dict[str, Json]] = []
    todo: list[Json] = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            objects = [item for item in one if isinstance(item, dict)]
            if len(objects) > len(best):
                best = objects
            elif not objects:
                todo += [inner for inner in one if isinstance(inner, list)]
        elif isinstance(one, dict):
            todo += [inner for name, inner in one.items() if isinstance(inner, list | dict) and name not in LONG]
    if len(best) == 1 and isinstance(value, dict) and any(isinstance(v, dict) for v in value.values()):
        return [value]  # one answer a file
    return best or ([value] if isinstance(value, dict) else [])


# -- files of other tools: what is a row of them, and which of their fields say what --------------------------


Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
PROMPTFOO = "$.results.results[*]"
TRACES = "$.resourceSpans[*].scopeSpans[*].spans[*]"  # OpenTelemetry
SAMPLES = "samples/"  # in an .eval file of inspect_ai; beside them stand summaries of the same
LONG = ("messages", "events", "store", "attachments", "model_usage", "testCase", "logprobs")  # no columns of answers


class Known(msgspec.Struct, frozen=True):
    """The names of ``embedded/import_columns.toml``, those that are looked for first in front."""

    roles: dict[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    long: tuple[tuple[str, str], ...]
    original: tuple[str, ...]
    placebo: tuple[str, ...]
    favourable: tuple[str, ...]
    models: frozenset[str]
    true: frozenset[str]
    nobody: frozenset[str]


KNOWN = msgspec.toml.decode(reading.shipped("embedded", "import_columns.toml").read_bytes(), type=Known)


def at_path(document: Json, path: str) -> list[dict[str, Json]]:
    """The objects at a JSON path."""
    try:
        matches = jsonpath.findall(path, document)
    except jsonpath.JSONPathError as error:
        raise ConfigError(f"--rows {path!r} is no JSON path: {error}") from None
    objects = [one for one in matches if isinstance(one, dict)]
    if not objects:
        raise ConfigError(f"--rows {path!r}: no objects there")
    return objects


def slim(row: Mapping[str, Json]) -> dict[str, Json]:
    """A row without whole conversations, with attributes of traces by their names."""
    return {name: _by_key(value) for name, value in row.items() if name not in LONG} | said_last(row) | output(row)


def path_of(document: Json) -> str:
    """Return the JSON path of the rows in a document of another tool; empty where it is not known."""
    if not isinstance(document, dict):
        return ""
    results = document.get("results")
    if isinstance(results, dict) and isinstance(results.get("results"), list) and results["results"]:
        return PROMPTFOO
    return TRACES if "resourceSpans" in document else ""


def output(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response of promptfoo with an output that is an object as JSON text, which is one answer."""
    response = row.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(output, dict | list):
        return {}
    return {"response": {**response, "output": json.dumps(output, ensure_ascii=False)}}


def said_last(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the model said last in a whole conversation, as a column."""
    messages = row.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if isinstance(last, dict) and last.get("role") == "assistant" and isinstance(last.get("content"), str):
        return {"last_message": last["content"]}
    return {}


def _by_key(value: Json) -> Json:
    """A list of ``{"key", "value"}`` as an object; anything else as it is."""
    pairs: dict[str, Json] = {}
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict) and one.keys() == {"key", "value"} and isinstance(one["key"], str):
            inner = one["value"]
            pairs[one["key"]] = next(iter(inner.values()), None) if isinstance(inner, dict) else inner
    return pairs if isinstance(value, list) and value and len(pairs) == len(value) else value
