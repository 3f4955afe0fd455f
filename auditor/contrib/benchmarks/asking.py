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
from auditor.core.plan import Plan
from auditor.core.protocols import Model
from auditor.core.types import Prompt, Request, Response
from auditor.models.budget import Budget
from auditor.models.client import Client
from auditor.models.reply_cache import Cache
from auditor.tasks.task import Task

LIKELIER = "Which of the two is the likelier {what}?"


def sample(items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    """Draw whole templates until they hold ``limit`` items or more; all items where there is no limit."""
    if limit is None or limit >= len(items):
        return list(items)
    clusters = sorted({item.cluster for item in items})
    random.Random(seed).shuffle(clusters)
    kept: list[Item] = []
    for name in clusters:
        if len(kept) >= limit:
            break
        kept += [item for item in items if item.cluster == name]
    return kept


def ask(items: Sequence[Item], spec: str, plan: Plan) -> tuple[list[Item], Counter[str], str | None]:
    """Ask ``spec`` about every item of the benchmark that ``plan.task`` names.

    Half of the pairs of sentences, drawn by ``plan.seed``, are turned round, so that a model that always says "1" has
    no preference. Questions of BBQ and WinoBias keep the published order.

    Returns
    -------
    items : list of Item
        With what the model chose; None where no answer came, or none that could be read.
    counts : Counter
        Statuses of the answers (``ok``, ``refused``, ``unparsed``, ``failed``, …).
    reason : str or None
        Why not all were asked.
    """
    benchmark = plan.task
    task = tasks.load(str(reading.shipped("embedded", "benchmarks", f"choose{len(items[0].options)}.yaml")))
    model = models.make(spec, task=task, base_url=plan.base_url, server=plan.settings_for(spec))
    orders = _orders(items, plan.seed, shuffled=benchmark in ("crows-pairs", "stereoset"))
    requests = [
        Request(prompt=_prompt(task, model, benchmark, item, order), replicate=0, variant_id=item.id)
        for item, order in zip(items, orders, strict=True)
    ]
    cache = Cache() if plan.cache and not plan.redact and model.cacheable else None
    client = Client(model, cache=cache, budget=Budget(**plan.limits), concurrency=plan.concurrency)

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
