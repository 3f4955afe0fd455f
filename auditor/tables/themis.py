"""Themis: group, causal and apparent discrimination scores of sets of columns (Algorithms 1–3).

S. Galhotra, Y. Brun, A. Meliou, *Fairness Testing: Testing Software for Discrimination*, ESEC/FSE 2017.

The default protocol draws rows uniformly, judges every combination of the columns for all of them at once,
and stops on an interval that is valid whenever one stops. ``protocol="themis"`` is the paper's: sampling stops as soon
as ``z * sqrt(p (1 - p) / r) < epsilon``, so without a change among the first rows the score is exactly 0. The model is
asked in batches there too: rows after the stop count as evaluations but in no score.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from auditor.core.errors import BudgetExceeded
from auditor.core.record.rows import Score
from auditor.core.shown import plural
from auditor.core.types import AFTER_STOPPING, Estimate
from auditor.measure.intervals import SEQUENCE, beta_limits, confidence_sequence
from auditor.tables.columns import Codes, Mask
from auditor.tables.evaluate import Evaluator
from auditor.tables.finds import TabularResult, Tally, counted_label, uncounted
from auditor.tables.row_schema import enumerate_rows, row_keys, uniform
from auditor.tables.tabular_plan import EXACT_METHOD, NOTE, ThemisOptions, walks
from auditor.tables.themis_search import search

GIVEN_METHOD = "clopper-pearson, own rows"
LARGEST_BATCH = 1 << 20  # rows passed to the model between two looks
UNIFORM = "domain (uniform)"
BATCH = 256  # rows between two looks of the paper's rule


def run(
    evaluator: Evaluator, settings: ThemisOptions, rng: np.random.Generator, data: Codes | None = None
) -> TabularResult:
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


def sample(tally: Tally, settings: ThemisOptions, rng: np.random.Generator) -> str:
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


def literal_scores(evaluator: Evaluator, settings: ThemisOptions, rng: np.random.Generator) -> TabularResult:
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
    label = counted_label(evaluator, seen)
    return label, "" if label is not None else uncounted(evaluator, seen)
