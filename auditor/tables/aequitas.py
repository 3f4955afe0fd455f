"""Aequitas: directed search for rows whose label depends on protected columns, and the share of such rows.

Udeshi, Arora, Chattopadhyay, *Automated Directed Fairness Testing* (ASE 2018): a uniform global search
(Algorithm 1), then a local search around what it found (Algorithms 2–4), and an estimate of the share of
discriminatory rows from uniform samples (section 4.3). Cases found by searching never enter that estimate.
Retraining (Algorithm 5) is in `auditor.tables.retraining`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded
from auditor.core.record.rows import Score
from auditor.core.shown import plural, verb
from auditor.core.types import Estimate
from auditor.measure.intervals import clopper_pearson, mean_interval
from auditor.tables.columns import Codes, Mask
from auditor.tables.evaluate import Evaluator, Judged
from auditor.tables.finds import TabularResult
from auditor.tables.row_schema import add_to, case_keys, enumerate_rows, uniform
from auditor.tables.tabular_plan import TRIAL_SIZE, TRIALS, AequitasOptions

CHUNK = 16384
STEP = 0.001  # Δv and Δpr: how far one answer moves the probability of a direction or of a column


class Stop(Exception):
    """A termination rule is met, which the text says. What cuts a search short is a `BudgetExceeded`."""


class Finds:
    """Counts every case once, by the exact key of its columns that are not protected.

    ``phases`` has for each phase cases asked (judged), discriminatory ones among them (hits), new cases (generated),
    new finds (discriminatory), and cases left undecided by rows without a label (not_judged).
    """

    def __init__(self, evaluator: Evaluator, options: AequitasOptions) -> None:
        self.schema, self.evaluator, self.options = evaluator.schema, evaluator, options
        self.seen, self.known = set[object](), set[object]()  # keys of cases judged, of discriminatory ones
        self.rows: list[Codes] = [np.empty((0, self.schema.d), dtype=np.int32)]  # of these, as they were found
        self.phases = defaultdict[str, Counter[str]](Counter)
        self.undecided = self.off_manifold = 0

    def allowed(self, n: int) -> int:
        """How many of ``n`` cases may be judged now; `Stop` or `BudgetExceeded` where none may."""
        options, cases, made = self.options, len(self.known), len(self.seen)
        if options.max_found is not None and cases >= options.max_found:
            raise Stop(f"{plural(cases, 'discriminatory case')} {verb(cases, 'was', 'were')} found")
        if options.generated is not None and made >= options.generated:
            raise Stop(f"{plural(made, 'case')} {verb(made, 'was', 'were')} generated")
        room = min(n, self.evaluator.affordable(n))
        if options.generated is not None:
            room = min(room, options.generated - made)
        if room < 1:
            raise BudgetExceeded("the limit of model evaluations or seconds was reached")
        return room

    def judge(self, codes: Codes, phase: str) -> tuple[Judged, Mask]:
        """Ask all combinations of each case and count; also which cases were new finds, shape (n,)."""
        judged = self.evaluator.judge(codes)
        silent = int(judged.undecided.sum())
        keys = case_keys(self.schema, codes)
        first, hits = add_to(self.seen, keys), np.flatnonzero(judged.discriminatory)
        self.undecided += int((judged.undecided & first).sum())
        new = np.zeros(len(codes), dtype=bool)
        new[hits] = add_to(self.known, keys[hits])
        if new.any():
            self.rows.append(codes[new])
        self.off_manifold += int((judged.off_manifold & first).sum())
        self.phases[phase].update(
            judged=len(codes) - silent,
            hits=len(hits),
            generated=int(first.sum()),
            discriminatory=int(new.sum()),
            not_judged=silent,
        )
        return judged, new


class Probabilities:
    """σ_pr and σ_v of Algorithm 2, and their updates (Algorithms 3 and 4) for a batch of answers.

    ``column`` has the probability that a column is chosen (sums to 1), ``down`` that the chosen one is stepped down.
    """

    def __init__(self, columns: int) -> None:
        self.column = np.full(columns, 1 / columns)
        self.down = np.full(columns, 0.5)

    def update(self, chosen: NDArray[np.intp], delta: NDArray[np.int64], hit: Mask) -> None:
        """Learn from a batch of steps: column, signed step, and whether the row it led to is discriminatory.

        For σ_v the order of answers does not matter (except at 0 and 1). For σ_pr, k times "add Δpr to one entry, then
        normalise" is on average over orders ``q^k σ + (1 − q^k) × (share of each column)``, ``q = 1 / (1 + Δpr)``.
        """
        n = len(self.column)
        towards_down = np.where(hit == (delta < 0), 1.0, -1.0)
        push = np.bincount(chosen, weights=towards_down, minlength=n)
        self.down = np.clip(self.down + STEP * push, 0.0, 1.0)
        if hit.any():
            good = np.bincount(chosen[hit], minlength=n).astype(float)
            kept = (1 + STEP) ** -good.sum()
            self.column = kept * self.column + (1 - kept) * good / good.sum()
            self.column /= self.column.sum()


def global_search(finds: Finds, rng: Generator) -> Codes:
    """Algorithm 1: uniform rows, all protected combinations of each; at most half of a limit is spent here."""
    total, drawn, rows = finds.options.global_n, 0, []
    if (left := finds.evaluator.remaining) is not None:
        total = min(total, max(1, left // (2 * len(finds.schema.combos))))
    while drawn < total:
        n = finds.allowed(min(CHUNK, total - drawn))
        batch = uniform(finds.schema, n, rng)
        _, new = finds.judge(batch, "global")
        rows.append(batch[new])
        drawn += n
    return np.concatenate(rows)


def local_search(finds: Finds, starts: Codes, rng: Generator) -> None:
    """Run Algorithm 2 from every start row at once."""
    schema, options = finds.schema, finds.options
    columns = schema.movable_index
    if not len(starts) or not len(columns):
        return
    probabilities = Probabilities(len(columns))
    rows = starts
    for _ in range(options.local_n):
        rows = rows[: finds.allowed(len(rows))]
        chosen, delta, moved = step(rows, columns, schema.cards, probabilities, rng)
        judged, _ = finds.judge(moved, "local")
        probabilities.update(chosen, delta, judged.discriminatory)
        rows = moved if options.protocol == "aequitas" else np.where(judged.discriminatory[:, None], moved, rows)


def step(
    rows: Codes, columns: NDArray[np.intp], cards: NDArray[np.int64], probabilities: Probabilities, rng: Generator
) -> tuple[NDArray[np.intp], NDArray[np.int64], Codes]:
    """Move one column of each row by one, back at the edge: position within ``columns``, signed step, row after it."""
    n = len(rows)
    cumulative = np.cumsum(probabilities.column)
    chosen = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
    chosen = np.minimum(chosen, len(columns) - 1)
    delta = np.where(rng.random(n) < probabilities.down[chosen], -1, 1)
    position = columns[chosen]
    at = rows[np.arange(n), position].astype(np.int64)
    last = cards[position] - 1
    delta = np.where((at + delta < 0) | (at + delta > last), -delta, delta)
    moved = rows.copy()
    moved[np.arange(n), position] = np.clip(at + delta, 0, last)
    return chosen, delta, moved


LEVEL = 0.95  # of the interval of the share


def run(evaluator: Evaluator, read: AequitasOptions, rng: Generator, data: Codes | None = None) -> TabularResult:
    """Search for discriminatory cases from uniform rows, whatever the ``data``, and estimate their share."""
    schema = evaluator.schema
    trials, size = read.estimate(schema, evaluator.remaining)
    asked_before, estimate, notes = evaluator.evaluations, None, []
    if trials:
        with suppress(BudgetExceeded):
            estimate = share_estimate(evaluator, rng, trials=trials, trial_size=size)
    finds = Finds(evaluator, read)
    spent_on_estimate = evaluator.evaluations - asked_before
    details, cut_short = _search(finds, rng)
    drawn = finds.phases.get("global", Counter())  # its rows are uniform and independent
    if estimate is None and drawn["judged"] and not details.pop("stopped_by_finds", False):
        estimate = _share(drawn["hits"], drawn["judged"], drawn["not_judged"], "rows of the global search")
    if estimate is None:
        notes.append("no share was estimated: too few uniform rows were judged within the limits")
    elif estimate.n == trials * size < TRIALS * TRIAL_SIZE and read.trials is None:
        notes.append(
            f"for the share {estimate.n:,} uniform cases were judged; the paper's 400 samples of 1,000 are "
            "--set trials=400"
        )
    cases, share = np.concatenate(finds.rows), "discriminatory_share"
    counts = {
        "generated": len(finds.seen),
        "discriminatory": len(finds.known),
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
        details={"phases": {n: dict(c) for n, c in finds.phases.items()}, **details},
        finds=cases,
        status_reason=cut_short,
        notes=tuple(notes),
    )


def _search(finds: Finds, rng: Generator) -> tuple[dict[str, object], str]:
    """Run both searches; details, and the limit that cut it short, if one did."""
    details: dict[str, object] = {"ended": "all trials were made"}
    try:
        starts = global_search(finds, rng)
        details["start_rows"] = len(starts)
        local_search(finds, starts, rng)
    except Stop as stop:
        if "local" not in finds.phases and finds.options.max_found is not None:
            details["stopped_by_finds"] = True  # a sample that ends with a find is no random sample
        details["ended"] = str(stop)
    except BudgetExceeded as error:
        details["ended"] = str(error)
        return details, str(error)
    return details, ""


def share_estimate(
    evaluator: Evaluator, rng: Generator, *, trials: int = TRIALS, trial_size: int = TRIAL_SIZE
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
            return replace(_share(sum(hits), n - silent, silent), n_variants=n - silent)
        return Estimate(value=value, low=value, high=value, level=LEVEL, n=n, n_skipped=0, method="enumeration")
    note = ""
    if trials > 1:
        mean, low, high = mean_interval([h / trial_size for h in hits], LEVEL)
        note = f"mean of {trials} samples {mean:.4%}"
        note += f", interval from their spread {low:.4%} to {high:.4%}" if high < 2 else ""
    return _share(sum(hits), trials * trial_size - silent, silent, note)


def _share(hits: int, judged: int, silent: int, note: str = "") -> Estimate:
    """The share among the cases that were judged; the others are counted as skipped."""
    if judged <= 0:
        raise BudgetExceeded("the model gave no label for any case of the estimate")
    return replace(clopper_pearson(hits, judged, LEVEL, silent), n_variants=None, note=note)
