"""The choices that one attribute offers in one text, and which of them make variants.

A choice is what one attribute can do to a text: all its edits, chosen together. A joint variant takes one
choice for each attribute of a set. What a choice changes depends on the scope; see
``docs/decisions/0001-scope.md``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from auditor.dictionaries import Dictionary, Term, gendered
from auditor.suites._agree import changes_tag, edits_of, inserted
from auditor.suites._match import Hit, Place, Scan
from auditor.suites._seams import misread
from auditor.suites._wanted import EVERY, Wanted
from auditor.types import Edit, EditKind


class Choice(NamedTuple):
    """One way to change one attribute in one text. ``edits`` are in order and do not overlap."""

    attribute: str
    target: str  # the stratum: the target group, or the two exchanged groups
    edits: tuple[Edit, ...]
    named: str  # the groups that the text names afterwards
    ends: frozenset[str] | None = None  # "to" and "from" a wanted group; None where no group is wanted


_Move = tuple[Hit, Term, Term, str]  # what stands there, as which term, what it becomes, naming which group
_T = TypeVar("_T")
_Plan = tuple[str, list[_Move]]  # the stratum and the moves of one choice
_Key = tuple[tuple[object, str], ...]  # where each edit of a choice stands, and what it writes


def named(groups: set[str], dictionary: Dictionary) -> str:
    """Return the groups that a text names, joined by "+"; unmarked ones only where no other is named."""
    info = dictionary.groups
    marked = {g for g in groups if not info[g].unmarked}
    implied = {info[g].fallback for g in marked}
    return "+".join(sorted(marked - implied or marked or groups))


class Offer:
    """Every choice of one dictionary in one text, in a fixed order; edits are made for those that are taken.

    Parameters
    ----------
    scan : Scan
        The text.
    hits : sequence of Hit
        The places of this dictionary's terms in it.
    dictionary : Dictionary
        The attribute.
    scope : {"text", "term", "occurrence"}
        What one choice changes.
    passed : Counter
        Choices that are not offered are counted here, by reason.
    wanted : Wanted
        Which choices: those that lead to some groups, or from them, or between two; empty means all.
    """

    def __init__(
        self,
        scan: Scan,
        hits: Sequence[Hit],
        dictionary: Dictionary,
        scope: str,
        passed: Counter[str],
        wanted: Wanted = EVERY,
    ) -> None:
        make = {"text": _by_text, "term": _by_term, "occurrence": _by_occurrence}[scope]
        self._scan, self._hits, self._dictionary, self._passed = scan, hits, dictionary, passed
        self._wanted = wanted
        self._plans = list(make(hits, _Leads(scan, dictionary, passed, wanted)))

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
        marked = any(self._source(plan) in (self._dictionary.primary or ()) for plan in first)
        left: list[_Plan] = []
        for target in sorted({label for label, _ in first}):
            own = [plan for plan in first if plan[0] == target]
            rng.shuffle(own)
            waiting = iter(own)
            self._made(waiting, min(limit, len(out) + (max(1, limit // 2) if marked else 1)), out)
            left += waiting
        kept = set(map(id, first))
        self._made(_spread([plan for plan in self._plans if id(plan) not in kept], rng), limit, out)
        return self._made(left, limit, out)

    def _made(self, plans: Iterable[_Plan], limit: int | None, out: dict[_Key, Choice]) -> list[Choice]:
        """Add the choices of ``plans`` to ``out`` until it holds ``limit``."""
        for target, moves in plans if limit is None or len(out) < limit else ():
            choice = _choice(self._scan, self._hits, self._dictionary, target, moves, self._wanted)
            if choice is None:
                continue
            key = tuple((e.where, e.target) for e in choice.edits)
            if key in out:
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

    def _primary(self) -> list[_Plan]:
        """The plans between the groups of the primary pair; of a text about neither, those to each of them."""
        pair = self._dictionary.primary
        if pair is None or self._wanted:
            return []
        to = [plan for plan in self._plans if plan[0] in pair]
        groups = self._dictionary.groups
        return [plan for plan in to if self._source(plan) in pair] or [
            plan for plan in to if groups[self._source(plan)].unmarked
        ]

    def _source(self, plan: _Plan) -> str:
        return plan[1][0][1].group


class Insertion:
    """What one attribute that a text does not name offers there: an adjective before a person noun.

    Every term stands at the first place only: later mentions of the person go without (a man → a disabled
    man … the man). It has the interface of `Offer`.
    """

    def __init__(
        self,
        scan: Scan,
        places: Sequence[Place],
        dictionary: Dictionary,
        wanted: Wanted = EVERY,
    ) -> None:
        self._scan, self._places, self._dictionary, self._wanted = scan, places[:1], dictionary, wanted

    def take(self, limit: int | None, rng: Random) -> list[Choice]:
        """Return up to ``limit`` different choices, spread over the target groups."""
        terms = [
            t
            for t in self._dictionary.insertable
            if not self._dictionary.groups[t.group].unmarked and self._wanted.inserts(t.group)
        ]
        plans: list[tuple[str, tuple[Place, Term]]] = [(t.group, (p, t)) for p in self._places for t in terms]
        rows = plans if limit is None or len(plans) <= limit else itertools.islice(_spread(plans, rng), limit)
        return [
            Choice(
                term.attribute,
                group,
                inserted(self._scan, place, term),
                group,
                frozenset({"to"}) if self._wanted else None,
            )
            for group, (place, term) in rows
        ]


def _spread(plans: Sequence[tuple[str, _T]], rng: Random) -> Iterator[tuple[str, _T]]:
    """Yield ``plans`` in random order, one of each target group by turns."""
    strata: dict[str, list[tuple[str, _T]]] = {}
    for plan in plans:
        strata.setdefault(plan[0], []).append(plan)
    rows = list(strata.values())
    rng.shuffle(rows)
    for row in rows:
        if len(row) > 1:
            rng.shuffle(row)
    for turn in itertools.zip_longest(*rows):
        yield from (plan for plan in turn if plan is not None)


def _choice(
    scan: Scan,
    hits: Sequence[Hit],
    dictionary: Dictionary,
    target: str,
    moves: Sequence[_Move],
    wanted: Wanted = EVERY,
) -> Choice | None:
    edits: list[Edit] = []
    after = {h.start: h.terms[0].group for h in hits}
    for hit, source, word, group in moves:
        kind: EditKind = "marking" if dictionary.groups[source.group].unmarked else "swap"
        edits += edits_of(scan, hit, source, word, group, kind)
        after[hit.start] = group
    if not edits:
        return None
    edits.sort(key=lambda e: e.where)
    ends = ends_of(((source.group, group) for _, source, _, group in moves), wanted)
    return Choice(dictionary.attribute, target, tuple(edits), named(set(after.values()), dictionary), ends)


def ends_of(moves: Iterable[tuple[str, str]], wanted: Collection[str]) -> frozenset[str] | None:
    """Which ends of a choice (source and target group of each move) hold wanted groups; see `Choice`."""
    if not wanted:
        return None
    return frozenset(
        end for groups in moves for end, group in zip(("from", "to"), groups, strict=True) if group in wanted
    )


class _Leads:
    """Which groups an edit may lead to from another one, in one text."""

    def __init__(
        self, scan: Scan, dictionary: Dictionary, passed: Counter[str], wanted: Wanted = EVERY
    ) -> None:
        self.dictionary, self.passed, self.wanted = dictionary, passed, wanted
        self._bound = False
        if any(g.agrees for g in dictionary.groups.values()):
            self._bound = not gendered().isdisjoint(word.key for word in scan.tokens)

    def targets(self, source: str) -> Iterator[str]:
        """Yield the target groups of ``source``; another gender's names only where no word names a gender."""
        groups = self.dictionary.groups
        for target in self.dictionary.targets:
            if target == source:
                continue
            if not self.wanted.allows(source, target):
                self.passed["touches no group that was asked for"] += 1
                continue
            if self._bound and groups[target].agrees != groups[source].agrees:
                self.passed["a word of the text names the gender"] += 1
                continue
            yield target


def _by_text(hits: Sequence[Hit], leads: _Leads) -> Iterator[_Plan]:
    """Change every term of the source group; exchange the two where the text names the target too."""
    dictionary, passed = leads.dictionary, leads.passed
    present: dict[str, list[tuple[Hit, Term]]] = {}
    for hit in hits:
        for term in hit.terms:
            present.setdefault(term.group, []).append((hit, term))
    for source in sorted(present):
        unmarked = dictionary.groups[source].unmarked
        for target in leads.targets(source):
            exchange = target in present and not unmarked
            if exchange and target < source and source in dictionary.targets:
                continue  # the same exchange from the other side
            members = _members(present, source, dictionary)
            lists = [(h, t, dictionary.counterparts(t, target), target) for h, t in members]
            if exchange:
                taken = {h.start for h, _ in members}
                back = [(h, t) for h, t in present[target] if h.start not in taken]
                lists += [(h, t, dictionary.counterparts(t, source), source) for h, t in back]
            if dictionary.raw:
                lists = [row for row in lists if row[2]]
            if not lists or not all(words for _, _, words, _ in lists):
                passed["no counterpart"] += 1
                continue
            if not any(w.group == target for _, _, words, g in lists if g == target for w in words):
                passed["no counterpart"] += 1
                continue
            label = "+".join(sorted((source, target))) if exchange else target
            ranks = _ranks([t for _, t, _, _ in lists])
            for k in range(max(len(words) for _, _, words, _ in lists)):
                moves = [(h, t, words[(k + ranks.get(t, 0)) % len(words)], g) for h, t, words, g in lists]
                if not exchange and _collapses(moves, hits):
                    passed["collapse"] += 1
                    continue
                yield label, moves


def _ranks(terms: Sequence[Term]) -> dict[Term, int]:
    """Number the different names, so that two people do not get one name (Emily and Anne → two others)."""
    return {name: rank for rank, name in enumerate(dict.fromkeys(t for t in terms if t.role == "name"))}


def _members(
    present: Mapping[str, list[tuple[Hit, Term]]], source: str, dictionary: Dictionary
) -> list[tuple[Hit, Term]]:
    """Return the terms of a group and those it shares with a marked fallback (a trans woman is "she").

    Where the text sets the two apart ("the woman and the trans woman"), nothing is shared.
    """
    own = present[source]
    fallback = dictionary.groups[source].fallback
    if fallback is None or dictionary.groups[fallback].unmarked:
        return own
    shared = present.get(fallback, [])
    apart = {t.slot for _, t in own} & {t.slot for _, t in shared}
    return own if apart else own + shared


def _by_term(hits: Sequence[Hit], leads: _Leads) -> Iterator[_Plan]:
    """Change one pair in all its occurrences; exchange the two where the other word stands there too."""
    dictionary, passed = leads.dictionary, leads.passed
    places: dict[Term, list[Hit]] = {}
    for hit in hits:
        for term in hit.terms:
            places.setdefault(term, []).append(hit)
    for term, found in places.items():
        for target in leads.targets(term.group):
            for word in dictionary.counterparts(term, target):
                if word.group != target:
                    continue
                moves: list[_Move] = [(h, term, word, target) for h in found]
                others = places.get(word, [])
                moves += [(h, word, term, term.group) for h in others if h not in found]
                refused = dictionary.groups[term.group].unmarked if others else _collapses(moves, hits)
                if refused:
                    passed["collapse"] += 1
                    continue
                yield target, moves


def _by_occurrence(hits: Sequence[Hit], leads: _Leads) -> Iterator[_Plan]:
    dictionary, passed = leads.dictionary, leads.passed
    for hit in hits:
        for term in hit.terms:
            for target in leads.targets(term.group):
                for word in dictionary.counterparts(term, target):
                    if word.group != target:
                        continue
                    if _collapses([(hit, term, word, target)], hits):
                        passed["collapse"] += 1
                        continue
                    yield target, [(hit, term, word, target)]


def _collapses(moves: Sequence[_Move], hits: Sequence[Hit]) -> bool:
    """Whether a word would be written that an unchanged term already is ("the man and the man")."""
    moved = {h.start for h, _, _, _ in moves}
    standing = {h.surface.lower() for h in hits if h.start not in moved}
    return any(word.text.lower() in standing for _, _, word, _ in moves)


def sample(
    offers: Mapping[str, Offer | Insertion], order: int, per_seed: int | None, key: str
) -> list[tuple[Choice, ...]]:
    """Choose the sets of choices that become variants.

    ``per_seed`` choices for each set of attributes, spread evenly over the target groups. Joint sets are
    made of the atomic choices taken, and every proper subset of a set is in the result too, atomic ones
    first. Each set of attributes draws with a generator of its own (``key`` and its names), so that another
    attribute in the plan does not change what the others draw.
    """
    atomic = {a: taken for a in sorted(offers) if (taken := offers[a].take(per_seed, Random(f"{key}:{a}")))}
    result: dict[tuple[int, ...], tuple[Choice, ...]] = {
        (id(choice),): (choice,) for taken in atomic.values() for choice in taken
    }
    for size in range(2, min(order, len(atomic)) + 1):
        for members in itertools.combinations(atomic, size):
            rng = Random(f"{key}:{'+'.join(members)}")
            for joint in _joint([atomic[a] for a in members], per_seed, rng):
                for smaller in range(2, size):
                    for subset in itertools.combinations(joint, smaller):
                        result.setdefault(tuple(map(id, subset)), subset)
                result.setdefault(tuple(map(id, joint)), joint)
    return sorted(result.values(), key=len)


def _joint(lists: Sequence[Sequence[Choice]], limit: int | None, rng: Random) -> Iterator[tuple[Choice, ...]]:
    """Yield combinations of one choice per list whose edits do not overlap, spread over target groups."""
    if limit is None:
        yield from (joint for joint in itertools.product(*lists) if fits(joint))
        return
    by_target: list[list[list[Choice]]] = []
    for row in lists:
        strata: dict[str, list[Choice]] = {}
        for choice in row:
            strata.setdefault(choice.target, []).append(choice)
        by_target.append(list(strata.values()))
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
        yield _decode(cell, number)


def _decode(cell: Sequence[Sequence[Choice]], number: int) -> tuple[Choice, ...]:
    out = []
    for row in cell:
        number, at = divmod(number, len(row))
        out.append(row[at])
    return tuple(out)


def fits(joint: Sequence[Choice]) -> bool:
    """Whether these choices can be made together; see `_one_way` and `_apart`."""
    return _one_way(joint) and _apart(joint)


def _one_way(joint: Sequence[Choice]) -> bool:
    """Whether all choices lead to wanted groups, or all from them: one end then holds these groups together."""
    ends = [choice.ends for choice in joint if choice.ends is not None]
    return not ends or bool(frozenset.intersection(*ends))


def _apart(joint: Sequence[Choice]) -> bool:
    """Whether no two edits of different choices touch the same characters, or need different articles."""
    if len(joint) == 1:
        return True
    if _two_articles(joint):
        return False
    spans = sorted(e.where for choice in joint for e in choice.edits if isinstance(e.where, tuple))
    return all(a[1] <= b[0] and a != b for a, b in itertools.pairwise(spans))


def _two_articles(joint: Sequence[Choice]) -> bool:
    """Whether one choice inserts a word between an article and the word for which another one repairs it."""
    for choice in joint:
        starts = {e.where[0] for e in choice.edits if e.kind == "insertion" and isinstance(e.where, tuple)}
        if not starts:
            continue
        for other in joint:
            if other is not choice and any(
                e.kind == "agreement" and isinstance(e.where, tuple) and e.where[1] + 1 in starts
                for e in other.edits
            ):
                return True
    return False
