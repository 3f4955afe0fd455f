"""Large families of claims and rare changes: what the tests can show and bound must not depend on a fixed number
of resamples or on a normal approximation.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import beta

from auditor.stats import directions, pairs
from auditor.stats.findings import Settings, findings
from auditor.stats.multiplicity import resamples_for, too_coarse
from auditor.stats.summary import EditInfo
from auditor.types import Verdict

CLAIMS, SEEDS = 130, 12


def verdict(attribute: str, case: str, name: str, outcome: str = "violation") -> Verdict:
    return Verdict(
        case_id=case,
        variant_id=name,
        order=1,
        attributes=(attribute,),
        outcome=outcome,  # type: ignore[arg-type]
        model="m",
        format="plain",
    )


def test_a_clear_change_is_shown_however_many_claims_there_are() -> None:
    verdicts, placebos, edits = [], [], {}
    labels: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for s in range(SEEDS):
        arms = labels.setdefault((f"c{s}", "plain"), {f"c{s}.o": ("yes",) * 3})
        for a in range(CLAIMS):
            name = f"c{s}.v{a}"
            # One attribute always changes the answer, the others never do.
            arms[name] = ("no",) * 3 if a == 0 else ("yes",) * 3
            verdicts.append(verdict(f"a{a:03d}", f"c{s}", name, "violation" if a == 0 else "pass"))
            edits[name] = EditInfo(((f"a{a:03d}", "x", "y"),), ("swap",))
        for n in range(2):
            edits[f"c{s}.p{n}"] = EditInfo((), ("placebo",))
            placebos.append(verdict("a000", f"c{s}", f"c{s}.p{n}", "pass"))
            arms[f"c{s}.p{n}"] = ("yes",) * 3
    found = findings(
        verdicts, edits, Settings(deterministic={"m": False}, labels={"m": labels}, placebos=placebos)
    )
    claims = [f for f in found if f.code == "MUT101"]
    assert len(claims) == CLAIMS
    assert claims[0].verdict == "shown", (claims[0].p_value, claims[0].p_adjusted)
    assert {f.verdict for f in claims[1:]} == {"not_determined"}


def test_one_clear_direction_stands_out_of_hundreds() -> None:
    verdicts, edits = [], {}
    answers: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for s in range(60):
        arms = answers.setdefault((f"c{s}", "plain"), {f"c{s}.o": ("yes", "no")})
        for g in range(300):
            name = f"c{s}.v{g}"
            # The first goes up on 14 seeds; in the others as many seeds go up as down.
            up, down = (s < 14, False) if g == 0 else (s % 10 == 0, s % 10 == 5)
            arms[name] = ("yes", "yes") if up else ("no", "no") if down else ("yes", "no")
            verdicts.append(verdict("a", f"c{s}", name))
            edits[name] = EditInfo((("a", "x", f"g{g:03d}"),), ("swap",))
    tests = directions.label_tests(
        verdicts, edits, {"m": answers}, "yes", rng=np.random.default_rng(1), resamples=1999
    )
    assert len(tests) == 300
    (finding,) = [
        f
        for f in directions.direction_findings([tests], 1, alpha=0.05, delta=None, positive_control={})
        if f.verdict == "shown"
    ]
    assert finding.directions == (("a", "x", "g000"),)


def test_free_text_draws_for_the_rows_of_all_models(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr(pairs, "distances", lambda *_, resamples, **__: drawn.append(resamples) or [])
    edits = {f"v{g}": EditInfo((("a", "x", f"g{g}"),), ("swap",)) for g in range(20)}
    verdicts = [
        dataclasses.replace(verdict("a", "c0", name), model=model)
        for name in edits
        for model in ("m", "n", "o")
    ]
    pairs.study(verdicts, [], edits, {}, deterministic={})
    assert drawn == [resamples_for(4 * 60 + 2 * 3)] * 2 != [1999] * 2


def test_only_what_may_become_significant_is_drawn_again() -> None:
    assert resamples_for(0) == resamples_for(25) == 1999
    assert resamples_for(26) == 2079
    assert resamples_for(1, least=199) == 199
    assert resamples_for(1e9) == 199_999
    for tests in (1, 25, 26, 100, 600):  # the smallest two-sided p value, after correction
        assert 2 / (1 + resamples_for(tests)) * tests < 0.05
    assert too_coarse(11 / 2000, 1999, 2039)
    assert not too_coarse(12 / 2000, 1999, 2039)
    assert not too_coarse(None, 1999, 2039)
    assert not too_coarse(1 / 2000, 1999, 1999)


def test_drawing_again_keeps_the_level() -> None:
    """Under the null the two-stage p value is below t with a chance of at most t, at any t."""
    rng = np.random.default_rng(3)
    base, wanted, runs = 199, 3999, 20_000
    true = rng.uniform(size=runs)  # the chance that one resample reaches what was seen
    first = (1 + rng.binomial(base, true)) / (1 + base)
    second = (1 + rng.binomial(wanted, true)) / (1 + wanted)
    again = np.array([too_coarse(float(p), base, wanted) for p in first])
    p = np.where(again, second, first)
    for t in (0.001, 0.01, 0.05, 0.055, 0.06, 0.1):
        assert (p <= t).mean() <= t + 3 * np.sqrt(t * (1 - t) / runs)
    assert (p <= 0.001).mean() > 0  # and the coarse one could not


@pytest.mark.parametrize("seeds", [20, 100, 300, 1000])
def test_one_change_bounds_less_than_none(seeds: int) -> None:
    none = directions._limit([0.0] * seeds)
    assert none == pytest.approx(1 - 0.05 ** (1 / seeds))
    for sign in (1.0, -1.0):
        one = directions._limit([sign, *[0.0] * (seeds - 1)])
        assert one > none
        # Never below the exact one-sided 95 % limit of one change.
        assert one >= beta.ppf(0.95, 2, seeds - 1) * 0.999
    both = directions._limit([1.0, -1.0, *[0.0] * (seeds - 2)])
    assert both > none


def test_the_limit_of_a_direction_holds_the_truth() -> None:
    rng = np.random.default_rng(4)
    for up, down in ((0.01, 0.0), (0.02, 0.005), (0.1, 0.0)):
        held = 0
        for _ in range(150):
            d = rng.choice([1.0, -1.0, 0.0], p=[up, down, 1 - up - down], size=120)
            held += directions._limit(list(d)) > abs(up - down)
        assert held >= 150 * 0.92
