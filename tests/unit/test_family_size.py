"""Large families of claims and rare changes: what the tests can show and bound must not depend on a fixed number
of resamples or on a normal approximation.
"""

from __future__ import annotations

import numpy as np
import pytest
from judged import shape

from auditor.measure import text_pairs
from auditor.measure.observations import Observations
from auditor.measure.p_values import resamples_for, too_coarse
from auditor.measure.text_metrics import Measured, Metrics


def test_free_text_draws_for_the_rows_of_all_models(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr(text_pairs, "differences", lambda *_, resamples, **__: drawn.append(resamples) or [])
    table = Observations()
    metrics = Metrics(table)
    for g in range(20):
        row = table.shape("c0", shape(("a",), ("a", "x", f"g{g}")), f"v{g}")
        for model in ("m", "n", "o"):
            metrics.add(row, model, "plain", Measured(between={"wording": 0.0}))
    text_pairs.study(metrics, deterministic={})
    assert drawn == [resamples_for(4 * 60 + 2 * 3)] != [1999]


def test_only_what_may_become_significant_is_drawn_again() -> None:
    assert resamples_for(0) == resamples_for(25) == 1999
    assert resamples_for(26) == 2079
    assert resamples_for(1, least=199) == 199
    assert resamples_for(1e9) == 199_999
    for tests in (1, 25, 26, 100, 600):  # the smallest two-sided p value, after correction
        assert 2 / (1 + resamples_for(tests)) * tests < 0.05
    assert too_coarse(11 / 2000, 1999, 2039)
    assert not too_coarse(12 / 2000, 1999, 2039)
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
