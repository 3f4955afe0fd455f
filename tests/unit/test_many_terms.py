"""The interval over seeds and terms where a run has more than a thousand terms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from auditor.measure.two_way import beside


@pytest.mark.parametrize("terms", [40, 1_200])
def test_the_number_of_terms_is_a_number(terms: int) -> None:
    verdicts = [
        SimpleNamespace(
            variant_id=f"v{i}", model="m", format="f", attributes=("gender",), case_id=f"c{i % 60}",
            outcome="violation" if i % 7 == 0 else "pass",
        )
        for i in range(2 * terms)
    ]  # fmt: skip
    edits = {f"v{i}": SimpleNamespace(term=f"t{i % terms}") for i in range(2 * terms)}
    row: dict[str, Any] = {
        "name": "violation_rate", "model": "m", "format": "f", "attributes": ["gender"], "directions": None, "kind": None,
    }  # fmt: skip
    (made,) = beside([row], verdicts, edits)  # type: ignore[arg-type]
    assert made["interval_two_way"]["n_terms"] == terms
