"""Rules between columns for the solver Z3 (extra ``tabular``), and solutions of path constraints under them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import ConfigError, MissingDependency
from auditor.tables.column import Codes, Column
from auditor.tables.constraints import COMPARE, Compare, Member, Node, Not, compare_table
from auditor.tables.schema import Schema, uniform
from auditor.tables.sg_path import Box

CLASH_MS = 30_000  # for the question whether rules can hold together
TIMEOUT_MS = 2000  # for one path


class Whole(Protocol):
    """A whole-number variable of Z3."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> object: ...
    def __lt__(self, other: object, /) -> object: ...
    def __le__(self, other: object, /) -> object: ...
    def __sub__(self, other: int, /) -> Whole: ...
    def __rsub__(self, other: int, /) -> Whole: ...
    def __radd__(self, other: int, /) -> Whole: ...
    def __rmul__(self, other: int, /) -> Whole: ...


def z3_module() -> ModuleType:
    """The package z3; raises `MissingDependency`."""
    try:
        import z3  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingDependency("solving constraints between columns", "z3-solver", "tabular") from error
    module: ModuleType = z3
    return module


def formulas(schema: Schema) -> tuple[list[Whole], list[object], list[object]]:
    """The schema for the solver."""
    z3 = z3_module()
    variables = [z3.Int(f"c{i}") for i in range(schema.d)]
    bounds = [z3.And(v >= 0, v < c.codes) for v, c in zip(variables, schema.columns, strict=True)]
    named = {c.name: (v, c) for v, c in zip(variables, schema.columns, strict=True)}
    return variables, bounds, [_formula(c.bind(schema.columns), named) for c in schema.constraints]


def _formula(node: Node, named: dict[str, tuple[Whole, Column]]) -> object:
    z3 = z3_module()
    if isinstance(node, Compare):
        variable, column = named[node.left]
        if not node.other:
            return _among(variable, compare_table(column, node.op, node.right))
        other, right = named[node.right]
        return _columns(variable, column, node.op, other, right)
    if isinstance(node, Member):
        variable, column = named[node.left]
        table = np.zeros(column.codes, dtype=bool)
        for value in node.values:
            table |= compare_table(column, "==", value)
        return _among(variable, table)
    if isinstance(node, Not):
        return z3.Not(_formula(node.inner, named))
    left, right_ = _formula(node.left, named), _formula(node.right, named)
    return {"and": z3.And, "or": z3.Or, "implies": z3.Implies}[node.op](left, right_)


def _among(variable: Whole, table: NDArray[np.generic]) -> object:
    """``table[variable]`` as a union of ranges."""
    z3 = z3_module()
    edge = np.flatnonzero(np.diff(np.concatenate([[False], table, [False]]).astype(np.int8)))
    ranges = [z3.And(variable >= int(a), variable < int(b)) for a, b in zip(edge[::2], edge[1::2], strict=True)]
    return z3.Or(*ranges) if ranges else z3.BoolVal(False)


def _columns(variable: Whole, column: Column, op: str, other: Whole, right: Column) -> object:
    z3 = z3_module()
    if column.kind == right.kind == "integer":
        return COMPARE[op](column.low + column.step * variable, right.low + right.step * other)
    numeric = column.numeric and right.numeric
    a = [float(v) if numeric else str(v) for v in column.raw_values()]
    b = np.array([float(v) if numeric else str(v) for v in right.raw_values()])
    return z3.And(
        *(
            z3.Implies(variable == code, _among(other, np.asarray(COMPARE[op](value, b))))
            for code, value in enumerate(a)
        )
    )


def clash(schema: Schema) -> list[str] | None:
    """The texts of constraints that cannot hold together; None if a row satisfies all of them.

    The set is made minimal: without any one of them the others can hold.
    """
    z3 = z3_module()
    _, bounds, rules = formulas(schema)

    def possible(chosen: list[int]) -> bool:
        solver = z3.Solver()
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*bounds, *(rules[i] for i in chosen))
        return bool(solver.check() != z3.unsat)

    kept = list(range(len(rules)))
    if possible(kept):
        return None
    for i in list(kept):
        fewer = [k for k in kept if k != i]
        if not possible(fewer):
            kept = fewer
    return [schema.constraints[i].text for i in kept]


def check_realisable(schema: Schema) -> None:
    """Refuse a schema that no row satisfies: a thousand random rows settle it for most, otherwise the solver."""
    if not schema.constraints or schema.on_manifold(uniform(schema, 1000, np.random.default_rng(7))).any():
        return
    if (rules := clash(schema)) is not None:
        listed = "; ".join(f"({i}) {rule}" for i, rule in enumerate(rules, 1))
        raise ConfigError(
            f"no row satisfies the constraints of schema {schema.name!r}. These clash: {listed}. "
            f"Change or remove one of them"
        )


class TimedOutError(Exception):
    """Z3 gave up: the constraint is neither solved nor known to have no solution."""


class Z3Solver:
    """Finds the row of a box that satisfies a schema's rules and stays closest to another row.

    Attributes
    ----------
    columns : tuple of int
        Columns that some rule mentions.
    """

    def __init__(self, schema: Schema, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._z3, self._schema, self._timeout = z3_module(), schema, timeout_ms
        self._variables, _, self._rules = formulas(schema)
        named = {name for c in schema.constraints for name in columns_of(c.bind(schema.columns))}
        self.columns = tuple(j for j, name in enumerate(schema.names) if name in named)

    def closest(self, row: Codes, box: Box, columns: Sequence[int] | None = None) -> Codes | None:
        """The sticky solution: fewest columns changed, then the smallest sum of code differences.

        Columns that no rule mentions are solved in closed form, unless ``columns`` names them.
        """
        result = box.clip(row)
        if result is None:
            return None
        z3, tied = self._z3, self.columns if columns is None else tuple(columns)
        solver = z3.Optimize()
        solver.set("timeout", self._timeout)
        solver.add(*self._rules)
        here = [(self._variables[j], int(row[j])) for j in tied]
        for j in tied:
            solver.add(self._variables[j] >= box.low[j], self._variables[j] <= box.high[j])
        if tied:
            solver.minimize(z3.Sum([z3.If(v == at, 0, 1) for v, at in here]))
            solver.minimize(z3.Sum([z3.If(v >= at, v - at, at - v) for v, at in here]))
        answer = solver.check()
        if answer == z3.unsat:
            return None
        if answer != z3.sat:
            raise TimedOutError
        model = solver.model()
        for j in tied:
            result[j] = model.eval(self._variables[j], model_completion=True).as_long()
        return result


def columns_of(node: Node) -> set[str]:
    """The columns that a rule mentions.

    Examples
    --------
    >>> sorted(columns_of(Not(Compare("a", "<", "b", True))))
    ['a', 'b']
    """
    if isinstance(node, Compare):
        return {node.left, node.right} if node.other else {node.left}
    if isinstance(node, Member):
        return {node.left}
    if isinstance(node, Not):
        return columns_of(node.inner)
    return columns_of(node.left) | columns_of(node.right)


class PathSolver:
    """Turns boxes into rows.

    A conjunction of path predicates is a box, whose solution nearest to a row is found column by column.
    Only if that row breaks one of the schema's rules is Z3 asked. Columns that are protected or immutable
    keep their value unless a rule forces a protected one to change.

    Attributes
    ----------
    counts : collections.Counter
        ``closed_form``, ``z3``, ``contradictory`` and ``timed_out``.

    Raises
    ------
    ConfigError
        On construction: no row satisfies all of the schema's rules; the clashing ones are named.
    """

    def __init__(self, schema: Schema, rng: np.random.Generator) -> None:
        self._schema, self._rng = schema, rng
        self._fixed = [j for j, c in enumerate(schema.columns) if c.protected or c.immutable]
        self._immutable = [j for j, c in enumerate(schema.columns) if c.immutable]
        self.counts: Counter[str] = Counter(closed_form=0, z3=0, contradictory=0, timed_out=0)
        self._z3: Z3Solver | None = None
        if schema.constraints:
            self._z3 = Z3Solver(schema)
            check_realisable(schema)

    def sticky(self, row: Codes, box: Box) -> Codes | None:
        """The solution nearest to ``row``, shape (d,); None if there is none (or Z3 ran out of time)."""
        return self._finish(box.clip(row), row, box)

    def free(self, row: Codes, box: Box) -> Codes | None:
        """A solution drawn at random from the box; protected and immutable columns as in ``row``."""
        start = box.draw(self._rng)
        if start is not None:
            start[self._fixed] = row[self._fixed]
            start = box.clip(start)
        return self._finish(start, row, box)

    def _finish(self, start: Codes | None, row: Codes, box: Box) -> Codes | None:
        if start is None:
            self.counts["contradictory"] += 1
            return None
        if self._z3 is None or self._schema.on_manifold(start[None])[0]:
            self.counts["closed_form"] += 1
            return start
        pinned = self._pin(row, box)
        try:
            solution = self._z3.closest(start, pinned)
        except TimedOutError:
            self.counts["timed_out"] += 1
            return None
        self.counts["z3" if solution is not None else "contradictory"] += 1
        return solution

    def _pin(self, row: Codes, box: Box) -> Box:
        low, high = list(box.low), list(box.high)
        for j in self._immutable:
            low[j] = high[j] = int(row[j])
        return Box(tuple(low), tuple(high))
