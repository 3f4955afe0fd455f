"""Rows of a domain: all of them, some at random, and given ones with every combination of some columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.tables.schema import Codes, Schema


def cross(codes: Codes, index: NDArray[np.intp], combos: Codes) -> Codes:
    """Rows with every combination: shape (m * n, d), all rows with the first combination first."""
    rows = np.tile(codes, (len(combos), 1))
    rows[:, index] = np.repeat(combos, len(codes), axis=0)
    return rows


def uniform(schema: Schema, n: int, rng: np.random.Generator) -> Codes:
    """Rows drawn uniformly from the whole domain, shape (n, d), constraints ignored.

    Examples
    --------
    >>> from auditor.tables.schema import Column, Schema
    >>> schema = Schema(columns=(Column(name="a", kind="integer", codes=3),))
    >>> uniform(schema, 4, np.random.default_rng(7)).shape
    (4, 1)
    """
    out = np.empty((schema.d, n), dtype=np.int32)  # column by column in memory: drawn and keyed faster
    for j, card in enumerate(schema.cards.tolist()):
        kind: Any = np.int16 if card < 2**15 else np.int64  # narrow draws are cheaper
        out[j] = rng.integers(0, card, n, dtype=kind) if card > 1 else 0
    return out.T


def enumerate_rows(
    schema: Schema, columns: NDArray[np.intp] | None = None, *, chunk: int = 65536
) -> Iterator[Codes]:
    """Every row of the domain in key order, in chunks; columns not in ``columns`` stay at code 0."""
    index = np.arange(schema.d) if columns is None else columns
    cards = schema.cards[index]
    total = int(np.prod(cards, dtype=object)) if len(cards) else 1
    for start in range(0, total, chunk):
        rest = np.arange(start, min(start + chunk, total), dtype=np.int64)
        rows = np.zeros((len(rest), schema.d), dtype=np.int32)
        for j in range(len(index) - 1, -1, -1):
            rest, rows[:, index[j]] = np.divmod(rest, cards[j])
        yield rows
