"""The controls of a run: placebo edits, a positive control, canaries; what is asked for them, and what they showed."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence

from auditor.core.errors import BudgetExceeded
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Oracle
from auditor.core.record.base import PositiveControl
from auditor.core.types import Answer, Case, Estimate, Prompt, Request, Variant, is_beside
from auditor.measure.answer_quality import Pair, control
from auditor.report import run_checks
from auditor.run.observed import score_of
from auditor.run.preparation import CANARIES, CANARY_REPLICATES, Parts
from auditor.run.rounds import ROUND
from auditor.run.stages import StoredCases
from auditor.run.state import LOST, Answers, State, Tally, together
from auditor.tasks.task import Task

MOST_CALLS = 60  # of a model that cannot be judged, until the run stops
FIRST_TEXTS = 20  # that are asked where the control was not seen, before the run goes on
CONTROL = "control"  # what stopped such a run
CANARY_FROM = 10_000  # replicate numbers that nothing else uses
HINTER = "the protocol has none"
TIMES = ("start", "middle", "end")


def has_canaries(parts: Parts, model: Model) -> bool:
    """Whether the first prompts are asked again."""
    # Batches would be up to a day apart, and nobody expects a text to come again word for word.
    plan: Plan = parts.plan
    return not (
        model.deterministic
        or plan.protocol != "default"
        or plan.batch
        or parts.task.kind.text
        or isinstance(parts.suite, StoredCases)
    )


def begin_canaries(
    loop: State, tally: Tally, cases: Sequence[Case], prompts: Mapping[tuple[str, str], Prompt], answers: Answers
) -> None:
    """Take note of the first prompts that one model got, and of its answers."""
    if tally.canaries or not has_canaries(loop.parts, tally.model):
        return
    for case, name in itertools.product(cases[:CANARIES], tally.formats):
        if (prompt := prompts.get((case.original.id, name))) is not None:
            start: list[object] = [a.value for a in answers[name].get(case.original.id, ()) if a.status == "ok"]
            tally.canary_prompts[case.id, name], tally.canaries[case.id, name] = prompt, {"start": start}


async def canaries(loop: State, *, end: bool) -> None:
    """Ask the first prompts again, in the middle of the run and at its end."""
    middle = loop.counts["taken"] < (loop.parts.seeds or 0) <= 2 * loop.counts["taken"]
    time_ = "end" if end else "middle" if middle else ""
    for tally in loop.tallies if time_ and not loop.status_reason else ():
        if tally.canaries and not any(time_ in times for times in tally.canaries.values()):
            await _ask_canaries(loop, tally, time_)


async def _ask_canaries(loop: State, tally: Tally, time_: str) -> None:
    first = CANARY_FROM * TIMES.index(time_)
    asked = [
        (key, Request(prompt=prompt, replicate=first + k, variant_id=f"{key[0]}.o"))
        for key, prompt in tally.canary_prompts.items()
        for k in range(CANARY_REPLICATES)
    ]
    for key, answer in await loop.ask(tally, asked, further=True):
        if answer.status not in LOST:
            value = answer.value if answer.status == "ok" else answer.status
            tally.canaries[key].setdefault(time_, []).append(value)
    loop.stop(tally.client)


def asked_further(parts: Parts, tally: Tally) -> int:
    """How many prompts of controls one model gets in the whole run."""
    pairs = parts.task.controls if parts.plan.protocol == "default" else ()
    again = CANARIES * CANARY_REPLICATES * (1 + ((parts.seeds or 0) > ROUND)) * has_canaries(parts, tally.model)
    return len(tally.formats) * (2 * len(pairs) * tally.replicates + again)


async def first_look(loop: State) -> bool:
    """Ask the positive control before anything else; gives whether a model may be such that nothing can be learned."""
    for tally in loop.tallies:
        tally.further = asked_further(loop.parts, tally)
    await positive_control(loop, first=True)
    doubted = bool(doubtful(loop))
    if loop.plan.until_decided and not doubted:  # nothing is bounded before the whole control was seen
        await positive_control(loop)
    return doubted


async def positive_control(loop: State, *, first: bool = False) -> None:
    """Ask the task's pairs of texts that must get different answers; with ``first`` a few of them once."""
    pairs = loop.parts.task.controls if loop.plan.protocol == "default" else ()
    if loop.status_reason or not pairs:
        return
    prompts: dict[str, dict[tuple[str, str], Prompt]] = {}
    for n, texts in enumerate(pairs):
        for place, text in zip("ov", texts, strict=True):
            prompts[f"control.{n}.{place}"] = loop.prompts(text)
    loop.folder.add_prompts((name, prompt) for name, own in prompts.items() for prompt in own.values())
    brief = first and not loop.plan.batch

    async def ask(tally: Tally) -> None:
        few = max(2, MOST_CALLS // (4 * loop.parts.task.calls * len(tally.formats))) if brief else len(pairs)
        asked = dict(list(prompts.items())[: 2 * few])
        await _ask_pairs(loop, tally, asked, 1 if brief else tally.replicates)
        loop.stop(tally.client)

    await together(map(ask, loop.tallies))


async def _ask_pairs(
    loop: State, tally: Tally, prompts: Mapping[str, Mapping[tuple[str, str], Prompt]], times: int
) -> None:
    asked = [
        ((name, text), Request(prompt=own[tally.model.style, name], replicate=k, variant_id=text))
        for name in tally.formats
        for text, own in prompts.items()
        for k in range(times)
    ]
    answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    responses = await loop.responses(tally, [request for _, request in asked], further=True)
    for (key, _), response in zip(asked, responses, strict=True):
        # A file of recorded answers need not hold them; that makes no run partial.
        if response.error is None:
            answers[key].append(loop.answer(tally, response))
    texts = list(prompts)
    for name in tally.formats:
        both = [(answers[name, one], answers[name, other]) for one, other in zip(texts[::2], texts[1::2], strict=True)]
        if pairs := [pair for pair in both if any(pair)]:
            tally.control[name] = judged(loop.parts.task, loop.parts.oracle, name, pairs)


def judged(task: Task, oracle: Oracle, format: str, pairs: Sequence[Pair]) -> PositiveControl:
    """What the answers to pairs of control texts show, on the scale of the claims."""
    sides = [(oracle.answer(one), oracle.answer(other)) for one, other in pairs]
    differ = [None not in pair and oracle.differs(*pair) for pair in sides]
    label = score_of(task)
    number = task.kind.number or task.graded(format)
    return control(pairs, differ, scale="number" if number else "log_odds" if label else "share", score_of=label)


def doubtful(loop: State) -> list[Tally]:
    """Models whose control was asked and not seen in any format, and of which asking on costs anything."""
    if loop.plan.anyway or isinstance(loop.parts.suite, StoredCases):
        return []
    asked = [t for t in loop.tallies if t.control and not t.model.recorded]
    return [t for t in asked if not any(one.seen for one in t.control.values())]


async def look_further(
    loop: State, versions: Sequence[Sequence[Variant]], prompts: Mapping[tuple[str, str], Prompt]
) -> None:
    """Ask doubtful models about the first texts, and stop the run where a model answers everything alike."""

    async def ask(tally: Tally) -> None:
        left = (MOST_CALLS // loop.parts.task.calls - len(tally.seen)) // len(tally.formats)
        requests = []
        for n, (original, *others) in enumerate([*filter(None, versions)][: max(1, left // 2)]):
            # A model that minds only other people goes on.
            changed = [v for v in others if v.order and not is_beside(v)] or others
            for variant in (original, *changed[n % len(changed) :][:1]) if changed else (original,):
                own = (prompts.get((variant.id, name)) for name in tally.formats)
                requests += [Request(prompt=p, replicate=0, variant_id=variant.id) for p in own if p is not None]
        for response in await loop.responses(tally, requests):
            loop.answer(tally, response)
        loop.stop(tally.client)
        controls = tally.controls
        if not loop.status_reason and controls and all(one.hopeless for one in controls.values()):
            (worst, *_) = controls.values()
            further = ways(loop.parts.task, tally.model, tally.formats)
            said = f"{run_checks.hopeless(tally.model.name, worst)} {further}"
            for one in loop.tallies:
                if not one.model.recorded:
                    one.client.stop(BudgetExceeded(said, limit=CONTROL))
            loop.stop(tally.client)

    await together(map(ask, doubtful(loop)))


def ways(task: Task, model: Model, asked: Sequence[str]) -> str:
    """What to try where a model reacts to nothing in the formats that were asked; a classifier has no formats."""
    other = [] if model.style == "text" else [name for name in task.formats if name not in asked]
    return run_checks.to_try(other, [name for name in task.formats if task.graded(name)])


def noise(loop: State, tally: Tally) -> Estimate | dict[str, object]:
    """The same-prompt noise of one model: an estimate, a declaration, or why there is none."""
    from auditor.measure.rates import noise_floor

    if tally.model.deterministic:
        return {"declared": True}
    if loop.plan.oracle == "probability":
        return none("scores are compared, and the noise of labels says nothing about them")
    if loop.parts.task.kind.by_degrees:
        return none("see the table of differences")
    if tally.replicates == 1:
        return none("no prompt was asked twice")
    estimate = noise_floor(loop.observed.table, tally.model.name)
    return estimate or none("no prompt has two answers that could be read")


def of_run(loop: State, noise: Mapping[str, Estimate | dict[str, object]]) -> dict[str, object]:
    """All controls of a run by name; one that was not run says why."""
    from auditor.measure import rates

    table, hinter = loop.observed.table, loop.plan.protocol != "default"
    seen: dict[str, object] = {}
    for tally in loop.tallies:
        for name, made in tally.controls.items():
            seen[tally.model.name if len(tally.control) == 1 else f"{tally.model.name}, {name}"] = made
    unseen = loop.status_reason or "the task brings no control texts, or their answers were not recorded"
    placebos = "no placebo variant was asked" if loop.counts["placebos"] else "the cases have no placebo variants"
    joint = "no joint placebo variant was judged"
    return {
        "noise_floor": noise,
        "placebo": rates.placebo_controls(table) or none(HINTER if hinter else placebos),
        "placebo_hidden": rates.placebo_controls(table, rates.looks_hidden) or none(HINTER if hinter else joint),
        "positive_control": seen or none(HINTER if hinter else unseen),
        "canary": none(HINTER) if hinter else {t.model.name: _canary(loop, t) for t in loop.tallies},
        "answers_by_group": rates.answers_by_group(table),
    }


def none(reason: str) -> dict[str, object]:
    """What stands for a control that was not run."""
    return {"status": "not_tested", "reason": reason}


def _canary(loop: State, tally: Tally) -> object:
    """Whether the first prompts were answered alike at the start, in the middle and at the end."""
    import numpy as np

    from auditor.measure.drift import shift

    if tally.model.deterministic:
        return none("the model is declared deterministic")
    asked = [[times.get(t, ()) for t in TIMES] for times in tally.canaries.values()]
    moved = shift(asked, rng=np.random.default_rng([loop.plan.seed, 4]))
    return none("no prompt was asked again at the end") if moved is None else moved
