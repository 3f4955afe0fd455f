"""The seeds of a directed search: the joint variants that each offers, and which of them answers ruled out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from auditor.contrib.adaptive.arms import Beliefs
from auditor.contrib.adaptive.pools import Pool, joints, pool_of
from auditor.contrib.adaptive.states import Arm, Node
from auditor.core.types import Case, Check, Verdict
from auditor.perturb.plans import Wanted

SUSPECT = 2  # joint variants with an atomic choice that were not asked, after which it is left out


class Gate(Protocol):
    """What the suite needs of the validity check."""

    def check_many(self, cases: Sequence[Case]) -> Iterable[Sequence[Check]]:
        """Return the checks of each case's variants."""
        ...


class Seeds:
    """Every seed that a search has opened, by number.

    Parameters
    ----------
    order : int
        The largest number of attributes in a joint variant.
    seed : int
        Of every random choice.
    gate : Gate or None
        Atomic variants that it finds invalid are left out.
    wanted : mapping of str to Wanted
        Attribute → which of its changes are asked for.

    Attributes
    ----------
    pools : list of Pool
        The seeds with their atomic choices.
    unasked : list of bool
        Per seed: whether its original has not been asked.
    """

    def __init__(self, *, order: int, seed: int, gate: Gate | None, wanted: Mapping[str, Wanted]) -> None:
        self._order, self._seed, self._gate, self._wanted = order, seed, gate, wanted
        self.beliefs = Beliefs(seed)
        self.pools: list[Pool] = []
        self.unasked: list[bool] = []
        self._candidates: list[dict[frozenset[int], int]] = []  # per seed: atoms → candidate
        self._members: dict[int, tuple[int, tuple[int, ...]]] = {}  # candidate → seed, atoms
        self._seen: list[dict[int, set[str]]] = []  # per seed: atom → outcomes
        self._invalid: Counter[int] = Counter()  # single choices by joint variants that were not asked

    @property
    def any_open(self) -> bool:
        """Whether a joint variant is left that may be hidden."""
        return any(self.beliefs.open)

    def candidate(self, number: int, atoms: Iterable[int]) -> int | None:
        """The candidate of seed ``number`` with these atomic choices, if it offers one."""
        return self._candidates[number].get(frozenset(atoms))

    def members(self, candidate: int) -> tuple[int, tuple[int, ...]]:
        """The seed of a candidate, and its atomic choices."""
        return self._members[candidate]

    def arm(self, candidate: int) -> Arm:
        """The arm of a candidate."""
        return self.beliefs.arm_of(candidate)

    def close(self, candidate: int | None) -> None:
        """A candidate was asked."""
        if candidate is not None:
            self.beliefs.open[candidate] = False

    def valid(self, cases: Sequence[Case]) -> list[Case]:
        """The cases without atomic variants that the check refuses."""
        if self._gate is None:
            return list(cases)
        bad = {c.variant_id for told in self._gate.check_many(cases) for c in told if c.status == "invalid"}
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
            candidate = self.beliefs.add(number, tuple(a.part for a in atoms), [a.number for a in atoms], groups)
            self._candidates[number][frozenset(members)] = candidate
            self._members[candidate] = (number, members)
        return number

    def offers(self, number: int) -> bool:
        """Whether a seed offers joint variants."""
        return bool(self._candidates[number])

    # -- what was learnt ----------------------------------------------------

    def heard(
        self,
        number: int,
        atoms: Sequence[int],
        given: Sequence[Verdict],
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
        for verdict in given:
            if verdict.outcome in ("pass", "violation"):
                own = str(verdict.original_output)
                other = own if verdict.outcome == "pass" else str(verdict.variant_output)
                self.beliefs.heard(number, (verdict.model, verdict.format), node, (own, other))
        # Scores are heard without the name of the model, so only those of one model can be told apart.
        if len(given) == 1 and scores[0] and scores[1]:
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
