"""What a tabular run will ask and what it can show, worked out before the model is asked anything."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from auditor.core.record.rows import METHODS, ExpectedRows, Range, SeenEffect
from auditor.core.shown import plural
from auditor.measure.intervals import beta_limits, confidence_sequence
from auditor.tables.evaluate import Evaluator
from auditor.tables.method_options import ESTIMATE_SHARE, FEWEST, AequitasOptions, SgOptions, ThemisOptions, walks
from auditor.tables.tabular_plan import TabularPlan

if TYPE_CHECKING:
    from auditor.tables.tabular_record import Opened

SLICE_CASES = 20_000
SLICE_ROWS = 4_000_000  # that slices may cost
POWER, LEVEL = 0.8, 0.95  # LEVEL: of the share that Aequitas estimates
WALKS = "how many rows a walk asks about hangs on what it finds"
ASKED_ONCE = (
    "each row is asked once, and the model is not declared to repeat itself, so nothing will be called shown "
    "(--replicates 3 tests against its noise)"
)
NOISY = "labels are tested against the noise of repeated answers, and how large it is only the run tells"
TREES = "how many rows its neighbourhoods ask about hangs on the paths that it takes"
WALKED = "every possible row is asked about: the scores are exact"


def expected(opened: Opened) -> ExpectedRows:
    """Return cases, questions and the smallest share of changes that a plan can show.

    Where the model is not declared to repeat itself, no effect is promised.
    """
    plan, evaluator, rows, options = opened.plan, opened.evaluator, len(opened.rows), opened.options
    combos = len(evaluator.schema.combos)
    if isinstance(options, ThemisOptions):
        made = _themis(evaluator, rows, options, combos)
    elif isinstance(options, AequitasOptions):
        made = _aequitas(evaluator, options, combos)
    else:
        assert isinstance(options, SgOptions)
        made = ExpectedRows(
            cases=Range(at_least=1, at_most=min(options.limit, int(evaluator.schema.cases))),
            evaluations=Range(at_least=combos, reason=TREES),
            effect_reason="the cases are searched for: they have no rate",
        )
    if opened.asked is not None and not opened.asked.model.deterministic:
        made = replace(made, effect=None, effect_reason=NOISY if plan.replicates > 1 else ASKED_ONCE)
    left, asked = evaluator.remaining, made.evaluations
    if rows:  # one row is tried first
        least, most = (None if n is None else n + 1 for n in (asked.at_least, asked.at_most))
        asked = replace(asked, at_least=least, at_most=most)
    if left is not None and (asked.at_most is None or asked.at_most > left):
        asked = replace(asked, at_most=left, reason="the limit")
    limits = {name: getattr(plan, name) for name in ("max_evaluations", "max_calls", "max_cost", "max_seconds")}
    return replace(
        made,
        combinations=combos,
        given_rows=rows,
        evaluations=asked,
        limits={name: value for name, value in limits.items() if value is not None},
        calls_at_most=asked.at_most * plan.replicates if plan.served and asked.at_most is not None else None,
    )


def announced(plan: TabularPlan, outlook: ExpectedRows) -> list[str]:
    """What a run says before it asks: the method, and what an estimate of the share costs beforehand."""
    lines = [f"{METHODS[plan.method]} on {plan.model}"]
    if drawn := outlook.estimate_cases:
        rows = drawn * outlook.combinations
        lines.append(
            f"first the share, from {plural(drawn, 'uniform case')} or {plural(rows, 'row')} "
            "(--set trials=0: from the search's own first rows)"
        )
    return lines


def effect(n: int, level: float, *, always_valid: bool) -> SeenEffect:
    """Return what ``n`` independent cases can show and bound.

    One change shows a share above 0, so ``1 - 0.2 ** (1 / n)`` is shown with a probability of 80 %. ``bound`` is the
    upper end of the interval without a change, ``half_width`` that of the widest interval.

    Examples
    --------
    >>> seen = effect(1000, 0.99, always_valid=False)
    >>> round(seen.share, 5), round(seen.bound, 5), round(seen.half_width, 5)
    (0.00161, 0.00528, 0.04115)
    """

    def interval(changes: int) -> tuple[float, float]:
        return confidence_sequence(changes, n, level) if always_valid else beta_limits(changes / n, n, level)

    low, high = interval(n // 2)
    return SeenEffect(
        n=n,
        level=level,
        power=POWER,
        share=1 - (1 - POWER) ** (1 / n),
        bound=interval(0)[1],
        half_width=(high - low) / 2,
    )


def _themis(evaluator: Evaluator, rows: int, settings: ThemisOptions, combos: int) -> ExpectedRows:
    schema, search, printed = evaluator.schema, settings.theta is not None, settings.protocol == "themis"
    cards = schema.cards[schema.protected_index].tolist()
    sets = Range(at_least=1, at_most=2 ** len(cards) - 1) if search else None
    own = 0 if search or printed else rows * combos
    if not printed and walks(evaluator, settings):
        every = Range.exactly(int(schema.size) + own)
        return ExpectedRows(sets=sets, cases=Range.exactly(int(schema.cases)), evaluations=every, effect_reason=WALKED)
    left, most = evaluator.remaining, settings.most
    if search:  # each set of columns has as many combinations as the product of its values
        combos = math.prod(1 + card for card in cards) - 1
    elif left is not None:
        most = min(most, left // combos)
    least = min(settings.least, most)
    seen, reason = None, ""
    if printed:  # both scores draw rows of their own, the group score for each group
        most, reason = 2 * settings.most, "the paper's stopping rule has no interval that holds after stopping"
    elif not most:
        reason = "the limit leaves no case"
    else:  # Sampling may stop as soon as it is allowed to: no more is certain beforehand.
        seen = effect(least, settings.confidence, always_valid=True)
    return ExpectedRows(
        sets=sets,
        cases=Range(at_least=least, at_most=most),
        evaluations=Range(at_least=None if search else least * combos, at_most=most * combos + own),
        effect=seen,
        effect_reason=reason,
    )


def _aequitas(evaluator: Evaluator, read: AequitasOptions, combos: int) -> ExpectedRows:
    cases = int(evaluator.schema.cases)
    trials, size = read.estimate(evaluator.schema)
    drawn, left = trials * size, evaluator.remaining
    if left is not None:
        rows = int(left * ESTIMATE_SHARE) // combos
        drawn = 0 if rows < min(FEWEST, cases) else min(drawn, rows)
    exact = 0 < cases <= drawn
    drawn = min(drawn, cases)
    most = min(read.generated or cases, cases, read.global_n * (1 + read.local_n))
    seen, reason = None, ""
    if exact:
        reason = "the share is taken over every case there is, so it is exact"
    else:
        seen = effect(drawn or read.global_n, LEVEL, always_valid=False)
    return ExpectedRows(
        estimate_cases=drawn,
        cases=Range(at_least=1, at_most=most),
        evaluations=Range(at_most=(most + drawn) * combos, reason=WALKS if read.local_n else ""),
        effect=seen,
        effect_reason=reason,
    )
