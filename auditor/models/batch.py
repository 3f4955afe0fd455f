"""OpenAI's Batch API: many requests as one file, answered within a day at half the price.

`Batched` notes each submission in a journal before and after it is made. A run that was killed finds its batches again:
by the id in the journal, or by the mark in the batch's metadata.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from auditor.core.errors import (
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    DataFileError,
    ParameterChanged,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import Model, Reply
from auditor.core.reading import from_json
from auditor.core.types import Request, digest
from auditor.models.limits import Price
from auditor.models.openai import OpenAIChat, read_completion
from auditor.models.transport import DETAIL, error_code, of_status, said

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

MOST_REQUESTS = 50_000  # in one batch, as the provider limits it
MOST_BYTES = 190 * 2**20  # of one file; the provider takes 200 MB
ENDPOINT: Final = "/v1/chat/completions"
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
MARK = "audit_mark"  # the field of a batch's metadata that holds our digest of its contents
UPLOAD_S = 600.0  # for one file, either way
POLL_S, LONGEST_POLL_S = 5.0, 300.0  # seconds between two polls: at first, and at most
FAULTS_IN_A_ROW = 20  # of polls, before a batch is left for a later run


@dataclass(kw_only=True)
class _Batch:
    """One submission: the digests of its requests that were not taken yet, and its id once the server gave one."""

    mark: str
    ids: set[str]
    batch_id: str | None = None
    outcomes: dict[str, Reply | CallError] | None = None
    left: bool = False  # the last look at it came to no end
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Batched(Model):
    """A chat model of an OpenAI-compatible server, asked through batches.

    ``journal`` is a file of the run folder. ``left_s`` gives the seconds left to the run, or None without a limit; at
    its end a batch is looked at once more and left to a later run.
    """

    style: Literal["text", "chat"] = "chat"
    max_batch = MOST_REQUESTS
    patience_s = 7 * 86_400.0  # a batch takes up to a day, and what expires is submitted again

    def __init__(
        self,
        model: OpenAIChat,
        *,
        journal: Path,
        left_s: Callable[[], float | None] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._chat = model
        self.changed = model.changed
        self.name, self.fingerprint = model.name, model.fingerprint
        self.price, self.proxy = half(model.price), model.proxy
        self._journal, self._sleep = journal, sleep
        self._left_s = left_s
        self._batches = _read(journal, model.fingerprint)

    async def aclose(self) -> None:
        """Close the connections; batches under way go on at the server."""
        await self._chat.aclose()

    def max_tokens(self, format: str) -> int:
        """Return the limit of the model that is asked."""
        return self._chat.max_tokens(format)

    def left_before(self, request: Request) -> bool:
        """Return whether a batch of this process or an earlier one holds the request, unanswered."""
        return any(request_id(request) in b.ids for b in self._batches)

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Answer from batches that were submitted before, and submit the rest; in order.

        Asked again for the same request, it takes the next batch that holds it, or submits one.
        """
        ids = [request_id(request) for request in batch]
        bodies = {i: self._chat.body(r) for i, r in zip(ids, batch, strict=True)}
        source = {i: b for b in reversed(self._batches) for i in bodies if i in b.ids}  # the first that holds it
        for part in _parts({i: body for i, body in bodies.items() if i not in source}):
            made = _Batch(mark=digest([self.fingerprint, len(self._batches), sorted(part)], size=16), ids=set(part))
            self._note({"mark": made.mark, "fingerprint": self.fingerprint, "ids": part})
            self._batches.append(made)
            source.update(dict.fromkeys(part, made))
        outcomes: dict[str, Reply | CallError] = {}
        for wanted in {id(b): b for b in source.values()}.values():
            mine = [i for i, b in source.items() if b is wanted]
            try:
                collected = await self._collect(wanted, bodies)
            except CallError as error:
                # The batch stays in the journal: the next attempt, or the next run, looks at it again.
                wanted.left = True
                outcomes.update((i, error) for i in mine)
                continue
            wanted.ids.difference_update(mine)
            for i in mine:
                outcomes[i] = collected.get(i) or CallTimeout("the batch ended without an answer to this request")
        self.under_way = tuple(b.batch_id for b in self._batches if b.batch_id is not None and b.left)
        return [outcomes[i] for i in ids]

    async def _collect(
        self, wanted: _Batch, bodies: Mapping[str, Mapping[str, object]]
    ) -> dict[str, Reply | CallError]:
        """Submit ``wanted`` unless the server has it, wait for its end, and read it."""
        async with wanted.lock:
            if wanted.outcomes is not None:
                return wanted.outcomes
            if wanted.batch_id is None:
                wanted.batch_id = await self._find(wanted.mark)
                if wanted.batch_id is None:
                    wanted.batch_id = await self._submit(wanted, bodies)
                self._note({"mark": wanted.mark, "batch_id": wanted.batch_id})
            ended = await self._wait(wanted.batch_id)
            wanted.outcomes = await self._read_back(wanted, ended, bodies)
            wanted.left = False
            return wanted.outcomes

    # -- the server ----------------------------------------------------------

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[AsyncOpenAI]:
        """The SDK; its errors become ours."""
        from openai import OpenAIError

        try:
            yield self._chat._connect()
        except OpenAIError as error:
            raise self._chat._translate(error) from None

    async def _find(self, mark: str) -> str | None:
        """Find the batch with ``mark``, of a process that died before it noted the id."""
        async with self._client() as client:
            async for batch in client.batches.list(limit=100):
                if (batch.metadata or {}).get(MARK) == mark:
                    return batch.id
        return None

    async def _submit(self, wanted: _Batch, bodies: Mapping[str, Mapping[str, object]]) -> str:
        # It was never sent, and this run may no longer ask all of it: what it asks goes into a new batch.
        wanted.ids.intersection_update(bodies)
        lines = [_line(i, body) for i, body in bodies.items() if i in wanted.ids]
        content = (f"audit-{wanted.mark}.jsonl", b"".join(lines))
        async with self._client() as client:
            file = await client.files.create(file=content, purpose="batch", timeout=UPLOAD_S)
            made = await client.batches.create(
                input_file_id=file.id, endpoint=ENDPOINT, completion_window="24h", metadata={MARK: wanted.mark}
            )
            return made.id

    async def _wait(self, batch_id: str) -> Batch:
        """Poll until the batch has ended, or the run's time is over."""
        pause, faults = POLL_S, 0
        while True:
            try:
                async with self._client() as client:
                    batch = await client.batches.retrieve(batch_id)
                faults = 0
            except CallError as error:
                faults += 1
                if not error.transient or faults >= FAULTS_IN_A_ROW:
                    raise
            else:
                if batch.status in ENDED:
                    return batch
            left = self._left_s()
            if left is not None and left <= 0:
                raise CallTimeout(f"the batch {batch_id} is under way, and the time of the run is over")
            await self._sleep(pause if left is None else min(pause, left))
            pause = min(LONGEST_POLL_S, pause * 1.5)

    async def _read_back(
        self, wanted: _Batch, batch: Batch, bodies: Mapping[str, Mapping[str, object]]
    ) -> dict[str, Reply | CallError]:
        if batch.status == "failed":
            return dict.fromkeys(wanted.ids, _refused(batch))
        outcomes: dict[str, Reply | CallError] = {}
        for file_id in (batch.error_file_id, batch.output_file_id):
            if not file_id:
                continue
            async with self._client() as client:
                content = (await client.files.content(file_id, timeout=UPLOAD_S)).content
            for line in content.splitlines():
                key, outcome, body = _outcome(line)
                if type(outcome) is BadRequest and key in bodies and self._chat.changed_by(body, bodies[key]):
                    outcome = ParameterChanged(str(outcome))
                outcomes[key] = outcome
        for i in wanted.ids:
            outcomes.setdefault(i, CallTimeout(f"the batch {batch.id} is {batch.status} and has no answer to this"))
        return outcomes

    def _note(self, row: Mapping[str, object]) -> None:
        """Append one line to the journal, on disk when this returns."""
        self._journal.parent.mkdir(parents=True, exist_ok=True)
        with self._journal.open("ab") as file:
            file.write(json.dumps({**row, "at": round(time.time(), 3)}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def request_id(request: Request) -> str:
    """Return the name of a request in a batch: its prompt and replicate, at most 64 characters."""
    return f"{request.prompt.sha256[:48]}-{request.replicate}"


def _line(custom_id: str, body: Mapping[str, object]) -> bytes:
    row = {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body}
    return json.dumps(row).encode() + b"\n"


def _parts(bodies: Mapping[str, Mapping[str, object]]) -> list[list[str]]:
    """Cut ``bodies`` where a file would be too large."""
    parts: list[list[str]] = []
    size = MOST_BYTES
    for i, body in bodies.items():
        length = len(_line(i, body))
        if not parts or size + length > MOST_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(i)
        size += length
    return parts


def _outcome(line: bytes) -> tuple[str, Reply | CallError, object]:
    """Return the name of a request, its outcome, and what the server said, from a line of an output or error file."""
    try:
        row = from_json(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("custom_id"), str):
        return "", BadResponse("a line of the batch's output names no request"), None
    key, response, error = row["custom_id"], row.get("response"), row.get("error")
    if not isinstance(response, dict):
        text = said(error)[:DETAIL] or "no response"
        expired = isinstance(error, dict) and error.get("code") in ("batch_expired", "batch_cancelled")
        return key, CallTimeout(text) if expired else ServerFault(f"in the batch: {text}"), error
    status, body = response.get("status_code"), response.get("body")
    if status == 200:
        return key, read_completion(json.dumps(body).encode(), None), body
    made = of_status(status, error_code(body), body) if isinstance(status, int) else ServerFault
    return key, made(f"in the batch: HTTP {status}: {said(body)[:DETAIL]}"), body


def _refused(batch: Batch) -> CallError:
    """Return why the server refused a whole batch."""
    first = next(iter((batch.errors and batch.errors.data) or ()), None)
    code, text = (first and first.code) or "", (first and first.message) or "no reason given"
    if "limit" in code:  # tokens or requests that may be enqueued at once
        return RateLimited(f"the batch was refused: {text[:DETAIL]}", retry_after_s=60.0)
    return BadRequest(f"the batch was refused: {text[:DETAIL]}")


def half(price: Price | None) -> Price | None:
    """Return the price of a batch, for the list price ``price``."""
    if price is None:
        return None
    source = f"{price.source}; half of it, as batches cost"
    return Price(input_usd=price.input_usd / 2, output_usd=price.output_usd / 2, as_of=price.as_of, source=source)


def _read(path: Path, fingerprint: str) -> list[_Batch]:
    """Return the submissions in ``path`` to the model of ``fingerprint``, in order; a torn last line is cut off."""
    batches: dict[str, _Batch] = {}
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    if lines and not lines[-1].endswith(b"\n"):
        path.write_bytes(b"".join(lines[:-1]))  # the next line must begin on its own
        del lines[-1]
    for number, line in enumerate(lines, 1):
        try:
            row = from_json(line)
            if "ids" in row:
                if row["fingerprint"] == fingerprint:
                    batches[row["mark"]] = _Batch(mark=row["mark"], ids=set(row["ids"]))
            elif row["mark"] in batches:
                batches[row["mark"]].batch_id = str(row["batch_id"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataFileError(
                f"{path}: line {number} is not an entry of a journal of batches. If you changed it, restore it; "
                "otherwise the batches under way would be submitted again."
            ) from error
    return list(batches.values())
