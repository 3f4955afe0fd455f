"""``audit doctor``: whether a model can be audited, found out in a handful of calls.

Asked are prompts of a task, as an audit asks them, through the same client without its cache: one text three times
and two further texts once. What fails in passing is asked again as in a run.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from auditor.core import talk
from auditor.core.counting import cut_off, plural
from auditor.core.errors import AuthFailed, CallTimeout, ServerFault, UserError
from auditor.core.types import Prompt, Request, Response

if TYPE_CHECKING:
    from auditor.core.protocols import Model
    from auditor.models.budget import Budget, Price
    from auditor.tasks.task import Task

MAX_CALLS = 8  # without those that are repeated
MAX_REPEATED = 24
REPEATS = 3
TEXTS = 3
OK, UNUSABLE, INCOMPLETE = 0, 2, 3  # exit codes of the command line
PLAIN = "The plot is thin, but the actors carry it to the end."  # for tasks without texts of their own

Status = Literal["ok", "note", "failed", "skipped"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. ``next`` is what the user can do about it, or empty."""

    name: str
    status: Status
    text: str
    next: str = ""


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """What an examination found."""

    model: str
    task: str
    checks: tuple[Check, ...]
    calls: int
    repeated: int
    facts: Mapping[str, object]  # figures behind the texts
    exit_code: int  # 0, 2 or 3
    summary: str


class _Examination:
    """The checks of one model, in the order in which they are told."""

    def __init__(self, spec: str, task: Task) -> None:
        self.spec, self.task = spec, task
        self.checks: list[Check] = []
        self.responses: list[Response] = []
        self.calls = self.repeated = 0
        self.usable = True  # something could be asked
        self.facts: dict[str, object] = {}

    def note(self, name: str, status: Status, text: str, next: str = "") -> None:
        self.checks.append(Check(name=name, status=status, text=text, next=next))

    def result(self) -> Examined:
        failed = [r for r in self.responses if r.error is not None]
        unreadable = any(c.status == "failed" for c in self.checks)
        code = UNUSABLE if not self.usable else INCOMPLETE if failed or unreadable else OK
        summary = {
            OK: "The model can be audited.",
            INCOMPLETE: "The model answers, but not everything worked: see above.",
            UNUSABLE: "The model could not be asked: see above.",
        }[code]
        return Examined(
            model=self.spec,
            task=self.task.name,
            checks=tuple(self.checks),
            calls=self.calls,
            repeated=self.repeated,
            facts=self.facts,
            exit_code=code,
            summary=summary,
        )


def examine(
    spec: str,
    *,
    task: str = "sentiment",
    base_url: str | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    server: Mapping[str, object] | None = None,
) -> Examined:
    """Examine one model; the sync face of `aexamine`.

    Examples
    --------
    >>> examine("vader").summary
    'The model can be audited.'
    """
    made = aexamine(spec, task=task, base_url=base_url, price_in=price_in, price_out=price_out, server=server)
    return asyncio.run(made)


async def aexamine(
    spec: str,
    *,
    task: str = "sentiment",
    base_url: str | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    server: Mapping[str, object] | None = None,
) -> Examined:
    """Examine one model in at most `MAX_CALLS` calls, and what has to be repeated of them.

    Parameters
    ----------
    spec : str
        Model spec.
    task : str
        Name or file of the task whose prompts are asked.
    base_url : str or None
        The server.
    price_in, price_out : float or None
        US dollars per million tokens.
    server : mapping or None
        How the server is asked (`auditor.core.plan.Plan.server`).

    Raises
    ------
    UserError
        The task does not exist, or the prices make no sense. What is wrong with the model is a check that failed.
    """
    from auditor import models, tasks
    from auditor.models.budget import Budget

    loaded = tasks.load(task)
    asked = MAX_CALLS * (loaded.calls + len(loaded.turns))
    budget = Budget(max_calls=asked + MAX_REPEATED, price_in=price_in, price_out=price_out)
    found = _Examination(spec, loaded)
    try:
        model = models.make(spec, base_url=base_url, task=loaded, server=server)
    except UserError as error:
        found.note("model spec", "failed", str(error), "" if error.below else "audit models")
        found.usable = False
        return found.result()
    found.note("model spec", "ok", f"{model.name} ({'bare text' if model.style == 'text' else 'chat prompts'})")
    prompts = _prompts(loaded, model.style)
    if await _first(found, model, budget, prompts):
        _answers(found, model)
        _repeats(found, model)
        _scores(found, model)
        _parameters(found, model)
        _speed(found, model)
        _money(found, model, budget.price_of(model), prompts)
    return found.result()


def _prompts(task: Task, style: str) -> list[Prompt]:
    """Prompts for a few texts, the shortest of the task's own first."""
    texts = [PLAIN] if task.seeds_path is None else [s.text for s in task.seeds()]
    chosen = sorted(texts, key=lambda t: (len(t), t))[:TEXTS]
    return [task.bare(t) if style == "text" else task.render(t) for t in chosen]


async def _ask(
    found: _Examination, model: Model, budget: Budget, asked: Sequence[tuple[Prompt, int]]
) -> list[Response]:
    from auditor.models.talks import client_of

    client = client_of(found.task)(model, cache=None, budget=budget, concurrency=1)
    requests = [Request(prompt=p, replicate=r, variant_id=f"doctor.{i}") for i, (p, r) in enumerate(asked)]
    responses = await client.ask(requests)
    found.calls += client.counts.calls
    found.repeated += client.counts.retries
    return responses


async def _first(found: _Examination, model: Model, budget: Budget, prompts: Sequence[Prompt]) -> bool:
    """The first call alone: what fails here is the key, the server or the model, and nothing else is asked."""
    try:
        (first,) = await _ask(found, model, budget, [(prompts[0], 0)])
        if first.error is None:
            rest = [(prompts[0], n) for n in range(1, REPEATS)] + [(p, 0) for p in prompts[1:]]
            found.responses = [first, *await _ask(found, model, budget, rest)]
    finally:
        await model.aclose()
    reported = sorted({r.model_reported for r in found.responses if r.model_reported})
    found.facts["reported"] = reported
    if first.error is None:
        answered = sum(r.error is None for r in found.responses)
        lost = next((r for r in found.responses if r.error is not None), None)
        where = model.server
        told = f"{answered} of {plural(len(found.responses), 'call')} answered{f' by {where}' if where else ''}"
        if lost is not None:
            found.note("key and server", "failed", f"{told}; then: {lost.detail}")
        else:
            found.note("key and server", "ok", told)
        names = ", ".join(reported)
        found.note(
            "model", "ok" if names else "skipped", f"reports itself as {names}" if names else "does not name itself"
        )
        return True
    found.usable = False
    name = {
        AuthFailed.code: "key and server",
        ServerFault.code: "key and server",
        CallTimeout.code: "key and server",
    }.get(first.error, "answer")
    found.note(name, "failed", first.detail)
    return False


def _answers(found: _Examination, model: Model) -> None:
    """Whether the task can read what came back."""
    outputs = [r.output for r in found.responses if r.output is not None]
    read = [found.task.read(output, model.style) for output in outputs]
    ok = [a for a in read if a.status == "ok"]
    found.facts |= {"answers": len(outputs), "read": len(ok)}
    values = ", ".join(sorted({_value(a.value) for a in ok})) or "none"
    ends = [r.cut_off for r in found.responses if r.output is not None]
    cut = sum(end and a.status != "ok" for end, a in zip(ends, read, strict=True))
    found.facts["cut_off"] = cut
    told = f"{len(ok)} of {plural(len(outputs), 'answer')} could be read ({values}){cut_off(cut)}"
    if not ok:
        shown = " ".join(talk.brief(outputs[0]).split())[:120]
        advice = "Name the task it answers: --task NAME or FILE"
        if cut:
            limit = model.max_tokens(found.responses[0].format)
            advice = f"Give it more room: --max-tokens {max(2048, 4 * limit)}"
        found.note("task prompt", "failed", f"{told}; the first: {shown!r}", advice)
    else:
        found.note("task prompt", "ok" if len(ok) == len(outputs) else "note", told)


def _parameters(found: _Examination, model: Model) -> None:
    """What the server did not take, and how it is asked instead."""
    changed = model.changed
    found.facts["parameters_changed"] = dict(changed)
    if changed:
        told = "; ".join(f"{name} is {what}" for name, what in changed.items())
        found.note("parameters", "note", f"the server refused some: {told}. A run does the same.")


def _value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)[:40]


def _repeats(found: _Examination, model: Model) -> None:
    """Whether one prompt got one answer."""
    outputs = [r.output for r in found.responses[:REPEATS] if r.output is not None]
    labels = [found.task.read(output, model.style).value for output in outputs]
    found.facts |= {"repeats": len(outputs), "distinct_texts": len(set(outputs)), "distinct_answers": len(set(labels))}
    declared = "; the adapter declares that it always answers alike" if model.deterministic else ""
    if len(outputs) < 2:
        found.note("repeats", "skipped", "fewer than two answers to one prompt")
    elif len(set(outputs)) == 1:
        found.note(
            "repeats", "ok", f"one prompt, {plural(len(outputs), 'time')}: one answer{declared}. That is no proof."
        )
    else:
        what = "texts" if len(set(labels)) == 1 else "answers"
        different = len(set(outputs if what == "texts" else labels))
        told = f"one prompt, {plural(len(outputs), 'time')}: {different} different {what}"
        found.note("repeats", "failed" if model.deterministic else "note", f"{told}{declared}")


def _scores(found: _Examination, model: Model) -> None:
    """Whether scores of labels can be had."""
    name = "label scores"
    given = [r.scores for r in found.responses if r.scores]
    found.facts["label_scores"] = dict(given[0]) if given else None
    changed = model.changed
    if given:
        told = ", ".join(f"{label} {share:.3f}" for label, share in given[0].items())
        share = "every answer brings" if len(given) == len(found.responses) else "some answers bring"
        found.note(name, "ok", f"{share} them, such as {told}")
    elif "logprobs" in changed:
        found.note(name, "note", "the server refuses log-probabilities; an audit goes by labels alone")
    else:
        found.note(
            name,
            "note",
            "none: no log-probabilities came, or the labels' first tokens are not told apart by them; an audit goes by "
            "labels alone",
        )


def _speed(found: _Examination, model: Model) -> None:
    """Latency, and what the server says about its limits."""
    times = [r.latency_s for r in found.responses if r.output is not None]
    found.facts["latency_s"] = {"median": statistics.median(times), "max": max(times)}
    found.note("latency", "ok", f"median {statistics.median(times):.2f} s, slowest {max(times):.2f} s")
    headers = model.rate_headers
    found.facts["rate_headers"] = dict(headers)
    told = ", ".join(f"{name} {value}" for name, value in sorted(headers.items()) if "reset" not in name)
    found.note("rate limits", "ok" if headers else "skipped", told or "the server says none")


def _money(found: _Examination, model: Model, price: Price | None, prompts: Sequence[Prompt]) -> None:
    """Tokens and dollars of a thousand such calls."""
    from auditor.core.types import Usage
    from auditor.models.budget import TokenCounter

    if model.costs != "tokens":
        found.note("price", "ok", "runs on this machine; nothing is charged")
        return
    usages = [r.usage for r in found.responses if r.usage is not None]
    if usages:
        usage = Usage(
            tokens_in=round(statistics.fmean(u.tokens_in for u in usages)),
            tokens_out=round(statistics.fmean(u.tokens_out for u in usages)),
        )
        source = "as the server counts"
    else:
        limit = model.max_tokens(prompts[0].format)
        tokens = round(statistics.fmean(TokenCounter().estimate(p) for p in prompts))
        usage, source = Usage(tokens_in=tokens, tokens_out=limit), "estimated; the server reports none"
    found.facts["tokens_per_call"] = {"in": usage.tokens_in, "out": usage.tokens_out, "source": source}
    found.note("tokens", "ok", f"{usage.tokens_in} in and {usage.tokens_out} out for each call, {source}")
    if price is None:
        found.note(
            "price", "note", "not known; --max-cost cannot be used without it", "Give it: --price-in P --price-out P"
        )
        return
    cost = 1000 * price.usd(usage)
    found.facts["usd_per_1000_calls"] = round(cost, 6)
    dated = f" (list price of {price.as_of})" if price.as_of else ""
    found.note("price", "ok", f"about ${cost:.2f} for 1,000 such calls{dated}; plan an audit with --dry-run")
