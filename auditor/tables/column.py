"""One column of a table: its codes, and raw values as numbers, as codes and as names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural
from auditor.core.errors import ConfigError

Codes = NDArray[np.int32]
Kind = Literal["integer", "category", "binned", "derived"]
Raw = str | int | float | bool
LACKING = "(missing)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column and its codes."""

    name: str  # as the model knows it
    # ``integer``: raw value ``low + code * step``. ``category`` and ``derived``: ``values[code]``.
    # ``binned``: ``values[code]`` is the representative of the bin, ``edges`` are the cuts between bins
    kind: Kind
    codes: int  # how many codes there are
    # raw value of each code; empty for ``integer``. NaN, as the last one: a value may be missing, and
    # the model is asked with NaN there
    values: tuple[Raw, ...] = ()
    low: int = 0  # for ``integer``
    step: int = 1
    # for ``binned``: ``codes - 1`` rising cuts; a value equal to a cut is in the upper bin
    edges: tuple[float, ...] = ()
    protected: bool = False  # whether it is varied to judge a case
    immutable: bool = False  # whether a search may not change it
    ordered: bool = False  # whether neighbouring codes are neighbouring values; a search may then step by one
    source: str | None = None  # for ``derived``: the data column it is computed from
    mapping: tuple[tuple[Raw, Raw], ...] = ()  # for ``derived``

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
        if self.kind != "binned" and len(set(map(name, self.values))) != self.codes:
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
        return bool(self.values) and name(self.values[-1]) == "" and not isinstance(self.values[-1], str)

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
        return {v.casefold() == "true": v for v in told if isinstance(v, str) and v.casefold() in ("true", "false")}

    def encode(self, data: Sequence[object] | NDArray[np.generic]) -> NDArray[np.int32]:
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
        table = {name(value): code for code, value in enumerate(self.values)}
        if self.kind == "derived":
            table = {name(a): table.get(name(b), -1) for a, b in self.mapping}
        distinct, inverse = np.unique(named(array), return_inverse=True)
        codes: Codes = np.array([table.get(str(name), -1) for name in distinct], dtype=np.int32)
        found: Codes = codes[inverse.reshape(-1)]
        return found


def plain_values(column: Column) -> NDArray[np.generic]:
    """Raw values in the narrowest plain type: int64, bool, float64 or object (text)."""
    values = column.raw_values()
    if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return np.array(values, dtype=np.int64)
    if all(isinstance(v, bool) for v in values):
        return np.array(values, dtype=bool)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return np.array(values, dtype=np.float64)
    return np.array(values, dtype=object)


def what_is_wrong(column: Column, value: object, row: int, count: int, where: str) -> str:
    """Which value of a row a column cannot hold, and what it can."""
    missing = value is None or (isinstance(value, float | np.floating) and math.isnan(value)) or str(value) == ""
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


def encode_integer(number: NDArray[np.float64], low: int, step: int, codes: int) -> NDArray[np.int32]:
    """``(value - low) / step`` where it is a code; -1 elsewhere."""
    offset = (number - low) / step
    good = np.isfinite(offset) & (offset == np.floor(offset)) & (offset >= 0) & (offset < codes)
    return np.where(good, offset, -1).astype(np.int32)


def numbers(array: NDArray[np.generic]) -> NDArray[np.float64]:
    """Floats; NaN where a value is no number."""
    if array.dtype.kind in "iufb":
        return array.astype(np.float64)

    def number(value: SupportsFloat | str) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return math.nan

    return np.array([number(v) for v in array.ravel()], dtype=np.float64)


def name(value: object) -> str:
    """One spelling per value, so that 1, 1.0, True and "1" are the same category; a missing one has none."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def named(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The spelling of each value; missing ones are empty."""
    if array.dtype.kind in "iu":
        return array.astype(str)
    return np.array([name(v) for v in array.ravel()], dtype=str)
