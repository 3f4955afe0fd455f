"""The seeds of a directed search: their choices, the cases made of them, and what answers ruled out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple, Protocol

from auditor.contrib.adaptive.beliefs import Beliefs
from auditor.contrib.adaptive.features import ARROW, Arm, Node
from auditor.core.types import Case, Check, Edit, Variant, Verdict, draws_of
from auditor.perturb.choices import Choice, ends_of, fits
from auditor.perturb.moves import EVERY, Wanted
from auditor.perturb.mutation import _variants

WIDEST = 256  # joint variants of one attribute set in one seed
FITS = ("same terms", "same directions", "same target groups")  # of an arm and a fresh seed


class Atom(NamedTuple):
    """One atomic choice in one seed, and what it is called across seeds."""

    choice: Choice
    direction: tuple[tuple[str, str], ...]  # (source group, target group)
    term: str  # the longest word that is changed, and what it becomes
    number: int  # of the single choice in the beliefs; -1 where they do not hold it

    @property
    def part(self) -> tuple[str, Any, str]:
        """What an arm says of its attribute."""
        return self.choice.attribute, self.direction, self.term


class Pool(NamedTuple):
    """A seed with its atomic choices."""

    case: Case
    atoms: tuple[Atom, ...]


def choices(edits: Iterable[Edit]) -> frozenset[tuple[str, object, str]]:
    """What was chosen, without repairs that follow from it; see `Variant.choices`."""
    return frozenset((e.attribute, e.where, e.target) for e in edits if e.kind != "agreement")


def pool_of(case: Case, wanted: Mapping[str, Wanted], beliefs: Beliefs | None = None) -> Pool:
    """The atomic choices of a case; ``beliefs`` are told of the text and of each."""
    leads = [(variant, _lead(variant)) for variant in case.variants if variant.order == 1]
    text = -1
    if beliefs is not None:
        words: dict[str, str] = {}
        for _, lead in leads:
            words.setdefault(lead.attribute, lead.source.lower())
        text = beliefs.add_text(case.original.groups, words)
    atoms: list[Atom] = []
    for variant, lead in leads:
        edits = [e for e in variant.edits if e.kind != "agreement"]
        attribute = lead.attribute
        direction = tuple(sorted({(e.source_group, e.target_group) for e in edits}))
        atom = Atom(
            Choice(
                attribute,
                lead.target_group,
                variant.edits,
                variant.groups[attribute],
                ends_of(direction, wanted.get(attribute, EVERY)),
            ),
            direction,
            f"{lead.source.lower()}{ARROW}{lead.target.lower()}",
            -1,
        )
        if beliefs is not None:
            atom = atom._replace(number=beliefs.add_single(text, atom.part, variant.groups))
        atoms.append(atom)
    return Pool(case, tuple(atoms))


def _lead(variant: Variant) -> Edit:
    edits = [e for e in variant.edits if e.kind != "agreement"]
    return max(edits, key=lambda e: (len(e.source), e.source.lower(), e.target.lower()))


def joints(pool: Pool, order: int, seed: int) -> Iterable[tuple[int, ...]]:
    """Every joint choice of up to ``order`` attributes, at most `WIDEST` of one attribute set, by its atoms."""
    by_attribute: dict[str, list[int]] = {}
    for i, atom in enumerate(pool.atoms):
        by_attribute.setdefault(atom.choice.attribute, []).append(i)
    for size in range(2, min(order, len(by_attribute)) + 1):
        for names in itertools.combinations(sorted(by_attribute), size):
            several = list(itertools.product(*(by_attribute[a] for a in names)))
            if len(several) > WIDEST:
                several = sorted(Random(f"{seed}:{draws_of(pool.case.id)}").sample(several, WIDEST))
            for members in several:
                if fits([pool.atoms[i].choice for i in members]):
                    yield members


def parts(several: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Every non-empty part of the joint choices, smallest first, the joint ones last."""
    every = {
        part: None
        for joint in several
        for size in range(1, len(joint) + 1)
        for part in itertools.combinations(joint, size)
    }
    return sorted(every, key=len)


def directed_case(name: str, pool: Pool, several: Sequence[tuple[int, ...]], mark: str) -> Case:
    """A case of the joint choices ``several`` with all their parts, in the order of `parts`.

    ``mark`` says what is in it: where a run is resumed, other answers may lead to other cases of the same seed, and
    the journal holds the earlier ones.
    """
    case_id = f"{pool.case.id}{mark}"
    original = pool.case.original
    picked = [tuple(pool.atoms[i].choice for i in part) for part in parts(several)]
    text = str(original.input)
    return Case(
        id=case_id,
        suite=name,
        original=Variant(id=f"{case_id}.o", input=text, groups=original.groups),
        variants=tuple(_variants(case_id, text, original.groups, picked)),
        sampling="directed",
        label=pool.case.label,
        source=pool.case.source,
    )


def fit(pool: Pool, arm: Arm) -> tuple[int, tuple[int, ...]] | None:
    """How near a seed comes to an arm (index into `FITS`), and the atomic choices that do."""
    members: list[int] = []
    worst = 0
    for attribute, direction, term in arm:
        targets = {target for _, target in direction}
        ranked = [
            (0 if a.direction == direction and a.term == term else 1 if a.direction == direction else 2, i)
            for i, a in enumerate(pool.atoms)
            if a.choice.attribute == attribute and {target for _, target in a.direction} == targets
        ]
        if not ranked:
            return None
        worst = max(worst, min(ranked)[0])
        members.append(min(ranked)[1])
    if not fits([pool.atoms[i].choice for i in members]):
        return None
    return worst, tuple(members)


SUSPECT = 2  # joint variants with an atomic choice that were not asked, after which it is left out


class Gate(Protocol):
    """What the suite needs of the validity check."""

    def check_many(self, cases: Sequence[Case]) -> Iterable[Sequence[Check]]:
        """Return the checks of each case's variants."""
        ...


class Seeds:
    """Every seed that a search has opened, by number.

    ``order`` is the largest number of attributes in a joint variant; atomic variants that ``gate`` finds invalid are
    left out; ``wanted`` says which changes of an attribute are asked for. ``pools`` are the seeds with their atomic
    choices, ``unasked`` says whether a seed's original has not been asked, ``members`` are a candidate's seed and
    atomic choices.
    """

    def __init__(self, *, order: int, seed: int, gate: Gate | None, wanted: Mapping[str, Wanted]) -> None:
        self._order, self._seed, self._gate, self._wanted = order, seed, gate, wanted
        self.beliefs = Beliefs(seed)
        self.pools: list[Pool] = []
        self.unasked: list[bool] = []
        self._candidates: list[dict[frozenset[int], int]] = []  # per seed: atoms → candidate
        self.members: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._seen: list[dict[int, set[str]]] = []  # per seed: atom → outcomes
        self._invalid: Counter[int] = Counter()  # single choices by joint variants that were not asked

    @property
    def any_open(self) -> bool:
        """Whether a joint variant is left that may be hidden."""
        return any(self.beliefs.open)

    def candidate(self, number: int, atoms: Iterable[int]) -> int | None:
        """The candidate of seed ``number`` with these atomic choices, if it offers one."""
        return self._candidates[number].get(frozenset(atoms))

    def valid(self, cases: Sequence[Case]) -> list[Case]:
        """The cases without atomic variants that the check refuses."""
        if self._gate is None:
            return list(cases)
        bad = {c.variant_id for checks in self._gate.check_many(cases) for c in checks if c.status == "invalid"}
        return [replace(c, variants=tuple(v for v in c.variants if v.id not in bad)) for c in cases]

    def open(self, case: Case, *, asked: bool) -> int:
        """Number the seed of ``case``, with its atomic choices and every joint one."""
        number = len(self.pools)
        pool = pool_of(case, self._wanted, self.beliefs)
        self.pools.append(pool)
        self._seen.append({})
        self.unasked.append(not asked)
        self._candidates.append({})
        for members in joints(pool, self._order, self._seed):
            atoms = [pool.atoms[i] for i in members]
            groups = {**case.original.groups, **{a.choice.attribute: a.choice.named for a in atoms}}
            candidate = self.beliefs.add_joint(number, tuple(a.part for a in atoms), [a.number for a in atoms], groups)
            self._candidates[number][frozenset(members)] = candidate
            self.members[candidate] = (number, members)
        return number

    def offers(self, number: int) -> bool:
        """Whether a seed offers joint variants."""
        return bool(self._candidates[number])

    # -- what was learnt ----------------------------------------------------

    def heard(
        self,
        number: int,
        atoms: Sequence[int],
        verdicts: Sequence[Verdict],
        scores: tuple[Mapping[str, float] | None, Mapping[str, float] | None],
    ) -> None:
        """Tell the beliefs what was answered, and how far each label was from being given.

        ``scores`` are the log scores of the original's labels and of the variant's, None where there are none.
        """
        node: Node
        if len(atoms) == 1:
            node = ("single", self.pools[number].atoms[atoms[0]].number)
        elif (candidate := self.candidate(number, atoms)) is not None:
            node = ("joint", candidate)
        else:
            return
        for verdict in verdicts:
            if verdict.outcome in ("pass", "violation"):
                own = str(verdict.original_output)
                other = own if verdict.outcome == "pass" else str(verdict.variant_output)
                self.beliefs.heard(number, (verdict.model, verdict.format), node, (own, other))
        # Scores are heard without the name of the model, so only those of one model can be told apart.
        if len(verdicts) == 1 and scores[0] and scores[1]:
            self.beliefs.scored(number, node, (scores[0], scores[1]))

    def atom(self, number: int, atom: int, outcomes: set[Any]) -> None:
        """What became of an atomic variant: where it shows, nothing with it is hidden."""
        if not outcomes:
            return  # not asked: its joint variant did not change the answer, or it is invalid
        seen = self._seen[number].setdefault(atom, set())
        seen |= outcomes
        if "pass" not in seen:
            self.rule_out(number, (atom,))

    def rule_out(self, number: int, atoms: tuple[int, ...]) -> None:
        """No joint variant is hidden of which a part shows by itself."""
        for members, candidate in self._candidates[number].items():
            if members.issuperset(atoms):
                self.beliefs.open[candidate] = False

    def suspect(self, number: int, atoms: tuple[int, ...]) -> None:
        """A joint variant was not asked: one of its parts may be invalid."""
        for atom in atoms:
            single = self.pools[number].atoms[atom].number
            self._invalid[single] += 1
            if self._invalid[single] == SUSPECT:
                self.rule_out(number, (atom,))
