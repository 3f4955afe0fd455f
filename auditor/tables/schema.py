"""What a table's columns may hold, as integer codes.

A row is a vector of codes ``0 … card - 1``, one per column, shape ``(d,)`` and dtype int32. A *case* is
one assignment of the columns that are not protected; its *grid* is the case with every combination of
protected values. Which raw value a code stands for is the column's affair: whole numbers in steps,
listed categories, bins with one representative each, or a value derived from another column of the data.

`auditor.tables.schemafile` infers, loads and saves schemas; `auditor.tables.constraints`
reads the rules between columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural
from auditor.core.errors import ConfigError, DataFileError
from auditor.tables._values import encode_integer, named, numbers
from auditor.tables._values import name as spelled
from auditor.tables.constraints import Constraint

Codes = NDArray[np.int32]
Kind = Literal["integer", "category", "binned", "derived"]
Raw = str | int | float | bool
LACKING = "(missing)"
ENUMERABLE = 10_000_000  # rows up to which a domain is walked through instead of sampled
MAX_COMBOS = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column and its codes.

    Parameters
    ----------
    name : str
        As the model knows it.
    kind : {"integer", "category", "binned", "derived"}
        ``integer``: raw value ``low + code * step``. ``category`` and ``derived``: ``values[code]``.
        ``binned``: ``values[code]`` is the representative of the bin, ``edges`` are the cuts between bins.
    codes : int
        How many codes there are.
    values : tuple
        Raw value of each code; empty for ``integer``. NaN, as the last one: a value may be missing, and the model is
        asked with NaN there.
    low, step : int
        For ``integer``.
    edges : tuple of float
        For ``binned``: ``codes - 1`` rising cuts; a value equal to a cut is in the upper bin.
    protected : bool
        Whether it is varied to judge a case.
    immutable : bool
        Whether a search may not change it.
    ordered : bool
        Whether neighbouring codes are neighbouring values; a search may then step by one.
    source : str, optional
        For ``derived``: the data column it is computed from.
    mapping : tuple of (source value, value)
        For ``derived``.
    """

    name: str
    kind: Kind
    codes: int
    values: tuple[Raw, ...] = ()
    low: int = 0
    step: int = 1
    edges: tuple[float, ...] = ()
    protected: bool = False
    immutable: bool = False
    ordered: bool = False
    source: str | None = None
    mapping: tuple[tuple[Raw, Raw], ...] = ()

    def __post_init__(self) -> None:
        where = f"column {self.name!r}"
        if self.codes < 1:
            raise ConfigError(f"{where} has no value; give low and high, or values")
        if self.kind == "integer":
            if self.step < 1:
                raise ConfigError(f"{where}: step must be at least 1, got {self.step}")
            return
        if len(self.values) != self.codes:
            raise ConfigError(f"{where} has {self.codes} codes but {plural(len(self.values), 'value')}")
        if self.kind != "binned" and len(set(map(spelled, self.values))) != self.codes:
            raise ConfigError(f"{where} lists a value twice: {', '.join(map(str, self.values))}")
        if self.kind == "binned" and (
            len(self.edges) != self.codes - 1 - self.may_lack
            or any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False))
        ):
            raise ConfigError(
                f"{where}: {self.codes - self.may_lack} bins need {self.codes - 1 - self.may_lack} rising cuts, "
                f"got {list(self.edges)}"
            )

    @property
    def may_lack(self) -> bool:
        """Whether the last code stands for a missing value."""
        return bool(self.values) and spelled(self.values[-1]) == "" and not isinstance(self.values[-1], str)

    @property
    def numeric(self) -> bool:
        """Whether every raw value is a number."""
        return self.kind == "integer" or all(isinstance(v, int | float) for v in self.values)

    def raw(self, code: int) -> Raw:
        """The raw value that ``code`` stands for; ``(missing)`` for a missing one.

        Examples
        --------
        >>> Column(name="age", kind="integer", codes=9, low=1).raw(8)
        9
        """
        if self.kind == "integer":
            return self.low + code * self.step
        return LACKING if self.may_lack and code == self.codes - 1 else self.values[code]

    def raw_values(self) -> list[Raw]:
        """The raw values of all codes, in their order; NaN for a missing one."""
        return [self.raw(code) for code in range(self.codes)] if self.kind == "integer" else list(self.values)

    def code_of(self, value: Raw) -> int | None:
        """The code of a raw value; None if the column cannot hold it.

        Examples
        --------
        >>> Column(name="sex", kind="category", codes=2, values=("Female", "Male")).code_of("Male")
        1
        """
        found = self.encode([value])
        return None if found[0] < 0 else int(found[0])

    @property
    def _truth(self) -> dict[bool, Raw]:
        """How a column of texts spells true and false."""
        told = self.values if self.kind != "derived" else [a for a, _ in self.mapping]
        return {
            v.casefold() == "true": v
            for v in told
            if isinstance(v, str) and v.casefold() in ("true", "false")
        }

    def encode(self, data: Sequence[Any] | NDArray[Any]) -> NDArray[np.int32]:
        """Codes of raw values, shape (n,); -1 where a value is missing or unknown."""
        array = np.asarray(data)
        if self.kind == "integer":
            return encode_integer(numbers(array), self.low, self.step, self.codes)
        if self.kind == "binned":
            number = numbers(array)
            code = np.searchsorted(np.asarray(self.edges, dtype=float), number, side="right").astype(np.int32)
            code[np.isnan(number)] = -1
            if self.may_lack:
                code[[v == "" for v in named(array)]] = self.codes - 1
            return code
        if array.dtype.kind == "b" and not any(isinstance(v, bool) for v in self.values):
            array = np.array([self._truth.get(bool(v), v) for v in array], dtype=object)
        table = {spelled(value): code for code, value in enumerate(self.values)}
        if self.kind == "derived":
            table = {spelled(a): table.get(spelled(b), -1) for a, b in self.mapping}
        distinct, inverse = np.unique(named(array), return_inverse=True)
        codes = np.array([table.get(str(name), -1) for name in distinct], dtype=np.int32)
        return codes[inverse.reshape(-1)]


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a model's input, what is protected, and the rules between columns.

    Parameters
    ----------
    columns : tuple of Column
        In the order in which the model reads them.
    target : str
        The data column that holds the label; not an input of the model.
    favourable : raw value, optional
        The label that is good for the person concerned; needed for group scores of more than two labels.
    constraints : tuple of Constraint
        What holds for every row that a person could have.
    name : str
        For reports.
    notes : tuple of str
        How the data were read, and what was seen in them; no part of what a schema is.

    Raises
    ------
    ConfigError
        No column, two of one name, a protected column with one value, or a constraint that names no column.
    """

    columns: tuple[Column, ...]
    target: str = ""
    favourable: Raw | None = None
    constraints: tuple[Constraint, ...] = ()
    name: str = "table"
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.columns:
            raise ConfigError(f"schema {self.name!r} has no columns")
        names = [c.name for c in self.columns]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ConfigError(f"schema {self.name!r} has two columns named {twice[0]!r}")
        if self.target and self.target in names:
            raise ConfigError(f"the target {self.target!r} is also an input column; remove it from columns")
        for column in self.columns:
            if column.protected and column.codes < 2:
                raise ConfigError(
                    f"protected column {column.name!r} has one value only ({column.raw(0)!r}): "
                    f"nothing can be changed. Give it more values in the schema, or protect another column"
                )
        for constraint in self.constraints:
            constraint.bind(self.columns)

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
    def protected_index(self) -> NDArray[np.intp]:
        """Positions of the protected columns, shape (p,)."""
        return np.array([i for i, c in enumerate(self.columns) if c.protected], dtype=np.intp)

    @cached_property
    def free_index(self) -> NDArray[np.intp]:
        """Positions of the columns that make up a case: those that are not protected."""
        return np.array([i for i, c in enumerate(self.columns) if not c.protected], dtype=np.intp)

    @cached_property
    def movable_index(self) -> NDArray[np.intp]:
        """Positions of the columns that a search may change: free, not immutable, more than one value."""
        return np.array(
            [i for i, c in enumerate(self.columns) if not (c.protected or c.immutable) and c.codes > 1],
            dtype=np.intp,
        )

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
        """All combinations of values of some columns, shape (m, len(index)), last column fastest.

        Raises
        ------
        ConfigError
            There are more than a million.
        """
        cards = [self.columns[int(i)].codes for i in index]
        if math.prod(cards) > MAX_COMBOS:
            named = ", ".join(self.columns[int(i)].name for i in index)
            raise ConfigError(f"{named} have {math.prod(cards):,} combinations, too many to try them all")
        return np.array(list(product(*map(range, cards))), dtype=np.int32).reshape(-1, len(cards))

    def index_of(self, name: str) -> int:
        """The position of a column; raises `ConfigError` with near names."""
        if name in self.names:
            return self.names.index(name)
        raise ConfigError(f"there is no column {name!r}; columns: {', '.join(self.names)}")

    def protecting(self, names: Sequence[str]) -> Schema:
        """The same schema with exactly these columns protected."""
        from dataclasses import replace

        wanted = {self.index_of(name) for name in names}
        return replace(
            self, columns=tuple(replace(c, protected=i in wanted) for i, c in enumerate(self.columns))
        )

    def encode(self, frame: Mapping[str, Any], *, where: str = "the data") -> Codes:
        """Codes of a table.

        Parameters
        ----------
        frame : mapping of column name to values
            A dictionary of sequences, or a pandas data frame; other columns are ignored.
        where : str
            The table's name, for messages.

        Returns
        -------
        array of int32, shape (n, d)

        Raises
        ------
        DataFileError
            A column is not there, or a value is missing or unknown; row (from 1) and column are named.
        """
        parts = []
        for column in self.columns:
            source = column.source or column.name
            if source not in frame:
                raise DataFileError(
                    f"{where} has no column {source!r}; columns: {', '.join(map(str, frame.keys()))}"
                )
            values = np.asarray(frame[source])
            code = column.encode(values)
            if len(bad := np.flatnonzero(code < 0)):
                raise DataFileError(_what_is_wrong(column, values[bad[0]], int(bad[0]), len(bad), where))
            parts.append(code)
        return np.stack(parts, axis=1) if parts else np.empty((0, 0), dtype=np.int32)

    @cached_property
    def numeric(self) -> bool:
        """Whether every column holds numbers, so that rows can go to the model as one numeric array."""
        return all(c.numeric for c in self.columns)

    @cached_property
    def _tables(self) -> list[NDArray[Any]]:
        kind: Any = np.float64 if self.numeric else object
        return [np.array(c.raw_values(), dtype=kind) for c in self.columns]

    @cached_property
    def _affine(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """(low, step) per column where every raw value is ``low + code * step``."""
        if not self.numeric:
            return None
        lows = np.array([t[0] for t in self._tables])
        steps = np.array([t[1] - t[0] if len(t) > 1 else 0.0 for t in self._tables])
        plain = all(
            np.array_equal(t, low + step * np.arange(len(t)))
            for t, low, step in zip(self._tables, lows, steps, strict=True)
        )
        return (lows, steps) if plain else None

    def decode(self, codes: Codes, *, frame: bool = False, out: NDArray[Any] | None = None) -> Any:
        """Rows of raw values, as the model reads them.

        Parameters
        ----------
        codes : array of int, shape (n, d)
            Codes within the domain.
        frame : bool
            Whether a pandas data frame with column names is wanted (scikit-learn pipelines).
        out : array, shape (n, d), optional
            Where to write the rows.

        Returns
        -------
        array of float64, shape (n, d), if all columns are numeric; otherwise an object array or a data frame
        """
        if frame:
            import pandas as pd

            return pd.DataFrame(
                {c.name: _plain(c)[codes[:, j]] for j, c in enumerate(self.columns)}, columns=list(self.names)
            )
        if out is None:
            out = np.empty(codes.shape, dtype=np.float64 if self.numeric else object)
        if self._affine is None:
            for j, table in enumerate(self._tables):
                out[:, j] = table[codes[:, j]]
            return out
        lows, steps = self._affine
        out[:] = codes
        for j in np.flatnonzero((steps != 1.0) & (self.cards > 1)).tolist():
            out[:, j] *= steps[j]
        for j in np.flatnonzero(lows).tolist():
            out[:, j] += lows[j]
        return out

    def row(self, codes: Codes) -> dict[str, Raw]:
        """One row, shape (d,), as column name → raw value."""
        return {c.name: c.raw(int(code)) for c, code in zip(self.columns, codes, strict=True)}

    def on_manifold(self, codes: Codes) -> NDArray[np.bool_]:
        """Which rows satisfy every constraint, shape (n,): rows that a person could have."""
        result = np.ones(len(codes), dtype=bool)
        for constraint in self.constraints:
            result &= constraint.holds(codes, self.columns)
        return result


def _plain(column: Column) -> NDArray[Any]:
    """Raw values in the narrowest plain type: int64, bool, float64 or object (text)."""
    values = column.raw_values()
    if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return np.array(values, dtype=np.int64)
    if all(isinstance(v, bool) for v in values):
        return np.array(values, dtype=bool)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return np.array(values, dtype=np.float64)
    return np.array(values, dtype=object)


def _what_is_wrong(column: Column, value: Any, row: int, count: int, where: str) -> str:
    missing = (
        value is None or (isinstance(value, float | np.floating) and math.isnan(value)) or str(value) == ""
    )
    what = "is missing (NaN)" if missing else f"is {value!s}"
    if column.kind == "integer":
        allowed = f"whole numbers {column.low} to {column.raw(column.codes - 1)}"
        allowed += f" in steps of {column.step}" if column.step > 1 else ""
    elif column.kind == "binned":
        allowed = "numbers"
    else:
        source = [a for a, _ in column.mapping] if column.kind == "derived" else list(column.values)
        allowed = ", ".join(map(str, source[:12])) + (", …" if len(source) > 12 else "")
    more = f" ({plural(count, 'row')} in all)" if count > 1 else ""
    return (
        f"{where}, row {row + 1}: column {column.source or column.name!r} {what}, which the schema "
        f"does not have (allowed: {allowed}){more}. Remove or fill the rows, or edit the schema "
        f"(audit tabular schema DATA --out FILE)"
        + (". If the model takes missing values: .nan as the last of the column's values" if missing else "")
    )
