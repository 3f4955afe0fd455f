"""Themis, Algorithm 3: all minimal sets of columns whose score is above a threshold.

Scores grow with the set (Theorems 4.1 and 4.2), so a superset of a set that is above the threshold is never
tested, and nothing is tested at all where the largest set is below it. A group score is at most the causal
score (Theorem 4.3), so a set whose causal score is below the threshold needs no group score. The last
theorem assumes that all combinations exist; with constraints between columns it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from auditor.core.errors import BudgetExceeded, ConfigError
from auditor.core.record.rows import Score, ScoreDetail
from auditor.core.shown import plural
from auditor.core.types import Estimate
from auditor.measure.intervals import SEQUENCE, confidence_sequence
from auditor.tables.columns import Mask
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Labels
from auditor.tables.finds import TabularResult, Tally, counted_label, estimate_of, plain, uncounted
from auditor.tables.row_schema import enumerate_rows, uniform
from auditor.tables.tabular_plan import EXACT_METHOD, MAX_COLUMNS, MAX_COMBOS, ThemisOptions, walks

Chosen = tuple[int, ...]  # columns by position


class Tested(NamedTuple):
    """What one test of one set said: its score, and whether it is ``above`` or ``below`` the threshold."""

    score: Score
    verdict: str  # by the estimate where the data do not decide


def search(
    evaluator: Evaluator, settings: ThemisOptions, rng: np.random.Generator, *, prune: bool = True
) -> TabularResult:
    """Return all minimal sets of protected columns above ``theta``; ``prune`` is whether the theorems are used.

    A set is tested with independent rows until its interval is above or below ``theta``, or ``epsilon`` or
    ``max_samples`` is reached; then the estimate decides.
    """
    schema = evaluator.schema
    index = schema.protected_index.tolist()
    if len(index) > MAX_COLUMNS:
        raise ConfigError(
            f"{plural(len(index), 'column')} have {2 ** len(index) - 1:,} subsets; search at most {MAX_COLUMNS}"
        )
    exact = walks(evaluator, settings)
    combos = math.prod(schema.cards[index].tolist())
    if not exact and combos > MAX_COMBOS:
        raise ConfigError(
            f"{', '.join(schema.protected)} have {combos:,} combinations; a search tries at most {MAX_COMBOS:,} on a "
            "row: protect fewer columns, or give them fewer values"
        )
    reason = ""
    tests: dict[Chosen, Tested] = {}
    minimal: list[Chosen] = []
    try:
        test = _Exact(evaluator, settings) if exact else _Sampled(evaluator, settings, rng, prune)
        _walk(index, test, prune, tests, minimal)
    except BudgetExceeded as error:
        reason = str(error)
    undecided = sorted(s for s, t in tests.items() if t.score.detail.decided_by == "estimate")
    total = 2 ** len(index) - 1
    notes = [
        f"{len(tests):,} of {total:,} sets were tested"
        + ("; the others follow from the theorems." if prune and not reason else ".")
    ]
    if undecided:
        named = ", ".join("{" + ", ".join(schema.names[i] for i in s) + "}" for s in undecided[:8])
        notes.append(f"The data do not decide about {named}; their estimates were compared with theta.")
    rows = []
    for chosen, (score, verdict) in tests.items():
        figures = {name: getattr(score.estimate, name) for name in ("value", "low", "high", "n")}
        columns = [schema.names[i] for i in chosen]
        rows.append({"columns": columns, **figures, "verdict": verdict, **plain(score.detail)})
    return TabularResult(
        method="themis",
        mode="search",
        sampling="iid",
        options=settings.model_dump(),
        counts={
            "generated": max((t.score.estimate.n for t in tests.values()), default=0),
            "discriminatory": 0,
            "off_manifold": 0,
            "sets_tested": len(tests),
            "sets": total,
            **evaluator.spent(),
        },
        minimal_sets=tuple(tests[s].score for s in minimal),
        # Sampling asks about a row until its label changes; but the first two combinations are tried on every row.
        whole_cases=exact or len(schema.combos) <= 2,
        details={"tests": rows},
        status_reason=reason,
        notes=tuple(notes),
    )


def _walk(
    index: list[int], test: _Exact | _Sampled, prune: bool, tests: dict[Chosen, Tested], minimal: list[Chosen]
) -> None:
    """Test sets by size, smaller first; fill ``tests`` and ``minimal``."""
    whole = tuple(index)
    if prune and len(index) > 1:
        tests[whole] = test(whole)
        if tests[whole].verdict == "below":
            return
    for size in range(1, len(index) + 1):
        for chosen in combinations(index, size):
            if prune and any(set(smaller) <= set(chosen) for smaller in minimal):
                continue
            if chosen not in tests:
                tests[chosen] = test(chosen)
            if tests[chosen].verdict == "above" and not any(set(smaller) <= set(chosen) for smaller in minimal):
                minimal.append(chosen)


class _Exact:
    """Scores by walking through the whole domain: asked once, then sliced for every set."""

    def __init__(self, evaluator: Evaluator, settings: ThemisOptions) -> None:
        self._evaluator, self._schema, self._settings = evaluator, evaluator.schema, settings
        schema = evaluator.schema
        asked = [(evaluator.labels(rows), schema.on_manifold(rows)) for rows in enumerate_rows(schema)]
        labels = np.concatenate([said for said, _ in asked])
        possible = np.concatenate([real for _, real in asked]) & (labels != NOT_JUDGED)
        shape = tuple(int(c) for c in schema.cards)
        self._labels, self._possible = labels.reshape(shape), possible.reshape(shape)
        self._rows = int(possible.sum())
        seen = np.unique(labels[possible])
        if settings.measure == "group":
            label = counted_label(evaluator, seen.tolist())
            if label is None:
                raise ConfigError(f"no group score: {uncounted(evaluator, seen.tolist())}")
            self._label = label

    def __call__(self, chosen: Chosen) -> Tested:
        settings, schema = self._settings, self._schema
        order = [*(i for i in range(schema.d) if i not in chosen), *chosen]
        width = math.prod(schema.columns[i].codes for i in chosen)
        grids = (array.transpose(order).reshape(-1, width) for array in (self._labels, self._possible))
        labels, possible = map(np.ascontiguousarray, grids)  # shape (rest, combinations of the chosen columns)
        if settings.measure == "causal":
            each = self._evaluator.each(labels, possible)
            value = int((possible & each).sum()) / self._rows if self._rows else 0.0
        else:
            rows = possible.sum(axis=0)
            good = ((labels == self._label) & possible).sum(axis=0)
            rates = good[rows > 0] / rows[rows > 0]
            value = float(rates.max() - rates.min()) if len(rates) else 0.0
        skipped, level = self._labels.size - self._rows, settings.confidence
        estimate = estimate_of(value, (value, value), level, self._rows, EXACT_METHOD, skipped=skipped)
        columns = tuple(schema.names[i] for i in chosen)
        score = Score(name=settings.measure, columns=columns, estimate=estimate, population="domain (all rows)")
        return Tested(score, "above" if value > (settings.theta or 0.0) else "below")


class _Sampled:
    """Scores by sampling; all sets share one stream of rows and the labels of those rows."""

    def __init__(self, evaluator: Evaluator, settings: ThemisOptions, rng: np.random.Generator, prune: bool) -> None:
        self._evaluator, self._schema, self._settings, self._rng = evaluator, evaluator.schema, settings, rng
        self._theta, self._prune = settings.theta or 0.0, prune
        self._rows = uniform(self._schema, 0, rng)
        self._labels: Labels = np.empty(0, dtype=np.int64)

    def __call__(self, chosen: Chosen) -> Tested:
        settings, n, changed = self._settings, 0, 0

        def causal(part: slice) -> Estimate:
            nonlocal n, changed
            n, changed = part.stop, changed + int(self._flips(part, chosen).sum())
            limits = confidence_sequence(changed, n, settings.confidence)
            return estimate_of(changed / n, limits, settings.confidence, n, SEQUENCE)

        tested = self._decide("causal", chosen, causal)
        bound = self._prune and not self._schema.constraints
        if settings.measure == "causal" or (bound and tested.score.estimate.high < self._theta):
            return tested  # Theorem 4.3
        tally = Tally(self._evaluator, np.asarray(chosen, dtype=np.intp))

        def group(part: slice) -> Estimate:
            tally.add(self._rows[part])
            scored = tally.group(settings.confidence, confidence_sequence, SEQUENCE)
            if scored is None:
                raise ConfigError(f"no group score: {tally.no_group() or 'too few rows of two groups'}")
            return scored[0]

        return self._decide("group", chosen, group)

    def _upto(self, n: int) -> None:
        """Draw rows until ``n`` possible ones are there."""
        while len(self._rows) < n:
            fresh = uniform(self._schema, max(64, n - len(self._rows)), self._rng)
            fresh = fresh[self._schema.on_manifold(fresh)][: n - len(self._rows)]
            labels = self._evaluator.labels(fresh)
            known = labels != NOT_JUDGED
            if len(fresh) and not known.any():
                raise BudgetExceeded(f"the model gave no label for any of {plural(len(fresh), 'row')}")
            self._labels = np.concatenate([self._labels, labels[known]])
            self._rows = np.concatenate([self._rows, fresh[known]])

    def _decide(self, name: str, chosen: Chosen, more: Callable[[slice], Estimate]) -> Tested:
        """Ask for more rows until value and interval decide; without pruning the paper's margin alone does."""
        settings = self._settings
        n, target = 0, min(32, settings.most)
        while True:
            self._upto(target)
            now = more(slice(n, target))
            n = target
            verdict = "above" if now.low > self._theta else "below" if now.high < self._theta else ""
            narrow = (now.high - now.low) / 2 < settings.epsilon
            if (verdict and self._prune) or narrow or n >= settings.most:
                break
            target = min(2 * target, target + 2048, settings.most)
        score = Score(
            name=name,
            columns=tuple(self._schema.names[i] for i in chosen),
            estimate=now,
            population="domain (uniform)",
            detail=ScoreDetail(decided_by="interval" if verdict else "estimate"),
        )
        return Tested(score, verdict or ("above" if now.value > self._theta else "below"))

    def _flips(self, part: slice, chosen: Chosen) -> Mask:
        """Which rows change their label, by trying combinations in rounds of doubling size until one does."""
        rows, labels = self._rows[part], self._labels[part]
        changed = np.zeros(len(rows), dtype=bool)
        combos = self._rng.permutation(self._schema.combos_of(chosen))
        at, width = 0, 2
        while at < len(combos) and not changed.all():
            open_rows = np.flatnonzero(~changed)
            tried = np.asarray(chosen, dtype=np.intp), combos[at : at + width]
            answers = self._evaluator.grid(rows[open_rows], tried)
            possible = self._evaluator.possible(rows[open_rows], tried)
            mine = labels[open_rows]
            for k in range(answers.shape[1]):
                apart = self._evaluator.differ(np.stack([mine, answers[:, k]], axis=1))
                changed[open_rows] |= apart & possible[:, k]
            at, width = at + width, min(2 * width, 256)
        return changed
