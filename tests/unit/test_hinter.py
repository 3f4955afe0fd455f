"""Hidden changes, and HInter: its own mutation, its figures by pair, order and in all, and the search for joint changes first."""

from __future__ import annotations

import re
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged import edit, swap

from auditor import audit
from auditor.contrib.hinter import measures as shown
from auditor.contrib.hinter.measures import Mutant, measures, mutants, records, totals
from auditor.contrib.hinter.mutants import HinterSuite, Pair, replace, replace_again
from auditor.core.protocols import RENDERERS
from auditor.core.record import read
from auditor.core.types import Case, Check, Edit, SourceText, Variant, Verdict
from auditor.measure.interactions import mark_hidden
from auditor.perturb import dictionaries
from auditor.perturb.edits import apply
from auditor.run.state import Observed
from auditor.testing.planted import Planted

WORDS = st.lists(st.sampled_from(["man", "men", "old", "the", "a", "woman", "white", "saw"]), max_size=12)


@settings(max_examples=200, deadline=None)
@given(WORDS, st.sampled_from(["man", "old man", "white"]), st.sampled_from(["woman", "white woman", "old"]), WORDS)
def test_edits_amount_to_one_replacement_after_the_other(words: list[str], a: str, b: str, more: list[str]) -> None:
    text = " ".join(words)
    first = Pair("gender", a, b, "a", "b")
    second = Pair("body", b.split()[0], "tall " + "".join(more[:1]), "a", "b")
    edits = replace(text, first)
    expected = re.sub(rf"\b{first.source}\b", first.target, text)
    assert apply(text, edits) == expected
    both = replace_again(text, edits, second)
    assert apply(text, both) == re.sub(rf"\b{second.source}\b", second.target, expected)
    assert all(text[slice(*e.where)] == e.source for e in both)


def test_joint_variants_have_their_parts_in_the_case(tmp_path: Path) -> None:
    files = {"gender/female_male.csv": "woman;man\nwomen;men\n", "race/african_asian.csv": "nigerian;korean\n"}
    for name, rows in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(rows)
    suite = HinterSuite(
        seeds=[SourceText(id="1", text="A Nigerian woman met women."), SourceText(id="2", text="Nothing here.")],
        dictionaries=dictionaries.load_options([str(tmp_path / name) for name in files]),
    )
    (case,) = suite.ask(10, Random(0))
    assert case.original.input == "a nigerian woman met women."
    assert {v.input: v.order for v in case.variants} == {
        "a nigerian man met women.": 1, "a nigerian woman met men.": 1, "a korean woman met women.": 1,
        "a korean man met women.": 2, "a korean woman met men.": 2,
    }  # fmt: skip
    joint = next(v for v in case.variants if v.order == 2)
    assert sum(v.choices < joint.choices for v in case.variants) == 2
    assert suite.skipped["no source word"] == 1


def mutant(name: str, error: bool | None = False, *, valid: bool = True) -> Mutant:
    """A mutant TEXT.ATTRIBUTES; its parts have one attribute each, and "w.g" was not made."""
    text, letters = name.rstrip("2").split(".")
    attributes = tuple({"g": "gender", "r": "race", "b": "body"}[letter] for letter in letters)
    parts = [f"{text}.{letter}" for letter in letters if len(letters) > 1 and f"{text}.{letter}" != "w.g"]
    return Mutant(id=name, original=text, attributes=attributes, valid=valid, error=error, parts=tuple(parts))


def world() -> list[Mutant]:
    """Two pairs that share an attribute: the text "x" and its gender mutant stand in both."""
    return [
        mutant("x.g", True), mutant("x.r"), mutant("x.b"), mutant("x.gr", True), mutant("x.bg"),
        mutant("y.g"), mutant("y.r"), mutant("y.gr", True),
        mutant("z.g", True, valid=False), mutant("z.r", True), mutant("z.gr"), mutant("z.gr2", True, valid=False),
        mutant("w.r", None), mutant("w.gr", None),
    ]  # fmt: skip


def test_totals_count_a_text_and_an_atomic_mutant_once_over_all_pairs() -> None:
    found = totals(world())
    joint, atomic = found.joint, found.atomic
    assert (joint.generated, joint.valid, joint.discarded, joint.tested, joint.errors) == (6, 5, 1, 4, 2)
    assert (joint.originals, joint.originals_with_error) == (3, 2)
    assert (atomic.generated, atomic.tested, atomic.errors) == (8, 6, 2)
    assert (atomic.originals, atomic.originals_with_error) == (3, 2)
    # By pairs, the text x would count twice.
    assert sum(one.joint.originals for one in measures(world())) == 4
    assert found.hidden == 1
    assert (found.joint_only, found.joint_with_atomic, found.atomic_only, found.atomic_with_joint) == (1, 1, 1, 1)


def run(models: tuple[str, ...] = ("a", "b"), mutants: list[Mutant] | None = None) -> dict[str, Any]:
    mutants = world() if mutants is None else mutants
    return {"spec": {"kind": "classification"}, **records(dict.fromkeys(models, mutants))}


def test_the_tables_have_the_papers_figures() -> None:
    pairs, orders, alone = shown.blocks(read(run()))
    assert pairs.lines[0] == ("body + gender", "a", "1", "0 % (0 of 1)", "none")
    assert ("gender + race", "b", "3", "66.7 % (2 of 3)", "50.0 % (1 of 2)") in pairs.lines
    assert pairs.lines[-1] == ("all pairs", "all models", "8", "50.0 % (4 of 8)", "50.0 % (2 of 4)")
    assert shown.ALL not in str(list(shown.blocks(read(run(("a",))))))
    kept, changed, texts, discarded = orders.lines[0][2:]
    assert (kept, changed, texts) == ("83.3 % (5 of 6)", "50.0 % (2 of 4)", "66.7 % (2 of 3)")
    assert discarded == "33.3 % (1 of 3)"
    assert alone.lines[0] == ("a", "joint", "50.0 % (1 of 2)", "50.0 % (1 of 2)")
    unasked = [m for m in world() if m.valid]
    assert "not asked" in str(list(shown.blocks(read(run(mutants=unasked)))))


def test_mutants_of_a_judged_case() -> None:
    """Each format makes mutants of its own; of discarded ones, an error counts where they were asked about."""
    g, r, body = swap("gender", "y", 0), swap("race", "y", 5), swap("body", "y", 9)
    edits = {"g": (g,), "r": (r,), "j": (g, r), "b": (body,)}
    variants = tuple(Variant(id=name, input=name, edits=made) for name, made in edits.items())
    made = Observed(["m"], parts=True)
    made.add(Case(id="c", suite="hinter.v1", original=Variant(id="c.o", input="x"), variants=variants), {"g", "j"})
    for name, outcome in {"g": "pass", "j": "violation", "r": "skipped", "b": "violation"}.items():
        told = Verdict(case_id="c", variant_id=name, order=1, attributes=(), outcome=outcome, model="m", format="f")
        made.judge(told)
    found = {m.id: m for m in mutants(made.table, made.discarded, "m", ["f", "g"])}
    assert found["g@f"] == Mutant(id="g@f", original="c", attributes=("gender",), valid=True, error=False)
    assert found["j@f"] == Mutant(
        id="j@f", original="c", attributes=("gender", "race"), valid=True, error=True, parts=("g@f", "r@f")
    )
    assert found["r@f"] == Mutant(id="r@f", original="c", attributes=("race",), valid=False, error=None)
    assert {name: m.error for name, m in found.items() if name not in ("g@f", "j@f")} == {
        "r@f": None, "b@f": True, "g@g": None, "r@g": None, "j@g": None, "b@g": None,
    }  # fmt: skip
    assert totals(m for name, m in found.items() if name.endswith("@f")).atomic.discarded_errors == 1


PEOPLE = ("young man", "young woman", "young boy", "young girl")
TEXTS = [f"A {PEOPLE[i % 4]} left the film number {i} after an hour." for i in range(200)]
WOMEN, OLD = (re.compile(rf"\b({words})", re.I) for words in ("woman|girl|lady|female", "old|elderly|senior"))


def old_women(text: str) -> str:
    """Answer otherwise where both stand in the text, in every fifth text."""
    fifth = re.search(r"number \d*[05] ", text)
    return "negative" if fifth and WOMEN.search(text) and OLD.search(text) else "positive"


def search(suite: str, **options: Any) -> Any:
    given = {"data": TEXTS, "attributes": ("gender", "age"), "cache": False, "model": old_women}
    return audit("sentiment", suite=suite, **given | options)


@pytest.mark.slow
def test_the_same_calls_find_more_hidden_changes_than_all_variants_in_order() -> None:
    found = {
        suite: search(suite, max_calls=600).record["counts"]["hidden"]["2"] for suite in ("mutation", "joint-first")
    }
    assert found["joint-first"] > 2 * found["mutation"]


def test_parts_are_asked_only_where_the_joint_answer_changed_and_nothing_enters_a_rate() -> None:
    result = search("joint-first", replicates=2, limit=60)
    record = result.record
    assert record["counts"]["hidden"]["2"] > 0
    assert record["claims"] == []
    assert not [e for e in record["estimates"] if e["name"] == "violation_rate"]
    assert record["counts"]["placebos"] == 0
    asked = {verdict.case_id for verdict in result.verdicts if verdict.order == 1}
    changed = {v.case_id for v in result.verdicts if v.order == 2 and v.outcome == "violation"}
    assert asked == changed


@pytest.mark.slow
def test_several_processes_make_the_same_run() -> None:
    one, two = (search("joint-first", limit=20, jobs=jobs).record for jobs in ("1", "2"))
    assert {k: one[k] for k in ("counts", "findings")} == {k: two[k] for k in ("counts", "findings")}


def test_candidates_of_noise_are_mostly_not_confirmed() -> None:
    model = Planted(wobble=0.12, name="planted-noise")
    result = search(
        "joint-first", model=model, data=None, replicates=1, seed=3, limit=30, attributes=("gender", "race")
    )
    hidden = [f for f in result.findings if f.kind == "hidden"]
    assert hidden
    assert not any(f.verdict == "shown" for f in hidden)


def test_a_run_of_version_0_2_that_search_is_read_and_reported() -> None:
    result = search("joint-first", limit=8)
    old = result.record | {"adaptive": {"share": 0.25, "phases": {}}, "sections": []}
    old["spec"] = {**old["spec"], "suite": "mutation", "strategy": "adaptive"}
    assert read(old).spec.suite == "mutation"
    for name in ("html", "markdown", "json", "terminal"):
        assert "sentiment" in RENDERERS.create(name).render(read(old), result.evidence)


NAMES = ("body", "gender", "race")


def edits(attribute: str, target: str = "t") -> tuple[Edit, ...]:
    """One swap, and the repair that it forces: the repair must not count as a choice."""
    at = NAMES.index(attribute) * 10
    repair = edit("a", "an" if target == "t" else "a", ("a", "b"), attribute=attribute, kind="agreement", at=at)
    return repair, edit("s", target, ("a", "b"), attribute=attribute, at=at + 2)


def full_case(order: int, targets: tuple[str, ...] = ("t",)) -> Case:
    """Every non-empty set of the first ``order`` attributes, for each target word."""
    variants = []
    sets = (names for size in range(1, order + 1) for names in combinations(NAMES[:order], size))
    for names, target in product(sets, targets):
        name = "+".join(names) + ("" if target == "t" else f":{target}")
        variants.append(Variant(id=name, input=name, edits=sum((edits(n, target) for n in names), ())))
    return Case(id="c", suite="s", original=Variant(id="o", input="o"), variants=tuple(variants))


def verdicts(case: Case, outcomes: dict[str, str], model: str = "m") -> list[Verdict]:
    told = [(v, outcomes.get(v.id, "pass")) for v in case.variants if outcomes.get(v.id) != "absent"]
    return [
        Verdict(case_id=case.id, variant_id=v.id, order=v.order, attributes=v.attributes, model=model, outcome=outcome)
        for v, outcome in told
    ]


def valid(case: Case, **status: str) -> dict[str, Check]:
    told = {v.id: status.get(v.id, "valid") for v in case.variants}
    return {name: Check(variant_id=name, check="k", status=one) for name, one in told.items() if one != "absent"}


def hidden(case: Case, outcomes: dict[str, str], **status: str) -> dict[str, bool | None]:
    return {v.variant_id: v.hidden for v in mark_hidden(case, verdicts(case, outcomes), valid(case, **status))}


@pytest.mark.parametrize(
    ("gender", "body", "joint", "expected"),
    [
        ("pass", "pass", "violation", True), ("violation", "pass", "violation", False),
        ("pass", "violation", "violation", False), ("violation", "violation", "violation", False),
        ("pass", "pass", "pass", False), ("violation", "pass", "pass", False), ("skipped", "pass", "violation", None),
        ("inconclusive", "pass", "violation", None), ("absent", "pass", "violation", None),
        ("absent", "violation", "violation", False), ("pass", "pass", "skipped", None),
        ("pass", "pass", "inconclusive", None),
    ],
)  # fmt: skip
def test_two_attributes(gender: str, body: str, joint: str, expected: bool | None) -> None:
    found = hidden(full_case(2), {"gender": gender, "body": body, "body+gender": joint})
    assert found["body+gender"] is expected
    assert found.get("gender") is None
    assert found.get("body") is None


def test_an_invalid_part_leaves_it_open_and_its_verdict_does_not_count() -> None:
    case = full_case(2)
    for outcome in ("pass", "violation", "absent"):
        found = hidden(case, {"gender": outcome, "body+gender": "violation"}, gender="invalid")
        assert found["body+gender"] is None
    for status, expected in (("unknown", True), ("absent", None)):
        assert hidden(case, {"body+gender": "violation"}, gender=status)["body+gender"] is expected


def test_parts_are_those_with_the_same_choices() -> None:
    violating = ("gender:u", "body+gender", "body+gender:u")
    found = hidden(full_case(2, targets=("t", "u")), dict.fromkeys(violating, "violation"))
    assert (found["body+gender"], found["body+gender:u"]) == (True, False)


def test_three_attributes_need_all_six_parts() -> None:
    case = full_case(3)
    top = "body+gender+race"
    assert hidden(case, {top: "violation"})[top] is True
    for part in (v.id for v in case.variants if v.id != top):
        assert hidden(case, {top: "violation", part: "violation"})[top] is False
        assert hidden(case, {top: "violation", part: "skipped"})[top] is None
    both = hidden(case, {top: "violation", "body+gender": "violation"})
    assert (both["body+gender"], both[top]) == (True, False)


def test_models_are_kept_apart() -> None:
    case = full_case(2)
    joint = {"body+gender": "violation"}
    mixed = verdicts(case, joint, "a") + verdicts(case, joint | {"gender": "violation"}, "b")
    found = mark_hidden(case, mixed, valid(case))
    assert [v.hidden for v in found if v.order == 2] == [True, False]
