"""Rounds of cases with placebo variants and further wordings, made and checked.

They are made in this process, by other processes of this machine, or by actors of a Ray cluster; chunks of seeds come
back in their order.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from auditor.core.errors import ConfigError, MissingDependency, PluginError
from auditor.core.plan import Plan, of_package
from auditor.core.protocols import Gate, PlaceboMaker, Suite
from auditor.core.types import Case, Check, Edit, SourceText, Variant, draws_of
from auditor.perturb.edits import apply, overlap, span_of
from auditor.perturb.name_lines import line_end
from auditor.perturb.placebo import is_irrelevant, unframed, worded
from auditor.run.preparation import Parts, stages
from auditor.store.journal import CASE, case_line, decoded

ROUND = 64  # seeds per round
FEW = 8  # seeds per round where the answers are looked at between rounds
BATCH_ROUND = 2048  # where a round becomes batches of a provider, which takes a day for each
PLACEBO_CAP = 24  # placebo variants of one seed where the plan sets no number
TRIED = 40  # combinations of placebo edits that are tried for one joint edit
AGAIN = 3  # times that placebos are drawn again where the gate refused all
JOINT_CAP = 8  # of them, those that copy joint edits, for each set of attributes
TRIED_WORDINGS = 8  # neutral edits that are checked for each wording wanted, and pairs of them
CHUNK = 128  # seeds that a worker gets at once
AHEAD = 3  # chunks in flight for each worker
# What a worker made of one chunk of seeds: cases with their checks, as in ``cases.jsonl``, and what its suite skipped
# and passed over.
Made = tuple[Sequence[bytes], Mapping[str, int], Mapping[str, int]]
Submit = Callable[[Sequence[SourceText]], Awaitable[Made]]


class Round(NamedTuple):
    """Cases, the checks of their variants, and lines for ``cases.jsonl`` where a worker wrote them."""

    cases: Sequence[Case] = ()
    checks: Mapping[str, Check] = MappingProxyType({})
    lines: Mapping[str, bytes] = MappingProxyType({})


class Source:
    """Makes rounds of cases, with the checks of their variants, in this process."""

    least = 0  # seeds of the first round

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._begun = False

    async def next(self, rng: Random) -> Round:
        """The next round; without cases at the end."""
        return self.made(rng)

    def made(self, rng: Random) -> Round:
        """The next round, made in this process."""
        parts, suite = self._parts, self._parts.suite
        cases = suite.ask(self.size(), rng)
        return Round(*gated(parts.plan, cases, parts.gate, parts.placebos, suite)) if cases else Round()

    def size(self) -> int:
        """Return the number of seeds of the next round: few in the first, where a model that cannot be read stops."""
        plan, first = self._parts.plan, not self._begun
        self._begun = True
        if plan.batch:
            return BATCH_ROUND
        many = len(self._parts.texts) > ROUND
        size = FEW if plan.until_decided or plan.suite == "joint-first" or (first and many) else ROUND
        return max(size, self.least) if first else size

    def close(self) -> None:
        """Let go of workers."""


def source(parts: Parts) -> Source:
    """The source that ``--jobs`` names; this process where a case depends on more than its seed."""
    if not parts.texts or parts.plan.jobs == "1":
        return Source(parts)
    engine, _, n = parts.plan.jobs.rpartition(":")
    return (actors if engine else processes)(parts, int(n))


def gated(
    plan: Plan, cases: Sequence[Case], gate: Gate | None, placebos: PlaceboMaker | None, suite: Suite
) -> tuple[Sequence[Case], dict[str, Check]]:
    """Cases with their placebo variants and further wordings, and the check of every variant."""
    # Directed cases of texts enter no rate, so they have no placebos either.
    controlled = placebos is not None and plan.protocol == "default" and plan.suite != "joint-first"
    if controlled:
        cases = [with_placebos(c, placebos, per_seed=plan.per_seed, seed=plan.seed) for c in cases]
    if gate is None:
        own = {} if suite.checks is None else suite.checks  # one may seem empty
        try:
            return cases, {v.id: own[v.id] for case in cases for v in case.variants}
        except KeyError as error:
            raise PluginError(f"suite {suite.name!r} made {error.args[0]} without a check of it in .checks") from None
    checks = checked(gate, cases)
    if controlled:
        cases, checks = placebos_again(cases, checks, placebos, gate, seed=plan.seed)
    if plan.wordings > 1 and placebos is not None:
        cases, further = with_wordings(cases, checks, gate, placebos, n=plan.wordings - 1, seed=plan.seed)
        checks |= further
    return cases, checks


def checked(gate: Gate, cases: Sequence[Case]) -> dict[str, Check]:
    """Return the check of every variant; edits in a line of their own and irrelevant ones need no parse."""
    fine: dict[str, Check] = {}
    for case in cases:
        end = line_end(case)
        for v in case.variants:
            inside = all(isinstance(e.where, tuple) and e.where[1] < end for e in v.edits)
            if inside or is_irrelevant(v.edits):
                fine[v.id] = Check(variant_id=v.id, check=case.suite, status="valid")
    left = [dataclasses.replace(case, variants=tuple(v for v in case.variants if v.id not in fine)) for case in cases]
    return fine | {check.variant_id: check for one in gate.check_many(left) for check in one}


def is_placebo(variant: Variant) -> bool:
    """Whether the variant changes no group: all its edits, repairs aside, are placebo edits."""
    kinds = {edit.kind for edit in variant.edits if edit.kind != "agreement"}
    return kinds == {"placebo"}


def with_placebos(case: Case, suite: Any, *, per_seed: int | None, seed: int) -> Case:
    """Add placebo variants to a case: for each attribute as many as it has variants, at most ``per_seed``."""
    if not case.variants or any(is_placebo(v) for v in case.variants):
        return case
    wanted = min(len(case.variants), per_seed or PLACEBO_CAP)
    rng = Random(f"{seed}:{draws_of(case.id)}:placebo")
    made = list(suite.placebos(case, wanted, rng))
    joint = sorted({v.attributes for v in case.variants if v.order > 1})
    for attributes in joint:
        number = sum(v.attributes == attributes for v in case.variants)
        if not any(v.attributes == attributes for v in made):
            made += _together(case, made, attributes, min(number, wanted, JOINT_CAP), rng)
    taken = {v.input for v in case.variants} | {case.original.input}
    # One text may stand against edits of two attributes; its prompt is asked once all the same.
    kept: dict[object, Variant] = {}
    for variant in made:
        if variant.input not in taken:
            kept.setdefault((variant.attributes, variant.input), variant)
    added = [
        dataclasses.replace(v, id=f"{case.id}.p{n}", groups=v.groups or case.original.groups)
        for n, v in enumerate(kept.values())
    ]
    return dataclasses.replace(case, variants=(*case.variants, *added)) if added else case


def placebos_again(
    cases: Sequence[Case], checks: Mapping[str, Check], suite: Any, gate: Gate, *, seed: int
) -> tuple[list[Case], dict[str, Check]]:
    """Other placebos where the gate refused all that stood beside valid edits, and the checks of these."""
    out, verified = list(cases), dict(checks)
    for single in (True, False):
        drawn: dict[int, tuple[list[Variant], Counter[tuple[str, ...]]]] = {}
        for place, case in enumerate(out):
            bare = tuple(v for v in case.variants if not is_placebo(v))
            beside = [v for v in case.variants if is_placebo(v)]
            standing = [v for v in beside if verified[v.id].status == "valid"]
            lacking = {v.attributes for v in bare if verified[v.id].status == "valid" and (v.order == 1) == single}
            lacking -= {v.attributes for v in standing}
            refused = Counter(v.attributes for v in beside if v.attributes in lacking)
            if not (lacking and beside):
                continue
            rng = Random(f"{seed}:{draws_of(case.id)}:placebo again")
            made: list[Variant] = []
            about = tuple(v for v in bare if v.attributes in refused) if single else bare
            if not about:
                continue
            again = dataclasses.replace(case, variants=about)
            for _ in range(AGAIN if single else 0):
                made += suite.placebos(again, len(about) + AGAIN, rng)
            # Last, one neutral word for each part: those that are alike in form may all hold a place that is refused. A
            # joint one may have a sentence about the text for a part, where the text has no second place.
            words = [v for v in suite.neutral(again, JOINT_CAP, rng) if len(v.edits) == 1]
            if single:
                one = [v for v in words if is_placebo(v)]
                names = [name for attributes in sorted(refused) for name in attributes]
                made += [dataclasses.replace(v, edits=_of(v, name)) for name in names for v in one]
            else:
                for attributes in sorted(lacking):
                    made += _together(again, standing, attributes, JOINT_CAP, rng)
                    for _ in range(AGAIN):
                        rng.shuffle(words)
                        made += _together(again, words, attributes, JOINT_CAP, rng)
            taken = {v.input for v in bare} | {case.original.input}
            known = {(v.attributes, v.input) for v in beside}
            new = {(v.attributes, v.input): v for v in made if v.input not in taken}
            if new := {key: v for key, v in new.items() if key not in known}:
                drawn[place] = list(new.values()), refused
        tried = {
            place: dataclasses.replace(
                out[place],
                variants=tuple(dataclasses.replace(v, id=f"{out[place].id}.a{n}") for n, v in enumerate(variants)),
            )
            for place, (variants, _) in drawn.items()
        }
        fine = checked(gate, list(tried.values()))
        for place, case in tried.items():
            left = Counter({v.attributes: 1 for v in case.variants}) | drawn[place][1]
            number = sum(map(is_placebo, out[place].variants))
            added: list[Variant] = []
            for variant in case.variants:
                if fine[variant.id].status == "valid" and left[variant.attributes] > 0:
                    left[variant.attributes] -= 1
                    name = f"{case.id}.p{number + len(added)}"
                    groups = variant.groups or case.original.groups
                    added.append(dataclasses.replace(variant, id=name, groups=groups))
                    verified[name] = dataclasses.replace(fine[variant.id], variant_id=name)
            out[place] = dataclasses.replace(out[place], variants=(*out[place].variants, *added))
    return out, verified


def _together(case: Case, single: Sequence[Variant], attributes: Sequence[str], n: int, rng: Random) -> list[Variant]:
    """Joint placebo variants for ``n`` joint edits: for each attribute a placebo like its part, or a neutral one."""
    if not isinstance(case.original.input, str):
        return []
    changed = {name for v in case.variants for name in v.attributes}
    neutral = [v for v in single if not changed & set(v.attributes)]
    parts = [[v for v in single if v.attributes == (name,)] or neutral for name in attributes]
    forms = [[(_form(v.edits), v) for v in part] for part in parts]
    made: dict[tuple[int, ...], Variant] = {}
    for model in [v for v in case.variants if v.attributes == attributes][:n]:
        near = []
        for name, part in zip(attributes, forms, strict=True):
            wanted = _form([e for e in model.edits if e.attribute == name])
            rng.shuffle(part)
            unlike = [sum(w * abs(a - b) for w, a, b in zip((12, 8, 1), form, wanted, strict=True)) for form, _ in part]
            near.append([v for _, (_, v) in sorted(zip(unlike, part, strict=True), key=lambda row: row[0])])
        for combination in _combinations(near):
            # Not by id: a suite may leave the numbering to this module.
            key = tuple(map(id, combination))
            if key in made or len(set(key)) < len(key):
                continue
            if not overlap(sorted(span_of(e) for v in combination for e in v.edits)):
                edits = [e for name, v in zip(attributes, combination, strict=True) for e in _of(v, name)]
                edits.sort(key=span_of)
                text = apply(case.original.input, edits)
                made[key] = Variant(id="", input=text, groups=case.original.groups, edits=tuple(edits))
                break
    return list(made.values())


def _of(variant: Variant, attribute: str) -> tuple[Edit, ...]:
    """The edits of a variant as those that stand against edits of ``attribute``."""
    return tuple(e if e.attribute == attribute else dataclasses.replace(e, attribute=attribute) for e in variant.edits)


_Form = tuple[int, int, int]


def _form(edits: Sequence[Edit]) -> _Form:
    """Spans, words and characters that edits change or add."""
    return (
        sum(e.kind != "agreement" for e in edits),
        sum(e.target.count(" ") - e.source.count(" ") for e in edits),
        sum(len(e.target) - len(e.source) for e in edits),
    )


def _combinations(parts: Sequence[Sequence[Variant]]) -> Iterator[tuple[Variant, ...]]:
    """Combinations of one variant of each part, those of the first ones of all parts first, at most `TRIED`."""
    short = [part[:TRIED] for part in parts]
    places = itertools.product(*(range(len(part)) for part in short))
    for picked in itertools.islice(sorted(places, key=sum), TRIED):
        yield tuple(part[i] for part, i in zip(short, picked, strict=True))


def with_wordings(
    cases: Sequence[Case], checks: Mapping[str, Check], gate: Gate, placebos: Any, *, n: int, seed: int
) -> tuple[list[Case], dict[str, Check]]:
    """Cases with ``n`` further wordings of both sides, and the checks of these."""
    tried: dict[str, Case] = {}
    for case in cases:
        if case.sampling == "iid" and not line_end(case):  # the names of a line are its wordings
            rng = Random(f"{seed}:{draws_of(case.id)}:wording")
            tried[case.id] = dataclasses.replace(case, variants=placebos.neutral(case, TRIED_WORDINGS * n, rng))
    fine = checked(gate, _bare(tried.values()))
    added: dict[str, Case] = {}
    for case in cases:
        if case.id in tried:
            neutral = [v.edits for v in tried[case.id].variants if fine[v.id].status != "invalid"]
            good = [v for v in case.variants if checks[v.id].status != "invalid"]
            new = worded(dataclasses.replace(case, variants=tuple(good)), n, neutral, placebos.primary)
            added[case.id] = dataclasses.replace(case, variants=new)
    wider = [
        dataclasses.replace(c, variants=(*c.variants, *added[c.id].variants)) if c.id in added else c for c in cases
    ]
    return wider, checked(gate, _bare(added.values()))


def _bare(cases: Iterable[Case]) -> list[Case]:
    """Cases as they are checked: a sentence before or after a text changes no other sentence."""
    return [dataclasses.replace(c, variants=tuple(unframed(v, c.original) for v in c.variants)) for c in cases]


# -- other processes, and actors of a Ray cluster -------------------------------------------------------------


class Feed(Iterator[SourceText]):
    """Texts for a suite, which may be filled again after they have run dry."""

    def __init__(self) -> None:
        self.waiting: deque[SourceText] = deque()

    def __next__(self) -> SourceText:
        if not self.waiting:
            raise StopIteration
        return self.waiting.popleft()


class Worker:
    """The stages before the model, for chunks of seeds; built once in each worker process."""

    def __init__(self, plan: Mapping[str, object]) -> None:
        from auditor import tasks
        from auditor.text.parse import without_torch

        self._plan = Plan.from_dict(plan)
        if not of_package(self._plan.gate):  # the process is this worker's
            without_torch()
        self._feed = Feed()
        self._stages = stages(self._plan, tasks.of_plan(self._plan), self._feed, {})
        self._rng = Random(self._plan.seed)

    def make(self, seeds: Sequence[SourceText]) -> Made:
        """Cases of ``seeds`` with placebos and checks."""
        suite, gate, _, placebos, _ = self._stages
        skipped, passed_over = Counter(suite.skipped), Counter(suite.passed_over)
        self._feed.waiting.extend(seeds)
        asked: list[Case] = []  # a text may make more than one
        while more := suite.ask(len(seeds), self._rng):
            asked += more
        cases, checks = gated(self._plan, asked, gate, placebos, suite)
        lines = [case_line(case, checks) for case in cases]
        return lines, suite.skipped - skipped, suite.passed_over - passed_over


_HERE: list[Worker] = []  # that of this process


def _make_here(seeds: Sequence[SourceText]) -> Made:
    return _HERE[0].make(seeds)


class Spread(Source):
    """Cases made by workers, chunk by chunk, in the order of the seeds."""

    def __init__(self, parts: Parts, submit: Submit, *, workers: int, close: Callable[[], None]) -> None:
        super().__init__(parts)
        self._submit, self._close = submit, close
        self._ahead = AHEAD * workers
        self._chunks = iter(range(0, len(parts.texts), CHUNK))
        self._flying: deque[Awaitable[Made]] = deque()
        self._ready: deque[bytes] = deque()

    async def next(self, rng: Random) -> Round:
        """A round's cases, from as many chunks as it takes; ``rng`` is not used."""
        size = self.size()
        while len(self._ready) < size:
            self._fill()
            if not self._flying:
                break
            made, skipped, passed_over = await self._flying.popleft()
            self._ready.extend(made)
            self._parts.suite.skipped.update(skipped)
            self._parts.suite.passed_over.update(passed_over)
        cases: list[Case] = []
        checks: dict[str, Check] = {}
        lines: dict[str, bytes] = {}
        for _ in range(min(size, len(self._ready))):
            line = self._ready.popleft()
            stored = decoded(line, CASE)
            cases.append(stored.case())
            checks.update(stored.checks())
            lines[stored.id] = line
        return Round(cases, checks, lines)

    def _fill(self) -> None:
        while len(self._flying) < self._ahead:
            start = next(self._chunks, None)
            if start is None:
                return
            seeds = self._parts.texts[start : start + CHUNK]
            self._flying.append(asyncio.ensure_future(self._submit(seeds)))

    def close(self) -> None:
        """Drop what is under way and let go of the workers."""
        for future in self._flying:
            if isinstance(future, asyncio.Future):
                future.cancel()
        self._flying.clear()
        self._close()


def _begin(plan: Mapping[str, object]) -> None:
    """Build the worker of this process, which ends when the one that started it has ended, however it did."""
    import multiprocessing
    import threading
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    _HERE.append(Worker(plan))


def processes(parts: Parts, jobs: int) -> Spread:
    """Cases made by ``jobs`` processes of this machine."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, spawn, initializer=_begin, initargs=(parts.plan.as_dict(),))

    async def submit(seeds: Sequence[SourceText]) -> Made:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, _make_here, seeds)
        except BrokenProcessPool:
            raise PluginError(
                "a worker process ended before it was done. It lacked memory, or the script that started the run lacks "
                '`if __name__ == "__main__":`, which processes need. Run with jobs=1 (--jobs 1)'
            ) from None

    return Spread(parts, submit, workers=jobs, close=lambda: pool.shutdown(wait=False, cancel_futures=True))


def actors(parts: Parts, jobs: int) -> Spread:
    """Cases made by ``jobs`` actors of a Ray cluster; one that was not there is started, and ends with the run."""
    try:
        import ray
    except ImportError as error:
        raise MissingDependency("--jobs ray", "ray", extra="ray") from error
    started = not ray.is_initialized()
    if started:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        address = _standing()
        local = {"num_cpus": jobs, "include_dashboard": False} if address is None else {}
        ray.init(address=address or "local", **local, **options)
    if (there := ray.cluster_resources().get("CPU", 0)) < jobs:
        raise ConfigError(f"--jobs ray:{jobs}: the Ray cluster has {there:g} CPUs. Give at most as many.")
    workers = [ray.remote(num_cpus=1)(Worker).remote(parts.plan.as_dict()) for _ in range(jobs)]
    turn = itertools.cycle(workers)

    async def submit(seeds: Sequence[SourceText]) -> Made:
        made: Made = await asyncio.wrap_future(next(turn).make.remote(list(seeds)).future())
        return made

    def close() -> None:
        for worker in workers:
            ray.kill(worker)
        if started:
            ray.shutdown()

    return Spread(parts, submit, workers=jobs, close=close)


def _standing() -> str | None:
    """Return the address of a running cluster; Ray's ``auto`` would also join that of another run."""
    if address := os.environ.get("RAY_ADDRESS"):
        return address
    kept = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"  # noqa: S108 - Ray's place
    return "auto" if kept.exists() else None
