"""``exec:COMMAND``: a program as a model, for texts and for rows: it stays open, JSON lines in, JSON lines out.

Many requests are under way at once, and answers may come in any order::

    → {"id": 1, "input": "A fine film.", "replicate": 0}
    → {"id": 2, "row": {"age": 31, "sex": "Female"}}
    ← {"id": 1, "output": "positive", "scores": {"positive": 0.9, "negative": 0.1}}
    ← {"id": 2, "error": "the model is overloaded"}

The program flushes each line, and writes its logs to standard error. A bad line with an id fails that request; lines
without one fail all open requests once there are as many of them. A program that ends fails its open requests, and is
started again, a limited number of times.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
from asyncio import subprocess
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from auditor.core import reading
from auditor.core.errors import BadResponse, CallError, CallTimeout, ConfigError, ServerFault
from auditor.core.protocols import Costs, Model, Reply, bare_text
from auditor.core.reading import from_json
from auditor.core.types import Request, digest
from auditor.models.adapter import read_scores, usage

LINE_LIMIT = 16 * 1024 * 1024  # bytes of one answer
TIMEOUT_S = 300.0  # for the next answer
RESTARTS = 3
STDERR_LINES = 12
GRACE_S = 2.0  # between asking a program to end and ending it
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,18})\b')

Promise = asyncio.Future[Reply | CallError]


class ProcessGone(ServerFault):
    """The program ended too often; it is not started again."""

    transient = False


class Exec(Model):
    """A program as a model: it gets the bare text.

    ``timeout_s`` is the wait for the next answer. Raises `ConfigError` where the command is empty, has unbalanced
    quotes, or there is no such program.
    """

    costs: ClassVar[Costs] = "unseen"
    cacheable = False  # nobody knows the state of the model behind it
    max_batch = 64

    def __init__(self, command: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self.name = f"exec:{command}"
        try:
            self._argv = shlex.split(command)
        except ValueError as error:
            raise ConfigError(f"model exec:{command}: the command cannot be split ({error})") from error
        if not self._argv:
            raise ConfigError("model exec: no command given; expected exec:COMMAND, e.g. exec:'python my_model.py'")
        if shutil.which(self._argv[0]) is None:
            raise ConfigError(f"model exec:{command}: no program {self._argv[0]!r} on the PATH or in this folder")
        facts = {"adapter": "exec.v1", "argv": self._argv, "files": [_digest(part) for part in self._argv[1:]]}
        self.fingerprint = "exec:" + digest(facts | {"declared": None, "style": self.style}, size=16)
        self._timeout_s = timeout_s
        self._deaths = 0
        self._last_end = ""
        self._program: _Program | None = None
        self._starting = asyncio.Lock()

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Send the batch and wait for all of its answers."""
        texts = [(bare_text(request.prompt), request.replicate) for request in batch]
        asked = [{"input": text, "replicate": k} for text, k in texts if isinstance(text, str)]
        replies = iter(await self.ask(asked))
        return [next(replies) if isinstance(text, str) else text for text, _ in texts]

    async def ask(self, payloads: Sequence[Mapping[str, object]]) -> list[Reply | CallError]:
        """Send requests, their ids left out, and wait for all answers, as long as any comes."""
        try:
            program = await self._ready()
        except ServerFault as error:
            return [error] * len(payloads)
        sent = program.send(payloads)
        waiting = set(sent.values())
        try:
            while waiting:
                heard = program.heard
                _, waiting = await asyncio.wait(waiting, timeout=self._timeout_s)
                if program.heard == heard:
                    break
            late = CallTimeout(f"{self.name} gave no answer in {self._timeout_s:g} s{program.tail()}")
            return [promise.result() if promise.done() else late for promise in sent.values()]
        finally:
            program.forget(sent)

    async def aclose(self) -> None:
        """End the program."""
        program, self._program, self._starting = self._program, None, asyncio.Lock()
        if program is not None:
            await program.close()

    async def _ready(self) -> _Program:
        """Give the program that runs, or a new one in its place."""
        async with self._starting:
            if self._program is not None and self._program.ended:
                self._deaths += 1
                self._last_end, self._program = self._program.ended, None
            if self._program is None:
                if self._deaths > RESTARTS:
                    message = f"{self.name} ended {self._deaths} times and is not started again; {self._last_end}"
                    raise ProcessGone(message)
                try:
                    # Ctrl-C must reach this process alone; it then closes the program in order.
                    process = await subprocess.create_subprocess_exec(
                        *self._argv,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        limit=LINE_LIMIT,
                        start_new_session=True,
                    )
                except OSError as error:
                    raise ConfigError(f"model {self.name} could not be started: {error.strerror or error}") from error
                self._program = _Program(self.name, process)
            return self._program


class _Program:
    """One run of a program; ``ended`` says how it ended, ``heard`` counts its answers."""

    def __init__(self, name: str, process: subprocess.Process) -> None:
        self._name, self._process = name, process
        self.ended, self.heard = "", 0
        self._last_id = 0
        self._open: dict[int, Promise] = {}
        self._broken: list[str] = []  # lines that name no request, since the last one that did harm
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._logs = asyncio.create_task(self._note())
        self._answers = asyncio.create_task(self._listen())

    def send(self, payloads: Iterable[Mapping[str, object]]) -> dict[int, Promise]:
        """Hand over requests; return a promise of each answer, by id."""
        sent: dict[int, Promise] = {}
        lines = []
        for payload in payloads:
            self._last_id += 1
            sent[self._last_id] = asyncio.get_running_loop().create_future()
            lines.append(json.dumps({"id": self._last_id, **payload}) + "\n")
        self._open |= sent
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write("".join(lines).encode("ascii"))
        if self.ended:
            self._fail_all(ServerFault(f"{self._name} has ended; {self.ended}"))
        return sent

    def forget(self, ids: Iterable[int]) -> None:
        """Drop requests that nothing waits for any more."""
        for number in ids:
            self._open.pop(number, None)
        self._settle()

    def tail(self) -> str:
        """Return the last lines that it wrote to standard error, for messages."""
        return f"; its last messages: {' | '.join(self._stderr)}" if self._stderr else ""

    async def close(self) -> None:
        """Close its input and wait for its end; after a grace time, terminate, then kill it and what it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not await self._gone():
            self._end(signal.SIGTERM)
            await self._gone()
        self._end()
        await asyncio.gather(self._logs, self._answers, return_exceptions=True)

    async def _gone(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._process.wait()
        return self._process.returncode is not None

    def _end(self, number: int | None = None) -> None:
        """Send a signal (else the one that cannot be refused) to the program and what it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL if number is None else number)
            else:
                self._process.terminate()

    # -- its streams ----------------------------------------------------------

    async def _note(self) -> None:
        assert self._process.stderr is not None
        while True:
            with contextlib.suppress(ValueError):  # a line that is too long
                if not (line := await self._process.stderr.readline()):
                    return
                if line.strip():
                    self._stderr.append(line.rstrip(b"\r\n").decode("utf-8", "replace")[:300])

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:
                self._no_answer(f"a line of more than {LINE_LIMIT} bytes")
                continue
            if not line:
                break
            if line.strip():
                self._take(line)
        await self._gone()
        self._end()
        code = await self._process.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._logs), GRACE_S)
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        self.ended = f"it ended with {how}{self.tail()}"
        self._fail_all(ServerFault(f"{self._name} ended with {how} before it answered{self.tail()}"))

    def _take(self, line: bytes) -> None:
        try:
            entry = from_json(line)
        except ValueError:
            entry = None
        number = _number(entry, line)
        if number is None or not 0 < number <= self._last_id:
            self._no_answer(repr(line.decode("utf-8", "replace").strip()[:120]))
            return
        self.heard += 1
        promise = self._open.pop(number, None)
        if promise is not None and not promise.done():  # otherwise too late
            try:
                promise.set_result(_read(entry, line, self._name))
            except CallError as error:
                promise.set_result(error)
        self._settle()

    def _no_answer(self, line: str) -> None:
        self._broken.append(line)
        self._settle()

    def _settle(self) -> None:
        """Fail what is open once there are as many lines without an id as open requests."""
        if self._broken and len(self._broken) >= len(self._open):
            first = self._broken[0]
            self._broken.clear()
            self._fail_all(
                BadResponse(
                    f"{self._name} wrote a line that is not an answer: {first}. Expected JSON with id and"
                    " output on standard output, one object a line; logs belong on standard error"
                )
            )

    def _fail_all(self, error: CallError) -> None:
        waiting, self._open = self._open, {}
        for promise in waiting.values():
            if not promise.done():
                promise.set_result(error)


class _Tokens(msgspec.Struct):
    tokens_in: int | None = None
    tokens_out: int | None = None


class _Answer(msgspec.Struct):
    """The fields of an answer that count; others are ignored."""

    output: str | None = None
    scores: dict[str, object] | None = None
    usage: _Tokens | None = None


def _read(entry: object, line: bytes, name: str) -> Reply:
    if not isinstance(entry, dict):
        raise BadResponse(f"{name} answered with a line that is not a JSON object: {line[:120]!r}")
    if (error := entry.get("error")) is not None:
        raise ServerFault(f"{name} reported: {error}")
    try:
        fields = msgspec.convert(entry, _Answer)
    except msgspec.ValidationError as problem:
        raise BadResponse(f"{name}: {problem} in {str(entry)[:120]}") from None
    if fields.output is None:
        raise BadResponse(f"{name}: expected the field output (text) or error in {str(entry)[:120]}")
    scores = read_scores(fields.scores, name) if fields.scores else None
    counted = None if fields.usage is None else usage(fields.usage.tokens_in, fields.usage.tokens_out)
    return Reply(fields.output, scores=scores, usage=counted)


def _number(entry: object, line: bytes) -> int | None:
    """Find the id that a line names, also where the rest of it is broken."""
    if isinstance(entry, dict):
        value = entry.get("id")
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None
    match = _ID.search(line) if entry is None else None
    return int(match[1]) if match else None


def _digest(part: str) -> str | None:
    """SHA-256 of an argument that names a file: a script that changes is another model."""
    with contextlib.suppress(OSError, ValueError):
        path = Path(part)
        if path.is_file() and path.stat().st_size <= 1 << 26:
            return reading.sha256(path)
    return None
