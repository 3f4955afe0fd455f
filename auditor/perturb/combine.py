"""Things put together: in groups, by turns, by number, and joint choices with all their parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


def grouped(rows: Iterable[tuple[_K, _T]]) -> dict[_K, list[_T]]:
    """The values of each key, keys in the order of their first row."""
    out: dict[_K, list[_T]] = {}
    for key, value in rows:
        out.setdefault(key, []).append(value)
    return out


def by_turns(rows: Iterable[Iterable[_T]]) -> Iterator[_T]:
    """Yield the first of each row, then the second of each, and so on."""
    for turn in itertools.zip_longest(*rows):
        yield from (one for one in turn if one is not None)


def numbered(number: int, rows: Sequence[Sequence[_T]]) -> tuple[_T, ...]:
    """Return combination ``number`` of one of each row; that of the first row changes fastest."""
    out = []
    for row in rows:
        number, at = divmod(number, len(row))
        out.append(row[at])
    return tuple(out)


def with_parts(
    offers: Mapping[str, Sequence[_T]], order: int, joint: Callable[[tuple[str, ...]], Iterable[tuple[_T, ...]]]
) -> list[tuple[_T, ...]]:
    """Every choice of ``offers`` alone, then joint ones of up to ``order`` attributes with their parts; each once."""
    chosen: dict[tuple[int, ...], tuple[_T, ...]] = {(id(one),): (one,) for own in offers.values() for one in own}
    for size in range(2, min(order, len(offers)) + 1):
        for attributes in itertools.combinations(offers, size):
            for together in joint(attributes):
                for few in range(2, size + 1):
                    for part in itertools.combinations(together, few):
                        chosen.setdefault(tuple(map(id, part)), part)
    return sorted(chosen.values(), key=len)
