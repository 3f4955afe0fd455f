"""Schema and rows of a tabular run: read from files, or inferred from data for a person to look at.

What is inferred: kinds, ranges, bins, and what to look at before rows are varied.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import ConfigError, DataFileError, UnknownValue
from auditor.core.reading import distinct, read_csv, read_data, unpacked
from auditor.core.record.rows import Raw
from auditor.core.shown import plural
from auditor.tables.columns import Codes, Column, Kind, named
from auditor.tables.row_schema import Schema, dump_schema, load_schema
from auditor.tables.sg_paths import check_realisable
from auditor.tables.tabular_plan import TabularPlan

if TYPE_CHECKING:
    from auditor.tasks.task import Task

# What pandas reads as missing, so that a model gets what it was trained on.
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None", "<NA>", "#N/A", "#NA")
)
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*")  # also with commas


class Table(dict[str, NDArray[np.generic]]):
    """Columns by name, and in ``notes`` what a reader has to know about how they were read.

    int64, float64 (NaN where missing), bool, or object (text or truth values, None where missing), shape (n,).
    """

    notes: tuple[str, ...]

    def __init__(self, columns: Mapping[str, NDArray[np.generic]], notes: Iterable[str] = ()) -> None:
        super().__init__(columns)
        self.notes = tuple(notes)

    def without_missing(self, names: Sequence[str]) -> Table:
        """The rows in which none of some columns is missing; what was left out becomes a note."""
        notes, keep = list(self.notes), np.ones(len(next(iter(self.values()))), dtype=bool)
        for name in names:
            gone = missing(self[name])
            if gone.any():
                notes.append(f"{name} is missing in {plural(int(gone.sum()), 'row')}: left out.")
            keep &= ~gone
        if not keep.any():
            raise DataFileError(f"no row has a value in all of {', '.join(names)}")
        return self if keep.all() else Table({n: v[keep] for n, v in self.items()}, notes)


def missing(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Which values are missing: None, NaN or empty."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values), dtype=bool)
    if values.dtype.kind in "iub":
        return np.zeros(values.shape, dtype=bool)
    return np.array([v is None or v == "" or (isinstance(v, float) and math.isnan(v)) for v in values], dtype=bool)


def read_table(path: str | Path) -> Table:
    """A CSV file (comma, semicolon or tab, also ``.csv.gz``) with a header line, by column."""
    path = Path(path)
    table = read_csv(path, unpacked(path, read_data(path)))
    distinct(path, table.columns)
    rows = [row for _, row in table.rows]
    if not rows:
        raise DataFileError(f"{path}: there is a header and no line below it")
    notes: list[str] = []
    columns = {name: read_column(name, [row[j].strip() for row in rows], notes) for j, name in enumerate(table.columns)}
    for j, (name, values) in enumerate(columns.items()):
        if values.dtype.kind == "f" and len(beyond := np.flatnonzero(np.isinf(values))):
            raise DataFileError(
                f"{path}, row {beyond[0] + 1}: column {name!r} is {rows[beyond[0]][j].strip()}, not a finite number "
                f"({plural(len(beyond), 'such row')}). Give the number, or leave the field empty"
            )
    return Table(columns, notes)


def read_column(name: str, values: Sequence[str], notes: list[str]) -> NDArray[np.generic]:
    """The values of one column in the narrowest type that holds them; texts among numbers are added to ``notes``."""
    with suppress(ValueError, OverflowError):
        return np.array([int(v) for v in values], dtype=np.int64)
    with suppress(ValueError):
        read = np.array([math.nan if v in MISSING else float(v) for v in values], dtype=np.float64)
        if count := Counter(v for v in values if v and v in MISSING):
            notes.append(f"{name}: read as missing, since all other values are numbers: {_listed([*count], count)}.")
        return read
    count = Counter(v for v in values if v not in MISSING)
    if {v.casefold() for v in count} <= {"true", "false"}:
        truth = [None if v in MISSING else v.casefold() == "true" for v in values]
        return np.array(truth, dtype=object if None in truth else bool)
    odd = [v for v in count if not _NUMBER.fullmatch(v)] or [v for v in count if "," in v]
    if (numbers := sum(n for v, n in count.items() if v not in odd)) * 2 > count.total():
        notes.append(
            f"{name}: {numbers:,} of {plural(count.total(), 'value')} are numbers; not {_listed(odd, count)}. It was "
            "read as text, each value a category. Write the others as numbers (2000, 1.5), or leave the field empty."
        )
    return np.array([None if v in MISSING else v for v in values], dtype=object)


def _listed(values: Sequence[str], count: Mapping[str, int]) -> str:
    shown = ", ".join(f"{v!r} ({plural(count[v], 'row')})" for v in values[:4])
    return shown + (f" and {len(values) - 4:,} more" if len(values) > 4 else "")


TASKS = Path(__file__).with_name("rows")  # row tasks and their schemas
FEW = 20  # distinct whole numbers up to which gaps between them mean categories
WIDE = 1024  # span of whole numbers from which on they are binned
BINS = 10
MANY = 50  # distinct texts from which on a column of mostly different texts is named
ALWAYS = 1000  # and any column of texts
ROWS = 30  # with a value in both, from which on one column is said to follow from another
GUARDED = ("sex", "gender", "race", "ethnicity", "religion", "nationality", "disability")
PERHAPS = ("age", "marital-status", "marital_status", "native-country", "country", "foreign_worker")


def infer(
    data: Mapping[str, object],
    target: str,
    protected: Sequence[str] = (),
    *,
    name: str = "table",
    where: str = "the data",
) -> Schema:
    """Return a schema that holds every row of a table; a starting point to be edited.

    Text becomes a category. Whole numbers become a range, or a category where there are at most 20 with wide gaps.
    Other numbers, and whole numbers over a span of more than 1,024, become ten bins of about equal count, each
    represented by the median of its rows. A column that is not protected and lacks values gets NaN as its last value.
    """
    table = {str(key): np.asarray(data[key]) for key in data.keys()}  # noqa: SIM118 - a data frame
    if target not in table:
        raise UnknownValue("--target", target, f"column of {where}", table)
    for wanted in protected:
        if wanted not in table:
            raise UnknownValue("--protected", wanted, f"column of {where}", [n for n in table if n != target])
    labels = _distinct(table[target], target, where)
    if len(labels) < 2:
        raise DataFileError(f"{where}: the target {target!r} has one value only ({labels[0]!r})")
    inputs = {key: values for key, values in table.items() if key != target}
    notes = [*getattr(data, "notes", ())]
    notes += [note for key, values in inputs.items() for note in _wide(key, values)]
    notes += [note for key in protected if key in inputs for note in _together(key, inputs)]
    return Schema(
        notes=tuple(notes),
        columns=tuple(_infer(key, values, key in protected, where) for key, values in inputs.items()),
        target=target,
        name=name,
    )


def _distinct(values: NDArray[np.generic], name: str, where: str) -> list[Raw]:
    lacking = missing(values)
    if lacking.any():
        raise DataFileError(
            f"{where}, row {int(np.flatnonzero(lacking)[0]) + 1}: column {name!r} is missing (NaN); "
            f"{plural(int(lacking.sum()), 'such row')}. Remove or fill them"
        )
    return [v.item() if isinstance(v, np.generic) else v for v in np.unique(values)]


def _infer(name: str, values: NDArray[np.generic], protected: bool, where: str) -> Column:
    lacking = missing(values)
    if lacking.all():
        raise DataFileError(f"{where}: column {name!r} is empty in every row; remove it")
    if protected or not lacking.any():
        return _column(name, values, protected, where)
    column = _column(name, values[~lacking], protected, where)
    kind: Kind = "category" if column.kind == "integer" else column.kind
    return replace(column, kind=kind, low=0, codes=column.codes + 1, values=(*column.all_values(), math.nan))


def _column(name: str, values: NDArray[np.generic], protected: bool, where: str) -> Column:
    distinct = _distinct(values, name, where)
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in distinct)
    whole = numbers and all(float(v).is_integer() for v in distinct)
    span = float(distinct[-1]) - float(distinct[0]) + 1 if numbers else 0.0
    if not numbers or (whole and len(distinct) <= FEW and span > 2 * len(distinct) + 8):
        listed = tuple(map(int, distinct)) if numbers else tuple(distinct)
        return Column(name=name, kind="category", codes=len(listed), values=listed, protected=protected)
    if whole and span <= WIDE:
        low = int(distinct[0])
        return Column(name=name, kind="integer", codes=int(span), low=low, protected=protected, ordered=True)
    number = values.astype(float)
    cuts = _cuts(number)
    code = np.searchsorted(cuts, number, side="right")
    middle = [float(np.median(number[code == k])) for k in range(len(cuts) + 1)]
    return Column(
        name=name,
        kind="binned",
        codes=len(middle),
        values=tuple(int(v) if v.is_integer() else v for v in middle),
        edges=tuple(cuts.tolist()),
        protected=protected,
        ordered=True,
    )


def _cuts(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rising cuts between about equal counts; a value that more than a bin's share of the rows has stands alone."""
    distinct, count = np.unique(values, return_counts=True)
    heavy = distinct[count > len(values) / BINS]
    rest = values[~np.isin(values, heavy)]
    cuts = [rest.min()] if len(rest) and len(heavy) else []
    if len(rest):
        bins = max(1, BINS - len(heavy))
        cuts += np.quantile(rest, np.linspace(0, 1, bins + 1)[1:-1]).tolist()
    for value in heavy:
        after = distinct[distinct > value]
        cuts += [value, *after[:1]]
    result = np.unique(np.round(np.array(cuts, dtype=float), 9))
    filled = np.unique(np.searchsorted(result, values, side="right"))
    return np.asarray(result[filled[1:] - 1])


def _wide(name: str, values: NDArray[np.generic]) -> Iterator[str]:
    """Whether a column has so many values that a search should perhaps not vary it."""
    known = values[~missing(values)]
    distinct = len(np.unique(named(known)))
    if known.dtype.kind in "iu":
        if distinct == len(known) > MANY and int(known.max()) - int(known.min()) < 1.5 * distinct:
            yield (
                f"{name} numbers the rows from {known.min()} to {known.max()}: an id? Leave it out if the model does "
                "not read it."
            )
        return
    if known.dtype != object or not len(known):
        return
    if distinct > MANY and (distinct > ALWAYS or 2 * distinct > len(known)):
        yield (
            f"{name} has {plural(distinct, 'different text')} in {plural(len(known), 'row')} (names, dates or free "
            "texts?), and each would be a category that rows are drawn from. Leave it out if the model does not read "
            "it, or derive a column with fewer values."
        )


def _together(name: str, inputs: Mapping[str, NDArray[np.generic]]) -> Iterator[str]:
    """Columns that follow from a protected one, or that it follows from."""
    for other, values in inputs.items():
        if other == name:
            continue
        rows = ~(missing(values) | missing(inputs[name]))
        if rows.sum() < ROWS:
            continue
        a, b = (np.unique(named(v[rows]), return_inverse=True)[1] for v in (inputs[name], values))
        pairs = len(np.unique(a.astype(np.int64) * (int(b.max()) + 1) + b))
        of_a, of_b = int(a.max()) + 1, int(b.max()) + 1
        if min(of_a, of_b) < 2 or pairs not in (of_a, of_b) or 2 * pairs > rows.sum():
            continue
        source, made = (name, other) if pairs == of_a else (other, name)
        yield (
            f"{made} follows from {source} in every row, but rows would be asked in which the two do not go together. "
            f"Make one of them a derived column in the schema ({made}: {{kind: derived, source: {source}, "
            "mapping: …}), or add constraints that keep them together."
        )


def infer_schema(data: str, target: str | None, protected: tuple[str, ...] = ()) -> str:
    """Return the schema of a table as YAML text, to be edited.

    Without a target the last column is taken. Without protected columns, those named as a protected attribute are.
    """
    table = read_table(data)
    wanted = target or list(table)[-1]
    table = table.without_missing([wanted] if wanted in table else [])
    chosen = protected or tuple(n for n in table if n != wanted and n.lower() in GUARDED)
    table = table.without_missing([n for n in chosen if n in table])
    schema = infer(table, wanted, chosen, name=Path(data).name.split(".")[0], where=data)
    comments = list(schema.notes)
    labels = ", ".join(sorted({str(v) for v in table[wanted].tolist() if v is not None})[:12])
    comments.append(
        f"Which label of {wanted} is good for the person concerned is not known. To say it, add the line "
        f"`favourable: LABEL` above `columns`; labels: {labels}."
    )
    if perhaps := [n for n in schema.names if n.lower() in PERHAPS and n not in schema.protected]:
        comments.append(f"Perhaps to be protected too: {', '.join(perhaps)} (add `protected: true`).")
    return dump_schema(schema, comments)


def load_task(name: str) -> Task:
    """Load the task of this name: one for table rows, or any other."""
    from auditor import tasks

    own = TASKS / f"{name}.yaml"
    return tasks.load(own if own.is_file() else name)


def load_rows(plan: TabularPlan) -> tuple[Schema, Codes]:
    """Schema and the given rows; none without data."""
    table: Table | None = read_table(plan.data) if plan.data else None
    if table is not None:
        table = table.without_missing([n for n in (plan.target or "", *plan.protected) if n in table])
    favourable = None if plan.favourable is None else _value(plan.favourable)
    if plan.task is not None:
        task = load_task(plan.task)
        favourable = plan.favourable if plan.favourable is not None else task.favourable
    if plan.schema_file is not None or table is None:
        schema = load_schema(plan.schema_file or _shipped(plan))
        if plan.target and plan.target != schema.target:
            columns = tuple(c for c in schema.columns if c.name != plan.target)
            schema = replace(schema, target=plan.target, columns=columns)
    elif plan.target is None:
        raise ConfigError("--target is missing: name the column of --data that holds the label, or give --schema")
    else:
        name = Path(plan.data).name.split(".")[0]
        schema = infer(table, plan.target, plan.protected, name=name, where=plan.data)
    if table is not None and plan.target is not None and plan.target not in table:
        raise UnknownValue("--target", plan.target, f"column of {plan.data}", table)
    if plan.protected:
        schema = schema.protecting(plan.protected)
    if favourable is not None:
        labels = table[schema.target] if table is not None and schema.target in table else np.empty(0)
        if str(favourable).casefold() in ("true", "false") and any(isinstance(v, bool) for v in labels.tolist()):
            favourable = str(favourable).casefold() == "true"
        schema = replace(schema, favourable=favourable)
    if not schema.protected:
        raise ConfigError(f"no column is protected: give --protected NAME[,NAME]. Columns: {', '.join(schema.names)}")
    if schema.constraints:
        check_realisable(schema)
    if table is None:
        return schema, np.empty((0, schema.d), dtype=np.int32)
    whole = [c.source or c.name for c in schema.columns if c.protected and not c.may_lack]
    table = table.without_missing([name for name in (schema.target, *whole) if name in table])
    schema = replace(schema, notes=tuple(dict.fromkeys((*schema.notes, *table.notes))))
    return schema.with_rows(table, where=plan.data)


def _shipped(plan: TabularPlan) -> Path:
    """The schema that comes with a row task."""
    if plan.task is not None and (path := TASKS / f"{plan.task}.schema.yaml").is_file():
        return path
    known = ", ".join(sorted(p.name.partition(".")[0] for p in TASKS.glob("*.schema.yaml")))
    raise ConfigError(
        f"which columns a row has is not known: give --data FILE or --schema FILE. Tasks with a schema of their "
        f"own: {known}"
    )


def _value(text: str) -> str | int | float:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
