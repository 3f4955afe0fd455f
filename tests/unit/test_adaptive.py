"""The directed search: what it asks, what it learns, and what it leaves to chance."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from auditor import audit
from auditor.contrib.adaptive.beliefs import Beliefs
from auditor.contrib.adaptive.features import Features, Weights, cdf
from auditor.contrib.adaptive.ledger import PHASES
from auditor.contrib.adaptive.search_report import build
from auditor.contrib.adaptive.suite import DRAWN, AdaptiveSuite
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan
from auditor.core.record import read
from auditor.core.types import Answer, Case, SourceText, Verdict
from auditor.measure.interactions import mark_hidden
from auditor.measure.observations import shape_of
from auditor.models.attempts import RetryPolicy
from auditor.perturb.dictionaries import load
from auditor.perturb.mutation import MutationSuite
from auditor.run.loop import Judge
from auditor.run.preparation import prepare
from auditor.run.result import resume
from auditor.store.integrity import verify_folder
from auditor.tasks.oracles import LabelOracle

DICTIONARIES = [load("gender"), load("nationality")]
PEOPLE = ("British man", "French woman", "German boy", "Italian girl")
Rule = Callable[[str], bool]


def seeds(n: int) -> list[SourceText]:
    return [
        SourceText(id=f"s{i}", text=f"The {PEOPLE[i % 4]} left the film number {i} after an hour.") for i in range(n)
    ]


def suite(n: int = 60, **options: Any) -> AdaptiveSuite:
    return AdaptiveSuite(seeds=seeds(n), dictionaries=DICTIONARIES, per_seed=4, **options)


def rule(text: str) -> bool:
    """Women from one country, and nothing less."""
    return "Nigerian" in text and any(w in text for w in ("woman", "girl"))


def judged(case: Case, says: Rule) -> list[Verdict]:
    """Verdicts as the loop gives them: of a directed case the joint variants, and the parts of changed ones."""
    original = says(str(case.original.input))
    top = [v for v in case.variants if not any(v.choices < o.choices for o in case.variants)]
    asked = list(case.variants)
    if case.sampling == "directed":
        changed = [v.choices for v in top if says(str(v.input)) != original]
        asked = [v for v in case.variants if v in top or any(v.choices < c for c in changed)]
    answers = {v.id: [Answer(status="ok", value=str(says(str(v.input))))] for v in (case.original, *asked)}
    return mark_hidden(case, LabelOracle().judge(case, answers), {})


def drive(made: AdaptiveSuite, says: Rule = rule, rounds: int = 12) -> list[Case]:
    cases: list[Case] = []
    for _ in range(rounds):
        asked = made.ask(64, Random(0))
        if not asked:
            break
        cases += asked
        made.tell(sorted((v for c in asked for v in judged(c, says)), key=lambda v: (v.case_id, v.variant_id)))
    return cases


def test_equal_seeds_and_verdicts_make_equal_cases() -> None:
    assert drive(suite()) == drive(suite())
    assert drive(suite()) != drive(suite(seed=8))


def test_other_verdicts_make_other_directed_cases_and_the_same_random_ones() -> None:
    some, other = drive(suite()), drive(suite(), lambda text: "French" in text)
    assert some != other
    drawn = [[c for c in cases if c.sampling == "iid"] for cases in (some, other)]
    n = min(map(len, drawn))
    assert n >= 2
    assert drawn[0][:n] == drawn[1][:n]
    known = {case.id: case for case in some}
    assert all(known.get(case.id, case) == case for case in other), "a journal may hold both"


def test_random_cases_are_those_of_the_mutation_suite() -> None:
    plain = {c.id: c for c in MutationSuite(seeds=seeds(60), dictionaries=DICTIONARIES, per_seed=4).ask(99, Random(0))}
    drawn = [c for c in drive(suite()) if c.sampling == "iid"]
    assert drawn
    for case in drawn:
        assert [v.edits for v in case.variants] == [v.edits for v in plain[case.id].variants]


def test_directed_cases_hold_every_part_and_no_joint_variant_twice() -> None:
    cases = [c for c in drive(suite()) if c.sampling == "directed"]
    assert len({c.id for c in cases}) == len(cases)
    seen: set[tuple[Any, Any]] = set()
    for case in cases:
        have = {v.choices for v in case.variants}
        for variant in case.variants:
            if variant.order == 2:
                for attribute in variant.attributes:
                    assert frozenset(c for c in variant.choices if c[0] == attribute) in have
                key = (case.original.input, variant.choices)
                assert key not in seen
                seen.add(key)
    assert len(seen) > 100


def test_joint_changes_of_a_search_lead_to_the_named_groups_or_from_them() -> None:
    wanted = {"gender": ["female"], "nationality": ["nigerian"]}
    joint = [v for c in drive(suite(groups=wanted)) for v in c.variants if v.order == 2]
    assert len(joint) > 20
    for variant in joint:
        chosen = [e for e in variant.edits if e.kind != "agreement"]
        leads = all(e.target_group in wanted[e.attribute] for e in chosen)
        leaves = all(e.source_group in wanted[e.attribute] for e in chosen)
        assert leads or leaves, variant.input


def test_what_shows_alone_is_not_searched_further() -> None:
    """What is drawn with known chances is drawn from all that was not asked."""

    def alone(text: str) -> bool:
        return "Nigerian" in text

    ruled_out: set[tuple[Any, Any]] = set()
    made = suite()
    for _ in range(12):
        asked = made.ask(64, Random(0))
        drawn = 0
        for case in asked:
            if case.sampling == "directed":
                for variant in case.variants:
                    out = any((case.original.input, choice) in ruled_out for choice in variant.choices)
                    if variant.order > 1 and out:
                        assert made._waiting[variant.id].phase == "screening"
                        drawn += 1
        assert drawn <= DRAWN
        told = [v for c in asked for v in judged(c, alone)]
        by_id = {v.id: (c.original.input, v) for c in asked for v in c.variants}
        for verdict in told:
            text, variant = by_id[verdict.variant_id]
            if verdict.order == 1 and verdict.outcome == "violation":
                ruled_out |= {(text, choice) for choice in variant.choices}
        made.tell(told)
    assert ruled_out


def test_without_answers_only_cases_at_random_are_left() -> None:
    made = suite()
    made.ask(64, Random(0))
    rest: list[Case] = []
    while more := made.ask(64, Random(0)):
        rest += more
    assert rest
    assert {c.sampling for c in rest} == {"iid"}


def test_a_search_without_findings_ends() -> None:
    made = suite(120, patience=60)
    cases = drive(made, lambda text: False, rounds=400)
    assert not made.ask(64, Random(0))
    report = made.record()["adaptive"]
    assert "no hidden finding" in report["ended"]
    assert sum(c.sampling == "iid" for c in cases) == report["seeds"]["random"]


def test_every_pair_of_seed_and_arm_is_asked_where_nothing_limits_the_search() -> None:
    made = suite(12, patience=None)
    cases = drive(made, rounds=400)
    assert not made.ask(64, Random(0))
    assert "every pair" in made.record()["adaptive"]["ended"]
    assert len({c.original.input for c in cases}) == 12


def test_fresh_seeds_are_those_the_search_had_not_used() -> None:
    made = suite(120)
    used: set[str] = set()
    tried = 0
    for _ in range(12):
        asked = made.ask(64, Random(0))
        for case in asked:
            if case.id[17:18] == "f":
                tried += 1
                assert str(case.original.input) not in used
        used |= {str(c.original.input) for c in asked if c.id[17:18] == "d"}
        made.tell([v for c in asked for v in judged(c, rule)])
    report = made.record()["adaptive"]
    assert tried == report["phases"]["fresh"]["joint"] > 0
    rows = [row for row in report["fresh"] if row["estimate"] is not None]
    assert sum(row["fresh_seeds"] for row in rows) == tried
    assert any(row["fresh_hidden"] for row in rows)
    for row in rows:
        assert row["fresh_hidden"] == sum(cell[0] for cell in row["by_fit"].values())
        assert 0 < row["fresh_seeds"] <= 8
        assert row["estimate"]["low"] <= row["fresh_hidden"] / row["fresh_seeds"] <= row["estimate"]["high"]


PART = {"gender": "female", "race": "black"}


def filled(n: int = 30) -> Beliefs:
    """Texts about a white man, in each of which gender, race or both may be changed to one of two things."""
    beliefs = Beliefs(1)
    for text in range(n):
        beliefs.add_text({"gender": "male", "race": "white"}, {"gender": "man", "race": "white"})
        singles = {}
        for attribute, group, term in (
            ("gender", "female", "man → woman"),
            ("race", "black", "white → Black"),
            ("race", "asian", "white → Asian"),
        ):
            groups = {"gender": "male", "race": "white"} | {attribute: group}
            singles[group] = beliefs.add_single(text, (attribute, "d", term), groups)
        for group, term in (("black", "white → Black"), ("asian", "white → Asian")):
            arm = (("gender", "d", "man → woman"), ("race", "d", term))
            beliefs.add_joint(text, arm, [singles["female"], singles[group]], PART | {"race": group})
    return beliefs


def hit_share(beliefs: Beliefs, wanted: Callable[[int], bool], n: int = 30) -> float:
    picked = [c for _ in range(20) for c in beliefs.best(6, 4, [False] * n)]
    return float(np.mean([wanted(c) for c in picked]))


def test_a_finding_raises_the_same_groups_in_other_texts() -> None:
    beliefs = filled()
    for text in range(8):
        for candidate, label in ((2 * text, "no"), (2 * text + 1, "yes")):
            beliefs.open[candidate] = False
            beliefs.heard(text, "m", ("joint", candidate), ("yes", label))
    beliefs.learn()
    assert hit_share(beliefs, lambda c: c % 2 == 0) > 0.9


def test_a_change_that_shows_alone_raises_what_leads_to_the_same_groups() -> None:
    """Texts about white women change alone with Black; the pair is then likely where a man is named."""
    beliefs = filled()
    for text in range(30, 36):
        beliefs.add_text({"gender": "female", "race": "white"}, {"gender": "woman", "race": "white"})
        for group, term in (("black", "white → Black"), ("asian", "white → Asian"), ("latino", "white → Latino")):
            single = beliefs.add_single(text, ("race", "d", term), PART | {"race": group})
            label = "no" if group == "black" else "yes"
            beliefs.heard(text, "m", ("single", single), ("yes", label))
    beliefs.learn()
    assert hit_share(beliefs, lambda c: c % 2 == 0, 36) > 0.8


def test_scores_find_the_text_that_two_changes_can_turn() -> None:
    """Each change moves an answer by 0.3: only where 0.5 are missing do two turn it, and neither alone."""
    beliefs = filled()
    for text in range(30):
        gap = 0.5 if text % 5 == 0 else 3.0
        asked = range(12)
        far = {"yes": 0.0, "no": -gap}
        moved = {"yes": 0.0, "no": 0.3 - gap}
        if text in asked:
            beliefs.heard(text, "m", ("single", 3 * text), ("yes", "yes"))
            beliefs.scored(text, ("single", 3 * text), (far, moved))
            beliefs.scored(text, ("single", 3 * text + 1), (far, moved))
        else:
            beliefs.scored(text, ("single", 3 * text + 2), (far, far))
    beliefs.learn()
    assert hit_share(beliefs, lambda c: c % 2 == 0 and (c // 2) % 5 == 0) > 0.5  # a tenth by chance


def test_weights_are_learnt_and_forgotten() -> None:
    features = Features()
    row = np.array([features.number(("word", w)) for w in ("a", "b")])
    weights = Weights(features, {"word": 1.0})
    weights.grow()
    for _ in range(20):
        weights.learn_sign(row, 0, True)
    assert weights.mean[0, row].min() > 0.5
    assert weights.var[0, row].max() < 0.8
    weights.forget()
    assert weights.mean[0, row].tolist() == [0.0, 0.0]
    for _ in range(20):
        weights.learn_value(row[:1], row[1:], 1, 2.0, 0.1)
    assert weights.mean[1, row[0]] - weights.mean[1, row[1]] == pytest.approx(2.0, abs=0.1)
    assert weights.mean[0, row].tolist() == [0.0, 0.0]


def test_the_normal_distribution_is_that_of_the_standard_library() -> None:
    xs = np.linspace(-5, 5, 101)
    assert np.abs(cdf(xs) - [NormalDist().cdf(x) for x in xs]).max() < 2e-7


def test_the_suite_hears_scores_beside_the_verdicts() -> None:
    heard: list[str] = []

    class Hears(AdaptiveSuite):
        def hear(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> None:
            heard.append(case.id)

    made = Hears(seeds=seeds(4), dictionaries=DICTIONARIES)
    case = drive(suite(), rounds=1)[0]
    answers: dict[str, Sequence[Answer]] = {
        v.id: [Answer(status="ok", value="yes")] for v in (case.original, *case.variants)
    }
    shapes = {v.id: shape_of(v.edits) for v in case.variants}
    assert Judge(LabelOracle(), made).judge(case, answers, shapes) == LabelOracle().judge(case, answers)
    assert heard == [case.id]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 1}, "--order 2"),
        ({"suite": "grammar"}, "--suite grammar"),
        ({"protocol": "hinter"}, "--protocol hinter"),
        ({"jobs": 2}, "in one process"),
        ({"engine": "ray"}, "in one process"),
    ],
)
def test_what_cannot_be_searched_is_said(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        prepare(Plan(task="sentiment", strategy="adaptive", **options), models=[])


def test_calls_are_left_for_confirmation() -> None:
    made = suite()
    made.keep(100, 5)
    cases = drive(made, rounds=50)
    assert 0 < sum(made.record()["adaptive"]["phases"][p]["answers"] for p in PHASES) < 100
    assert cases
    assert "confirmation" in made.record()["adaptive"]["ended"]


def test_the_share_is_checked() -> None:
    with pytest.raises(ConfigError, match="share"):
        suite(share=1.0)


def test_a_run_says_what_it_searched() -> None:
    result = audit("sentiment", model="reviews", strategy="adaptive", max_calls=400, limit=60)
    told = result.record["adaptive"]
    found = sum(row["candidates"] for row in told["models"])
    assert told["phases"]["search"]["joint"] > 0
    assert sum(result.record["counts"]["hidden"].values()) >= found
    search = read(result.record).adaptive
    assert search is not None
    asked = next(t for t in build(search).tables if t.caption == "What the questions went to")
    assert len(asked.lines) == 4
    # Only cases at random enter a rate.
    rates = [e["estimate"]["n"] for e in result.record["estimates"] if e["name"] == "violation_rate"]
    assert rates
    assert max(rates) <= told["seeds"]["random"]


FEW: dict[str, Any] = {"strategy": "adaptive", "limit": 40, "attributes": ("gender", "race")}
UNSURE = "planted:interaction=she|her|woman|women+black,wobble=0.03"


@pytest.mark.parametrize("model", ["reviews", UNSURE])
def test_a_run_that_was_cut_off_and_resumed_has_the_figures_of_one_that_was_not(model: str, tmp_path: Path) -> None:
    whole = audit("sentiment", model=model, out=str(tmp_path / "a"), max_calls=420, cache=False, **FEW)
    cut = audit("sentiment", model=model, out=str(tmp_path / "b"), max_calls=60, cache=False, **FEW)
    assert cut.path is not None
    again = resume(cut.path, limits={"max_calls": 420})
    assert cut.record["adaptive"] != whole.record["adaptive"]
    for part in ("adaptive", "estimates", "counts", "findings"):
        assert again.record[part] == whole.record[part], part


UNSTEADY = """
    import hashlib, os
    def model(text):
        if os.environ.get("DOWN") and int(hashlib.sha256(text.encode()).hexdigest(), 16) % 7 == 0:
            raise ConnectionError
        named = set(text.lower().replace(".", " ").split())
        return "negative" if {"she", "her", "woman", "women"} & named and "black" in named else "positive"
"""


def test_calls_that_failed_are_asked_again_and_lead_where_their_answers_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unsteady_model.py").write_text(textwrap.dedent(UNSTEADY), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("auditor.models.attempts.RetryPolicy", lambda: RetryPolicy(attempts=1))
    options = FEW | {"model": "python:unsteady_model:model", "cache": False}
    whole = audit("sentiment", out=str(tmp_path / "a"), max_calls=1500, **options)
    assert whole.complete
    monkeypatch.setenv("DOWN", "1")
    cut = audit("sentiment", out=str(tmp_path / "b"), max_calls=150, **options)
    assert cut.path is not None
    assert cut.record["counts"]["failed"]
    monkeypatch.delenv("DOWN")
    again = resume(cut.path, limits={"max_calls": 1500})
    for part in ("adaptive", "estimates", "findings"):
        assert again.record[part] == whole.record[part], part
    counts = [{k: v for k, v in one.record["counts"].items() if k != "calls"} for one in (again, whole)]
    assert counts[0] == counts[1]  # failed calls were calls
    assert again.record["counts"]["calls"] > whole.record["counts"]["calls"]
    assert verify_folder(cut.path) == []


def test_a_first_answer_that_is_the_same_is_not_repeated_and_noise_is_that_of_cases_at_random() -> None:
    result = audit("sentiment", model=UNSURE, max_calls=400, cache=False, **FEW)
    told = result.record["adaptive"]["phases"]
    assert told["random"]["answers"] >= 3 * told["random"]["texts"]
    assert told["search"]["answers"] + told["screening"]["answers"] < 2.5 * (
        told["search"]["texts"] + told["screening"]["texts"]
    )
    (noise,) = (e["estimate"] for e in result.record["estimates"] if e["name"] == "noise_floor")
    assert noise["n"] <= result.record["adaptive"]["seeds"]["random"]
    asked = {(r["attribute"], r["group"]): r["n"] for r in result.record["controls"]["answers_by_group"]}
    assert sum(asked.values()) <= 3 * told["random"]["answers"]
