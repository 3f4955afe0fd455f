"""``exec:COMMAND``: a program that stays open, JSON lines in, JSON lines out.

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

What goes wrong stays with the requests it concerns: a line that is not an answer but carries an id fails
that request; one without an id fails whatever is still open once as many such lines were seen as requests
are open. If the program ends, every open request fails and the next batch starts it again, a limited
number of times. A program that writes what cannot be read several times in a row is not asked any further:
it would go on like that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shlex
import shutil
import signal
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from auditor.core import userfile
from auditor.core.errors import BadRequest, BadResponse, CallError, CallTimeout, ConfigError, ServerFault
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Request, Usage, digest
from auditor.models.keeper import GRACE_S, Keeper, end_group
from auditor.models.local import read_scores

LINE_LIMIT = 16 * 1024 * 1024  # bytes of one answer
TIMEOUT_S = 300.0  # for one answer
STDERR_LINES = 12
GARBLED_AFTER = 5  # malformed answers in a row, where none was well-formed yet
GARBLED_LATER = 25  # the same where some were
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,18})\b')


class ProcessGone(ServerFault):
    """The program ended too often; it is not started again."""

    transient = False


class Garbled(ServerFault):
    """The program writes nothing that can be read; it is not asked any further."""

    code = BadResponse.code
    transient = False


class _Malformed(BadResponse):
    """A malformed answer of a program that gives the same one again."""

    transient = False


class Exec(Model):
    """A program as a model.

    Parameters
    ----------
    command : str
        The command line, e.g. ``"python my_model.py --fast"``.
    style : {"text", "chat"}
        Whether it gets ``input`` (the bare text, default) or ``messages`` (the rendered prompt).
    deterministic : bool
        Declare True if the same text always gets the same answer.
    fingerprint : str, optional
        A name for the exact state of the model behind the program; only with one are answers cached.
    timeout_s : float
        Seconds to wait for one answer.
    max_restarts : int
        How often it is started again after it ended by itself.

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
        self._argv = _split(command)
        if style not in ("text", "chat"):
            raise ConfigError(f"model {self.name}: style {style!r} is neither text nor chat")
        if not timeout_s > 0 or max_restarts < 0:
            raise ConfigError(f"model {self.name}: timeout_s must be above 0 and max_restarts at least 0")
        self.style: Literal["text", "chat"] = style
        self.deterministic = deterministic
        self.cacheable = fingerprint is not None
        self.max_batch = 64
        self.fingerprint = "exec:" + digest(
            {
                "adapter": "exec.v1",
                "argv": self._argv,
                "files": [_file_digest(part) for part in self._argv[1:]],
                "declared": fingerprint,
                "style": style,
            },
            size=16,
        )
        self._timeout_s = timeout_s
        self._max_restarts = max_restarts
        self._deaths = 0
        self._last_end = ""
        self._worker: _Worker | None = None
        self._malformed = 0  # answers in a row that could not be read
        self._understood = False

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Send the batch and wait for all of its answers."""
        try:
            worker = self._ready()
            await worker.start()
        except ServerFault as error:
            return [error] * len(batch)
        replies = await asyncio.gather(*(worker.ask(request, self.style) for request in batch))
        return [self._heed(reply) for reply in replies]

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
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()

    def _ready(self) -> _Worker:
        """Give the program that runs, or a new one in its place."""
        loop = asyncio.get_running_loop()
        worker = self._worker
        if worker is not None and worker.loop is not loop:
            # The loop it belonged to is gone, and its pipes with it.
            worker.kill()
            worker = None
        if worker is not None and worker.ended is not None:
            self._deaths += 1
            self._last_end = worker.ended
            worker = None
        if worker is None:
            if self._deaths > self._max_restarts:
                raise ProcessGone(
                    f"{self.name} ended {self._deaths} times and is not started again; {self._last_end}"
                )
            worker = _Worker(self.name, self._argv, self._timeout_s)
        self._worker = worker
        return worker


class _Worker:
    """One run of the program, tied to one event loop."""

    def __init__(self, name: str, argv: Sequence[str], timeout_s: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.ended: str | None = None  # how, once it has
        self._name = name
        self._argv = argv
        self._timeout_s = timeout_s
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: Keeper | None = None
        self._starting = asyncio.Lock()
        self._open: dict[int, asyncio.Future[Reply | CallError]] = {}
        self._last_id = 0
        self._broken: list[str] = []  # answers that name no request, since the last one that did harm
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start the program, unless it runs."""
        async with self._starting:
            if self._process is not None:
                return
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._argv,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    limit=LINE_LIMIT,
                    # Ctrl-C must reach this program alone; it then closes the other in order.
                    start_new_session=True,
                )
            except OSError as error:
                raise ConfigError(
                    f"model {self._name} could not be started: {error.strerror or error}"
                ) from error
            self._keeper = Keeper(self._process.pid)
            stderr = self.loop.create_task(self._drain_stderr())
            self._tasks = [stderr, self.loop.create_task(self._read_answers(stderr))]

    async def ask(self, request: Request, style: str) -> Reply | CallError:
        """Send one request and wait for its answer."""
        payload = request.prompt.payload()
        if ("input" in payload) != (style == "text"):
            return BadRequest(f"{self._name} reads {style}; it was sent {' and '.join(payload)}")
        process = self._process
        if self.ended is not None or process is None or process.stdin is None:
            return ServerFault(f"{self._name} has ended; {self.ended or ''}")
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Reply | CallError] = self.loop.create_future()
        self._open[number] = answer
        line = json.dumps({"id": number, **payload, "replicate": request.replicate}) + "\n"
        try:
            async with asyncio.timeout(self._timeout_s):
                # A broken pipe is not the news; how the program ended is, and the reader tells that.
                if not process.stdin.is_closing():
                    process.stdin.write(line.encode("ascii"))
                    with contextlib.suppress(ConnectionError):
                        await process.stdin.drain()
                return await answer
        except TimeoutError:
            return CallTimeout(f"{self._name} gave no answer in {self._timeout_s:g} s{self._tail()}")
        finally:
            self._open.pop(number, None)
            self._settle()

    def kill(self) -> None:
        """End the program and what it started, at once, without waiting."""
        if self._process is not None:
            end_group(self._process.pid)
        if self._keeper is not None:
            self._keeper.release()

    async def close(self) -> None:
        """End the program in order."""
        process = self._process
        if process is None:
            return
        if self.loop is not asyncio.get_running_loop():
            self.kill()
            return
        assert process.stdin is not None
        try:
            process.stdin.close()
            if not await self._wait():
                end_group(process.pid, signal.SIGTERM)
                await self._wait()
        finally:
            self.kill()
            await process.wait()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait(self) -> bool:
        """Wait for the program's end, for the grace time at most."""
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._process.wait()
                return True
        return False

    async def _drain_stderr(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        rest = b""
        while chunk := await self._process.stderr.read(4096):
            *lines, rest = (rest + chunk)[-65536:].split(b"\n")
            self._stderr.extend(line.decode("utf-8", "replace")[:300] for line in lines if line.strip())
        if rest.strip():
            self._stderr.append(rest.decode("utf-8", "replace")[:300])

    async def _read_answers(self, stderr: asyncio.Task[None]) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                self._count_broken(f"a line of more than {LINE_LIMIT} bytes")
                continue
            if not line:
                break
            if line.strip():
                self._take(line)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await process.wait()
                await stderr
        self.kill()
        code = await process.wait()
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        self.ended = f"it ended with {how}{self._tail()}"
        for answer in self._open.values():
            if not answer.done():
                answer.set_result(
                    ServerFault(f"{self._name} ended with {how} before it answered{self._tail()}")
                )

    def _take(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        number = _number(entry, line)
        if number is None or not 0 < number <= self._last_id:
            self._count_broken(_shown(line))
            return
        answer = self._open.get(number)
        if answer is not None and not answer.done():  # otherwise too late: nobody waits for it any more
            answer.set_result(self._read(entry, line))

    def _read(self, entry: Any, line: bytes) -> Reply | CallError:
        if not isinstance(entry, dict):
            return BadResponse(f"{self._name} answered with a line that is not a JSON object: {_shown(line)}")
        output, error = entry.get("output"), entry.get("error")
        if error is not None:
            return ServerFault(f"{self._name} reported: {error}")
        if not isinstance(output, str):
            return BadResponse(f"{self._name}: expected the field output (text) or error in {_shown(line)}")
        scores, usage = entry.get("scores"), entry.get("usage")
        try:
            return Reply(
                text=output,
                scores=None if scores is None else read_scores(_mapping(scores, "scores"), self._name),
                usage=None if usage is None else _usage(_mapping(usage, "usage")),
            )
        except BadResponse as problem:
            return problem

    def _count_broken(self, shown: str) -> None:
        if any(not answer.done() for answer in self._open.values()):
            self._broken.append(shown)
            self._settle()

    def _settle(self) -> None:
        """Fail what is open once there are as many lines without an id as open requests."""
        waiting = [answer for answer in self._open.values() if not answer.done()]
        if not waiting:
            self._broken.clear()
        elif len(self._broken) >= len(waiting):
            message = (
                f"{self._name} wrote a line that is no answer: {self._broken[0]}. Expected JSON with id and"
                " output on standard output, one object a line; logs belong on standard error"
            )
            self._broken.clear()
            for answer in waiting:
                answer.set_result(BadResponse(message))

    def _tail(self) -> str:
        return f"; its last messages: {' | '.join(self._stderr)}" if self._stderr else ""


def _split(command: str) -> list[str]:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"model exec:{command}: the command cannot be split ({error})") from error
    if not argv:
        raise ConfigError(
            "model exec: no command given; expected exec:COMMAND, e.g. exec:'python my_model.py'"
        )
    if shutil.which(argv[0]) is None:
        raise ConfigError(f"model exec:{command}: no program {argv[0]!r} on the PATH or in this folder")
    return argv


def _file_digest(part: str) -> str | None:
    """SHA-256 of an argument that names a file: a script that changes is another model."""
    with contextlib.suppress(OSError, ValueError):
        path = Path(part)
        if path.is_file() and path.stat().st_size <= 1 << 26:
            return userfile.sha256(path)
    return None


def _number(entry: Any, line: bytes) -> int | None:
    """Find the id that a line names, also where the rest of it is broken."""
    if isinstance(entry, dict):
        value = entry.get("id")
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None
    found = _ID.search(line) if entry is None else None
    return int(found[1]) if found else None


def _mapping(value: Any, field: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadResponse(f"the field {field} is not an object: {value!r}")
    return value


def _usage(value: dict[str, Any]) -> Usage:
    counts = [value.get(name) for name in ("tokens_in", "tokens_out")]
    whole = [n for n in counts if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    if len(whole) != 2:
        raise BadResponse(f"the field usage needs whole numbers tokens_in and tokens_out: {value!r}")
    return Usage(tokens_in=whole[0], tokens_out=whole[1])


def _shown(line: bytes) -> str:
    return repr(line.decode("utf-8", "replace").strip()[:120])
