"""Texts that a program hands over instead of a file: lists, data frames, data sets.

Taken are a list, tuple, generator or column of texts, of dicts or of `SourceText`, a data frame (pandas,
polars, or anything that speaks the Arrow or the data frame interchange protocol), and a
``datasets.Dataset``. Of rows with fields only the
columns of text, label, id and subject are read. Nothing is guessed from anything else: what ``str()`` makes of an
unknown object would be sent to a model as if it were a text.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from auditor.core.errors import MissingDependency, WrongType
from auditor.core.types import SourceText
from auditor.tasks import readers
from auditor.tasks.readers import Row
from auditor.tasks.seeds import SeedFile, Where, collect
from auditor.tasks.subjects import SUBJECT

SOURCE = "given by the caller"
TAKEN = (
    "a list of texts, of dicts, of SourceText; a data frame (pandas, polars, Arrow); a datasets.Dataset; "
    "or the name of a file as a text or Path"
)
_NAMES = Where(
    source="data",
    text="text_column=",
    label="label_column=",
    id="id_column=",
    source_column="source_column=",
    prefix="text-",
    halves=True,
)


def read(
    data: object,
    *,
    text_column: str = "text",
    label_column: str | None = None,
    id_column: str | None = None,
    source_column: str | None = None,
    limit: int | None = None,
) -> SeedFile:
    """Read the texts in ``data``; parameters and counts are those of `auditor.tasks.seeds.read`.

    Raises
    ------
    WrongType
        ``data``, or one of its items, is of a kind that is not taken.
    DataFileError
        There is no such column, or it holds something else than texts.
    """
    columns, rows = _table(
        data, (text_column, label_column or "label", id_column or "id", SUBJECT, *filter(None, [source_column]))
    )
    return collect(_NAMES, columns, rows, text_column, label_column, id_column, limit, source=source_column)


def fields(data: Any) -> tuple[str, ...]:
    """The names of the columns of a frame or a data set, or of the fields of the first dict of a list; else none."""
    names = getattr(data, "column_names", None)
    columns = list(names) if isinstance(names, (list, tuple)) else _column_names(data)
    if columns is None and isinstance(data, Sequence) and len(data) and isinstance(data[0], Mapping):
        columns = list(data[0])
    return tuple(map(str, columns or ()))


def rows(data: Any) -> Iterator[Mapping[str, Any]]:
    """The rows of ``data`` with all their fields, as plain Python.

    Raises
    ------
    WrongType
        ``data`` is of a kind that is not taken.
    """
    return (row for _, row in _table(data, fields(data) or ("text",))[1])


def _table(data: Any, wanted: tuple[str, ...]) -> readers.Table:
    columns = _column_names(data)
    if isinstance(data, type):
        raise _refused(f"the class {data.__name__}")
    if callable(getattr(data, "itertuples", None)):  # pandas, and what is made like it
        return columns, _pandas(data, [i for i, name in enumerate(columns or ()) if name in wanted])
    if callable(getattr(data, "iter_rows", None)):  # polars
        frame = data.select([name for name in columns or () if name in wanted])
        return columns, _numbered(frame.iter_rows(named=True))
    if hasattr(data, "features") and hasattr(data, "column_names"):  # datasets
        return readers.from_dataset(data)
    column = hasattr(data, "dtype")  # one column of a frame, or an array: its cells are texts
    if not column and (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__")):
        table = _arrow(data)
        names = list(table.column_names)
        chosen = [i for i, name in enumerate(names) if name in wanted]
        rows = (row for batch in table.select(chosen).to_batches() for row in batch.to_pylist())
        return names, _numbered(rows)
    if isinstance(data, Mapping):
        splits = [name for name, value in data.items() if hasattr(value, "column_names")]
        if splits:  # a datasets.DatasetDict
            raise WrongType(f"data holds several data sets; give one of them: data[{splits[0]!r}].")
        raise _refused("a dict of columns" if data else "an empty dict")
    if isinstance(data, (str, bytes, bytearray, set, frozenset, SourceText)) or not isinstance(data, Iterable):
        raise _refused(_kind(data))
    return None, _items(data, wanted)


def _column_names(data: object) -> list[str] | None:
    columns = getattr(data, "columns", None)
    try:
        return None if columns is None or callable(columns) else [str(name) for name in columns]
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
            raise _refused(f"{_kind(item)} as {where}")


def _pandas(frame: Any, chosen: list[int]) -> Iterator[Row]:
    names = [str(frame.columns[i]) for i in chosen]
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


def _arrow(data: object) -> Any:
    try:
        pyarrow = importlib.import_module("pyarrow")
    except ImportError:
        raise MissingDependency(f"Reading {_kind(data)}", "pyarrow", "parquet") from None
    if hasattr(data, "__arrow_c_stream__"):
        return pyarrow.table(data)
    return importlib.import_module("pyarrow.interchange").from_dataframe(data)


def _refused(kind: str) -> WrongType:
    return WrongType(f"data takes {TAKEN}; it was given {kind}.")


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
