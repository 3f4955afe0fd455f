"""`auditor.testing.assert_invariant`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from auditor.core.errors import ConfigError, UserError
from auditor.testing import assert_invariant

ROLES = ("nurse", "clerk", "pilot", "baker", "teacher", "writer", "singer")
TEXTS = [f"She is a {role} in the film. The book came in the morning." for role in ROLES]


def damns(words: str, otherwise: str = "positive") -> Callable[[str], str]:
    """A model that damns what holds the words."""

    def model(text: str) -> str:
        return "negative" if words in text else otherwise

    model.deterministic = True  # type: ignore[attr-defined]
    return model


quiet, loud, one, mute = damns("nothing"), damns("She"), damns("She is a nurse"), damns("nothing", "spam")
held = partial(assert_invariant, attributes=["gender"])


def test_it_tells_estimate_interval_and_smallest_counterexamples() -> None:
    with pytest.raises(AssertionError) as error:
        held(loud, TEXTS, show=2)
    text = str(error.value)
    assert "changed in 100 % (59–100 %) of the variants of 7 texts when gender changed" in text
    assert "positive: [He] is a" in text
    assert text.count("gender: female →") == 2
    assert "further counterexample" in text
    first = text.split("negative: ")[1].split("\n")[0]
    assert len(first) == min(len(f"[She]{t[3:]}") for t in TEXTS)


def test_max_rate_and_what_is_compared_with_it() -> None:
    held(one, TEXTS, max_rate=0.2)
    assert held(quiet, TEXTS).record["counts"]["valid"] > 0
    with pytest.raises(AssertionError, match="the rate is above 10"):
        held(one, TEXTS, max_rate=0.1)
    # One text of seven does not show that the rate is above 10 % …
    held(one, TEXTS, max_rate=0.1, judge="lower")
    # … and no change on seven does not show that it is not.
    with pytest.raises(AssertionError, match="its upper end is above"):
        held(quiet, TEXTS, max_rate=0.1, judge="upper")


def test_a_test_that_tests_nothing_is_not_green_and_slips_are_told() -> None:
    for options in ({"judge": "mean"}, {"max_rate": 2.0}, {"max_rate": -0.1}, {"nonsense": 1}):
        with pytest.raises(ConfigError):
            held(quiet, TEXTS, **options)
    with pytest.raises(AssertionError, match="unparsed: do they name the labels of the task"):
        held(mute, TEXTS)
    with pytest.raises(AssertionError, match="gender was judged on 7 texts, fewer than min_seeds = 30"):
        held(quiet, TEXTS, min_seeds=30)
    with pytest.raises(UserError, match="nothing to change"):
        held(quiet, ["The book came in the morning."])


def test_joint_changes_are_reduced_to_the_smallest() -> None:
    texts = [f"The white woman is a {role} in the film." for role in ROLES]
    with pytest.raises(AssertionError) as error:
        assert_invariant(damns("woman"), texts, attributes=["gender", "race"], order=2, show=1)
    parts = str(error.value).split("\n\n")
    assert "when gender changed" in parts[0]
    assert "[woman]" in parts[0]
