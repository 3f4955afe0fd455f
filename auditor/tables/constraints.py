"""Rules between columns: which rows a person could have.

One rule is one line::

    relationship == Husband implies sex == Male
    relationship in [Husband, Wife] implies marital == Married
    not (age < 18 and job == Manager) or trainee == 1
    loss <= gain

Comparisons are ``== != < <= > >=``, ``in`` and ``not in``; a name that is a column stands for its value,
anything else is a value (quotes are needed only around spaces and brackets). ``and`` binds stronger than
``or``, ``or`` stronger than ``implies``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import ConfigError
from auditor.tables.column import Column, Raw

COMPARE: dict[str, Callable[[Any, Any], object]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TOKEN = re.compile(r"""\s*(?:(==|!=|<=|>=|<|>|\(|\)|\[|\]|,)|"([^"]*)"|'([^']*)'|([^\s()\[\],<>=!]+))""")
_WORDS = ("and", "or", "not", "in", "implies")


@dataclass(frozen=True, slots=True)
class Compare:
    """``column op value`` or ``column op column``; ``right`` is a column name if ``other`` is set."""

    left: str
    op: str
    right: str
    other: bool


@dataclass(frozen=True, slots=True)
class Member:
    """``column in values``."""

    left: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a rule."""

    inner: Node


@dataclass(frozen=True, slots=True)
class Both:
    """Two rules joined by ``and``, ``or`` or ``implies``."""

    op: str
    left: Node
    right: Node


Node = Compare | Member | Not | Both


@dataclass(frozen=True, slots=True)
class Constraint:
    """One rule, kept as its text.

    Examples
    --------
    >>> Constraint("sex == Male").text
    'sex == Male'
    """

    text: str

    def bind(self, columns: Sequence[Column]) -> Node:
        """The rule as a tree over these columns."""
        return _bind(self.text, tuple(columns))

    def holds(self, codes: NDArray[np.int32], columns: Sequence[Column]) -> NDArray[np.bool_]:
        """Whether each row satisfies the rule, shape (n,)."""
        result: NDArray[np.bool_] = _eval(self.bind(columns), codes, {c.name: (i, c) for i, c in enumerate(columns)})
        return result


@lru_cache(maxsize=512)
def _bind(text: str, columns: tuple[Column, ...]) -> Node:
    node = _Reader(text, {c.name for c in columns}).read()
    _check(node, {c.name: c for c in columns}, text)
    return node


def compare_table(column: Column, op: str, value: str) -> NDArray[np.bool_]:
    """Which codes of a column satisfy ``column op value``, shape (codes,)."""
    if op in ("==", "!="):
        code = column.code_of(value)
        if code is None:
            raise ConfigError(
                f"column {column.name!r} has no value {value!r}; values: "
                + ", ".join(map(str, column.raw_values()[:12]))
            )
        same: NDArray[np.bool_] = np.arange(column.codes) == code
        return same if op == "==" else ~same
    if not column.numeric:
        raise ConfigError(f"column {column.name!r} holds names; {op} needs numbers")
    try:
        bound = float(value)
    except ValueError as error:
        raise ConfigError(f"column {column.name!r} {op} {value!r}: the value is not a number") from error
    return np.asarray(COMPARE[op](np.array(column.raw_values(), dtype=float), bound), dtype=bool)


def _check(node: Node, columns: dict[str, Column], text: str) -> None:
    try:
        if isinstance(node, Compare):
            if node.other:
                left, right = columns[node.left], columns[node.right]
                if node.op not in ("==", "!=") and not (left.numeric and right.numeric):
                    raise ConfigError(f"{node.left} {node.op} {node.right} needs two columns of numbers")
            else:
                compare_table(columns[node.left], node.op, node.right)
        elif isinstance(node, Member):
            for value in node.values:
                compare_table(columns[node.left], "==", value)
        elif isinstance(node, Not):
            _check(node.inner, columns, text)
        else:
            _check(node.left, columns, text)
            _check(node.right, columns, text)
    except ConfigError as error:
        if str(error).startswith("constraint "):
            raise
        raise ConfigError(f"constraint {text!r}: {error}") from error


def _eval(node: Node, codes: NDArray[np.int32], columns: dict[str, tuple[int, Column]]) -> NDArray[np.bool_]:
    if isinstance(node, Compare):
        i, left = columns[node.left]
        if not node.other:
            return np.asarray(compare_table(left, node.op, node.right)[codes[:, i]])
        j, right = columns[node.right]
        a, b = _values(left, right)[codes[:, i]], _values(right, left)[codes[:, j]]
        return np.asarray(COMPARE[node.op](a, b), dtype=bool)
    if isinstance(node, Member):
        i, left = columns[node.left]
        table = np.zeros(left.codes, dtype=bool)
        for value in node.values:
            table |= compare_table(left, "==", value)
        return np.asarray(table[codes[:, i]])
    if isinstance(node, Not):
        return ~_eval(node.inner, codes, columns)
    a, b = _eval(node.left, codes, columns), _eval(node.right, codes, columns)
    return a & b if node.op == "and" else a | b if node.op == "or" else ~a | b


def _values(column: Column, other: Column) -> NDArray[np.generic]:
    values: list[Raw] = column.raw_values()
    if column.numeric and other.numeric:
        return np.array(values, dtype=float)
    return np.array([str(v) for v in values], dtype=str)


class _Reader:
    """A recursive-descent reader of one rule."""

    def __init__(self, text: str, columns: set[str]) -> None:
        self._text, self._columns = text, columns
        self._tokens: list[tuple[str, bool]] = []  # (token, quoted)
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise ConfigError(f"constraint {text!r}: cannot read {text[at:].strip()!r}")
            quoted = match.group(2) if match.group(2) is not None else match.group(3)
            self._tokens.append((match.group(1) or match.group(4), False) if quoted is None else (quoted, True))
            at = match.end()
        self._at = 0

    def read(self) -> Node:
        node = self._implies()
        if self._at < len(self._tokens):
            raise self._wrong("the end")
        return node

    def _wrong(self, wanted: str) -> ConfigError:
        found = repr(self._tokens[self._at][0]) if self._at < len(self._tokens) else "the end"
        return ConfigError(f"constraint {self._text!r}: expected {wanted}, found {found}")

    def _next_is(self, *tokens: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] in [(t, False) for t in tokens]

    def _take(self, *tokens: str) -> str | None:
        if self._next_is(*tokens):
            self._at += 1
            return self._tokens[self._at - 1][0]
        return None

    def _need(self, token: str) -> None:
        if self._take(token) is None:
            raise self._wrong(repr(token))

    def _implies(self) -> Node:
        left = self._or()
        return Both("implies", left, self._implies()) if self._take("implies") else left

    def _or(self) -> Node:
        node = self._and()
        while self._take("or"):
            node = Both("or", node, self._and())
        return node

    def _and(self) -> Node:
        node = self._not()
        while self._take("and"):
            node = Both("and", node, self._not())
        return node

    def _not(self) -> Node:
        if self._take("not"):
            return Not(self._not())
        if self._take("("):
            node = self._implies()
            self._need(")")
            return node
        return self._compare()

    def _compare(self) -> Node:
        left, _ = self._word("a column")
        if left not in self._columns:
            raise ConfigError(
                f"constraint {self._text!r}: there is no column {left!r}; columns: {', '.join(sorted(self._columns))}"
            )
        if self._take("in"):
            return Member(left, self._list())
        if self._next_is("not"):
            self._at += 1
            self._need("in")
            return Not(Member(left, self._list()))
        op = self._take(*COMPARE)
        if op is None:
            raise self._wrong("== != < <= > >= or in")
        right, quoted = self._word("a value or a column")
        return Compare(left, op, right, right in self._columns and not quoted)

    def _list(self) -> tuple[str, ...]:
        self._need("[")
        values = [self._word("a value")[0]]
        while self._take(","):
            values.append(self._word("a value")[0])
        self._need("]")
        return tuple(values)

    def _word(self, wanted: str) -> tuple[str, bool]:
        if self._at < len(self._tokens):
            token, quoted = self._tokens[self._at]
            if quoted or (token not in COMPARE and token not in tuple("()[],") and token not in _WORDS):
                self._at += 1
                return token, quoted
        raise self._wrong(wanted)
