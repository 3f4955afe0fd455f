"""Intervals of a rate where not only the seeds but also the words are a sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from auditor.counting import plural
from auditor.stats.intervals import _beta_limits, korn_graubard
from auditor.types import Estimate, Verdict

MIN_TERMS = 8  # with fewer, the words cannot stand for others


def two_way(
    events: Sequence[bool], seeds: Sequence[str], terms: Sequence[str], level: float = 0.95
) -> Estimate | None:
    """Share of variants with an event, clustered by seed and by the word that was put in.

    The variance is that by seed plus that by word minus that by both (Cameron, Gelbach and Miller 2011), from
    statsmodels; an effective size as in `korn_graubard` and a Clopper–Pearson interval on it. It is never
    shorter than the interval by seed.

    Parameters
    ----------
    events : sequence of bool, shape (variants,)
        Whether the label changed.
    seeds, terms : sequence of str, shape (variants,)
        The clusters of each variant.
    level : float
        Confidence level.

    Returns
    -------
    Estimate or None
        None with fewer than `MIN_TERMS` words or two seeds. ``note`` says how many words.

    Examples
    --------
    >>> two_way([True, False], ["a", "b"], ["x", "y"]) is None
    True
    """
    from scipy.stats import t

    x = np.asarray(events, dtype=float)
    seed, by_seed = np.unique(np.asarray(seeds), return_inverse=True)
    term, by_term = np.unique(np.asarray(terms), return_inverse=True)
    if len(term) < MIN_TERMS or len(seed) < 2:
        return None
    counts = np.bincount(by_seed)
    plain = korn_graubard(np.bincount(by_seed, weights=x).tolist(), counts.tolist(), level)
    p = plain.value
    low, high = plain.low, plain.high
    if 0.0 < p < 1.0:
        variance = _variance(x, by_seed, by_term)
        groups = min(len(seed), len(term))
        units = float(len(x))
        if variance > 0.0:
            q = 0.5 + level / 2
            adjust = (t.ppf(q, max(units - 1, 1)) / t.ppf(q, groups - 1)) ** 2
            size = float(min(p * (1 - p) / variance * adjust, units))
            wide = _beta_limits(p, size, level)
            low, high = min(low, wide[0]), max(high, wide[1])
    return Estimate(
        value=p,
        low=low,
        high=high,
        level=level,
        n=len(seed),
        n_skipped=0,
        method="korn-graubard by seed and word",
        n_variants=len(x),
        note=plural(len(term), "word"),
    )


def _variance(x: np.ndarray[tuple[int, ...], np.dtype[np.float64]], seed: object, term: object) -> float:
    """Two-way cluster variance of the mean."""
    from statsmodels.regression.linear_model import OLS

    fit = OLS(x, np.ones(len(x))).fit(
        cov_type="cluster",
        cov_kwds={"groups": np.column_stack((seed, term)), "use_correction": True},  # type: ignore[arg-type]
    )
    return float(np.asarray(fit.cov_params()).ravel()[0])


def beside(
    rows: list[dict[str, Any]], verdicts: Iterable[Verdict], edits: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Put ``interval_two_way`` beside the ``violation_rate`` of each attribute set, where words suffice.

    Parameters
    ----------
    rows : list of dict
        Estimates of a run record; changed in place.
    verdicts : iterable of Verdict
        Of the same run.
    edits : mapping of str to object
        By variant id; ``term`` says which words were put in.
    """
    cells: dict[tuple[str, str, tuple[str, ...]], list[tuple[bool, str, str]]] = defaultdict(list)
    for v in verdicts:
        term = getattr(edits[v.variant_id], "term", "")
        if term and v.outcome in ("pass", "violation"):
            cells[v.model, v.format, v.attributes].append((v.outcome == "violation", v.case_id, term))
    for row in rows:
        if row["name"] != "violation_rate" or row["directions"] or row["kind"]:
            continue
        given = cells.get((row["model"], row["format"], tuple(row["attributes"])))
        if not given:
            continue
        found = two_way([x for x, _, _ in given], [c for _, c, _ in given], [t for _, _, t in given])
        if found is not None:
            row["interval_two_way"] = {
                "low": found.low,
                "high": found.high,
                "level": found.level,
                "method": found.method,
                "n_terms": len({term for _, _, term in given}),
            }
    return rows
