"""One value of a row, as it goes into JSON or a text."""

from __future__ import annotations

import math
from typing import Any


def scalar(value: object) -> Any:
    """Whole numbers without a decimal point; None where a value is missing (NaN).

    Examples
    --------
    >>> scalar(31.0), scalar(0.5), scalar(True), scalar(float("nan"))
    (31, 0.5, True, None)
    """
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else int(value) if value.is_integer() else value
