"""Random effects of words: what was taken apart once gives what taking the whole apart gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from auditor.measure.effects import Random, _Bordered, _eigen


@pytest.mark.parametrize("few", [0, 1, 7, 14])
@pytest.mark.parametrize("shared", [0, 6])
def test_a_few_moved_rows_beside_many_others(few: int, shared: int) -> None:
    rng = np.random.default_rng(10 * few + shared)
    others, words = 60, 140
    z = np.zeros((few + others, words))
    z[few:, :100] = (rng.random((others, 100)) < 0.05) * rng.choice([-1.0, 0.5, 1.0], (others, 100))
    z[:few, 100 - shared :] = (rng.random((few, 40 + shared)) < 0.2) * 1.0
    x = np.r_[np.ones(few), np.zeros(others)][:, None]
    y = rng.normal(size=few + others) + z @ rng.normal(size=words)
    bordered, whole = Random(x, csr_array(z)), Random(x, z)
    assert isinstance(bordered._parts, _Bordered)
    assert not isinstance(whole._parts, _Bordered)
    one, other = bordered.curve(y), whole.curve(y)
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one.sd, other.sd, rtol=1e-6)
    np.testing.assert_allclose(one.log, other.log, atol=1e-5)


def test_the_many_rows_are_taken_apart_once() -> None:
    rng = np.random.default_rng(3)
    rest = (rng.random((40, 90)) < 0.1) * 1.0
    _eigen.cache_clear()
    for group in range(5):
        moved = np.zeros((6, 90))
        moved[:, group : group + 8] = 1.0
        z = csr_array(np.vstack([moved, rest]))
        assert Random(np.r_[np.ones(6), np.zeros(40)][:, None], z).curve(rng.normal(size=46)) is not None
    assert _eigen.cache_info().misses == 1
    assert _eigen.cache_info().hits == 4
