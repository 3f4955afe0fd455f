"""Work out what a tabular run asks and what it can show, before the model is asked anything."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from auditor.core.record.rows import ExpectedRows, Range, SeenEffect
from auditor.tables.evaluate import Evaluator
from auditor.tables.method_options import AequitasOptions, SgOptions, ThemisOptions, walks

if TYPE_CHECKING:
    from auditor.tables.tabular_record import Opened

POWER = 0.8
WALKS = "how many rows a walk asks about hangs on what it finds"
ASKED_ONCE = (
    "each row is asked once, and the model is not declared deterministic, so nothing will be called shown "
    "(--replicates 3 tests against its noise)"
)
NOISY = "labels are tested against the noise of repeated answers, and how large it is only the run tells"
TREES = "how many rows its neighbourhoods ask about hangs on the paths that it takes"
WALKED = "every possible row is asked about: the scores are exact"


def expected(opened: Opened) -> ExpectedRows:
    """Return cases, questions, and the smallest share of changes that a plan can show where a model repeats itself."""
    plan, evaluator, options, rows = opened.plan, opened.evaluator, opened.options, len(opened.rows)
    combos, cases, left = len(evaluator.schema.combos), int(evaluator.schema.cases), evaluator.remaining
    if isinstance(options, ThemisOptions):
        made = _themis(evaluator, rows, options, combos)
    elif isinstance(options, AequitasOptions):
        trials, size = options.estimate(evaluator.schema, left)
        drawn = min(trials * size, cases)
        most = min(options.generated or cases, cases, options.global_n * (1 + options.local_n))
        exact = drawn == cases
        made = ExpectedRows(
            cases=Range(at_least=1, at_most=most),
            evaluations=Range(at_most=(most + drawn) * combos, reason=WALKS if options.local_n else ""),
            effect=None if exact else effect(drawn or options.global_n),
            effect_reason="the share is taken over every case there is, so it is exact" if exact else "",
        )
    else:
        assert isinstance(options, SgOptions)
        made = ExpectedRows(
            cases=Range(at_least=1, at_most=min(options.limit, cases)),
            evaluations=Range(at_least=combos, reason=TREES),
            effect_reason="the cases are searched for: they have no rate",
        )
    if opened.asked is not None and not opened.asked.model.deterministic:
        made = replace(made, effect=None, effect_reason=NOISY if plan.replicates > 1 else ASKED_ONCE)
    asked = made.evaluations
    if rows:  # one row is tried first
        least, most_rows = (None if n is None else n + 1 for n in (asked.at_least, asked.at_most))
        asked = replace(asked, at_least=least, at_most=most_rows)
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


def effect(n: int) -> SeenEffect:
    """Return the share of changes of which ``n`` independent cases show one with a probability of 80 %."""
    return SeenEffect(n=n, power=POWER, share=1 - (1 - POWER) ** (1 / n))


def _themis(evaluator: Evaluator, rows: int, settings: ThemisOptions, combos: int) -> ExpectedRows:
    schema, search, printed = evaluator.schema, settings.theta is not None, settings.protocol == "themis"
    own = 0 if search or printed else rows * combos
    if not printed and walks(evaluator, settings):
        every = Range.exactly(int(schema.size) + own)
        return ExpectedRows(cases=Range.exactly(int(schema.cases)), evaluations=every, effect_reason=WALKED)
    left, most = evaluator.remaining, settings.most
    if search:  # each set of columns has as many combinations as the product of its values
        combos = math.prod(1 + card for card in schema.cards[schema.protected_index].tolist()) - 1
    elif left is not None:
        most = min(most, left // combos)
    least = min(settings.least, most)
    reason = ""
    if printed:  # both scores draw rows of their own, the group score for each group
        most, reason = 2 * settings.most, "the paper's stopping rule has no interval that holds after stopping"
    elif not most:
        reason = "the limit leaves no case"
    return ExpectedRows(
        cases=Range(at_least=least, at_most=most),
        evaluations=Range(at_least=None if search else least * combos, at_most=most * combos + own),
        effect=None if reason else effect(least),  # sampling may stop there: no more is certain beforehand
        effect_reason=reason,
    )
