"""Suites of other packages: what they are given, their checks, and the contract that every suite keeps to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from random import Random
from typing import Any

import pytest

from auditor import Plan, audit, tasks
from auditor.core.errors import ConfigError, PluginError
from auditor.core.protocols import Suite
from auditor.core.registry import SUITES, Offer
from auditor.core.types import Case, Edit, SourceText, Variant
from auditor.perturb.dictionaries import builtin, load
from auditor.run.preparation import prepare
from auditor.testing import check_suite

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


class Greedy(Plain):
    """Takes the texts."""

    name = "acme/greedy"

    def __init__(self, *, seeds: Sequence[SourceText], order: int, task: Any) -> None:
        super().__init__(seed=7)
        self.seeds, self.order, self.task = list(seeds), order, task


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {
        p.name: Offer(EntryPoint(p.name, f"here:{p.__name__}", SUITES.group), "acme", "1.0")
        for p in (Plain, Forgetful, Greedy)
    }
    monkeypatch.setitem(vars(SUITES), "_all", {**SUITES._all, **here})
    known = {p.name: p for p in (Plain, Forgetful, Greedy)}
    load_ = SUITES.load
    monkeypatch.setattr(SUITES, "load", lambda name: known.get(SUITES.resolve(name)) or load_(name))


def test_a_run_without_texts_of_its_own() -> None:
    def by_title(text: str) -> str:
        return "positive" if text.startswith("This man") else "negative"

    by_title.deterministic = True
    result = audit("sentiment", model=by_title, suite="acme/plain", out=None)
    assert result.record["counts"]["cases"] == 12
    (rate,) = (
        e["estimate"]
        for e in result.record["estimates"]
        if e["name"] == "violation_rate" and e["attributes"] == ["title"] and not (e["directions"] or e["kind"])
    )
    assert rate["value"] == 1.0
    assert result.record["provenance"]["plugin"]["suite"] == "acme/plain"
    assert "made by the suite acme/plain" in result.to_html()


def test_a_suite_that_forgets_a_check_is_told() -> None:
    with pytest.raises(PluginError, match=r"acme/forgetful' made c0.v0 without a check"):
        audit("sentiment", model="vader", suite="acme/forgetful", out=None)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"data": "texts.csv"}, "makes its own texts; leave --data out"),
        ({"protocol": "hinter"}, "brings its own cases"),
    ],
)
def test_what_such_a_suite_cannot_do(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        prepare(Plan(**{"task": "sentiment", "suite": "acme/plain", **changes}), need_models=False)


SEEDS = tasks.load("sentiment").seeds()[:10]
OPTIONS: dict[str, dict[str, Any]] = {
    "mutation": {"seeds": SEEDS, "dictionaries": [load(name) for name in builtin()]},
    "hinter": {"seeds": SEEDS, "dictionaries": [load(name) for name in builtin()]},
    "joint-first": {"seeds": SEEDS, "dictionaries": [load(name) for name in builtin()]},
    "grammar": {"grammar": "sentiment", "cases": 40},
}


@pytest.mark.parametrize("name", OPTIONS)
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


@pytest.mark.parametrize(("changes", "told"), BROKEN, ids=[told for _, told in BROKEN])
def test_a_broken_case_is_found(changes: dict[str, Any], told: str) -> None:
    class Broken(Plain):
        def __init__(self) -> None:
            super().__init__(seed=7)
            self._left[0] = case(0, **changes)

    found = check_suite(Broken)
    assert any(told in failure.problem for failure in found), found
    assert check_suite(lambda: Plain(seed=1)) == []


def test_a_subset_that_is_missing_is_found() -> None:
    second = dataclasses.replace(EDIT, attribute="age", source="film", target="play", where=(13, 17))
    joint = Variant(
        id="c0.v0", input="This woman saw play 0.", groups={"title": "female", "age": "female"}, edits=(EDIT, second)
    )

    class Joint(Plain):
        def __init__(self) -> None:
            super().__init__(seed=7)
            self._left = [case(0, variants=(joint,))]

    assert {f.problem for f in check_suite(Joint)} == {
        "age × title is changed, but age alone is not",
        "age × title is changed, but title alone is not",
    }


def test_a_suite_that_wanders_is_found() -> None:
    class Wandering(Plain):
        made = 0

        def __init__(self) -> None:
            super().__init__(seed=7)
            Wandering.made += 1
            self.name = "wandering"
            self._left = [*self._left[self.made :], case(11)]

    problems = {f.problem for f in check_suite(Wandering)}
    assert "two suites with the same options and seed make other cases" in problems
    assert "two cases have this id" in problems


def test_no_suite_of_ours_is_left_out() -> None:
    assert {n for n in SUITES.names() if not n.startswith("acme/")} == set(OPTIONS)
