"""Solving path constraints where columns are tied by rules; Z3 is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.suites.tabular.constraints import (
    COMPARE,
    Both,
    Compare,
    Constraint,
    Member,
    Node,
    Not,
    compare_table,
)
from auditor.suites.tabular.schema import Codes, Column, Schema
from auditor.suites.tabular.symbolic_lime import optional
from auditor.suites.tabular.symbolic_path import Box

TIMEOUT_MS = 2000


class TimedOutError(Exception):
    """Z3 gave up; the constraint is neither solved nor known to have no solution."""


class Z3Solver:
    """Finds the row of a box that satisfies a schema's rules and stays closest to another row.

    Parameters
    ----------
    schema : Schema
        Its constraints are the rules.
    timeout_ms : int
        How long one question may take.
    """

    def __init__(self, schema: Schema, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._z3 = optional("z3")
        self._schema, self._timeout = schema, timeout_ms
        self._trees = [c.bind(schema.columns) for c in schema.constraints]
        self._position = {name: j for j, name in enumerate(schema.names)}
        self.columns = tuple(sorted({self._position[n] for tree in self._trees for n in _names(tree)}))
        self._vars = {j: self._z3.Int(f"c{j}") for j in range(schema.d)}
        self._rules = [self._translate(tree) for tree in self._trees]

    def closest(self, row: Codes, box: Box, columns: Sequence[int] | None = None) -> Codes | None:
        """The sticky solution: fewest columns changed, then the smallest sum of code differences.

        Columns that no rule mentions are solved in closed form, unless ``columns`` names them.

        Returns
        -------
        array of int32, shape (d,), or None
            None: box and rules contradict each other.

        Raises
        ------
        TimedOutError
            Z3 did not answer in time.
        """
        start = box.clip(row)
        if start is None:
            return None
        z3, tied = self._z3, self.columns if columns is None else tuple(columns)
        solver = z3.Optimize()
        solver.set("timeout", self._timeout)
        solver.add(*self._rules)
        for j in tied:
            solver.add(self._vars[j] >= box.low[j], self._vars[j] <= box.high[j])
        if tied:
            here = [(self._vars[j], int(row[j])) for j in tied]
            solver.minimize(z3.Sum([z3.If(v == at, 0, 1) for v, at in here]))
            solver.minimize(z3.Sum([z3.If(v >= at, v - at, at - v) for v, at in here]))
        answer = solver.check()
        if answer == z3.unsat:
            return None
        if answer != z3.sat:
            raise TimedOutError
        model, result = solver.model(), start.copy()
        for j in tied:
            result[j] = model.eval(self._vars[j], model_completion=True).as_long()
        return result

    def clash(self) -> tuple[Constraint, ...]:
        """A set of rules that no row satisfies together, as small as Z3's core; empty if some row satisfies all."""
        z3 = self._z3
        solver = z3.Solver()
        solver.set("timeout", 10 * self._timeout)
        solver.set("core.minimize", True)
        for j in self.columns:
            solver.add(self._vars[j] >= 0, self._vars[j] < self._schema.columns[j].codes)
        for i, rule in enumerate(self._rules):
            solver.assert_and_track(rule, f"rule{i}")
        if solver.check() != z3.unsat:
            return ()
        found = sorted(int(str(name)[4:]) for name in solver.unsat_core())
        return tuple(self._schema.constraints[i] for i in found)

    def _translate(self, node: Node) -> Any:
        z3 = self._z3
        if isinstance(node, Compare):
            left = self._schema.columns[self._position[node.left]]
            variable = self._vars[self._position[node.left]]
            if node.other:
                return self._two_columns(node)
            return self._among(variable, compare_table(left, node.op, node.right))
        if isinstance(node, Member):
            j = self._position[node.left]
            column = self._schema.columns[j]
            table = np.zeros(column.codes, dtype=bool)
            for value in node.values:
                table |= compare_table(column, "==", value)
            return self._among(self._vars[j], table)
        if isinstance(node, Not):
            return z3.Not(self._translate(node.inner))
        assert isinstance(node, Both)
        a, b = self._translate(node.left), self._translate(node.right)
        return z3.And(a, b) if node.op == "and" else z3.Or(a, b) if node.op == "or" else z3.Implies(a, b)

    def _among(self, variable: Any, table: NDArray[np.bool_]) -> Any:
        """The variable is a code where ``table`` is true: one pair of bounds per run of codes."""
        z3 = self._z3
        edges = np.flatnonzero(np.diff(np.concatenate([[0], table.astype(np.int8), [0]])))
        runs = edges.reshape(-1, 2).tolist()
        return z3.Or([z3.And(variable >= a, variable <= b - 1) for a, b in runs])

    def _two_columns(self, node: Compare) -> Any:
        """Two columns compared, code by code of the left one."""
        z3 = self._z3
        i, j = self._position[node.left], self._position[node.right]
        a, b = _comparable(self._schema.columns[i], self._schema.columns[j])
        cases = [
            z3.And(self._vars[i] == code, self._among(self._vars[j], np.asarray(COMPARE[node.op](value, b))))
            for code, value in enumerate(a)
        ]
        return z3.Or(cases)


def _comparable(left: Column, right: Column) -> tuple[NDArray[Any], NDArray[Any]]:
    if left.numeric and right.numeric:
        return np.array(left.raw_values(), dtype=float), np.array(right.raw_values(), dtype=float)
    return np.array([str(v) for v in left.raw_values()]), np.array([str(v) for v in right.raw_values()])


def _names(node: Node) -> set[str]:
    if isinstance(node, Compare):
        return {node.left, node.right} if node.other else {node.left}
    if isinstance(node, Member):
        return {node.left}
    if isinstance(node, Not):
        return _names(node.inner)
    return _names(node.left) | _names(node.right)
