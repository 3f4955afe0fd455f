"""A language model or a server that decides on table rows: row → prompt → async client → label.

Tabular search is synchronous and asks for batches; the client is asynchronous. It lives in an event loop on a
thread of its own, and `RowClient.predict` hands it one batch at a time.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded, ConfigError, UserError
from auditor.core.protocols import Model, Observer
from auditor.core.types import Answer, Case, Progress, Prompt, Request, Response, Sampling, Variant, digest, id_of
from auditor.models.adapter import scalar
from auditor.models.attempts import Key, unanswered
from auditor.models.budget import BOOK, Budget
from auditor.models.client import Client, definitive
from auditor.models.reply_cache import Cache
from auditor.models.row_models import TableModel
from auditor.store.folder import RunFolder
from auditor.tasks import kinds
from auditor.tasks.answers import Style
from auditor.tasks.task import Task

BARE = "bare"  # the format name of an input that is sent as it is
STATUSES = ("ok", "unparsed", "refused", "filtered", "failed", "divided")
T = TypeVar("T")
Spell = Callable[[Sequence[str], Sequence[object]], str]  # columns and a row → the text that is sent


def row_text(columns: Sequence[str], row: Sequence[object]) -> str:
    """A row as text: one ``column: value`` line per column; underscores in names become spaces.

    Examples
    --------
    >>> print(row_text(["age", "marital_status", "share"], [31.0, "single", 0.5]))
    age: 31
    marital status: single
    share: 0.5
    """
    return "\n".join(f"{name.replace('_', ' ')}: {_plain(value)}" for name, value in zip(columns, row, strict=True))


def _plain(value: object) -> str:
    known = scalar(value)
    return "not given" if known is None else str(known)


def row_json(columns: Sequence[str], row: Sequence[object]) -> str:
    """A row as a JSON object; whole numbers without a decimal point, null where a value is missing.

    Examples
    --------
    >>> row_json(["age", "sex"], [31.0, "Female"])
    '{"age": 31, "sex": "Female"}'
    """
    values = {name: scalar(v) for name, v in zip(columns, row, strict=True)}
    return json.dumps(values, ensure_ascii=False)


class RowDecision:
    """What stands in for a task where the server itself decides: any label it returns is one."""

    name = "http"
    kind = kinds.of("decision")
    labels = ("any",)
    formats: tuple[str, ...] = ()
    default_format = "bare"
    sha256 = ""

    def bare(self, text: str) -> Prompt:
        """The row as it is sent."""
        return Prompt(format="bare", text=text)

    def render(self, text: str, format: str) -> Prompt:
        """As `bare`; there are no formats."""
        return self.bare(text)

    def read(self, output: str, style: Style = "chat", format: str | None = None) -> Answer:
        """The decision as the label."""
        if not output.strip():
            return Answer(status="unparsed", reason="an empty decision")
        return Answer(status="ok", value=output)


class RowClient:
    """Asks a model about rows through a task's prompts.

    Each row is journaled in ``folder`` as an input without edits, with its answers. The answers of a folder that goes
    on are not asked again; they are charged to ``budget`` at once, so that a resumed run keeps the limits of the whole
    run. ``per_case`` is how many rows one case needs: a limit that leaves fewer is reached. A row's label is the
    answer of more than half of its replicates. ``rows`` counts rows by what came of them (`STATUSES`; divided:
    replicates without a majority); all but ok are not judged. ``answers`` and ``asked`` hold every answer and every
    row, by prompt.

    Raises
    ------
    ConfigError
        The task has no single label, or no such format.
    """

    def __init__(
        self,
        model: Model,
        task: Task | RowDecision,
        columns: Sequence[str],
        *,
        budget: Budget,
        suite: str = "",
        sampling: Sampling = "iid",
        folder: RunFolder | None = None,
        per_case: int = 1,
        cache: Cache | None = None,
        format: str | None = None,
        replicates: int = 1,
        concurrency: int = 16,
        spell: Spell = row_text,
        observe: Observer | None = None,
    ) -> None:
        if not task.kind.one_label:
            raise ConfigError(
                f"task {task.name!r} is of kind {task.kind}; rows need a task with one label per answer, "
                f"such as lending or income"
            )
        if format is not None and format not in task.formats:
            raise ConfigError(f"task {task.name!r} has no prompt format {format!r}; formats: {', '.join(task.formats)}")
        self.model, self.task, self.columns = model, task, tuple(columns)
        self.budget, self.replicates, self.folder = budget, replicates, folder
        self.format = BARE if model.style == "text" else format or task.default_format
        self.rows: Counter[str] = Counter()
        self.reported: set[str] = set()
        self.asked: dict[str, Mapping[str, object]] = {}
        self._suite, self._sampling = suite, sampling
        self._per_case, self._spell, self._observe = per_case, spell, observe or (lambda event: None)
        known = [] if folder is None else [r for r in folder.responses() if definitive(r)]
        self.answers: dict[Key, Response] = {(r.prompt_sha256, r.replicate): r for r in known}
        self._known = {key for key, r in self.answers.items() if not r.cached}
        self._used = set[Key]()
        self._paid, self._lost = len(self._known), 0
        budget.charge(calls=self._paid, usd=sum(self.answers[key].cost_usd or 0.0 for key in self._known))
        # The limit that the run began with: `left` says what it said then, until that limit is reached, so that the
        # search takes the same way again.
        self._first: int | None = None
        if folder is not None:
            self._first = folder.plan.get("max_calls")
            budget.keep(folder.path / BOOK)
            self._lost = budget.calls - self._paid  # calls of an earlier process without an answer in the journal
        self.client = Client(
            model,
            cache=cache,
            budget=budget,
            concurrency=concurrency,
            answered=self.answers,
            on_response=self._heard,
            remember=False,
            keep=lambda text, format: self.read(text, format).status == "ok",
            give_up=bool(task.sha256),
        )
        self._cache = cache if model.cacheable else None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="row-client", daemon=True)
        self._thread.start()

    def journal(self, folder: RunFolder) -> None:
        """Keep rows, answers and what is spent in the folder of a new run."""
        self.folder = folder
        self.budget.keep(folder.path / BOOK)

    def _heard(self, response: Response) -> None:
        self.answers[response.prompt_sha256, response.replicate] = response
        if self.folder is not None:
            self.folder.add_response(response)
        counts = self.client.counts
        self._observe(
            Progress(
                phase="ask",
                model=self.model.name,
                done=counts.answered + counts.cached + counts.replayed + counts.failed,
                cached=counts.cached,
                failed=self.rows["failed"],
                cost_usd=self.budget.spent_usd or None,
            )
        )

    def used(self) -> dict[str, int]:
        """Return tokens and cached answers of the whole run, also where an earlier process began it."""
        paid = [answer.usage for answer in self.answers.values() if answer.usage is not None and not answer.cached]
        return {
            "cached": sum(answer.cached for answer in self.answers.values()),
            "tokens_in": sum(usage.tokens_in for usage in paid),
            "tokens_out": sum(usage.tokens_out for usage in paid),
        }

    def read(self, output: str, format: str) -> Answer:
        """What an answer says."""
        return self.task.read(output, self.model.style, format)

    def left(self) -> int | None:
        """How many further rows the limit on calls allows, not counting those that are known; None: no limit."""
        if self.budget.max_calls is None:
            return None
        spent = self.budget.calls - self._paid + len(self._used)
        if self._first is not None:
            lost = self._lost if len(self._used) < self._paid else 0  # unknown while the earlier way was taken
            before = (self._first - spent + lost) // self.replicates
            if before >= self._per_case:
                return before
        return max(0, self.budget.max_calls - spent) // self.replicates

    def predict(self, rows: NDArray[np.generic]) -> NDArray[np.generic]:
        """Labels of rows, shape (n,), dtype object; None where the model gave none.

        Raises
        ------
        BudgetExceeded, UserError
            Not all rows were answered: a limit, or the server was lost. It answered nothing at all.
        """
        cases, prompts = list[Case](), list[tuple[str, Prompt]]()
        for row in rows.tolist():
            text = self._spell(self.columns, row)
            prompt = self.task.bare(text) if self.format == BARE else self.task.render(text, self.format)
            case, values = id_of("r", text), {c: scalar(v) for c, v in zip(self.columns, row, strict=True)}
            original = Variant(id=f"{case}.o", input=values)
            cases.append(Case(id=case, suite=self._suite, original=original, variants=(), sampling=self._sampling))
            prompts.append((original.id, prompt))
            self.asked[prompt.sha256] = values
        if self.folder is not None:
            self.folder.add_cases((case, {}, None) for case in cases)
            self.folder.add_prompts(prompts)
        requests = [
            Request(prompt=prompt, replicate=k, variant_id=name)
            for name, prompt in prompts
            for k in range(self.replicates)
        ]
        self._used |= {(r.prompt.sha256, r.replicate) for r in requests} & self._known  # counted as used, once
        responses = self._do(self.client.ask(requests))
        stopped = self.client.stopped
        if stopped is not None and any(r.output is None for r in responses):
            counts = self.client.counts
            if not isinstance(stopped, BudgetExceeded) and not (counts.answered or counts.cached or counts.replayed):
                raise UserError(f"{self.model.name} answered nothing: {stopped}")
            raise BudgetExceeded(str(stopped))
        result = np.empty(len(rows), dtype=object)
        k = self.replicates
        result[:] = [self._label(responses[i : i + k]) for i in range(0, len(responses), k)]
        return result

    def statuses(self) -> dict[str, int]:
        """Rows by what came of them."""
        return {status: self.rows[status] for status in STATUSES}

    def close(self) -> None:
        """Release adapter, cache and thread; what is under way is cancelled. Closing twice does nothing."""
        if self._loop.is_closed():
            return
        try:
            self._do(self._end())
        finally:
            self.budget.close()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _end(self) -> None:
        me = asyncio.current_task()
        under_way = [task for task in asyncio.all_tasks() if task is not me]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self.client.aclose()
        if self._cache is not None:
            self._cache.close()

    def _do(self, coroutine: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _label(self, responses: Sequence[Response]) -> str | None:
        """The answer of more than half of the replicates; None, counted by its reason, without one."""
        votes, lost = Counter[str](), Counter[str]()
        for response in responses:
            if response.model_reported:
                self.reported.add(response.model_reported)
            if response.output is None:
                lost[unanswered(response.error or "").status] += 1
                continue
            answer = self.read(response.output, response.format)
            if answer.status == "ok" and isinstance(answer.value, str):
                votes[answer.value] += 1
            else:
                lost[answer.status if answer.status != "ok" else "unparsed"] += 1
        for label, n in votes.most_common(1):
            if 2 * n > len(responses):
                self.rows["ok"] += 1
                return label
        self.rows[lost.most_common(1)[0][0] if lost else "divided"] += 1
        return None


def predict_from_client(asked: RowClient) -> TableModel:
    """A language model behind a row-to-prompt task, or a server, as a model of rows.

    Rows that got no label (unparsed, refused, failed, no majority) come back as None. A server's labels that are
    all numbers come back as numbers.
    """
    fingerprint, predict = asked.model.fingerprint, lambda rows: _as_numbers(asked.predict(rows))
    if asked.task.sha256:
        fingerprint += f"; task {asked.task.name} {digest(asked.task.sha256, size=8)}"
        predict = asked.predict
    return TableModel(name=asked.model.name, predict=predict, fingerprint=fingerprint, slow=True, close=asked.close)


def _as_numbers(labels: NDArray[np.generic]) -> NDArray[np.generic]:
    for kind in (int, float):
        try:
            numbers = [None if label is None else kind(label) for label in labels.tolist()]
        except ValueError:
            continue
        return np.array(numbers, dtype=object if None in numbers else None)
    return labels
