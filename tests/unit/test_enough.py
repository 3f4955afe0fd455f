"""Claims with too few texts: what they cost the others, what is not asked about, what is said of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged import shape

from auditor.core.plan import Plan
from auditor.core.record import read
from auditor.core.record.measured import Claim
from auditor.core.types import Answer, Progress, SourceText
from auditor.measure.claims import Question
from auditor.measure.findings import claims
from auditor.measure.intervals import holm_in_blocks
from auditor.measure.observations import Observations
from auditor.report.claimed import not_tested
from auditor.run.dryrun import planned
from auditor.testing.planted import Planted

levels = st.floats(1e-9, 1.0)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(levels, st.floats(0.05, 1.0), st.sampled_from("abc")), min_size=1, max_size=12))
def test_blocks_ask_no_less_than_the_share_and_no_more_than_all(rows: list[tuple[float, float, str]]) -> None:
    p_values, weights, blocks = (list(column) for column in zip(*rows, strict=True))
    found = holm_in_blocks(p_values, weights, blocks)
    smallest = min(p * sum(weights) / w for p, w in zip(p_values, weights, strict=True))
    assert min(found) == pytest.approx(min(1.0, smallest))
    assert all(q >= p - 1e-12 for p, q in zip(p_values, found, strict=True))


def test_blocks_keep_the_level() -> None:
    """Under the null, and with one true effect, no more than 5 % of families reject a true null."""
    rng = np.random.default_rng(4)
    weights, blocks = [0.9, 0.05, 0.05, 0.5, 0.5, 1.0], "aaabbc"
    wrong = 0
    for run in range(4_000):
        p_values = rng.random(6)
        if run % 2:
            p_values[0] = 0.0
        found = holm_in_blocks(p_values.tolist(), weights, blocks)
        wrong += min(found[run % 2 :]) < 0.05
    assert wrong <= 250  # 5 % are 200; 250 comes once in 10,000


def observed(texts: dict[str, int], changed: float) -> Observations:
    """Texts about one attribute each; women are answered "no" in a share of them."""
    table = Observations()
    for attribute, count in texts.items():
        for n in range(count):
            turned = n % 2  # the original is about one of them and then about the other
            step = (attribute, "a", "b") if turned else (attribute, "b", "a")
            edited = shape((attribute,), step, words=(f"{step[2]}{n % 18}",))
            for about_a in (True, False):
                original = about_a == bool(turned)
                row = table.version(f"{attribute}{n}") if original else table.shape(f"{attribute}{n}", edited)
                answer = Answer(status="ok", value="no" if about_a and n < changed * count else "yes")
                table.answers(row, model="m", format="p", answers=[answer])
    return table


def net(texts: dict[str, int], changed: float) -> dict[str, Claim]:
    found = claims(observed(texts, changed), Question(outcomes=("yes",)))
    return {c.attribute: c for c in found if c.family == "net"}


def test_attributes_with_few_texts_take_next_to_nothing_from_the_others() -> None:
    alone = net({"gender": 100}, 0.07)["gender"]
    crowd = {"gender": 100} | {f"other{n}": 12 for n in range(6)}
    beside = net(crowd, 0.07)["gender"]
    assert alone.p_adjusted is not None
    assert beside.p_adjusted < 1.4 * alone.p_adjusted, "six attributes would make it seven times as large"
    few = net(crowd, 0.0)["other0"]
    assert few.verdict == "not_determined"
    assert few.why == "too few texts: 12; 11 more texts are needed to show even 30 points"
    assert net({"gender": 100, "age": 10}, 1.0)["age"].verdict == "shown"  # few texts that all differ


TEXTS = [
    *(SourceText(id=f"g{n}", text=f"She said that film number {n} was kind.") for n in range(40)),
    *(SourceText(id=f"n{n}", text=f"The Nigerian actor is in film number {n}.") for n in range(4)),
]


def test_a_hosted_model_is_not_asked_about_attributes_with_few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    said: list[Progress] = []
    slow = Planted()
    slow.fast = False
    hosted = {"task": "sentiment", "models": ("openai:gpt-4o-mini",)}
    parts = planned(Plan.of(hosted | {"max_calls": 600}), models=[slow], seeds=TEXTS, observe=said.append).parts
    assert "gender" in parts.plan.attributes
    assert "nationality" not in parts.plan.attributes
    few = parts.facts["too_few_texts"]
    assert few["nationality"]["texts"] == 4 < few["nationality"]["needed"]
    assert any("nationality (4 of" in event.message for event in said)
    assert next(not_tested(read({"provenance": parts.facts}))).startswith("nationality (4 texts, ")
    named = Plan.of(hosted | {"attributes": ("gender", "nationality")})
    assert planned(named, models=[slow], seeds=TEXTS).parts.plan.attributes == named.attributes
    assert planned(Plan(models=("reviews",)), seeds=TEXTS).parts.plan.attributes is None


def test_a_plan_of_few_texts_says_before_the_first_call_that_it_decides_little() -> None:
    for texts, told in ((12, ["This plan can decide little"]), (30, [])):
        said: list[Progress] = []
        planned(Plan(models=("reviews",)), seeds=TEXTS[:texts], observe=said.append)
        assert [event.message.partition(":")[0] for event in said] == told
