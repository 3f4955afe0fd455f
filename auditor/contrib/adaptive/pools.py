"""Seeds with their atomic choices, and the directed cases that are made of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from auditor.contrib.adaptive.arms import Beliefs
from auditor.contrib.adaptive.states import ARROW, Arm
from auditor.core.types import Case, Edit, Variant, draws_of
from auditor.perturb.choices import Choice, ends_of, fits
from auditor.perturb.mutation import _variants
from auditor.perturb.plans import EVERY, Wanted

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
            found = list(itertools.product(*(by_attribute[a] for a in names)))
            if len(found) > WIDEST:
                found = sorted(Random(f"{seed}:{draws_of(pool.case.id)}").sample(found, WIDEST))
            for members in found:
                if fits([pool.atoms[i].choice for i in members]):
                    yield members


def parts(several: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Every non-empty part of the joint choices, smallest first, the joint ones last."""
    found = {
        part: None
        for joint in several
        for size in range(1, len(joint) + 1)
        for part in itertools.combinations(joint, size)
    }
    return sorted(found, key=len)


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
