"""Words that stand out: planted ones are found, chance makes few, and each case counts once."""

from __future__ import annotations

import random

from judged import shape, table_of

from auditor.contrib.astraea import outliers as tokens
from auditor.contrib.astraea.outliers import Tally, diagnose, of_swaps, of_terms
from auditor.core.record import read
from auditor.core.types import Verdict
from auditor.measure.observations import Shape
from auditor.report import also_measured as section
from auditor.report.document import Table


def family(rng: random.Random, k: int, n: int, rate: float, planted: float | None = None) -> list[Tally]:
    rates = [rate] * k if planted is None else [rate] * (k - 1) + [planted]
    return [
        Tally(family="job", token=f"t{i:02d}", group="", n=n, errors=sum(rng.random() < r for _ in range(n)))
        for i, r in enumerate(rates)
    ]


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


def words(directions: tuple[tuple[str, str, str], ...], text: str) -> Shape:
    return shape(tuple(sorted({d[0] for d in directions})), *directions, words=text.split(" + "))


def test_terms_count_each_case_once_and_joint_variants_not_at_all() -> None:
    about = {
        "c1.v0": words((("gender", "male", "female"),), "she + sister"),
        "c1.v1": words((("gender", "male", "female"),), "she"),
        "c1.v2": words((("gender", "male", "female"), ("race", "white", "black")), "black + she"),
        "c2.v0": words((("gender", "male", "female"),), "she"),
        "c2.v1": words((("gender", "male", "female"),), "she"),
    }
    told = [
        verdict("c1", 0, "pass"), verdict("c1", 1, "violation"), verdict("c1", 2, "violation", order=2),
        verdict("c2", 0, "pass"), verdict("c2", 1, "skipped"),
    ]  # fmt: skip
    ((rows,),) = (of_terms(table_of(told, about)).values(),)
    found = {t.token: (t.n, t.errors) for t in rows}
    assert found == {"she": (2, 1), "sister": (1, 0)}


def test_a_term_is_charged_only_with_the_variants_it_was_put_into() -> None:
    from auditor.perturb.grammar.cases import GrammarSuite

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


def test_the_section_marks_what_stands_out() -> None:
    from auditor.contrib.astraea.outliers import as_record

    rows = [Tally(family="job", token=f"t{i}", group="", n=100, errors=1) for i in range(13)]
    rows.append(Tally(family="job", token="odd", group="x_y", n=100, errors=30))
    (shown,) = section.tokens(read({"tokens": [as_record("m", "bare", "terminal", rows)]}), {("m", "bare"): "M"})
    (*notes, ranking) = shown.blocks
    assert isinstance(ranking, Table)
    assert ranking.lines[0][:4] == ("M", "▲ odd", "job (x y)", "100")
    assert ranking.most == section.MAX_TOKENS
    assert len(ranking.lines) == section.MAX_TOKENS + 4
    assert "1 of 14 words stand out" in str(notes[1])
    assert not list(section.tokens(read({}), {}))


def test_a_family_in_which_most_rates_are_equal_has_no_index() -> None:
    rows = [Tally(family="f", token=f"w{i}", group="", n=10 * (i + 3), errors=3 * (i + 3)) for i in range(12)]
    found, (family,) = diagnose([*rows, Tally(family="f", token="odd", group="", n=100, errors=90)])
    assert [token.index for token in found] == [None] * 13
    assert family.mad == 0.0


def test_a_word_with_fewer_changes_than_its_family_does_not_stand_out() -> None:
    rows = [tokens.Tally(family="f", token=f"w{i}", group="", n=200, errors=100) for i in range(8)]
    low = tokens.Tally(family="f", token="low", group="", n=200, errors=20)
    high = tokens.Tally(family="f", token="high", group="", n=200, errors=180)
    found = {t.token: t for t in tokens.diagnose([*rows, low, high])[0]}
    assert (found["low"].q or 1) < 0.05
    assert not found["low"].stands_out
    assert found["high"].stands_out
