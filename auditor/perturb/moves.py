"""Which terms of a text change together, and into what: one plan for each way to change one attribute.

What a plan changes (``docs/decisions/0001-scope.md``) depends on whose words are changed (everybody's, or those of one
person), and on which changes are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from auditor.perturb.combine import grouped
from auditor.perturb.context import DETERMINERS
from auditor.perturb.dictionaries import Dictionary, Term, gendered
from auditor.perturb.matching import Hit, Scan

Move = tuple[Hit, Term, Term, str]  # what stands there, as which term, what it becomes, naming which group
Plan = tuple[str, list[Move]]  # the stratum and the moves of one choice
_PARTNERS = ("spouse.", "partner.", "wedding.", "betrothed.")
_HOLDS = frozenset(("his", "her", "my"))
_POINTS = frozenset(("the", "this", "that"))
BETWEEN = "/"  # female/male: changes between the two alone


class Wanted(Collection[str]):
    """The groups that changes of one attribute lead to, or from; without any, every change is asked for.

    Changes of ``groups`` may have any other end; those of ``pairs`` are made between the two alone, of which the first
    is the one that changes lead to or from.

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


EVERY = Wanted()


def split(entry: str, known: Collection[str]) -> tuple[str, ...]:
    """The group of an entry, or the two of a pair; a group whose own name holds a slash is one group.

    >>> split("female/male", ["female", "male"]), split("and/or", ["and/or"])
    (('female', 'male'), ('and/or',))
    """
    first, slash, second = entry.partition(BETWEEN)
    return (entry,) if entry in known or not slash else (first, second)


class Crowd(NamedTuple):
    """The terms that are changed together, and those that stand beside them.

    ``words`` are the starts of all mentions of the one person whose terms ``own`` are; None: ``own`` is everybody's.
    """

    own: Sequence[Hit]
    others: Sequence[Hit] = ()
    words: frozenset[int] | None = None


class Moves:
    """What one dictionary may do to the terms of a crowd in one text."""

    def __init__(
        self, scan: Scan, crowd: Crowd, dictionary: Dictionary, passed: Counter[str], wanted: Wanted = EVERY
    ) -> None:
        self._scan, self._crowd = scan, crowd
        self._dictionary, self._passed, self._wanted = dictionary, passed, wanted
        self._bound = False
        if any(g.agrees for g in dictionary.groups.values()):
            own = crowd.words
            said = (word.key for word in scan.tokens if own is None or word.start in own)
            self._bound = not gendered().isdisjoint(said)

    def _targets(self, source: str) -> Iterator[str]:
        """Yield the target groups of ``source``; another gender's names only where no word names a gender."""
        groups = self._dictionary.groups
        for target in self._dictionary.targets:
            if target == source:
                continue
            if not self._wanted.allows(source, target):
                self._passed["touches no group that was asked for"] += 1
                continue
            if self._bound and groups[target].agrees != groups[source].agrees:
                self._passed["a word of the text names the gender"] += 1
                continue
            yield target

    def _sources(self, present: Mapping[str, list[tuple[Hit, Term]]]) -> list[str]:
        """The groups whose terms may be changed.

        Of one person it is what the words name: not the wider group that shares its pronouns, and none where the
        words name two genders, since they are then not all of that person.
        """
        if self._crowd.words is None:
            return sorted(present)
        groups = self._dictionary.groups
        marked = {g for g in present if not groups[g].unmarked}
        marked -= {groups[g].fallback or "" for g in marked}
        pronouns = any(t.slot.startswith("pronoun.") for rows in present.values() for _, t in rows)
        if len(marked) > 1 and pronouns:
            self._passed["one person's words name two groups"] += 1
            return []
        if self._paired():
            self._passed["a partner is named, so that it would change whom the person loves"] += 1
            return []
        return sorted(marked or present)

    def _paired(self) -> bool:
        """Whether a partner's word goes with this person's (his wife): changed alone, it says something else too."""
        own = self._crowd.words or frozenset()
        whose = {h.start: h.start in own for h in (*self._crowd.own, *self._crowd.others)}
        for hit in (*self._crowd.own, *self._crowd.others):
            if not any(t.slot.startswith(_PARTNERS) for t in hit.terms):
                continue
            for word in reversed(self._scan.tokens[max(0, hit.token - 3) : hit.token]):
                if word.key in _HOLDS:
                    if (word.start in own) != whose[hit.start]:
                        return True
                    break
                if not word.key.isalpha():
                    break
        return False

    def _collapses(self, moves: Sequence[Move]) -> bool:
        """Whether a word would be written that an unchanged term already is ("the man and the man").

        Where one person is changed, others may be called the same (a man who met a man), unless it is a definite noun
        that would then be anybody's (a man met the man).
        """
        moved = {h.start for h, _, _, _ in moves}
        standing = {h.surface.lower() for h in self._crowd.own if h.start not in moved}
        if any(word.text.lower() in standing for _, _, word, _ in moves):
            return True
        return any(
            word.text.lower() == hit.surface.lower()
            and not word.slot.startswith("pronoun.")
            and (self._definite(hit) or self._definite(own))
            for hit in self._crowd.others
            for own, _, word, _ in moves
        )

    def _definite(self, hit: Hit) -> bool:
        """Whether *the* or *this* stands before a term, with at most two words between."""
        for word in reversed(self._scan.tokens[max(0, hit.token - 3) : hit.token]):
            if word.key in _POINTS:
                return True
            if word.key in DETERMINERS or not word.key.isalpha():
                return False
        return False

    def plans(self) -> Iterator[Plan]:
        """Change every term of the source group; exchange the two where the text names the target too."""
        dictionary, passed = self._dictionary, self._passed
        present = grouped((term.group, (hit, term)) for hit in self._crowd.own for term in hit.terms)
        for source in self._sources(present):
            for target in self._targets(source):
                if target in present and self._crowd.words is not None:
                    continue
                exchange = target in present and not dictionary.groups[source].unmarked
                if exchange and target < source and source in dictionary.targets:
                    continue  # the same exchange from the other side
                members = self._members(present, source)
                lists = [(h, t, dictionary.counterparts(t, target), target) for h, t in members]
                if exchange:
                    taken = {h.start for h, _ in members}
                    back = [(h, t) for h, t in present[target] if h.start not in taken]
                    lists += [(h, t, dictionary.counterparts(t, source), source) for h, t in back]
                if dictionary.raw:
                    lists = [row for row in lists if row[2]]
                leads = any(w.group == target for _, _, words, g in lists if g == target for w in words)
                if not leads or not all(words for _, _, words, _ in lists):
                    passed["no counterpart"] += 1
                    continue
                label = "+".join(sorted((source, target))) if exchange else target
                # Two people do not get one name: Emily and Anne become two others.
                names = dict.fromkeys(t for _, t, _, _ in lists if t.role == "name")
                ranks = {name: rank for rank, name in enumerate(names)}
                for k in range(max(len(words) for _, _, words, _ in lists)):
                    moves = [(h, t, words[(k + ranks.get(t, 0)) % len(words)], g) for h, t, words, g in lists]
                    if not exchange and self._collapses(moves):
                        passed["collapse"] += 1
                        continue
                    yield label, moves

    def _members(self, present: Mapping[str, list[tuple[Hit, Term]]], source: str) -> list[tuple[Hit, Term]]:
        """Return the terms of a group and those it shares with a marked fallback (a trans woman is "she").

        Where the text sets the two apart ("the woman and the trans woman"), nothing is shared.
        """
        own, groups = present[source], self._dictionary.groups
        fallback = groups[source].fallback
        if fallback is None or groups[fallback].unmarked:
            return own
        shared = present.get(fallback, [])
        apart = {t.slot for _, t in own} & {t.slot for _, t in shared}
        return own if apart else own + shared
