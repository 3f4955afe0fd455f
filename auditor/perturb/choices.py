"""The choices that one attribute offers in one text, and which of them make variants.

A choice is what one attribute can do to a text: all its edits, chosen together. A joint variant takes one
choice for each attribute of a set. What a choice changes: ``docs/decisions/0001-scope.md``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from auditor.core.types import Edit, EditKind
from auditor.perturb.combine import by_turns, grouped, numbered, with_parts
from auditor.perturb.dictionaries import Dictionary
from auditor.perturb.edits import changes_tag, edits_of, misread, overlap, span_of
from auditor.perturb.matching import Scan
from auditor.perturb.moves import EVERY, Crowd, Move, Moves, Plan, Wanted


class Choice(NamedTuple):
    """One way to change one attribute in one text. ``edits`` are in order and do not overlap."""

    attribute: str
    target: str  # the stratum: the target group, or the two exchanged groups
    edits: tuple[Edit, ...]
    named: str  # the groups that the text names afterwards
    ends: frozenset[str] | None = None  # "to" and "from" a wanted group; None where no group is wanted
    person: int = 0  # whose words are changed, where each person is changed apart


_T = TypeVar("_T")
_Key = tuple[tuple[object, str], ...]  # where each edit of a choice stands, and what it writes


def named(groups: set[str], dictionary: Dictionary) -> str:
    """Return the groups that a text names, joined by "+"; unmarked ones only where no other is named."""
    info = dictionary.groups
    marked = {g for g in groups if not info[g].unmarked}
    implied = {info[g].fallback for g in marked}
    return "+".join(sorted(marked - implied or marked or groups))


class Offer:
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

        def made(crowds: Sequence[Crowd]) -> list[Plan]:
            moves = (Moves(scan, crowd, dictionary, passed, wanted) for crowd in crowds)
            return [plan for one in moves for plan in one.plans()]

        self._plans, pair = made(crowds), dictionary.primary
        if pair is not None and apart:
            single = [plan for plan in made(apart) if plan[0] in pair and _source(plan) in pair]
            exchange = "+".join(sorted(pair)) if single else ""
            self._plans = single + [plan for plan in self._plans if plan[0] != exchange]

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
        marked = any(_source(plan) in (self._dictionary.primary or ()) for plan in first)
        left: list[Plan] = []
        for target in sorted({label for label, _ in first}):
            own = [plan for plan in first if plan[0] == target]
            rng.shuffle(own)
            waiting = iter(own)
            self._made(waiting, min(limit, len(out) + (max(1, limit // 2) if marked else 1)), out)
            left += waiting
        kept = set(map(id, first))
        self._made(_spread([plan for plan in self._plans if id(plan) not in kept], rng), limit, out)
        return self._made(left, limit, out)

    def _made(self, plans: Iterable[Plan], limit: int | None, out: dict[_Key, Choice]) -> list[Choice]:
        """Add the choices of ``plans`` to ``out`` until it holds ``limit``."""
        for target, moves in plans if limit is None or len(out) < limit else ():
            choice = self._choice(target, moves)
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
        to = [plan for plan in self._plans if plan[0] in pair]
        groups = self._dictionary.groups
        return [plan for plan in to if _source(plan) in pair] or [plan for plan in to if groups[_source(plan)].unmarked]

    def _choice(self, target: str, moves: Sequence[Move]) -> Choice:
        edits: list[Edit] = []
        groups = self._dictionary.groups
        after = {h.start: h.terms[0].group for h in self._hits}
        for hit, source, word, group in moves:
            kind: EditKind = "marking" if groups[source.group].unmarked else "swap"
            edits += edits_of(self._scan, hit, source, word, group, kind)
            after[hit.start] = group
        edits.sort(key=span_of)
        return Choice(
            self._dictionary.attribute,
            target,
            tuple(edits),
            named(set(after.values()), self._dictionary),
            ends_of(((source.group, group) for _, source, _, group in moves), self._wanted),
            self._person[moves[0][0].start],
        )


def _source(plan: Plan) -> str:
    """The group that a plan leads from."""
    return plan[1][0][1].group


def _spread(plans: Sequence[tuple[str, _T]], rng: Random) -> Iterator[tuple[str, _T]]:
    """Yield ``plans`` in random order, one of each target group by turns."""
    rows = list(grouped((plan[0], plan) for plan in plans).values())
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


def sample(offers: Mapping[str, Offer], order: int, per_seed: int | None, key: str) -> list[tuple[Choice, ...]]:
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
