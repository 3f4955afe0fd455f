"""What a run keeps of each prompt and answer while it goes on, in some tens of bytes for each."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from typing import Any


def short(content: str | bytes) -> int:
    """The first 8 bytes of a digest of a text or its bytes, as a number.

    Of n distinct texts two share one with probability n² / 2⁶⁵: 3e-8 for a million.
    """
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


class IntMap:
    """Unsigned 64-bit numbers to unsigned 64-bit numbers, in 16 bytes for each slot (at most two thirds full).

    Examples
    --------
    >>> known = IntMap()
    >>> known[7] = 3
    >>> known.get(7), known.get(8), len(known)
    (3, None, 1)
    """

    __slots__ = ("_keys", "_mask", "_size", "_values", "_zero")

    def __init__(self, bits: int = 10) -> None:
        self._mask = (1 << bits) - 1
        self._keys = array("Q", bytes(8 << bits))
        self._values = array("Q", bytes(8 << bits))
        self._size = 0
        self._zero: int | None = None  # the value of key 0, which marks free slots

    def __len__(self) -> int:
        return self._size + (self._zero is not None)

    def get(self, key: int) -> int | None:
        """The value of ``key``, or None."""
        if not key:
            return self._zero
        slot = self._slot(key)
        return self._values[slot] if self._keys[slot] else None

    def __contains__(self, key: int) -> bool:
        return self.get(key) is not None

    def __setitem__(self, key: int, value: int) -> None:
        if self.claim(key, value) is not None:
            if key:
                self._values[self._slot(key)] = value
            else:
                self._zero = value

    def claim(self, key: int, value: int) -> int | None:
        """The value that ``key`` has already; None where it had none, and has ``value`` now."""
        if not key:
            known = self._zero
            self._zero = value if known is None else known
            return known
        keys, mask = self._keys, self._mask
        slot = key & mask
        while other := keys[slot]:
            if other == key:
                return self._values[slot]
            slot = (slot + 1) & mask
        if 3 * self._size >= 2 * mask:
            self._grow()
            slot = self._slot(key)
        self._keys[slot], self._values[slot] = key, value
        self._size += 1
        return None

    def _slot(self, key: int) -> int:
        keys, mask = self._keys, self._mask
        slot = key & mask
        while (other := keys[slot]) and other != key:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        keys, values = self._keys, self._values
        size = 2 * (self._mask + 1)
        self._mask = size - 1
        self._keys, self._values = array("Q", bytes(8 * size)), array("Q", bytes(8 * size))
        for key, value in zip(keys, values, strict=True):
            if key:
                slot = self._slot(key)
                self._keys[slot], self._values[slot] = key, value


class KeySet:
    """Which (prompt sha256, replicate) pairs there are; 16 bytes a slot, whatever their number.

    Two pairs are taken for one with the probability that `short` names.
    """

    __slots__ = ("_map",)

    def __init__(self, pairs: Iterable[tuple[str, int]] = ()) -> None:
        self._map = IntMap()
        for pair in pairs:
            self.add(pair)

    def add(self, pair: tuple[str, int]) -> bool:
        """Put a pair in; False if it is in already."""
        return self._map.claim(pair_number(pair), 1) is None

    def __contains__(self, pair: tuple[str, int]) -> bool:
        return pair_number(pair) in self._map

    def __len__(self) -> int:
        return len(self._map)

    def missing(self, pairs: Iterable[tuple[str, int]]) -> int:
        """How many distinct ``pairs`` are not in."""
        return sum(pair not in self for pair in set(pairs))


def pair_number(pair: tuple[str, int]) -> int:
    """One number for a (prompt sha256, replicate) pair."""
    sha256, replicate = pair
    try:
        start = int(sha256[:16], 16)
    except ValueError:  # not a hexadecimal digest: a prompt made by hand
        start = short(sha256)
    # An odd multiplier spreads the replicates over all bits and keeps replicate 0 as it is.
    return (start + replicate * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF


class Places:
    """Where in a file the records of an id are: 16 bytes for each, sorted when first asked.

    Ids are kept as `short` numbers: what is found must be compared with what was asked.
    """

    def __init__(self) -> None:
        self._keys, self._offsets = array("Q"), array("Q")
        self._sorted: tuple[Any, Any] | None = None

    def add(self, key: str, offset: int) -> None:
        """Put in one record."""
        self._keys.append(short(key))
        self._offsets.append(offset)
        self._sorted = None

    def get(self, key: str) -> list[int]:
        """The offsets of an id, in the order put in."""
        import numpy as np

        if self._sorted is None:
            keys = np.frombuffer(self._keys, dtype=np.uint64) if self._keys else np.empty(0, np.uint64)
            order = np.argsort(keys, kind="stable")
            offsets = np.frombuffer(self._offsets, dtype=np.uint64) if self._keys else keys
            self._sorted = keys[order], offsets[order]
            if len(keys):  # the arrays are free to grow again once nothing looks into them
                self._keys, self._offsets = (array("Q", sorted_.tobytes()) for sorted_ in self._sorted)
        keys, offsets = self._sorted
        wanted = np.uint64(short(key))
        low, high = np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")
        return [int(offset) for offset in offsets[low:high]]
