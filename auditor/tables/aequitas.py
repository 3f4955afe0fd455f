"""Aequitas: directed search for rows whose label depends on protected columns, and the share of such rows.

Udeshi, Arora, Chattopadhyay, *Automated Directed Fairness Testing* (ASE 2018): a uniform global search
(Algorithm 1), then a local search around what it found (Algorithms 2–4), and an estimate of the share of
discriminatory rows from uniform samples (section 4.3). Cases found by searching never enter that estimate.
Retraining (Algorithm 5) is in `auditor.tables.retraining`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import numpy as np

from auditor.core.errors import BudgetExceeded, ConfigError
from auditor.core.record.rows import Score
from auditor.core.types import Estimate
from auditor.measure.intervals import clopper_pearson, mean_interval
from auditor.tables.aequitas_walk import Finds, Stop, global_search, local_search
from auditor.tables.coded import enumerate_rows, uniform
from auditor.tables.columns import Codes
from auditor.tables.evaluate import Evaluator
from auditor.tables.finds import TabularResult
from auditor.tables.method_options import TRIAL_SIZE, TRIALS, AequitasOptions

LEVEL = 0.95  # of the interval of the share


def run(
    evaluator: Evaluator, read: AequitasOptions, rng: np.random.Generator, data: Codes | None = None
) -> TabularResult:
    """Search for discriminatory cases from uniform rows, whatever the ``data``, and estimate their share.

    Examples
    --------
    >>> from auditor.tables.row_schema import Column, Schema
    >>> columns = (Column(name="sex", kind="integer", codes=2, protected=True),
    ...            Column(name="pay", kind="integer", codes=50, ordered=True))
    >>> schema = Schema(columns=columns)
    >>> model = Evaluator(lambda X: (X[:, 1] + 5 * X[:, 0] > 20).astype(int), schema)
    >>> result = run(model, AequitasOptions(global_n=50, local_n=50), np.random.default_rng(7))
    >>> result.counts["discriminatory"], result.scores[0].estimate.value
    (5, 0.1)
    """
    schema = evaluator.schema
    if not len(schema.protected_index):
        raise ConfigError("aequitas needs at least one protected column")
    trials, size = read.estimate(schema, evaluator.remaining)
    asked_before, estimate, notes = evaluator.evaluations, None, []
    if trials:
        with suppress(BudgetExceeded):
            estimate = share_estimate(evaluator, rng, trials=trials, trial_size=size)
    finds = Finds(evaluator, read)
    spent_on_estimate = evaluator.evaluations - asked_before
    details, reason, partial = _search(finds, rng)
    drawn = finds.phases.get("global", Counter())  # its rows are uniform and independent
    if estimate is None and drawn["judged"] and not details.pop("stopped_by_finds", False):
        note = "rows of the global search"
        estimate = _share(drawn["hits"], drawn["judged"], drawn["not_judged"], LEVEL, note)
    if estimate is None:
        notes.append("no share was estimated: too few uniform rows were judged within the limits")
    elif estimate.n == trials * size < TRIALS * TRIAL_SIZE and read.trials is None:
        notes.append(
            f"for the share {estimate.n:,} uniform cases were judged; the paper's 400 samples of 1,000 are "
            "--set trials=400"
        )
    cases, share = finds.rows(), "discriminatory_share"
    counts = {
        "generated": finds.generated,
        "discriminatory": finds.discriminatory,
        "off_manifold": finds.off_manifold,
        "undecided": finds.undecided,
        "evaluations": evaluator.evaluations - asked_before,
        "estimate_evaluations": spent_on_estimate,
    }
    if not len(cases):
        notes.append("no discriminatory case was found; the share's upper limit says how many there may be")
    if len(schema.movable_index) == 0:
        notes.append("no column may be changed, so there was no local search")
    return TabularResult(
        method="aequitas",
        mode="fully",
        sampling="directed",
        options={**read.model_dump(), "gamma": evaluator.distance.threshold or 0.0},
        counts=counts,
        scores=()
        if estimate is None
        else (Score(name=share, columns=schema.protected, estimate=estimate, population="domain (uniform)"),),
        details={"phases": {n: dict(c) for n, c in finds.phases.items()}, **details, "ended": reason},
        finds=cases,
        status="partial" if partial else "complete",
        status_reason=reason if partial else "",
        notes=tuple(notes),
    )


def _search(finds: Finds, rng: np.random.Generator) -> tuple[dict[str, object], str, bool]:
    """Run both searches; details, why it ended, and whether a limit cut it short."""
    details: dict[str, object] = {}
    try:
        starts = global_search(finds, rng)
        details["start_rows"] = len(starts)
        learned = local_search(finds, starts, rng)
        if learned is not None:
            names = [finds.schema.names[int(j)] for j in finds.schema.movable_index]
            details["column_probability"] = dict(zip(names, learned.column.tolist(), strict=True))
            details["down_probability"] = dict(zip(names, learned.down.tolist(), strict=True))
    except Stop as stop:
        if "local" not in finds.phases and finds.options.max_found is not None:
            details["stopped_by_finds"] = True  # a sample that ends with a find is no random sample
        return details, str(stop), False
    except BudgetExceeded as error:
        return details, str(error), True
    return details, "all trials were made", False


def share_estimate(
    evaluator: Evaluator,
    rng: np.random.Generator,
    *,
    trials: int = TRIALS,
    trial_size: int = TRIAL_SIZE,
    level: float = LEVEL,
) -> Estimate:
    """Estimate the share of discriminatory cases (section 4.3) from ``trials`` samples of ``trial_size`` uniform rows.

    The interval is the exact binomial one of all rows; the note gives the paper's, from the mean of the trials. A
    domain that has no more cases than that is enumerated.
    """
    schema = evaluator.schema
    exact, hits, silent = schema.cases <= trials * trial_size, list[int](), 0
    drawn = (uniform(schema, trial_size, rng) for _ in range(trials))
    for rows in enumerate_rows(schema, schema.free_index) if exact else drawn:
        judged = evaluator.judge(rows)
        hits.append(int(judged.discriminatory.sum()))
        silent += int(judged.undecided.sum())
    if exact:
        n, value = schema.cases, sum(hits) / schema.cases
        if silent:  # what they would have been is not known, so the share is not exact
            return replace(_share(sum(hits), n - silent, silent, level), n_variants=n - silent)
        return Estimate(value=value, low=value, high=value, level=level, n=n, n_skipped=0, method="enumeration")
    note = ""
    if trials > 1:
        mean, low, high = mean_interval([h / trial_size for h in hits], level)
        note = f"mean of {trials} samples {mean:.4%}"
        note += f", interval from their spread {low:.4%} to {high:.4%}" if high < 2 else ""
    return _share(sum(hits), trials * trial_size - silent, silent, level, note)


def _share(hits: int, judged: int, silent: int, level: float, note: str = "") -> Estimate:
    """The share among the cases that were judged; the others are counted as skipped."""
    if judged <= 0:
        raise BudgetExceeded("the model gave no label for any case of the estimate")
    return replace(clopper_pearson(hits, judged, level, silent), n_variants=None, note=note)
