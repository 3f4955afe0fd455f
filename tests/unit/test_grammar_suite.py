"""The grammar suite: phases, distinct cases, what enters a rate, coverage, the bound."""

from __future__ import annotations

from random import Random

import pytest

from auditor import audit
from auditor.core.types import Case, Verdict
from auditor.perturb import grammar
from auditor.perturb.edits import apply
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.grammar.draw import error_weights

SMALL = """\
format: 1
features: {number: [sg, pl], pronoun: [they, he, she]}
rules:
  s: ["{who} {says/say@who} {they are/he is/she is@who.pronoun} {mood}.", "It is {a} {faith} {person}."]
  who:
    attribute: gender
    groups:
      female: {pronoun: she, terms: [my aunt, my niece, Ann]}
      male: {pronoun: he, terms: [my uncle, Bob]}
      both: {number: pl, terms: [my parents]}
  mood: {labels: {positive: [glad, calm, happy], negative: [sad, angry]}}
  faith: {attribute: religion, groups: {a: [Muslim], b: [Orthodox], c: [Hindu]}}
  person: {attribute: gender, aligned: true, groups: {female: [woman, queen], male: [man, king]}}
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> grammar.Grammar:
    file = tmp_path_factory.mktemp("g") / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    return grammar.load(file)


def everything(suite: GrammarSuite, wrong: set[str] | None = None, n: int = 16) -> list[Case]:
    """All cases; texts that hold one of ``wrong`` get another label than the rest."""
    out: list[Case] = []
    while cases := suite.ask(n, Random(0)):
        out += cases
        suite.tell([v for c in cases for v in verdicts(c, wrong or set())])
    return out


def verdicts(case: Case, wrong: set[str]) -> list[Verdict]:
    def label(text: object) -> bool:
        return any(word in str(text) for word in wrong)

    return [
        Verdict(
            case_id=case.id,
            variant_id=v.id,
            order=v.order,
            attributes=v.attributes,
            outcome="violation" if label(v.input) != label(case.original.input) else "pass",
            model="m",
        )
        for v in case.variants
    ]


def test_edits_give_the_variant_and_carry_agreement(small: grammar.Grammar) -> None:
    cases = everything(GrammarSuite(grammar=small, generation="rand", cases=1000, per_case=100))
    assert len(cases) == 6 * 5 + 3 * 4
    for case in cases:
        assert case.sampling == "iid"
        for variant in case.variants:
            assert apply(str(case.original.input), variant.edits) == variant.input
            assert any(e.kind == "swap" for e in variant.edits)
    ann = next(c for c in cases if c.original.input == "Ann says she is calm.")
    assert ann.label == "positive"
    assert ann.original.groups == {"gender": "female"}
    plural = next(v for v in ann.variants if v.groups == {"gender": "both"})
    assert plural.input == "My parents say they are calm."
    assert [(e.kind, e.source, e.target, e.where) for e in plural.edits] == [
        ("swap", "Ann", "My parents", (0, 3)),
        ("agreement", "says", "say", (4, 8)),
        ("agreement", "she is", "they are", (9, 15)),
    ]


def test_joint_variants_come_with_all_their_parts(small: grammar.Grammar) -> None:
    cases = everything(GrammarSuite(grammar=small, generation="rand", cases=1000, per_case=100))
    case = next(c for c in cases if c.original.input == "It is a Muslim king.")
    texts = {str(v.input): v for v in case.variants}
    assert set(texts) == {
        "It is an Orthodox king.",
        "It is a Hindu king.",
        "It is a Muslim queen.",  # aligned: never "woman"
        "It is an Orthodox queen.",
        "It is a Hindu queen.",
    }
    joint = texts["It is an Orthodox queen."]
    assert joint.order == 2
    assert [e.kind for e in joint.edits] == ["agreement", "swap", "swap"]
    orders = [v.order for v in case.variants]
    assert orders == sorted(orders)


def test_prob_cases_are_directed_distinct_and_aimed(small: grammar.Grammar) -> None:
    suite = GrammarSuite(grammar=small, generation="prob", cases=16, pairs=True, seed=4)
    cases = everything(suite, {"Ann", "king"})
    samplings = [c.sampling for c in cases]
    assert samplings == ["iid"] * 8 + ["directed"] * 8
    assert len({c.original.input for c in cases}) == 16
    rates = {k[1]: t.violating_cases / t.cases for k, t in suite.tallies.items()}
    assert rates["directed"] > rates["iid"] > 0
    # Only the independent half is counted for the terminals: error rates of a directed half are of no use.
    assert suite.counts[("s", 0)] + suite.counts[("s", 1)] == 8
    report = suite.report()
    assert [p["phase"] for p in report["phases"]] == ["prob", "rand"]
    assert sum(p["cases"] for p in report["phases"]) == 16


def test_error_rates_follow_algorithm_2(small: grammar.Grammar) -> None:
    counts = {("mood", 0): 4, ("mood", 1): 4, ("mood", 2): 8}
    errors = {("mood", 0): 2, ("mood", 2): 1}
    weights = error_weights(small, counts, errors)
    assert weights["mood"].tolist() == pytest.approx([0.8, 0, 0.2, 0, 0])
    assert weights["who"].tolist() == pytest.approx([1 / 6] * 6)  # nothing erred: as RAND
    squared = error_weights(small, counts, errors, power=2)
    assert squared["mood"].tolist() == pytest.approx([16 / 17, 0, 1 / 17, 0, 0])
    mixed = error_weights(small, counts, errors, mix=1)
    assert mixed["mood"].tolist() == pytest.approx([0.2] * 5)


def test_placebos_keep_the_group(small: grammar.Grammar) -> None:
    suite = GrammarSuite(grammar=small, generation="rand", cases=1000)
    cases = {c.original.input: c for c in suite.ask(1000, Random(0))}
    found = suite.placebos(cases["Ann says she is calm."], None, Random(1))
    assert {v.input for v in found} == {"My aunt says she is calm.", "My niece says she is calm."}
    assert {e.kind for v in found for e in v.edits} == {"placebo"}
    assert {(e.source_group, e.target_group) for v in found for e in v.edits} == {("female", "female")}
    assert suite.checks["anything"].status == "valid"


def test_directed_cases_enter_no_rate() -> None:
    """All violations of this model are found in the directed half; the rates count the other."""
    result = audit(
        "sentiment",
        model=lambda text: "negative" if "Grace" in text else "positive",
        suite="grammar",
        suite_options=["grammar=sentiment:names-by-gender"],
        limit=300,
        order=1,
        out=None,
    )
    rows = {p["phase"]: p for p in result.record["generation"]["phases"]}
    assert rows["prob"]["violating_cases"] > rows["rand"]["violating_cases"]
    rate = next(e for e in result.estimates if e["name"] == "violation_rate" and not e["directions"] and not e["kind"])
    assert rate["estimate"]["n"] == rows["rand"]["cases"] == 150
    assert rate["estimate"]["value"] == pytest.approx(rows["rand"]["violations"] / rows["rand"]["tests"])
