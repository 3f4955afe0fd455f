"""``--protocol themis``: Algorithms 1 and 2 with the paper's stopping rule, to lay figures side by side.

Rows are drawn one after another; after ``min_samples`` of them sampling stops as soon as
``z * sqrt(p (1 - p) / r) < epsilon``. With no change among the first rows the margin is 0 and the score is
reported as exactly 0: that is the rule, and the reason why it is not the default here.

The model is asked in batches all the same: the rule is applied to the running counts inside a batch, and
rows behind the stop count as evaluations but in no score.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded
from auditor.core.types import AFTER_STOPPING, Estimate
from auditor.tables.column import Codes
from auditor.tables.evaluate import Evaluator
from auditor.tables.given import Rows, binned, crossed
from auditor.tables.keys import row_keys
from auditor.tables.result import Score, TabularResult
from auditor.tables.schema import Schema, uniform
from auditor.tables.tally import counted_label, uncounted
from auditor.tables.themis_options import Sampler, ThemisOptions, sampler

NOTE = "not valid after stopping: with no change among the first rows the margin is 0"
BATCH = 256


def z_value(confidence: float) -> float:
    """The two-sided normal quantile."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(0.5 + confidence / 2)


def stop_at(hits: NDArray[np.bool_], before: tuple[int, int], settings: ThemisOptions) -> int | None:
    """Where the paper's rule stops inside a batch."""
    r = before[0] + np.arange(1, len(hits) + 1)
    p = (before[1] + np.cumsum(hits)) / r
    margin = z_value(settings.confidence) * np.sqrt(p * (1 - p) / r)
    done = ((r > settings.least) & (margin < settings.epsilon)) | (r >= settings.max_samples)
    return int(np.argmax(done)) + 1 if done.any() else None


def proportion(draw: Sampler, judge: Callable[[Rows], NDArray[np.bool_]], settings: ThemisOptions) -> tuple[int, int]:
    """Rows used and hits among them, sampled until the rule stops."""
    r = count = 0
    while True:
        hits = judge(draw(min(BATCH, settings.max_samples - r)))
        used = stop_at(hits, (r, count), settings)
        part = hits if used is None else hits[:used]
        r, count = r + len(part), count + int(part.sum())
        if used is not None:
            return r, count


def wald(count: int, r: int, settings: ThemisOptions, note: str = NOTE) -> Estimate:
    """The score with the paper's margin."""
    p = count / r
    margin = z_value(settings.confidence) * (p * (1 - p) / r) ** 0.5
    return Estimate(
        value=p,
        low=max(0.0, p - margin),
        high=min(1.0, p + margin),
        level=settings.confidence,
        n=r,
        n_skipped=0,
        method=AFTER_STOPPING,
        note=note,
    )


def literal_scores(
    evaluator: Evaluator, schema: Schema, settings: ThemisOptions, rng: np.random.Generator
) -> TabularResult:
    """Group and causal score of the protected columns by Algorithms 1 and 2, constraints ignored."""
    scores: list[Score] = []
    notes = ["Raw figures by the paper's protocol: no control, no valid interval; constraints are ignored."]
    draws = hits = 0
    reason = ""
    draw = sampler(schema, settings, rng)
    population = "domain (uniform)" if settings.profile is None else "profile"
    try:
        draws, hits = proportion(draw, lambda rows: _changes(evaluator, rows), settings)
        scores.append(
            Score(name="causal", columns=schema.protected, estimate=wald(hits, draws, settings), population=population)
        )
        label, why = _label(evaluator, schema)
        if label is None:
            notes.append(f"No group score: {why}.")
        else:
            scores.append(_group(evaluator, schema, settings, draw, population, label))
    except BudgetExceeded as error:
        reason = str(error)
    return TabularResult(
        method="themis",
        mode=settings.mode,
        sampling="iid",
        options=settings.plain(),
        counts={
            "generated": draws,
            "discriminatory": hits,
            "off_manifold": 0,
            "evaluations": evaluator.evaluations,
            "cache_hits": evaluator.cache_hits,
            "seconds": round(evaluator.seconds, 3),
        },
        scores=tuple(scores),
        status="partial" if reason else "complete",
        status_reason=reason,
        notes=tuple(notes),
    )


def _changes(evaluator: Evaluator, rows: Rows) -> NDArray[np.bool_]:
    """Which rows get another label with other protected values."""
    index = evaluator.schema.protected_index
    own = row_keys(binned(rows)[:, index], evaluator.schema.cards[index])
    changes: NDArray[np.bool_] = evaluator.each(evaluator.grid(rows))[np.arange(len(rows)), own]
    return changes


def _group(
    evaluator: Evaluator, schema: Schema, settings: ThemisOptions, draw: Sampler, population: str, label: int
) -> Score:
    """Algorithm 1: each combination of protected values with rows of its own."""
    rates, sizes = [], []
    for combo in schema.combos:

        def judge(rows: Rows, combo: Codes = combo) -> NDArray[np.bool_]:
            rows = crossed(rows, schema.protected_index, combo[None])
            return np.asarray(evaluator.labels(rows) == label)

        r, count = proportion(draw, judge, settings)
        rates.append(count / r)
        sizes.append(r)
    value = max(rates) - min(rates)
    return Score(
        name="group",
        columns=schema.protected,
        population=population,
        estimate=Estimate(
            value=value,
            low=max(0.0, value - 2 * settings.epsilon),
            high=min(1.0, value + 2 * settings.epsilon),
            level=settings.confidence,
            n=min(sizes),
            n_skipped=0,
            method=AFTER_STOPPING,
            note="each group's rate to ± epsilon by the paper's rule; " + NOTE,
        ),
    )


def _label(evaluator: Evaluator, schema: Schema) -> tuple[int | None, str]:
    """The label that is counted: the schema's, else the last one of a hundred rows; or why there is none."""
    if schema.favourable is not None:
        return evaluator.label_code(schema.favourable), ""
    seen = np.unique(evaluator.labels(uniform(schema, 100, np.random.default_rng(7)))).tolist()
    label = counted_label(evaluator, seen)
    return label, "" if label is not None else uncounted(evaluator, seen)
