"""Words that stand out: planted ones are found, chance makes few, and each case counts once."""

from __future__ import annotations

import random

from judged import shape, table_of

from auditor.contrib.astraea.outliers import Tally, diagnose, of_swaps, of_terms
from auditor.core.types import Verdict
from auditor.perturb.grammar.cases import GrammarSuite


def tally(token: str, n: int, errors: int, group: str = "") -> Tally:
    return Tally(family="job", token=token, group=group, n=n, errors=errors)


def family(rng: random.Random, k: int, n: int, rate: float, planted: float | None = None) -> list[Tally]:
    rates = [rate] * (k - 1) + [rate if planted is None else planted]
    return [tally(f"t{i:02d}", n, sum(rng.random() < r for _ in range(n))) for i, r in enumerate(rates)]


def test_a_planted_token_ranks_first_and_stands_out() -> None:
    rng = random.Random(1)
    tokens, families = diagnose(family(rng, 20, 150, 0.04, planted=0.25))
    assert tokens[0].token == "t19"
    assert tokens[0].stands_out
    assert tokens[0].anomalous
    assert tokens[0].low < tokens[0].rate < tokens[0].high
    assert [t.token for t in tokens if t.stands_out] == ["t19"]
    assert families[0].reason == ""


def test_without_a_difference_tokens_seldom_stand_out() -> None:
    rng = random.Random(2)
    runs = [diagnose(family(rng, 14, 60, 0.1))[0] for _ in range(60)]
    false = sum(any(t.stands_out for t in tokens) for tokens in runs)
    assert false <= 6  # 5 % of 60, and what chance adds
    # The published index alone marks something in most of the same runs.
    assert sum(any(t.anomalous for t in tokens) for tokens in runs) > 20


def verdict(case: str, number: int, outcome: str, order: int = 1) -> Verdict:
    attributes = ("gender", "race")[:order]
    return Verdict(case_id=case, variant_id=f"{case}.v{number}", order=order, attributes=attributes, outcome=outcome)


def test_terms_count_each_case_once_and_joint_variants_not_at_all() -> None:
    gender, race = ("gender", "male", "female"), ("race", "white", "black")
    she = shape(("gender",), gender, words=["she"])
    about = {
        "c1.v0": shape(("gender",), gender, words=["she", "sister"]),
        "c1.v1": she,
        "c1.v2": shape(("gender", "race"), gender, race, words=["black", "she"]),
        "c2.v0": she,
        "c2.v1": she,
    }
    told = [
        verdict("c1", 0, "pass"), verdict("c1", 1, "violation"), verdict("c1", 2, "violation", order=2),
        verdict("c2", 0, "pass"), verdict("c2", 1, "skipped"),
    ]  # fmt: skip
    ((rows,),) = (of_terms(table_of(told, about)).values(),)
    assert {t.token: (t.n, t.errors) for t in rows} == {"she": (2, 1), "sister": (1, 0)}


def test_a_term_is_charged_only_with_the_variants_it_was_put_into() -> None:
    suite = GrammarSuite(grammar="sentiment:gendered-occupation", cases=40, generation="rand", order=1, per_case=None)
    cases = list(suite.ask(40, random.Random(0)))
    told = [
        Verdict(
            case_id=case.id, variant_id=variant.id, order=1, attributes=variant.attributes,
            outcome="violation" if "registered nurse" in str(variant.input).lower() else "pass",
        )
        for case in cases
        for variant in case.variants
    ]  # fmt: skip
    rows = of_swaps(suite.grammar, cases, told)
    assert {t.token for t in rows if t.errors} == {"the registered nurse"}
    nurse = next(t for t in rows if t.errors)
    assert nurse.errors == nurse.n > 5
    assert (nurse.family, nurse.group) == ("occupation", "mostly_women")
    assert diagnose(rows)[0][0].stands_out


def test_a_family_in_which_most_rates_are_equal_has_no_index() -> None:
    found, (family,) = diagnose([*(tally(f"w{i}", 10 * i, 3 * i) for i in range(3, 15)), tally("odd", 100, 90)])
    assert [token.index for token in found] == [None] * 13
    assert family.mad == 0.0


def test_a_word_with_fewer_changes_than_its_family_does_not_stand_out() -> None:
    rows = [tally(f"w{i}", 200, 100) for i in range(8)]
    found = {t.token: t for t in diagnose([*rows, tally("low", 200, 20), tally("high", 200, 180)])[0]}
    assert (found["low"].q or 1) < 0.05
    assert not found["low"].stands_out
    assert found["high"].stands_out
