"""The placebo arm of a run, by seed, and which part of it a claim is compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from auditor.stats.intervals import korn_graubard
from auditor.stats.paired import OverPlacebo, over_placebo
from auditor.stats.summary import Counts
from auditor.types import Estimate, Verdict

MIN_SEEDS = 6  # with fewer seeds in both arms no test can tell them apart

Tallied = tuple[int, int]  # changed, judged
Arm = dict[tuple[str, ...], Tallied]  # controlled attributes -> one seed's placebo variants
Placebos = dict[tuple[str, str], dict[str, Arm]]  # (model, format) -> case -> arm


class Compared(NamedTuple):
    """A claim's seeds beside their placebo variants."""

    rate: Estimate  # how often placebo edits changed the label
    over: OverPlacebo | None  # None where too few seeds have both arms
    seeds: int  # with both arms


def placebo_arm(verdicts: Iterable[Verdict]) -> Placebos:
    """Count the verdicts of placebo variants by seed and by the attributes whose edits they copy.

    Verdicts that are neither pass nor violation are left out.
    """
    out: Placebos = defaultdict(lambda: defaultdict(dict))
    for v in verdicts:
        if v.outcome in ("pass", "violation"):
            arm = out[v.model, v.format][v.case_id]
            changed, judged = arm.get(v.attributes, (0, 0))
            arm[v.attributes] = changed + (v.outcome == "violation"), judged + 1
    return out


def controls_of(arm: Arm, attributes: Sequence[str], tested: frozenset[str]) -> Tallied | None:
    """The placebo variants of one seed that stand against edits of ``attributes``.

    Those that copy edits of just these attributes; else, for a joint change, those of its parts; else neutral
    ones, which copy none of the ``tested`` attributes. None where the seed has none of them.

    Examples
    --------
    >>> controls_of({("a",): (1, 2), ("b",): (0, 2)}, ("a", "b"), frozenset("ab"))
    (1, 4)
    """
    own = arm.get(tuple(attributes))
    if own is not None:
        return own
    parts = [cell for key, cell in arm.items() if set(key) < set(attributes)]
    chosen = parts or [cell for key, cell in arm.items() if not tested & set(key)]
    if not chosen:
        return None
    return sum(x for x, _ in chosen), sum(n for _, n in chosen)


def compare(
    cells: Mapping[str, Counts],
    arms: Mapping[str, Arm],
    attributes: Sequence[str],
    tested: frozenset[str],
    *,
    rng: np.random.Generator,
    level: float,
    resamples: int,
) -> Compared | None:
    """One claim against its placebo arm; None where no seed has one."""
    pairs: list[tuple[Tallied, Tallied]] = []
    for case_id in sorted(cells):
        cell = cells[case_id]
        placebo = controls_of(arms.get(case_id, {}), attributes, tested)
        if cell.judged and placebo is not None:
            pairs.append(((cell.violations, cell.judged), placebo))
    if not pairs:
        return None
    first, second = [a for a, _ in pairs], [p for _, p in pairs]
    judged = sum(cell.judged > 0 for cell in cells.values())
    over = None
    if len(pairs) >= min(MIN_SEEDS, judged / 2):
        over = over_placebo(first, second, rng=rng, level=level, resamples=resamples)
    rate = korn_graubard([x for x, _ in second], [n for _, n in second])
    return Compared(rate, over, len(pairs))
