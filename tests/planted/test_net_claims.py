"""Net claims on the product's own cases with planted answers: how often they err, what they cover, what they show.

The settings are those of ``benchmarks/power.py``, which measures them with more repetitions and at more places.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import power
import pytest
from planted_answers import Effects, Simulated
from scipy.stats import binom

from auditor.measure.contrasts import Versions
from auditor.measure.findings import claims
from auditor.measure.power import reach, shift, spread

pytestmark = pytest.mark.slow
RUNS = 60
FEWER = 20  # of large plans
RESUMES = 200  # a run of them takes a twentieth of a second
ERRORS = int(binom.isf(0.003, RUNS, 0.05))  # of RUNS where 5 % is allowed: more come in 3 of 1,000 settings
SETTINGS = {(setting.name, setting.task): setting for setting in power.settings()}
# The ways to err that told designs apart; benchmarks/power.py has all of them, for both tasks.
NULLS = [
    "text noise 3.2 %, share", "word sd 0.1, share", "word sd 0.1, neutral words a third, share",
    "words 0.2 each, share", "text hash, share", "text hash, share (hiring)", "wobble 10 %, share",
    "refusals by length, share", "word sd 0.1, log_odds", "trigrams sd 0.03, share", "trigrams sd 0.03, log_odds",
    "position 0.6, log_odds", "characters 0.02 each, log_odds", "edited 0.2, log_odds", "fragile texts 4 %, log_odds",
    "score task, word sd 0.1",
]  # fmt: skip


@pytest.mark.parametrize("name", NULLS)
def test_what_is_no_difference_between_groups_is_not_shown(name: str) -> None:
    setting = SETTINGS[name.removesuffix(" (hiring)"), "hiring" if name.endswith("(hiring)") else "sentiment"]
    runs = FEWER if name.startswith("refusals") else RUNS  # in each run other answers are missing, which takes long
    found, errors = power.measure_setting(setting, runs), binom.isf(0.003, runs, 0.05)
    assert found.shown <= errors
    assert found.refusals <= errors


@pytest.mark.parametrize("name", ["at delta, noise 1.6 %, share", "at delta, word sd 0.05, log_odds"])
def test_nothing_is_bounded_at_delta(name: str) -> None:
    assert power.measure_setting(SETTINGS[name, "sentiment"], RUNS).bounded <= ERRORS


@pytest.mark.parametrize(
    ("name", "scale"), [("5 % effect, word sd 0.05", "share"), ("5 % effect, word sd 0.05", "log_odds")]
)
def test_intervals_hold_what_is_true(name: str, scale: power.Scale) -> None:
    found = power.coverage(name, power.covered()[name], scale, RUNS)
    assert found.group >= RUNS - ERRORS
    assert found.words >= RUNS - ERRORS


@pytest.mark.parametrize(
    ("name", "task", "least"),
    [
        ("2 % effect, noise 1.6 %, 200 calls", "sentiment", 0.8),
        ("2 % effect, noise 3.2 %, 200 calls", "sentiment", 0.6),
        ("2 % effect, noise 1.6 %", "hiring", 0.25),
        ("2 % effect, noise 3.2 %", "hiring", 0.1),
        ("5 % effect, word sd 0.05, log_odds", "sentiment", 0.9),
        ("5 % effect, word sd 0.05, share", "sentiment", 0.65),
    ],
)
def test_effects_are_shown(name: str, task: str, least: float) -> None:
    assert power.measure_setting(SETTINGS[name, task], RUNS).shown >= least * RUNS


def test_the_pairs_of_one_resume_are_one_text() -> None:
    """Each résumé has an effect of its own, in all its twelve pairs with posts: none of it is one of groups."""
    found = power.measure_setting(SETTINGS["effects of résumés", "resume"], RESUMES)
    assert found.shown <= binom.isf(0.003, RESUMES, 0.05)
    found = power.measure_setting(SETTINGS["10 % effect, effects of résumés", "resume"], RUNS)
    assert found.shown >= 0.8 * RUNS


@pytest.mark.parametrize(("neutral", "wanted"), [(1.0, False), (0.25, True)], ids=["as much", "four times as much"])
def test_words_of_an_attribute_that_move_answers_more_than_neutral_words_are_shown(
    neutral: float, wanted: bool
) -> None:
    table, question = power.plan("sentiment", ("nationality",))
    simulated = Simulated(table, "nationality", {})
    laid_out = Versions(simulated, simulated.columns())
    shown = singles = 0
    for n in range(FEWER):
        simulated.draw(np.random.default_rng(n), Effects(word=0.2, neutral=neutral, noise=spread(0.016)), scores=True)
        found = claims(simulated, question, laid_out)
        (omnibus,) = (c for c in found if c.family == "omnibus")
        shown += omnibus.verdict == "shown"
        others = [c for c in found if c.family == "net"]
        assert len(others) > 50
        singles += any(c.verdict == "shown" for c in others)
        if omnibus.verdict != "shown":
            assert {c.verdict for c in others} <= {"not_tested", "not_determined"}
    assert shown >= 0.9 * FEWER if wanted else shown <= binom.isf(0.003, FEWER, 0.05)
    assert singles <= shown


def test_of_five_texts_nothing_is_shown_however_far_words_move_their_answers() -> None:
    table, question = power.plan("sentiment", ("nationality",))
    few = table.only(np.flatnonzero(table.columns().version_text < 5).tolist())
    question = dataclasses.replace(question, outcomes=(), number=True, unit="points")
    for n in range(5):
        simulated = Simulated(few, "nationality", {})
        effects = Effects(word=2.0, neutral=0.1, noise=spread(0.016))
        simulated.draw(np.random.default_rng(n), effects, number=True)
        found = claims(simulated, question, Versions(simulated, simulated.columns()))
        assert {c.verdict for c in found} == {"not_tested"}


@pytest.mark.parametrize("net", [0.0, 0.3], ids=["no difference", "groups differ"])
def test_the_omnibus_of_five_groups_keeps_its_level(net: float) -> None:
    """The spread of several means, compared with that of two repeats, is above 5 % without any difference."""
    worth = {"white": 1.0, "asian": 0.5, "middle_eastern": 0.0, "hispanic": -0.5, "black": -1.0}
    table, question = power.plan("hiring", ("race",), carrier=("name",))
    simulated = Simulated(power.first(table, 600), "race", worth)
    laid_out, p_values = Versions(simulated, simulated.columns()), []
    for n in range(RUNS):
        effects = Effects(net=net, word=0.1, noise=spread(0.016))
        simulated.draw(np.random.default_rng(n), effects, scores=True)
        found = claims(simulated, question, laid_out)
        assert {c.groups[0] for c in found if c.family == "net"} == set(worth)
        p_values += [c.p_value for c in found if c.family == "omnibus"]
    small = sum(p <= 0.05 for p in p_values)  # each by itself, not as one of the claims of a run
    assert small >= 0.9 * RUNS if net else small <= ERRORS


@pytest.mark.parametrize("task", ["sentiment", "hiring"])
def test_a_dry_run_keeps_its_word(task: str) -> None:
    table, question = power.plan(task, ("gender",))
    claim = next(c for c in reach(table, question).claims or () if c.groups == ("female", "male"))
    assert claim.smallest is not None
    simulated = Simulated(table, "gender", power.PAIR)
    laid_out, shown = Versions(simulated, simulated.columns()), 0
    effects = Effects(net=shift(claim.smallest), noise=spread(0.016), word=0.02)
    for n in range(RUNS):
        simulated.draw(np.random.default_rng(n), effects)
        found = claims(simulated, question, laid_out)
        shown += any(c.verdict == "shown" and set(c.groups) == set(power.PAIR) for c in found)
    assert 0.64 * RUNS <= shown <= 0.94 * RUNS
