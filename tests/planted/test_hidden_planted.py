"""Planted effects, from synthetic answers through oracle, lattice and statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from judged import edit

from auditor.contrib.hinter.measures import measures, mutants
from auditor.core.types import Answer, Case, Check, Variant, Verdict
from auditor.measure.findings import hidden_by_chance
from auditor.measure.interactions import mark_hidden
from auditor.measure.observations import Observations
from auditor.measure.rates import estimates, noise_floor
from auditor.run.state import Observed
from auditor.tasks.oracles import LabelOracle

NAMES = ("body", "gender", "race")
Rule = Callable[[int, frozenset[str]], bool]  # case number, changed attributes -> favourable?


def make_cases(n: int, order: int, choices: int = 2) -> list[Case]:
    """``n`` cases; every set of ``order`` attributes, with ``choices`` target words each."""
    cases = []
    for number in range(n):
        variants = []
        for size in range(1, order + 1):
            for names in combinations(NAMES[:order], size):
                for word in range(choices):
                    to = (f"y{word}", ("a", f"t{word}"))
                    edits = tuple(edit("x", *to, at=10 * NAMES.index(name), attribute=name) for name in names)
                    variants.append(Variant(id=f"c{number}.v{len(variants)}", input="", edits=edits))
        original = Variant(id=f"c{number}.o", input="")
        cases.append(Case(id=f"c{number}", suite="s", original=original, variants=tuple(variants)))
    return cases


class Audit:
    """One model's answers to all cases, judged."""

    def __init__(
        self, cases: list[Case], rule: Rule, *, wobble: float = 0.0, replicates: int = 1, seed: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.cases, self.verdicts = cases, list[Verdict]()
        self.table = Observations()
        self.checks = {
            case.id: {v.id: Check(variant_id=v.id, check="k", status="valid") for v in case.variants} for case in cases
        }
        for number, case in enumerate(cases):
            labels = {
                variant.id: [
                    "yes" if rule(number, frozenset(variant.attributes)) ^ bool(rng.random() < wobble) else "no"
                    for _ in range(replicates)
                ]
                for variant in (case.original, *case.variants)
            }
            answers = {key: [Answer(status="ok", value=x) for x in value] for key, value in labels.items()}
            judged = mark_hidden(case, LabelOracle().judge(case, answers), self.checks[case.id])
            rows = {v.id: self.table.version(case.id, v.edits, v.id) for v in (case.original, *case.variants)}
            for id, row in rows.items():
                self.table.answers(row, model="planted", format="bare", answers=answers[id])
            for v in judged:
                self.verdicts.append(replace(v, model="planted", format="bare"))
                self.table.judge(rows[v.variant_id], self.verdicts[-1])

    def by_order(self, order: int) -> list[Verdict]:
        return [v for v in self.verdicts if v.order == order]

    def rates(self, name: str) -> dict[tuple[str, ...], float]:
        return {
            tuple(row["attributes"]): row["estimate"]["value"]
            for row in estimates(self.table)
            if row["name"] == name and row["directions"] is None and row["kind"] is None
        }


def interaction(case: int, changed: frozenset[str]) -> bool:
    """Only gender and body together matter, on every third case."""
    return not (case % 3 == 0 and {"gender", "body"} <= changed)


def additive(case: int, changed: frozenset[str]) -> bool:
    """A score that each attribute lowers by more than any case's distance to the threshold."""
    return 0.5 + 0.1 * (case % 3) - 1.0 * len(changed & {"gender", "body"}) > 0


def test_every_case_of_a_pure_two_way_interaction_is_found_and_no_atomic_violation() -> None:
    audit = Audit(make_cases(30, 2), interaction)
    assert not [v for v in audit.by_order(1) if v.outcome == "violation"]
    planted = {f"c{n}" for n in range(0, 30, 3)}
    joint = audit.by_order(2)
    assert {v.case_id for v in joint if v.hidden} == planted
    assert all(v.hidden is (v.case_id in planted) for v in joint)
    assert audit.rates("hidden_rate") == {("body", "gender"): pytest.approx(1 / 3)}


def test_nothing_is_hidden_under_an_additive_effect() -> None:
    audit = Audit(make_cases(30, 2), additive)
    assert [v for v in audit.by_order(1) if v.outcome == "violation"]
    assert not [v for v in audit.verdicts if v.hidden]
    assert audit.rates("hidden_rate") == {("body", "gender"): 0.0}


def test_a_two_way_interaction_stays_hidden_at_its_own_order_when_three_are_changed() -> None:
    audit = Audit(make_cases(12, 3), interaction)
    hidden = {(v.case_id, v.attributes) for v in audit.verdicts if v.hidden}
    assert hidden == {(f"c{n}", ("body", "gender")) for n in range(0, 12, 3)}
    (third,) = [v for v in audit.by_order(3) if v.variant_id == audit.cases[0].variants[-1].id]
    assert (third.outcome, third.hidden) == ("violation", False)


def test_a_three_way_interaction_is_hidden_at_order_three_only() -> None:
    audit = Audit(make_cases(6, 3), lambda case, changed: len(changed) < 3)
    assert {v.order for v in audit.verdicts if v.outcome == "violation"} == {3}
    assert all(v.hidden for v in audit.by_order(3))


def test_the_papers_counting_agrees_on_planted_effects() -> None:
    for rule, share in ((interaction, 1.0), (additive, 0.0)):
        audit = Audit(make_cases(30, 2), rule)
        observed = Observed(["planted"], parts=True)
        for case in audit.cases:
            observed.add(case, {v.id for v in case.variants})
        for told in audit.verdicts:
            observed.judge(told)
        (found,) = measures(mutants(observed.table, observed.discarded, "planted", ["bare"]))
        assert found.hidden / found.joint.errors == share
        assert found.hidden == sum(v.hidden is True for v in audit.verdicts)


def test_a_wobble_without_an_effect_looks_hidden_as_often_as_chance_says() -> None:
    audit = Audit(make_cases(1500, 2, choices=1), lambda *_: True, wobble=0.02, seed=1)
    expected, _ = hidden_by_chance(2 * 0.02 * 0.98)
    assert audit.rates("hidden_rate")["body", "gender"] == pytest.approx(expected, abs=0.008)
    floor = noise_floor(Audit(make_cases(300, 2), lambda *_: True, wobble=0.02, replicates=3, seed=2).table, "planted")
    assert floor is not None
    assert floor.low <= 2 * 0.02 * 0.98 <= floor.high
