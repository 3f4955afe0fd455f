"""What can be put for the terms of a text: which terms change together, into what, and which choices make variants.

A choice is what one attribute can do to a text: all its edits, chosen together. A joint variant takes one choice for
each attribute of a set. What a choice changes (``docs/decisions/0001-scope.md``) depends on whose words are changed
(everybody's, or those of one person), and on which changes are asked for.
"""

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


class Swap(NamedTuple):
    """A term of a text, as which term of the dictionary it is read, the word for it, and the group that it names."""

    hit: Hit
    source: Term
    word: Term
    group: str


class Plan(NamedTuple):
    """Terms that change together; ``target`` is the target group, or the two groups that are exchanged."""

    target: str
    swaps: Sequence[Swap]

    @property
    def source(self) -> str:
        """The group that it leads from."""
        return self.swaps[0].source.group


class Choice(NamedTuple):
    """One way to change one attribute in one text. ``edits`` are in order and do not overlap."""

    attribute: str
    target: str  # the stratum: the target group, or the two exchanged groups
    edits: tuple[Edit, ...]
    named: str  # the groups that the text names afterwards
    ends: frozenset[str] | None = None  # "to" and "from" a wanted group; None where no group is wanted
    person: int = 0  # whose words are changed, where each person is changed apart


_Key = tuple[tuple[object, str], ...]  # where each edit of a choice stands, and what it writes


def named(groups: set[str], dictionary: Dictionary) -> str:
    """Return the groups that a text names, joined by "+"; unmarked ones only where no other is named."""
    info = dictionary.groups
    marked = {g for g in groups if not info[g].unmarked}
    implied = {info[g].fallback for g in marked}
    return "+".join(sorted(marked - implied or marked or groups))


class Substitution:
    """Every choice of one dictionary in one text, in a fixed order; edits are made for those that are taken.

    ``crowds`` are the places of its terms, of everybody or of one person after the other; ``passed`` counts what is not
    offered, by reason. Where ``apart`` holds one person's terms after the other's, the groups of the primary pair are
    not exchanged, but one person is changed, where that can be done.
    """

    def __init__(
        self,
        scan: Scan,
        crowds: Sequence[Crowd],
        dictionary: Dictionary,
        passed: Counter[str],
        wanted: Wanted = EVERY,
        apart: Sequence[Crowd] = (),
    ) -> None:
        self._scan, self._dictionary, self._passed, self._wanted = scan, dictionary, passed, wanted
        self._hits = [hit for crowd in crowds for hit in crowd.own]
        self._person = {hit.start: n for n, crowd in enumerate(crowds) for hit in crowd.own}
        self._plans, pair = [plan for crowd in crowds for plan in self._of(crowd)], dictionary.primary
        if pair is not None and apart:
            single = [p for crowd in apart for p in self._of(crowd) if p.target in pair and p.source in pair]
            exchange = "+".join(sorted(pair)) if single else ""
            self._plans = single + [plan for plan in self._plans if plan.target != exchange]

    def take(self, limit: int | None, rng: Random) -> list[Choice]:
        """Return up to ``limit`` different choices: of the dictionary's primary pair first, then of all target groups.

        A text about one of the pair gets up to half of them about the other, in different words; one about nobody
        in particular gets one about each. Under a limit, a choice that gives a verb another tag (he is → they are)
        is passed over: the dependency invariant cannot keep it, and it would take the place of one that can be
        judged.
        """
        if limit is None or len(self._plans) <= limit:
            return self._made(self._plans, limit, {})
        out: dict[_Key, Choice] = {}
        first = self._primary()
        marked = any(plan.source in (self._dictionary.primary or ()) for plan in first)
        left: list[Plan] = []
        for target in sorted({label for label, _ in first}):
            own = [plan for plan in first if plan.target == target]
            rng.shuffle(own)
            waiting = iter(own)
            self._made(waiting, min(limit, len(out) + (max(1, limit // 2) if marked else 1)), out)
            left += waiting
        kept = set(map(id, first))
        self._made(_spread([plan for plan in self._plans if id(plan) not in kept], rng), limit, out)
        return self._made(left, limit, out)

    def _made(self, plans: Iterable[Plan], limit: int | None, out: dict[_Key, Choice]) -> list[Choice]:
        """Add the choices of ``plans`` to ``out`` until it holds ``limit``."""
        for choice in map(self._choice, plans) if limit is None or len(out) < limit else ():
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

    def _primary(self) -> list[Plan]:
        """The plans between the groups of the primary pair; of a text about neither, those to each of them."""
        pair = self._dictionary.primary
        if pair is None or self._wanted:
            return []
        to = [plan for plan in self._plans if plan.target in pair]
        groups = self._dictionary.groups
        return [plan for plan in to if plan.source in pair] or [plan for plan in to if groups[plan.source].unmarked]

    def _choice(self, plan: Plan) -> Choice:
        edits: list[Edit] = []
        groups = self._dictionary.groups
        after = {h.start: h.terms[0].group for h in self._hits}
        for hit, source, word, group in plan.swaps:
            kind: EditKind = "marking" if groups[source.group].unmarked else "swap"
            edits += edits_of(self._scan, hit, source, word, group, kind)
            after[hit.start] = group
        edits.sort(key=span_of)
        return Choice(
            self._dictionary.attribute,
            plan.target,
            tuple(edits),
            named(set(after.values()), self._dictionary),
            ends_of(((source.group, group) for _, source, _, group in plan.swaps), self._wanted),
            self._person[plan.swaps[0].hit.start],
        )

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
                continue
            if bound and groups[target].agrees != groups[source].agrees:
                self._passed["a word of the text names the gender"] += 1
                continue
            yield target

    def _sources(self, crowd: Crowd, present: Mapping[str, list[tuple[Hit, Term]]]) -> list[str]:
        """The groups whose terms may be changed.

        Of one person it is what the words name: not the wider group that shares its pronouns, and none where the
        words name two genders, since they are then not all of that person.
        """
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
        own = crowd.words or frozenset()
        whose = {h.start: h.start in own for h in (*crowd.own, *crowd.others)}
        for hit in (*crowd.own, *crowd.others):
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

    def _collapses(self, crowd: Crowd, swaps: Sequence[Swap]) -> bool:
        """Whether a word would be written that an unchanged term already is ("the man and the man").

        Where one person is changed, others may be called the same (a man who met a man), unless it is a definite noun
        that would then be anybody's (a man met the man).
        """
        moved = {swap.hit.start for swap in swaps}
        standing = {h.surface.lower() for h in crowd.own if h.start not in moved}
        if any(swap.word.text.lower() in standing for swap in swaps):
            return True
        return any(
            word.text.lower() == hit.surface.lower()
            and not word.slot.startswith("pronoun.")
            and (self._definite(hit) or self._definite(own))
            for hit in crowd.others
            for own, _, word, _ in swaps
        )

    def _definite(self, hit: Hit) -> bool:
        """Whether *the* or *this* stands before a term, with at most two words between."""
        for word in reversed(self._scan.tokens[max(0, hit.token - 3) : hit.token]):
            if word.key in _POINTS:
                return True
            if word.key in DETERMINERS or not word.key.isalpha():
                return False
        return False

    def _of(self, crowd: Crowd) -> Iterator[Plan]:
        """Change every term of the source group; exchange the two where the text names the target too."""
        dictionary, passed = self._dictionary, self._passed
        present = grouped((term.group, (hit, term)) for hit in crowd.own for term in hit.terms)
        for source in self._sources(crowd, present):
            for target in self._targets(source, crowd):
                if target in present and crowd.words is not None:
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
                    swaps = [Swap(h, t, words[(k + ranks.get(t, 0)) % len(words)], g) for h, t, words, g in lists]
                    if not exchange and self._collapses(crowd, swaps):
                        passed["collapse"] += 1
                        continue
                    yield Plan(label, swaps)

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


def _spread(plans: Sequence[Plan], rng: Random) -> Iterator[Plan]:
    """Yield ``plans`` in random order, one of each target group by turns."""
    rows = list(grouped((plan.target, plan) for plan in plans).values())
    rng.shuffle(rows)
    for row in rows:
        if len(row) > 1:
            rng.shuffle(row)
    yield from by_turns(rows)


def ends_of(moves: Iterable[tuple[str, str]], wanted: Collection[str]) -> frozenset[str] | None:
    """Which ends of a choice (source and target group of each move) hold wanted groups; see `Choice`."""
    if not wanted:
        return None
    return frozenset(
        end for groups in moves for end, group in zip(("from", "to"), groups, strict=True) if group in wanted
    )


def sample(offers: Mapping[str, Substitution], order: int, per_seed: int | None, key: str) -> list[tuple[Choice, ...]]:
    """Choose the sets of choices that become variants.

    ``per_seed`` choices for each set of attributes, spread evenly over the target groups. Joint sets are
    made of the atomic choices taken, and every proper subset of a set is in the result too, atomic ones
    first. Each set of attributes draws with a generator of its own (``key`` and its names), so that another
    attribute in the plan does not change what the others draw.
    """
    atomic = {a: taken for a in sorted(offers) if (taken := offers[a].take(per_seed, Random(f"{key}:{a}")))}

    def joint(members: tuple[str, ...]) -> Iterator[tuple[Choice, ...]]:
        return _joint([atomic[a] for a in members], per_seed, Random(f"{key}:{'+'.join(members)}"))

    return with_parts(atomic, order, joint)


def _joint(lists: Sequence[Sequence[Choice]], limit: int | None, rng: Random) -> Iterator[tuple[Choice, ...]]:
    """Yield combinations of one choice per list whose edits do not overlap, spread over target groups."""
    if limit is None:
        yield from (joint for joint in itertools.product(*lists) if fits(joint))
        return
    by_target = [grouped((choice.target, choice) for choice in row).values() for row in lists]
    cells = list(itertools.product(*by_target))
    rng.shuffle(cells)
    waiting = [_draw(cell, limit, rng) for cell in cells]
    taken = 0
    while waiting:
        still = []
        for cell in waiting:
            joint = next(cell, None)
            if joint is None:
                continue
            still.append(cell)
            if fits(joint):
                yield joint
                taken += 1
                if taken == limit:
                    return
        waiting = still


def _draw(cell: Sequence[Sequence[Choice]], limit: int, rng: Random) -> Iterator[tuple[Choice, ...]]:
    """Yield combinations of one cell in random order; they are numbered, never listed."""
    size = math.prod(map(len, cell))
    numbers = [0] if size == 1 else rng.sample(range(size), min(size, limit))
    for number in numbers:
        yield numbered(number, cell)


def fits(joint: Sequence[Choice]) -> bool:
    """Whether these choices can be made together: of one person; see `_one_way` and `_apart`."""
    return len({choice.person for choice in joint}) == 1 and _one_way(joint) and _apart(joint)


def _one_way(joint: Sequence[Choice]) -> bool:
    """Whether all choices lead to wanted groups, or all from them: one end then holds these groups together."""
    ends = [choice.ends for choice in joint if choice.ends is not None]
    return not ends or bool(frozenset.intersection(*ends))


def _apart(joint: Sequence[Choice]) -> bool:
    """Whether no two edits of different choices touch the same characters."""
    return len(joint) == 1 or not overlap(sorted(span_of(e) for choice in joint for e in choice.edits))
