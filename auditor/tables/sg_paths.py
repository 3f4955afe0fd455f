"""Paths of SG: the decisions of one input in a tree, and inputs that satisfy them under a schema's rules.

The path is grown without growing the tree (`get_path`): the nodes that an input passes depend on nothing off its path.
A node is a histogram of codes per class. Constraints are solved in closed form, or by Z3 (extra ``tabular``) where a
rule of the schema is broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from auditor.core.errors import ConfigError, MissingDependency
from auditor.tables.columns import COMPARE, Among, Codes, Column, Joined, Node, columns_of
from auditor.tables.row_schema import Schema, uniform

if TYPE_CHECKING:
    import z3

PACKAGES = {"lime": "lime", "sklearn": "scikit-learn", "z3": "z3-solver"}
SOLVING = "solving constraints between columns"
MAX_CLASSES = 32
SCORE_CLASSES = 8
TIMEOUT_MS = 2000  # for one question to Z3


@dataclass(frozen=True, slots=True)
class Predicate:
    """One decision on a path: ``code[column] <= cut`` if ``below``, else ``code[column] > cut``.

    ``confidence`` is the share of the node's rows that take the same side, in (0, 1).
    """

    column: int
    below: bool
    cut: int
    confidence: float = 1.0

    def toggled(self) -> Predicate:
        """Its negation."""
        return Predicate(self.column, not self.below, self.cut, self.confidence)


Path = tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """What each column may hold: ``low[j] <= code[j] <= high[j]``."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @classmethod
    def of(cls, predicates: Iterable[Predicate], cards: Sequence[int]) -> Box:
        """The box that a conjunction of predicates leaves of the domain."""
        low, high = [0] * len(cards), [card - 1 for card in cards]
        for p in predicates:
            if p.below:
                high[p.column] = min(high[p.column], p.cut)
            else:
                low[p.column] = max(low[p.column], p.cut + 1)
        return cls(tuple(low), tuple(high))

    @property
    def empty(self) -> bool:
        """Whether no row lies in it: the predicates contradict each other."""
        return any(low > high for low, high in zip(self.low, self.high, strict=True))

    def clip(self, row: Codes) -> Codes | None:
        """The row of the box nearest to ``row``, shape (d,): a column keeps its value or moves to a bound."""
        if self.empty:
            return None
        return np.minimum(np.maximum(row, np.array(self.low, np.int32)), np.array(self.high, np.int32))


def average_confidence(path: Sequence[Predicate]) -> float:
    """Mean confidence of a conjunction's predicates (1 for none)."""
    return sum(p.confidence for p in path) / len(path) if path else 1.0


class PathGrower:
    """Grows paths over one domain."""

    def __init__(self, cards: Sequence[int] | NDArray[np.int64], rng: Generator) -> None:
        self._cards = np.asarray(cards, dtype=np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self._cards)[:-1]])
        self._total = int(self._cards.sum())
        self._column = np.repeat(np.arange(len(self._cards)), self._cards)
        self._rng = rng

    def grow(self, row: Codes, rows: Codes, labels: NDArray[np.int64]) -> Path:
        """The decisions that ``row`` meets in a CART tree (Gini, grown until pure)."""
        classes, y = np.unique(labels, return_inverse=True)
        if len(classes) > MAX_CLASSES:
            cuts = np.quantile(labels, np.linspace(0, 1, SCORE_CLASSES + 1)[1:-1])
            classes, y = np.unique(np.searchsorted(cuts, labels, side="right"), return_inverse=True)
        k = len(classes)
        flat = rows + self._offsets
        path: list[Predicate] = []
        while (split := self._best_split(flat, y, k)) is not None:
            column, cut = split
            below = bool(row[column] <= cut)
            kept = (flat[:, column] <= cut + self._offsets[column]) == below
            count = int(np.count_nonzero(kept))
            path.append(Predicate(column, below, cut, count / len(y)))
            if count == 0:
                break
            flat, y = flat[kept], y[kept]
        return tuple(path)

    def _best_split(self, flat: NDArray[np.int64], y: NDArray[np.intp], k: int) -> tuple[int, int] | None:
        n, totals = len(y), np.bincount(y, minlength=k)
        if np.count_nonzero(totals) < 2:
            return None
        shifted = (flat + (y * self._total)[:, None]).ravel()
        hist = np.bincount(shifted, minlength=k * self._total).reshape(k, self._total)
        left = np.cumsum(hist, axis=1) - totals[:, None] * self._column
        present = hist.sum(axis=0) > 0
        n_left = left.sum(axis=0)
        at = np.flatnonzero(present & (n_left < n) & (n_left > 0))
        if not len(at):
            return None
        below = left[:, at].astype(np.float64)
        above = totals[:, None] - below
        gain = (below**2).sum(axis=0) / n_left[at] + (above**2).sum(axis=0) / (n - n_left[at])
        best = np.flatnonzero(gain >= gain.max() - 1e-9)
        position = int(at[best[self._rng.integers(len(best))] if len(best) > 1 else best[0]])
        column = int(self._column[position])
        after = position + 1 + int(np.argmax(present[position + 1 :]))
        first = int(self._offsets[column])
        return column, (position - first + after - first) // 2


def optional(module: str, feature: str = "--method sg") -> ModuleType:
    """A module of the extra ``tabular`` that ``feature`` needs; raises `MissingDependency`."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(feature, PACKAGES[module.split(".")[0]], "tabular") from error


def formulas(schema: Schema) -> tuple[list[z3.ArithRef], list[object], list[object]]:
    """The schema for the solver: a variable for each column, their bounds, and the rules."""
    z3 = optional("z3", SOLVING)
    variables = [z3.Int(f"c{i}") for i in range(schema.d)]
    bounds = [z3.And(v >= 0, v < c.codes) for v, c in zip(variables, schema.columns, strict=True)]
    return variables, bounds, [_formula(rule, variables, schema.columns) for rule in schema.rules]


def _formula(node: Node, variables: Sequence[z3.ArithRef], columns: Sequence[Column]) -> object:
    z3 = optional("z3", SOLVING)
    if isinstance(node, Among):
        return _among(variables[node.column], node.table)
    if isinstance(node, Joined):
        join = {"and": z3.And, "or": z3.Or, "not": z3.Not}[node.op]
        return join(*(_formula(part, variables, columns) for part in node.parts))
    one, other = variables[node.left], variables[node.right]
    left, right = columns[node.left], columns[node.right]
    if left.kind == right.kind == "integer":
        return COMPARE[node.op](left.low + left.step * one, right.low + right.step * other)
    a, b = (values[: column.codes] for values, column in zip(node.values, (left, right), strict=True))
    holds = (_among(other, np.asarray(COMPARE[node.op](value, b))) for value in a)
    return z3.And(*(z3.Implies(one == code, rule) for code, rule in enumerate(holds)))


def _among(variable: z3.ArithRef, table: NDArray[np.generic]) -> object:
    """``table[variable]`` as a union of ranges."""
    z3 = optional("z3", SOLVING)
    edge = np.flatnonzero(np.diff(np.concatenate([[False], table, [False]]).astype(np.int8)))
    ranges = [z3.And(variable >= int(a), variable < int(b)) for a, b in zip(edge[::2], edge[1::2], strict=True)]
    return z3.Or(*ranges) if ranges else z3.BoolVal(False)


def check_realisable(schema: Schema) -> None:
    """Refuse a schema that no row satisfies: a thousand random rows settle it for most, otherwise the solver."""
    if schema.on_manifold(uniform(schema, 1000, np.random.default_rng(7))).any():
        return
    z3 = optional("z3", SOLVING)
    _, bounds, rules = formulas(schema)
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MS)
    solver.set("core.minimize", True)
    solver.add(*bounds)
    for i, rule in enumerate(rules):
        solver.assert_and_track(rule, str(i))
    if solver.check() == z3.unsat:
        clash = sorted(int(str(name)) for name in solver.unsat_core())
        listed = "; ".join(f"({i}) {schema.constraints[at]}" for i, at in enumerate(clash, 1))
        raise ConfigError(
            f"no row satisfies the constraints of schema {schema.name!r}. These clash: {listed}. "
            f"Change or remove one of them"
        )


class PathSolver:
    """Turns boxes into rows.

    The solution of a box nearest to a row is found column by column; Z3 is asked if it breaks a rule. Protected columns
    keep their value unless a rule forces them to change, immutable ones always. `counts` says how boxes were solved.
    """

    def __init__(self, schema: Schema, rng: Generator) -> None:
        self._schema, self._rng = schema, rng
        self._fixed = [j for j, c in enumerate(schema.columns) if c.protected or c.immutable]
        self._immutable = [j for j, c in enumerate(schema.columns) if c.immutable]
        self.counts: Counter[str] = Counter(closed_form=0, z3=0, contradictory=0, timed_out=0)
        if schema.constraints:
            self._variables, _, self._rules = formulas(schema)

    def sticky(self, row: Codes, box: Box) -> Codes | None:
        """The solution nearest to ``row``, shape (d,); None if there is none (or Z3 ran out of time)."""
        return self._finish(box.clip(row), row, box)

    def free(self, row: Codes, box: Box) -> Codes | None:
        """A solution drawn at random from the box; protected and immutable columns as in ``row``."""
        start: Codes | None = None
        if not box.empty:
            start = self._rng.integers(np.array(box.low), np.array(box.high) + 1).astype(np.int32)
            start[self._fixed] = row[self._fixed]
            start = box.clip(start)
        return self._finish(start, row, box)

    def _finish(self, start: Codes | None, row: Codes, box: Box) -> Codes | None:
        if start is None:
            self.counts["contradictory"] += 1
            return None
        how = "closed_form"
        if self._schema.constraints and not self._schema.on_manifold(start[None])[0]:
            start[self._immutable] = row[self._immutable]
            how = self._solve(start, box)
        self.counts[how] += 1
        return start if how in ("closed_form", "z3") else None

    def _solve(self, row: Codes, box: Box) -> str:
        """Change the fewest columns of ``row``, by the smallest sum, to satisfy the rules; return how that ended."""
        z3 = optional("z3", SOLVING)
        solver = z3.Optimize()
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*self._rules)
        tied = sorted({j for rule in self._schema.rules for j in columns_of(rule)})
        here = [(self._variables[j], int(row[j])) for j in tied]
        for j, (v, at) in zip(tied, here, strict=True):
            low, high = (at, at) if j in self._immutable else (box.low[j], box.high[j])
            solver.add(v >= low, v <= high)
        solver.minimize(z3.Sum([z3.If(v == at, 0, 1) for v, at in here]))
        solver.minimize(z3.Sum([z3.If(v >= at, v - at, at - v) for v, at in here]))
        answer = solver.check()
        if answer != z3.sat:
            return "contradictory" if answer == z3.unsat else "timed_out"
        model = solver.model()
        row[tied] = [model.eval(v, model_completion=True).as_long() for v, _ in here]
        return "z3"
