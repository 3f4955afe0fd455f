"""``audit doctor``: whether a model can be audited, by a few prompts of a task, asked as a run asks them."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import msgspec

from auditor import models, tasks
from auditor.core import talk
from auditor.core.errors import AuthFailed, CallTimeout, ServerFault, UserError
from auditor.core.plan import Plan
from auditor.core.protocols import Model
from auditor.core.record.base import PositiveControl
from auditor.core.shown import cut_off, plural
from auditor.core.types import Answer, Prompt, Request, Response, Usage
from auditor.measure.answer_quality import alike, kind_of
from auditor.models.client import Client
from auditor.models.limits import Budget, Price, estimated_tokens
from auditor.models.talks import Talks
from auditor.report import run_checks
from auditor.run import loop, preparation
from auditor.run.audit import run_sync
from auditor.run.preparation import prompt_of
from auditor.tasks.load import offered
from auditor.tasks.task import Task

MAX_CALLS = 10  # without those that are repeated
MAX_REPEATED = 24
REPEATS = 3
TEXTS = 3
PAIRS = 4  # of the positive control
OK, UNUSABLE, INCOMPLETE = 0, 2, 3  # exit codes of the command line
SUMMARIES = {
    OK: "The model can be audited.",
    INCOMPLETE: "The model answers, but not everything worked: see above.",
    UNUSABLE: "The model could not be asked: see above.",
}
PLAIN = "The plot is thin, but the actors carry it to the end."  # for tasks without texts of their own
OF_SERVER = (AuthFailed.code, ServerFault.code, CallTimeout.code)

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
    exit_code: int  # 0, 2 or 3
    summary: str


def examine(
    spec: str,
    *,
    task: str | Task = "sentiment",
    base_url: str | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    server: Mapping[str, object] | None = None,
) -> Examined:
    """Examine one model in at most `MAX_CALLS` calls, and what has to be repeated of them.

    The prompts are those of ``task``. ``server`` says how the server at ``base_url`` is asked
    (`auditor.core.plan.Plan.settings_for`); prices are US dollars per million tokens.

    >>> examine("vader").summary
    'The model can be audited.'
    """
    loaded = tasks.load(task) if isinstance(task, str) else task
    asked = MAX_CALLS * (loaded.calls + len(loaded.turns))
    budget = Budget(max_calls=asked + MAX_REPEATED, price_in=price_in, price_out=price_out)
    return run_sync(lambda: _examined(spec, loaded, budget, base_url, server))


async def _examined(
    spec: str, loaded: Task, budget: Budget, base_url: str | None, server: Mapping[str, object] | None
) -> Examined:
    seen = _Examination(spec, loaded)
    try:
        model = models.make(spec, base_url=base_url, task=loaded, server=server)
    except UserError as error:
        seen.note("model spec", "failed", str(error), "" if error.below else "audit list models")
        return seen.result(usable=False)
    seen.note("model spec", "ok", f"{model.name} ({'bare text' if model.style == 'text' else 'chat prompts'})")
    if model.proxy:
        said = f"asked through the proxy {model.proxy} of the environment; NO_PROXY leaves it out"
        seen.note("proxy", "note", said)
    prompts = _prompts(loaded, model.style)
    if not await seen.ask_all(model, budget, prompts):
        return seen.result(usable=False)
    seen.answers(model)
    seen.control(model)
    seen.repeats(model)
    seen.scores(model)
    if changed := model.changed:
        how = "; ".join(f"{name} is {what}" for name, what in changed.items())
        seen.note("parameters", "note", f"the server refused some: {how}. A run does the same.")
    seen.speed(model)
    seen.money(model, budget.price_of(model), prompts)
    return seen.result(usable=True)


def _prompts(task: Task, style: str) -> list[Prompt]:
    """Prompts for a few texts: the pairs of the positive control, or else the shortest of the task's own."""
    if task.controls:
        return [prompt_of(task, text, style) for pair in task.controls[:PAIRS] for text in pair]
    texts = [PLAIN] if task.seeds_path is None else [s.text for s in task.seeds()]
    return [prompt_of(task, text, style) for text in sorted(texts, key=lambda t: (len(t), t))[:TEXTS]]


class _Examination:
    """The checks of one model, in the order in which they are told."""

    def __init__(self, spec: str, task: Task) -> None:
        self.spec, self.task = spec, task
        self.checks: list[Check] = []
        self.responses: list[Response] = []
        self.calls = self.repeated = 0
        self.said: list[Answer | None] = []  # what the task reads in each response; None where no output came
        self.came = self.read = 0  # answers, and those that could be read
        self.judged: PositiveControl | None = None
        self.alike = False  # all answers are one

    def note(self, name: str, status: Status, text: str, next: str = "") -> None:
        self.checks.append(Check(name=name, status=status, text=text, next=next))

    def result(self, *, usable: bool) -> Examined:
        failed = any(r.error is not None for r in self.responses) or any(c.status == "failed" for c in self.checks)
        code = UNUSABLE if not usable else INCOMPLETE if failed or self.read != self.came else OK
        summary = SUMMARIES[code]
        if usable and self.read != self.came:
            summary = f"The model answers, but only {self.read} of {self.came} answers could be read: see above."
        elif usable and self.judged and not self.judged.seen:
            summary = "The model answers, but an audit would show little: its positive control was not seen."
        elif code == OK and self.alike:
            log_odds = "All labels of the model are the same: an audit has only their log odds."
            unknown = "The model answers, but all its answers are the same: they may never change."
            summary = log_odds if self.judged else unknown
        return Examined(
            model=self.spec,
            task=self.task.name,
            checks=tuple(self.checks),
            calls=self.calls,
            repeated=self.repeated,
            exit_code=code,
            summary=summary,
        )

    async def _ask(self, model: Model, budget: Budget, asked: Sequence[tuple[Prompt, int]]) -> list[Response]:
        client = (Talks if self.task.turns else Client)(model, cache=None, budget=budget, concurrency=1)
        requests = [Request(prompt=p, replicate=r, variant_id=f"doctor.{i}") for i, (p, r) in enumerate(asked)]
        responses = await client.ask(requests)
        self.calls += client.counts.calls
        self.repeated += client.counts.retries
        return responses

    async def ask_all(self, model: Model, budget: Budget, prompts: Sequence[Prompt]) -> bool:
        """Whether anything can be asked: what fails first is the key, the server or the model, and nothing else is."""
        try:
            (first,) = await self._ask(model, budget, [(prompts[0], 0)])
            if first.error is None:
                rest = [(prompts[0], n) for n in range(1, REPEATS)] + [(p, 0) for p in prompts[1:]]
                self.responses = [first, *await self._ask(model, budget, rest)]
        finally:
            await model.aclose()
        reported = sorted({r.model_reported for r in self.responses if r.model_reported})
        if first.error is not None:
            self.note("key and server" if first.error in OF_SERVER else "answer", "failed", first.detail)
            return False
        answered = sum(r.error is None for r in self.responses)
        lost = next((r for r in self.responses if r.error is not None), None)
        by = f" by {model.server}" if model.server else ""
        said = f"{answered} of {plural(len(self.responses), 'call')} answered{by}"
        if lost is not None:
            self.note("key and server", "failed", f"{said}; then: {lost.detail}")
        else:
            self.note("key and server", "ok", said)
        names = ", ".join(reported)
        named = f"reports itself as {names}" if names else "does not name itself"
        self.note("model", "ok" if names else "skipped", named)
        return True

    def answers(self, model: Model) -> None:
        """Whether the task can read what came back."""
        self.said = [
            None if r.output is None else replace(self.task.read(r.output, model.style), scores=r.scores)
            for r in self.responses
        ]
        read = [(r, a) for r, a in zip(self.responses, self.said, strict=True) if a is not None]
        came, ok = [r for r, _ in read], [a for _, a in read if a.status == "ok"]
        cut = sum(r.cut_off and a.status != "ok" for r, a in read)
        self.came, self.read = len(came), len(ok)
        named = (", ".join(a.value) if isinstance(a.value, tuple) else str(a.value)[:40] for a in ok)
        values = ", ".join(sorted({*named})) or "none"
        said = f"{len(ok)} of {plural(len(came), 'answer')} could be read ({values}){cut_off(cut)}"
        if ok:
            self.note("task prompt", "ok" if len(ok) == len(came) else "note", said)
            return
        shown = " ".join(talk.brief(came[0].output or "").split())[:120]
        advice = "Name the task it answers: --task NAME or FILE"
        if labels := offered(Counter(r.output or "" for r in came), ()):
            advice += f', or its labels, all of them: --labels "{",".join(labels)}"'
        if cut:
            advice = (
                f"Give it more room: --server max-tokens={max(2048, 4 * model.max_tokens(self.responses[0].format))}"
            )
        self.note("task prompt", "failed", f"{said}; the first: {shown!r}", advice)

    def control(self, model: Model) -> None:
        """Whether the answers differ where they must, judged as in a run."""
        task, label = self.task, self.task.score_of
        read = [a for a in self.said if a is not None]
        kinds = {kind for a in read if (kind := kind_of(a, label)) is not None}
        self.alike = len({(a.status, a.value) for a in read}) == 1 and self.read >= REPEATS
        if not task.controls:
            self.note("positive control", "skipped", "the task brings no pairs of control texts")
            return
        answers = [[] if a is None else [a] for a in (self.said[0], *self.said[REPEATS:])]
        pairs = list(zip(answers[::2], answers[1::2], strict=True))
        made = loop.judged(task, preparation.oracle_of(Plan(), task), self.responses[0].format, pairs)
        self.judged = made = alike(made, kinds, self.read)
        if made.seen:
            self.note("positive control", "ok", run_checks.pairs_said(made))
            return
        said = run_checks.hopeless("the model", made) if made.hopeless else f"not seen: {run_checks.pairs_said(made)}"
        self.note("positive control", "failed", said, loop.ways(task, model, [task.default_format]))

    def repeats(self, model: Model) -> None:
        """Whether one prompt got one answer."""
        outputs = [r.output for r in self.responses[:REPEATS] if r.output is not None]
        texts, labels = len(set(outputs)), len({a.value for a in self.said[:REPEATS] if a is not None})
        said = f"one prompt, {plural(len(outputs), 'time')}: "
        declared = "; the adapter declares the model deterministic" if model.deterministic else ""
        if len(outputs) < 2:
            self.note("repeats", "skipped", "fewer than two answers to one prompt")
        elif texts == 1:
            self.note("repeats", "ok", f"{said}one answer{declared}. That is not a proof.")
        else:
            different = f"{texts} different texts" if labels == 1 else f"{labels} different answers"
            self.note("repeats", "failed" if model.deterministic else "note", f"{said}{different}{declared}")

    def scores(self, model: Model) -> None:
        """Whether scores of labels can be had."""
        scored = [r.scores for r in self.responses if r.scores]
        if scored:
            shares = ", ".join(f"{label} {share:.3f}" for label, share in scored[0].items())
            bring = "every answer brings" if len(scored) == len(self.responses) else "some answers bring"
            self.note("label scores", "ok", f"{bring} them, such as {shares}")
            return
        why = "none: no log-probabilities came, or they do not distinguish the labels' first tokens"
        if "logprobs" in model.changed:
            why = "the server refuses log-probabilities"
        self.note("label scores", "note", f"{why}; an audit goes by labels alone")

    def speed(self, model: Model) -> None:
        """Latency, and what the server says about its limits."""
        times = [r.latency_s for r in self.responses if r.output is not None]
        median, headers = statistics.median(times), model.rate_headers
        self.note("latency", "ok", f"median {median:.2f} s, slowest {max(times):.2f} s")
        limits = ", ".join(f"{name} {value}" for name, value in sorted(headers.items()) if "reset" not in name)
        self.note("rate limits", "ok" if headers else "skipped", limits or "the server says none")

    def money(self, model: Model, price: Price | None, prompts: Sequence[Prompt]) -> None:
        """Tokens and dollars of a thousand such calls."""
        if model.costs != "tokens":
            self.note("price", "ok", "runs on this machine; nothing is charged")
            return
        usages = [r.usage for r in self.responses if r.usage is not None]
        tokens_in = statistics.fmean(u.tokens_in for u in usages) if usages else None
        if tokens_in is not None:
            out, source = round(statistics.fmean(u.tokens_out for u in usages)), "as the server counts"
        else:
            tokens_in = statistics.fmean(map(estimated_tokens, prompts))
            out, source = model.max_tokens(prompts[0].format), "estimated; the server reports none"
        usage = Usage(tokens_in=round(tokens_in), tokens_out=out)
        self.note("tokens", "ok", f"{usage.tokens_in} in and {usage.tokens_out} out for each call, {source}")
        if price is None:
            unknown = "not known; --max-cost cannot be used without it"
            self.note("price", "note", unknown, "Give it: --price IN,OUT")
            return
        cost = 1000 * price.usd(usage)
        dated = f" (list price of {price.as_of})" if price.as_of else ""
        self.note("price", "ok", f"about ${cost:.2f} for 1,000 such calls{dated}; plan an audit with --dry-run")
