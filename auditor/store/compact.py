"""What a run keeps of each variant while it goes on, in some tens of bytes for each.

Most of what is known of a variant is also known of many others: its attributes, its outcome, the labels it got. Such
values are kept once (`Shared`); of the variant itself only references stay. Ids of the form ``<case id>.<rest>`` are
taken apart, since the rests are the same in every case; other ids are kept whole.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from auditor.core.types import Verdict

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)
_ABSENT: Any = object()


def short(text: str) -> int:
    """The first 8 bytes of a digest of ``text``, as a number.

    Of n distinct texts two share one with probability n² / 2⁶⁵: 3e-8 for a million.
    """
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
    )


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
        return self._zero is not None if not key else bool(self._keys[self._slot(key)])

    def __setitem__(self, key: int, value: int) -> None:
        if not key:
            self._zero = value
            return
        slot = self._slot(key)
        if not self._keys[slot]:
            if 3 * self._size >= 2 * self._mask:
                self._grow()
                slot = self._slot(key)
            self._keys[slot] = key
            self._size += 1
        self._values[slot] = value

    def claim(self, key: int, value: int) -> int | None:
        """The value that ``key`` has already; None where it had none, and has ``value`` now."""
        if not key:
            found, self._zero = self._zero, value if self._zero is None else self._zero
            return found
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
        while (found := keys[slot]) and found != key:
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


class Shared(Generic[H]):
    """Equal values, kept once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def __call__(self, value: H) -> H:
        """The first value that was equal to this one."""
        return self._known.setdefault(value, value)  # type: ignore[no-any-return]

    def made(self, key: Hashable, value: T) -> T:
        """The first value that was given with this key."""
        return self._known.setdefault(key, value)  # type: ignore[no-any-return]


_shapes: Shared[Any] = Shared()
_strings: Shared[str] = Shared()


def _shape(case_id: str, ids: Sequence[str]) -> Mapping[str, int] | None:
    """Place of each id by what follows the case id; None where one does not begin with it."""
    start, cut = case_id + ".", len(case_id) + 1
    if not all(one.startswith(start) for one in ids):
        return None
    rests = tuple(one[cut:] for one in ids)
    found: Mapping[str, int] = _shapes.made(rests, {rest: place for place, rest in enumerate(rests)})
    return found


class OfCase(Mapping[str, T]):
    """Variant id → value for the variants of one case, in the order given; 8 bytes for each value."""

    __slots__ = ("_case_id", "_shape", "_values")

    def __init__(self, case_id: str, ids: Sequence[str], values: Iterable[T]) -> None:
        shape = _shape(case_id, ids)
        self._case_id = None if shape is None else case_id
        self._shape = {one: place for place, one in enumerate(ids)} if shape is None else shape
        self._values = tuple(values)

    def __getitem__(self, variant_id: str) -> T:
        return self._values[self._shape[self._rest(variant_id)]]

    def at(self, rest: str, default: Any = None) -> Any:
        """The value of the variant whose id is that of the case, a dot and ``rest``; or ``default``."""
        place = None if self._case_id is None else self._shape.get(rest)
        return default if place is None else self._values[place]

    def _rest(self, variant_id: str) -> str:
        if self._case_id is None:
            return variant_id
        before, _, rest = variant_id.partition(self._case_id + ".")
        return variant_id if before else rest

    def __iter__(self) -> Iterator[str]:
        if self._case_id is None:
            yield from self._shape
        else:
            for rest in self._shape:
                yield f"{self._case_id}.{rest}"

    def __len__(self) -> int:
        return len(self._values)

    def values(self) -> Any:
        """The values, in order."""
        return self._values


class ByVariant(Mapping[str, T]):
    """Variant id → value over all cases of a run."""

    __slots__ = ("_cases", "_others")

    def __init__(self) -> None:
        self._cases: dict[str, OfCase[T]] = {}
        self._others: dict[str, T] = {}

    def add(self, case_id: str, ids: Sequence[str], values: Sequence[T]) -> None:
        """Put in the variants of one case."""
        if _shape(case_id, ids) is None:
            self._others.update(zip(ids, values, strict=True))
        else:
            self._cases[case_id] = OfCase(case_id, ids, values)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a variant, or ``default``."""
        parts, _, rest = key.rpartition(".")
        case = self._cases.get(parts)
        if case is not None:
            return case.at(rest, default)
        while True:
            parts, _, _ = parts.rpartition(".")
            if not parts:
                return self._others.get(key, default)
            case = self._cases.get(parts)
            if case is not None:
                return case.get(key, default)

    def __getitem__(self, key: str) -> T:
        found = self.get(key, _ABSENT)
        if found is _ABSENT:
            raise KeyError(key)
        return found  # type: ignore[no-any-return]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key, _ABSENT) is not _ABSENT

    def __iter__(self) -> Iterator[str]:
        for case in self._cases.values():
            yield from case
        yield from self._others

    def __len__(self) -> int:
        return sum(map(len, self._cases.values())) + len(self._others)


class Verdicts(Sequence[Verdict]):
    """A list of verdicts that keeps three references for each and makes the values anew when they are asked for."""

    __slots__ = ("_cases", "_ids", "_known", "_told")

    def __init__(self, verdicts: Iterable[Verdict] = ()) -> None:
        self._cases: list[str] = []
        self._ids: list[str] = []
        self._told: list[tuple[Any, ...]] = []
        self._known: dict[Any, tuple[Any, ...]] = {}
        self += verdicts

    def append(self, v: Verdict) -> None:
        """Put one at the end."""
        told = (
            v.order, v.attributes, v.outcome, v.hidden, v.original_output, v.variant_output, v.distance, v.reason,
            v.model, v.format,
        )  # fmt: skip
        # 1 and 1.0 are equal and are written differently.
        told = self._known.setdefault((*told, type(v.distance)), told)
        start = v.case_id + "."
        if v.variant_id.startswith(start):
            self._ids.append(_strings(v.variant_id[len(v.case_id) :]))
        else:
            self._ids.append(v.variant_id)
        last = self._cases[-1] if self._cases else None
        self._cases.append(last if last == v.case_id else v.case_id)
        self._told.append(told)

    def __iadd__(self, verdicts: Iterable[Verdict]) -> Verdicts:
        for v in verdicts:
            self.append(v)
        return self

    def __len__(self) -> int:
        return len(self._told)

    def _at(self, place: int) -> Verdict:
        case_id, own = self._cases[place], self._ids[place]
        order, attributes, outcome, hidden, before, after, distance, reason, model, name = self._told[place]
        return Verdict(
            case_id=case_id,
            variant_id=case_id + own if own.startswith(".") else own,
            order=order,
            attributes=attributes,
            outcome=outcome,
            hidden=hidden,
            original_output=before,
            variant_output=after,
            distance=distance,
            reason=reason,
            model=model,
            format=name,
        )

    @overload
    def __getitem__(self, place: int) -> Verdict: ...

    @overload
    def __getitem__(self, place: slice) -> list[Verdict]: ...

    def __getitem__(self, place: int | slice) -> Verdict | list[Verdict]:
        if isinstance(place, slice):
            return [self._at(n) for n in range(*place.indices(len(self)))]
        return self._at(place)

    def __iter__(self) -> Iterator[Verdict]:
        return map(self._at, range(len(self)))


class Contrasts:
    """Interaction contrasts of joint variants: a number and two references for each."""

    __slots__ = ("_cases", "_places", "_shared", "_values")

    def __init__(self) -> None:
        self._values = array("d")
        self._cases: list[str] = []
        self._places: list[tuple[str, tuple[str, ...]]] = []
        self._shared: Shared[Any] = Shared()

    def add(self, verdict: Verdict, value: float) -> None:
        """Put in the contrast of one judged variant."""
        self._values.append(value)
        self._cases.append(verdict.case_id)
        self._places.append(self._shared((verdict.format, verdict.attributes)))

    def __iter__(self) -> Iterator[tuple[str, str, tuple[str, ...], float]]:
        """(format, case id, attributes, contrast), in the order put in."""
        for (name, attributes), case_id, value in zip(self._places, self._cases, self._values, strict=True):
            yield name, case_id, attributes, value

    def __len__(self) -> int:
        return len(self._values)


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
                self._keys, self._offsets = (
                    array("Q", self._sorted[0].tobytes()),
                    array("Q", self._sorted[1].tobytes()),
                )
        keys, offsets = self._sorted
        wanted = np.uint64(short(key))
        low, high = np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")
        return [int(offset) for offset in offsets[low:high]]
