"""What the oracle and the suite of a run say of the answers to a case: verdicts, which are hidden, measures."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from auditor.core.errors import PluginError
from auditor.core.protocols import Oracle, Suite
from auditor.core.types import Answer, Case, Check, Outcome, Verdict
from auditor.measure.intervals import mean_interval
from auditor.measure.observations import Shape

KEPT_PAIRS = 10_000  # pairs of answers whose comparison is remembered
Replicates = tuple[tuple[str, Any], ...]  # status and value of each


class Comparison(NamedTuple):
    """What an oracle said of a pair of answers."""

    outcome: Outcome
    original_output: str | None
    variant_output: str | None
    distance: float | None
    reason: str


class Judge:
    """Asks the oracle of a run.

    An oracle that compares labels says the same of the same answers whatever the texts are, and there are few
    different answers: what it said is remembered.
    """

    def __init__(self, oracle: Oracle, suite: Suite) -> None:
        self._oracle, self._suite = oracle, suite
        self._known: dict[tuple[Replicates, Replicates], Comparison] = {}

    def judge(
        self,
        case: Case,
        answers: Mapping[str, Sequence[Answer]],
        shapes: Mapping[str, Shape],
        *,
        model: str = "",
        format: str = "",
    ) -> list[Verdict]:
        """Verdicts for the variants that ``answers`` holds, in the order of the case."""
        if self._suite.listens:  # verdicts carry no scores
            self._suite.hear(case, answers)
        if not self._oracle.by_labels:
            said = self._oracle.judge(case, answers)
            return [dataclasses.replace(v, hidden=None, model=model, format=format) for v in said]
        before = _replicates(answers.get(case.original.id, ()))
        verdicts = []
        for variant in case.variants:
            own = answers.get(variant.id)
            if own is None:
                continue
            pair = before, _replicates(own)
            known = self._known.get(pair)
            if known is None:
                (v,) = self._oracle.judge(dataclasses.replace(case, variants=(variant,)), answers)
                known = Comparison(v.outcome, v.original_output, v.variant_output, v.distance, v.reason)
                if len(self._known) < KEPT_PAIRS:
                    self._known[pair] = known
            attributes = shapes[variant.id].attributes
            verdicts.append(
                Verdict(
                    case_id=case.id,
                    variant_id=variant.id,
                    order=len(attributes),
                    attributes=attributes,
                    outcome=known.outcome,
                    original_output=known.original_output,
                    variant_output=known.variant_output,
                    distance=known.distance,
                    reason=known.reason,
                    model=model,
                    format=format,
                )
            )
        return verdicts


def _replicates(answers: Sequence[Answer]) -> Replicates:
    return tuple([(answer.status, answer.value) for answer in answers])


def hidden(case: Case, verdicts: Sequence[Verdict], checks: Mapping[str, Check]) -> list[bool | None]:
    """The ``hidden`` of each verdict, as `auditor.measure.hidden_lattice.mark_hidden` sets it.

    Most cases have no joint violation, and then nothing of them is hidden.
    """
    if any(v.order > 1 and v.outcome == "violation" for v in verdicts):
        from auditor.measure.interactions import mark_hidden

        return [v.hidden for v in mark_hidden(case, verdicts, checks)]
    return [
        False if v.order > 1 and v.outcome == "pass" and checks[v.variant_id].status != "invalid" else None
        for v in verdicts
    ]


class Figures:
    """The measures that a suite brings: a mean over cases for each model and format."""

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
        """Rows for ``run.json``; no limits where fewer than two cases or only equal ones came."""
        rows: list[dict[str, str | int | float | None]] = []
        for (model, format), asked in self._asked.items():
            for figure in self._suite.figures:
                values = self._values[model, format, figure.name]
                mean, low, high = mean_interval(values) if values else (None, -math.inf, math.inf)
                rows.append(
                    {"figure": figure.name, "what": figure.what, "model": model, "format": format, "value": mean}
                    | {"low": low if math.isfinite(low) else None, "high": high if math.isfinite(high) else None}
                    | {"cases": len(values), "left_out": asked - len(values), "method": "mean over cases, t interval"}
                )
        return rows
