from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.measure.intervals import benjamini_hochberg, clopper_pearson, holm, korn_graubard, mean_share

seeds = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=40
)
labels = st.lists(st.sampled_from("abc"), max_size=4)
ps = st.lists(st.none() | st.floats(0, 1), max_size=8)


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_limits_stand_around_the_value_within_zero_and_one(cells: list[tuple[int, int]]) -> None:
    x, n = zip(*cells, strict=True)
    for found in (korn_graubard(x, n), mean_share([a / b for a, b in cells], sum(n))):
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.high > found.low


@settings(max_examples=60, deadline=None)
@given(seeds, st.floats(0.5, 0.98))
def test_a_higher_level_gives_a_wider_interval(cells: list[tuple[int, int]], level: float) -> None:
    x, n = zip(*cells, strict=True)
    narrow, wide = korn_graubard(x, n, level), korn_graubard(x, n, level + 0.015)
    assert wide.low <= narrow.low + 1e-9
    assert narrow.high <= wide.high + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 60))
def test_one_more_flipped_seed_never_lowers_value_or_limits(n: int) -> None:
    for before, after in ((0, 1), (n // 3, n // 3 + 1), (n - 1, n)):
        for make in (lambda k: clopper_pearson(k, n), lambda k: korn_graubard([1] * k + [0] * (n - k), [1] * n)):
            a, b = make(before), make(after)
            assert a.value < b.value
            assert a.low <= b.low + 1e-9
            assert a.high <= b.high + 1e-9


@settings(max_examples=60, deadline=None)
@given(seeds, st.randoms(use_true_random=False))
def test_the_order_of_seeds_does_not_matter_and_flips_mirror_passes(
    cells: list[tuple[int, int]], shuffle: random.Random
) -> None:
    x, n = zip(*cells, strict=True)
    found = korn_graubard(x, n)
    shuffle.shuffle(cells)
    again = korn_graubard([a for a, _ in cells], [b for _, b in cells])
    mirrored = korn_graubard([b - a for a, b in cells], [b for _, b in cells])
    np.testing.assert_allclose([found.low, found.high], [again.low, again.high], atol=1e-9)
    np.testing.assert_allclose([found.low, found.high], [1 - mirrored.high, 1 - mirrored.low], atol=1e-7)


@settings(max_examples=25, deadline=None)
@given(ps)
def test_adjusted_p_values_never_fall_and_holm_is_the_stricter(p_values: list[float | None]) -> None:
    strict, loose = holm(p_values), benjamini_hochberg(p_values)
    for raw, h, q in zip(p_values, strict, loose, strict=True):
        assert (raw is None) == (h is None) == (q is None)
        if raw is not None and h is not None and q is not None:
            assert raw - 1e-12 <= q <= h + 1e-12
            assert h <= 1
