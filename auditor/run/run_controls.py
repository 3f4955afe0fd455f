"""The controls of a run: what is asked for them, and what they showed.

A rate says little alone. Placebo edits show how often *any* edit of that form changes the answer; the positive
control shows that the model's answers can change at all; canaries show whether the model stayed the same.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence

from auditor.core.plan import Plan
from auditor.core.protocols import Model
from auditor.core.types import Answer, Case, Estimate, Prompt, Request
from auditor.run.preparation import CANARIES, CANARY_REPLICATES, Parts
from auditor.run.stages import StoredCases
from auditor.run.state import CONTROL_SEEN, LOST, State, Tally

CANARY_FROM = 10_000  # replicate numbers that nothing else uses
HINTER = "the protocol has none"
TIMES = ("start", "middle", "end")


def has_canaries(parts: Parts, model: Model) -> bool:
    """Whether the first prompts are asked again.

    A batch each time would be up to a day apart, and nobody expects a text to come again word for word.
    """
    plan: Plan = parts.plan
    return not (
        model.deterministic
        or plan.protocol != "default"
        or plan.batch
        or parts.task.kind.text
        or isinstance(parts.suite, StoredCases)
    )


async def canaries(loop: State, prompts: Mapping[tuple[str, str], Prompt], cases: Sequence[Case]) -> None:
    """Ask the first prompts again, in the middle of the run and at its end (no ``cases``)."""
    if loop.status_reason:
        return
    seeds = loop.parts.seeds or 0
    middle = loop.counts["taken"] < seeds <= 2 * loop.counts["taken"]
    for tally in loop.tallies:
        if not has_canaries(loop.parts, tally.model):
            continue
        if not tally.canary_prompts:
            tally.canary_prompts = {
                (case.id, name): prompt
                for case in cases[:CANARIES]
                for name in tally.formats
                if (prompt := prompts.get((case.original.id, name))) is not None
            }
            for case_id, name in tally.canary_prompts:
                start = loop.observed.values(f"{case_id}.o", tally.model.name, name)
                tally.canaries[case_id, name] = {"start": start}
        time_ = "middle" if cases and middle else "" if cases else "end"
        if time_ and not any(time_ in times for times in tally.canaries.values()):
            await _ask_canaries(loop, tally, time_)


async def _ask_canaries(loop: State, tally: Tally, time_: str) -> None:
    first = CANARY_FROM * TIMES.index(time_)
    asked = [
        (key, Request(prompt=prompt, replicate=first + k, variant_id=f"{key[0]}.o"))
        for key, prompt in tally.canary_prompts.items()
        for k in range(CANARY_REPLICATES)
    ]
    responses = await loop.responses(tally, [request for _, request in asked])
    for (key, _), response in zip(asked, responses, strict=True):
        answer = loop.answer(tally, response)
        if answer.status not in LOST:
            value = answer.value if answer.status == "ok" else answer.status
            tally.canaries[key].setdefault(time_, []).append(value)
    loop.stop(tally.client)


async def positive_control(loop: State) -> None:
    """Ask the task's pairs of texts that must get different answers.

    They differ in what the task is about (a review that praises and one that damns), so that a model which answers
    both alike cannot show an effect of anything. Each format is a way of asking on its own, and each must be able to
    show one.
    """
    pairs = loop.parts.task.controls if loop.plan.protocol == "default" else ()
    if loop.status_reason:
        return
    prompts: dict[str, dict[tuple[str, str], Prompt]] = {}
    for n, texts in enumerate(pairs):
        for place, text in zip("ov", texts, strict=True):
            prompts[f"control.{n}.{place}"] = loop.prompts(text)
    loop.folder.add_prompts((name, prompt) for name, own in prompts.items() for prompt in own.values())
    for tally in loop.tallies if prompts else ():
        await _ask_pairs(loop, tally, prompts)
        loop.stop(tally.client)


async def _ask_pairs(loop: State, tally: Tally, prompts: Mapping[str, Mapping[tuple[str, str], Prompt]]) -> None:
    keys = [(name, text) for name in tally.formats for text in prompts for _ in range(tally.replicates)]
    requests = [
        Request(prompt=own[tally.model.style, name], replicate=k, variant_id=text)
        for name in tally.formats
        for text, own in prompts.items()
        for k in range(tally.replicates)
    ]
    answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for key, response in zip(keys, await loop.responses(tally, requests), strict=True):
        # A file of recorded answers need not hold them; that makes no run partial.
        if response.error is None:
            answers[key].append(loop.answer(tally, response))
    oracle, texts = loop.parts.oracle, list(prompts)
    for name in tally.formats:
        asked = [pair for pair in zip(texts[::2], texts[1::2], strict=True) if any((name, t) in answers for t in pair)]
        sides = [[oracle.answer(answers.get((name, text), ())) for text in pair] for pair in asked]
        if sides:
            tally.control[name] = [None not in pair and oracle.differs(*pair) for pair in sides]


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
    validity: dict[str, object] = {
        arm: {"rate": bad / n, "n": n} if n else none(f"no {arm}") for arm, (bad, n) in loop.agreement.items()
    }
    if isinstance(loop.parts.suite, StoredCases):
        validity = none("the cases came from a file")
    placebos = "no placebo variant was asked" if loop.counts["placebos"] else "the cases have no placebo variants"
    joint = "no joint placebo variant was judged"
    return {
        "noise_floor": _plain(noise),
        "validity": validity,
        "placebo": _plain(rates.placebo_controls(table)) or none(HINTER if hinter else placebos),
        "placebo_hidden": _plain(rates.placebo_controls(table, rates.looks_hidden))
        or none(HINTER if hinter else joint),
        "positive_control": _positive(loop, hinter=hinter),
        "canary": none(HINTER) if hinter else {t.model.name: _canary(loop, t) for t in loop.tallies},
        "answers_by_group": rates.answers_by_group(table),
    }


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    """Estimates, at any depth, as plain data; what has none is left out."""
    out = {
        name: dataclasses.asdict(value)
        if isinstance(value, Estimate)
        else _plain(value)
        if isinstance(value, Mapping)
        else value
        for name, value in values.items()
    }
    return {name: value for name, value in out.items() if value != {}}


def none(reason: str) -> dict[str, object]:
    """What stands for a control that was not run."""
    return {"status": "not_tested", "reason": reason}


def _positive(loop: State, *, hinter: bool) -> dict[str, object]:
    """On what share of the control pairs the answers differed, by model and format."""
    from auditor.measure.intervals import clopper_pearson

    out: dict[str, object] = {}
    missed = f"not seen: fewer than {100 * CONTROL_SEEN:.0f} % of the pairs"
    for tally in loop.tallies:
        for name, (seen, hits, of) in tally.control_seen.items():
            rate = dataclasses.replace(clopper_pearson(hits, of), note="seen" if seen else missed)
            key = tally.model.name if len(tally.control) == 1 else f"{tally.model.name}, {name}"
            out[key] = dataclasses.asdict(rate) | {"seen": seen}
    why = loop.status_reason or "the task brings no control texts, or their answers were not recorded"
    return out or none(HINTER if hinter else why)


def _canary(loop: State, tally: Tally) -> dict[str, object]:
    """Whether the first prompts were answered alike at the start, in the middle and at the end."""
    import numpy as np

    from auditor.measure.drift import shift

    if tally.model.deterministic:
        return none("the model is declared deterministic")
    asked = [[times.get(t, ()) for t in TIMES] for times in tally.canaries.values()]
    moved = shift(asked, rng=np.random.default_rng([loop.plan.seed, 4]))
    return none("no prompt was asked again at the end") if moved is None else dataclasses.asdict(moved)
