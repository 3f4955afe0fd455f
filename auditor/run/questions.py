"""Questions that control a run: canary prompts, asked again as time passes, and the positive control."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from auditor.core.types import Answer, Case, Prompt, Request
from auditor.run.controls import CANARIES, CANARY_FROM, CANARY_REPLICATES, control_pairs
from auditor.run.parts import StoredCases, formats_for
from auditor.run.tally import LOST, Tally

if TYPE_CHECKING:
    from auditor.run.state import State


async def canaries(loop: State, prompts: Mapping[tuple[str, str], Prompt], cases: Sequence[Case]) -> None:
    """Ask the first prompts again, in the middle of the run and at its end (no ``cases``)."""
    plan = loop.plan
    if loop.status_reason or plan.protocol != "default" or isinstance(loop.parts.suite, StoredCases):
        return
    if loop.parts.task.kind.text:
        return  # nobody expects a text to come again word for word
    if plan.batch:
        return  # each time would be a batch of its own, up to a day apart
    seeds = loop.parts.seeds
    middle = bool(seeds) and loop.counts["taken"] < (seeds or 0) <= 2 * loop.counts["taken"]
    for tally, client in zip(loop.tallies, loop.clients, strict=True):
        if tally.model.deterministic:
            continue
        if not loop.canary_prompts.get(tally.model.name):
            loop.canary_prompts[tally.model.name] = {
                (case.id, name): prompt
                for case in cases[:CANARIES]
                for name in tally.formats
                if (prompt := prompts.get((case.original.id, name))) is not None
            }
            for case_id, name in loop.canary_prompts[tally.model.name]:
                start = loop.observed.given(f"{case_id}.o", tally.model.name, name)
                tally.canaries[case_id, name] = {"start": start}
        time_ = "middle" if cases and middle else "" if cases else "end"
        if time_ and not any(time_ in times for times in tally.canaries.values()):
            await _ask_canaries(loop, tally, client, time_)


async def _ask_canaries(loop: State, tally: Tally, client: object, time_: str) -> None:
    keys, requests = [], []
    first = CANARY_FROM * (1 if time_ == "middle" else 2)
    for key, prompt in loop.canary_prompts[tally.model.name].items():
        for k in range(CANARY_REPLICATES):
            keys.append(key)
            requests.append(Request(prompt=prompt, replicate=first + k, variant_id=f"{key[0]}.o"))
    for key, response in zip(keys, await loop.responses(tally, client, requests), strict=True):
        answer = loop.answer(tally, response)
        if answer.status not in LOST:
            told = answer.value if answer.status == "ok" else answer.status
            tally.canaries[key].setdefault(time_, []).append(told)
    loop.stop(client)


async def positive_control(loop: State) -> None:
    """Ask pairs of texts that must get different answers."""
    pairs = control_pairs(loop.parts.task) if loop.plan.protocol == "default" else []
    if loop.status_reason or not pairs:
        return
    task = loop.parts.task
    styles = sorted({(t.model.style, f) for t in loop.tallies for f in t.formats})
    if not loop.tallies:
        styles = [("chat", f) for f in formats_for(loop.plan, task, None)]
    prompts: dict[tuple[str, str, str], Prompt] = {}
    for pair in pairs:
        for place, text in zip("ov", pair.texts, strict=True):
            for style, name in styles:
                variant_id = f"{pair.id}.{place}"
                prompt = task.bare(text) if style == "text" else task.render(text, name)
                prompts[variant_id, style, name] = prompt
                if loop.folder is not None:
                    loop.folder.add_prompt(variant_id, prompt)
    for tally, client in zip(loop.tallies, loop.clients, strict=True):
        # Each format is a way of asking on its own, and each must be able to show an effect.
        told = await _ask_pairs(loop, tally, client, [p.id for p in pairs], prompts)
        tally.control = {name: verdicts for name, verdicts in told.items() if verdicts}
        loop.stop(client)


async def _ask_pairs(
    loop: State, tally: Tally, client: object, pairs: Sequence[str], prompts: Mapping[tuple[str, str, str], Prompt]
) -> dict[str, list[bool]]:
    keys = [
        (name, f"{pair}.{place}", k)
        for name in tally.formats
        for pair in pairs
        for place in "ov"
        for k in range(tally.replicates)
    ]
    style = tally.model.style
    requests = [
        Request(prompt=prompts[variant_id, style, name], replicate=k, variant_id=variant_id)
        for name, variant_id, k in keys
    ]
    answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    told_by = await loop.responses(tally, client, requests)
    for (name, variant_id, _), response in zip(keys, told_by, strict=True):
        # A file of recorded answers need not hold them; that makes no run partial.
        if response.error is None:
            answers[name, variant_id].append(loop.answer(tally, response))
    told: dict[str, list[bool]] = {}
    for name in tally.formats:
        sides = [
            [loop.parts.oracle.answer(answers.get((name, f"{pair}.{place}"), ())) for place in "ov"]
            for pair in pairs
            if any((name, f"{pair}.{place}") in answers for place in "ov")
        ]
        differs = loop.parts.oracle.differs
        told[name] = [None not in pair and differs(*pair) for pair in sides]
    return told
