"""Grammar-generated cases (ASTRAEA, Soremekun et al. 2022, Algorithms 1 and 2).

A case is a generated sentence and the same derivation with the sensitive terminals of one or more attributes
replaced by those of other groups. The RAND phase draws cases independently of all verdicts; the PROB phase
weights the alternatives of the grammar by their error rates, and its cases are marked "directed", so that they
never enter a rate.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from auditor.core.errors import ConfigError
from auditor.core.protocols import Suite
from auditor.core.types import Case, Check, Sampling, Variant, Verdict, digest, draws_of, id_of
from auditor.perturb._swaps import chosen_swaps, edits_of, same_groups
from auditor.perturb.grammar import Grammar, Space, load, space
from auditor.perturb.grammar.bandit import bandit_weights
from auditor.perturb.grammar.coverage import Meter
from auditor.perturb.grammar.generate import Mutator, Sampler, Uniform, error_weights
from auditor.perturb.grammar.shape import Choice, Derivation
from auditor.perturb.grammar.space import finite_bound
from auditor.perturb.grammar.suite_counts import Checks, Count, choice_names, chosen_attributes, count_case

__all__ = ["GENERATIONS", "Count", "GrammarSuite", "choice_names"]

GENERATIONS = ("rand", "prob", "uniform", "bandit")
DEFAULT_CASES = 600
_BLOCKS = {"bandit": 10}  # derivations drawn together in the directed phase, where not _BLOCK
_BLOCK = 256
_DRY = 8  # blocks without a new sentence after which the draw is widened or ends
_WIDEN = 0.25


class GrammarSuite(Suite):
    """Makes cases from a grammar; needs no seed texts.

    Parameters
    ----------
    grammar : Grammar or str
        A grammar, or what `auditor.perturb.grammar.load` takes.
    generation : {"prob", "rand", "uniform", "bandit"}
        ``rand`` draws all cases by the weights of the grammar; ``prob`` the first part so and the rest
        directed by their verdicts; ``bandit`` as ``prob``, but the directed part goes on learning
        (`bandit`); ``uniform`` draws distinct sentences, each equally likely, without replacement.
    cases : int
        Distinct cases in all; fewer if the language has fewer.
    rand_share : float
        With ``prob`` and ``bandit``: the share of the RAND phase, in (0, 1] (published: one half).
    attributes : sequence of str or None
        The attributes to change; None takes all of the grammar.
    order : int
        The largest number of attributes changed together, at least 1.
    per_case : int or None
        Variants for each set of attributes, spread over the groups; None takes all, and then no two cases hold
        the same sentences (unless ``generation`` is ``uniform``).
    pairs : bool
        One variant for each case, of order 1, as published (``--protocol astraea``).
    power : float
        Of the error rates in PROB (`auditor.perturb.grammar.generate.error_weights`); published: 1.
    seed : int
        Fixes everything drawn. The variants of a sentence depend on the seed and the sentence only.

    Attributes
    ----------
    counts, errors : Counter of (rule, alternative)
        RAND cases that held an alternative, and those of them that violated; what PROB and diagnosis use.
    of_model : dict of str to (Counter, Counter)
        The same for each model alone.
    checks : mapping
        A check for each variant id.

    Examples
    --------
    >>> suite = GrammarSuite(grammar="sentiment:direct-gender", cases=2, generation="rand")
    >>> [case.sampling for case in suite.ask(5, Random(0))]
    ['iid', 'iid']
    """

    name = "grammar.v1"
    brings_placebos = True

    def __init__(
        self,
        *,
        grammar: Grammar | str,
        generation: str = "prob",
        cases: int = DEFAULT_CASES,
        rand_share: float = 0.5,
        attributes: str | Sequence[str] | None = None,
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
        self._attributes = chosen_attributes(self.space, attributes)
        self._mutators = [Mutator(s, self._attributes) for s in self.space.structures]
        self.generation, self.total = generation, cases
        self._first = cases if generation not in ("prob", "bandit") else max(1, round(cases * rand_share))
        self._order, self._per_case, self._pairs, self._seed = order, per_case, pairs, seed
        self._power = power
        # Where a case holds every counterpart, each of its sentences would make the same case again. Drawn
        # uniformly, sentences are what is counted.
        self._whole = per_case is None and not pairs and generation != "uniform"
        self._rng = np.random.default_rng([seed, 4])
        self._sampler: Sampler | None = Sampler(self.space)
        if not sum(self._sampler.shares[i] for i, m in enumerate(self._mutators) if m.attributes):
            raise ConfigError(
                f"No sentence of the grammar {self.grammar.full_name} names a group of {', '.join(self._attributes)}."
            )
        self._uniform: Uniform | None = None
        self._place = 0
        self._mix = 0.0
        self._ready: deque[Derivation] = deque()
        self._made: set[str] = set()
        self._passed: set[str] = set()  # drawn, but no case of their own
        self._orbits: set[str] = set()  # the sentences of each case, where a case holds all counterparts
        self._open: dict[str, tuple[Sampling, frozenset[Choice]]] = {}
        self.counts: Counter[Choice] = Counter()
        self.errors: Counter[Choice] = Counter()
        self.of_model: dict[str, tuple[Counter[Choice], Counter[Choice]]] = {}
        self._learned: tuple[Counter[Choice], Counter[Choice]] = (Counter(), Counter())
        self.tallies: dict[tuple[str, Sampling], Count] = {}
        self.skipped: Counter[str] = Counter()
        self.checks: Mapping[str, Check] = Checks()
        self._derived: dict[str, Derivation] = {}
        self.meters: dict[Sampling, Meter] = {"iid": Meter(self.space), "directed": Meter(self.space)}

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """Return up to ``n`` further distinct cases; ``rng`` is not used.

        The RAND phase ends with an answer of its own, so that all its verdicts are in before PROB begins.
        """
        self._derived = {}
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
                if known and sampling == "iid":
                    seen, failed = self.of_model.setdefault(model, (Counter(), Counter()))
                    count_case(seen, failed, choices, bool(wrong))
            if judged and sampling == "iid":
                count_case(self.counts, self.errors, choices, erred)
            if judged and self.generation == "bandit":
                count_case(*self._learned, choices, erred)
                if sampling == "directed":
                    self._ready.clear()  # drawn before these verdicts

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

    def record(self) -> dict[str, object]:
        """The section of the generator in the run record."""
        return {"generation": self.report()}

    def report(self) -> dict[str, object]:
        """Return what the phases came to: distinct cases, violations, coverage, and the bound, as plain data.

        ``bound`` stands where sentences were drawn uniformly: with 95 % confidence at most this share of
        all sentences of the grammar has a violating variant. Cases that could not be judged count as violating.
        """
        phases = [
            {"model": model, "phase": self._phase(sampling), "sampling": sampling} | dataclasses.asdict(tally)
            for (model, sampling), tally in sorted(self.tallies.items())
        ]
        out: dict[str, object] = {
            **self.describe(),
            "sentences": self.space.sentences,
            "derivations": self.space.derivations,
            "phases": phases,
            "coverage": {
                self._phase(sampling): meter.result().as_record()
                for sampling, meter in self.meters.items()
                if meter.seen
            },
        }
        if self._uniform is not None:
            out["bound"] = {model: self._bound(tally) for (model, _), tally in sorted(self.tallies.items())}
        return out

    def _phase(self, sampling: str) -> str:
        return "rand" if sampling == "iid" else "bandit" if self.generation == "bandit" else "prob"

    def _bound(self, tally: Count) -> dict[str, object]:
        assert self._uniform is not None
        # What was drawn and never told of, since the run was stopped, was not judged either.
        found = tally.violating_cases + tally.unjudged_cases + len(self._open)
        drawn = max(self._place, found)
        return {
            "population": self._uniform.size,
            "drawn": drawn,
            "found": found,
            "level": 0.95,
            "share_at_most": finite_bound(self._uniform.size, drawn, found),
            "method": "hypergeometric, one-sided",
        }

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
        block = _BLOCKS.get(self.generation, _BLOCK) if sampling == "directed" else _BLOCK
        while not self._ready:
            if self._sampler is None or (self.generation == "bandit" and sampling == "directed"):
                self._sampler = self._make(sampling)
            for derivation in self._sampler.draw(block, self._rng):
                if not self._mutators[derivation[0]].attributes:
                    self.skipped["names no group"] += 1
                elif (case_id := self._id(derivation)) in self._made or case_id in self._passed:
                    self.skipped["drawn before"] += 1
                else:
                    self._ready.append(derivation)
            dry += 1
            if not self._ready and dry == _DRY:
                if sampling == "iid" or self._mix >= 1:
                    return None
                self._mix, self._sampler, dry = self._mix + _WIDEN, None, 0
        return self._ready.popleft()

    def _make(self, sampling: Sampling) -> Sampler:
        if sampling == "iid":
            return Sampler(self.space)
        if self.generation == "bandit":
            weights = bandit_weights(self.grammar, *self._learned, self._rng, mix=self._mix)
            return Sampler(self.space, weights)
        return Sampler(
            self.space, error_weights(self.grammar, self.counts, self.errors, mix=self._mix, power=self._power)
        )

    def _id(self, derivation: Derivation) -> str:
        return id_of("c", [self.grammar.sha256, self.space.text(derivation)])

    def _case(self, derivation: Derivation, sampling: Sampling) -> Case | None:
        which, index = derivation
        structure, mutator = self.space.structures[which], self._mutators[which]
        case_id = self._id(derivation)
        if case_id in self._made or case_id in self._passed:  # twice in one block
            self.skipped["drawn before"] += 1
            return None
        rng = Random(f"{self._seed}:{draws_of(case_id)}")
        joint = chosen_swaps(mutator, index, rng, order=self._order, limit=self._per_case, one=self._pairs)
        if not joint:
            self.skipped["names no group"] += 1
            self._passed.add(case_id)
            return None
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
        if self._whole and self._known([text, *(str(v.input) for v in variants)]):
            self.skipped["same sentences as another case"] += 1
            self._passed.add(case_id)
            return None
        self._made.add(case_id)
        self._derived[case_id] = derivation
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

    def _known(self, texts: Sequence[str]) -> bool:
        """Whether a case has these sentences already; if not, one has from now on."""
        orbit = digest(sorted(texts), size=16)
        known = orbit in self._orbits
        self._orbits.add(orbit)
        return known

    def placebos(self, case: Case, n: int | None, rng: Random) -> tuple[Variant, ...]:
        """Variants of a case of the last `ask` that keep every group: other terminals of the same ones.

        For each attribute as many as the case has variants of it alone, at most ``n``, with as many changed places
        as these. A group with one terminal has none. Ids are empty; the caller numbers them.
        """
        if case.id not in self._derived:
            return ()
        which, index = self._derived[case.id]
        structure, mutator = self.space.structures[which], self._mutators[which]
        single = Counter(v.attributes[0] for v in case.variants if v.order == 1)
        out: list[Variant] = []
        for attribute in mutator.attributes:
            if not single[attribute]:
                continue
            wanted = single[attribute] if n is None else min(n, single[attribute])
            found = same_groups(structure, mutator, index, [v for v in case.variants if v.attributes == (attribute,)])
            drawn = list(found.items())
            rng.shuffle(drawn)
            out += [
                Variant(
                    id="",
                    input=text,
                    groups=case.original.groups,
                    edits=tuple(edits_of(structure, index, after, placebo=True)),
                )
                for text, after in drawn[:wanted]
            ]
        return tuple(out)
