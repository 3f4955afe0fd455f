"""Search for hidden findings: earlier answers decide which joint variants are made next.

Seeds are put in random order and dealt to three piles. The first is asked at random and in full, as the
mutation suite would: it alone feeds the rates. The second is searched by Thompson sampling
(`beliefs`). The third is kept for confirmation: the arm behind a finding is tried on texts that the
search has not used. See ``docs/decisions/0040-adaptive.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from auditor.contrib.adaptive.ledger import Chances, Ledger, Trials
from auditor.contrib.adaptive.search_seeds import Gate, Pool, Seeds, choices, directed_case, parts, pool_of
from auditor.core.errors import ConfigError
from auditor.core.protocols import Suite
from auditor.core.types import Answer, Case, Edit, SourceText, Variant, Verdict, id_of
from auditor.perturb.dictionaries import Dictionary
from auditor.perturb.mutation import MutationSuite

SHARE = 0.25  # of the calls, for cases at random
FRESH = 0.1  # of the search's calls, for confirmation on fresh seeds
PILES = (0.25, 0.6)  # of the seeds: at random, searched; the rest is fresh
SCREEN = 48  # joint variants drawn evenly over the arms before anything is believed
DRAWN = 8  # joint variants that a later round draws with known chances
BATCH = 24  # joint variants in a round
PER_SEED = 4  # of them in one seed
WINDOW = (48, 8)  # seeds opened at first, and with every round
SCANS = 12  # times as many seeds that are looked through for those that offer joint variants
FRESH_POOL = 300  # fresh seeds that are looked through, at most
PATIENCE = 400  # joint variants without a hidden finding after which an unlimited search ends
LEAST = 1e-6  # score below which the log odds do not fall


class _Expected(NamedTuple):
    """A variant that was asked for."""

    phase: str
    pool: int  # -1: a fresh seed that the search does not know
    atoms: tuple[int, ...]
    original: str  # variant id
    texts: tuple[str, str]  # its own, and the original's


class AdaptiveSuite(Suite):
    """Makes cases at random for the rates, and directed ones where hidden findings are likely.

    Parameters
    ----------
    seeds : sequence of SourceText
        All texts.
    dictionaries, attributes, order, per_seed, parser, seed, limit_chars, groups
        As for `auditor.perturb.mutation.MutationSuite`; ``order`` is at least 2.
    share : float
        Share of the calls that goes to cases at random, in [0, 1).
    patience : int or None
        The search ends after so many joint variants without a hidden finding; None searches until a limit of the
        run is reached or every pair of seed and arm was asked.
    gate : Gate or None
        The validity check of the run. Atomic variants that it finds invalid are never searched; None searches all
        and learns from joint variants that nobody answers.

    Raises
    ------
    ConfigError
        An option is out of range.
    """

    name = "mutation.adaptive.v1"
    listens = True

    def __init__(
        self,
        *,
        seeds: Iterable[SourceText],
        dictionaries: Sequence[Dictionary],
        attributes: str | Sequence[str] | None = None,
        order: int = 2,
        per_seed: int | None = 8,
        parser: object = None,
        seed: int = 7,
        limit_chars: object = None,
        groups: Mapping[str, Iterable[str]] | None = None,
        who: str = "all",
        subject: str = "",
        share: float = SHARE,
        patience: int | None = PATIENCE,
        gate: Gate | None = None,
    ) -> None:
        if order < 2:
            raise ConfigError(
                "--strategy adaptive searches for changes that show only jointly; it needs --order 2 or more. "
                "For one attribute at a time use --strategy exhaustive."
            )
        if not 0.0 <= share < 1.0:
            raise ConfigError(f"share must be at least 0 and below 1; got {share:g}")
        self._share, self._patience = share, patience
        self._order = order
        texts = list(seeds)
        Random(f"{seed}:adaptive").shuffle(texts)
        first, second = round(PILES[0] * len(texts)), round(sum(PILES) * len(texts))
        common: dict[str, Any] = {
            "dictionaries": dictionaries,
            "attributes": attributes,
            "per_seed": per_seed,
            "parser": parser,
            "seed": seed,
            "limit_chars": limit_chars,
            "groups": groups,
            "who": who,
            "subject": subject,
        }
        self._random = MutationSuite(seeds=texts[:first], order=order, **common)
        self._search = MutationSuite(seeds=texts[first:second], order=1, **common)
        self._fresh = MutationSuite(seeds=texts[second:], order=1, **common)
        for one in (self._random, self._search, self._fresh):
            one.skipped, one.passed_over = self.skipped, self.passed_over
        self._piles = {"random": first, "search": second - first, "fresh": len(texts) - second}
        self._seeds = Seeds(order=order, seed=seed, gate=gate, wanted=self._fresh.wanted)
        self._waiting: dict[str, _Expected] = {}  # by variant
        self._phase_of: dict[str, str] = {}  # of the cases of the last round
        self._scores: dict[str, dict[str, float]] = {}  # variant → mean log scores
        self._spoken, self._mute = True, 0
        self._ledger = Ledger()
        self.chances = Chances(seed)
        self._dry = 0
        self._end = ""
        self._trials = Trials()
        self._reserve: list[tuple[int, Pool]] | None = None

    # -- the protocol of suites ---------------------------------------------

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """Return the cases of the next round, at most ``n``; ``rng`` is not used."""
        if not self._spoken:
            # Nobody tells what became of the last round (a dry run): only what needs no answers is left.
            return self._at_random(n)
        self.chances.close()
        if not self._ledger.next_round():
            self._end = "the calls that are left are for confirmation"
            return []
        self._spoken = False
        self._waiting.clear()
        self._phase_of.clear()
        self._trials.waiting.clear()
        cases: list[Case] = []
        if self._share and self._ledger.spent["random"] <= self._share * self._ledger.spent.total():
            cases += self._at_random(1)
        if not self._end:
            cases += self._confirming()[: n - len(cases)]
            cases += self._directed(n - len(cases))
        return cases or self._at_random(n)

    def keep(self, answers: float, each: int) -> None:
        """End in time to ask the texts of every candidate ``each`` times more within ``answers``."""
        self._ledger.keep(answers, each)

    def tell(self, verdicts: Sequence[Verdict]) -> None:
        """Learn from the verdicts of the last round."""
        self._spoken = True
        by_variant: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            by_variant.setdefault(verdict.variant_id, []).append(verdict)
        self._mute = 0 if by_variant else self._mute + 1
        if self._mute >= 3:
            self._end = self._end or "no answers came"
        for variant_id, expected in self._waiting.items():
            if variant_id in by_variant:
                for text in expected.texts:
                    self._ledger.count(expected.phase, text, 1)
        self._learn(by_variant)
        self._scores.clear()
        if self._patience is not None and self._dry >= self._patience and not self._end:
            self._end = f"no hidden finding among the last {self._dry} joint variants"

    def hear(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> None:
        """Take note of how often each text was answered, and of the scores of labels where a model gives some."""
        phase = self._phase_of.get(case.id)
        if phase is None:
            return
        for variant in (case.original, *case.variants):
            own = answers.get(variant.id, ())
            self._ledger.count(phase, str(variant.input), len(own))
            rows = [answer.scores for answer in own if answer.scores]
            if rows and len(rows) == len(own):
                self._scores[variant.id] = {
                    label: sum(math.log(max(row.get(label, 0.0), LEAST)) for row in rows) / len(rows)
                    for label in rows[0]
                }

    def describe(self) -> dict[str, object]:
        """Return the options, the dictionaries and what was skipped so far, as plain data."""
        return self._random.describe() | {
            "name": self.name,
            "share": self._share,
            "piles": self._piles,
            "skipped": dict(sorted(self.skipped.items())),
            "passed_over": dict(sorted(self.passed_over.items())),
        }

    def record(self) -> dict[str, Any]:
        """The section of the search in the run record: what was tried and found, and the arms on fresh seeds."""
        search = {
            "share": self._share,
            "seeds": dict(self._piles),
            "seeds_searched": sum(not u for u in self._seeds.unasked),
            "arms": {
                "known": len(set(self._seeds.beliefs.arm_of)),
                "tried": len(self._seeds.beliefs.tried),
                "with_findings": len(self._trials.hits),
            },
            "phases": self._ledger.report(),
            "fresh": self._trials.rows(),
            "ended": self._end or "a limit was reached, or everything was asked",
        }
        return {"adaptive": search}

    # -- cases at random ----------------------------------------------------

    def _at_random(self, n: int) -> list[Case]:
        cases = list(self._random.ask(n, Random(0)))
        for case in cases:
            self._phase_of[case.id] = "random"
            pool = self._seeds.open(case, asked=True)
            whole = {choices(a.choice.edits): i for i, a in enumerate(self._seeds.pools[pool].atoms)}
            for variant in case.variants:
                by_attribute: dict[str, list[Edit]] = {}
                for edit in variant.edits:
                    by_attribute.setdefault(edit.attribute, []).append(edit)
                numbers = [whole.get(choices(edits)) for edits in by_attribute.values()]
                atoms = tuple(sorted(a for a in numbers if a is not None))
                if len(atoms) == len(numbers):
                    self._expect(variant, case.original, "random", pool, atoms)
                    self._close(pool, atoms, variant)
        return cases

    # -- directed cases -----------------------------------------------------

    def _directed(self, n: int) -> list[Case]:
        more = self._more(WINDOW[1] if any(self._seeds.unasked) else WINDOW[0])
        while more and not self._seeds.any_open:
            more = self._more(WINDOW[1])
        by_pool: dict[tuple[int, str], list[int]] = {}
        for phase, candidate in self._picked():
            by_pool.setdefault((self._seeds.members[candidate][0], phase), []).append(candidate)
        cases = []
        for (pool, phase), candidates in itertools.islice(by_pool.items(), max(0, n)):
            self._ledger.phases[phase]["joint"] += len(candidates)
            self._seeds.unasked[pool] = False
            cases.append(self._case(pool, phase, [self._seeds.members[c][1] for c in candidates]))
        if not self._seeds.any_open and not cases:
            self._end = "every pair of seed and arm was asked or ruled out"
        return cases

    def _picked(self) -> list[tuple[str, int]]:
        """The candidates of this round, each with its phase."""
        beliefs = self._seeds.beliefs
        if (left := SCREEN - self._ledger.phases["screening"]["joint"]) > 0:
            return [("screening", c) for c in beliefs.spread(min(BATCH, left), self._seeds.unasked)]
        drawn = self.chances.draw(beliefs, DRAWN if self._seeds.any_open else 0)
        best = beliefs.best(BATCH, PER_SEED, self._seeds.unasked)
        picked = [("screening", c) for c in drawn] + [("search", c) for c in best if c not in drawn]
        return picked[:BATCH]

    def _more(self, n: int) -> bool:
        """Open further seeds until ``n`` of them offer joint variants; False where there are none left."""
        opened = 0
        for _ in range(SCANS):
            cases = self._search.ask(n, Random(0)) or self._released()
            if not cases:
                return opened > 0
            several = [c for c in cases if len({a for v in c.variants for a in v.attributes}) > 1]
            for case in self._seeds.valid(several):
                opened += self._seeds.offers(self._seeds.open(case, asked=False))
            if opened >= n:
                break
        return True

    def _released(self) -> list[Case]:
        """The fresh seeds, once all others were opened: without findings to confirm they may be searched."""
        if self._reserve is None:
            return list(self._fresh.ask(WINDOW[1], Random(0)))
        cases = [pool.case for _, pool in self._reserve if pool.case.id not in self._trials.used]
        self._reserve = []
        return cases

    def _case(self, pool: int, phase: str, several: Sequence[tuple[int, ...]]) -> Case:
        """A directed case: joint choices in one seed, with every part of each."""
        case = directed_case(self.name, self._seeds.pools[pool], several, id_of("d", several))
        self._phase_of[case.id] = phase
        for variant, members in zip(case.variants, parts(several), strict=True):
            self._expect(variant, case.original, phase, pool, members)
            if members in several:
                self._close(pool, members, variant)
        return case

    def _close(self, pool: int, atoms: tuple[int, ...], variant: Variant) -> None:
        """A joint choice is asked, as ``variant``."""
        candidate = self._seeds.candidate(pool, atoms)
        if candidate is not None:
            self._seeds.beliefs.open[candidate] = False
            self.chances.ask(candidate, pool, variant.id)

    def _expect(self, variant: Variant, original: Variant, phase: str, pool: int, atoms: tuple[int, ...]) -> None:
        texts = (str(variant.input), str(original.input))
        self._waiting[variant.id] = _Expected(phase, pool, atoms, original.id, texts)

    # -- what was learnt ----------------------------------------------------

    def _learn(self, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
        """Atomic variants first: they may rule joint ones out."""
        for variant_id, expected in sorted(self._waiting.items(), key=lambda item: len(item[1].atoms)):
            own = verdicts.get(variant_id, ())
            pool, atoms = expected.pool, expected.atoms
            if any(v.hidden for v in own):
                self._ledger.candidate(self._lattice(expected))
            if pool >= 0:
                scores = (self._scores.get(expected.original), self._scores.get(variant_id))
                self._seeds.heard(pool, atoms, own, scores)
            if variant_id in self._trials.waiting:
                self._ledger.phases["fresh"]["hidden"] += self._trials.tell(variant_id, own)
            elif expected.phase == "fresh":
                continue
            elif len(atoms) == 1:
                self._seeds.atom(pool, atoms[0], {v.outcome for v in own})
            elif (candidate := self._seeds.candidate(pool, atoms)) is not None:
                self._joint(expected, candidate, own)
        self._seeds.beliefs.learn()

    def _lattice(self, joint: _Expected) -> set[str]:
        """The texts that are asked again to confirm a joint variant."""
        return {
            text
            for other in self._waiting.values()
            if other.original == joint.original and set(other.atoms) <= set(joint.atoms)
            for text in other.texts
        }

    def _joint(self, expected: _Expected, candidate: int, verdicts: Sequence[Verdict]) -> None:
        phase, pool, atoms, *_ = expected
        outcomes = {v.outcome for v in verdicts}
        picked = not self._seeds.beliefs.open[candidate]
        if not outcomes:
            if picked:
                self._seeds.suspect(pool, atoms)
            return
        self._seeds.beliefs.open[candidate] = False
        if phase == "random":
            self._ledger.phases[phase]["joint"] += 1
        if not outcomes & {"pass", "violation"}:
            return
        hidden = any(v.hidden for v in verdicts)
        if "pass" not in outcomes:
            self._seeds.rule_out(pool, atoms)
        self._ledger.phases[phase]["hidden"] += hidden
        if phase != "random":
            self._dry = 0 if hidden else self._dry + 1
        if hidden:
            self._trials.hits[self._seeds.beliefs.arm_of[candidate]] += 1

    # -- confirmation on fresh seeds ------------------------------------------

    def _confirming(self) -> list[Case]:
        """The cases that try one arm on fresh seeds, where it is the confirmation's turn."""
        spent = self._ledger.spent["screening"] + self._ledger.spent["search"]
        if not self._trials.hits or self._ledger.spent["fresh"] > FRESH * spent:
            return []
        if self._reserve is None:
            cases = self._seeds.valid(self._fresh.ask(FRESH_POOL, Random(0)))
            self._reserve = [(-1, pool_of(case, self._fresh.wanted)) for case in cases]
        unused = [(i, self._seeds.pools[i]) for i, unasked in enumerate(self._seeds.unasked) if unasked]
        out = []
        for arm, rank, members, number, pool in self._trials.next([*self._reserve, *unused]):
            case = directed_case(self.name, pool, [members], id_of("f", [arm, members]))
            self._phase_of[case.id] = "fresh"
            for variant, part in zip(case.variants, parts([members]), strict=True):
                self._expect(variant, case.original, "fresh", number, part)
            self._trials.expect(case.variants[-1].id, arm, rank, pool.case.id)
            self._ledger.phases["fresh"]["joint"] += 1
            if number >= 0:
                self._seeds.unasked[number] = False
                self._close(number, members, case.variants[-1])
            out.append(case)
        return out
