"""Grammar files: what is read, what is refused, with file and line, also through the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from auditor.cli.main import run
from auditor.core.errors import DataFileError
from auditor.perturb import grammar

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


def write(path: Path, text: str, name: str = "g.yaml") -> Path:
    file = path / name
    file.write_text(text, encoding="utf-8")
    return file


def test_reads_rules_groups_labels_and_weights(tmp_path: Path) -> None:
    g = grammar.load(write(tmp_path, GOOD))
    assert g.attributes == ("gender",)
    assert g.labels == ("negative", "positive")
    assert [a.weight for a in g.rules["s"].alternatives] == [1, 3]
    assert g.rules["who"].groups == ("female", "male")
    assert g.rules["animal"].terminals[0].source == "here"
    # YAML 1.1 would read this as false.
    assert [t.text for t in g.rules["mood"].terminals] == ["glad", "no", "sad"]


def test_agreement_articles_and_capitals(tmp_path: Path) -> None:
    space = grammar.space(grammar.load(write(tmp_path, GOOD)))
    texts = {space.text(space.nth(i)) for i in range(space.derivations)}
    assert "My sisters feel glad." in texts
    assert "My uncle feels sad." in texts
    assert "I saw my aunt. An owl was glad." in texts
    assert "I saw my brothers. A cat was no." in texts
    assert len(texts) == space.derivations == space.sentences == 12 + 24


BAD = {
    "undefined": (GOOD.replace("{who} {feels/feel@who}", "{whom} feels"), 3, "whom is not defined; did you mean who?"),
    "agrees-with-none": (GOOD.replace("feel@who}", "feel@animal}"), 3, "agrees with animal"),
    "loop": (GOOD + '  x: ["{y}"]\n  y: ["not {x}"]\n', 12, "never ends: x -> y -> x"),
    "recursion": (GOOD + '  x: [deep, "very {x}"]\n', 12, "recurses without end"),
    "one-terminal": (
        GOOD.replace(", {text: my sisters, number: pl}", "").replace(
            "      male: [my uncle, {text: my brothers, number: pl}]\n", ""
        ),
        4,
        "has 1 terminal",
    ),
    "one-group": (GOOD.replace("      male: [my uncle, {text: my brothers, number: pl}]\n", ""), 4, "one group only"),
    "not-aligned": (GOOD.replace("[my uncle, {", "[my son, my uncle, {"), 4, "differ in size"),
    "zero-weights": (GOOD + "  x: [{is: a, weight: 0}, {is: b, weight: 0}]\n", 12, "sum to zero"),
    "negative-weight": (GOOD + "  x: [{is: a, weight: -1}]\n", 12, "not between 0"),
    "no-alternatives": (GOOD + "  x: []\n", 12, "has no alternatives"),
    "no-groups": (GOOD.replace("    groups:\n", "    terms:\n"), 5, "names no groups"),
    "empty-terminal": (GOOD + '  x: [""]\n', 12, "is empty"),
    "open-brace": (GOOD + '  x: ["a {who"]\n', 12, "not closed"),
    "twice-in-one": (GOOD + '  x: ["{who} and {who}"]\n', 12, "{who#1} and {who#2}"),
    "forms": (GOOD.replace("{feels/feel@who}", "{feels@who}"), 3, "1 forms for the 2 values"),
    "no-feature": (GOOD.replace("feel@who}", "feel@who.tense}"), 3, "no feature 'tense'"),
    "both-groups": (GOOD.replace("[my uncle,", "[my aunt,"), 9, "in different groups"),
    "unknown-field": (GOOD.replace("aligned: true", "alinged: true"), 6, "unknown field 'alinged'"),
    "field-twice": (GOOD + "  who: [a]\n", 12, "who is here and in line 4"),
    "alias": ("format: 1\nrules:\n  s: &x [a]\n  t: *x\n", 4, "aliases"),
    "bomb": (
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)),
        2,
        "aliases",
    ),
    "deep": ("format: 1\nrules: " + "[" * 5000 + "]" * 5000 + "\n", 2, "inside each other"),
    "no-yaml": ("format: 1\nrules: [\n", 3, "not valid YAML"),
    "format": ("format: 2\nrules: {s: [a]}\n", 1, "newer version"),
    "no-rules": ("format: 1\n", 1, "rules is missing"),
    "start": ("format: 1\nstart: t\nrules: {s: [a]}\n", 2, "t is not defined"),
    "view": ("format: 1\nviews:\n  v: {s: [x]}\nrules: {s: [a]}\n", 3, "no alternative of s refers to x"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_get_one_error_with_file_and_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, line, words = BAD[case]
    file = write(tmp_path, text)
    assert run(["list", "grammars", "check", str(file)]) == 2
    said = capsys.readouterr()
    told = " ".join(said.err.split())
    assert said.out == ""
    assert f"{file.name}, line {line}:" in told
    assert words in told
    assert "Traceback" not in told


def test_duplicates_and_unreachable_rules_are_told_but_no_obstacle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, GOOD.replace("[owl, cat]", "[owl, cat, owl]") + "  lost: [a]\n")
    grammar.load(file)
    assert run(["list", "grammars", "check", str(file)]) == 1
    out = capsys.readouterr().out
    assert "line 11: the terminal 'owl' is twice in the rule animal" in out
    assert "line 12: no start symbol leads to the rule lost" in out
    assert "36 distinct sentences (48 derivations)" in out


@pytest.mark.parametrize("name", ["coreference", "hiring", "lending", "sentiment", "triage"])
def test_shipped_grammars(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "grammars", "check", name]) == 0
    told = capsys.readouterr().out
    sentences = re.search(rf"^{name}: .*; ([\d,]+) distinct sentences", told, re.MULTILINE)
    assert sentences is not None
    assert int(sentences[1].replace(",", "")) > 139_500  # ASTRAEA §6: the size of its initial grammar
    assert "Attributes: none" not in told
    g = grammar.load(name)
    for rule in g.rules.values():
        assert rule.attribute is None or rule.source, f"{rule.name} does not say where its words come from"


@pytest.mark.parametrize(
    ("name", "rules", "terminals"),
    [
        ("coreference:ambiguous", 16, 103),
        ("coreference:unambiguous", 16, 92),
        ("fill-mask", 11, 87),
        ("sentiment", 48, 237),
    ],
)
def test_sizes_beside_table_3(name: str, rules: int, terminals: int) -> None:
    """ASTRAEA, Table 3: production rules and terminals of its four grammars."""
    g = grammar.load(name)
    assert len(g.reachable()) >= rules
    assert sum(1 for _ in g.terminals()) >= terminals


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "grammars"]) == 0
    assert "direct-gender" in capsys.readouterr().out


def doubled(levels: int) -> str:
    rules = [f"  r{n}: ['{{r{n - 1}}} and {{r{n - 1}#2}}']" for n in range(1, levels + 1)]
    people = "  r0: {attribute: gender, groups: {a: [he], b: [she]}}"
    return "\n".join(["format: 1", "rules:", f"  s: ['{{r{levels}}}']", people, *rules])


def copied(terms: int, length: int) -> str:
    long, listed = "x" * length, ", ".join(f"w{n}" for n in range(terms))
    return f"format: 1\nrules:\n  s: ['{{who}} {{b}}']\n  b: ['{{t}} {long}', 'a{long} {{t}}']\n  t: {{terms: [{listed}]}}\n{PEOPLE}"


PEOPLE = "  who: {attribute: gender, groups: {a: [he], b: [she]}}\n"
HUGE = {
    "a sentence that doubles": (doubled(40), "a sentence of more than 300 parts"),
    "a long text copied for each term": (copied(2000, 20_000), "hold more than 50,000,000 parts and characters"),
}


@pytest.mark.parametrize("name", HUGE)
def test_finite_grammars_that_are_too_large_are_refused_before_they_are_unfolded(name: str, tmp_path: Path) -> None:
    text, message = HUGE[name]
    with pytest.raises(DataFileError, match=rf"g\.yaml, line \d+: .*{message}"):
        _ = grammar.space(grammar.load(write(tmp_path, text))).structures
