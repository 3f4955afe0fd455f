"""Intervals of a rate where not only the seeds but also the words are a sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural
from auditor.core.types import Estimate, Verdict
from auditor.measure.intervals import _beta_limits, korn_graubard, t_ratio

MIN_TERMS = 8  # with fewer, the words cannot stand for others


def two_way(
    events: Sequence[bool], seeds: Sequence[str], terms: Sequence[str], level: float = 0.95
) -> Estimate | None:
    """Share of variants with an event, clustered by seed and by the word that was put in.

    The variance is that by seed plus that by word minus that by both (Cameron, Gelbach and Miller 2011);
    an effective size as in `korn_graubard` and a Clopper–Pearson interval on it. It is never
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
    x = np.asarray(events, dtype=float)
    by_seed, by_term = _numbered(seeds), _numbered(terms)
    n_seeds, n_terms = len(set(seeds)), len(set(terms))
    if n_terms < MIN_TERMS or n_seeds < 2:
        return None
    counts = np.bincount(by_seed)
    plain = korn_graubard(np.bincount(by_seed, weights=x).tolist(), counts.tolist(), level)
    p = plain.value
    low, high = plain.low, plain.high
    if 0.0 < p < 1.0:
        variance = _variance(x, by_seed, by_term)
        units = float(len(x))
        if variance > 0.0:
            adjust = t_ratio(units, min(n_seeds, n_terms), level) ** 2
            size = min(p * (1 - p) / variance * adjust, units)
            wide = _beta_limits(p, size, level)
            low, high = min(low, wide[0]), max(high, wide[1])
    return Estimate(
        value=p,
        low=low,
        high=high,
        level=level,
        n=n_seeds,
        n_skipped=0,
        method="korn-graubard by seed and word",
        n_variants=len(x),
        note=plural(n_terms, "word"),
    )


def _numbered(names: Sequence[str]) -> NDArray[np.int64]:
    """The names as numbers from 0 on, in the order in which they first come."""
    numbers: dict[str, int] = {}
    return np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), np.int64, len(names))


def _variance(x: NDArray[np.float64], seed: NDArray[np.int64], term: NDArray[np.int64]) -> float:
    """Two-way cluster variance of the mean, each part with its correction for the number of clusters."""
    off = x - x.mean()
    _, both = np.unique(seed * (term.max() + 1) + term, return_inverse=True)
    return _by(off, seed) + _by(off, term) - _by(off, both)


def _by(off: NDArray[np.float64], clusters: NDArray[np.int64]) -> float:
    """Variance of the mean by one clustering, from the deviations of its units."""
    sums = np.bincount(clusters, weights=off)
    return float(sums @ sums) / len(off) ** 2 * len(sums) / (len(sums) - 1)


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
