"""What a tabular run will ask and what it can show, worked out before the model is asked anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

from msgspec.structs import replace

from auditor.core.counting import plural
from auditor.core.record.rows import ExpectedRows, Range, SeenEffect
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
Options = Mapping[str, object]  # of the method, with `data` and `profile`


def check_options(plan: TabularPlan, schema: Schema, options: Options) -> None:
    """Refuse options that the method does not have, or that are out of range, before anything is asked."""
    if plan.method == "themis":
        ThemisOptions.of(options)
    elif plan.method == "aequitas":
        AequitasOptions.read(options, schema)
    else:
        SgOptions.of(options)


def expected(
    plan: TabularPlan, schema: Schema, evaluator: Evaluator, given: int, options: Options, *, deterministic: bool = True
) -> ExpectedRows:
    """Cases, questions and the smallest share of changes that the plan can show.

    Parameters
    ----------
    given : int
        Rows of ``--data``.
    deterministic : bool
        Whether the model is declared to repeat itself. Where it is not, no effect is promised.
    """
    combos = len(schema.combos) if len(schema.protected_index) else 1
    told = {"themis": _themis, "aequitas": _aequitas, "sg": _sg}[plan.method](schema, evaluator, given, options, combos)
    if not deterministic:
        told = replace(told, effect=None, effect_reason=NOISY if plan.replicates > 1 else ASKED_ONCE)
    left, rows = evaluator.remaining, told.evaluations
    if given:  # one row is tried first
        rows = replace(rows, at_least=_more(rows.at_least), at_most=_more(rows.at_most))
    if left is not None and (rows.at_most is None or rows.at_most > left):
        rows = replace(rows, at_most=left, reason="the limit")
    limits = {
        "max_evaluations": plan.max_evaluations,
        "max_calls": plan.max_calls,
        "max_cost": plan.max_cost,
        "max_seconds": plan.max_seconds,
    }
    return replace(
        told,
        combinations=combos,
        given_rows=given,
        evaluations=rows,
        again_at_most=0 if evaluator.slow or left is not None else _again(plan, combos),
        limits={name: value for name, value in limits.items() if value is not None},
        calls_at_most=rows.at_most * plan.replicates if plan.served and rows.at_most is not None else None,
    )


def _more(rows: int | None) -> int | None:
    return None if rows is None else rows + 1


def _again(plan: TabularPlan, combos: int) -> int:
    """Rows that a quick model is asked about again: for pairs, and for slices."""
    slices = SLICE_CASES * combos if plan.slices and combos <= SLICE_ROWS // SLICE_CASES else 0
    return PAIRS * combos + slices


def announced(plan: TabularPlan, told: ExpectedRows) -> list[str]:
    """What a run says before it asks: the method, and what an estimate of the share costs beforehand."""
    lines = [f"{METHODS[plan.method][1]} on {plan.model}"]
    if drawn := told.estimate_cases:
        rows = drawn * told.combinations
        lines.append(
            f"first the share, from {plural(drawn, 'uniform case')} or {plural(rows, 'row')} "
            "(--set trials=0: from the search's own first rows)"
        )
    return lines


def effect(n: int, level: float, *, always_valid: bool) -> SeenEffect:
    """What ``n`` independent cases can show and bound.

    A share is shown above 0 by one change among independent cases, so the smallest share that is shown with a
    probability of 80 % is ``1 - 0.2 ** (1 / n)``; ``bound`` is the upper end of the interval where none changes, and
    ``half_width`` that of the widest one.

    Examples
    --------
    >>> seen = effect(1000, 0.99, always_valid=False)
    >>> round(seen.share, 5), round(seen.bound, 5), round(seen.half_width, 5)
    (0.00161, 0.00528, 0.04115)
    """

    def interval(changes: int) -> tuple[float, float]:
        if always_valid:
            return confidence_sequence(changes, n, level)
        found = clopper_pearson(changes, n, level)
        return found.low, found.high

    low, high = interval(n // 2)
    return SeenEffect(
        n=n,
        level=level,
        power=POWER,
        share=1 - (1 - POWER) ** (1 / n),
        bound=interval(0)[1],
        half_width=(high - low) / 2,
    )


def _themis(schema: Schema, evaluator: Evaluator, given: int, options: Options, combos: int) -> ExpectedRows:
    settings = ThemisOptions.of(options)
    if settings.mode == "search":
        return _search(schema, evaluator, settings)
    own, cases = given * combos, int(schema.cases)
    if settings.protocol != "themis" and walks(evaluator, schema, settings):
        rows = Range.exactly(cases * combos + own)
        return ExpectedRows(cases=Range.exactly(cases), evaluations=rows, effect_reason=WALKED)
    left = evaluator.remaining
    most = settings.max_samples if left is None else min(settings.max_samples, left // combos)
    least = min(max(settings.least, 1), most)
    seen, reason = None, ""
    if settings.protocol == "themis":  # both scores draw rows of their own, the group score for each group
        most, own = 2 * settings.max_samples, 0
        reason = "the paper's stopping rule has no interval that holds after stopping"
    elif not most:
        reason = "the limit leaves no case"
    else:  # Sampling may stop as soon as it is allowed to: no more is certain beforehand.
        seen = effect(least, settings.confidence, always_valid=True)
    return ExpectedRows(
        cases=Range(at_least=least, at_most=most),
        evaluations=Range(at_least=least * combos, at_most=most * combos + own),
        effect=seen,
        effect_reason=reason,
    )


def _search(schema: Schema, evaluator: Evaluator, settings: ThemisOptions) -> ExpectedRows:
    cards = [schema.columns[schema.index_of(name)].codes for name in settings.columns or schema.protected]
    sets = Range(at_least=1, at_most=2 ** len(cards) - 1)
    if walks(evaluator, schema, settings):
        cases, rows = Range.exactly(int(schema.cases)), Range.exactly(int(schema.size))
        return ExpectedRows(sets=sets, cases=cases, evaluations=rows, effect_reason=WALKED)
    most = None
    if len(cards) <= MAX_COLUMNS:
        chosen = (part for size in range(1, len(cards) + 1) for part in combinations(cards, size))
        most = sum(min(math.prod(part), settings.max_combos) for part in chosen) * settings.max_samples
    least = min(max(settings.least, 1), settings.max_samples)
    return ExpectedRows(
        sets=sets,
        cases=Range(at_least=min(settings.least, settings.max_samples), at_most=settings.max_samples),
        evaluations=Range(at_most=most),
        effect=effect(least, settings.confidence, always_valid=True),
    )


def _aequitas(schema: Schema, evaluator: Evaluator, given: int, options: Options, combos: int) -> ExpectedRows:
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
    seen, reason = None, ""
    if exact:
        reason = "the share is taken over every case there is, so it is exact"
    elif share := drawn or (read.global_n if walking else 0):
        seen = effect(share, read.level, always_valid=False)
    else:
        reason = "the cases are searched for, and no share is estimated: too few uniform rows within the limits"
    return ExpectedRows(
        estimate_cases=drawn,
        cases=Range(at_least=1, at_most=most),
        evaluations=Range(at_most=(most + drawn) * combos, reason=WALKS if walking and read.local_n else ""),
        effect=seen,
        effect_reason=reason,
    )


def _sg(schema: Schema, evaluator: Evaluator, given: int, options: Options, combos: int) -> ExpectedRows:
    return ExpectedRows(
        cases=Range(at_least=1, at_most=min(SgOptions.of(options).limit, int(schema.cases))),
        evaluations=Range(at_least=combos, reason=TREES),
        effect_reason="the cases are searched for: they have no rate",
    )
