"""Grammar files and what they refuse; the cases, placebos and phases of the grammar suite."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from random import Random

import pytest
from commands import Capture

from auditor import audit
from auditor.cli.main import run
from auditor.core import reading
from auditor.core.errors import DataFileError
from auditor.core.types import Case, Variant, Verdict
from auditor.perturb import grammar
from auditor.perturb.edits import apply
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.grammar.draw import error_weights

GOOD = """\
format: 1
rules:
  s: ["{who} {feels/feel@who} {mood}.", {is: "I saw {who}. {a} {animal} was {mood}.", weight: 3}]
  who:
    attribute: gender
    aligned: true
    groups:
      female: [my aunt, {text: my sisters, number: pl}]
      male: [my uncle, {text: my brothers, number: pl}]
  mood: {labels: {positive: [glad, no], negative: [sad]}}
  animal: {terms: [owl, cat], source: here}
"""


WOMEN = GOOD.replace("      male: [my uncle, {text: my brothers, number: pl}]\n", "")


def write(path: Path, text: str) -> Path:
    file = path / "g.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_rules_groups_labels_and_weights_are_read_and_words_agree(tmp_path: Path) -> None:
    g = grammar.load(write(tmp_path, GOOD))
    assert g.attributes == ("gender",)
    assert g.labels == ("negative", "positive")
    assert [a.weight for a in g.rules["s"].alternatives] == [1, 3]
    assert g.rules["who"].groups == ("female", "male")
    # YAML 1.1 would read this as false.
    assert [t.text for t in g.rules["mood"].terminals] == ["glad", "no", "sad"]
    space = grammar.Space(g)
    texts = {one.text(index) for one in space.structures for index in itertools.product(*map(range, one.sizes))}
    assert texts >= {
        "My sisters feel glad.", "My uncle feels sad.", "I saw my aunt. An owl was glad.",
        "I saw my brothers. A cat was no.",
    }  # fmt: skip
    assert len(texts) == space.derivations == 12 + 24


BAD = {
    "undefined": (GOOD.replace("{who} {feels/feel@who}", "{whom} feels"), 3, "whom is not defined; did you mean who?"),
    "agrees-with-none": (GOOD.replace("feel@who}", "feel@animal}"), 3, "agrees with animal"),
    "loop": (GOOD + '  x: ["{y}"]\n  y: ["not {x}"]\n', 12, "never ends: x -> y -> x"),
    "recursion": (GOOD + '  x: [deep, "very {x}"]\n', 12, "recurses without end"),
    "one-terminal": (WOMEN.replace(", {text: my sisters, number: pl}", ""), 4, "has 1 terminal"),
    "not-aligned": (GOOD.replace("[my uncle, {", "[my son, my uncle, {"), 4, "differ in size"),
    "zero-weights": (GOOD + "  x: [{is: a, weight: 0}, {is: b, weight: 0}]\n", 12, "sum to zero"),
    "negative-weight": (GOOD + "  x: [{is: a, weight: -1}]\n", 12, "greater than or equal to 0"),
    "no-alternatives": (GOOD + "  x: []\n", 12, "no alternatives"), "empty": (GOOD + '  x: [""]\n', 12, "is empty"),
    "no-groups": (GOOD + "  x: {attribute: age, terms: [a]}\n", 12, "has its terminals under groups"),
    "open-brace": (GOOD + '  x: ["a {who"]\n', 12, "not closed"), "one-group": (WOMEN, 4, "one group only"),
    "twice-in-one": (GOOD + '  x: ["{who} and {who}"]\n', 12, "{who#1} and {who#2}"),
    "forms": (GOOD.replace("{feels/feel@who}", "{feels@who}"), 3, "1 forms for the 2 values"),
    "no-feature": (GOOD.replace("feel@who}", "feel@who.tense}"), 3, "no feature 'tense'"),
    "both-groups": (GOOD.replace("[my uncle,", "[my aunt,"), 9, "in different groups"),
    "unknown-field": (GOOD.replace("aligned: true", "alinged: true"), 6, "unknown field 'alinged'"),
    "field-twice": (GOOD + "  who: [a]\n", 12, "who is here and in line 4"),
    "format": ("format: 2\nrules: {s: [a]}\n", 1, "newer version"),
    "start": ("format: 1\nstart: t\nrules: {s: [a]}\n", 2, "t is not defined"),
    "view": ("format: 1\nviews:\n  v: {s: [x]}\nrules: {s: [a]}\n", 3, "no alternative of s refers to x"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_get_one_error_with_file_and_line(case: str, tmp_path: Path, capsys: Capture) -> None:
    text, line, words = BAD[case]
    file = write(tmp_path, text)
    assert run(["list", "grammars", "check", str(file)]) == 2
    said = capsys.readouterr()
    told = " ".join(said.err.split())
    assert said.out == ""
    assert f"{file.name}, line {line}:" in told
    assert words in told
    assert "Traceback" not in told


def test_duplicates_and_unreachable_rules_are_told_but_no_obstacle(tmp_path: Path, capsys: Capture) -> None:
    file = write(tmp_path, GOOD.replace("[owl, cat]", "[owl, cat, owl]") + "  lost: [a]\n")
    grammar.load(file)
    assert run(["list", "grammars", "check", str(file)]) == 1
    out = capsys.readouterr().out
    assert "line 11: the terminal 'owl' is twice in the rule animal" in out
    assert "line 12: no start symbol leads to the rule lost" in out
    assert "; 48 derivations" in out


@pytest.mark.parametrize("name", ["coreference", "hiring", "lending", "sentiment", "triage"])
def test_shipped_grammars(name: str, capsys: Capture) -> None:
    assert run(["list", "grammars", "check", name]) == 0
    told = capsys.readouterr().out
    derivations = re.search(rf"^{name}: .*; ([\d,]+) derivations", told, re.MULTILINE)
    assert int(derivations[1].replace(",", "")) > 139_500  # ASTRAEA §6: the size of its initial grammar
    assert "Attributes: none" not in told
    for rule, content in reading.load_yaml(reading.shipped("grammars", f"{name}.yaml"))["rules"].items():
        sensitive = isinstance(content, dict) and "attribute" in content
        assert not sensitive or content["source"], f"{rule} does not say where its words come from"


# ASTRAEA, Table 3: production rules and terminals of its four grammars.
SIZES = {
    "coreference:ambiguous": (16, 103), "coreference:unambiguous": (16, 92), "fill-mask": (11, 87),
    "sentiment": (48, 237),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_sizes_beside_table_3(name: str) -> None:
    g = grammar.load(name)
    rules, terminals = SIZES[name]
    assert len(g.reachable()) >= rules
    assert sum(1 for _ in g.terminals()) >= terminals


PEOPLE = "who: {attribute: gender, groups: {a: [he], b: [she]}}"
DOUBLED = "".join(f"  r{n}: ['{{r{n - 1}}} and {{r{n - 1}#2}}']\n" for n in range(1, 41)).replace("{r0", "{who")
LONG, LISTED = "x" * 20_000, ", ".join(f"w{n}" for n in range(2000))
COPIED = f"  b: ['{{t}} {LONG}', 'a{LONG} {{t}}']\n  t: {{terms: [{LISTED}]}}\n"
HUGE = {
    "a sentence that doubles": (f"['{{r40}}']\n{DOUBLED}", "a sentence of more than 300 parts"),
    "a long text copied for each term": (f"['{{who}} {{b}}']\n{COPIED}", "hold more than 50,000,000 parts and characters"),
}  # fmt: skip


@pytest.mark.parametrize("name", HUGE)
def test_finite_grammars_that_are_too_large_are_refused_before_they_are_unfolded(name: str, tmp_path: Path) -> None:
    start, message = HUGE[name]
    text = f"format: 1\nrules:\n  s: {start}  {PEOPLE}\n"
    with pytest.raises(DataFileError, match=rf"g\.yaml, line \d+: .*{message}"):
        _ = grammar.Space(grammar.load(write(tmp_path, text))).structures


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
    return grammar.load(write(tmp_path_factory.mktemp("g"), SMALL))


def everything(suite: GrammarSuite, wrong: str = "nothing") -> list[Case]:
    """All cases; texts that hold one of the words ``wrong`` get another label than the rest."""

    def verdict(case: Case, variant: Variant) -> Verdict:
        labels = {bool(re.search(wrong, str(one.input))) for one in (case.original, variant)}
        return Verdict(
            case_id=case.id, variant_id=variant.id, order=variant.order, attributes=variant.attributes, model="m",
            outcome="violation" if len(labels) == 2 else "pass",
        )  # fmt: skip

    out: list[Case] = []
    while cases := suite.ask(16, Random(0)):
        out += cases
        suite.tell([verdict(case, variant) for case in cases for variant in case.variants])
    return out


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
    edits = [(e.kind, e.source, e.target, e.where) for e in plural.edits]
    assert edits[0] == ("swap", "Ann", "My parents", (0, 3))
    assert edits[1:] == [("agreement", "says", "say", (4, 8)), ("agreement", "she is", "they are", (9, 15))]


def test_prob_cases_are_directed_distinct_and_aimed(small: grammar.Grammar) -> None:
    suite = GrammarSuite(grammar=small, generation="prob", cases=16, pairs=True, seed=4)
    cases = everything(suite, "Ann|king")
    samplings = [c.sampling for c in cases]
    assert samplings == ["iid"] * 8 + ["directed"] * 8
    assert len({c.original.input for c in cases}) == 16
    rates = {k[1]: t.violating_cases / t.cases for k, t in suite.tallies.items()}
    assert rates["directed"] > rates["iid"] > 0
    # Only the independent half is counted for the terminals: error rates of a directed half are of no use.
    assert suite.counts[("s", 0)] + suite.counts[("s", 1)] == 8
    report = suite.record()["generation"]
    assert [p["phase"] for p in report["phases"]] == ["prob", "rand"]
    assert sum(p["cases"] for p in report["phases"]) == 16


def test_placebos_keep_the_group(small: grammar.Grammar) -> None:
    suite = GrammarSuite(grammar=small, generation="rand", cases=1000)
    cases = {c.original.input: c for c in suite.ask(1000, Random(0))}
    found = suite.placebos(cases["Ann says she is calm."], None, Random(1))
    assert {v.input for v in found} == {"My aunt says she is calm.", "My niece says she is calm."}
    edits = {(e.kind, e.source_group, e.target_group) for v in found for e in v.edits}
    assert edits == {("placebo", "female", "female")}
    assert suite.checks["anything"].status == "valid"


def test_directed_cases_enter_no_rate() -> None:
    """All violations of this model are found in the directed half; the rates count the other."""
    result = audit(
        "sentiment", model=lambda text: "negative" if "Grace" in text else "positive", suite="grammar",
        suite_options=["grammar=sentiment:names-by-gender"], limit=60, order=1, out=None,
    )  # fmt: skip
    rows = {p["phase"]: p for p in result.record["generation"]["phases"]}
    assert rows["prob"]["violating_cases"] > rows["rand"]["violating_cases"]
    rate = next(e for e in result.estimates if e["name"] == "violation_rate" and not e["directions"] and not e["kind"])
    assert rate["estimate"]["n"] == rows["rand"]["cases"] == 30
    assert rate["estimate"]["value"] == pytest.approx(rows["rand"]["violations"] / rows["rand"]["tests"])


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
