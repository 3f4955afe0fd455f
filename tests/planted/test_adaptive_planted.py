"""What is planted is found with fewer calls, and what is not there is not claimed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import fmean, stdev
from typing import Any

from auditor import audit
from auditor.contrib.adaptive.suite import AdaptiveSuite
from auditor.core.types import Answer, Case, SourceText, Verdict, digest
from auditor.measure.interactions import mark_hidden
from auditor.measure.intervals import clopper_pearson
from auditor.perturb.dictionaries import load
from auditor.perturb.mutation import MutationSuite
from auditor.tasks.oracles import LabelOracle
from auditor.testing.planted import Planted

DICTIONARIES = [load("gender"), load("nationality")]
PEOPLE = ("British man", "French woman", "German boy", "Italian girl")
Rule = Callable[[str], bool]


def seeds(n: int) -> list[SourceText]:
    return [
        SourceText(id=f"s{i}", text=f"The {PEOPLE[i % 4]} left the film number {i} after an hour.") for i in range(n)
    ]


def women_from_nigeria(text: str) -> bool:
    return "Nigerian" in text and any(w in text for w in ("woman", "girl"))


def one_in_five_women(text: str) -> bool:
    """Changes by itself on some texts: what the rate of single changes is about."""
    number = text.rpartition("number ")[2].partition(" ")[0]
    return int(digest(number)[:4], 16) % 5 == 0 and any(w in text for w in ("woman", "girl"))


class Asked:
    """Answers by a rule, as the loop asks for them; distinct texts are counted."""

    def __init__(self, says: Rule) -> None:
        self.says, self.texts, self.hidden = says, set[str](), 0
        self.shown: dict[str, bool] = {}  # case at random → whether a single change showed

    def _answer(self, text: Any) -> bool:
        self.texts.add(str(text))
        return self.says(str(text))

    def case(self, case: Case) -> list[Verdict]:
        original = self._answer(case.original.input)
        asked = list(case.variants)
        if case.sampling == "directed":
            asked = [v for v in case.variants if not any(v.choices < o.choices for o in case.variants)]
            changed = [v.choices for v in asked if self._answer(v.input) != original]
            asked += [v for v in case.variants if any(v.choices < c for c in changed)]
        answers = {case.original.id: [Answer(status="ok", value=str(original))]}
        for variant in asked:
            answers[variant.id] = [Answer(status="ok", value=str(self._answer(variant.input)))]
        verdicts = mark_hidden(case, LabelOracle().judge(case, answers), {})
        self.hidden += sum(v.hidden is True for v in verdicts)
        if case.sampling == "iid":
            self.shown[case.id] = any(v.order == 1 and v.outcome == "violation" for v in verdicts)
        return verdicts


def run(suite: Any, says: Rule, calls: int) -> Asked:
    told = Asked(says)
    while len(told.texts) < calls:
        cases = suite.ask(1 if suite.name == "mutation.v1" else 64, Random(0))
        if not cases:
            break
        suite.tell([v for case in cases for v in told.case(case)])
    return told


def test_finds_a_planted_interaction_with_fewer_calls() -> None:
    found, plain = [], []
    for seed in (1, 2, 3):
        texts = seeds(200)
        Random(seed).shuffle(texts)
        options: dict[str, Any] = {"seeds": texts, "dictionaries": DICTIONARIES, "seed": seed}
        found.append(run(AdaptiveSuite(**options), women_from_nigeria, 600).hidden)
        plain.append(run(MutationSuite(**options), women_from_nigeria, 600).hidden)
    assert sorted(found)[1] >= 3 * max(1, sorted(plain)[1])


def test_intervals_of_cases_at_random_hold_the_exhaustive_rate() -> None:
    held = 0
    off: list[float] = []
    for seed in range(10):
        options: dict[str, Any] = {"seeds": seeds(100), "dictionaries": DICTIONARIES, "seed": seed, "per_seed": 3}
        whole = run(MutationSuite(**options, order=1), one_in_five_women, 10**6).shown
        drawn = run(AdaptiveSuite(**options), one_in_five_women, 250).shown
        interval = clopper_pearson(sum(drawn.values()), len(drawn))
        rate = sum(whole.values()) / len(whole)
        held += interval.low <= rate <= interval.high
        off.append(sum(drawn.values()) / len(drawn) - rate)
    assert held >= 8  # of 10 at 95 %: fewer by chance in 1 run of 80
    # Nor do they lie to one side, as they would if the search led where changes are.
    assert abs(fmean(off)) < 3 * stdev(off) / len(off) ** 0.5


def test_candidates_of_noise_are_mostly_not_confirmed() -> None:
    model = Planted(wobble=0.12, name="planted-noise")
    result = audit(
        "sentiment", model=model, strategy="adaptive", replicates=1, seed=3, limit=60, attributes=("gender", "race")
    )
    (row,) = result.record["adaptive"]["models"]
    assert row["repeated"] == row["candidates"] >= 5
    assert row["confirmed"] <= 0.2 * row["candidates"]
    # To come again is not to be shown, which takes placebo edits that reach less far.
    assert not any(f.kind == "hidden" and f.verdict == "shown" for f in result.findings)


def test_candidates_of_a_planted_interaction_are_mostly_confirmed() -> None:
    """A rule that confirms nothing would pass the test above as well."""
    model = Planted(interaction={"woman|girl", "nigerian"}, wobble=0.005, base="constant", name="planted-both")
    candidates = confirmed = 0
    for seed in (1, 2, 3):
        result = audit(
            "sentiment",
            model=model,
            data=[one.text for one in seeds(100)],
            strategy="adaptive",
            replicates=1,
            seed=seed,
            max_calls=1500,
            attributes=("gender", "nationality"),
        )
        (row,) = result.record["adaptive"]["models"]
        assert row["repeated"] == row["candidates"]
        candidates += row["candidates"]
        confirmed += row["confirmed"]
    assert candidates >= 15
    assert confirmed >= 0.5 * candidates
