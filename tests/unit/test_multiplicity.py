from __future__ import annotations

import pytest

from auditor.measure.p_values import benjamini_hochberg, holm


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5]) == [0.5]


def test_benjamini_hochberg_by_hand() -> None:
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.8]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.8])


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_claims_that_were_not_tested_are_not_in_the_family(adjust: object) -> None:
    assert adjust([]) == []  # type: ignore[operator]
    assert adjust([None, None]) == [None, None]  # type: ignore[operator]
    assert adjust([None, 0.02, None]) == [None, 0.02, None]  # type: ignore[operator]
    found = adjust([0.01, None, 0.02])  # type: ignore[operator]
    assert found[1] is None
    assert found[0] == pytest.approx(0.02)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_what_is_no_probability_is_refused(adjust: object) -> None:
    with pytest.raises(ValueError, match="p values"):
        adjust([0.1, 1.2])  # type: ignore[operator]
    with pytest.raises(ValueError, match="p values"):
        adjust([float("nan")])  # type: ignore[operator]
