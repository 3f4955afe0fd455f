"""What a tabular run will ask and what it can show, worked out before the model is asked anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from auditor.core.counting import plural
from auditor.measure.confidence_sequences import confidence_sequence
from auditor.measure.intervals import clopper_pearson
from auditor.tables.aequitas import ESTIMATE_SHARE, FEWEST
from auditor.tables.aequitas_options import Options as AequitasOptions
from auditor.tables.asking import SLICE_CASES, SLICE_ROWS
from auditor.tables.evaluate import Evaluator
from auditor.tables.plan import METHODS, TabularPlan
from auditor.tables.schema import Schema
from auditor.tables.sg_options import SgOptions
from auditor.tables.themis_options import ThemisOptions, walks
from auditor.tables.themis_search import MAX_COLUMNS

POWER = 0.8
PAIRS = 80  # cases that are asked again at most, to show pairs
WALKS = "how many rows a walk asks about hangs on what it finds"
ASKED_ONCE = (
    "each row is asked once, and the model is not declared to repeat itself, so nothing will be called shown "
    "(--replicates 3 tests against its noise)"
)
NOISY = "labels are tested against the noise of repeated answers, and how large it is only the run tells"
TREES = "how many rows its neighbourhoods ask about hangs on the paths that it takes"
WALKED = "every possible row is asked about: the scores are exact"
Options = Mapping[str, Any]  # of the method, with `data` and `profile`


def check_options(plan: TabularPlan, schema: Schema, options: Options) -> None:
    """Refuse options that the method does not have, or that are out of range, before anything is asked."""
    if plan.method == "themis":
        ThemisOptions.of(options)
    elif plan.method == "aequitas":
        AequitasOptions.read(options, schema)
    else:
        SgOptions.of(options)


def expected(
    plan: TabularPlan,
    schema: Schema,
    evaluator: Evaluator,
    given: int,
    options: Options,
    *,
    deterministic: bool = True,
) -> dict[str, Any]:
    """Cases, questions and the smallest share of changes that the plan can show.

    Parameters
    ----------
    given : int
        Rows of ``--data``.
    deterministic : bool
        Whether the model is declared to repeat itself. Where it is not, no effect is promised.

    Returns
    -------
    dict
        ``cases`` and ``evaluations`` (``at_least``, ``at_most``; a missing bound has a ``reason``), ``calls_at_most``
        where each row is a call, ``effect`` (see `effect`), ``given_rows``, ``combinations``, ``limits``.
        ``evaluations`` are rows that the model is asked about: cases times combinations of protected values.
    """
    combos = len(schema.combos) if len(schema.protected_index) else 1
    found = {"themis": _themis, "aequitas": _aequitas, "sg": _sg}[plan.method](
        schema, evaluator, given, options, combos
    )
    if not deterministic:
        found |= {"effect": None, "effect_reason": NOISY if plan.replicates > 1 else ASKED_ONCE}
    left = evaluator.remaining
    asked = found["evaluations"]
    if given:  # one row is tried first
        asked |= {k: asked[k] + 1 for k in ("at_least", "at_most") if asked.get(k) is not None}
    if left is not None and (asked.get("at_most") is None or asked["at_most"] > left):
        asked |= {"at_most": left, "reason": "the limit"}
    limits = {
        name: getattr(plan, name) for name in ("max_evaluations", "max_calls", "max_cost", "max_seconds")
    }
    told: dict[str, Any] = {
        "kind": "rows",
        "combinations": combos,
        "given_rows": given,
        **found,
        "again_at_most": 0 if evaluator.slow or left is not None else _again(plan, combos),
        "limits": {name: value for name, value in limits.items() if value is not None},
    }
    if plan.served:
        most = asked.get("at_most")
        told["calls_at_most"] = None if most is None else most * plan.replicates
    return told


def _again(plan: TabularPlan, combos: int) -> int:
    """Rows that a quick model is asked about again: for pairs, and for slices."""
    slices = SLICE_CASES * combos if plan.slices and combos <= SLICE_ROWS // SLICE_CASES else 0
    return PAIRS * combos + slices


def announced(plan: TabularPlan, schema: Schema, told: Mapping[str, Any]) -> list[str]:
    """What a run says before it asks: the method, and what an estimate of the share costs beforehand."""
    lines = [f"{METHODS[plan.method][1]} on {plan.model}"]
    if drawn := told.get("estimate_cases"):
        rows = drawn * told["combinations"]
        lines.append(
            f"first the share, from {plural(drawn, 'uniform case')} or {plural(rows, 'row')} "
            "(--set trials=0: from the search's own first rows)"
        )
    return lines


def effect(n: int, level: float, *, always_valid: bool) -> dict[str, Any]:
    """What ``n`` independent cases can show and bound.

    A share is shown above 0 by one change among independent cases, so the smallest share that is shown with a
    probability of 80 % is ``1 - 0.2 ** (1 / n)``; ``bound`` is the upper end of the interval where none changes, and
    ``half_width`` that of the widest one.

    Examples
    --------
    >>> {k: round(v, 5) for k, v in effect(1000, 0.99, always_valid=False).items() if k != "n"}
    {'level': 0.99, 'power': 0.8, 'share': 0.00161, 'bound': 0.00528, 'half_width': 0.04115}
    """

    def interval(changes: int) -> tuple[float, float]:
        if always_valid:
            return confidence_sequence(changes, n, level)
        found = clopper_pearson(changes, n, level)
        return found.low, found.high

    low, high = interval(n // 2)
    return {
        "n": n,
        "level": level,
        "power": POWER,
        "share": 1 - (1 - POWER) ** (1 / n),
        "bound": interval(0)[1],
        "half_width": (high - low) / 2,
    }


def _exactly(n: int) -> dict[str, int]:
    return {"at_least": n, "at_most": n}


def _no_effect(reason: str) -> dict[str, object]:
    return {"effect": None, "effect_reason": reason}


def _themis(
    schema: Schema, evaluator: Evaluator, given: int, options: Options, combos: int
) -> dict[str, Any]:
    settings = ThemisOptions.of(options)
    if settings.mode == "search":
        return _search(schema, evaluator, settings)
    own, cases = given * combos, int(schema.cases)
    if settings.protocol != "themis" and walks(evaluator, schema, settings):
        rows = _exactly(cases * combos + own)
        return {"cases": _exactly(cases), "evaluations": rows, **_no_effect(WALKED)}
    left = evaluator.remaining
    most = settings.max_samples if left is None else min(settings.max_samples, left // combos)
    least = min(max(settings.least, 1), most)
    told: dict[str, object]
    if settings.protocol == "themis":  # both scores draw rows of their own, the group score for each group
        most, own = 2 * settings.max_samples, 0
        told = _no_effect("the paper's stopping rule has no interval that holds after stopping")
    elif not most:
        told = _no_effect("the limit leaves no case")
    else:  # Sampling may stop as soon as it is allowed to: no more is certain beforehand.
        told = {"effect": effect(least, settings.confidence, always_valid=True)}
    return {
        "cases": {"at_least": least, "at_most": most},
        "evaluations": {"at_least": least * combos, "at_most": most * combos + own},
        **told,
    }


def _search(schema: Schema, evaluator: Evaluator, settings: ThemisOptions) -> dict[str, Any]:
    cards = [schema.columns[schema.index_of(name)].codes for name in settings.columns or schema.protected]
    sets = {"at_least": 1, "at_most": 2 ** len(cards) - 1}
    if walks(evaluator, schema, settings):
        cases, rows = _exactly(int(schema.cases)), _exactly(int(schema.size))
        return {"sets": sets, "cases": cases, "evaluations": rows, **_no_effect(WALKED)}
    most = None
    if len(cards) <= MAX_COLUMNS:
        chosen = (part for size in range(1, len(cards) + 1) for part in combinations(cards, size))
        most = sum(min(math.prod(part), settings.max_combos) for part in chosen) * settings.max_samples
    least = min(max(settings.least, 1), settings.max_samples)
    return {
        "sets": sets,
        "cases": {"at_least": min(settings.least, settings.max_samples), "at_most": settings.max_samples},
        "evaluations": {"at_most": most},
        "effect": effect(least, settings.confidence, always_valid=True),
    }


def _aequitas(
    schema: Schema, evaluator: Evaluator, given: int, options: Options, combos: int
) -> dict[str, Any]:
    read, cases = AequitasOptions.read(options, schema), int(schema.cases)
    walking = read.mode != "population"
    drawn, left = read.trials * read.trial_size, evaluator.remaining
    if left is not None:
        rows = int(left * ESTIMATE_SHARE) // combos
        drawn = 0 if rows < min(FEWEST, cases) else min(drawn, rows)
    exact = 0 < cases <= drawn
    drawn = min(drawn, cases)
    most = min(read.generated or cases, cases)
    if walking:
        most = min(most, read.global_n * (1 + read.local_n))
    asked: dict[str, object] = {"at_most": (most + drawn) * combos}
    if walking and read.local_n:
        asked["reason"] = WALKS
    if exact:
        told = _no_effect("the share is taken over every case there is, so it is exact")
    elif share := drawn or (read.global_n if walking else 0):
        told = {"effect": effect(share, read.level, always_valid=False)}
    else:
        told = _no_effect(
            "the cases are searched for, and no share is estimated: too few uniform rows within the limits"
        )
    return {
        "estimate_cases": drawn,
        "cases": {"at_least": 1, "at_most": most},
        "evaluations": asked,
        **told,
    }


def _sg(schema: Schema, evaluator: Evaluator, given: int, options: Options, combos: int) -> dict[str, Any]:
    return {
        "cases": {"at_least": 1, "at_most": min(SgOptions.of(options).limit, int(schema.cases))},
        "evaluations": {"at_least": combos, "at_most": None, "reason": TREES},
        **_no_effect("the cases are searched for: they have no rate"),
    }
