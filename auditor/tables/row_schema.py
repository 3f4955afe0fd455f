"""What a row may hold: the columns that span a domain, rows of it, and schemas from YAML files.

::

    name: census
    target: income
    favourable: ">50K"
    columns:
      age:          {kind: integer, low: 17, high: 90}
      hours:        {kind: binned, edges: [20, 40, 60], values: [10, 35, 45, 70]}
      sex:          {kind: category, values: [Female, Male], protected: true}
      gender:       {kind: derived, source: personal_status, mapping: {A91: male, A92: female}}
      relationship: {kind: category, values: [Husband, Wife, Other], immutable: true}
    constraints:
      - relationship == Husband implies sex == Male
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import BaseModel, Field, field_validator, model_validator

from auditor.core.errors import ConfigError, DataFileError, UnknownValue
from auditor.core.reading import checked, load_fields
from auditor.core.record.rows import Raw
from auditor.core.shown import plural
from auditor.tables.columns import Codes, Column, Kind, Node, RuleReader, holds, name, numbers

if TYPE_CHECKING:
    import pandas as pd

Keys: TypeAlias = NDArray[np.generic]  # of rows: int64, or void of fixed width
Asked: TypeAlias = "NDArray[np.generic] | pd.DataFrame"  # rows as a model reads them

MAX_COMBOS = 1_000_000
CHUNK = 65536  # rows of a domain that are walked through at once
MOST_CODES = 10_000_000  # of a column: each has a value in memory


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a model's input, what is protected, and the rules between columns."""

    columns: tuple[Column, ...]  # in the order in which the model reads them
    target: str = ""  # the data column that holds the label; not an input of the model
    # the label that is good for the person concerned; needed for group scores of more than two labels
    favourable: Raw | None = None
    constraints: tuple[str, ...] = ()  # rules that hold for every row that a person could have
    name: str = "table"  # for reports
    # how the data were read, and what was seen in them; no part of what a schema is
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.columns:
            raise ConfigError(f"schema {self.name!r} has no columns")
        if self.target and self.target in self.names:
            raise ConfigError(f"the target {self.target!r} is also an input column; remove it from columns")
        for column in self.columns:
            if column.protected and column.codes < 2:
                raise ConfigError(
                    f"protected column {column.name!r} has one value only ({column.raw(0)!r}): "
                    f"nothing can be changed. Give it more values in the schema, or protect another column"
                )
        _ = self.rules  # all can be read

    @cached_property
    def rules(self) -> tuple[Node, ...]:
        """The constraints as trees."""
        return tuple(RuleReader(text, self.columns).read() for text in self.constraints)

    @property
    def d(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(c.name for c in self.columns)

    @cached_property
    def cards(self) -> NDArray[np.int64]:
        """How many codes each column has, shape (d,)."""
        return np.array([c.codes for c in self.columns], dtype=np.int64)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """As `cards`, with the codes of values that only given rows have."""
        return np.array([c.codes + len(c.own) for c in self.columns], dtype=np.int64)

    @cached_property
    def _bins(self) -> dict[int, Codes]:
        """By column with values of given rows, the code of the bin that each code belongs to."""
        own = {j: c for j, c in enumerate(self.columns) if c.own}
        return {j: np.concatenate([np.arange(c.codes, dtype=np.int32), c.encode(c.own)]) for j, c in own.items()}

    def _where(self, wanted: Iterable[bool]) -> NDArray[np.intp]:
        return np.flatnonzero(np.fromiter(wanted, dtype=bool, count=self.d))

    @cached_property
    def protected_index(self) -> NDArray[np.intp]:
        """Positions of the protected columns, shape (p,)."""
        return self._where(c.protected for c in self.columns)

    @cached_property
    def free_index(self) -> NDArray[np.intp]:
        """Positions of the columns that make up a case: those that are not protected."""
        return self._where(not c.protected for c in self.columns)

    @cached_property
    def movable_index(self) -> NDArray[np.intp]:
        """Positions of the columns that a search may change: free, not immutable, more than one value."""
        return self._where(not (c.protected or c.immutable) and c.codes > 1 for c in self.columns)

    @cached_property
    def protected(self) -> tuple[str, ...]:
        """The names of the protected columns."""
        return tuple(c.name for c in self.columns if c.protected)

    @cached_property
    def size(self) -> int:
        """How many rows the domain has, exactly."""
        return math.prod(c.codes for c in self.columns)

    @cached_property
    def cases(self) -> int:
        """How many cases the domain has, exactly."""
        return math.prod(c.codes for c in self.columns if not c.protected)

    @cached_property
    def combos(self) -> Codes:
        """All combinations of protected values, shape (m, p), last column fastest."""
        return self.combos_of(self.protected_index)

    def combos_of(self, index: Sequence[int] | NDArray[np.intp]) -> Codes:
        """All combinations of values of some columns, shape (m, len(index)), last column fastest."""
        cards = [self.columns[int(i)].codes for i in index]
        if math.prod(cards) > MAX_COMBOS:
            named = ", ".join(self.columns[int(i)].name for i in index)
            raise ConfigError(f"{named} have {math.prod(cards):,} combinations, too many to try them all")
        return np.array(list(product(*map(range, cards))), dtype=np.int32).reshape(-1, len(cards))

    def protecting(self, names: Sequence[str]) -> Schema:
        """The same schema with exactly these columns protected; raises `UnknownValue` where there is no such column."""
        if unknown := [name for name in names if name not in self.names]:
            raise UnknownValue("--protected", unknown[0], "column of the schema", self.names)
        return replace(self, columns=tuple(replace(c, protected=c.name in names) for c in self.columns))

    def encode(self, frame: Mapping[str, object], *, where: str = "the data") -> Codes:
        """Codes of a table."""
        parts = []
        for column in self.columns:
            source = column.source or column.name
            if source not in frame:
                raise DataFileError(f"{where} has no column {source!r}; columns: {', '.join(map(str, frame.keys()))}")
            values = np.asarray(frame[source])
            code = column.encode(values)
            if len(bad := np.flatnonzero(code < 0)):
                raise DataFileError(what_is_wrong(column, values[bad[0]], int(bad[0]), len(bad), where))
            parts.append(code)
        return np.stack(parts, axis=1) if parts else np.empty((0, 0), dtype=np.int32)

    def with_rows(self, frame: Mapping[str, object], *, where: str = "the data") -> tuple[Schema, Codes]:
        """The rows of a table, each with its own values, and the schema in which they are codes."""
        codes, columns = self.encode(frame, where=where), list(self.columns)
        for j, column in enumerate(columns):
            if column.kind == "binned":
                number = numbers(np.asarray(frame[column.name]))
                known = ~np.isnan(number)
                new = np.setdiff1d(number[known], np.array(column.own, dtype=float))
                listed = (*column.own, *(int(v) if v.is_integer() else v for v in new.tolist()))
                order = np.argsort(listed)
                at = np.searchsorted(np.array(listed, dtype=float), number[known], sorter=order)
                codes[known, j] = column.codes + order[at]
                columns[j] = replace(column, own=listed)
        return replace(self, columns=tuple(columns)), codes

    def binned(self, codes: Codes) -> Codes:
        """Rows with the code of the bin in the place of each value of their own."""
        result = codes.copy() if self._bins else codes
        for j, table in self._bins.items():
            result[:, j] = table[codes[:, j]]
        return result

    def crossed(self, codes: Codes, index: Sequence[int] | NDArray[np.intp], combos: Codes) -> Codes:
        """Rows with every combination of some columns, all rows with the first one first; see `put`."""
        return self.put(np.tile(codes, (len(combos), 1)), index, np.repeat(combos, len(codes), axis=0))

    def put(self, rows: Codes, index: Sequence[int] | NDArray[np.intp], values: Codes) -> Codes:
        """Write codes, shape (n, len(index)), into some columns; a row keeps its own value within the bin it gets."""
        own = {j: rows[:, j].copy() for j in self._bins.keys() & {int(i) for i in index}}
        rows[:, index] = values
        for j, mine in own.items():
            keep = (mine >= self.columns[j].codes) & (self._bins[j][mine] == rows[:, j])
            rows[keep, j] = mine[keep]
        return rows

    @cached_property
    def _tables(self) -> list[NDArray[np.generic]]:
        """The raw values of each column; where all hold numbers, rows go to the model as one numeric array."""
        kind = np.float64 if all(c.numeric for c in self.columns) else np.object_
        return [np.array(c.all_values(), dtype=kind) for c in self.columns]

    def frame(self, codes: Codes) -> pd.DataFrame:
        """Rows of raw values with their columns' names."""
        import pandas as pd

        return pd.DataFrame(
            {c.name: plain_values(c)[codes[:, j]] for j, c in enumerate(self.columns)}, columns=list(self.names)
        )

    def decode(self, codes: Codes) -> NDArray[np.generic]:
        """Rows of raw values, as the model reads them."""
        out = np.empty(codes.shape, dtype=self._tables[0].dtype)
        for j, table in enumerate(self._tables):
            out[:, j] = table[codes[:, j]]
        return out

    def row(self, codes: Codes) -> dict[str, Raw]:
        """One row, shape (d,), as column name → raw value."""
        return {c.name: c.raw(int(code)) for c, code in zip(self.columns, codes, strict=True)}

    def on_manifold(self, codes: Codes) -> NDArray[np.bool_]:
        """Which rows satisfy every constraint, shape (n,): rows that a person could have."""
        result = np.ones(len(codes), dtype=bool)
        for rule in self.rules:
            result &= holds(rule, codes)
        return result


def plain_values(column: Column) -> NDArray[np.generic]:
    """Raw values in the narrowest plain type: int64, bool, float64 or object (text)."""
    kinds = set(map(type, column.all_values()))
    kind: type = bool if kinds == {bool} else int if kinds == {int} else float if kinds <= {int, float} else object
    return np.array(column.all_values(), dtype=kind)


def what_is_wrong(column: Column, value: object, row: int, count: int, where: str) -> str:
    """Which value of a row a column cannot hold, and what it can."""
    missing = name(value) == ""
    what = "is missing (NaN)" if missing else f"is {value!s}"
    if column.kind == "integer":
        allowed = f"whole numbers {column.low} to {column.raw(column.codes - 1)}"
        allowed += f" in steps of {column.step}" if column.step > 1 else ""
    elif column.kind == "binned":
        allowed = "numbers"
    else:
        allowed = ", ".join(map(str, column.in_data[:12])) + (", …" if len(column.in_data) > 12 else "")
    more = f" ({plural(count, 'row')} in all)" if count > 1 else ""
    return (
        f"{where}, row {row + 1}: column {column.source or column.name!r} {what}, which the schema "
        f"does not have (allowed: {allowed}){more}. Remove or fill the rows, or edit the schema "
        f"(audit tabular schema DATA --out FILE)"
        + (". If the model takes missing values: .nan as the last of the column's values" if missing else "")
    )


def dump_schema(schema: Schema, comments: Sequence[str] = ()) -> str:
    """A schema as YAML text, one line per column; ``comments`` follow the constraints."""
    import yaml

    lines = [
        "# Which values a row may have. Edit it: add values that the data lack, mark protected and immutable",
        "# columns, and add constraints between columns (rows that no person could have are counted apart).",
    ]
    head = {"name": schema.name, "target": schema.target, "favourable": schema.favourable}
    lines += [yaml.safe_dump({k: v}, allow_unicode=True).strip() for k, v in head.items() if v not in (None, "")]
    lines.append("columns:")
    for column in schema.columns:
        text = yaml.safe_dump(
            {column.name: _plain(column)}, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True
        ).strip()
        lines.append(f"  {text[1:-1]}")
    lines.append(yaml.safe_dump({"constraints": list(schema.constraints)}, allow_unicode=True, width=10**6).strip())
    lines += [f"# {line}" for line in comments]
    return "\n".join(lines) + "\n"


def _plain(column: Column) -> dict[str, object]:
    entry: dict[str, object] = {"kind": column.kind}
    if column.kind == "integer":
        entry |= {"low": column.low, "high": column.raw(column.codes - 1)}
        entry |= {"step": column.step} if column.step != 1 else {}
    elif column.kind == "derived":
        entry |= {"source": column.source, "mapping": dict(column.mapping), "values": list(column.values)}
    else:
        entry |= {"edges": list(column.edges)} if column.kind == "binned" else {}
        entry["values"] = list(column.values)
    for flag in ("protected", "immutable"):
        entry |= {flag: True} if getattr(column, flag) else {}
    if column.ordered != (column.kind in ("integer", "binned")):
        entry["ordered"] = column.ordered
    return entry


class ColumnPart(BaseModel, extra="forbid", strict=True):
    """A column of a schema file. `Column` checks that its values go together."""

    kind: Kind
    low: int = 0
    high: int = -1
    step: Annotated[int, Field(ge=1)] = 1
    values: list[Raw] = []
    edges: list[float] = []
    protected: bool = False
    immutable: bool = False
    ordered: bool | None = None
    source: str | None = None
    mapping: dict[Raw, Raw] = {}

    @field_validator("values", mode="before")
    @classmethod
    def _plain(cls, values: object) -> object:
        if isinstance(values, list) and not all(isinstance(v, str | int | float) for v in values):
            raise ValueError("must be texts or numbers (quote dates and times)")
        return values

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "integer" and self.high < self.low:
            raise ValueError("needs whole numbers low <= high")
        if (self.high - self.low) // self.step >= MOST_CODES:
            raise ValueError(f"{self.low} to {self.high} are too many values; give a larger step, or kind: binned")
        if self.kind == "derived" and not (self.source and self.mapping):
            raise ValueError("a derived column needs source (a column of the data) and mapping")
        known = self.values[:-1] if self.values and self.values[-1] != self.values[-1] else self.values
        for value in (*known, *self.edges):
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{value} is not a finite number (.nan, as the last of the values: missing)")
        return self

    def column(self, name: str) -> Column:
        """The column of this name."""
        integer, derived = self.kind == "integer", self.kind == "derived"
        values = () if integer else tuple(self.values or dict.fromkeys(self.mapping.values()))
        return Column(
            name=name,
            **self.model_dump(include={"kind", "low", "step", "protected", "immutable"}),
            codes=len(range(self.low, self.high + 1, self.step)) if integer else len(values),
            values=values,
            edges=tuple(map(float, self.edges)),
            ordered=self.kind in ("integer", "binned") if self.ordered is None else self.ordered,
            source=self.source if derived else None,
            mapping=tuple(self.mapping.items()) if derived else (),
        )


class SchemaFile(BaseModel, extra="forbid", strict=True):
    """A schema file."""

    name: str | None = None
    target: str = ""
    favourable: Raw | None = None
    columns: dict[str, ColumnPart]
    constraints: list[str] = []


def load_schema(path: str | Path) -> Schema:
    """Read a schema file; `DataFileError` names line and field."""
    raw, lines = load_fields(Path(path))
    file = checked(SchemaFile, raw, path, lines, f"The fields of a column: {', '.join(ColumnPart.model_fields)}.")
    return Schema(
        columns=tuple(part.column(name) for name, part in file.columns.items()),
        target=file.target,
        favourable=file.favourable,
        constraints=tuple(file.constraints),
        name=file.name or Path(path).stem,
    )


def row_keys(codes: NDArray[np.int32], cards: Sequence[int] | NDArray[np.int64]) -> Keys:
    """Return one exact key per row of codes, in lexicographic order of rows.

    int64 in mixed radix where the domain has at most 2^63 rows; else big-endian bytes of dtype void.
    """
    sizes = [int(c) for c in cards]
    if math.prod(sizes) <= 2**63:
        key = np.zeros(len(codes), dtype=np.int64)
        for j, size in enumerate(sizes):
            key *= size
            key += codes[:, j]
        return key
    return np.ascontiguousarray(codes, dtype=">i4").view(np.dtype((np.void, 4 * len(sizes)))).reshape(-1)


def add_to(seen: set[object], keys: Keys) -> NDArray[np.bool_]:
    """Add keys to a set; which of them were new, shape (n,): of equal new keys only the first."""
    new = np.zeros(len(keys), dtype=bool)
    for i, key in enumerate(keys.tolist()):
        new[i] = key not in seen
        seen.add(key)
    return new


def case_keys(schema: Schema, codes: Codes) -> Keys:
    """Exact keys of the cases that rows belong to, shape (n,): the columns that are not protected."""
    index = schema.free_index
    return row_keys(codes[:, index], schema.cards[index])


def uniform(schema: Schema, n: int, rng: Generator) -> Codes:
    """Draw rows uniformly from the whole domain, shape (n, d), constraints ignored."""
    out = np.empty((schema.d, n), dtype=np.int32)  # column by column in memory: drawn and keyed faster
    for j, card in enumerate(schema.cards.tolist()):
        kind = np.int16 if card < 2**15 else np.int64  # narrow draws are cheaper
        out[j] = rng.integers(0, card, n, dtype=kind) if card > 1 else 0
    return out.T


def enumerate_rows(schema: Schema, columns: NDArray[np.intp] | None = None) -> Iterator[Codes]:
    """Every row of the domain in key order, in chunks; columns not in ``columns`` stay at code 0."""
    index = np.arange(schema.d) if columns is None else columns
    cards = schema.cards[index]
    total = int(np.prod(cards, dtype=object)) if len(cards) else 1
    for start in range(0, total, CHUNK):
        rest = np.arange(start, min(start + CHUNK, total), dtype=np.int64)
        rows = np.zeros((len(rest), schema.d), dtype=np.int32)
        for j in range(len(index) - 1, -1, -1):
            rest, rows[:, index[j]] = np.divmod(rest, cards[j])
        yield rows
