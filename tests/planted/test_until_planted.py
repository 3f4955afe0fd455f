"""``--until-decided`` on simulated answers to real cases: how often looking early errs, and what it saves.

The runs are those of ``benchmarks/until.py``, which measures them at more places.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from until import BUDGET, Ended, Setting, run

from auditor.measure.intervals import LOOKS

pytestmark = pytest.mark.slow
RUNS = 60  # an error of 20 % is still seen in 7 of 8 such tests
ORDERS = 2  # of the texts: each takes seconds to lay out
ERRORS = int(binom.isf(0.003, RUNS, 0.05))  # more come by chance in 3 of 1,000 settings where 5 % is allowed


def ended(setting: Setting, runs: int = RUNS) -> list[Ended]:
    return [run(setting, n, ORDERS) for n in range(runs)]


@pytest.mark.parametrize("scores", [False, True], ids=["labels", "log odds"])
def test_no_effect_is_shown_at_any_look_in_no_more_runs_than_5_percent_explains(scores: bool) -> None:
    every = ended(Setting(name="none", scores=scores))
    assert sum(e.claim.verdict == "shown" for e in every) <= ERRORS
    assert sum(e.looks == len(LOOKS) for e in every) >= RUNS - ERRORS  # the others looked as often as they could


def test_words_that_differ_by_chance_are_no_effect_of_the_group_at_any_look() -> None:
    every = ended(Setting(name="words", word=0.1, scores=True))
    assert sum(e.claim.verdict == "shown" for e in every) <= ERRORS


def test_an_effect_of_5_points_takes_a_part_of_the_calls() -> None:
    every = ended(Setting(name="5 %", effect=0.05, scores=True), 20)
    assert all(e.claim.verdict == "shown" for e in every)
    assert np.mean([e.calls for e in every]) < 0.5 * BUDGET


def test_a_difference_of_delta_is_bounded_at_any_look_in_no_more_runs_than_5_percent_explains() -> None:
    every = ended(Setting(name="delta", effect=0.0515, delta=0.05))
    assert sum(e.claim.verdict == "bounded" for e in every) <= ERRORS
