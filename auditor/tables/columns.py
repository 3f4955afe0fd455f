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

import ast
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
_TOKEN = re.compile(r"""\s*(?:(==|!=|<=|>=|<|>|\(|\)|\[|\]|,)|"([^"]*)"|'([^']*)'|([^\s()\[\],<>=!]+))""")


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
            return
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
    """Rules joined by ``and`` or ``or``, or one behind ``not``."""

    op: str
    parts: tuple[Node, ...]


Node = Among | Versus | Joined


def holds(node: Node, codes: Codes) -> Mask:
    """Whether each row satisfies a rule, shape (n,)."""
    if isinstance(node, Among):
        return np.asarray(node.table[codes[:, node.column]])
    if isinstance(node, Versus):
        left, right = node.values
        return np.asarray(COMPARE[node.op](left[codes[:, node.left]], right[codes[:, node.right]]), dtype=bool)
    parts = [holds(part, codes) for part in node.parts]
    return ~parts[0] if node.op == "not" else np.asarray((np.all if node.op == "and" else np.any)(parts, axis=0))


def columns_of(node: Node) -> set[int]:
    """The columns that a rule mentions, by position."""
    if isinstance(node, Among):
        return {node.column}
    if isinstance(node, Versus):
        return {node.left, node.right}
    return set().union(*map(columns_of, node.parts))


class RuleReader:
    """Reads one rule, as a Python expression whose names stand for its words."""

    def __init__(self, text: str, columns: Sequence[Column]) -> None:
        self._text, self._columns, self._names = text, columns, [c.name for c in columns]
        self._words: list[tuple[str, bool]] = []  # (word, quoted)

    def read(self) -> Node:
        """Return the rule as a tree over the columns."""
        try:
            tree = ast.parse(self._python(), mode="eval").body
        except SyntaxError:
            raise self._unreadable() from None
        return self._node(tree)

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"constraint {self._text!r}: {what}")

    def _unreadable(self) -> ConfigError:
        return self._error("it cannot be read. Example: role == Husband and age > 30 implies sex in [Male, Other]")

    def _python(self) -> str:
        """Write words as names, and ``A implies B`` as ``A if _ else B``, which binds as weakly."""
        parts, at = list[str](), 0
        while self._text[at:].strip():
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise self._error(f"cannot read {self._text[at:].strip()!r}")
            sign, *quoted, word = match.groups()
            at = match.end()
            if word == "implies":
                word = "if _ else"
            elif sign is None and word not in ("and", "or", "not", "in"):
                said = next((text for text in quoted if text is not None), None)
                self._words.append((word, False) if said is None else (said, True))
                word = f"_{len(self._words) - 1}"
            parts.append(sign or word)
        return " ".join(parts)

    def _node(self, tree: ast.expr) -> Node:
        if isinstance(tree, ast.IfExp):
            return Joined("or", (Joined("not", (self._node(tree.body),)), self._node(tree.orelse)))
        if isinstance(tree, ast.BoolOp):
            parts = tuple(map(self._node, tree.values))
            return Joined("and" if isinstance(tree.op, ast.And) else "or", parts)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
            return Joined("not", (self._node(tree.operand),))
        if not isinstance(tree, ast.Compare) or len(tree.ops) > 1:
            raise self._unreadable()
        name, _ = self._word(tree.left)
        if name not in self._names:
            raise self._error(f"there is no column {name!r}; columns: {', '.join(sorted(self._names))}")
        left, op, other = self._names.index(name), ast.unparse(tree).split()[1], tree.comparators[0]
        if isinstance(tree.ops[0], ast.In | ast.NotIn):
            if not isinstance(other, ast.List) or not other.elts:
                raise self._unreadable()
            tables = [self._codes(left, "==", self._word(one)[0]) for one in other.elts]
            among = Among(left, np.any(tables, axis=0))
            return among if isinstance(tree.ops[0], ast.In) else Joined("not", (among,))
        value, quoted = self._word(other)
        if quoted or value not in self._names:
            return Among(left, self._codes(left, op, value))
        right = self._names.index(value)
        if op not in ("==", "!=") and not (self._columns[left].numeric and self._columns[right].numeric):
            raise self._error(f"{name} {op} {value} needs two columns of numbers")
        kind = float if self._columns[left].numeric and self._columns[right].numeric else str
        one, two = (np.array([kind(v) for v in self._columns[j].all_values()], dtype=kind) for j in (left, right))
        return Versus(left, op, right, (one, two))

    def _word(self, tree: ast.expr) -> tuple[str, bool]:
        if not isinstance(tree, ast.Name):
            raise self._unreadable()
        return self._words[int(tree.id[1:])]

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
