"""Raw values as numbers and as names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def encode_integer(number: NDArray[np.float64], low: int, step: int, codes: int) -> NDArray[np.int32]:
    """``(value - low) / step`` where it is a code; -1 elsewhere."""
    offset = (number - low) / step
    good = np.isfinite(offset) & (offset == np.floor(offset)) & (offset >= 0) & (offset < codes)
    return np.where(good, offset, -1).astype(np.int32)


def numbers(array: NDArray[Any]) -> NDArray[np.float64]:
    """Floats; NaN where a value is no number."""
    if array.dtype.kind in "iufb":
        return array.astype(np.float64)

    def number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return math.nan

    return np.array([number(v) for v in array.ravel()], dtype=np.float64)


def name(value: Any) -> str:
    """One spelling per value, so that 1, 1.0, True and "1" are the same category; a missing one has none."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def named(array: NDArray[Any]) -> NDArray[Any]:
    """The spelling of each value; missing ones are empty."""
    if array.dtype.kind in "iu":
        return array.astype(str)
    return np.array([name(v) for v in array.ravel()], dtype=str)
