"""The rules of claims on simulated runs: how often they err, what they cover, and what they find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from auditor.stats.findings import Settings, findings
from auditor.stats.paired import over_placebo
from auditor.stats.summary import EditInfo, tabulate, violation_rate
from auditor.types import Finding, Verdict

RUNS = 200
ERRORS = 18  # 5 % of 200 and 2.6 standard errors
COVERED = 182
SEEDS = 60
GENDER = ("gender", "male", "female")
NATION = ("nationality", "british", "kenyan")

EDITS: dict[str, EditInfo] = {}
for _seed in range(SEEDS):
    for _n in range(3):
        EDITS[f"c{_seed}.a{_n}"] = EditInfo((GENDER,), ("swap",))
        EDITS[f"c{_seed}.b{_n}"] = EditInfo((NATION,), ("swap",))
    for _n in range(2):
        EDITS[f"c{_seed}.p{_n}"] = EditInfo((("gender", "male", "male"),), ("placebo",))

# A model: (draws, seeds) -> flips of originals' own label, of attribute variants a and b, of placebos.
Flips = dict[str, Any]


def verdict(
    seed: int, name: str, attributes: tuple[str, ...], before: bool, after: bool, order: int = 1
) -> Verdict:
    return Verdict(
        case_id=f"c{seed}",
        variant_id=f"c{seed}.{name}",
        order=order,
        attributes=attributes,
        outcome="pass" if before == after else "violation",
        model="m",
        format="bare",
    )


def run(answers: Flips, *, deterministic: bool, **options: Any) -> list[Finding]:
    """Findings of one run; ``answers`` maps variant names to booleans of shape (seeds, replicates)."""
    majority = {name: 2 * given.sum(axis=1) > given.shape[1] for name, given in answers.items()}
    verdicts, placebos = [], []
    labels: dict[tuple[str, str], dict[str, list[str]]] = {}
    for seed in range(SEEDS):
        before = bool(majority["o"][seed])
        for name in answers:
            after = bool(majority[name][seed])
            if name[0] == "a":
                verdicts.append(verdict(seed, name, ("gender",), before, after))
            elif name[0] == "b":
                verdicts.append(verdict(seed, name, ("nationality",), before, after))
            elif name[0] == "p":
                placebos.append(verdict(seed, name, ("neutral",), before, after, order=0))
        labels[f"c{seed}", "bare"] = {
            f"c{seed}.{name}": ["yes" if x else "no" for x in given[seed]] for name, given in answers.items()
        }
    chosen: dict[str, Any] = {"permutations": 399, "outcomes": ("yes",)} | options
    settings = Settings(
        deterministic={"m": deterministic},
        labels={} if deterministic else {"m": labels},
        answers={"m": labels},
        placebos=placebos,
        **chosen,
    )
    return findings(verdicts, EDITS, settings)


def shown(found: list[Finding], code: str = "MUT") -> bool:
    return any(f.verdict == "shown" and f.code.startswith(code) for f in found)


NAMES = ("o", "a0", "a1", "a2", "b0", "b1", "b2", "p0", "p1")


def wobble(draws: np.random.Generator, share: float = 0.03) -> Flips:
    return {name: draws.random((SEEDS, 3)) < share for name in NAMES}


def each_wording(draws: np.random.Generator) -> Flips:
    """A deterministic model in which any other wording changes the answer in 4 % of the cases."""
    out = {name: draws.random((SEEDS, 1)) < 0.04 for name in NAMES}
    return out | {"o": np.zeros((SEEDS, 1), bool)}


def whole_seeds(draws: np.random.Generator) -> Flips:
    """A deterministic model in which, on 4 % of the seeds, any change of wording changes the answer."""
    unstable = draws.random((SEEDS, 1)) < 0.04
    return {name: unstable & (name != "o") for name in NAMES}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "deterministic"),
    [(wobble, False), (each_wording, True), (whole_seeds, True)],
    ids=["3 % wobble", "4 % of wordings", "4 % of seeds"],
)
def test_claims_without_an_effect_are_shown_in_at_most_18_of_200_runs(
    model: Callable[[np.random.Generator], Flips], deterministic: bool
) -> None:
    false = sum(
        shown(run(model(np.random.default_rng(n)), deterministic=deterministic, seed=n)) for n in range(RUNS)
    )
    assert false <= ERRORS


def test_without_a_placebo_arm_the_same_instability_would_be_called_shown() -> None:
    answers = each_wording(np.random.default_rng(1))
    without = {name: given for name, given in answers.items() if name[0] != "p"}
    assert not shown(run(answers, deterministic=True))
    assert shown(run(without, deterministic=True))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_a_planted_effect_is_shown_and_only_where_it_is(noise: float) -> None:
    found_it = elsewhere = 0
    for n in range(60):
        draws = np.random.default_rng(n)
        answers = wobble(draws, noise)
        hit = draws.random((SEEDS, 1)) < 0.25
        for name in ("a0", "a1", "a2"):
            answers[name] = answers[name] ^ hit
        found = run(answers, deterministic=noise == 0.0, seed=n)
        claims = {f.attributes: f.verdict for f in found if f.code == "MUT101"}
        found_it += claims["gender",] == "shown"
        elsewhere += claims["nationality",] == "shown"
    assert found_it >= 54
    assert elsewhere <= 6


@pytest.mark.slow
def test_intervals_hold_the_truth_in_at_least_182_of_200_runs() -> None:
    """Seeds differ: on some the answer hangs on the words, on most it does not."""
    excess = rate = signed = 0
    for n in range(RUNS):
        draws = np.random.default_rng(n)
        unstable = draws.choice([0.02, 0.30], size=SEEDS, p=[0.8, 0.2])  # mean 0.076
        hit = draws.beta(0.5, 2.0, size=SEEDS)  # mean 0.2
        attribute = draws.binomial(4, np.minimum(1, unstable + hit * (1 - unstable)))
        placebo = draws.binomial(4, unstable)
        found = over_placebo(
            [(int(x), 4) for x in attribute], [(int(x), 4) for x in placebo], rng=draws, resamples=19
        )
        assert found is not None
        excess += found.low <= 0.2 * (1 - 0.076) <= found.high
        verdicts = [
            verdict(seed, f"a{k}", ("gender",), False, k < x)
            for seed, x in enumerate(attribute)
            for k in range(4)
        ]
        edits = {v.variant_id: EditInfo((GENDER,), ("swap",)) for v in verdicts}
        (base,) = (key for key in tabulate(verdicts, edits) if key.directions is None and key.kind is None)
        told = violation_rate(tabulate(verdicts, edits)[base].values())
        assert told is not None
        truth = 0.076 + 0.2 * (1 - 0.076)
        rate += told.low <= truth <= told.high
        up = draws.random((SEEDS, 1)) < 0.35
        down = draws.random((SEEDS, 1)) < 0.10
        before = draws.random((SEEDS, 1)) < 0.5
        after = np.where(before, ~down, up)
        answers = {"o": before} | {f"a{k}": after for k in range(3)}
        directions = [f for f in run(answers, deterministic=True, seed=n) if f.code == "DIR110"]
        assert directions[0].rate is not None
        signed += directions[0].rate.low <= 0.5 * 0.35 - 0.5 * 0.10 <= directions[0].rate.high
    assert min(excess, rate, signed) >= COVERED


@pytest.mark.slow
def test_an_effect_without_a_direction_gets_none() -> None:
    """Half of the changes go up, half go down: the claim is shown, a direction is not."""
    false = opened = 0
    for n in range(RUNS):
        draws = np.random.default_rng(n)
        before = draws.random((SEEDS, 1)) < 0.5
        hit = draws.random((SEEDS, 1)) < 0.3
        answers = {name: before ^ (hit & (name[0] == "a")) for name in NAMES}
        found = run(answers, deterministic=True, seed=n)
        opened += shown(found)
        false += shown(found, "DIR")
    assert opened >= 190
    assert false <= ERRORS


def test_a_direction_is_shown_in_words_and_bounded_claims_need_the_positive_control() -> None:
    draws = np.random.default_rng(5)
    before = np.ones((SEEDS, 1), bool)
    hit = draws.random((SEEDS, 1)) < 0.4
    answers = {name: before ^ (hit & (name[0] == "a")) for name in NAMES}
    found = run(answers, deterministic=True, delta=0.06, positive_control={"m": True})
    (direction,) = (f for f in found if f.code == "DIR110")
    assert direction.verdict == "shown"
    assert direction.rate is not None
    assert direction.rate.value == -float(hit.mean())
    assert "texts about female got the label yes in 42 percentage points fewer of 60 seeds" in direction.text
    nation = next(f for f in found if f.attributes == ("nationality",))
    assert nation.verdict == "bounded"
    unseen = run(answers, deterministic=True, delta=0.06, positive_control={"m": False})
    assert next(f for f in unseen if f.attributes == ("nationality",)).verdict == "not_determined"
    narrow = run(answers, deterministic=True, delta=0.02, positive_control={"m": True})
    assert next(f for f in narrow if f.attributes == ("nationality",)).verdict == "not_determined"
    assert any("smallest delta this run could have bounded is 4.9 %" in note for note in nation.notes)


def test_too_few_discordant_seeds_are_said_so() -> None:
    hit = np.zeros((SEEDS, 1), bool)
    hit[:4] = True
    answers = {name: hit & (name[0] == "a") for name in NAMES}
    claim = next(f for f in run(answers, deterministic=True) if f.attributes == ("gender",))
    assert claim.verdict == "not_determined"
    assert any("too few discordant seeds" in note for note in claim.notes)


def test_refusing_one_group_more_often_is_a_finding() -> None:
    none = {name: np.zeros((SEEDS, 1), bool) for name in NAMES}
    silent = {(f"c{seed}", "bare"): {f"c{seed}.a{n}": 1.0 for n in range(3)} for seed in range(12)}
    found = run(none, deterministic=True, silent={"m": silent})
    (refused,) = (f for f in found if f.code == "REF120")
    assert refused.verdict == "shown"
    assert refused.directions == (GENDER,)
    assert "got no label (refused or not readable) in 20 percentage points more of 60 seeds" in refused.text
    alike = {
        (f"c{seed}", "bare"): {f"c{seed}.{name}": 1.0 for name in NAMES if name[0] != "p"}
        for seed in range(12)
    }
    assert not [f for f in run(none, deterministic=True, silent={"m": alike}) if f.code == "REF120"]
