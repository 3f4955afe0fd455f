"""Net claims on the product's own cases with planted answers: how often they err, what they cover, what they show.

The settings are those of ``benchmarks/power.py``, which measures them with more repetitions and at more places.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from auditor.measure.claims import claims
from auditor.measure.power import reach
from auditor.measure.simulate import Effects, Simulated, shift, spread

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import power

pytestmark = pytest.mark.slow
RUNS = 60
# No more than this many of RUNS where 5 % is allowed: exceeded by chance in 3 of 1,000 settings.
ERRORS = 8
SETTINGS = {setting.name: setting for setting in power.settings()}
NULLS = [s.name for s in SETTINGS.values() if s.kind == "null" and s.attributes and s.task == "sentiment"]


@pytest.mark.parametrize("name", NULLS)
def test_what_is_no_difference_between_groups_is_not_shown(name: str) -> None:
    found = power.measure_setting(SETTINGS[name], RUNS)
    assert found.shown <= ERRORS
    assert found.refusals <= ERRORS
    if SETTINGS[name].words_too:
        assert found.shown_for_words <= ERRORS


@pytest.mark.parametrize("name", [s.name for s in SETTINGS.values() if s.kind == "bounded"])
def test_nothing_is_bounded_at_delta(name: str) -> None:
    assert power.measure_setting(SETTINGS[name], RUNS).bounded <= ERRORS


@pytest.mark.parametrize("scale", ["share", "log_odds"])
@pytest.mark.parametrize("name", sorted(power.covered()))
def test_intervals_hold_what_is_true(name: str, scale: power.Scale) -> None:
    found = power.coverage(name, power.covered()[name], scale, RUNS)
    assert found.group >= RUNS - ERRORS
    assert found.words >= RUNS - ERRORS


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("2 % effect, noise 1.6 %, 200 calls", 0.8),
        ("2 % effect, noise 3.2 %, 200 calls", 0.8),
        ("5 % effect, word sd 0.05, log_odds", 0.5),
        ("5 % effect, word sd 0.05, share", 0.15),
    ],
)
def test_effects_are_shown(name: str, least: float) -> None:
    found = power.measure_setting(SETTINGS[name], RUNS)
    seen = found.shown + (found.shown_for_words if SETTINGS[name].most_calls else 0)
    assert seen >= least * RUNS


def test_a_dry_run_keeps_its_word() -> None:
    table, question = power.plan("sentiment", ("gender",))
    claim = next(c for c in reach(table, question)["claims"] if c["groups"] == ["female", "male"])
    simulated = Simulated(table, "gender", power.PAIR)
    effects = Effects(net=shift(claim["smallest"]), noise=spread(0.016), word=0.02)
    shown = 0
    for n in range(RUNS):
        simulated.draw(np.random.default_rng(n), effects)
        shown += any(
            c.verdict == "shown" and set(c.groups) == set(power.PAIR) for c in claims(simulated, question)
        )
    assert 0.6 * RUNS <= shown <= 0.97 * RUNS
