"""Interaction contrasts: whether two changes together do more to a score than the sum of each alone."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from auditor.core.types import Estimate
from auditor.measure.intervals import mean_interval

METHOD = "interaction contrast on the probability scale, t by seed"


def estimates(
    values: Iterable[tuple[str, str, str, tuple[str, ...], float]],
) -> list[dict[str, Any]]:
    """Mean interaction contrast by model, format and attribute pair, as rows of a run record.

    The contrast of one joint variant is [y(AB) - y(O)] - [y(A) - y(O)] - [y(B) - y(O)], y the probability of
    one label. Hidden changes need no interaction: two effects that only add up can cross a threshold together,
    and then this is near 0.

    Parameters
    ----------
    values : iterable of (model, format, case id, attributes, contrast)
        One for each joint variant; averaged within the seed first.

    Examples
    --------
    >>> rows = estimates([("m", "bare", f"c{n}", ("a", "b"), 0.1 * n) for n in range(3)])
    >>> round(rows[0]["estimate"]["value"], 2), rows[0]["estimate"]["n"]
    (0.1, 3)
    """
    cells: dict[tuple[str, str, tuple[str, ...]], dict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for model, name, case_id, attributes, contrast in values:
        cells[model, name, attributes][case_id].append(contrast)
    out = []
    for model, name, attributes in sorted(cells):
        seeds = cells[model, name, attributes]
        means = [sum(given) / len(given) for given in seeds.values()]
        value, low, high = mean_interval(means)
        estimate = Estimate(
            value=value,
            low=max(-2.0, low),
            high=min(2.0, high),
            level=0.95,
            n=len(means),
            n_skipped=0,
            method=METHOD,
            n_variants=sum(map(len, seeds.values())),
        )
        out.append(
            {
                "name": "interaction_contrast",
                "model": model,
                "format": name,
                "attributes": list(attributes),
                "directions": None,
                "kind": None,
                "estimate": dataclasses.asdict(estimate),
            }
        )
    return out
