"""Rows of data sets that hold texts, and of what a program hands over. Columns of None are per row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from auditor.core.errors import ConfigError, DataFileError, WrongType
from auditor.core.row_files import Row, Table, package, tidy
from auditor.core.types import SourceText

SUBJECT = "subject"  # the column of `SourceText.subject`
SOURCE = "given by the caller"
TAKEN = (
    "a list of texts, dicts or SourceText; a data frame (pandas, polars, Arrow); a datasets.Dataset; or a file name "
    "(str or Path)"
)


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


def fields(data: Any) -> tuple[str, ...]:
    """The names of the columns of a frame or a data set, or of the fields of the first dict of a list; else none."""
    names = getattr(data, "column_names", None)
    columns = list(names) if isinstance(names, (list, tuple)) else _column_names(data)
    if columns is None and isinstance(data, Sequence) and len(data) and isinstance(data[0], Mapping):
        columns = list(data[0])
    return tuple(str(name).strip() for name in columns or ())


def rows(data: Any) -> Iterator[Mapping[str, Any]]:
    """The rows of ``data`` with all their fields, as plain Python; `WrongType` as `from_object`."""
    return (row for _, row in from_object(data, fields(data) or ("text",))[1])


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
        elif cells and _plain(item) is None:
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
    return _numbered(dict(zip(names, map(_plain, row), strict=True)) for row in values)


def _numbered(rows: Iterable[Mapping[str, object]]) -> Iterator[Row]:
    return ((f"row {n}", row) for n, row in enumerate(rows, start=1))


def _plain(value: object) -> object:
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
