"""What a run knows while it goes on: its stages, its models, what was answered."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from auditor.core import talk
from auditor.core.errors import BudgetExceeded
from auditor.core.plan import DEFAULT_REPLICATES
from auditor.core.protocols import Model, Observer
from auditor.core.types import Answer, Case, Check, Progress, Prompt, Request, Response, text_of
from auditor.measure.claims import Question
from auditor.models.outcome import unanswered
from auditor.run.controls import control_seen
from auditor.run.figures import Figures
from auditor.run.observed import Observed, question, score_of
from auditor.run.parts import Parts, formats_for
from auditor.run.tally import WAITING, Tally
from auditor.run.verdict import Judge
from auditor.store.base import RunStore

KEPT_OUTPUTS = 10_000  # short outputs of models whose reading is remembered
SHORT = 200  # characters
BESIDE = ("placebo", "wording")  # kinds of variants that are counted apart
WAITING_S = 1.0  # how long answers may wait to be journaled: some models say that they are deterministic, and are slow


def silent(event: Progress) -> None:
    """Observe nothing."""


class State:
    """What a run knows while it goes on: its stages, what was answered, and what the statistics need."""

    def __init__(
        self,
        parts: Parts,
        folder: RunStore | None = None,
        *,
        observe: Observer = silent,
        answered: Mapping[str, Mapping[tuple[str, int], Response]] | None = None,
    ) -> None:
        self.parts, self.observe = parts, observe
        self.folder = RunStore() if folder is None else folder
        self.plan = parts.plan
        self.counts: Counter[str] = Counter()
        self.oracle = Judge(parts.oracle, parts.suite)
        self.observed = Observed(
            [model.name for model in parts.models], score_of(parts.task), parts=self.plan.protocol == "hinter"
        )
        self.figures = Figures(parts.suite)
        self.status_reason = ""
        self.stopped_by = ""  # the limit of the plan that was reached
        self.canary_prompts: dict[str, dict[tuple[str, str], Prompt]] = {}
        self._text = ""  # of the last case
        self._repeated: set[str] = set()  # cases that tell the noise, where not all do
        self._read: dict[tuple[str, str, str], Answer] = {}
        self._waiting_since: dict[str, float] = {}  # by model
        self.agreement: dict[str, list[int]] = {k: [0, 0] for k in ("originals", "valid", "discarded")}
        self._answered = answered or {}
        self.tallies = [self.tally(model) for model in parts.models]
        if parts.cache is not None:
            parts.cache.tell(lambda said: observe(Progress(phase="cache", done=0, message=said)))
        self.clients = [self._client(tally) for tally in self.tallies]
        for tally, client in zip(self.tallies, self.clients, strict=True):
            tally.first = client.first
        self.judge: Any | None = None  # of texts

    def stop(self, client: Any, *, what: str = "") -> None:
        """Take note that ``client`` makes no further call, where that is so."""
        if not client.stopped:
            return
        if isinstance(client.stopped, BudgetExceeded):
            self.stopped_by = self.stopped_by or client.stopped.limit
        self.status_reason = self.status_reason or what + self.why(client.stopped)
        ids = [i for i in client.model.under_way if i not in self.status_reason]
        if ids:
            self.status_reason += (
                f"; the provider still works on {', '.join(ids)}, and audit resume goes on waiting for "
                + ("it" if len(ids) == 1 else "them")
            )

    def why(self, error: Exception) -> str:
        """What ``error`` says; a server may quote a text."""
        from auditor.store import redact

        return redact.reason(error) if self.plan.redact else str(error)

    def tally(self, model: Model) -> Tally:
        """An empty tally for ``model``, with the replicates and formats that the plan gives it."""
        plan = self.plan
        replicates = plan.replicates
        if replicates is None or model.deterministic:
            replicates = 1 if model.deterministic or plan.protocol != "default" else DEFAULT_REPLICATES
        return Tally(model=model, replicates=replicates, formats=formats_for(plan, self.parts.task, model))

    def _client(self, tally: Tally) -> Any:
        from auditor.models.outcome import Known
        from auditor.models.retry import RetryPolicy
        from auditor.models.talks import client_of

        model = tally.model
        answered: Known = self._answered.get(model.name, {})
        # What the folder finds on disk again, as it came, need not stay in memory.
        kept = None if self.plan.redact else self.folder.answers(model.name)
        live = kept is not None and (not answered or answered is kept)
        if kept is not None and live:
            answered = kept
        patience = model.patience_s
        return client_of(self.parts.task)(
            model,
            retry=None if patience is None else RetryPolicy(ceiling_s=patience),
            cache=self.parts.cache if model.cacheable else None,
            budget=self.parts.budget,
            concurrency=self.plan.concurrency,
            answered=answered,
            remember=not live,
            on_response=lambda response: self._journal(tally, response),
            keep=lambda text, format: self._reading(text, model.style, format).status == "ok",
            give_up=bool(self.parts.task.labels),
        )

    def _journal(self, tally: Tally, response: Response) -> None:
        tally.known.add((response.prompt_sha256, response.replicate))
        tally.ahead.update(cached=response.cached, failed=response.error is not None)
        tally.ahead_usd += response.cost_usd or 0.0
        now = time.monotonic()
        if not tally.waiting:
            self._waiting_since[tally.model.name] = now
        tally.waiting.append(self._redacted(tally, response) if self.plan.redact else response)
        late = now - self._waiting_since[tally.model.name] >= WAITING_S
        if tally.together and len(tally.waiting) < WAITING and not late:
            return
        self._flush(tally)
        self._progress(tally)

    def _flush(self, tally: Tally) -> None:
        """Journal the answers that wait."""
        if tally.waiting:
            self.folder.add_responses(tally.waiting)
            tally.waiting.clear()

    def _redacted(self, tally: Tally, response: Response) -> Response:
        from auditor.store import redact

        task, style = self.parts.task, tally.model.style

        def write(told: Answer) -> str:
            if style == "text":
                return str(told.value if told.number is None else told.number)
            assert told.value is not None
            return str(task.write(told.value, response.format, number=told.number))

        return redact.response(response, lambda text: task.read(text, style, response.format), write)

    def _progress(self, tally: Tally, phase: str = "ask") -> None:
        planned, done = None, len(tally.seen) + len(tally.known)
        if self.parts.seeds and self.counts["cases"]:
            planned = max(tally.planned, round(tally.planned * self.parts.seeds / self.counts["taken"]))
        self.observe(
            Progress(
                phase=phase,
                model=tally.model.name,
                done=done,
                planned=planned if planned and planned >= done else None,
                cached=tally.counts["cached"] + tally.ahead["cached"],
                failed=tally.counts["failed"] + tally.ahead["failed"],
                cost_usd=tally.cost_usd + tally.ahead_usd or None,
            )
        )

    def asked(self, check: Check) -> bool:
        """Whether a model gets to see the variant: invalid ones only where the plan says so."""
        return check.status != "invalid" or self.plan.test_discarded

    def count(self, case: Case, checks: Mapping[str, Check]) -> None:
        """Count a case and its variants."""
        counts = self.counts
        counts["cases"] += 1
        text = text_of(case.id)
        counts["taken"] += text != self._text  # the cases of one text come one after the other
        self._text = text
        if self.plan.repeat and counts["taken"] <= self.plan.repeat:
            self._repeated.add(case.id)
        self._agree("originals", case.original.input)
        for variant in case.variants:
            valid = checks[variant.id].status != "invalid"
            kind = self.observed.shape(variant).kind
            if kind in BESIDE:
                counts[f"{kind}s"] += 1
                counts[f"{kind}s_valid"] += valid
                continue
            counts["variants"] += 1
            counts["valid" if valid else "discarded"] += 1
            self._agree("valid" if valid else "discarded", variant.input)

    def _agree(self, arm: str, text: object) -> None:
        if self.parts.agreement is None or not isinstance(text, str):
            return
        from auditor.perturb.gate.agreement import problems

        cell = self.agreement[arm]
        if cell[1] < 5000:  # a rate needs no more, and the check is not free
            cell[0] += bool(problems(text))
            cell[1] += 1

    async def responses(self, tally: Tally, client: Any, requests: Sequence[Request]) -> list[Response]:
        """Ask one model; all that it answered is in the journal before it is handed back."""
        tally.planned += tally.seen.missing((r.prompt.sha256, r.replicate) for r in requests)
        self._progress(tally)
        try:
            found: list[Response] = await client.ask(requests)
        finally:
            self._flush(tally)
            tally.ahead.clear()
            tally.ahead_usd = 0.0
        return found

    def answer(self, tally: Tally, response: Response) -> Answer:
        """Count a response (each distinct one once) and read it."""
        if response.error is not None:
            answer = unanswered(response.error)
        else:
            answer = self._reading(response.output or "", tally.model.style, response.format)
            if response.scores:
                answer = dataclasses.replace(answer, scores=response.scores)
        key = (response.prompt_sha256, response.replicate)
        journaled = key in tally.known or key in self._answered.get(tally.model.name, ())
        if not journaled and answer.status == "failed" and key not in tally.seen:
            return Answer(status="not_asked", reason=answer.reason)
        if journaled and tally.seen.add(key):
            tally.known.discard(key)
            counts = tally.counts
            counts["cached" if response.cached else "calls"] += 1
            if answer.status != "ok":
                counts[answer.status] += 1
                counts["cut_off"] += response.cut_off
            if answer.value is not None:
                tally.count(response.format, answer.value)
            if tally.unread is None and answer.status in ("refused", "unparsed"):
                tally.unread = (response.variant_id, talk.brief(response.output or "")[:SHORT])
            if response.usage is not None:
                counts["tokens_in"] += response.usage.tokens_in
                counts["tokens_out"] += response.usage.tokens_out
            tally.cost_usd += response.cost_usd or 0.0
            if response.model_reported:
                tally.reported.add(response.model_reported)
        return answer

    def _reading(self, output: str, style: Any, format: str) -> Answer:
        """What the task reads in an output; that of short ones, which come again and again, is remembered."""
        found = self._read.get((output, style, format))
        if found is None:
            found = self.parts.task.read(output, style, format)
            if len(output) <= SHORT and len(self._read) < KEPT_OUTPUTS:
                self._read[output, style, format] = found
        return found

    def question(self) -> Question:
        """What the claims of the run are about."""
        from auditor.measure.rates import label_counts

        seen = {t.model.name: control_seen(t) for t in self.tallies}
        given = label_counts(self.observed.table)
        return question(self.parts.task, self.plan, self.parts.dictionaries, seen, given)
