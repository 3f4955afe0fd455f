"""Several models in one run: whether two of them differ, on what both were asked and both answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.measure.multiplicity import RESAMPLES, holm, resamples_for, too_coarse
from auditor.measure.observations import Arm, Codes, Ints, Observations
from auditor.measure.paired import difference_of_rates, sign_flip
from auditor.measure.rates import PASS, VIOLATION, Place

MIN_SEEDS = 6  # with fewer, no sign pattern of the exact test has a p value below 0.05
METHOD = "difference of two rates on the same variants, by text; sign-flip test, Holm"
LEVEL = 0.95


class _Pair(NamedTuple):
    """Two models on one attribute set: changes of either, and variants, of each text."""

    first: Place
    second: Place
    attributes: tuple[str, ...]
    x: Ints
    y: Ints
    n: Ints


def measure(table: Observations, *, seed: int = 7) -> dict[str, Any]:
    """Compare every two models of a run, overall and by attribute set.

    The figure is the difference of their rates of changes over the variants that both were judged on. Exchanging the
    models changes the sign of what a text adds to it, so that the sign-flip test is exact under "both models change
    equally often on each text"; small samples enumerate all sign patterns.

    Parameters
    ----------
    table : Observations
        Of one run.
    seed : int
        Of the sign patterns that are drawn where they are too many to enumerate; more of them where there are so many
        comparisons that a test could else show nothing.

    Returns
    -------
    dict
        ``{"method", "level", "pairs": [{"first": {"model", "format"}, "second": {…}, "attributes": […], "n",
        "n_variants", "value", "low", "high", "discordant", "p_value", "p_adjusted"}]}``; the limits are in [-1, 1],
        p values None with fewer than `MIN_SEEDS` texts.
        ``pairs`` is empty where fewer than two models share a judged variant.
    """
    found = list(_pairs(table))
    wanted = resamples_for(len(found))
    rows: list[dict[str, Any]] = [
        {
            "first": pair.first._asdict(),
            "second": pair.second._asdict(),
            "attributes": list(pair.attributes),
            **_difference(pair, np.random.default_rng([seed, number]), wanted),
        }
        for number, pair in enumerate(found)
    ]
    for row, adjusted in zip(rows, holm([row["p_value"] for row in rows]), strict=True):
        row["p_adjusted"] = adjusted
    return {"method": METHOD, "level": LEVEL, "pairs": rows}


def _pairs(table: Observations) -> Iterator[_Pair]:
    told, columns = table.judged(), table.columns()
    edited = np.array([s.arm == Arm.EDITED for s in table.shapes.values], dtype=bool)
    outcomes: dict[Place, NDArray[np.int8]] = {}  # of each version; −1 where it was not judged
    use = edited[told.shape] & np.isin(told.outcome, (PASS, VIOLATION))
    for model, name in sorted({*zip(told.model[use].tolist(), told.format[use].tolist(), strict=True)}):
        own = use & (told.model == model) & (told.format == name)
        column = np.full(len(columns.version_text), -1, dtype=np.int8)
        column[told.version[own]] = told.outcome[own] == VIOLATION
        outcomes[Place(table.models.values[model], table.formats.values[name])] = column
    ids = np.array(table.texts.values)
    known: Codes[tuple[str, ...]] = Codes()
    sets = np.array([known.of(s.attributes) for s in table.shapes.values], dtype=np.int64)
    for first, second in combinations(outcomes, 2):
        if first.model == second.model or not _comparable(first, second, list(outcomes)):
            continue
        one, other = outcomes[first], outcomes[second]
        both = np.flatnonzero((one >= 0) & (other >= 0))
        own = sets[columns.version_shape[both]]
        # With one attribute set, "all" would be the same comparison twice.
        present = sorted({known.values[code] for code in np.unique(own)}, key=lambda a: (len(a), a))
        for attributes in [(), *present] if len(present) > 1 else present:
            here = both[own == known.of(attributes)] if attributes else both
            texts, at = np.unique(ids[columns.version_text[here]], return_inverse=True)
            yield _Pair(
                first,
                second,
                attributes,
                np.bincount(at, one[here]).astype(np.int64),
                np.bincount(at, other[here]).astype(np.int64),
                np.bincount(at, minlength=len(texts)),
            )


def _comparable(first: Place, second: Place, subjects: Sequence[Place]) -> bool:
    """Equal formats, or two models that share none (a classifier reads the bare text)."""
    if first.format == second.format:
        return True
    formats = [{f for m, f in subjects if m == model} for model in (first.model, second.model)]
    return not formats[0] & formats[1]


def _difference(pair: _Pair, rng: np.random.Generator, wanted: int) -> dict[str, Any]:
    """Difference of the rates, its interval and its p value."""
    value, low, high = difference_of_rates(pair.x, pair.y, pair.n, LEVEL)
    d = (pair.x - pair.y).astype(float)
    p_value = None
    if len(d) >= MIN_SEEDS:
        p_value = sign_flip(d, rng=rng)
        if too_coarse(p_value, RESAMPLES, wanted):
            p_value = sign_flip(d, rng=rng, resamples=wanted)
    return {
        "n": len(d),
        "n_variants": int(pair.n.sum()),
        "value": value,
        "low": low,
        "high": high,
        "discordant": int((d != 0).sum()),
        "p_value": p_value,
    }
