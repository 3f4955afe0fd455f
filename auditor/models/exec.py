"""``exec:COMMAND``: a program as a model, for texts and for rows (`auditor.models.program`).

Requests are lines on the program's standard input, answers lines on its standard output, in any order;
many are under way at once::

    → {"id": 1, "input": "A fine film.", "replicate": 0}
    → {"id": 2, "messages": [{"role": "user", "content": "…"}], "replicate": 0}
    ← {"id": 2, "output": "negative"}
    ← {"id": 1, "output": "positive", "scores": {"positive": 0.9, "negative": 0.1}}
    ← {"id": 3, "error": "the model is overloaded"}

Text is UTF-8 on the way out of the program and ASCII with JSON escapes on the way in. A program that writes
through a buffer has to flush after each line, and must write its logs to standard error; their end is
shown when it fails. No shell is involved: the command is split as a shell would (quotes, backslashes).

A program that ends is started again by the next batch, a limited number of times. One that writes what cannot be read
several times in a row is not asked any further: it would go on like that.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from typing import Any, ClassVar, Literal, NoReturn

from auditor.core.errors import (
    AuditError,
    BadRequest,
    BadResponse,
    BudgetExceeded,
    CallError,
    CallTimeout,
    ConfigError,
    PluginError,
    ServerFault,
    UserError,
)
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Request, digest
from auditor.models.adapter import read_scores, scalar, usage
from auditor.models.program import TIMEOUT_S, Entry, Program, Promise, digests, split

GARBLED_AFTER = 5  # malformed answers in a row, where none was well-formed yet
GARBLED_LATER = 25  # the same where some were


class ProcessGone(ServerFault):
    """The program ended too often; it is not started again."""

    transient = False


class Garbled(ServerFault):
    """The program writes nothing that can be read; it is not asked any further."""

    code = BadResponse.code
    transient = False


class _Malformed(BadResponse):
    """A malformed answer of a program that would give the same one again."""

    transient = False


class Exec(Model):
    """A program as a model.

    Parameters
    ----------
    style : {"text", "chat"}
        Whether it gets ``input`` (the bare text, default) or ``messages`` (the rendered prompt).
    deterministic : bool
        Declare True if the same text always gets the same answer.
    fingerprint : str, optional
        A name for the exact state of the model behind the program; only with one are answers cached.
    timeout_s : float
        Seconds to wait for one answer.

    Raises
    ------
    ConfigError
        The command is empty, has unbalanced quotes, or there is no such program.
    """

    costs: ClassVar[Costs] = "unseen"

    def __init__(
        self,
        command: str,
        *,
        style: Literal["text", "chat"] = "text",
        deterministic: bool = False,
        fingerprint: str | None = None,
        timeout_s: float = TIMEOUT_S,
        max_restarts: int = 3,
    ) -> None:
        self.name = f"exec:{command}"
        self._argv = split(command)
        if style not in ("text", "chat"):
            raise ConfigError(f"model {self.name}: style {style!r} is neither text nor chat")
        if not timeout_s > 0 or max_restarts < 0:
            raise ConfigError(f"model {self.name}: timeout_s must be above 0 and max_restarts at least 0")
        self.style: Literal["text", "chat"] = style
        self.deterministic = deterministic
        self.cacheable = fingerprint is not None
        self.max_batch = 64
        facts = {"adapter": "exec.v1", "argv": self._argv, "files": digests(self._argv)}
        self.fingerprint = "exec:" + digest(facts | {"declared": fingerprint, "style": style}, size=16)
        self._timeout_s = timeout_s
        self._max_restarts = max_restarts
        self._deaths = 0
        self._last_end = ""
        self._program: Program | None = None
        self._malformed = 0  # answers in a row that could not be read
        self._understood = False

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Send the batch and wait for all of its answers."""
        try:
            program = self._ready()
        except ServerFault as error:
            return [error] * len(batch)
        asked = [self._payload(request) for request in batch]
        sent = program.send(payload for payload in asked if not isinstance(payload, BadRequest))
        try:
            # Wrapped, so that one who is cancelled here cancels nothing there.
            await asyncio.wait(map(asyncio.wrap_future, sent.values()), timeout=self._timeout_s) if sent else None
            late = CallTimeout(f"{self.name} gave no answer in {self._timeout_s:g} s{program.tail()}")
            entries = iter([promise.result() if promise.done() else late for promise in sent.values()])
        finally:
            program.forget(sent)
        return [
            payload if isinstance(payload, BadRequest) else self._heed(_read(next(entries), self.name))
            for payload in asked
        ]

    def _payload(self, request: Request) -> Mapping[str, object] | BadRequest:
        payload = request.prompt.payload()
        if ("input" in payload) != (self.style == "text"):
            return BadRequest(f"{self.name} reads {self.style}; it was sent {' and '.join(payload)}")
        return {**payload, "replicate": request.replicate}

    def _heed(self, reply: Reply | CallError) -> Reply | CallError:
        """Count answers that cannot be read; a few in a row are no passing fault."""
        if isinstance(reply, Reply):
            self._malformed, self._understood = 0, True
        if not isinstance(reply, BadResponse):
            return reply
        self._malformed += 1
        if self._malformed >= (GARBLED_LATER if self._understood else GARBLED_AFTER):
            return Garbled(f"{reply} ({self._malformed} times in a row; it is not asked any further)")
        return _Malformed(str(reply)) if self.deterministic else reply

    async def aclose(self) -> None:
        """Close the program's input and wait for its end; after a grace time, terminate, then kill it."""
        program, self._program = self._program, None
        if program is not None:
            await asyncio.to_thread(program.close)

    def _ready(self) -> Program:
        """Give the program that runs, or a new one in its place."""
        program = self._program
        if program is not None and program.ended:
            self._deaths += 1
            self._last_end = program.ended
            program = None
        if program is None:
            if self._deaths > self._max_restarts:
                raise ProcessGone(f"{self.name} ended {self._deaths} times and is not started again; {self._last_end}")
            program = Program(self.name, self._argv)
        self._program = program
        return program


def _read(entry: Entry | CallError, name: str) -> Reply | CallError:
    if isinstance(entry, CallError):
        return entry
    output, error = entry.get("output"), entry.get("error")
    if error is not None:
        return ServerFault(f"{name} reported: {error}")
    if not isinstance(output, str):
        return BadResponse(f"{name}: expected the field output (text) or error in {str(entry)[:120]}")
    scores, counts = entry.get("scores"), entry.get("usage")
    for field, value in (("scores", scores), ("usage", counts)):
        if value is not None and not isinstance(value, dict):
            return BadResponse(f"the field {field} is not an object: {value!r}")
    tokens = usage(counts.get("tokens_in"), counts.get("tokens_out")) if isinstance(counts, dict) else None
    if counts is not None and tokens is None:
        return BadResponse(f"the field usage needs whole numbers tokens_in and tokens_out: {counts!r}")
    try:
        return Reply(output, scores=read_scores(scores, name) if isinstance(scores, dict) else None, usage=tokens)
    except BadResponse as problem:
        return problem


class RowProgram:
    """``exec:COMMAND`` on rows: one program that stays open, JSON lines in and out.

    ::

        → {"id": 0, "row": {"age": 3, "sex": "Female"}}
        ← {"id": 0, "output": "denied"}

    A whole batch is written before the last answer is awaited; one line that is no answer ends it.

    ``timeout_s`` are seconds to wait for the next answer, ``max_seconds`` those of the run from now on.
    """

    def __init__(
        self, command: str, columns: Sequence[str], *, timeout_s: float = TIMEOUT_S, max_seconds: float | None = None
    ) -> None:
        self._name, self._columns = f"exec:{command}", list(columns)
        self._timeout_s, self._max_seconds = timeout_s, max_seconds
        self._until = math.inf if max_seconds is None else time.monotonic() + max_seconds
        self._stopped: AuditError | None = None  # why it is asked nothing more
        self._program = Program(self._name, split(command), strict=True)

    def predict(self, rows: Any) -> list[str]:
        """Answers of the program, one per row.

        Raises
        ------
        BudgetExceeded
            The time of the run is over, or the program, which answered before, does so no longer.
        UserError
            It never answered.
        PluginError
            It ended, or wrote what is no answer.
        """
        if self._stopped is not None:
            raise self._stopped
        sent = self._program.send(
            {"row": {c: scalar(v) for c, v in zip(self._columns, row, strict=True)}} for row in rows.tolist()
        )
        began = time.monotonic()
        return [self._output(promise, began) for promise in sent.values()]

    def _output(self, promise: Promise, began: float) -> str:
        while not promise.done():
            left = min(max(began, self._program.heard) + self._timeout_s, self._until) - time.monotonic()
            if left <= 0:
                self._give_up()
            wait([promise], timeout=left)
        entry = promise.result()
        if isinstance(entry, CallError) or "output" not in entry:
            why = str(entry) if isinstance(entry, CallError) else str(entry.get("error", "no output"))[:200]
            raise PluginError(f"model {self._name}: {why}")
        return str(entry["output"])

    def _give_up(self) -> NoReturn:
        self._program.kill()  # nobody reads what it may still write
        why, late = f"model {self._name} gave no answer in {self._timeout_s:g} s", bool(self._program.heard)
        if time.monotonic() >= self._until:
            why, late = f"the limit of {self._max_seconds:g} seconds (--max-seconds) is reached", True
        self._stopped = BudgetExceeded(why) if late else UserError(why)
        raise self._stopped

    def close(self) -> None:
        """End the program."""
        self._program.close()
