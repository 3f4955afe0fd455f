"""Reads texts to audit with: JSON lines, CSV, Parquet, plain lines, Hugging Face data sets, what a program hands over.

Columns of `Table` are None where they are those of each row.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import importlib
import io
import json
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product, zip_longest
from pathlib import Path
from typing import Any

from auditor.core.errors import ConfigError, DataFileError, MissingDependency, WrongType
from auditor.core.reading import DELIMITERS, LARGEST, from_json, load_lines, read_csv, read_data, text_lines, unpacked
from auditor.core.shown import plural
from auditor.core.types import SourceText, Span, digest

Row = tuple[str, Mapping[str, object]]  # where it stands ("line 3"), its fields
Table = tuple[list[str] | None, Iterable[Row]]  # columns, where rows have the same; the rows
SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".txt")  # of files of texts
SUBJECT = "subject"  # the column of `SourceText.subject`
SOURCE = "given by the caller"
TAKEN = (
    "a list of texts, dicts or SourceText; a data frame (pandas, polars, Arrow); a datasets.Dataset; or a file name "
    "(str or Path)"
)
LONGEST = 1_000_000  # characters of a text: it is held once for each of a hundred variants


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The columns that are read, and how messages name what is read.

    A label or id that is not named is a column of that name where there is one. ``option`` is how a column is chosen,
    ``prefix`` starts the ids of rows without one; ``halves``: characters that no UTF-8 file can hold are let be, since
    some models see them.
    """

    name: str
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    limit: int | None
    option: str = "--column {}=COLUMN"
    prefix: str = "row-"
    halves: bool = False

    @property
    def named(self) -> dict[str, str]:
        """The columns that there must be, stripped as the names of columns are read."""
        columns = {"text": "text", **self.columns}
        return {what: columns[what].strip() for what in ("text", "label", "id", "source") if columns.get(what)}

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that may be read: text, label, id, subject, and the source where it is named."""
        columns = [self.named.get(what, what) for what in ("text", "label", "id")]
        return (*columns, SUBJECT, *([self.named["source"]] if "source" in self.named else []))

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a header that lacks a column, or has it twice."""
        for what, column in self.named.items():
            if column not in columns:
                raise DataFileError(f"{self.name}: {self._missing(what, columns)}")
            if list(columns).count(column) > 1:
                raise DataFileError(f"{self.name}: the column {column!r} is there twice")

    def field(self, where: str, row: Mapping[str, object], what: str) -> tuple[str, object]:
        """Return the name of a column, and what a row holds in it; the source may be absent, and what is not named."""
        if what != "source" and what in self.named and self.named[what] not in row:
            raise DataFileError(f"{where}: {self._missing(what, list(row))}")
        column = self.named.get(what, what)
        return column, row.get(column)

    def _missing(self, what: str, columns: Sequence[str]) -> str:
        """Say that a column is missing, which there are, and which is meant perhaps."""
        column = self.named[what]
        near = difflib.get_close_matches(column, columns, n=1, cutoff=0.6)
        near = near or [one for one in columns if one.casefold() == column.casefold()]
        hint = f" Did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(map(str, columns[:20])) + (", …" if len(columns) > 20 else "")
        return f"no column {column!r}; columns: {listed or 'none'}.{hint} Name it with {self.option.format(what)}."


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedFile(Sequence[SourceText]):
    """Seeds and what was read to get them; behaves like the list of its seeds, which are in the order of the rows.

    ``rows`` are ``len(seeds) + skipped + repeated``. ``skipped`` are rows whose text is missing or blank, ``repeated``
    those whose text stood in an earlier row: one text is one seed, whatever its ids, since counted twice its two
    answers would pass for independent. An id that was used before gets ``#2``, ``#3``, …. ``sha256`` is that of the
    file's bytes; for a data set by name, of what was read.
    """

    seeds: tuple[SourceText, ...]
    rows: int
    skipped: int
    repeated: int
    sha256: str
    source: str

    def __getitem__(self, index: int | slice) -> Any:
        return self.seeds[index]

    def __len__(self) -> int:
        return len(self.seeds)


def read(source: str | Path, *, columns: Mapping[str, str] = {}, limit: int | None = None) -> SeedFile:
    """Read seeds from a file of texts, or from ``hf:DATASET[:CONFIG][@SPLIT]``; `DataFileError` where it is malformed.

    ``columns`` are named by what they hold. A missing, blank or repeated ``text`` is left out and counted. ``label``
    (gold) and ``id`` are the columns of these names if there are such. A list of labels becomes a JSON list, and rows
    without an id get ``row-1``, …. ``source`` says what a text was made of, and is never guessed. A column ``subject``
    may say where the text speaks of the person it is about (`subject_of`). Only the first ``limit`` rows are read.
    """
    wanted = Wanted(name=os.fspath(source), columns=columns, limit=limit)
    if isinstance(source, str) and source.startswith("hf:"):
        return collect(wanted, *from_hub(source))
    path = Path(source)
    if path.parent.suffix in {".yaml", ".yml"}:  # the notes of a task in a language file
        return collect(wanted, *from_language(path))
    raw = text_file(path)
    if path.suffix.lower() == ".txt":
        wanted = Wanted(name=wanted.name, limit=limit)
    return collect(wanted, *from_file(path, raw, wanted.named["text"]), sha256=hashlib.sha256(raw).hexdigest())


def read_given(data: object, *, columns: Mapping[str, str] = {}, limit: int | None = None) -> SeedFile:
    """Read the texts in ``data``, which a program hands over (`from_object`); the rest as in `read`."""
    option = 'columns={{"{}": …}}'
    wanted = Wanted(name="data", columns=columns, limit=limit, option=option, prefix="text-", halves=True)
    return collect(wanted, *from_object(data, wanted.read))


def collect(wanted: Wanted, columns: Sequence[str] | None, rows: Iterable[Row], sha256: str = "") -> SeedFile:
    """Make seeds of ``rows``; see `read` for what is left out, and what is raised."""
    name = wanted.name
    if wanted.limit is not None and wanted.limit < 1:
        raise ConfigError(f"the limit of texts has to be at least 1, got {wanted.limit}")
    if columns is not None:
        wanted.check(columns)
    seeds: list[SourceText] = []
    ids: set[str] = set()
    texts: set[bytes] = set()  # digests: a million texts would be held twice
    repeats: dict[str, int] = {}
    n = repeated = 0
    for n, (place, row) in enumerate(islice(rows, wanted.limit), start=1):
        where = f"{name}, {place}"
        text = _text(where, wanted, row)
        if not text:
            continue
        id_ = _plain(where, *wanted.field(where, row, "id"))
        label = _gold(where, *wanted.field(where, row, "label"))
        seen = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if seen in texts:
            repeated += 1
            continue
        texts.add(seen)
        id_ = id_ or f"{wanted.prefix}{n}"
        if id_ in ids:
            repeat = repeats.get(id_, 1) + 1
            while f"{id_}#{repeat}" in ids:
                repeat += 1
            repeats[id_] = repeat
            id_ = f"{id_}#{repeat}"
        ids.add(id_)
        subject = subject_of(where, text, row.get(SUBJECT))
        source = _plain(where, *wanted.field(where, row, "source")) if "source" in wanted.named else None
        seeds.append(SourceText(id=id_, text=text, label=label, subject=subject, source=source or None))
    if not n:
        raise DataFileError(f"{name}: no rows; an audit needs at least one text")
    if not seeds:
        column = wanted.named["text"]
        raise DataFileError(f"{name}: the column {column!r} holds nothing but blanks ({plural(n, 'row')})")
    if "source" in wanted.named and all(seed.source is None for seed in seeds):
        column = wanted.named["source"]
        raise DataFileError(f"{name}: no text has a source in the column {column!r} ({wanted.option.format('source')})")
    return SeedFile(
        seeds=tuple(seeds),
        rows=n,
        skipped=n - len(seeds) - repeated,
        repeated=repeated,
        sha256=sha256 or digest_of(seeds),
        source=name,
    )


def crossed(seeds: Sequence[SourceText], against: Path | None, limit: int | None = None) -> list[SourceText]:
    """Put each text of the file ``against`` behind each of ``seeds``: a résumé and a post make one text.

    First come, text by text, the pairs that the file names in ``labels``, then all others; at most ``limit``. Without a
    file the texts stay as they are. Its JSON lines have ``id``, ``text``, and the gold label of a pair: ``labels`` by
    the id of the seed, else ``label``.
    """
    if against is None:
        return list(seeds)
    from auditor.tasks.schema import Against

    others = [other for _, other in load_lines(against, Against, largest=LARGEST)]
    pairs = sorted(product(seeds, others), key=lambda pair: pair[0].id not in pair[1].labels)
    return [
        dataclasses.replace(
            seed,
            id=f"{seed.id}.{other.id}",
            text=f"{seed.text}\n\n{other.text}",
            label=other.labels.get(seed.id, other.label),
            source=seed.source or seed.id,
        )
        for seed, other in pairs[:limit]
    ]


def _text(where: str, wanted: Wanted, row: Mapping[str, object]) -> str:
    """The text of a row; empty where it is missing or blank."""
    column, text = wanted.field(where, row, "text")
    if text is None:
        return ""
    if not isinstance(text, str):
        raise DataFileError(
            f"{where}: the column {column!r} holds {_kind(text)}, not a text; "
            f"name the column of the texts with {wanted.option.format('text')}"
        )
    if len(text) > LONGEST and text.strip():
        raise DataFileError(
            f"{where}: a text of {len(text):,} characters, and the longest that is read has {LONGEST:,}. "
            "Divide it, or leave it out"
        )
    lone = None if text.isascii() else next((c for c in text if "\ud800" <= c <= "\udfff"), None)
    if lone is not None and not wanted.halves:
        raise DataFileError(f"{where}: the text holds half a character (\\u{ord(lone):04x})")
    return text if text.strip() else ""


def digest_of(seeds: Iterable[SourceText]) -> str:
    """SHA-256 of ids, texts, labels and, where they are given, subjects."""
    return digest([[s.id, s.text, s.label] + ([] if s.subject is None else [s.subject]) for s in seeds])


def subject_of(where: str, text: str, value: object) -> tuple[Span, ...] | None:
    """The spans that the field ``subject`` holds, as lists or as JSON (in tables).

    A column of that name that holds words or numbers ("Re: your order") is something else, and nothing is read from it.
    A span that is no pair of numbers, is empty, lies outside the text, or begins before the one before it has ended, is
    a `DataFileError`.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = from_json(value)
        except ValueError:
            return None
    if not isinstance(value, list | tuple) or (value and all(isinstance(item, str) for item in value)):
        return None
    spans: list[Span] = []
    for item in value:
        try:
            start, end = map(operator.index, item)
        except (TypeError, ValueError):
            raise DataFileError(f"{where}: the column {SUBJECT!r} takes a list of [start, end], got {item!r}") from None
        if not 0 <= start < end <= len(text):
            raise DataFileError(
                f"{where}: [{start}, {end}] in the column {SUBJECT!r} is not a part of the text, which has "
                f"{plural(len(text), 'character')}"
            )
        if spans and start < spans[-1][1]:
            raise DataFileError(
                f"{where}: [{start}, {end}] in the column {SUBJECT!r} begins before {list(spans[-1])} has ended; "
                "list the spans in the order of the text"
            )
        spans.append((start, end))
    return tuple(spans)


def _gold(where: str, column: str, value: object) -> str | None:
    """Return a gold label as text: several labels (a list) as a JSON list, which tasks read back."""
    if not isinstance(value, list):
        return _plain(where, column, value)
    items = [_plain(where, column, item) for item in value]
    return json.dumps([item for item in items if item is not None], ensure_ascii=False)


def _plain(where: str, column: str, value: object) -> str | None:
    """Return an id or a label as text; None where there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip() or None
    raise DataFileError(f"{where}: the column {column!r} holds {_kind(value)}, not a word or a number")


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return f"a number ({value})"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__


# -- rows of files -----------------------------------------------------------------------------------------------------


def text_file(path: Path) -> bytes:
    """The bytes of a file of texts; `DataFileError` where it is missing, empty, or of no known type."""
    hint = " Check the path. Without --data the task's own texts are used, where it has some: audit list tasks"
    raw = read_data(path, what=f"one file of texts ({', '.join(SUFFIXES)})", missing=hint)
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
    text = unpacked(path, raw)
    if suffix in (".jsonl", ".ndjson"):
        return tidy(None, _json_lines(path, text))
    if suffix == ".txt":
        return ["text"], ((f"line {n}", {"text": line}) for n, line in enumerate(text_lines(text), start=1))
    table = read_csv(path, text, wanted=(text_column,), delimiters=("\t",) if suffix == ".tsv" else DELIMITERS)
    rows = ((f"line {line}", dict(zip(table.columns, row, strict=True))) for line, row in table.rows)
    return list(table.columns), rows


def _json_lines(path: Path, text: str) -> Iterator[Row]:
    for n, line in enumerate(text_lines(text), start=1):
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


# -- rows of data sets, and of what a program hands over ---------------------------------------------------------------


def from_hub(spec: str) -> Table:
    """Rows of ``hf:DATASET[:CONFIG][@SPLIT]``, through the package datasets.

    Without a split, the only one there is; several have to be told apart.
    """
    rest, at, split = spec.removeprefix("hf:").partition("@")
    name, colon, config = rest.partition(":")
    if not name or (at and not split) or (colon and not config):
        raise ConfigError(f"{spec!r}: a data set is named hf:DATASET[:CONFIG][@SPLIT]")
    datasets = package("datasets", f"{spec}: reading data sets by name")
    # What loading raises: no such data set or split (OSError, ValueError), an unreadable file, no connection.
    try:
        loaded = datasets.load_dataset(name, config or None, split=split or None)
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise DataFileError(f"{spec}: the data set could not be loaded: {reason}") from error
    if not split:
        splits = sorted(loaded)
        if len(splits) != 1:
            raise ConfigError(f"{spec}: name the split: {', '.join(f'{spec}@{s}' for s in splits)}")
        loaded = loaded[splits[0]]
    return from_dataset(loaded)


def from_language(path: Path) -> Table:
    """Rows of the notes for a task in a language file: ``FILE.yaml/hiring``."""
    from auditor.text import languages

    task = languages.load(str(path.parent)).tasks.get(path.name)
    if task is None:
        raise DataFileError(f"{path.parent}: there is no task {path.name!r} in this file")
    labels = (task.labels[0], task.labels[-1]) if task.labels else (None, None)
    pairs = zip_longest(task.good, task.bad)
    notes = [(text, label) for pair in pairs for text, label in zip(pair, labels, strict=True) if text]
    rows = ({"id": f"{path.name}-{n}", "text": text, "label": label} for n, (text, label) in enumerate(notes, 1))
    return ["id", "text", "label"], ((f"note {row['id']}", row) for row in rows)


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
    return tidy(columns, rows())


def _class_names(feature: object) -> list[str] | None:
    """Names of a column of class labels, or of lists of them."""
    names = getattr(feature, "names", None) or getattr(getattr(feature, "feature", None), "names", None)
    return list(names) if names else None


def _named(value: object, names: list[str]) -> object:
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return names[value]
    return value


def _joined(value: object) -> object:
    """Put a text that comes as a list of paragraphs (LexGLUE's ECtHR cases) into one, a paragraph a line."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return value


def fields_of(data: Any) -> tuple[str, ...]:
    """The names of the columns of a frame or a data set, or of the fields of the first dict of a list; else none."""
    names = getattr(data, "column_names", None)
    columns = list(names) if isinstance(names, (list, tuple)) else _column_names(data)
    if columns is None and isinstance(data, Sequence) and len(data) and isinstance(data[0], Mapping):
        columns = list(data[0])
    return tuple(str(name).strip() for name in columns or ())


def rows_of(data: Any) -> Iterator[Mapping[str, Any]]:
    """The rows of ``data`` with all their fields, as plain Python; `WrongType` as `from_object`."""
    return (row for _, row in from_object(data, fields_of(data) or ("text",))[1])


def from_object(data: Any, wanted: tuple[str, ...]) -> Table:
    """Columns and rows of lists, data frames and data sets; of rows with fields only ``wanted`` are read.

    Taken are a list, tuple, generator or column of texts, of dicts or of `SourceText`, a data frame (pandas, polars,
    Arrow), and a ``datasets.Dataset``.
    All else is a `WrongType`: what ``str()`` makes of an unknown object would be sent to a model as if it were a text.
    The first of ``wanted`` is where a text alone stands.
    """
    columns = _column_names(data)
    if isinstance(data, type):
        raise _refused(f"the class {data.__name__}")
    if callable(getattr(data, "itertuples", None)):  # pandas, and what is made like it
        return columns, _pandas(data, [i for i, name in enumerate(columns or ()) if name in wanted])
    if callable(getattr(data, "iter_rows", None)):  # polars
        frame = data.select([name for name in data.columns if name.strip() in wanted])
        return tidy(columns, _numbered(frame.iter_rows(named=True)))
    if hasattr(data, "features") and hasattr(data, "column_names"):  # datasets
        return from_dataset(data)
    if callable(getattr(data, "to_pylist", None)) and hasattr(data, "schema"):  # Arrow
        names = list(data.schema.names)
        rows = data.select([i for i, name in enumerate(names) if name.strip() in wanted]).to_pylist()
        return tidy(names, _numbered(rows))
    if isinstance(data, Mapping):
        splits = [name for name, value in data.items() if hasattr(value, "column_names")]
        if splits:  # a datasets.DatasetDict
            raise WrongType(f"data holds several data sets; give one of them: data[{splits[0]!r}].")
        raise _refused("a dict of columns" if data else "an empty dict")
    if isinstance(data, (str, bytes, bytearray, set, frozenset, SourceText)) or not isinstance(data, Iterable):
        raise _refused(_called(data))
    return tidy(None, _items(data, wanted))


def _column_names(data: object) -> list[str] | None:
    columns = getattr(data, "columns", None)
    try:
        return None if columns is None or callable(columns) else [str(name).strip() for name in columns]
    except TypeError:
        return None


def _items(data: Iterable[object], wanted: tuple[str, ...]) -> Iterator[Row]:
    cells = hasattr(data, "dtype")
    for n, item in enumerate(data, start=1):
        where = f"item {n}"
        if isinstance(item, str):
            yield where, {wanted[0]: str(item)}
        elif cells and _cell(item) is None:
            yield where, {wanted[0]: None}
        elif isinstance(item, SourceText):
            yield where, dict(zip(wanted, (item.text, item.label, item.id, item.subject), strict=True))
        elif isinstance(item, Mapping):
            yield where, item
        else:
            raise _refused(f"{_called(item)} as {where}")


def _pandas(frame: Any, chosen: list[int]) -> Iterator[Row]:
    names = [str(frame.columns[i]).strip() for i in chosen]
    values = zip(*(frame.iloc[:, i] for i in chosen), strict=True)
    return _numbered(dict(zip(names, map(_cell, row), strict=True)) for row in values)


def _numbered(rows: Iterable[Mapping[str, object]]) -> Iterator[Row]:
    return ((f"row {n}", row) for n, row in enumerate(rows, start=1))


def _cell(value: object) -> object:
    """A cell as plain Python; None where pandas says that nothing is there."""
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return None
    tolist: Callable[[], object] | None = getattr(value, "tolist", None)  # numbers and arrays of numpy
    return value if tolist is None else tolist()


def _refused(kind: str) -> WrongType:
    return WrongType(f"data takes {TAKEN}; it was given {kind}.")


def _called(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
