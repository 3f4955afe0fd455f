from __future__ import annotations

import pytest

from auditor.measure.hidden import hidden_by_chance


def test_hidden_by_chance_follows_the_published_table() -> None:
    for d, rate, share in ((0.005, 0.0049, 0.49), (0.02, 0.019, 0.48), (0.05, 0.043, 0.45)):
        found = hidden_by_chance(2 * d * (1 - d))
        assert found == (pytest.approx(rate, rel=0.03), pytest.approx(share, abs=0.01))
    three, _ = hidden_by_chance(2 * 0.02 * 0.98, replicates=3)
    assert three == pytest.approx(1.2e-3, rel=0.05)
    five, _ = hidden_by_chance(2 * 0.05 * 0.95, replicates=5)
    assert five == pytest.approx(1.2e-3, rel=0.06)
    assert hidden_by_chance(0.0) == (0.0, None)
