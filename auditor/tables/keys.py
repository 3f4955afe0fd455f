"""Exact keys for rows, however large the domain, and sets of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.tables.column import Codes
from auditor.tables.schema import Schema

Keys = NDArray[np.generic]  # int64, or void of fixed width


INT64 = 2**63


def row_keys(codes: NDArray[np.int32], cards: Sequence[int] | NDArray[np.int64]) -> Keys:
    """One key per row; two rows have equal keys if and only if they are equal.

    Parameters
    ----------
    codes : array of int, shape (n, k)
        Codes ``0 <= codes[:, j] < cards[j]``: pass the columns that matter (``codes[:, schema.free_index]``
        for cases).
    cards : sequence of int, length k
        Codes per column.

    Returns
    -------
    array, shape (n,)
        int64 in mixed radix (order = lexicographic order of rows) where the domain has at most 2^63 rows;
        otherwise fixed-width bytes of dtype void, big-endian, in the same order. Both sort, and go through
        `numpy.unique`.

    Examples
    --------
    >>> row_keys(np.array([[0, 1], [2, 0]], dtype=np.int32), [3, 2])
    array([1, 4])
    """
    sizes = [int(c) for c in cards]
    if math.prod(sizes) <= INT64:
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


def first_of_each(keys: Keys) -> NDArray[np.intp]:
    """Positions of the first row of each distinct key, in row order.

    Examples
    --------
    >>> first_of_each(np.array([5, 3, 5]))
    array([0, 1])
    """
    return np.sort(np.unique(keys, return_index=True)[1])


class Seen:
    """A growing set of keys.

    Kept as sorted runs whose lengths at least double, so that adding ``n`` keys to ``N`` costs
    O(n log N) on average, in NumPy.

    Examples
    --------
    >>> seen = Seen()
    >>> seen.add(np.array([5, 3, 5])), seen.add(np.array([3, 4]))
    (array([ True,  True, False]), array([False,  True]))
    >>> len(seen)
    3
    """

    def __init__(self) -> None:
        self._runs: list[Keys] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def __contains__(self, key: object) -> bool:
        return bool(self.has(np.array([key]))[0])

    def has(self, keys: Keys) -> NDArray[np.bool_]:
        """Which keys are in the set, shape (n,)."""
        found = np.zeros(len(keys), dtype=bool)
        for run in self._runs:
            at = np.searchsorted(run, keys)
            at[at == len(run)] = 0
            found |= run[at] == keys
        return found

    def add(self, keys: Keys) -> NDArray[np.bool_]:
        """Add keys; which of them were new, shape (n,): of equal new keys only the first."""
        new = np.zeros(len(keys), dtype=bool)
        if not len(keys):
            return new
        first = np.unique(keys, return_index=True)[1]
        first = first[~self.has(keys[first])]
        new[first] = True
        run = keys[first]  # sorted: `unique` returned the positions in key order
        while len(self._runs) and len(run) and len(self._runs[-1]) < 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        if len(run):
            self._runs.append(run)
        return new


def case_keys(schema: Schema, codes: Codes) -> Keys:
    """Exact keys of the cases that rows belong to, shape (n,): the columns that are not protected."""
    index = schema.free_index
    return row_keys(codes[:, index], schema.cards[index])
