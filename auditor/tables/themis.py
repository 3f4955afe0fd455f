"""Themis: group, causal and apparent discrimination scores of sets of columns (Algorithms 1–3).

S. Galhotra, Y. Brun, A. Meliou, *Fairness Testing: Testing Software for Discrimination*, ESEC/FSE 2017.

The default protocol draws rows uniformly, judges every combination of the columns for all of them at once,
and stops on an interval that is valid whenever one stops. ``protocol="themis"`` follows the paper's
algorithms row by row with its Wald rule (`auditor.tables.themis`), to lay figures side by side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural
from auditor.core.errors import BudgetExceeded, ConfigError
from auditor.core.record.rows import ColumnSet, RowPair, Score
from auditor.core.types import AFTER_STOPPING, Estimate
from auditor.measure.confidence_sequences import METHOD, confidence_sequence
from auditor.measure.intervals import clopper_pearson
from auditor.tables.coded import Given, Rows, binned, crossed, row_keys
from auditor.tables.columns import Codes
from auditor.tables.evaluate import Evaluator, Judged
from auditor.tables.finds import TabularResult, lattice, minimal_pairs
from auditor.tables.method_options import EXACT_METHOD, Sampler, ThemisOptions, sampler, walks
from auditor.tables.row_tally import KEEP_JUDGED, Tally, counted_label, uncounted
from auditor.tables.schema import Schema, enumerate_rows, uniform
from auditor.tables.themis_search import search

GIVEN_METHOD = "clopper-pearson, own rows"
PAIRS = 20  # exemplars
LARGEST_BATCH = 1 << 20  # rows passed to the model between two looks


def run(evaluator: Evaluator, schema: Schema, options: Mapping[str, object], rng: np.random.Generator) -> TabularResult:
    """Measure discrimination scores, or search minimal discriminating sets."""
    settings = ThemisOptions.of(options)
    if settings.mode == "search":
        return search(evaluator, schema, settings, rng)
    if not len(schema.protected_index):
        raise ConfigError("no protected column: give --protected NAME[,NAME]")
    if settings.protocol == "themis":
        return literal_scores(evaluator, schema, settings, rng)
    return _scores(evaluator, schema, settings, rng)


def _scores(evaluator: Evaluator, schema: Schema, settings: ThemisOptions, rng: np.random.Generator) -> TabularResult:
    exact = walks(evaluator, schema, settings)
    tally = Tally(schema, evaluator, schema.protected_index, keep=0 if exact else KEEP_JUDGED)
    reason = ""
    try:
        if exact:
            for rows in enumerate_rows(schema, schema.free_index):
                tally.add(rows, weigh="cells")
        else:
            reason = sample(tally, sampler(schema, settings, rng), settings)
    except BudgetExceeded as error:
        reason = str(error)
    scores: tuple[Score, ...] = ()
    population = "profile" if settings.profile is not None else "domain (uniform)"
    prefix = "apparent_" if settings.profile is not None else ""
    if exact and not reason:
        scores = tally.scores("domain (all rows)", settings.confidence, None, EXACT_METHOD)
    elif tally.rows and not exact:
        scores = tally.scores(population, settings.confidence, confidence_sequence, METHOD, prefix=prefix)
    of_given = Tally(schema, evaluator, schema.protected_index, keep=KEEP_JUDGED)
    given, given_reason = apparent(of_given, settings)
    result = _result(
        evaluator, schema, settings, tally, of_given, (*given, *scores), reason or given_reason, exact=exact
    )
    places = {"domain": tally, "given": of_given} if settings.profile is None else {"given": of_given}
    kept = {place: one.judged for place, one in places.items()}
    return dataclasses.replace(result, judged={place: pair for place, pair in kept.items() if len(pair[0])})


def _result(
    evaluator: Evaluator,
    schema: Schema,
    settings: ThemisOptions,
    tally: Tally,
    of_given: Tally,
    scores: tuple[Score, ...],
    reason: str,
    *,
    exact: bool,
) -> TabularResult:
    counts = {
        "generated": tally.draws,
        "discriminatory": tally.flipped_draws,
        **({"given_rows": of_given.rows, "given_changes": of_given.flips} if of_given.rows else {}),
        "off_manifold": tally.off,
        "impossible_rows": tally.impossible,
        "evaluations": evaluator.evaluations,
        "cache_hits": evaluator.cache_hits,
        "seconds": round(evaluator.seconds, 3),
    }
    rows: tuple[ColumnSet, ...] = ()
    pairs: tuple[RowPair, ...] = ()
    if (first := tally.first) is not None:
        _, labels, possible = first
        differ = evaluator.differ(labels, possible)
        judged = Judged(labels=labels, possible=possible, discriminatory=differ, off_manifold=~differ & False)
        rows = lattice(schema, evaluator, judged)
        try:
            pairs = minimal_pairs(evaluator, of_given.found)
            if len(pairs) < PAIRS:
                pairs += minimal_pairs(evaluator, tally.found, limit=PAIRS - len(pairs))
        except BudgetExceeded:
            pass
    notes = [
        "Every possible row was judged; the scores of the domain are exact."
        if exact and not reason
        else "Rows were drawn independently; equal draws were kept, because a rate needs them."
    ]
    if schema.constraints:
        notes.append(
            "Rows that break a constraint between columns are in no score; cases that change only through "
            "such rows are counted apart (off-manifold)."
        )
    if not any(s.name.endswith("group") for s in scores) and (why := tally.no_group()):
        notes.append(f"No group score: {why}.")
    cases, rows_found = _found(tally, of_given)
    return TabularResult(
        method="themis",
        mode=settings.mode,
        sampling="iid",
        options=settings.plain(),
        counts=counts,
        scores=scores,
        lattice=rows,
        pairs=pairs,
        details={"lattice_rows": "the first rows drawn" if not exact else "the first rows of the domain"},
        finds=cases,
        given_finds=rows_found,
        status="partial" if reason else "complete",
        status_reason=reason,
        notes=tuple(notes),
    )


def _found(tally: Tally, of_given: Tally) -> tuple[Codes, Given | None]:
    """What was found among cases of the domain, and among rows as they are (given ones, or those of a profile)."""
    found = [tally.found, of_given.found]
    codes = [part for part in found if not isinstance(part, Given)]
    given = [part for part in found if isinstance(part, Given) and len(part)]
    none = np.empty((0, tally.schema.d), dtype=np.int32)
    return np.concatenate([none, *codes]), given[0] if given else None


def sample(tally: Tally, draw: Sampler, settings: ThemisOptions) -> str:
    """Add rows until both scores are known to ± epsilon, or ``max_samples``; why there is no score, or ""."""
    m = len(tally.combos)
    chunk = max(1, tally.evaluator.batch // m)
    target = min(max(settings.least, 1), settings.max_samples)
    while True:
        while tally.draws < target:
            n = min(chunk, target - tally.draws)
            if not tally.evaluator.affordable(n, m):
                raise BudgetExceeded("the limit of model evaluations or seconds was reached")
            tally.add(draw(tally.evaluator.affordable(n, m)))
        if target >= settings.max_samples or _narrow(tally, settings):
            break
        target = min(settings.max_samples, target * 2, target + max(1, LARGEST_BATCH // m))
    if not tally.rows:
        return f"none of {plural(tally.draws, 'row')} drawn satisfies the constraints of the schema"
    return ""


def _narrow(tally: Tally, settings: ThemisOptions) -> bool:
    causal = tally.causal(settings.confidence, confidence_sequence, METHOD)
    if causal is None or (causal.high - causal.low) / 2 > settings.epsilon:
        return False
    group = tally.group(settings.confidence, confidence_sequence, METHOD)
    return group is None or (group[0].high - group[0].low) / 2 <= settings.epsilon


def apparent(tally: Tally, settings: ThemisOptions) -> tuple[tuple[Score, ...], str]:
    """Scores on the given rows (Definition 3.8): what changes them, and how their groups fare."""
    evaluator = tally.evaluator
    if settings.data is None or not len(settings.data):
        return (), ""
    chunk = max(1, evaluator.batch // len(tally.combos))
    rows = settings.data
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        ended = "the limit was reached"
        if evaluator.affordable(len(part), len(tally.combos)) == len(part):
            try:
                tally.add(part, weigh="given")
                continue
            except BudgetExceeded as error:  # a server that is gone, or time that ended within a call
                ended = str(error)
        return (), f"{ended} after {start:,} of {plural(len(rows), 'given row')}: no score of them"
    return (tally.scores("given rows", settings.confidence, _clopper_pearson, GIVEN_METHOD, prefix="apparent_"), "")


def _clopper_pearson(successes: int, n: int, level: float) -> tuple[float, float]:
    estimate = clopper_pearson(successes, n, level)
    return estimate.low, estimate.high


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
