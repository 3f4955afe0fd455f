"""Solving path constraints where columns are tied by rules; Z3 is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.tables.constraints import Compare, Member, Node, Not
from auditor.tables.schema import Codes, Schema
from auditor.tables.solver import clash, formulas, z3_module
from auditor.tables.symbolic_path import Box

TIMEOUT_MS = 2000


class TimedOutError(Exception):
    """Z3 gave up: the constraint is neither solved nor known to have no solution."""


class Z3Solver:
    """Finds the row of a box that satisfies a schema's rules and stays closest to another row.

    Parameters
    ----------
    schema : Schema
        Its constraints are the rules.
    timeout_ms : int
        How long one question may take.

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

        Returns
        -------
        array of int32, shape (d,), or None
            None: box and rules contradict each other.

        Raises
        ------
        TimedOutError
            Z3 did not answer in time.
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

    def clash(self) -> list[str]:
        """Constraints that no row satisfies together, a minimal set; empty if some row satisfies all."""
        return clash(self._schema) or []


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
