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
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded, ConfigError, UserError
from auditor.core.protocols import Model
from auditor.core.types import Answer, Prompt, Request, Response, Variant, digest, id_of
from auditor.models.budget import Budget
from auditor.models.cache import Cache
from auditor.models.client import Client
from auditor.models.outcome import Key, unanswered
from auditor.models.scalar import scalar
from auditor.models.tables import TableModel
from auditor.tasks import kinds
from auditor.tasks.answers import Style
from auditor.tasks.task import Task

BARE = "bare"  # the format name of an input that is sent as it is
STATUSES = ("ok", "unparsed", "refused", "filtered", "failed", "divided")
T = TypeVar("T")


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

    Parameters
    ----------
    model : Model
        The adapter; of style "chat" it reads the task's prompt, of style "text" the bare lines.
    task : Task
        With one label per answer (kinds classification and decision).
    columns : sequence of str
        Names of the columns, in the order of the rows.
    budget : Budget
        Hard limits. Calls behind ``answered`` are charged to it at once, so that a resumed run keeps the
        limits of the whole run.
    book : Path, optional
        Where the budget keeps what was used (`Budget.keep`).
    first_limit : int, optional
        The limit on calls that the run began with, if it goes on with another one: `left` then says what it
        said before, until that limit is reached, so that the search takes the same way again.
    per_case : int
        Rows that one case needs; a limit that leaves fewer is reached.
    cache : Cache or None
        Answers of earlier runs.
    format : str, optional
        The prompt format; default: the task's.
    replicates : int
        Times each row is asked; its label is then the answer of more than half of them.
    concurrency : int
        Calls in flight at most.
    answered : mapping of (prompt sha256, replicate) to Response
        What the run's journal has.
    on_row : callable, optional
        Gets (variant, prompt) before a row is asked: the row as an input without edits.
    on_response : callable, optional
        Gets each response once, when it must be kept.
    spell : callable, optional
        Columns and a row → the text that is sent; default: `row_text`.

    Attributes
    ----------
    rows : Counter
        Rows by what came of them: ok, unparsed, refused, filtered, failed, divided (replicates without a majority).
        All but ok are not judged.

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
        book: Path | None = None,
        first_limit: int | None = None,
        per_case: int = 1,
        cache: Cache | None = None,
        format: str | None = None,
        replicates: int = 1,
        concurrency: int = 16,
        answered: Mapping[Key, Response] | None = None,
        on_row: Callable[[Variant, Prompt], object] | None = None,
        on_response: Callable[[Response], None] | None = None,
        spell: Callable[[Sequence[str], Sequence[object]], str] | None = None,
    ) -> None:
        if not task.kind.one_label:
            raise ConfigError(
                f"task {task.name!r} is of kind {task.kind}; rows need a task with one label per answer, "
                f"such as lending or income"
            )
        if format is not None and format not in task.formats:
            raise ConfigError(f"task {task.name!r} has no prompt format {format!r}; formats: {', '.join(task.formats)}")
        if replicates < 1:
            raise ConfigError(f"--replicates must be at least 1, got {replicates}")
        self.model, self.task, self.columns = model, task, tuple(columns)
        self.budget, self.replicates = budget, replicates
        self.format = BARE if model.style == "text" else format or task.default_format
        self.rows: Counter[str] = Counter()
        self.reported: set[str] = set()
        self._first, self._per_case = first_limit, per_case
        self._answered, self._used = dict(answered or {}), set[Key]()
        paid = [r for r in self._answered.values() if not r.cached]
        self._paid = len(paid)
        budget.charge(calls=self._paid, usd=sum(r.cost_usd or 0.0 for r in paid))
        if book is not None:
            budget.keep(book)
        self._lost = budget.calls - self._paid  # calls of an earlier process without an answer in the journal
        self._on_row = on_row
        self._spell = spell or row_text
        self.client = Client(
            model,
            cache=cache,
            budget=budget,
            concurrency=concurrency,
            answered=self._answered,
            on_response=on_response,
            keep=lambda text, format: task.read(text, model.style, format).status == "ok",
            give_up=bool(task.sha256),
        )
        self._cache = cache if model.cacheable else None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="row-client", daemon=True)
        self._thread.start()

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
        BudgetExceeded
            A limit was reached, or the server was lost, before all rows were answered. What was answered
            was handed to ``on_response``.
        UserError
            The server answered nothing at all.
        """
        requests: list[Request] = []
        for row in rows.tolist():
            text = self._spell(self.columns, row)
            prompt = self.task.bare(text) if self.format == BARE else self.task.render(text, self.format)
            name = f"{id_of('r', text)}.o"
            if self._on_row is not None:
                values = {c: scalar(v) for c, v in zip(self.columns, row, strict=True)}
                self._on_row(Variant(id=name, input=values), prompt)
            requests += [Request(prompt=prompt, replicate=k, variant_id=name) for k in range(self.replicates)]
        self._note(requests)
        responses = self._do(self.client.ask(requests))
        stopped = self.client.stopped
        if stopped is not None and any(r.output is None for r in responses):
            counts = self.client.counts
            if not isinstance(stopped, BudgetExceeded) and not (counts.answered or counts.cached or counts.replayed):
                raise UserError(f"{self.model.name} answered nothing: {stopped}")
            raise BudgetExceeded(str(stopped))
        result = np.empty(len(rows), dtype=object)
        for i in range(len(rows)):
            result[i] = self._label(responses[i * self.replicates : (i + 1) * self.replicates])
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

    def _note(self, requests: Sequence[Request]) -> None:
        """Count journaled calls as used, once each."""
        for request in requests:
            key = (request.prompt.sha256, request.replicate)
            known = self._answered.get(key)
            if known is not None and not known.cached:
                self._used.add(key)

    def _label(self, responses: Sequence[Response]) -> str | None:
        """The answer of more than half of the replicates; None, counted by its reason, without one."""
        votes: Counter[str] = Counter()
        lost: Counter[str] = Counter()
        for response in responses:
            if response.model_reported:
                self.reported.add(response.model_reported)
            if response.output is None:
                lost[unanswered(response.error or "").status] += 1
                continue
            answer = self.task.read(response.output, self.model.style, response.format)
            if answer.status == "ok" and isinstance(answer.value, str):
                votes[answer.value] += 1
            else:
                lost[answer.status if answer.status != "ok" else "unparsed"] += 1
        if votes and 2 * max(votes.values()) > len(responses):
            self.rows["ok"] += 1
            return max(votes, key=lambda value: votes[value])
        self.rows[max(lost, key=lambda status: lost[status]) if lost else "divided"] += 1
        return None


def predict_from_client(asked: RowClient) -> TableModel:
    """A language model behind a row-to-prompt task, or a server, as a model of rows.

    Rows that got no label (unparsed, refused, failed, no majority) come back as None. A server's labels that are
    all numbers come back as numbers.
    """
    if asked.task.sha256:
        task = f"; task {asked.task.name} {digest(asked.task.sha256, size=8)}"
        predict = asked.predict
    else:
        task = ""

        def predict(rows: NDArray[np.generic]) -> NDArray[np.generic]:
            return _as_numbers(asked.predict(rows))

    return TableModel(
        name=asked.model.name,
        predict=predict,
        fingerprint=f"{asked.model.fingerprint}{task}",
        slow=True,
        close=asked.close,
    )


def _as_numbers(labels: NDArray[np.generic]) -> NDArray[np.generic]:
    known = [label for label in labels if label is not None]
    for kind in (int, float):
        try:
            numbers = [kind(label) for label in known]
        except ValueError:
            continue
        if len(known) == len(labels):
            return np.array(numbers)
        left = iter(numbers)
        return np.array([None if label is None else next(left) for label in labels], dtype=object)
    return labels
