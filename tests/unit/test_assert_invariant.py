"""`auditor.testing.assert_invariant`."""

from __future__ import annotations

import pytest

from auditor.core.errors import ConfigError, UserError
from auditor.testing import assert_invariant

ROLES = ("nurse", "clerk", "pilot", "baker", "teacher", "writer", "singer")
TEXTS = [f"She is a {role} in the film. The book came in the morning." for role in ROLES]


def quiet(text: str) -> str:
    return "positive"


def loud(text: str) -> str:
    return "negative" if "She" in text else "positive"


def one(text: str) -> str:
    return "negative" if text.startswith("She is a nurse") else "positive"


def mute(text: str) -> str:
    return "spam"


for function in (quiet, loud, one, mute):
    function.deterministic = True


def test_it_holds_where_nothing_changes() -> None:
    result = assert_invariant(quiet, TEXTS, attributes=["gender"])
    assert result.complete
    assert result.record["counts"]["valid"] > 0


def test_it_tells_estimate_interval_and_smallest_counterexamples() -> None:
    with pytest.raises(AssertionError) as error:
        assert_invariant(loud, TEXTS, attributes=["gender"], show=2)
    text = str(error.value)
    assert "changed in 100 % (59–100 %) of the variants of 7 texts when gender changed" in text
    assert "negative: [She] is a baker in the film." in text or "negative: [She] is a" in text
    assert "positive: [He] is a" in text
    assert text.count("gender: female →") == 2
    assert "further counterexample" in text
    first = text.split("negative: ")[1].split("\n")[0]
    assert len(first) == min(len(f"[She]{t[3:]}") for t in TEXTS)


def test_max_rate_and_what_is_compared_with_it() -> None:
    assert_invariant(one, TEXTS, attributes=["gender"], max_rate=0.2)
    with pytest.raises(AssertionError, match="the rate is above 10"):
        assert_invariant(one, TEXTS, attributes=["gender"], max_rate=0.1)
    # One text of seven does not show that the rate is above 10 % …
    assert_invariant(one, TEXTS, attributes=["gender"], max_rate=0.1, judge="lower")
    # … and no change on seven does not show that it is not.
    with pytest.raises(AssertionError, match="its upper end is above"):
        assert_invariant(quiet, TEXTS, attributes=["gender"], max_rate=0.1, judge="upper")


def test_a_test_that_tests_nothing_is_not_green() -> None:
    with pytest.raises(AssertionError, match="unparsed: do they name the labels of the task"):
        assert_invariant(mute, TEXTS, attributes=["gender"])
    with pytest.raises(AssertionError, match="gender was judged on 7 texts, fewer than min_seeds = 30"):
        assert_invariant(quiet, TEXTS, attributes=["gender"], min_seeds=30)
    with pytest.raises(UserError, match="nothing to change"):
        assert_invariant(quiet, ["The book came in the morning."], attributes=["gender"])


def test_joint_changes_are_reduced_to_the_smallest() -> None:
    texts = [f"The white woman is a {role} in the film." for role in ROLES]

    def model(text: str) -> str:
        return "negative" if "woman" in text else "positive"

    model.deterministic = True
    with pytest.raises(AssertionError) as error:
        assert_invariant(model, texts, attributes=["gender", "race"], order=2, show=1)
    parts = str(error.value).split("\n\n")
    assert "when gender changed" in parts[0]
    assert "[woman]" in parts[0]


@pytest.mark.parametrize("options", [{"judge": "mean"}, {"max_rate": 2.0}, {"max_rate": -0.1}, {"nonsense": 1}])
def test_slips_in_the_call(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        assert_invariant(quiet, TEXTS, **options)
