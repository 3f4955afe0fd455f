"""Grammar-generated cases (ASTRAEA, Soremekun et al. 2022, Algorithms 1 and 2).

A case is a generated sentence and the same derivation with the sensitive terminals of one or more attributes
replaced by those of other groups. The RAND phase draws cases independently of all verdicts; the PROB phase
weights the alternatives of the grammar by their error rates, and its cases are marked "directed", so that they
never enter a rate.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, NamedTuple

import numpy as np

from auditor.errors import ConfigError, UnknownPlugin
from auditor.grammar import Grammar, Space, load, space
from auditor.grammar.count import finite_bound
from auditor.grammar.coverage import Meter
from auditor.grammar.generate import Mutator, Sampler, Uniform, error_weights
from auditor.grammar.shape import Choice, Derivation, Structure
from auditor.types import Case, Check, Edit, EditKind, Sampling, Variant, Verdict, digest

GENERATIONS = ("rand", "prob", "uniform")
DEFAULT_CASES = 600
_BLOCK = 256
_DRY = 8  # blocks without a new sentence after which the draw is widened or ends
_WIDEN = 0.25


class Swap(NamedTuple):
    """One attribute becomes one group: the new entry of each cell concerned."""

    attribute: str
    group: str
    cells: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Count:
    """Distinct cases of one phase and model, and the tests (variants) in them."""

    cases: int = 0
    violating_cases: int = 0
    unjudged_cases: int = 0
    tests: int = 0
    violations: int = 0


class GrammarSuite:
    """Makes cases from a grammar; needs no seed texts.

    Parameters
    ----------
    grammar : Grammar or str
        A grammar, or what `auditor.grammar.load` takes.
    generation : {"prob", "rand", "uniform"}
        ``rand`` draws all cases by the weights of the grammar; ``prob`` the first part so and the rest
        directed by the verdicts; ``uniform`` draws distinct sentences, each equally likely, without replacement.
    cases : int
        Distinct cases in all; fewer if the language has fewer.
    rand_share : float
        With ``prob``: the share of the RAND phase, in (0, 1] (published: one half).
    attributes : sequence of str or None
        The attributes to change; None takes all of the grammar.
    order : int
        The largest number of attributes changed together, at least 1.
    per_case : int or None
        Variants for each set of attributes, spread over the groups; None takes all.
    pairs : bool
        One variant for each case, of order 1, as published (``--protocol astraea``).
    power : float
        Of the error rates in PROB (`auditor.grammar.generate.error_weights`); published: 1.
    seed : int
        Fixes everything drawn. The variants of a sentence depend on the seed and the sentence only.

    Attributes
    ----------
    counts, errors : Counter of (rule, alternative)
        RAND cases that held an alternative, and those of them that violated; what PROB and diagnosis use.
    checks : dict
        A check for each variant of the last `ask`.

    Examples
    --------
    >>> suite = GrammarSuite(grammar="sentiment:direct-gender", cases=2, generation="rand")
    >>> [case.sampling for case in suite.ask(5, Random(0))]
    ['iid', 'iid']
    """

    name = "grammar.v1"

    def __init__(
        self,
        *,
        grammar: Grammar | str,
        generation: str = "prob",
        cases: int = DEFAULT_CASES,
        rand_share: float = 0.5,
        attributes: Sequence[str] | None = None,
        order: int = 2,
        per_case: int | None = 8,
        pairs: bool = False,
        power: float = 2.0,
        seed: int = 7,
    ) -> None:
        if generation not in GENERATIONS:
            raise ConfigError(f"generation must be one of {', '.join(GENERATIONS)}; got {generation!r}")
        if cases < 1 or order < 1 or (per_case is not None and per_case < 1) or not 0 < rand_share <= 1:
            raise ConfigError("cases, order and per_case must be at least 1, rand_share above 0 and at most 1")
        self.grammar = load(grammar) if isinstance(grammar, str) else grammar
        self.space: Space = space(self.grammar)
        self._attributes = _attributes(self.space, attributes)
        self._mutators = [Mutator(s, self._attributes) for s in self.space.structures]
        self.generation, self.total = generation, cases
        self._first = cases if generation != "prob" else max(1, round(cases * rand_share))
        self._order, self._per_case, self._pairs, self._seed = order, per_case, pairs, seed
        self._power = power
        self._rng = np.random.default_rng([seed, 4])
        self._sampler: Sampler | None = None
        self._uniform: Uniform | None = None
        self._place = 0
        self._mix = 0.0
        self._ready: deque[Derivation] = deque()
        self._made: set[str] = set()
        self._open: dict[str, tuple[Sampling, frozenset[Choice]]] = {}
        self.counts: Counter[Choice] = Counter()
        self.errors: Counter[Choice] = Counter()
        self.tallies: dict[tuple[str, Sampling], Count] = {}
        self.skipped: Counter[str] = Counter()
        self.checks: dict[str, Check] = {}
        self.meters: dict[Sampling, Meter] = {
            "iid": Meter(self.space),
            "directed": Meter(self.space),
        }

    # -- the protocol -------------------------------------------------------

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """Return up to ``n`` further distinct cases; ``rng`` is not used.

        The RAND phase ends with an answer of its own, so that all its verdicts are in before PROB begins.
        """
        self.checks = {}
        done = len(self._made)
        sampling: Sampling = "iid" if done < self._first else "directed"
        wanted = min(n, (self._first if sampling == "iid" else self.total) - done)
        if sampling == "directed" and self._sampler is not None and done == self._first:
            self._sampler = None
            self._ready.clear()
        cases: list[Case] = []
        while len(cases) < wanted:
            derivation = self._next(sampling)
            if derivation is None:
                break
            case = self._case(derivation, sampling)
            if case is not None:
                cases.append(case)
        return cases

    def tell(self, verdicts: Sequence[Verdict]) -> None:
        """Count what the verdicts say about each alternative of the grammar."""
        by_case: dict[str, dict[str, list[Verdict]]] = {}
        for verdict in verdicts:
            by_case.setdefault(verdict.case_id, {}).setdefault(verdict.model, []).append(verdict)
        for case_id, models in sorted(by_case.items()):
            if case_id not in self._open:
                continue
            sampling, choices = self._open.pop(case_id)
            erred = judged = False
            for model, told in sorted(models.items()):
                tally = self.tallies.setdefault((model, sampling), Count())
                known = [v for v in told if v.outcome in ("pass", "violation")]
                wrong = [v for v in known if v.outcome == "violation"]
                tally.cases += bool(known)
                tally.unjudged_cases += len(known) < len(told) and not wrong
                tally.violating_cases += bool(wrong)
                tally.tests += len(known)
                tally.violations += len(wrong)
                judged, erred = judged or bool(known), erred or bool(wrong)
            if judged and sampling == "iid":
                self.counts.update(choices)
                if erred:
                    self.errors.update(choices)

    def describe(self) -> dict[str, Any]:
        """Return the grammar and the options as plain data."""
        return {
            "name": self.name,
            "grammar": self.grammar.full_name,
            "sha256": self.grammar.sha256,
            "generation": self.generation,
            "cases": self.total,
            "rand_cases": self._first,
            "attributes": list(self._attributes),
            "order": self._order,
            "per_case": self._per_case,
            "pairs": self._pairs,
            "power": self._power,
            "seed": self._seed,
        }

    def report(self) -> dict[str, Any]:
        """Return what the phases came to: distinct cases, violations, coverage, and the bound, as plain data.

        ``bound`` stands where sentences were drawn uniformly: with 95 % confidence at most this share of
        all sentences of the grammar has a violating variant. Cases that could not be judged count as violating.
        """
        phases = []
        for (model, sampling), tally in sorted(self.tallies.items()):
            phases.append(
                {
                    "model": model,
                    "phase": "prob" if sampling == "directed" else "rand",
                    "sampling": sampling,
                    "cases": tally.cases,
                    "violating_cases": tally.violating_cases,
                    "unjudged_cases": tally.unjudged_cases,
                    "tests": tally.tests,
                    "violations": tally.violations,
                }
            )
        out: dict[str, Any] = {
            **self.describe(),
            "sentences": self.space.sentences,
            "derivations": self.space.derivations,
            "phases": phases,
            "coverage": {
                ("prob" if sampling == "directed" else "rand"): meter.result().as_record()
                for sampling, meter in self.meters.items()
                if meter.seen
            },
        }
        if self._uniform is not None:
            out["bound"] = {
                model: self._bound(tally) for (model, _), tally in sorted(self.tallies.items())
            }
        return out

    def _bound(self, tally: Count) -> dict[str, Any]:
        assert self._uniform is not None
        found = tally.violating_cases + tally.unjudged_cases
        drawn = max(self._place, found)
        return {
            "population": self._uniform.size,
            "drawn": drawn,
            "found": found,
            "level": 0.95,
            "share_at_most": finite_bound(self._uniform.size, drawn, found),
            "method": "hypergeometric, one-sided",
        }

    # -- drawing ------------------------------------------------------------

    def _next(self, sampling: Sampling) -> Derivation | None:
        """One further derivation, or None if no new sentence turns up any more."""
        if self.generation == "uniform":
            if self._uniform is None:
                self._uniform = Uniform(self.space, seed=self._seed)
            if self._place == self._uniform.size:
                return None
            self._place += 1
            return self._uniform.at(self._place - 1)
        dry = 0
        while not self._ready:
            if self._sampler is None:
                self._sampler = self._make(sampling)
            for derivation in self._sampler.draw(_BLOCK, self._rng):
                if self._id(derivation) not in self._made:
                    self._ready.append(derivation)
                else:
                    self.skipped["drawn before"] += 1
            dry += 1
            if not self._ready and dry == _DRY:
                if sampling == "iid" or self._mix >= 1:
                    return None
                self._mix, self._sampler, dry = self._mix + _WIDEN, None, 0
        return self._ready.popleft()

    def _make(self, sampling: Sampling) -> Sampler:
        if sampling == "iid":
            return Sampler(self.space)
        return Sampler(
            self.space, error_weights(self.grammar, self.counts, self.errors, mix=self._mix, power=self._power)
        )

    def _id(self, derivation: Derivation) -> str:
        return "c" + digest([self.grammar.sha256, self.space.text(derivation)], size=5)

    # -- cases --------------------------------------------------------------

    def _case(self, derivation: Derivation, sampling: Sampling) -> Case | None:
        which, index = derivation
        structure, mutator = self.space.structures[which], self._mutators[which]
        case_id = self._id(derivation)
        if case_id in self._made:  # twice in one block
            self.skipped["drawn before"] += 1
            return None
        joint = self._swaps(mutator, index, Random(f"{self._seed}:{case_id}"))
        if not joint:
            self.skipped["names no group"] += 1
            if self.skipped["names no group"] > 1000 and not self._made:
                raise ConfigError(
                    f"No sentence of the grammar {self.grammar.full_name} names a group of {', '.join(self._attributes)}."
                )
            return None
        self._made.add(case_id)
        groups = {a: mutator.source(index, a) for a in mutator.attributes}
        text = structure.text(index)
        choices = set(structure.path(index))
        variants, changed = [], []
        for number, swaps in enumerate(joint):
            after = list(index)
            for swap in swaps:
                for cell, entry in swap.cells:
                    after[cell] = entry
            edits = tuple(edits_of(structure, index, after))
            variant = Variant(
                id=f"{case_id}.v{number}",
                input=structure.text(after),
                groups={**groups, **{s.attribute: s.group for s in swaps}},
                edits=edits,
            )
            variants.append(variant)
            changed.append((which, tuple(after)))
            choices |= set(structure.path(after))
            self.checks[variant.id] = Check(
                variant_id=variant.id, check=self.name, status="valid", reason="generated by the grammar"
            )
        self._open[case_id] = (sampling, frozenset(choices))
        self.meters[sampling].add(derivation, changed)
        return Case(
            id=case_id,
            suite=self.name,
            original=Variant(id=f"{case_id}.o", input=text, groups=groups),
            variants=tuple(variants),
            sampling=sampling,
            label=structure.label(index),
        )

    def _swaps(
        self, mutator: Mutator, index: tuple[int, ...], rng: Random
    ) -> list[tuple[Swap, ...]]:
        """What to change: single swaps first, then joint ones with all their parts."""
        offers: dict[str, list[Swap]] = {}
        for attribute in mutator.attributes:
            found = self._offers(mutator, index, attribute, rng)
            if found:
                offers[attribute] = found
        if not offers:
            return []
        if self._pairs:
            attribute = rng.choice(sorted(offers))
            return [(rng.choice(offers[attribute]),)]
        chosen: dict[frozenset[Swap], tuple[Swap, ...]] = {}
        for attribute in sorted(offers):
            for swap in offers[attribute]:
                chosen[frozenset((swap,))] = (swap,)
        for k in range(2, min(self._order, len(offers)) + 1):
            for together in itertools.combinations(sorted(offers), k):
                for swaps in _products([offers[a] for a in together], self._per_case, rng):
                    for size in range(2, k + 1):
                        for part in itertools.combinations(swaps, size):
                            chosen.setdefault(frozenset(part), part)
        return sorted(chosen.values(), key=len)

    def _offers(
        self, mutator: Mutator, index: tuple[int, ...], attribute: str, rng: Random
    ) -> list[Swap]:
        """Swaps of one attribute, spread over the groups; at most ``per_case``."""
        queues = []
        for group, entries in mutator.others(index, attribute):
            picks = list(range(max(1, len(entries))))
            rng.shuffle(picks)
            found = dict.fromkeys(
                tuple(sorted(mutator.toward(index, attribute, group, pick).items()))
                for pick in (picks[:1] if self._pairs else picks)
            )
            queues.append([Swap(attribute, group, cells) for cells in found if cells])
        rng.shuffle(queues)
        limit = self._per_case or sum(map(len, queues))
        spread = (s for row in itertools.zip_longest(*queues) for s in row if s is not None)
        return list(itertools.islice(spread, limit))


def _attributes(space: Space, wanted: Sequence[str] | None) -> tuple[str, ...]:
    known = space.attributes
    if not known:
        raise ConfigError(
            f"The grammar {space.grammar.full_name} has no sensitive rule, so nothing can be changed. See grammars/README.md"
        )
    for name in wanted or ():
        if name not in known:
            raise UnknownPlugin("attribute", name, known, f"The grammar {space.grammar.full_name} has these.")
    return tuple(sorted(set(wanted))) if wanted is not None else known


def _products(
    offers: Sequence[Sequence[Swap]], limit: int | None, rng: Random
) -> Iterator[tuple[Swap, ...]]:
    """Up to ``limit`` different combinations, one swap of each."""
    total = 1
    for one in offers:
        total *= len(one)
    numbers = range(total) if limit is None or total <= limit else rng.sample(range(total), limit)
    for number in numbers:
        picked = []
        for one in reversed(offers):
            number, i = divmod(number, len(one))
            picked.append(one[i])
        yield tuple(reversed(picked))


def edits_of(structure: Structure, before: Sequence[int], after: Sequence[int]) -> Iterator[Edit]:
    """The edits that turn one derivation's sentence into another's of the same structure, in order.

    Offsets are characters of the first sentence. Forms that follow from a terminal are of kind
    ``agreement``.
    """
    for column, (start, end) in zip(structure.columns, structure.spans(before), strict=True):
        if column.cell < 0:
            continue
        source, target = column.table[before[column.cell]], column.table[after[column.cell]]
        if source == target:
            continue
        cell = structure.cells[column.cell]
        old, new = (cell.entries[i[column.cell]].terminal for i in (before, after))
        kind: EditKind = "swap"
        if column.tied:
            kind = "agreement"
        elif cell.placebo:
            kind = "placebo"
        elif old.group == "unmarked":
            kind = "marking"
        yield Edit(
            attribute=cell.attribute or cell.rule,
            kind=kind,
            source_group=old.group or "",
            target_group=new.group or "",
            source=source,
            target=target,
            where=(start, end),
        )


def phase_name(sampling: Literal["iid", "directed"]) -> str:
    """What ASTRAEA calls the phase that a case comes from."""
    return "PROB" if sampling == "directed" else "RAND"


def choice_names(grammar: Grammar, counts: Mapping[Choice, int]) -> dict[str, dict[str, int]]:
    """Counts by rule and terminal, for reports: ``{"occupation": {"the nurse": 12}}``."""
    out: dict[str, dict[str, int]] = {}
    for (rule, number), count in sorted(counts.items()):
        text = getattr(grammar.rules[rule].alternatives[number], "text", None)
        if text is not None:
            out.setdefault(rule, {})[text] = count
    return out
