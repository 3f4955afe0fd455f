"""Find lines of journals by the digests of what they are about, in some tens of bytes of memory for each line."""

from __future__ import annotations

import hashlib
from array import array

SMALLEST = 1 << 10  # slots; their number is a power of 2


def short(content: str | bytes) -> int:
    """Return 8 bytes of a digest as a number; of a million texts two share one with probability 3e-8."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def pair_number(pair: tuple[str, int]) -> int:
    """Return one number for a (prompt sha256, replicate) pair."""
    return short("{}\n{}".format(*pair))


class Index:
    """Map unsigned 64-bit numbers to such numbers, of which a key may have several.

    A hash table in two arrays, at most two thirds full. Key 0 marks free slots and is taken for key 1.

    >>> index = Index()
    >>> index.add(7, 5)
    >>> index.get(7), index.get(8), index.claim(7, 9), index.claim(8, 9)
    ([5], [], 5, None)
    """

    __slots__ = ("_keys", "_size", "_values")

    def __init__(self) -> None:
        free = bytes(8 * SMALLEST)
        self._keys, self._values, self._size = array("Q", free), array("Q", free), 0

    def add(self, key: int, value: int) -> None:
        """Put in one more value of ``key``."""
        if 3 * self._size >= 2 * (len(self._keys) - 1):
            self._grow()
        keys, mask = self._keys, len(self._keys) - 1
        key = key or 1
        slot = key & mask
        while keys[slot]:
            slot = (slot + 1) & mask
        keys[slot], self._values[slot] = key, value
        self._size += 1

    def get(self, key: int) -> list[int]:
        """Return the values of ``key``, sorted."""
        keys, mask = self._keys, len(self._keys) - 1
        key = key or 1
        slot, values = key & mask, []
        while other := keys[slot]:
            if other == key:
                values.append(self._values[slot])
            slot = (slot + 1) & mask
        return sorted(values) if len(values) > 1 else values

    def claim(self, key: int, value: int = 0) -> int | None:
        """Return the least value that ``key`` has already; None where it had none, and has ``value`` now."""
        if values := self.get(key):
            return values[0]
        self.add(key, value)
        return None

    def __contains__(self, key: int) -> bool:
        return bool(self.get(key))

    def __len__(self) -> int:
        return self._size

    def _grow(self) -> None:
        old = zip(self._keys, self._values, strict=True)
        free = bytes(16 * len(self._keys))
        self._keys, self._values, self._size = array("Q", free), array("Q", free), 0
        for key, value in old:
            if key:
                self.add(key, value)
