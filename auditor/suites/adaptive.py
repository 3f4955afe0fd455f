"""Search for hidden findings: earlier answers decide which joint variants are made next.

Seeds are put in random order and dealt to three piles. The first is asked at random and in full, as the
mutation suite would: it alone feeds the rates. The second is searched by Thompson sampling
(`auditor.suites._arms`). The third is kept for confirmation: the arm behind a finding is tried on texts that the
search has not used. See ``docs/decisions/0040-adaptive.md``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any, NamedTuple, Protocol

from auditor.dictionaries import Dictionary
from auditor.errors import ConfigError
from auditor.suites._arms import Beliefs
from auditor.suites._choose import Choice, _apart
from auditor.suites.mutation import MutationSuite, _variants
from auditor.types import Answer, Case, Check, Edit, Seed, Variant, Verdict

SHARE = 0.25  # of the calls, for cases at random
FRESH = 0.1  # of the search's calls, for confirmation on fresh seeds
PILES = (0.25, 0.6)  # of the seeds: at random, searched; the rest is fresh
SCREEN = 48  # joint variants drawn evenly over the arms before anything is believed
EXPLORE = 0.1  # of the later ones that are still drawn so
BATCH = 24  # joint variants in a round
PER_SEED = 4  # of them in one seed
WINDOW = (48, 8)  # seeds opened at first, and with every round
SCANS = 12  # times as many seeds that are looked through for those that offer joint variants
WIDEST = 256  # joint variants of one attribute set in one seed
FRESH_SEEDS = 8  # fresh seeds on which an arm is tried, at most
FRESH_POOL = 300  # fresh seeds that are looked through, at most
SUSPECT = 2  # joint variants with an atomic choice that were not asked, after which it is left out
FITS = ("same terms", "same directions", "same target groups")  # of an arm and a fresh seed
PATIENCE = 400  # joint variants without a hidden finding after which an unlimited search ends

Arm = tuple[tuple[str, Any, str], ...]  # (attribute, directions, lead term), one per attribute


class Listening:
    """An oracle that lets the suite hear the answers it judges; verdicts carry no scores.

    Parameters
    ----------
    oracle : Oracle
        Judges; everything else that it has is reached through this one.
    hear : callable
        Called with every case and its answers.
    """

    def __init__(self, oracle: Any, hear: Callable[[Case, Mapping[str, Sequence[Answer]]], None]) -> None:
        self._oracle, self._hear = oracle, hear

    def __getattr__(self, name: str) -> Any:
        return getattr(self._oracle, name)

    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> Sequence[Verdict]:
        """Verdicts of the oracle behind."""
        self._hear(case, answers)
        verdicts: Sequence[Verdict] = self._oracle.judge(case, answers)
        return verdicts


class Gate(Protocol):
    """What the suite needs of the validity check."""

    def check_many(self, cases: Sequence[Case]) -> Iterable[Sequence[Check]]:
        """Return the checks of each case's variants."""
        ...


class _Atom(NamedTuple):
    """One atomic choice in one seed, and what it is called across seeds."""

    choice: Choice
    direction: tuple[tuple[str, str], ...]  # (source group, target group)
    term: str  # the longest word that is changed, and what it becomes
    spot: int


class _Pool(NamedTuple):
    """A seed with its atomic choices."""

    case: Case
    atoms: tuple[_Atom, ...]


class AdaptiveSuite:
    """Makes cases at random for the rates, and directed ones where hidden findings are likely.

    Parameters
    ----------
    seeds : sequence of Seed
        All texts.
    dictionaries, attributes, order, scope, per_seed, parser, seed, limit_chars, insertions
        As for `auditor.suites.mutation.MutationSuite`; ``order`` is at least 2.
    share : float
        Share of the calls that goes to cases at random, in [0, 1).
    patience : int or None
        The search ends after so many joint variants without a hidden finding; None searches until a limit of the
        run is reached or every pair of seed and arm was asked.
    placebos : bool
        Whether cases at random get placebo variants (they cost as many calls again).

    gate : Gate or None
        The validity check of the run. Atomic variants that it finds invalid are never searched; None searches all
        and learns from joint variants that nobody answers.

    Raises
    ------
    ConfigError
        An option is out of range.
    """

    name = "mutation.adaptive.v1"

    def __init__(
        self,
        *,
        seeds: Iterable[Seed],
        dictionaries: Sequence[Dictionary],
        attributes: Sequence[str] | None = None,
        order: int = 2,
        scope: str = "text",
        per_seed: int | None = 8,
        parser: Any = None,
        seed: int = 7,
        limit_chars: Any = None,
        insertions: bool = False,
        share: float = SHARE,
        patience: int | None = PATIENCE,
        placebos: bool = True,
        gate: Gate | None = None,
    ) -> None:
        if order < 2:
            raise ConfigError(
                "--strategy adaptive searches for changes that show only jointly; it needs --order 2 or more. "
                "For one attribute at a time use --strategy exhaustive."
            )
        if not 0.0 <= share < 1.0:
            raise ConfigError(f"share must be at least 0 and below 1; got {share:g}")
        self._share, self._patience, self._placebos, self._gate = share, patience, placebos, gate
        self._order, self._seed = order, seed
        texts = list(seeds)
        Random(f"{seed}:adaptive").shuffle(texts)
        first, second = round(PILES[0] * len(texts)), round(sum(PILES) * len(texts))
        common: dict[str, Any] = {
            "dictionaries": dictionaries,
            "attributes": attributes,
            "scope": scope,
            "per_seed": per_seed,
            "parser": parser,
            "seed": seed,
            "limit_chars": limit_chars,
            "insertions": insertions,
        }
        self._random = MutationSuite(seeds=texts[:first], order=order, **common)
        self._search = MutationSuite(seeds=texts[first:second], order=1, **common)
        self._fresh = MutationSuite(seeds=texts[second:], order=1, **common)
        self._piles = {"random": first, "search": second - first, "fresh": len(texts) - second}
        self._beliefs = Beliefs(order, seed)
        self._pools: list[_Pool] = []
        self._candidates: list[dict[frozenset[int], int]] = []  # per pool: atoms → candidate
        self._members: dict[int, tuple[int, tuple[int, ...]]] = {}  # candidate → pool, atoms
        self._seen: list[dict[int, set[str]]] = []  # per pool: atom → outcomes
        self._known: dict[int, bool] = {}  # spots that were answered
        self._invalid: Counter[int] = Counter()  # spots by joint variants that were not asked
        self._unasked: list[bool] = []  # per pool: its original
        self._rounds: Counter[int] = Counter()  # per pool: directed cases made
        self._waiting: dict[str, tuple[str, int, tuple[int, ...]]] = {}  # variant → phase, pool, atoms
        self._pool_of: dict[str, int] = {}  # of the cases of the last round
        self._heard: list[tuple[int, float]] = []
        self._spoken, self._mute = True, 0
        self._phases: dict[str, Counter[str]] = {
            p: Counter() for p in ("random", "screening", "search", "fresh")
        }
        self._inputs: set[str] = set()
        self._texts: dict[str, tuple[str, str]] = {}  # variant id → its text, and its original's
        self._dry = 0
        self._end = ""
        self._most = math.inf
        self._hits: dict[Arm, int] = {}
        self._used: set[str] = set()  # fresh seeds on which an arm was tried
        self._reserve: list[tuple[int, _Pool]] | None = None
        self._tried: dict[Arm, dict[str, list[int]]] = {}  # what is the same → hidden, judged
        self._trials: dict[str, tuple[Arm, str]] = {}  # joint variant of a fresh case → arm, terms

    # -- the protocol of suites ---------------------------------------------

    @property
    def skipped(self) -> Counter[str]:
        """Seeds that made no case, by reason."""
        return self._random.skipped + self._search.skipped + self._fresh.skipped

    @property
    def passed_over(self) -> Counter[str]:
        """Choices that were not offered, by reason."""
        return self._random.passed_over + self._search.passed_over + self._fresh.passed_over

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """Return the cases of the next round, at most ``n``; ``rng`` is not used."""
        if not self._spoken:
            # Nobody tells what became of the last round (a dry run): only what needs no answers is left.
            return self._at_random(n)
        if sum(map(self._cost, self._phases)) >= self._most:
            self._end = "the calls that are left are for confirmation"
            return []
        self._spoken = False
        self._waiting.clear()
        self._pool_of.clear()
        self._trials.clear()
        cases: list[Case] = []
        if self._cost("random") <= self._share * sum(map(self._cost, self._phases)) and self._share:
            cases += self._at_random(1)
        if not self._end:
            cases += self._confirming()[: n - len(cases)]
            cases += self._directed(n - len(cases))
        return cases or self._at_random(n)

    def keep(self, texts: float) -> None:
        """End when ``texts`` inputs were asked, so that a run's limit leaves calls for confirmation."""
        self._most = texts

    def tell(self, verdicts: Sequence[Verdict]) -> None:
        """Learn from the verdicts of the last round."""
        self._spoken = True
        by_variant: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            by_variant.setdefault(verdict.variant_id, []).append(verdict)
        self._mute = 0 if by_variant else self._mute + 1
        if self._mute >= 3:
            self._end = self._end or "no answers came"
        for variant_id, (phase, _, _) in self._waiting.items():
            if variant_id in by_variant:
                for text in self._texts[variant_id]:
                    if text not in self._inputs:
                        self._inputs.add(text)
                        self._phases[phase]["texts"] += 1
        for pool, gap in self._heard:
            self._beliefs.margin(pool, gap)
        self._heard.clear()
        self._learn(by_variant)
        self._texts.clear()
        if self._patience is not None and self._dry >= self._patience and not self._end:
            self._end = f"no hidden finding among the last {self._dry} joint variants"

    def hear(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> None:
        """Take note of how sure a model is of an original, where it gives scores."""
        pool = self._pool_of.get(case.id)
        for answer in answers.get(case.original.id, ()) if pool is not None else ():
            best = sorted((answer.scores or {}).values(), reverse=True)[:2]
            if len(best) == 2 and best[0] > 0:
                self._heard.append((int(pool or 0), math.log(best[0] / max(best[1], 1e-6))))

    def describe(self) -> dict[str, Any]:
        """Return the options, the dictionaries and what was skipped so far, as plain data."""
        return self._random.describe() | {
            "name": self.name,
            "share": self._share,
            "piles": self._piles,
            "skipped": dict(sorted(self.skipped.items())),
            "passed_over": dict(sorted(self.passed_over.items())),
        }

    def search_report(self) -> dict[str, Any]:
        """Return what was tried and found, and the arms on fresh seeds, as plain data."""
        from auditor.stats.intervals import clopper_pearson

        tried = int((self._beliefs.arms.n > 0).sum()) if self._pools else 0
        rows = []
        for arm, hits in self._ranked():
            if arm not in self._tried:
                continue
            found, judged = (sum(cell[k] for cell in self._tried[arm].values()) for k in (0, 1))
            rows.append(
                {
                    "attributes": [a for a, _, _ in arm],
                    "directions": [[a, s, t] for a, d, _ in arm for s, t in d],
                    "terms": [term for _, _, term in arm],
                    "hits": hits,
                    "fresh_hidden": found,
                    "fresh_seeds": judged,
                    "by_fit": {name: list(cell) for name, cell in self._tried[arm].items()},
                    "estimate": asdict(clopper_pearson(found, judged)) if judged else None,
                }
            )
        return {
            "share": self._share,
            "seeds": dict(self._piles),
            "seeds_searched": sum(not u for u in self._unasked),
            "arms": {"known": len(self._beliefs.arms.ids), "tried": tried, "with_findings": len(self._hits)},
            "phases": {
                phase: {key: counts[key] for key in ("texts", "joint", "hidden")}
                for phase, counts in self._phases.items()
            },
            "fresh": rows,
            "ended": self._end or "a limit was reached, or everything was asked",
        }

    # -- cases at random ----------------------------------------------------

    def _at_random(self, n: int) -> list[Case]:
        cases = list(self._random.ask(n, Random(0)))
        for case in cases:
            pool = self._pool_of[case.id] = self._open(case, asked=True)
            whole = {frozenset(_choices(a.choice.edits)): i for i, a in enumerate(self._pools[pool].atoms)}
            for variant in case.variants:
                parts: dict[str, list[Edit]] = {}
                for edit in variant.edits:
                    parts.setdefault(edit.attribute, []).append(edit)
                atoms = [whole.get(frozenset(_choices(edits))) for edits in parts.values()]
                found = tuple(sorted(a for a in atoms if a is not None))
                if len(found) == len(parts):
                    self._expect(variant, case.original, "random", pool, found)
                    candidate = self._candidates[pool].get(frozenset(found))
                    if candidate is not None:
                        self._beliefs.open[candidate] = False
        return cases

    # -- directed cases -----------------------------------------------------

    def _directed(self, n: int) -> list[Case]:
        more = self._more(WINDOW[1] if any(self._unasked) else WINDOW[0])
        while more and not any(self._beliefs.open):
            more = self._more(WINDOW[1])
        screened = self._phases["screening"]["joint"]
        picked: list[tuple[str, int]] = []
        if screened < SCREEN:
            picked = [("screening", c) for c in self._beliefs.spread(min(BATCH, SCREEN - screened))]
        else:
            picked = [("screening", c) for c in self._beliefs.spread(round(EXPLORE * BATCH))]
            chosen = {c for _, c in picked}
            best = self._beliefs.best(BATCH, PER_SEED, self._known, self._unasked)
            picked += [("search", c) for c in best if c not in chosen][: BATCH - len(picked)]
        by_pool: dict[tuple[int, str], list[int]] = {}
        for phase, candidate in picked:
            by_pool.setdefault((self._members[candidate][0], phase), []).append(candidate)
        cases = []
        for (pool, phase), candidates in itertools.islice(by_pool.items(), max(0, n)):
            for candidate in candidates:
                self._beliefs.open[candidate] = False
                self._phases[phase]["joint"] += 1
            self._unasked[pool] = False
            cases.append(self._case(pool, phase, [self._members[c][1] for c in candidates]))
        if not any(self._beliefs.open) and not cases:
            self._end = "every pair of seed and arm was asked or ruled out"
        return cases

    def _more(self, n: int) -> bool:
        """Open further seeds until ``n`` of them offer joint variants; False where there are none left."""
        opened = 0
        for _ in range(SCANS):
            cases = self._search.ask(n, Random(0)) or self._released()
            if not cases:
                return opened > 0
            several = [c for c in cases if len({a for v in c.variants for a in v.attributes}) > 1]
            for case in self._valid(several):
                opened += bool(self._candidates[self._open(case, asked=False)])
            if opened >= n:
                break
        return True

    def _released(self) -> list[Case]:
        """The fresh seeds, once all others were opened: without findings to confirm they may be searched."""
        if self._reserve is None:
            return list(self._fresh.ask(WINDOW[1], Random(0)))
        cases = [pool.case for _, pool in self._reserve if pool.case.id not in self._used]
        self._reserve = []
        return cases

    def _valid(self, cases: Sequence[Case]) -> list[Case]:
        """The cases without atomic variants that the check refuses."""
        if self._gate is None:
            return list(cases)
        bad = {c.variant_id for told in self._gate.check_many(cases) for c in told if c.status == "invalid"}
        return [replace(c, variants=tuple(v for v in c.variants if v.id not in bad)) for c in cases]

    def _open(self, case: Case, *, asked: bool) -> int:
        """Number the seed of ``case``, with its atomic choices and every joint one."""
        number = self._beliefs.seeds.add(len(self._pools))
        pool = _pool(case, number, self._beliefs)
        self._pools.append(pool)
        self._seen.append({})
        self._unasked.append(not asked)
        self._candidates.append({})
        by_attribute: dict[str, list[int]] = {}
        for i, atom in enumerate(pool.atoms):
            by_attribute.setdefault(atom.choice.attribute, []).append(i)
        for size in range(2, min(self._order, len(by_attribute)) + 1):
            for names in itertools.combinations(sorted(by_attribute), size):
                for members in _combinations([by_attribute[a] for a in names], f"{self._seed}:{case.id}"):
                    atoms = [pool.atoms[i] for i in members]
                    if not _apart([a.choice for a in atoms]):
                        continue
                    arm = self._beliefs.add_arm(_arm(atoms))
                    candidate = self._beliefs.add(number, arm, [a.spot for a in atoms])
                    self._candidates[number][frozenset(members)] = candidate
                    self._members[candidate] = (number, members)
        return number

    def _case(self, pool: int, phase: str, joints: Sequence[tuple[int, ...]]) -> Case:
        """A directed case: joint choices in one seed, with every part of each."""
        self._rounds[pool] += 1
        case = _directed_case(self.name, self._pools[pool], joints, f"d{self._rounds[pool]}")
        self._pool_of[case.id] = pool
        for variant, members in zip(case.variants, _parts(joints), strict=True):
            self._expect(variant, case.original, phase, pool, members)
        return case

    def _expect(
        self, variant: Variant, original: Variant, phase: str, pool: int, atoms: tuple[int, ...]
    ) -> None:
        self._waiting[variant.id] = (phase, pool, atoms)
        self._texts[variant.id] = (str(variant.input), str(original.input))

    def _cost(self, phase: str) -> int:
        return self._phases[phase]["texts"] * (2 if phase == "random" and self._placebos else 1)

    # -- what was learnt ----------------------------------------------------

    def _learn(self, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
        """Atomic variants first: they may rule joint ones out."""
        waiting = sorted(self._waiting.items(), key=lambda item: len(item[1][2]))
        for variant_id, (phase, pool, atoms) in waiting:
            given = verdicts.get(variant_id, ())
            outcomes = {v.outcome for v in given}
            if variant_id in self._trials:
                self._trial(variant_id, given)
            elif phase == "fresh":
                continue
            elif len(atoms) == 1:
                self._atom(pool, atoms[0], outcomes)
            elif (candidate := self._candidates[pool].get(frozenset(atoms))) is not None:
                self._joint(phase, pool, atoms, candidate, given)

    def _atom(self, pool: int, atom: int, outcomes: set[Any]) -> None:
        if not outcomes:
            return  # not asked: its joint variant did not change the answer, or it is invalid
        self._known[self._pools[pool].atoms[atom].spot] = True
        seen = self._seen[pool].setdefault(atom, set())
        seen |= outcomes
        if "pass" not in seen:
            self._rule_out(pool, (atom,))

    def _rule_out(self, pool: int, atoms: tuple[int, ...]) -> None:
        """No joint variant is hidden of which a part shows by itself."""
        for members, candidate in self._candidates[pool].items():
            if members.issuperset(atoms):
                self._beliefs.open[candidate] = False

    def _suspect(self, pool: int, atoms: tuple[int, ...]) -> None:
        """A joint variant was not asked: one of its parts may be invalid."""
        for atom in atoms:
            spot = self._pools[pool].atoms[atom].spot
            self._invalid[spot] += 1
            if self._invalid[spot] == SUSPECT:
                self._rule_out(pool, (atom,))

    def _joint(
        self, phase: str, pool: int, atoms: tuple[int, ...], candidate: int, given: Sequence[Verdict]
    ) -> None:
        outcomes = {v.outcome for v in given}
        picked = not self._beliefs.open[candidate]
        if not outcomes:
            if picked:
                self._suspect(pool, atoms)
            return
        self._beliefs.open[candidate] = False
        if phase == "random":
            self._phases[phase]["joint"] += 1
        if not outcomes & {"pass", "violation"}:
            return
        hidden = any(v.hidden for v in given)
        self._beliefs.count(candidate, hidden=hidden, changed="violation" in outcomes)
        if "pass" not in outcomes:
            self._rule_out(pool, atoms)
        self._phases[phase]["hidden"] += hidden
        if phase != "random":
            self._dry = 0 if hidden else self._dry + 1
        if hidden:
            arm = self._beliefs.arm_of(candidate)
            self._hits[arm] = self._hits.get(arm, 0) + 1

    # -- confirmation on fresh seeds ------------------------------------------

    def _ranked(self) -> list[tuple[Arm, int]]:
        """Arms with findings, those with most first, and of these the earliest."""
        return sorted(self._hits.items(), key=lambda item: -item[1])

    def _confirming(self) -> list[Case]:
        """The cases that try one arm on fresh seeds, where it is the confirmation's turn."""
        spent = self._cost("screening") + self._cost("search")
        if not self._hits or self._cost("fresh") > FRESH * spent:
            return []
        if self._reserve is None:
            cases = self._valid(self._fresh.ask(FRESH_POOL, Random(0)))
            self._reserve = [(-1, _pool(c, i, None)) for i, c in enumerate(cases)]
        unused = [(i, self._pools[i]) for i, unasked in enumerate(self._unasked) if unasked]
        for arm, _ in self._ranked():
            if arm in self._tried:
                continue
            self._tried[arm] = {name: [0, 0] for name in FITS}
            fits = [
                (*fit, number, pool)
                for number, pool in (*self._reserve, *unused)
                if (fit := _fit(pool, arm)) is not None
            ]
            fits.sort(key=lambda fit: fit[0])
            if fits:
                return [self._fresh_case(arm, *fit) for fit in fits[:FRESH_SEEDS]]
        return []

    def _fresh_case(self, arm: Arm, rank: int, members: tuple[int, ...], number: int, pool: _Pool) -> Case:
        case = _directed_case(self.name, pool, [members], f"f{len(self._tried)}")
        for variant, part in zip(case.variants, _parts([members]), strict=True):
            self._expect(variant, case.original, "fresh", number, part)
        self._trials[case.variants[-1].id] = (arm, FITS[rank])
        self._used.add(pool.case.id)
        self._phases["fresh"]["joint"] += 1
        if number >= 0:
            self._unasked[number] = False
            self._pool_of[case.id] = number
            candidate = self._candidates[number].get(frozenset(members))
            if candidate is not None:
                self._beliefs.open[candidate] = False
        return case

    def _trial(self, variant_id: str, given: Sequence[Verdict]) -> None:
        if not {v.outcome for v in given} & {"pass", "violation"}:
            return
        arm, terms = self._trials[variant_id]
        hidden = any(v.hidden for v in given)
        self._tried[arm][terms][0] += hidden
        self._tried[arm][terms][1] += 1
        self._phases["fresh"]["hidden"] += hidden


def _choices(edits: Iterable[Edit]) -> Iterable[tuple[str, Any, str]]:
    return ((e.attribute, e.where, e.target) for e in edits if e.kind != "agreement")


def _pool(case: Case, number: int, beliefs: Beliefs | None) -> _Pool:
    atoms: list[_Atom] = []
    for variant in case.variants:
        if variant.order != 1:
            continue
        attribute = variant.attributes[0]
        edits = [e for e in variant.edits if e.kind != "agreement"]
        lead = max(edits, key=lambda e: (len(e.source), e.source.lower(), e.target.lower()))
        direction = tuple(sorted({(e.source_group, e.target_group) for e in edits}))
        choice = Choice(attribute, lead.target_group, variant.edits, variant.groups[attribute])
        spot = -1 if beliefs is None else beliefs.spots.add((number, len(atoms)))
        atoms.append(_Atom(choice, direction, f"{lead.source.lower()} → {lead.target.lower()}", spot))
    return _Pool(case, tuple(atoms))


def _arm(atoms: Sequence[_Atom]) -> Arm:
    return tuple((a.choice.attribute, a.direction, a.term) for a in atoms)


def _combinations(rows: Sequence[Sequence[int]], key: str) -> Iterable[tuple[int, ...]]:
    """One of each row, in all ways, or `WIDEST` of them at random."""
    found = list(itertools.product(*rows))
    return found if len(found) <= WIDEST else sorted(Random(key).sample(found, WIDEST))


def _parts(joints: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Every non-empty part of the joint choices, smallest first, the joint ones last."""
    found = {
        part: None
        for joint in joints
        for size in range(1, len(joint) + 1)
        for part in itertools.combinations(joint, size)
    }
    return sorted(found, key=len)


def _directed_case(name: str, pool: _Pool, joints: Sequence[tuple[int, ...]], mark: str) -> Case:
    case_id = f"{pool.case.id}{mark}"
    original = pool.case.original
    picked = [tuple(pool.atoms[i].choice for i in part) for part in _parts(joints)]
    text = str(original.input)
    return Case(
        id=case_id,
        suite=name,
        original=Variant(id=f"{case_id}.o", input=text, groups=original.groups),
        variants=tuple(_variants(case_id, text, original.groups, picked)),
        sampling="directed",
        label=pool.case.label,
    )


def _fit(pool: _Pool, arm: Arm) -> tuple[int, tuple[int, ...]] | None:
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
    if not _apart([pool.atoms[i].choice for i in members]):
        return None
    return worst, tuple(members)
