"""Themis: group, causal and apparent discrimination scores of sets of columns (Algorithms 1–3).

S. Galhotra, Y. Brun, A. Meliou, *Fairness Testing: Testing Software for Discrimination*, ESEC/FSE 2017.

The default protocol draws rows uniformly, judges every combination of the columns for all of them at once,
and stops on an interval that is valid whenever one stops. ``protocol="themis"`` is the paper's: sampling stops as soon
as ``z * sqrt(p (1 - p) / r) < epsilon``, so without a change among the first rows the score is exactly 0. The model is
asked in batches there too: rows after the stop count as evaluations but in no score.

Algorithm 3 finds all minimal sets of columns whose score is above a threshold. Scores grow with the set (Theorems 4.1
and 4.2), so a superset of a set that is above the threshold is never tested, and nothing is tested at all where the
largest set is below it. A group score is at most the causal score (Theorem 4.3), so a set whose causal score is below
the threshold needs no group score. The last theorem assumes that all combinations exist; with constraints between
columns it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from auditor.core.errors import BudgetExceeded, ConfigError
from auditor.core.record.rows import Score, ScoreDetail
from auditor.core.shown import plural
from auditor.core.types import AFTER_STOPPING, Estimate
from auditor.measure.intervals import SEQUENCE, beta_limits, confidence_sequence
from auditor.tables.columns import Codes, Mask
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Labels
from auditor.tables.finds import TabularResult, Tally, counted_label, estimate_of, plain
from auditor.tables.row_schema import enumerate_rows, row_keys, uniform
from auditor.tables.tabular_plan import EXACT_METHOD, MAX_COLUMNS, MAX_COMBOS, NOTE, ThemisOptions, walks

GIVEN_METHOD = "clopper-pearson, own rows"
LARGEST_BATCH = 1 << 20  # rows passed to the model between two looks
UNIFORM = "domain (uniform)"
BATCH = 256  # rows between two looks of the paper's rule
Chosen = tuple[int, ...]  # columns by position


def run(evaluator: Evaluator, settings: ThemisOptions, rng: Generator, data: Codes | None = None) -> TabularResult:
    """Measure discrimination scores, those of the ``data`` too, or search minimal discriminating sets."""
    schema = evaluator.schema
    if settings.theta is not None:
        return search(evaluator, settings, rng)
    if settings.protocol == "themis":
        return literal_scores(evaluator, settings, rng)
    exact, level, reason = walks(evaluator, settings), settings.confidence, ""
    drawn, own = (Tally(evaluator, schema.protected_index) for _ in range(2))  # own: of the given rows
    try:
        if exact:
            for part in enumerate_rows(schema, schema.free_index):
                drawn.add(part, weigh="cells")
        else:
            reason = sample(drawn, settings, rng)
    except BudgetExceeded as error:
        reason = str(error)
    scores: tuple[Score, ...] = ()
    if exact and not reason:
        scores = drawn.scores("domain (all rows)", level, None, EXACT_METHOD)
    elif drawn.rows and not exact:
        scores = drawn.scores(UNIFORM, level, confidence_sequence, SEQUENCE)
    notes = ["Rows were drawn independently; equal draws were kept, because a rate needs them."]
    if exact and not reason:
        notes = ["Every possible row was judged; the scores of the domain are exact."]
    apparent_scores, left_out = apparent(own, data, settings.confidence)
    reason, scores = reason or left_out, (*apparent_scores, *scores)
    if schema.constraints:
        notes.append(
            "Rows that break a constraint between columns are in no score; cases that change only through "
            "such rows are counted apart (off-manifold)."
        )
    if not any(s.name.endswith("group") for s in scores) and (why := drawn.no_group()):
        notes.append(f"No group score: {why}.")
    return TabularResult(
        method="themis",
        mode="score",
        sampling="iid",
        options=settings.model_dump(),
        counts={
            "generated": drawn.draws,
            "discriminatory": drawn.flipped_draws,
            **({"given_rows": own.rows, "given_changes": own.flips} if own.rows else {}),
            "off_manifold": drawn.off,
            "impossible_rows": drawn.impossible,
            **evaluator.spent(),
        },
        scores=scores,
        lattice=drawn.lattice,
        details={"lattice_rows": "the first rows drawn" if not exact else "the first rows of the domain"},
        finds=drawn.finds,
        given_finds=own.finds,
        status_reason=reason,
        notes=tuple(notes),
    )


def sample(tally: Tally, settings: ThemisOptions, rng: Generator) -> str:
    """Add rows until both scores are known to ± epsilon, or ``max_samples``; why there is no score, or ""."""
    m = len(tally.combos)
    chunk = max(1, tally.evaluator.batch // m)
    target = min(settings.least, settings.most)
    while True:
        while tally.draws < target:
            n = min(chunk, target - tally.draws)
            if not tally.evaluator.affordable(n):
                raise BudgetExceeded("the limit of model evaluations or seconds was reached")
            tally.add(uniform(tally.schema, tally.evaluator.affordable(n), rng))
        if target >= settings.most or _narrow(tally, settings):
            break
        target = min(settings.most, target * 2, target + max(1, LARGEST_BATCH // m))
    return "" if tally.rows else f"none of {plural(tally.draws, 'row')} drawn satisfies the constraints of the schema"


def _narrow(tally: Tally, settings: ThemisOptions) -> bool:
    causal = tally.causal(settings.confidence, confidence_sequence, SEQUENCE)
    if causal is None or (causal.high - causal.low) / 2 > settings.epsilon:
        return False
    group = tally.group(settings.confidence, confidence_sequence, SEQUENCE)
    return group is None or (group[0].high - group[0].low) / 2 <= settings.epsilon


def apparent(tally: Tally, rows: Codes | None, level: float) -> tuple[tuple[Score, ...], str]:
    """Scores on the given rows (Definition 3.8): what changes them, and how their groups fare."""
    evaluator = tally.evaluator
    if rows is None or not len(rows):
        return (), ""
    chunk = max(1, evaluator.batch // len(tally.combos))
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        try:
            if evaluator.affordable(len(part)) < len(part):
                raise BudgetExceeded("the limit was reached")
            tally.add(part, weigh="given")
        except BudgetExceeded as error:  # also a server that is gone, or time that ended within a call
            return (), f"{error} after {start:,} of {plural(len(rows), 'given row')}: no score of them"

    def interval(successes: int, n: int, level: float) -> tuple[float, float]:
        return beta_limits(successes / n, n, level)

    return tally.scores("given rows", level, interval, GIVEN_METHOD, prefix="apparent_"), ""


def literal_scores(evaluator: Evaluator, settings: ThemisOptions, rng: Generator) -> TabularResult:
    """Group and causal score of the protected columns by Algorithms 1 and 2, constraints ignored."""
    schema = evaluator.schema
    scores: list[Score] = []
    notes = ["Raw figures by the paper's protocol: no control, no valid interval; constraints are ignored."]
    draws = hits = 0
    reason = ""
    index = schema.protected_index

    def draw(n: int) -> Codes:
        return uniform(schema, n, rng)

    def changes(rows: Codes) -> Mask:
        """Which rows get another label with other protected values."""
        own = row_keys(schema.binned(rows)[:, index], schema.cards[index])
        return np.asarray(evaluator.each(evaluator.grid(rows))[np.arange(len(rows)), own])

    def labelled(combo: Codes, label: int) -> Callable[[Codes], Mask]:
        return lambda rows: np.asarray(evaluator.labels(schema.crossed(rows, index, combo[None])) == label)

    def add(name: str, estimate: Estimate) -> None:
        scores.append(Score(name=name, columns=schema.protected, estimate=estimate, population=UNIFORM))

    try:
        draws, hits = proportion(draw, changes, settings)
        add("causal", wald(hits / draws, None, draws, settings, NOTE))
        label, why = _label(evaluator)
        if label is None:
            notes.append(f"No group score: {why}.")
        else:  # Algorithm 1: each combination of protected values with rows of its own
            groups = [proportion(draw, labelled(combo, label), settings) for combo in schema.combos]
            shares = [count / n for n, count in groups]
            note = "each group's rate to ± epsilon by the paper's rule; " + NOTE
            value = max(shares) - min(shares)
            add("group", wald(value, 2 * settings.epsilon, min(n for n, _ in groups), settings, note))
    except BudgetExceeded as error:
        reason = str(error)
    return TabularResult(
        method="themis",
        mode="score",
        sampling="iid",
        options=settings.model_dump(),
        counts={"generated": draws, "discriminatory": hits, "off_manifold": 0, **evaluator.spent()},
        scores=tuple(scores),
        status_reason=reason,
        notes=tuple(notes),
    )


def proportion(
    draw: Callable[[int], Codes], judge: Callable[[Codes], Mask], settings: ThemisOptions
) -> tuple[int, int]:
    """Rows used and hits among them, sampled until the paper's rule stops."""
    r = count = 0
    while True:
        hits = judge(draw(min(BATCH, settings.most - r)))
        rows = r + np.arange(1, len(hits) + 1)
        p = (count + np.cumsum(hits)) / rows
        narrow = z_value(settings.confidence) * np.sqrt(p * (1 - p) / rows) < settings.epsilon
        done = np.flatnonzero(((rows > settings.least) & narrow) | (rows >= settings.most))
        part = hits[: done[0] + 1] if len(done) else hits
        r, count = r + len(part), count + int(part.sum())
        if len(done):
            return r, count


def z_value(confidence: float) -> float:
    """The two-sided normal quantile."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wald(p: float, margin: float | None, r: int, settings: ThemisOptions, note: str) -> Estimate:
    """A score with a margin; None: the paper's."""
    if margin is None:
        margin = z_value(settings.confidence) * (p * (1 - p) / r) ** 0.5
    low, high = max(0.0, p - margin), min(1.0, p + margin)
    level = settings.confidence
    return Estimate(value=p, low=low, high=high, level=level, n=r, n_skipped=0, method=AFTER_STOPPING, note=note)


def _label(evaluator: Evaluator) -> tuple[int | None, str]:
    """The label that is counted: the schema's, else the last one of a hundred rows; or why there is none."""
    schema = evaluator.schema
    if schema.favourable is not None:
        return evaluator.label_code(schema.favourable), ""
    seen = np.unique(evaluator.labels(uniform(schema, 100, np.random.default_rng(7)))).tolist()
    return counted_label(evaluator, seen)


# -- Algorithm 3: all minimal sets of columns whose score is above a threshold --------------------------------


class Tested(NamedTuple):
    """What one test of one set said: its score, and whether it is ``above`` or ``below`` the threshold."""

    score: Score
    verdict: str  # by the estimate where the data do not decide


def search(evaluator: Evaluator, settings: ThemisOptions, rng: Generator, *, prune: bool = True) -> TabularResult:
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
            self._label, why = counted_label(evaluator, seen.tolist())
            if self._label is None:
                raise ConfigError(f"no group score: {why}")

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

    def __init__(self, evaluator: Evaluator, settings: ThemisOptions, rng: Generator, prune: bool) -> None:
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
            population=UNIFORM,
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
