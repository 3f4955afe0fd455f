"""Constraints between columns as formulas of the solver Z3 (extra ``tabular``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditor.core.errors import MissingDependency
from auditor.tables.constraints import COMPARE, Compare, Member, Node, Not, compare_table
from auditor.tables.schema import Codes, Column, Schema

TIMEOUT_MS = 30_000


def z3_module() -> Any:
    """The package z3; raises `MissingDependency`."""
    try:
        import z3  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingDependency("solving constraints between columns", "z3-solver", "tabular") from error
    return z3


def formulas(schema: Schema) -> tuple[list[Any], list[Any], list[Any]]:
    """The schema for the solver.

    Returns
    -------
    variables : list
        One whole number per column: its code.
    bounds : list
        ``0 <= code < card`` of each column.
    rules : list
        One formula per constraint, in order.
    """
    z3 = z3_module()
    variables = [z3.Int(f"c{i}") for i in range(schema.d)]
    bounds = [z3.And(v >= 0, v < c.codes) for v, c in zip(variables, schema.columns, strict=True)]
    named = {c.name: (v, c) for v, c in zip(variables, schema.columns, strict=True)}
    return variables, bounds, [_formula(c.bind(schema.columns), named) for c in schema.constraints]


def _formula(node: Node, named: dict[str, tuple[Any, Column]]) -> Any:
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


def _among(variable: Any, table: Any) -> Any:
    """``table[variable]`` as a union of ranges."""
    z3 = z3_module()
    edge = np.flatnonzero(np.diff(np.concatenate([[False], table, [False]]).astype(np.int8)))
    ranges = [
        z3.And(variable >= int(a), variable < int(b)) for a, b in zip(edge[::2], edge[1::2], strict=True)
    ]
    return z3.Or(*ranges) if ranges else z3.BoolVal(False)


def _columns(variable: Any, column: Column, op: str, other: Any, right: Column) -> Any:
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


def nearest(schema: Schema, codes: Codes) -> Codes | None:
    """A row, shape (d,), that satisfies all constraints and is nearest to ``codes`` (sum of code distances).

    None if there is none, or the solver needs more than its time.
    """
    z3 = z3_module()
    variables, bounds, rules = formulas(schema)
    optimiser = z3.Optimize()
    optimiser.set("timeout", TIMEOUT_MS)
    optimiser.add(*bounds, *rules)
    optimiser.minimize(
        z3.Sum(*(z3.If(v >= int(c), v - int(c), int(c) - v) for v, c in zip(variables, codes, strict=True)))
    )
    if optimiser.check() != z3.sat:
        return None
    model = optimiser.model()
    return np.array([model.eval(v, model_completion=True).as_long() for v in variables], dtype=np.int32)
