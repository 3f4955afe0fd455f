"""What a tabular run will ask and what it can show, worked out before the model is asked anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from auditor.core.counting import plural
from auditor.tables.aequitas_options import Options
from auditor.tables.plan import METHODS, TabularPlan
from auditor.tables.sg_options import SgOptions
from auditor.tables.themis_options import ThemisOptions

if TYPE_CHECKING:
    from auditor.tables.evaluate import Evaluator
    from auditor.tables.schema import Schema

POWER = 0.8
PAIRS = 80  # cases that are asked again at most, to show pairs
WALKS = "how many rows a walk asks about hangs on what it finds"
ASKED_ONCE = (
    "each row is asked once, and the model is not declared to repeat itself, so nothing will be called shown "
    "(--replicates 3 tests against its noise)"
)
NOISY = "labels are tested against the noise of repeated answers, and how large it is only the run tells"
TREES = "how many rows its neighbourhoods ask about hangs on the paths that it takes"


def check_options(plan: TabularPlan, schema: Schema, options: Mapping[str, Any]) -> None:
    """Refuse options that the method does not have, or that are out of range, before anything is asked."""
    if plan.method == "themis":
        ThemisOptions.of(options)
    elif plan.method == "aequitas":
        Options.read(options, schema)
    else:
        SgOptions.of(options)


def expected(
    plan: TabularPlan,
    schema: Schema,
    evaluator: Evaluator,
    given: int,
    options: Mapping[str, Any],
    *,
    deterministic: bool = True,
) -> dict[str, Any]:
    """Cases, questions and the smallest share of changes that the plan can show.

    Parameters
    ----------
    evaluator : Evaluator
        Of the model that will be asked; it is not asked here.
    given : int
        Rows of ``--data``.
    options : mapping
        Of the method, with ``data`` and ``profile``.
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
    from auditor.tables.asking import SLICE_CASES, SLICE_ROWS

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
    from auditor.measure.confidence_sequences import confidence_sequence
    from auditor.measure.intervals import clopper_pearson

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


def _themis(
    schema: Schema, evaluator: Evaluator, given: int, options: Mapping[str, Any], combos: int
) -> dict[str, Any]:
    from auditor.tables.themis_options import walks

    settings = ThemisOptions.of(options)
    if settings.mode == "search":
        return _search(schema, evaluator, settings)
    own = given * combos
    if settings.protocol != "themis" and walks(evaluator, schema, settings):
        rows = int(schema.cases) * combos
        return {
            "cases": {"at_least": int(schema.cases), "at_most": int(schema.cases)},
            "evaluations": {"at_least": rows + own, "at_most": rows + own},
            "effect": None,
            "effect_reason": "every possible row is asked about: the scores are exact",
        }
    left = evaluator.remaining
    most = settings.max_samples if left is None else min(settings.max_samples, left // combos)
    least = min(max(settings.least, 1), most)
    if settings.protocol == "themis":  # both scores draw rows of their own, the group score for each group
        most, own = 2 * settings.max_samples, 0
    found: dict[str, Any] = {
        "cases": {"at_least": least, "at_most": most},
        "evaluations": {"at_least": least * combos, "at_most": most * combos + own},
    }
    if settings.protocol == "themis":
        reason = "the paper's stopping rule has no interval that holds after stopping"
        return found | {"effect": None, "effect_reason": reason}
    if not most:
        return found | {"effect": None, "effect_reason": "the limit leaves no case"}
    # Sampling may stop as soon as it is allowed to: no more is certain beforehand.
    return found | {"effect": effect(least, settings.confidence, always_valid=True)}


def _search(schema: Schema, evaluator: Evaluator, settings: ThemisOptions) -> dict[str, Any]:
    from itertools import combinations

    from auditor.tables.themis_options import walks
    from auditor.tables.themis_search import MAX_COLUMNS

    index = [schema.index_of(name) for name in settings.columns or schema.protected]
    sets = 2 ** len(index) - 1
    if walks(evaluator, schema, settings):
        rows, cases = int(schema.size), int(schema.cases)
        return {
            "sets": {"at_least": 1, "at_most": sets},
            "cases": {"at_least": cases, "at_most": cases},
            "evaluations": {"at_least": rows, "at_most": rows},
            "effect": None,
            "effect_reason": "every possible row is asked about: the scores are exact",
        }
    most = None
    if len(index) <= MAX_COLUMNS:
        cards = [int(schema.cards[i]) for i in index]
        sizes = (
            _product(chosen) for size in range(1, len(cards) + 1) for chosen in combinations(cards, size)
        )
        most = sum(min(size, settings.max_combos) for size in sizes) * settings.max_samples
    return {
        "sets": {"at_least": 1, "at_most": sets},
        "cases": {"at_least": min(settings.least, settings.max_samples), "at_most": settings.max_samples},
        "evaluations": {"at_most": most},
        "effect": effect(
            min(max(settings.least, 1), settings.max_samples), settings.confidence, always_valid=True
        ),
    }


def _product(values: tuple[int, ...]) -> int:
    result = 1
    for value in values:
        result *= value
    return result


def _aequitas(
    schema: Schema, evaluator: Evaluator, given: int, options: Mapping[str, Any], combos: int
) -> dict[str, Any]:
    from auditor.tables.aequitas import ESTIMATE_SHARE, FEWEST, POPULATION_DEFAULT

    read = Options.read(options, schema)
    walks = read.mode != "population"
    drawn = read.trials * read.trial_size
    left = evaluator.remaining
    if left is not None:
        rows = int(left * ESTIMATE_SHARE) // combos
        drawn = 0 if rows < min(FEWEST, int(schema.cases)) else min(drawn, rows)
    exact = 0 < int(schema.cases) <= drawn
    drawn = min(drawn, int(schema.cases))
    share = drawn or (read.global_n if walks else 0)
    found: dict[str, Any] = {"estimate_cases": drawn}
    if walks:
        most = min(read.generated or int(schema.cases), read.global_n * (1 + read.local_n), int(schema.cases))
        found["cases"] = {"at_least": 1, "at_most": most}
        found["evaluations"] = {"at_most": (most + drawn) * combos}
        if read.local_n:
            found["evaluations"]["reason"] = WALKS
    else:
        unlimited = read.generated is None and not (read.max_found is None and read.max_seconds is None)
        most = (
            int(schema.cases) if unlimited else min(read.generated or POPULATION_DEFAULT, int(schema.cases))
        )
        found["cases"] = {"at_least": 1, "at_most": most}
        found["evaluations"] = {"at_most": (most + drawn) * combos}
    if exact:
        return found | {
            "effect": None,
            "effect_reason": "the share is taken over every case there is, so it is exact",
        }
    if not share:
        reason = (
            "the cases are searched for, and no share is estimated: too few uniform rows within the limits"
        )
        return found | {"effect": None, "effect_reason": reason}
    return found | {"effect": effect(share, read.level, always_valid=False)}


def _sg(
    schema: Schema, evaluator: Evaluator, given: int, options: Mapping[str, Any], combos: int
) -> dict[str, Any]:

    read = SgOptions.of(options)
    most = min(read.limit, int(schema.cases))
    return {
        "cases": {"at_least": 1, "at_most": most},
        "evaluations": {"at_least": combos, "at_most": None, "reason": TREES},
        "effect": None,
        "effect_reason": "the cases are searched for: they have no rate",
    }
