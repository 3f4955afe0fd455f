"""Several models in one run: whether two of them differ, on what both were asked and both answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

Subject = tuple[str, str]  # model, format
MIN_SEEDS = 6  # with fewer, no sign pattern of the exact test has a p value below 0.05
METHOD = "paired difference by seed; sign-flip test, Holm"


def measure(
    verdicts: Iterable[Any], *, seed: int = 7, level: float = 0.95, directed: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Compare every two models of a run, overall and by attribute set.

    The unit is the seed (case). For each seed the share of changed answers is taken over the variants that both
    models were judged on. Exchanging the models changes the sign of a seed's difference, so that the sign-flip test
    is exact under "both models change equally often on each seed"; small samples enumerate all sign patterns.

    Parameters
    ----------
    verdicts : iterable of Verdict
        Of one run; order 0 (placebos) and what was skipped or inconclusive is left out.
    seed : int
        Of the sign patterns that are drawn where they are too many to enumerate; more of them where there are so many
        comparisons that a test could else show nothing.
    level : float
        Of the intervals: t by seed, or that of the shares that go up and down where it is wider.
    directed : frozenset of str
        Cases that earlier verdicts led to; they enter no rate.

    Returns
    -------
    dict
        ``{"method", "level", "pairs": [{"first": {"model", "format"}, "second": {…}, "attributes": […], "n",
        "n_variants", "value", "low", "high", "discordant", "p_value", "p_adjusted"}]}``; the limits are in [-1, 1],
        p values None with fewer than `MIN_SEEDS` seeds.
        ``pairs`` is empty where fewer than two models share a judged variant.
    """
    import numpy as np

    from auditor.measure.multiplicity import holm, resamples_for

    table, subjects = _tabulate(verdicts, directed)
    found = [
        (first, second, attributes, cells)
        for first, second in combinations(subjects, 2)
        if first[0] != second[0] and _comparable(first, second, subjects)
        for attributes, cells in _shared(table[first], table[second]).items()
    ]
    wanted = resamples_for(len(found))
    rows: list[dict[str, Any]] = [
        {
            "first": {"model": first[0], "format": first[1]},
            "second": {"model": second[0], "format": second[1]},
            "attributes": list(attributes),
            **_difference(cells, rng=np.random.default_rng([seed, number]), level=level, wanted=wanted),
        }
        for number, (first, second, attributes, cells) in enumerate(found)
    ]
    for row, adjusted in zip(rows, holm([row["p_value"] for row in rows]), strict=True):
        row["p_adjusted"] = adjusted
    return {"method": METHOD, "level": level, "pairs": rows}


Judged = dict[str, dict[str, tuple[tuple[str, ...], bool]]]  # case -> variant -> attributes, changed


def _tabulate(
    verdicts: Iterable[Any], directed: frozenset[str]
) -> tuple[dict[Subject, Judged], list[Subject]]:
    """What each subject was judged on; subjects in the order of their first verdict."""
    table: dict[Subject, Judged] = {}
    for v in verdicts:
        if v.order < 1 or v.outcome not in ("pass", "violation") or v.case_id in directed:
            continue
        cases = table.setdefault((v.model, v.format), defaultdict(dict))
        cases[v.case_id][v.variant_id] = tuple(v.attributes), v.outcome == "violation"
    return table, list(table)


def _comparable(first: Subject, second: Subject, subjects: Sequence[Subject]) -> bool:
    """Equal formats, or two models that share none (a classifier reads the bare text)."""
    if first[1] == second[1]:
        return True
    formats = [{f for m, f in subjects if m == model} for model in (first[0], second[0])]
    return not formats[0] & formats[1]


Cells = list[tuple[int, int, int]]  # of each seed: changes of the first, of the second, variants


def _shared(first: Judged, second: Judged) -> dict[tuple[str, ...], Cells]:
    """Counts by seed for each attribute set, ``()`` (all of them) first."""
    by_set: dict[tuple[str, ...], Cells] = defaultdict(list)
    for case in sorted(first.keys() & second.keys()):
        counts: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
        for variant in first[case].keys() & second[case].keys():
            attributes, changed = first[case][variant]
            for key in ((), attributes):
                counts[key][0] += changed
                counts[key][1] += second[case][variant][1]
                counts[key][2] += 1
        for key, (x, y, n) in counts.items():
            by_set[key].append((x, y, n))
    ordered = sorted(by_set, key=lambda key: (len(key), key))
    # With one attribute set, "all" would be the same comparison twice.
    kept = ordered if len(ordered) != 2 else ordered[1:]
    return {key: by_set[key] for key in kept}


def _difference(cells: Cells, *, rng: Any, level: float, wanted: int) -> dict[str, Any]:
    """Mean difference of the shares, its interval and its p value."""
    from auditor.measure.multiplicity import RESAMPLES, too_coarse
    from auditor.measure.paired import sign_flip, signed_limits

    d = [(x - y) / n for x, y, n in cells]
    low, high = signed_limits(d, level)
    p_value = None
    if len(d) >= MIN_SEEDS:
        p_value = sign_flip(d, rng=rng)
        if too_coarse(p_value, RESAMPLES, wanted):
            p_value = sign_flip(d, rng=rng, resamples=wanted)
    return {
        "n": len(cells),
        "n_variants": sum(n for _, _, n in cells),
        "value": sum(d) / len(d),
        "low": low,
        "high": high,
        "discordant": sum(abs(x) > 1e-12 for x in d),
        "p_value": p_value,
    }
