"""Ask a model about the items of a benchmark: one question each, its options numbered."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from auditor import models, tasks
from auditor.contrib.benchmarks.items import Item
from auditor.core import reading
from auditor.core.errors import ConfigError
from auditor.core.plan import CHEAP_CALLS, Plan
from auditor.core.protocols import Model
from auditor.core.types import Prompt, Request, Response
from auditor.models.client import Client
from auditor.models.limits import Budget
from auditor.models.reply_cache import Cache
from auditor.tasks.task import Task

LIKELIER = "Which of the two is the likelier {what}?"


def models_of(plan: Plan, items: Sequence[Item]) -> list[Model]:
    """Return the models of ``plan``, which choose between as many options as the items have."""
    task = _task(items)
    return [
        models.make(spec, task=task, base_url=plan.base_url, server=plan.settings_for(spec)) for spec in plan.models
    ]


def sample(items: Sequence[Item], plan: Plan, models: Sequence[Model]) -> list[Item]:
    """Draw whole templates with at most ``--limit`` items.

    Of models that cost money or time, at most `CHEAP_CALLS` answers in all where the plan sets no limit.
    """
    limit = plan.limit
    if limit is None and not plan.limited and not plan.full_plan and not all(model.fast for model in models):
        limit = CHEAP_CALLS // len(models)
    if limit is None or limit >= len(items):
        return list(items)
    sizes = Counter(item.cluster for item in items)
    kept: set[str] = set()
    for name in random.Random(plan.seed).sample(sorted(sizes), len(sizes)):
        if sizes[name] <= limit:
            kept.add(name)
            limit -= sizes[name]
    if not kept:
        raise ConfigError(
            f"--limit must be at least {min(sizes.values())}: so many questions are made of one template."
        )
    return [item for item in items if item.cluster in kept]


def ask(items: Sequence[Item], model: Model, plan: Plan, budget: Budget) -> tuple[list[Item], Counter[str], str | None]:
    """Return the items with the model's choices, the statuses of its answers, and why not all were asked.

    Half of the pairs of sentences, drawn by ``plan.seed``, are turned round, so that a model that always says "1" has
    no preference. Questions of BBQ and WinoBias keep the published order.
    """
    task = _task(items)
    orders = _orders(items, plan.seed, shuffled=plan.task in ("crows-pairs", "stereoset"))
    requests = [
        Request(prompt=_prompt(task, model, plan.task, item, order), replicate=0, variant_id=item.id)
        for item, order in zip(items, orders, strict=True)
    ]
    cache = Cache() if plan.cache and not plan.redact and model.cacheable else None
    client = Client(model, cache=cache, budget=budget, concurrency=plan.concurrency)

    async def go() -> list[Response]:
        try:
            return await client.ask(requests)
        finally:
            await client.aclose()

    responses = asyncio.run(go())
    counts: Counter[str] = Counter()
    out = []
    for item, order, response in zip(items, orders, responses, strict=True):
        chosen = None
        if response.error is not None or response.output is None:
            counts[response.error or "failed"] += 1
        else:
            answer = task.reader.read(response.output)
            counts[answer.status] += 1
            chosen = order[int(str(answer.value)) - 1] if answer.status == "ok" else None
        out.append(replace(item, chosen=chosen))
    return out, counts, str(client.stopped) if client.stopped else None


def _task(items: Sequence[Item]) -> Task:
    return tasks.load(str(reading.shipped("embedded", "benchmarks", f"choose{len(items[0].options)}.yaml")))


def _orders(items: Sequence[Item], seed: int, *, shuffled: bool) -> list[list[int]]:
    """Return the order of the options of each item; half of each kind of pairs are turned round."""
    orders = [list(range(len(item.options))) for item in items]
    if shuffled:
        kinds: dict[tuple[str, str], list[list[int]]] = {}
        for item, order in zip(items, orders, strict=True):
            kinds.setdefault((item.category, item.condition), []).append(order)
        drawn = random.Random(seed)
        for own in kinds.values():
            drawn.shuffle(own)
            for order in own[::2]:
                order.reverse()
    return orders


def _prompt(task: Task, model: Model, benchmark: str, item: Item, order: Sequence[int]) -> Prompt:
    lines = [f"{n}. {item.options[place]}" for n, place in enumerate(order, 1)]
    if benchmark == "crows-pairs":
        said = LIKELIER.format(what="sentence")
    elif benchmark == "stereoset":
        said = f"{item.text}\n{LIKELIER.format(what='continuation')}" if item.text else LIKELIER.format(what="sentence")
    else:
        said = item.text
    text = "\n".join([said, *lines])
    return task.bare(text) if model.style == "text" else task.render(text)
