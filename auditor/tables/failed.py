"""What a user's model raised, as one sentence."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np

from auditor.core.counting import plural
from auditor.tables.schema import Schema


def what_failed(error: Exception, schema: Schema, rows: Any, n: int) -> str:
    """Which error a model raised, where in its code, and for which row it was asked first.

    Parameters
    ----------
    error : Exception
        What came out of the model.
    schema : Schema
        What its columns are called.
    rows : array or data frame
        What it was given.
    n : int
        How many rows.
    """
    table = np.asarray(rows, dtype=object)
    first = ", ".join(f"{name}={_told(v)}" for name, v in zip(schema.names, table[0], strict=True))
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = (
        f"the model raised {type(error).__name__}: {' '.join(str(error).split())[:400] or 'no message'}{at}, "
    )
    text += f"asked about {plural(n, 'row')}; the first: {first}"
    lacking = [
        name
        for j, name in enumerate(schema.names)
        if any(isinstance(v, float) and np.isnan(v) for v in table[:, j].tolist())
    ]
    if lacking:
        text += (
            f". Values are missing (NaN) in {', '.join(lacking)}: if the model does not take them, remove or fill "
            "those rows, and take .nan from the schema"
        )
    return text


def _told(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "…"
