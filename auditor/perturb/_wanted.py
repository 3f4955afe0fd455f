"""Which changes of one attribute are asked for: to or from named groups, or between the two of a pair."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

BETWEEN = "/"  # female/male: changes between the two alone


class Wanted(Collection[str]):
    """The groups that changes of one attribute lead to, or from; without any, every change is asked for.

    Of a pair the first group is the one that changes lead to or from; the second is the only other end.

    Parameters
    ----------
    groups : iterable of str
        Groups whose changes may have any other end.
    pairs : iterable of (str, str)
        Groups that are changed into each other alone.

    Examples
    --------
    >>> wanted = Wanted(["nonbinary"], [("female", "male")])
    >>> wanted.allows("male", "female"), wanted.allows("male", "trans_male"), wanted.allows("nonbinary", "male")
    (True, False, True)
    >>> sorted(wanted), wanted.entries
    (['female', 'nonbinary'], ['female/male', 'nonbinary'])
    """

    def __init__(self, groups: Iterable[str] = (), pairs: Iterable[tuple[str, str]] = ()) -> None:
        both = tuple(pairs)
        self._any = frozenset(groups)
        self._pairs = frozenset(map(frozenset, both))
        self._named = self._any | {first for first, _ in both}
        self.entries = sorted({*self._any, *(BETWEEN.join(pair) for pair in both)})

    def __contains__(self, group: object) -> bool:
        return group in self._named

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def allows(self, source: str, target: str) -> bool:
        """Whether a change from ``source`` to ``target`` is asked for."""
        return (
            not self._named or not self._any.isdisjoint((source, target)) or frozenset((source, target)) in self._pairs
        )

    def inserts(self, group: str) -> bool:
        """Whether a word of ``group`` may be put where none stood: the other end is then no group of a pair."""
        return not self._named or group in self._any


EVERY = Wanted()


def split(entry: str, known: Collection[str]) -> tuple[str, ...]:
    """The group of an entry, or the two of a pair; a group whose own name holds a slash is one group.

    Examples
    --------
    >>> split("female/male", ["female", "male"]), split("and/or", ["and/or"])
    (('female', 'male'), ('and/or',))
    """
    first, slash, second = entry.partition(BETWEEN)
    return (entry,) if entry in known or not slash else (first, second)
