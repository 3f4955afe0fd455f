"""What can be put for the terms of a text: which terms change together, into what, and which choices make variants."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from auditor.core.types import Edit, EditKind
from auditor.perturb.combine import by_turns, grouped, numbered, with_parts
from auditor.perturb.context import DETERMINERS
from auditor.perturb.dictionaries import Dictionary, Term, gendered
from auditor.perturb.edits import changes_tag, edits_of, misread, overlap, span_of
from auditor.perturb.matching import Hit, Scan
from auditor.perturb.persons import Crowd
from auditor.text.english import Word

_PARTNERS = ("spouse.", "partner.", "wedding.", "betrothed.")
_HOLDS = frozenset(("his", "her", "my"))
_POINTS = frozenset(("the", "this", "that"))
BETWEEN = "/"  # female/male: changes between the two alone


class Wanted(NamedTuple):
    """The changes of one attribute that are asked for; without ``entries`` all of them."""

    entries: Sequence[tuple[str, ...]] = ()

    def allows(self, source: str, target: str) -> bool:
        """Whether a change from ``source`` to ``target`` is asked for."""
        return not self.entries or any({source, target}.issuperset(entry) for entry in self.entries)

    def ends(self, swaps: Iterable[Swap]) -> frozenset[str] | None:
        """Which ends of a change ("from", "to") are groups that are asked for; None where every change is."""
        if not self.entries:
            return None
        groups = {entry[0] for entry in self.entries}
        ends = ((end, group) for s in swaps for end, group in (("from", s.source.group), ("to", s.group)))
        return frozenset(end for end, group in ends if group in groups)


EVERY = Wanted()


def split(entry: str, known: Collection[str]) -> tuple[str, ...]:
    """The group of an entry, or the two of a pair; a group whose own name holds a slash is one group."""
    first, slash, second = entry.partition(BETWEEN)
    return (entry,) if entry in known or not slash else (first, second)


class Swap(NamedTuple):
    """A term of a text, as which term of the dictionary it is read, the word for it, and the group that it names."""

    hit: Hit
    source: Term
    word: Term
    group: str


class Choice(NamedTuple):
    """One way to change one attribute in one text; what follows ``person`` is made for choices that are taken."""

    attribute: str
    target: str  # the stratum: the target group, or the two groups that are exchanged
    swaps: Sequence[Swap]
    person: int  # whose words are changed, where each person is changed apart
    edits: tuple[Edit, ...] = ()  # in order, none over another
    named: str = ""  # the groups that the text names afterwards
    ends: frozenset[str] | None = None  # see `Wanted.ends`

    @property
    def source(self) -> str:
        """The group that it leads from."""
        return self.swaps[0].source.group


class Substitution:
    """Every choice of one dictionary in one text, in a fixed order; edits are made for those that are taken."""

    def __init__(
        self, scan: Scan, crowds: Sequence[Crowd], dictionary: Dictionary, passed: Counter[str], wanted: Wanted = EVERY
    ) -> None:
        self._scan, self._dictionary, self._passed, self._wanted = scan, dictionary, passed, wanted
        self._groups = {hit.start: hit.term.group for crowd in crowds for hit in crowd.own}
        whole = [crowd for crowd in crowds if crowd.words is None]
        persons = [crowd for crowd in crowds if crowd.words is not None]
        self._choices = [choice for crowd in whole for choice in self._of(crowd, 0)]
        pair = dictionary.primary
        if not whole:
            self._choices = [choice for number, crowd in enumerate(persons) for choice in self._of(crowd, number)]
        elif pair is not None:
            every = (choice for crowd in persons for choice in self._of(crowd, 0))
            single = [choice for choice in every if {choice.source, choice.target} <= set(pair)]
            exchange = "+".join(sorted(pair)) if single else ""
            self._choices = single + [choice for choice in self._choices if choice.target != exchange]

    def take(self, limit: int | None, rng: Random) -> list[Choice]:
        """Return up to ``limit`` different choices: of the primary pair first, then of all target groups."""
        out: dict[tuple[object, ...], Choice] = {}
        if limit is None or len(self._choices) <= limit:
            return self._made(self._choices, limit, out)
        first = self._primary()
        marked = any(choice.source in (self._dictionary.primary or ()) for choice in first)
        left: list[Choice] = []
        for target in sorted({choice.target for choice in first}):
            own = [choice for choice in first if choice.target == target]
            rng.shuffle(own)
            waiting = iter(own)
            self._made(waiting, min(limit, len(out) + (max(1, limit // 2) if marked else 1)), out)
            left += waiting
        kept = set(map(id, first))
        self._made(_spread([choice for choice in self._choices if id(choice) not in kept], rng), limit, out)
        return self._made(left, limit, out)

    def _made(
        self, choices: Iterable[Choice], limit: int | None, out: dict[tuple[object, ...], Choice]
    ) -> list[Choice]:
        """Make the edits of ``choices``, and add those that differ to ``out`` until it holds ``limit``."""
        for choice in map(self._edited, choices) if limit is None or len(out) < limit else ():
            key = tuple((e.where, e.target) for e in choice.edits)
            if not key or key in out:
                continue
            if not self._dictionary.raw and misread(self._scan.text, choice.edits):
                self._passed["reads as another word with its neighbours"] += 1
            elif limit is not None and any(map(changes_tag, choice.edits)):
                self._passed["needs another verb form"] += 1
            else:
                out[key] = choice
            if len(out) == limit:
                break
        return list(out.values())

    def _edited(self, choice: Choice) -> Choice:
        edits: list[Edit] = []
        for hit, source, word, group in choice.swaps:
            kind: EditKind = "marking" if self._dictionary.groups[source.group].unmarked else "swap"
            edits += edits_of(self._scan, hit, source, word, group, kind)
        after = self._groups | {swap.hit.start: swap.group for swap in choice.swaps}
        return choice._replace(
            edits=tuple(sorted(edits, key=span_of)),
            named=self._dictionary.named(after.values()),
            ends=self._wanted.ends(choice.swaps),
        )

    def _primary(self) -> list[Choice]:
        """The choices between the groups of the primary pair; of a text about neither, those to each of them."""
        pair = self._dictionary.primary
        if pair is None or self._wanted.entries:
            return []
        to = [choice for choice in self._choices if choice.target in pair]
        groups = self._dictionary.groups
        return [one for one in to if one.source in pair] or [one for one in to if groups[one.source].unmarked]

    def _of(self, crowd: Crowd, person: int) -> list[Choice]:
        """Change every term of the source group; exchange the two where the text names the target too."""
        dictionary, out = self._dictionary, []
        present = grouped((term.group, (hit, term)) for hit in crowd.own for term in hit.terms)
        for source in self._sources(crowd, present):
            for target in self._targets(source, crowd):
                if target in present and crowd.words is not None:
                    continue
                exchange = target in present and not dictionary.groups[source].unmarked
                if exchange and target < source and source in dictionary.targets:
                    continue  # the same exchange from the other side
                members = self._members(present, source)
                options = [self._options(hit, term, target) for hit, term in members]
                if exchange:
                    taken = {hit.start for hit, _ in members}
                    options += [self._options(h, t, source) for h, t in present[target] if h.start not in taken]
                if dictionary.raw:
                    options = [own for own in options if own]
                leads = any(swap.word.group == swap.group == target for own in options for swap in own)
                if not leads or not all(options):
                    self._passed["no counterpart"] += 1
                    continue
                label = "+".join(sorted((source, target))) if exchange else target
                for swaps in _in_turn(options):
                    if not exchange and self._collapses(crowd, swaps):
                        self._passed["collapse"] += 1
                    else:
                        out.append(Choice(dictionary.attribute, label, swaps, person))
        return out

    def _options(self, hit: Hit, term: Term, group: str) -> list[Swap]:
        return [Swap(hit, term, word, group) for word in self._dictionary.counterparts(term, group)]

    def _targets(self, source: str, crowd: Crowd) -> Iterator[str]:
        """Yield the target groups of ``source``; another gender's names only where no word names a gender."""
        groups, own = self._dictionary.groups, crowd.words
        bound = any(g.agrees for g in groups.values()) and not gendered().isdisjoint(
            word.key for word in self._scan.tokens if own is None or word.start in own
        )
        for target in self._dictionary.targets:
            if target == source:
                continue
            if not self._wanted.allows(source, target):
                self._passed["touches no group that was asked for"] += 1
            elif bound and groups[target].agrees != groups[source].agrees:
                self._passed["a word of the text names the gender"] += 1
            else:
                yield target

    def _sources(self, crowd: Crowd, present: Mapping[str, list[tuple[Hit, Term]]]) -> list[str]:
        """The groups whose terms may be changed."""
        if crowd.words is None:
            return sorted(present)
        groups = self._dictionary.groups
        marked = {g for g in present if not groups[g].unmarked}
        marked -= {groups[g].fallback or "" for g in marked}
        pronouns = any(t.slot.startswith("pronoun.") for rows in present.values() for _, t in rows)
        if len(marked) > 1 and pronouns:
            self._passed["one person's words name two groups"] += 1
            return []
        if self._paired(crowd):
            self._passed["a partner is named, so that it would change whom the person loves"] += 1
            return []
        return sorted(marked or present)

    def _paired(self, crowd: Crowd) -> bool:
        """Whether a partner's word goes with this person's (his wife): changed alone, it says something else too."""
        words = crowd.words or frozenset()
        every = (*crowd.own, *crowd.others)
        whose = {hit.start: hit.start in words for hit in every}
        partners = (hit for hit in every if any(t.slot.startswith(_PARTNERS) for t in hit.terms))
        holders = ((hit, self._before(hit, _HOLDS)) for hit in partners)
        return any(word is not None and (word.start in words) != whose[hit.start] for hit, word in holders)

    def _collapses(self, crowd: Crowd, swaps: Sequence[Swap]) -> bool:
        """Whether a word would be written that an unchanged term already is ("the man and the man")."""
        moved = {swap.hit.start for swap in swaps}
        unchanged = {h.surface.lower() for h in crowd.own if h.start not in moved}
        if any(swap.word.text.lower() in unchanged for swap in swaps):
            return True
        return any(
            swap.word.text.lower() == hit.surface.lower()
            and not swap.word.slot.startswith("pronoun.")
            and any(self._before(one, _POINTS, DETERMINERS) for one in (hit, swap.hit))
            for hit in crowd.others
            for swap in swaps
        )

    def _before(self, hit: Hit, wanted: frozenset[str], stops: frozenset[str] = frozenset()) -> Word | None:
        """One of the ``wanted`` words before a term, with at most two words between that do not stop the search."""
        for word in reversed(self._scan.tokens[max(0, hit.token - 3) : hit.token]):
            if word.key in wanted:
                return word
            if word.key in stops or not word.key.isalpha():
                return None
        return None

    def _members(self, present: Mapping[str, list[tuple[Hit, Term]]], source: str) -> list[tuple[Hit, Term]]:
        """Return the terms of a group and those it shares with a marked fallback (a trans woman is "she")."""
        own, groups = present[source], self._dictionary.groups
        fallback = groups[source].fallback
        if fallback is None or groups[fallback].unmarked:
            return own
        shared = present.get(fallback, [])
        apart = {t.slot for _, t in own} & {t.slot for _, t in shared}
        return own if apart else own + shared


def _in_turn(options: Sequence[Sequence[Swap]]) -> Iterator[list[Swap]]:
    """Yield one swap for each term, until each of its words was used; two people do not get one name."""
    names = dict.fromkeys(own[0].source for own in options if own[0].source.role == "name")
    ranks = {name: rank for rank, name in enumerate(names)}
    for k in range(max(map(len, options))):
        yield [own[(k + ranks.get(own[0].source, 0)) % len(own)] for own in options]


def _spread(choices: Sequence[Choice], rng: Random) -> Iterator[Choice]:
    """Yield ``choices`` in random order, one of each target group by turns."""
    rows = list(grouped((choice.target, choice) for choice in choices).values())
    rng.shuffle(rows)
    for row in rows:
        rng.shuffle(row)
    yield from by_turns(rows)


def sample(offers: Mapping[str, Substitution], order: int, per_seed: int | None, key: str) -> list[tuple[Choice, ...]]:
    """Choose the sets of choices that become variants."""
    atomic = {a: taken for a in sorted(offers) if (taken := offers[a].take(per_seed, Random(f"{key}:{a}")))}

    def joint(members: tuple[str, ...]) -> Iterator[tuple[Choice, ...]]:
        fitting = filter(fits, _joint([atomic[a] for a in members], per_seed, Random(f"{key}:{'+'.join(members)}")))
        return itertools.islice(fitting, per_seed)

    return with_parts(atomic, order, joint)


def _joint(lists: Sequence[Sequence[Choice]], limit: int | None, rng: Random) -> Iterator[tuple[Choice, ...]]:
    """Yield combinations of one choice per list: all, or up to ``limit`` for each set of target groups, by turns."""
    if limit is None:
        yield from itertools.product(*lists)
        return
    by_target = [grouped((choice.target, choice) for choice in row).values() for row in lists]
    cells = list(itertools.product(*by_target))
    rng.shuffle(cells)
    yield from by_turns([_draw(cell, limit, rng) for cell in cells])


def _draw(cell: Sequence[Sequence[Choice]], limit: int, rng: Random) -> Iterator[tuple[Choice, ...]]:
    """Yield combinations of one cell in random order; they are numbered, never listed."""
    size = math.prod(map(len, cell))
    numbers = [0] if size == 1 else rng.sample(range(size), min(size, limit))
    for number in numbers:
        yield numbered(number, cell)


def fits(joint: Sequence[Choice]) -> bool:
    """Whether choices can be made together."""
    ends = [choice.ends for choice in joint if choice.ends is not None]
    return (
        len({choice.person for choice in joint}) == 1
        and (not ends or bool(frozenset.intersection(*ends)))
        and not overlap(sorted(span_of(e) for choice in joint for e in choice.edits))
    )
