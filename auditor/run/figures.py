"""The measures that a suite brings: a mean over cases for each model and format."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auditor.core.errors import PluginError
from auditor.core.protocols import Suite
from auditor.core.types import Answer, Case
from auditor.measure.intervals import mean_interval

METHOD = "mean over cases, t interval"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One measure of one model in one format; no limits where fewer than two cases or only equal ones came."""

    figure: str
    what: str
    model: str
    format: str
    value: float | None
    low: float | None
    high: float | None
    cases: int
    left_out: int
    method: str = METHOD


class Figures:
    """Takes what a suite measured of each case."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self._asked: dict[tuple[str, str], int] = defaultdict(int)

    def take(self, case: Case, answers: Mapping[str, Sequence[Answer]], *, model: str, format: str) -> None:
        """Measure one case.

        Raises
        ------
        PluginError
            The suite measures what it did not announce, or something that is no finite number.
        """
        if not self._suite.figures:
            return
        self._asked[model, format] += 1
        known = {figure.name for figure in self._suite.figures}
        for name, value in self._suite.measure(case, answers).items():
            if name not in known or (value is not None and not math.isfinite(value)):
                raise PluginError(f"suite {self._suite.name!r} measured {name!r} of {case.id} as {value!r}")
            if value is not None:
                self._values[model, format, name].append(float(value))

    def rows(self) -> list[dict[str, str | int | float | None]]:
        """One row for each measure, model and format, as plain data."""
        return [
            dataclasses.asdict(self._row(model, format, n, figure.name, figure.what))
            for (model, format), n in self._asked.items()
            for figure in self._suite.figures
        ]

    def _row(self, model: str, format: str, asked: int, name: str, what: str) -> Row:
        values = self._values[model, format, name]
        mean, low, high = mean_interval(values) if values else (None, -math.inf, math.inf)
        return Row(
            figure=name,
            what=what,
            model=model,
            format=format,
            value=mean,
            low=low if math.isfinite(low) else None,
            high=high if math.isfinite(high) else None,
            cases=len(values),
            left_out=asked - len(values),
        )
