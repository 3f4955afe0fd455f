"""Columns of a table, and rules between them: which values a row may have, and which rows a person could have.

A column holds codes; raw values are numbers or names. One rule is one line::

    relationship == Husband implies sex == Male
    relationship in [Husband, Wife] implies marital == Married
    not (age < 18 and job == Manager) or trainee == 1
    loss <= gain

Comparisons are ``== != < <= > >=``, ``in`` and ``not in``; a name that is a column stands for its value,
anything else is a value (quotes are needed only around spaces and brackets). ``and`` binds stronger than
``or``, ``or`` stronger than ``implies``.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import ConfigError
from auditor.core.record.rows import Raw
from auditor.core.shown import plural

Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
Kind = Literal["integer", "category", "binned", "derived"]
LACKING = "(missing)"
COMPARE: dict[str, Callable[[Any, Any], object]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
BINARY = ("implies", "or", "and")  # weakest first
_TOKEN = re.compile(r"""\s*(?:(==|!=|<=|>=|<|>|\(|\)|\[|\]|,)|"([^"]*)"|'([^']*)'|([^\s()\[\],<>=!]+))""")
_RESERVED = (*COMPARE, *"()[],", *BINARY, "not", "in")


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column and its codes.

    ``integer`` has the raw value ``low + code * step``, ``category`` and ``derived`` have ``values[code]``; ``binned``
    has ``values[code]`` as the representative of a bin. NaN as the last value: a value may be missing.
    """

    name: str
    kind: Kind
    codes: int
    values: tuple[Raw, ...] = ()
    low: int = 0
    step: int = 1
    edges: tuple[float, ...] = ()  # of ``binned``: rising cuts; a value equal to a cut is in the upper bin
    protected: bool = False  # varied to judge a case
    immutable: bool = False  # a search may not change it
    ordered: bool = False  # neighbouring codes are neighbouring values
    source: str | None = None  # of ``derived``: the data column it is computed from
    mapping: tuple[tuple[Raw, Raw], ...] = ()  # and how
    own: tuple[int | float, ...] = ()  # of ``binned``: values of given rows, whose codes follow those of the bins

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
        bins = self.codes - self.may_lack
        if self.kind == "binned" and (len(self.edges) != bins - 1 or list(self.edges) != sorted(set(self.edges))):
            raise ConfigError(f"{where}: {bins} bins need {bins - 1} rising cuts, got {list(self.edges)}")

    @property
    def may_lack(self) -> bool:
        """Whether the last code stands for a missing value."""
        return bool(self.values) and name(self.values[-1]) == "" and not isinstance(self.values[-1], str)

    @property
    def numeric(self) -> bool:
        """Whether every raw value is a number."""
        return self.kind == "integer" or all(isinstance(v, int | float) for v in self.values)

    def raw(self, code: int) -> Raw:
        """The raw value that ``code`` stands for; ``(missing)`` for a missing one."""
        if self.kind == "integer":
            return self.low + code * self.step
        if code >= self.codes:
            return self.own[code - self.codes]
        return LACKING if self.may_lack and code == self.codes - 1 else self.values[code]

    def all_values(self) -> list[Raw]:
        """The raw values of all codes, in their order, those of given rows last; NaN for a missing one."""
        return [*(map(self.raw, range(self.codes)) if self.kind == "integer" else self.values), *self.own]

    def bins(self) -> NDArray[np.int32]:
        """The code of the bin that each code belongs to."""
        return np.concatenate([np.arange(self.codes, dtype=np.int32), self.encode(self.own)])

    @property
    def in_data(self) -> tuple[Raw, ...]:
        """The values that a data file may have, of a column with names."""
        return tuple(a for a, _ in self.mapping) if self.kind == "derived" else self.values

    def encode(self, data: Sequence[object] | NDArray[np.generic]) -> NDArray[np.int32]:
        """Codes of raw values, shape (n,); -1 where a value is missing or unknown."""
        array = np.asarray(data)
        if self.kind == "integer":
            offset = (numbers(array) - self.low) / self.step
            good = np.isfinite(offset) & (offset == np.floor(offset)) & (offset >= 0) & (offset < self.codes)
            return np.where(good, offset, -1).astype(np.int32)
        if self.kind == "binned":
            number = numbers(array)
            code = np.searchsorted(np.asarray(self.edges, dtype=float), number, side="right").astype(np.int32)
            code[np.isnan(number)] = -1
            if self.may_lack:
                code[[v == "" for v in named(array)]] = self.codes - 1
            return code
        if array.dtype.kind == "b" and not any(isinstance(v, bool) for v in self.values):
            texts = [v for v in self.in_data if isinstance(v, str)]
            truth = {v.casefold() == "true": v for v in texts if v.casefold() in ("true", "false")}
            array = np.array([truth.get(bool(v), v) for v in array], dtype=object)
        table = {name(value): code for code, value in enumerate(self.values)}
        if self.kind == "derived":
            table = {name(a): table.get(name(b), -1) for a, b in self.mapping}
        distinct, inverse = np.unique(named(array), return_inverse=True)
        codes: Codes = np.array([table.get(str(name), -1) for name in distinct], dtype=np.int32)[inverse.reshape(-1)]
        return codes


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


class Among(NamedTuple):
    """A column, by position, holds one of some codes."""

    column: int
    table: Mask  # shape (codes of the column,)


class Versus(NamedTuple):
    """Two columns, by position, compared; and the values of their codes, as numbers where both hold numbers."""

    left: int
    op: str
    right: int
    values: tuple[NDArray[np.generic], NDArray[np.generic]]


class Joined(NamedTuple):
    """Rules joined by ``and``, ``or``, ``implies``, or one behind ``not``."""

    op: str
    parts: tuple[Node, ...]


Node = Among | Versus | Joined


def read_rule(text: str, columns: Sequence[Column]) -> Node:
    """Return a rule as a tree over these columns."""
    return _Reader(text, columns).read()


def holds(node: Node, codes: Codes) -> Mask:
    """Whether each row satisfies a rule, shape (n,)."""
    if isinstance(node, Among):
        return np.asarray(node.table[codes[:, node.column]])
    if isinstance(node, Versus):
        left, right = node.values
        return np.asarray(COMPARE[node.op](left[codes[:, node.left]], right[codes[:, node.right]]), dtype=bool)
    a, *rest = (holds(part, codes) for part in node.parts)
    if node.op in ("not", "implies"):
        a = ~a
    return a if not rest else a & rest[0] if node.op == "and" else a | rest[0]


def columns_of(node: Node) -> set[int]:
    """The columns that a rule mentions, by position."""
    if isinstance(node, Among):
        return {node.column}
    if isinstance(node, Versus):
        return {node.left, node.right}
    return set().union(*map(columns_of, node.parts))


class _Reader:
    """A recursive-descent reader of one rule."""

    def __init__(self, text: str, columns: Sequence[Column]) -> None:
        self._text, self._columns, self._names = text, columns, [c.name for c in columns]
        self._tokens: list[tuple[str, bool]] = []  # (token, quoted)
        self._at = at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._error(f"cannot read {text[at:].strip()!r}")
            quoted = match.group(2) if match.group(2) is not None else match.group(3)
            self._tokens.append((match.group(1) or match.group(4), False) if quoted is None else (quoted, True))
            at = match.end()

    def read(self) -> Node:
        node = self._binary()
        if self._at < len(self._tokens):
            raise self._wrong("the end")
        return node

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"constraint {self._text!r}: {what}")

    def _wrong(self, wanted: str) -> ConfigError:
        here = repr(self._tokens[self._at][0]) if self._at < len(self._tokens) else "the end"
        return self._error(f"expected {wanted}, found {here}")

    def _take(self, *tokens: str) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at] in [(t, False) for t in tokens]:
            self._at += 1
            return self._tokens[self._at - 1][0]
        return None

    def _need(self, token: str) -> None:
        if self._take(token) is None:
            raise self._wrong(repr(token))

    def _binary(self, level: int = 0) -> Node:
        if level == len(BINARY):
            return self._unary()
        node, op = self._binary(level + 1), BINARY[level]
        while self._take(op):
            node = Joined(op, (node, self._binary(level if op == "implies" else level + 1)))
        return node

    def _unary(self) -> Node:
        if self._take("not"):
            return Joined("not", (self._unary(),))
        if self._take("("):
            node = self._binary()
            self._need(")")
            return node
        return self._compare()

    def _compare(self) -> Node:
        name, _ = self._word("a column")
        if name not in self._names:
            raise self._error(f"there is no column {name!r}; columns: {', '.join(sorted(self._names))}")
        left = self._names.index(name)
        if self._take("not"):
            self._need("in")
            return Joined("not", (self._among(left),))
        if self._take("in"):
            return self._among(left)
        op = self._take(*COMPARE)
        if op is None:
            raise self._wrong("== != < <= > >= or in")
        value, quoted = self._word("a value or a column")
        if quoted or value not in self._names:
            return Among(left, self._codes(left, op, value))
        right = self._names.index(value)
        if op not in ("==", "!=") and not (self._columns[left].numeric and self._columns[right].numeric):
            raise self._error(f"{name} {op} {value} needs two columns of numbers")
        kind = float if self._columns[left].numeric and self._columns[right].numeric else str
        one, other = (np.array([kind(v) for v in self._columns[j].all_values()], dtype=kind) for j in (left, right))
        return Versus(left, op, right, (one, other))

    def _among(self, left: int) -> Node:
        self._need("[")
        table = self._codes(left, "==", self._word("a value")[0])
        while self._take(","):
            table |= self._codes(left, "==", self._word("a value")[0])
        self._need("]")
        return Among(left, table)

    def _codes(self, at: int, op: str, value: str) -> Mask:
        """Which codes of a column satisfy ``column op value``, shape (codes,)."""
        column = self._columns[at]
        if op in ("==", "!="):
            code = int(column.encode([value])[0])
            if code < 0:
                known = ", ".join(map(str, column.all_values()[:12]))
                raise self._error(f"column {column.name!r} has no value {value!r}; values: {known}")
            same = np.arange(column.codes) == code
            if column.own:
                same = np.concatenate([same, np.array(column.own) == float(value)])
            return np.asarray(same if op == "==" else ~same)
        if not column.numeric:
            raise self._error(f"column {column.name!r} holds names; {op} needs numbers")
        try:
            bound = float(value)
        except ValueError as error:
            raise self._error(f"column {column.name!r} {op} {value!r}: the value is not a number") from error
        return np.asarray(COMPARE[op](np.array(column.all_values(), dtype=float), bound), dtype=bool)

    def _word(self, wanted: str) -> tuple[str, bool]:
        if self._at < len(self._tokens):
            token, quoted = self._tokens[self._at]
            if quoted or token not in _RESERVED:
                self._at += 1
                return token, quoted
        raise self._wrong(wanted)
