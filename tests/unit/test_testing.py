"""What packages of others test themselves by: the contract that every suite keeps to, and planted models."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor import Plan, audit, tasks
from auditor.core.errors import ConfigError, PluginError
from auditor.core.protocols import SUITES, Offer, Suite
from auditor.core.types import Case, Edit, Variant
from auditor.perturb.dictionaries import builtin, load
from auditor.run.preparation import prepare
from auditor.testing import check_suite
from auditor.testing.planted import Planted
from tests.asking import ask, bare

EDIT = Edit(
    attribute="title", kind="swap", source_group="male", target_group="female", source="man", target="woman",
    where=(5, 8),
)  # fmt: skip


def case(i: int, **changes: Any) -> Case:
    text = f"This man saw film {i}."
    original = Variant(id=f"c{i}.o", input=text, groups={"title": "male"})
    variant = Variant(id=f"c{i}.v0", input="This woman" + text[8:], groups={"title": "female"}, edits=(EDIT,))
    made = Case(id=f"c{i}", suite="acme/plain", original=original, variants=(variant,))
    return dataclasses.replace(made, **changes)


class Plain(Suite):
    """Makes its own texts; the dependency invariant judges them."""

    name = "acme/plain"

    def __init__(self, *, seed: int) -> None:
        self.seed = seed
        self._left = [case(i) for i in range(12)]

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        taken, self._left = self._left[:n], self._left[n:]
        return taken


class Forgetful(Plain):
    """Brings checks, but none of its variants."""

    name = "acme/forgetful"

    def __init__(self) -> None:
        super().__init__(seed=7)
        self.checks = {}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {suite.name: suite for suite in (Plain, Forgetful)}
    here = {
        name: Offer(EntryPoint(name, f"here:{suite.__name__}", SUITES.group), "acme", "1.0")
        for name, suite in known.items()
    }
    monkeypatch.setitem(vars(SUITES), "_all", {**SUITES._all, **here})
    load_ = SUITES.load
    monkeypatch.setattr(SUITES, "load", lambda name: known.get(SUITES.resolve(name)) or load_(name))


def test_what_such_a_suite_cannot_do() -> None:
    with pytest.raises(PluginError, match=r"acme/forgetful' made c0.v0 without a check"):
        audit("sentiment", model="vader", suite="acme/forgetful", out=None)
    for changes, told in (
        ({"data": "texts.csv"}, "makes its own texts; leave --data out"),
        ({"protocol": "hinter"}, "brings its own cases"),
    ):
        with pytest.raises(ConfigError, match=told):
            prepare(Plan(**{"task": "sentiment", "suite": "acme/plain", **changes}), need_models=False)


OF_TEXTS = {"seeds": tasks.load("sentiment").seeds()[:10], "dictionaries": [load(name) for name in builtin()]}
OPTIONS: dict[str, dict[str, Any]] = {
    "mutation": OF_TEXTS,
    "hinter": OF_TEXTS,
    "joint-first": OF_TEXTS,
    "grammar": {"grammar": "sentiment", "cases": 40},
}


@pytest.mark.parametrize("name", sorted(n for n in SUITES.names() if not n.startswith("acme/")))
def test_our_own_suites_keep_the_contract(name: str) -> None:
    assert check_suite(lambda: SUITES.create(name, **OPTIONS[name])) == []


VARIANT = case(0).variants[0]
BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"original": dataclasses.replace(case(0).original, id="c0.original")}, "instead of 'c0.o'"),
    ({"variants": ()}, "it has no variant"),
    ({"variants": (VARIANT, VARIANT)}, "two variants are called 'c0.v0'"),
    ({"variants": (dataclasses.replace(VARIANT, id="v0"),)}, "does not begin with 'c0.'"),
    ({"variants": (dataclasses.replace(VARIANT, edits=()),)}, "it has no edit"),
    ({"variants": (dataclasses.replace(VARIANT, input="This woman left."),)}, "the edits do not give the input"),
    ({"variants": (dataclasses.replace(VARIANT, groups={"title": "male"}),)}, "where its edit leads to"),
    ({"sampling": "guided"}, "sampling is 'guided'"),
]


def of(*cases: Case) -> Plain:
    suite = Plain(seed=7)
    suite._left = list(cases)
    return suite


@pytest.mark.parametrize(("changes", "told"), BROKEN, ids=[told for _, told in BROKEN])
def test_a_broken_case_is_found(changes: dict[str, Any], told: str) -> None:
    found = check_suite(lambda: of(case(0, **changes), case(1)))
    assert any(told in failure.problem for failure in found), found


def test_suites_without_a_problem_with_a_missing_subset_and_that_wander() -> None:
    assert check_suite(lambda: Plain(seed=1)) == []
    second = dataclasses.replace(EDIT, attribute="age", source="film", target="play", where=(13, 17))
    both = {"title": "female", "age": "female"}
    joint = Variant(id="c0.v0", input="This woman saw play 0.", groups=both, edits=(EDIT, second))
    assert {failure.problem for failure in check_suite(lambda: of(case(0, variants=(joint,))))} == {
        "age × title is changed, but age alone is not",
        "age × title is changed, but title alone is not",
    }
    made = itertools.count(1)
    problems = {failure.problem for failure in check_suite(lambda: of(*map(case, range(next(made), 12)), case(11)))}
    assert "two suites with the same options and seed make other cases" in problems
    assert "two cases have this id" in problems


def label(model: Planted, text: str, replicate: int = 0) -> str:
    (reply,) = ask(model, bare(text, replicate=replicate))
    return reply.text


def test_terms_are_whole_words_of_any_case_and_number() -> None:
    model = Planted(additive={"african american|she": 1.0})
    assert label(model, "AFRICAN   American actors.") == "negative"
    assert label(model, "She.") == "negative"
    assert label(model, "A shed for the American and the African.") == "positive"


@given(
    before=st.text(alphabet="bcdfg ", max_size=20),
    after=st.text(alphabet="bcdfg ", max_size=20),
    terms=st.lists(st.sampled_from(["she", "he", "nigerian", "african american"]), min_size=2, max_size=2),
)
@settings(max_examples=60, deadline=None)
def test_hash_base_does_not_see_person_terms(before: str, after: str, terms: list[str]) -> None:
    model = Planted(base="hash", ignore={"she|he", "nigerian", "african american"}, labels=[str(i) for i in range(50)])
    first, second = (
        f"{before} {article} {term} {term} {after}" for article, term in zip(("a", "an"), terms, strict=True)
    )
    assert label(model, first) == label(model, second)


def test_wobble_is_independent_by_prompt_and_replicate() -> None:
    model = Planted(wobble=0.2, seed=3)

    def said(model: Planted) -> list[bool]:
        return [
            r.text == "negative"
            for r in ask(model, *(bare(f"Film {i}", replicate=r) for i in range(400) for r in range(3)))
        ]

    wobbles = said(model)
    # 1,200 draws at 0.2: a share within 5 standard errors of it.
    assert abs(sum(wobbles) / len(wobbles) - 0.2) < 5 * math.sqrt(0.2 * 0.8 / len(wobbles))
    changed = sum(len(set(wobbles[i : i + 3])) > 1 for i in range(0, len(wobbles), 3))
    assert abs(changed / 400 - (1 - 0.8**3 - 0.2**3)) < 5 * math.sqrt(0.48 * 0.52 / 400)
    assert wobbles == said(model)
    assert wobbles != said(Planted(wobble=0.2, seed=4))


def test_spec() -> None:
    model = Planted(
        "wobble=0.03, seed=1, interaction=she|woman+nigerian, additive=she:0.6+african american:0.5,"
        "labels=yes|no,style=chat, base=constant, scores=true, cacheable=true"
    )
    same = Planted(
        wobble=0.03, seed=1, interaction={"nigerian", "she|woman"}, additive={"african american": 0.5, "she": 0.6},
        labels=("yes", "no"), base="constant", scores=True,
    )  # fmt: skip
    assert model.fingerprint == same.fingerprint
    assert model.fingerprint != Planted().fingerprint
    assert (model.style, model.cacheable, model.deterministic) == ("chat", True, False)
    assert model.name.startswith("planted:wobble=0.03")
    assert Planted().name == "planted"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wobble=nan", "wobble should be .*; got 'nan'"),
        ("wobbel=0.1", "'wobbel=0.1' is not an option"),
        ("wobble", "'wobble' is not an option"),
        ("fail=she:1.5", "fail.she should be less than or equal to 1"),
        ("labels=yes|yes", "two or more"),
        ("labels=a|b|c,scores=true", "exactly two labels"),
        ("base=coin", "base should be 'keywords', 'hash' or 'constant'; got 'coin'"),
        ("interaction=she+--", "not a word"),
    ],
)
def test_bad_specs(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Planted(spec)
