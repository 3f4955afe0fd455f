"""The placebo arm of a run, by seed, and which part of it a claim is compared with."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from auditor.core.types import Estimate, Verdict
from auditor.measure.intervals import korn_graubard
from auditor.measure.multiplicity import benjamini_hochberg
from auditor.measure.paired import RESAMPLES, over_placebo
from auditor.measure.summary import Counts, Key

MIN_SEEDS = 6  # with fewer seeds in both arms no test can tell them apart

Tallied = tuple[int, int]  # changed, judged
Arm = dict[tuple[str, ...], Tallied]  # controlled attributes -> one seed's placebo variants
Placebos = dict[tuple[str, str], dict[str, Arm]]  # (model, format) -> case -> arm


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


def placebo_rates(table: Mapping[Key, Mapping[str, Counts]], placebos: Placebos) -> list[dict[str, Any]]:
    """The ``placebo_rate`` estimates: for each attribute set, of the placebo variants it is compared with."""
    out = []
    tested = frozenset(name for key in table for name in key.attributes)
    for key in sorted((k for k in table if k.directions is None and k.kind is None), key=str):
        arms = placebos.get((key.model, key.format), {})
        cells = [controls_of(arms.get(case, {}), key.attributes, tested) for case in sorted(table[key])]
        given = [cell for cell in cells if cell is not None]
        if given:
            out.append(_row(key, _rate(given, len(cells) - len(given))))
    return out


def placebo_hidden(
    verdicts: Iterable[Verdict],
    placebos: Iterable[Verdict],
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> list[dict[str, Any]]:
    """How often joint placebo edits look hidden, and whether joint edits do so more often on the same seeds.

    Noise and any two small effects make some joint changes look hidden, so their share says little without this
    one. Both arms are counted by the same rule: once, without asking again.

    Parameters
    ----------
    verdicts, placebos : iterable of Verdict
        With ``hidden`` filled in; a verdict without (a part was invalid or not judged) is left out. Placebo
        variants are those of order 0; ``attributes`` say what they copy.
    rng : numpy.random.Generator
        For the tests.
    level, resamples
        As in `over_placebo`.

    Returns
    -------
    list of dict
        For each model, format and set of two and more attributes with a placebo arm: ``hidden`` and ``placebo``
        (`Estimate`, plain), ``over`` (`OverPlacebo`, plain, or None with fewer than 6 seeds in both arms), and
        ``p_adjusted`` (Benjamini–Hochberg over the list).

    """
    real, dummy = _hidden_cells(verdicts), _hidden_cells(placebos)
    rows: list[dict[str, Any]] = []
    for key in sorted(set(real) & set(dummy)):
        cases = sorted(set(real[key]) & set(dummy[key]))
        if not cases:
            continue
        first = [real[key][case] for case in cases]
        second = [dummy[key][case] for case in cases]
        over = None
        if len(cases) >= MIN_SEEDS:
            over = over_placebo(first, second, rng=rng, level=level, resamples=resamples)
        rows.append(
            {
                "model": key[0],
                "format": key[1],
                "attributes": list(key[2]),
                "hidden": dataclasses.asdict(_rate(first, len(real[key]) - len(cases))),
                "placebo": dataclasses.asdict(_rate(second, len(real[key]) - len(cases))),
                "over": None if over is None else dataclasses.asdict(over),
            }
        )
    adjusted = benjamini_hochberg([None if row["over"] is None else row["over"]["p_value"] for row in rows])
    return [row | {"p_adjusted": p} for row, p in zip(rows, adjusted, strict=True)]


def _hidden_cells(verdicts: Iterable[Verdict]) -> dict[tuple[str, str, tuple[str, ...]], dict[str, Tallied]]:
    """Hidden and settled joint variants by model, format and attributes, then by seed."""
    out: dict[tuple[str, str, tuple[str, ...]], dict[str, Tallied]] = defaultdict(dict)
    for v in verdicts:
        if len(v.attributes) > 1 and v.hidden is not None:
            cell = out[v.model, v.format, v.attributes]
            hidden, settled = cell.get(v.case_id, (0, 0))
            cell[v.case_id] = hidden + v.hidden, settled + 1
    return out


def by_attributes(verdicts: Sequence[Verdict]) -> dict[tuple[str, ...], Estimate]:
    """How often the placebo variants of one model changed the answer, by the attributes they copy."""
    cells: dict[tuple[str, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for v in verdicts:
        if v.outcome in ("pass", "violation"):
            cell = cells[v.attributes][v.case_id]
            cell[0] += v.outcome == "violation"
            cell[1] += 1
    return {
        key: _rate([(x, n) for x, n in cells[key].values()], 0)
        for key in sorted(cells, key=lambda a: (len(a), a))
    }


def _rate(cells: Sequence[Tallied], skipped: int) -> Estimate:
    return korn_graubard([x for x, _ in cells], [n for _, n in cells], n_skipped=skipped)


def _row(key: Key, estimate: Estimate) -> dict[str, Any]:
    return {
        "name": "placebo_rate",
        "model": key.model,
        "format": key.format,
        "attributes": list(key.attributes),
        "directions": None,
        "kind": None,
        "estimate": dataclasses.asdict(estimate),
    }
