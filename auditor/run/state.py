"""What a run knows while it goes on: its stages, its models, what was answered, and what it observed.

What it observed are the tables that its claims are computed from, filled while answers come, or from a folder.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import math
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Container, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from auditor.core import talk
from auditor.core.errors import BudgetExceeded, PromptTooLong
from auditor.core.plan import DEFAULT_REPLICATES, Plan
from auditor.core.protocols import Model, Observer
from auditor.core.record.base import PositiveControl
from auditor.core.types import (
    Answer,
    Case,
    Check,
    Progress,
    Prompt,
    Request,
    Response,
    Variant,
    Verdict,
    is_beside,
    is_wording,
    text_of,
)
from auditor.measure.answer_quality import Kind, alike, kind_of
from auditor.measure.claims import Question
from auditor.measure.comparison import Side
from auditor.measure.interactions import smaller
from auditor.measure.observations import Arm, Observations, Shape, place_of, shape_of
from auditor.measure.rates import VIOLATION
from auditor.measure.text_pairs import Measured, Metrics
from auditor.models.client import unanswered
from auditor.perturb.dictionaries import Dictionary
from auditor.run.preparation import Parts, formats_for, prompt_of
from auditor.store.folder import RunFolder
from auditor.store.journal import Index, pair_number, short
from auditor.tasks.task import Task

if TYPE_CHECKING:
    from auditor.models.client import Client, Known
    from auditor.models.pair_judge import PairJudge
    from auditor.models.talks import Talks

KEPT_HIDDEN = 1000  # hidden variants whose whole case stays in memory; more are never asked again
KEPT_VALUES = 1000  # different answers in one format that are counted one by one
KEPT_OUTPUTS = 10_000  # short outputs of models whose reading is remembered
SHORT = 200  # characters
WAITING = 256  # answers that may wait to be journaled, where asking again is cheap and gives the same
WAITING_S = 1.0  # how long they may wait: some models say that they are deterministic, and are slow
KEPT_SHAPES = 50_000  # combinations of edits whose shape is remembered
LOST = ("failed", "not_asked")  # no answer came
Answered = Mapping[str, Mapping[tuple[str, int], Response]]  # by model, sha256 of the prompt and replicate
NOTHING: Answered = MappingProxyType({})
K = TypeVar("K")
Answers = dict[str, dict[str, list[Answer]]]  # format -> variant id -> answers of its replicates
Prompts = dict[tuple[str, str], Prompt]  # by variant id, or style of a model, and format


def sizes(variants: Iterable[Variant], checks: Mapping[str, Check]) -> Counter[str]:
    """Count variants, placebos and further wordings, and those of each that are valid."""
    counts: Counter[str] = Counter()
    for variant in variants:
        valid = checks[variant.id].status != "invalid"
        if is_beside(variant):
            kind = "wordings" if is_wording(variant) else "placebos"
            counts[kind] += 1
            counts[f"{kind}_valid"] += valid
        else:
            counts["variants"] += 1
            counts["valid" if valid else "discarded"] += 1
    return counts


def silent(event: Progress) -> None:
    """Observe nothing."""


async def together(asked: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Ask several models at once."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        await asyncio.gather(*tasks)
    finally:  # the others journal what they were told before the folder closes
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class State:
    """What a run knows while it goes on: its stages, what was answered, and what the statistics need."""

    def __init__(
        self,
        parts: Parts,
        folder: RunFolder | None = None,
        *,
        observe: Observer = silent,
        answered: Answered = NOTHING,
        give_up: bool = True,
    ) -> None:
        self._give_up = give_up and bool(parts.task.labels)  # where most first answers cannot be read
        self.parts, self.plan, self.observe = parts, parts.plan, observe
        self.folder = RunFolder.in_memory() if folder is None else folder
        self.counts: Counter[str] = Counter()
        names = [model.name for model in parts.models]
        self.observed = Observed(names, parts.task.score_of, parts=self.plan.protocol == "hinter")
        self.status_reason = ""
        self.stopped_by = ""  # the limit of the plan that was reached
        self._text = ""  # of the last case
        self._read: dict[tuple[str, str, str], Answer] = {}
        self._answered = answered
        self.tallies = [self.tally(model) for model in parts.models]
        styles = {(t.model.style, name) for t in self.tallies for name in t.formats}
        self._styles = sorted(styles or {("chat", name) for name in formats_for(self.plan, parts.task, None)})
        if parts.cache is not None:
            parts.cache.tell(lambda said: observe(Progress(phase="cache", done=0, message=said)))
        for tally in self.tallies:
            tally.client = self._client(tally)
        self.judge: PairJudge | None = None  # of texts

    def stop(self, client: Client | Talks, *, what: str = "") -> None:
        """Take note that ``client`` makes no further call, where that is so."""
        if not client.stopped:
            return
        if isinstance(client.stopped, BudgetExceeded):
            self.stopped_by = self.stopped_by or client.stopped.limit
        self.status_reason = self.status_reason or what + self.why(client.stopped)
        if ids := [i for i in client.model.under_way if i not in self.status_reason]:
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
        formats = formats_for(plan, self.parts.task, model)
        return Tally(model=model, replicates=replicates, formats=formats, score_of=self.parts.task.score_of)

    def prompts(self, text: object) -> Prompts:
        """How the models of this run are asked about ``text``, by style and format."""
        return {(style, name): prompt_of(self.parts.task, text, style, name) for style, name in self._styles}

    def _client(self, tally: Tally) -> Client | Talks:
        from auditor.models.client import Client, RetryPolicy
        from auditor.models.talks import Talks

        model = tally.model
        answered: Known = self._answered.get(model.name, {})
        # What the folder finds on disk again, as it came, need not stay in memory.
        kept = None if self.plan.redact else self.folder.answers(model.name)
        live = kept is not None and (not answered or answered is kept)
        if kept is not None and live:
            answered = kept
        return (Talks if self.parts.task.turns else Client)(
            model,
            retry=None if model.patience_s is None else RetryPolicy(ceiling_s=model.patience_s),
            cache=self.parts.cache if model.cacheable else None,
            budget=self.parts.budget,
            concurrency=self.plan.concurrency,
            answered=answered,
            remember=not live,
            on_response=lambda response: self._journal(tally, response),
            keep=lambda text, format: self._reading(text, model.style, format).status == "ok",
            give_up=self._give_up,
        )

    def _journal(self, tally: Tally, response: Response) -> None:
        tally.known.add((response.prompt_sha256, response.replicate))
        tally.ahead.update(cached=response.cached, failed=response.error is not None)
        now = time.monotonic()
        if not tally.waiting:
            tally.waiting_since = now
        tally.waiting.append(self._redacted(tally, response) if self.plan.redact else response)
        if not tally.together or len(tally.waiting) >= WAITING or now - tally.waiting_since >= WAITING_S:
            self._flush(tally)
            self._progress(tally)

    def _flush(self, tally: Tally) -> None:
        if tally.waiting:
            self.folder.add_responses(tally.waiting)
            tally.waiting.clear()

    def _redacted(self, tally: Tally, response: Response) -> Response:
        from auditor.store import redact

        task, style = self.parts.task, tally.model.style

        def write(answer: Answer) -> str:
            if style == "text":
                return str(answer.value if answer.number is None else answer.number)
            assert answer.value is not None
            return str(task.write(answer.value, response.format, number=answer.number))

        return redact.response(response, lambda text: task.read(text, style, response.format), write)

    def _progress(self, tally: Tally) -> None:
        # What an earlier try of the run was answered is done before it comes up again.
        planned, done = None, max(len(tally.seen) + len(tally.known), len(self._answered.get(tally.model.name, ())))
        if self.parts.seeds and self.counts["cases"]:
            planned = round(tally.planned * max(1.0, self.parts.seeds / self.counts["taken"])) + tally.further
            if (left := self.parts.budget.open_calls) is not None:
                asking = max(1, sum(not t.client.stopped for t in self.tallies))
                planned = min(planned, done + math.ceil(left / self.parts.task.calls / asking))
        self.observe(
            Progress(
                phase="ask",
                model=tally.model.name,
                done=done,
                planned=planned if planned and planned >= done else None,
                cached=tally.counts["cached"] + tally.ahead["cached"],
                failed=tally.counts["failed"] + tally.ahead["failed"],
                cost_usd=self.parts.budget.spent_usd or None,
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
        counts.update(sizes(case.variants, checks))

    async def responses(self, tally: Tally, requests: Sequence[Request], *, further: bool = False) -> list[Response]:
        """Ask one model; answers are journaled first. ``further`` are prompts of controls, counted before."""
        if not further:
            asked = {pair_number((r.prompt.sha256, r.replicate)) for r in requests}
            tally.planned += sum(number not in tally.seen for number in asked)
        self._progress(tally)
        try:
            return await tally.client.ask(requests)
        finally:
            self._flush(tally)
            tally.ahead.clear()

    async def ask(
        self, tally: Tally, asked: Sequence[tuple[K, Request]], *, further: bool = False
    ) -> list[tuple[K, Answer]]:
        """Ask one model as `responses` does; each answer under the key of its request."""
        responses = await self.responses(tally, [request for _, request in asked], further=further)
        return [(key, self.answer(tally, came)) for (key, _), came in zip(asked, responses, strict=True)]

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
        if not journaled and answer.status == "failed" and pair_number(key) not in tally.seen:
            return Answer(status="not_asked", reason=answer.reason)
        if journaled and tally.seen.claim(pair_number(key)) is None:
            tally.known.discard(key)
            tally.count(response, answer)
        return answer

    def _reading(self, output: str, style: Literal["text", "chat"], format: str) -> Answer:
        """What the task reads in an output; that of short ones, which come again and again, is remembered."""
        answer = self._read.get((output, style, format))
        if answer is None:
            answer = self.parts.task.read(output, style, format)
            if len(output) <= SHORT and len(self._read) < KEPT_OUTPUTS:
                self._read[output, style, format] = answer
        return answer

    def question(self) -> Question:
        """What the claims of the run are about."""
        from auditor.measure.rates import label_counts

        seen = {
            tally.model.name: all(c.seen for c in tally.control.values()) if tally.control else None
            for tally in self.tallies
        }
        return question(self.parts.task, self.plan, self.parts.dictionaries, seen, label_counts(self.observed.table))


@dataclass(kw_only=True)
class Tally:
    """One model of a run: what asks it, and what its answers came to, while they stream by."""

    model: Model
    replicates: int
    formats: tuple[str, ...]
    score_of: str | None = None  # the label whose log odds are the score of an answer
    client: Client | Talks = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    judged: bool = False  # whether any variant could be
    # format -> answer that was read -> how often; None: all that came after `KEPT_VALUES`
    values: dict[str, Counter[Any]] = field(default_factory=lambda: defaultdict(Counter))
    unread: tuple[str, str] | None = None  # variant id and output of the first answer without a label
    unparsed: Counter[str] = field(default_factory=Counter)  # answers without a label, and how often each came
    cost_usd: float = 0.0
    reported: set[str] = field(default_factory=set)
    seen: Index = field(default_factory=Index)  # numbers of questions whose answers are counted
    # journaled and not counted yet; what was not asked is not among them
    known: set[tuple[str, int]] = field(default_factory=set)
    waiting: list[Response] = field(default_factory=list)  # to be journaled together
    waiting_since: float = 0.0
    ahead: Counter[str] = field(default_factory=Counter)  # of a round under way: answers that are not counted yet
    planned: int = 0  # prompts about the texts of the rounds until now
    further: int = 0  # prompts of the controls of the whole run
    hidden: list[tuple[Case, str, str]] = field(default_factory=list)  # case, variant id, format
    canary_prompts: dict[tuple[str, str], Prompt] = field(default_factory=dict)  # by case id and format
    canaries: dict[tuple[str, str], dict[str, list[object]]] = field(default_factory=dict)  # time -> answers, of each
    control: dict[str, PositiveControl] = field(default_factory=dict)  # by format, of the pairs alone
    # format -> what tells its answers from each other, of two of them at most
    kinds: dict[str, set[Kind]] = field(default_factory=lambda: defaultdict(set))

    def count(self, response: Response, answer: Answer) -> None:
        """Count an answer that was not counted yet."""
        counts = self.counts
        counts["cached" if response.cached else "asked"] += 1
        if answer.status != "ok":
            counts[answer.status] += 1
            counts["cut_off"] += response.cut_off
            counts["too_long"] += response.error == PromptTooLong.code
        kinds = self.kinds[response.format]
        if len(kinds) < 2 and (kind := kind_of(answer, self.score_of)) is not None:
            kinds.add(kind)
        if (value := answer.value) is not None:
            values = self.values[response.format]
            values[value if value in values or len(values) < KEPT_VALUES else None] += 1
        of_control = self.unread is not None and self.unread[0].startswith("control.")
        if (self.unread is None or of_control) and answer.status in ("refused", "unparsed"):
            self.unread = (response.variant_id, talk.brief(response.output or "")[:SHORT])
        if answer.status == "unparsed":
            said = talk.brief(response.output or "")[:SHORT]
            if said in self.unparsed or len(self.unparsed) < KEPT_VALUES:
                self.unparsed[said] += 1
        if response.usage is not None:
            counts["tokens_in"] += response.usage.tokens_in
            counts["tokens_out"] += response.usage.tokens_out
        self.cost_usd += response.cost_usd or 0.0
        if response.model_reported:
            self.reported.add(response.model_reported)

    def keep(self, case: Case, verdicts: Sequence[Verdict]) -> None:
        """Take note of what was judged; of hidden changes as much of the case as it takes to ask again."""
        self.judged = self.judged or any(v.outcome in ("pass", "violation") for v in verdicts)
        for v in verdicts:
            if v.hidden:
                kept = len(self.hidden) < KEPT_HIDDEN or case.sampling == "directed"
                whole = case if kept else dataclasses.replace(case, variants=())
                self.hidden.append((whole, v.variant_id, v.format))

    @property
    def judged_nothing(self) -> bool:
        """Whether no variant could be judged, since most answers were refused, filtered, unreadable or did not come."""
        if 2 * self.lost <= len(self.seen) or self.lost == self.counts["failed"]:
            return False
        return not self.judged

    @property
    def lost(self) -> int:
        """How many answers were refused, filtered, unreadable or did not come."""
        return sum(self.counts[status] for status in ("unparsed", "refused", "filtered", "failed"))

    @property
    def together(self) -> bool:
        """Whether answers may be journaled some at a time: one that a kill loses is asked again and is the same."""
        return self.model.deterministic and not self.model.cacheable

    @property
    def controls(self) -> dict[str, PositiveControl]:
        """What came of the positive control by format, and whether all answers until now are the same."""
        return {n: alike(c, self.kinds[n], self.values[n].total()) for n, c in sorted(self.control.items())}


# -- what it observed -----------------------------------------------------------------------------------------


class Observed:
    """Fills tables of observations from cases and the answers to them."""

    def __init__(self, models: Iterable[str] = (), score_of: str | None = None, *, parts: bool = False) -> None:
        self.table = Observations()  # drawn at random and valid: all rates and claims are of these
        self.directed = Observations()  # cases that earlier verdicts led to
        self.discarded = Observations()  # variants of drawn cases that the validity check refused
        for name in models:
            self.table.models.of(name)
        self._score_of, self._parts = score_of, parts
        self._rows: dict[str, tuple[Observations, int]] = {}  # of the versions of this round, by variant id
        self._shapes: dict[tuple[object, ...], Shape] = {}

    @cached_property
    def metrics(self) -> Metrics:
        """What answers that are texts came to, of the versions in ``table``."""
        return Metrics(self.table)

    def forget(self) -> None:
        """A round is over: no more answers to its versions come."""
        self._rows.clear()

    def add(self, case: Case, valid: Container[str]) -> None:
        """Add the versions of a case, those of its variants that are ``valid`` in their table."""
        table = self.directed if case.sampling == "directed" else self.table
        if case.label is not None:
            table.golds[table.texts.of(case.id)] = case.label
        if case.source is not None:
            table.sources[case.id] = case.source
        by_choices = {v.choices: v.id for v in case.variants} if self._parts else {}
        for variant in (case.original, *case.variants):
            shape = self.shape(variant)
            kept = variant is case.original or variant.id in valid
            if kept or table is self.table:
                place = table if kept else self.discarded
                groups = tuple(variant.groups.items())
                # The ids of the versions of one attribute that a joint one is put together from.
                alone = itertools.islice(smaller(variant), variant.order) if self._parts else ()
                parts = [by_choices[one] for one in alone if one in by_choices]
                at = place_of(variant.edits, case.original.input)
                row = place.shape(case.id, shape, variant.id, groups, parts, at)
                self._rows[variant.id] = place, row

    def take(self, answers: Mapping[str, Sequence[Answer]], *, model: str, format: str) -> None:
        """Add what one model answered to the variants of one case in one format."""
        for variant_id, own in answers.items():
            if variant_id in self._rows:
                table, row = self._rows[variant_id]
                table.answers(row, model=model, format=format, answers=own, score_of=self._score_of)

    def judge(self, verdict: Verdict) -> None:
        """Add what the oracle said."""
        if verdict.variant_id in self._rows:
            table, row = self._rows[verdict.variant_id]
            table.judge(row, verdict)

    def measure(self, measured: Mapping[str, Measured], *, model: str, format: str) -> None:
        """Add what the free answers of one model to the variants of one case came to."""
        for variant_id, metrics in measured.items():
            if (row := self._drawn(variant_id)) is not None:
                self.metrics.add(row, model, format, metrics)

    def prefer(self, variant_id: str, value: float, *, model: str, format: str) -> None:
        """Add what the judge of texts said."""
        if (row := self._drawn(variant_id)) is not None:
            self.metrics.prefer(row, model, format, value)

    def _drawn(self, variant_id: str) -> int | None:
        table, row = self._rows.get(variant_id, (None, 0))
        return row if table is self.table else None

    def verdicts(self, models: Iterable[str]) -> Iterator[Verdict]:
        """All verdicts of the run on valid variants, model by model; placebos after the others."""
        for model in models:
            for placebo in (False, True):
                for table in (self.table, self.directed):
                    judged = table.judged()
                    arm = np.array([s.arm == Arm.PLACEBO for s in table.shapes.values], dtype=bool)
                    here = judged.model == table.models.get(model)  # none where the model said nothing
                    yield from table.verdicts(np.flatnonzero(here & (arm[judged.shape] == placebo)).tolist())

    def changes(self) -> tuple[Counter[int], Counter[int]]:
        """Violations, and hidden ones among them, by order."""
        changes: tuple[Counter[int], Counter[int]] = Counter(), Counter()
        for table in (self.table, self.directed):
            judged = table.judged()
            order = np.array([len(s.attributes) if s.arm == Arm.EDITED else 0 for s in table.shapes.values])
            for counted, here in zip(changes, (judged.outcome == VIOLATION, judged.hidden == 1), strict=True):
                counted.update(order[judged.shape[here]].tolist())
        return changes

    def shape(self, variant: Variant) -> Shape:
        """What the edits of a variant come to; remembered for variants with the same edits elsewhere."""
        key = tuple((e.attribute, e.kind, e.source_group, e.target_group, e.source, e.target) for e in variant.edits)
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) >= KEPT_SHAPES:
                self._shapes.clear()
            shape = self._shapes[key] = shape_of(variant.edits)
        return shape


def question(
    task: Task,
    plan: Plan,
    dictionaries: Sequence[Dictionary],
    controls: Mapping[str, bool | None],
    counts: Mapping[str, int],
) -> Question:
    """What the claims of ``plan`` are about, where labels were given as often as ``counts`` says."""
    return Question(
        outcomes=task.outcomes(counts),
        number=task.kind.number,
        unit=task.unit,
        graded=frozenset(f for f in task.formats if task.graded(f)),
        primary={d.attribute: d.primary for d in dictionaries if d.primary is not None},
        references=plan.references,
        unmarked={d.attribute: [g.name for g in d.groups.values() if g.unmarked] for d in dictionaries},
        delta=(plan.tolerance or (None,))[0] if task.kind.number else plan.delta,
        positive_control=controls,
    )


def side(path: Path) -> Side:
    """What `auditor.measure.comparison` reads of a run: its record, and what was judged of which text."""
    folder, observed, keys = RunFolder.open(path), Observed(), array("Q")
    for case, checks in folder.cases():
        valid = {v.id for v in case.variants if (c := checks.get(v.id)) is None or c.status != "invalid"}
        observed.add(case, valid)
        if case.sampling != "directed":
            for v in (case.original, *(v for v in case.variants if v.id in valid)):
                text = v.input if isinstance(v.input, str) else json.dumps(dict(v.input), sort_keys=True)
                keys.append(short(f"{case.id}\0{text}"))
    for verdict in folder.verdicts():
        observed.judge(verdict)
    return Side(folder.run(), observed.table, np.array(keys, dtype=np.uint64))
