"""HInter's own mutation, and its figures by pair, order and in all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged import swap

from auditor.contrib.hinter import paper_figures as shown
from auditor.contrib.hinter.measures import Mutant, measures, mutants, records, totals
from auditor.contrib.hinter.mutants import HinterSuite, Pair, replace, replace_again
from auditor.core.record import read
from auditor.core.types import Case, SourceText, Variant, Verdict
from auditor.perturb import dictionaries
from auditor.perturb.edits import apply
from auditor.report.document import Table
from auditor.run.observed import Observed

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def pair(source: str, target: str, attribute: str = "gender") -> Pair:
    return Pair(attribute, source, target, "a", "b")


WORDS = st.lists(st.sampled_from(["man", "men", "old", "the", "a", "woman", "white", "saw"]), max_size=12)


@settings(max_examples=200, deadline=None)
@given(WORDS, st.sampled_from(["man", "old man", "white"]), st.sampled_from(["woman", "white woman", "old"]), WORDS)
def test_edits_amount_to_one_replacement_after_the_other(words: list[str], a: str, b: str, more: list[str]) -> None:
    text = " ".join(words)
    first, second = pair(a, b), pair(b.split()[0], "tall " + "".join(more[:1]), "body")
    edits = replace(text, first)
    expected = re.sub(rf"\b{first.source}\b", first.target, text)
    assert apply(text, edits) == expected
    both = replace_again(text, edits, second)
    assert apply(text, both) == re.sub(rf"\b{second.source}\b", second.target, expected)
    assert all(text[slice(*e.where)] == e.source for e in both)


def test_joint_variants_have_their_parts_in_the_case(tmp_path: Path) -> None:
    folder = tmp_path / "gender"
    folder.mkdir()
    (folder / "female_male.csv").write_text("woman;man\nwomen;men\n")
    other = tmp_path / "race"
    other.mkdir()
    (other / "african_asian.csv").write_text("nigerian;korean\n")
    suite = HinterSuite(
        seeds=[SourceText(id="1", text="A Nigerian woman met women."), SourceText(id="2", text="Nothing here.")],
        dictionaries=[
            *dictionaries.load_options([str(folder / "female_male.csv")]),
            *dictionaries.load_options([str(other / "african_asian.csv")]),
        ],
    )
    (case,) = suite.ask(10, Random(0))
    assert case.original.input == "a nigerian woman met women."
    texts = {v.input: v.order for v in case.variants}
    assert texts == {
        "a nigerian man met women.": 1,
        "a nigerian woman met men.": 1,
        "a korean woman met women.": 1,
        "a korean man met women.": 2,
        "a korean woman met men.": 2,
    }
    joint = next(v for v in case.variants if v.order == 2)
    assert sum(v.choices < joint.choices for v in case.variants) == 2
    assert suite.skipped["no source word"] == 1


def test_published_pairs_run_as_they_are() -> None:
    files = sorted((SHARED / "hinter_pairs" / "gender").glob("*_*.csv"))
    if not files:
        pytest.skip("the published pair files are not beside this checkout")
    suite = HinterSuite(
        seeds=[SourceText(id="1", text="The girl and her girlfriend saw an actress.")],
        dictionaries=dictionaries.load_options([str(file) for file in files]),
        order=1,
    )
    (case,) = suite.ask(1, Random(0))
    assert any("actor" in v.input for v in case.variants)
    for variant in case.variants:
        assert apply(case.original.input, variant.edits) == variant.input


def mutant(
    name: str,
    text: str,
    attributes: tuple[str, ...],
    error: bool | None = False,
    *,
    valid: bool = True,
    parts: tuple[str, ...] = (),
) -> Mutant:
    return Mutant(id=name, original=text, attributes=attributes, valid=valid, error=error, parts=parts)


def world() -> list[Mutant]:
    """Two pairs that share an attribute: the text "x" and its gender mutant stand in both."""
    return [
        mutant("x.g", "x", ("gender",), True),
        mutant("x.r", "x", ("race",)),
        mutant("x.b", "x", ("body",)),
        mutant("x.gr", "x", ("gender", "race"), True, parts=("x.g", "x.r")),
        mutant("x.bg", "x", ("body", "gender"), parts=("x.b", "x.g")),
        mutant("y.g", "y", ("gender",)),
        mutant("y.r", "y", ("race",)),
        mutant("y.gr", "y", ("gender", "race"), True, parts=("y.g", "y.r")),
        mutant("z.g", "z", ("gender",), True, valid=False),
        mutant("z.r", "z", ("race",), True),
        mutant("z.gr", "z", ("gender", "race"), False, parts=("z.g", "z.r")),
        mutant("z.gr2", "z", ("gender", "race"), True, valid=False, parts=("z.g", "z.r")),
        mutant("w.r", "w", ("race",), None),
        mutant("w.gr", "w", ("gender", "race"), None, parts=("w.r",)),
    ]


def test_totals_count_a_text_and_an_atomic_mutant_once_over_all_pairs() -> None:
    found = totals(world())
    assert (found.joint.generated, found.joint.valid, found.joint.discarded) == (6, 5, 1)
    assert (found.joint.tested, found.joint.errors, found.joint.originals) == (4, 2, 3)
    assert found.joint.originals_with_error == 2
    assert (found.atomic.generated, found.atomic.tested, found.atomic.errors) == (8, 6, 2)
    assert (found.atomic.originals, found.atomic.originals_with_error) == (3, 2)
    # By pairs, the text x would count twice.
    assert sum(one.joint.originals for one in measures(world())) == 4
    assert found.hidden == 1
    assert (found.joint_only, found.joint_with_atomic) == (1, 1)
    assert (found.atomic_only, found.atomic_with_joint) == (1, 1)


def run(models: tuple[str, ...] = ("a", "b"), mutants: list[Mutant] | None = None) -> dict[str, Any]:
    mutants = world() if mutants is None else mutants
    return {"spec": {"kind": "classification"}, **records(dict.fromkeys(models, mutants))}


def test_the_tables_have_the_papers_figures() -> None:
    pairs, orders, alone = shown.blocks(read(run()))
    assert all(isinstance(one, Table) for one in (pairs, orders, alone))
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


def observed(*variants: Variant, valid: Iterable[str], told: dict[str, str]) -> Observed:
    case = Case(id="c", suite="hinter.v1", original=Variant(id="c.o", input="x"), variants=variants)
    made = Observed(["m"], parts=True)
    made.add(case, set(valid))
    for name, outcome in told.items():
        made.judge(
            Verdict(case_id="c", variant_id=name, order=1, attributes=(), outcome=outcome, model="m", format="f")
        )
    return made


def test_mutants_of_a_judged_case() -> None:
    g, r = swap("gender", "y", 0), swap("race", "y", 5)
    made = observed(
        Variant(id="g", input="1", edits=(g,)),
        Variant(id="r", input="2", edits=(r,)),
        Variant(id="c.j", input="3", edits=(g, r)),
        valid=["g", "c.j"],
        told={"g": "pass", "c.j": "violation", "r": "skipped"},
    )
    assert list(mutants(made.table, made.discarded, "m", ["f"])) == [
        Mutant(id="g@f", original="c", attributes=("gender",), valid=True, error=False),
        Mutant(id="c.j@f", original="c", attributes=("gender", "race"), valid=True, error=True, parts=("g@f", "r@f")),
        Mutant(id="r@f", original="c", attributes=("race",), valid=False, error=None),
    ]


def test_discarded_mutants_are_judged_where_they_were_asked_about() -> None:
    """Each format makes mutants of its own, and what was skipped is no error."""
    made = observed(
        *(Variant(id=name, input=name, edits=(swap("race", "y", 5 + n),)) for n, name in enumerate("abc")),
        valid="a",
        told={"a": "pass", "b": "violation", "c": "skipped"},
    )
    both = list(mutants(made.table, made.discarded, "m", ["f", "g"]))
    assert {m.id: m.error for m in both} == {
        "a@f": False, "b@f": True, "c@f": None, "a@g": None, "b@g": None, "c@g": None,
    }  # fmt: skip
    assert totals(m for m in both if m.id.endswith("@f")).atomic.discarded_errors == 1
