"""Solutions of path constraints: closed form for boxes, Z3 where rules tie columns."""

from __future__ import annotations

from collections import Counter

import numpy as np

from auditor.core.errors import ConfigError
from auditor.tables.schema import Codes, Schema
from auditor.tables.symbolic_path import Box
from auditor.tables.symbolic_z3 import TimedOutError, Z3Solver


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
            if clash := self._z3.clash():
                raise ConfigError(
                    f"no row satisfies schema {schema.name!r}: these constraints contradict each other: "
                    + "; ".join(map(repr, clash))
                    + ". Edit or remove one of them"
                )

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
