"""Rows that are drawn or walked through, keys of rows, and sets of keys.

Bins serve searching and sampling, and never stand in for a value that somebody has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.tables.columns import Codes
from auditor.tables.row_schema import Schema

Keys = NDArray[np.generic]  # int64, or void of fixed width


def bins_note(schema: Schema) -> str:
    """What a report says about binned columns; empty without one."""
    named = ", ".join(f"{c.name} ({c.codes})" for c in schema.columns if c.kind == "binned")
    if not named:
        return ""
    return (
        f"Searched, uniform and enumerated rows take one value for each bin of {named}: what a model does between "
        "these values they cannot show. Given rows in scores were asked with the values that they have."
    )


def row_keys(codes: NDArray[np.int32], cards: Sequence[int] | NDArray[np.int64]) -> Keys:
    """Return one exact key per row of codes, in lexicographic order of rows.

    int64 in mixed radix where the domain has at most 2^63 rows; else big-endian bytes of dtype void.

    Examples
    --------
    >>> row_keys(np.array([[0, 1], [2, 0]], dtype=np.int32), [3, 2])
    array([1, 4])
    """
    sizes = [int(c) for c in cards]
    if math.prod(sizes) <= 2**63:
        key = np.zeros(len(codes), dtype=np.int64)
        for j, size in enumerate(sizes):
            key *= size
            key += codes[:, j]
        return key
    widths = [np.dtype(np.uint8 if s <= 2**8 else ">u2" if s <= 2**16 else ">u4") for s in sizes]
    packed = np.empty((len(codes), sum(w.itemsize for w in widths)), dtype=np.uint8)
    at = 0
    for j, width in enumerate(widths):
        column = np.ascontiguousarray(codes[:, j]).astype(width)
        packed[:, at : at + width.itemsize] = column.view(np.uint8).reshape(len(codes), width.itemsize)
        at += width.itemsize
    return packed.view(np.dtype((np.void, packed.shape[1]))).reshape(-1)


class Seen:
    """A growing set of keys.

    Examples
    --------
    >>> seen = Seen()
    >>> seen.add(np.array([5, 3, 5])), seen.add(np.array([3, 4])), len(seen)
    (array([ True,  True, False]), array([False,  True]), 3)
    """

    def __init__(self) -> None:
        self._keys: set[object] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, keys: Keys) -> NDArray[np.bool_]:
        """Add keys; which of them were new, shape (n,): of equal new keys only the first."""
        new = np.zeros(len(keys), dtype=bool)
        for i, key in enumerate(keys.tolist()):
            if key not in self._keys:
                self._keys.add(key)
                new[i] = True
        return new


def case_keys(schema: Schema, codes: Codes) -> Keys:
    """Exact keys of the cases that rows belong to, shape (n,): the columns that are not protected."""
    index = schema.free_index
    return row_keys(codes[:, index], schema.cards[index])


def uniform(schema: Schema, n: int, rng: np.random.Generator) -> Codes:
    """Draw rows uniformly from the whole domain, shape (n, d), constraints ignored."""
    out = np.empty((schema.d, n), dtype=np.int32)  # column by column in memory: drawn and keyed faster
    for j, card in enumerate(schema.cards.tolist()):
        kind = np.int16 if card < 2**15 else np.int64  # narrow draws are cheaper
        out[j] = rng.integers(0, card, n, dtype=kind) if card > 1 else 0
    return out.T


def enumerate_rows(schema: Schema, columns: NDArray[np.intp] | None = None, *, chunk: int = 65536) -> Iterator[Codes]:
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
