"""A program that stays open, JSON lines in, JSON lines out: what ``exec:COMMAND`` runs.

What goes wrong stays with the requests it concerns: a line that is not an answer but carries an id fails
that request; one without an id fails whatever is still open once as many such lines were seen as requests
are open. If the program ends, every open request fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

from auditor.core import reading
from auditor.core.errors import BadResponse, CallError, ConfigError, ServerFault
from auditor.core.reading import from_json

LINE_LIMIT = 16 * 1024 * 1024  # bytes of one answer
TIMEOUT_S = 300.0  # for one answer
STDERR_LINES = 12
GRACE_S = 2.0  # between asking a program to end and ending it
GROUPS = hasattr(os, "killpg")
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,18})\b')
_CODE = """
import os, signal, sys, time
if not os.read(0, 1):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(int(sys.argv[1]), number)
        except OSError:
            break
        time.sleep(float(sys.argv[2]))
"""

Entry = Mapping[str, object]  # the JSON object of one answer
Promise = Future[Entry | CallError]


class Keeper:
    """Ends a program, and what it started, when this process is gone, also after ``kill -9``.

    A small process waits for the end of a pipe that this process holds. Without process groups (Windows) a program
    that ignores the end of its input outlives an audit that was killed.
    """

    def __init__(self, pid: int) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if GROUPS and sys.executable:
            with contextlib.suppress(OSError):
                self._process = subprocess.Popen(  # noqa: S603 - our own code
                    [sys.executable, "-I", "-S", "-c", _CODE, str(pid), str(GRACE_S)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )

    def release(self) -> None:
        """The program has ended: its number may soon be another's."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.communicate(b"x")


def end_group(pid: int, number: int | None = None) -> None:
    """Send a signal (else the one that cannot be refused) to a program and what it started, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if GROUPS:
            os.killpg(pid, signal.SIGKILL if number is None else number)
        else:
            os.kill(pid, signal.SIGTERM)


class Program:
    """One run of a program; any number of requests are under way at once.

    ``strict``: one line that is no answer fails everything that is open. ``ended`` says how it ended, and is empty
    while it runs. ``heard`` is when it last wrote an answer, on the monotonic clock.
    """

    def __init__(self, name: str, argv: Sequence[str], *, strict: bool = False) -> None:
        self._name, self._strict = name, strict
        self.ended, self.heard = "", 0.0
        self._last_id = 0
        self._open: dict[int, Promise] = {}
        self._broken: list[str] = []  # answers that name no request, since the last one that did harm
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._lock = threading.Lock()
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        try:
            # Ctrl-C must reach this process alone; it then closes the program in order.
            self.process = subprocess.Popen(  # noqa: S603 - the user's own command, without a shell
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise ConfigError(f"model {name} could not be started: {error.strerror or error}") from error
        self._keeper = Keeper(self.process.pid)
        process = self.process
        streams = ((self._note, process.stderr), (self._write, process.stdin), (self._listen, process.stdout))
        self._threads = [threading.Thread(target=work, args=(stream,), daemon=True) for work, stream in streams]
        for thread in self._threads:
            thread.start()

    def send(self, payloads: Iterable[Mapping[str, object]]) -> dict[int, Promise]:
        """Hand over requests; what is returned, by id, gets their answers."""
        sent: dict[int, Promise] = {}
        lines: list[str] = []
        with self._lock:
            for payload in payloads:
                self._last_id += 1
                sent[self._last_id] = Future()
                lines.append(json.dumps({"id": self._last_id, **payload}))
            self._open |= sent
        if lines:
            self._lines.put(("\n".join(lines) + "\n").encode("ascii"))
        if self.ended:
            self._fail_all(ServerFault(f"{self._name} has ended; {self.ended}"))
        return sent

    def forget(self, ids: Iterable[int]) -> None:
        """Nobody waits for these any more."""
        with self._lock:
            for number in ids:
                self._open.pop(number, None)
        self._settle()

    def tail(self) -> str:
        """The last lines that it wrote to standard error, for messages."""
        return f"; its last messages: {' | '.join(self._stderr)}" if self._stderr else ""

    def kill(self) -> None:
        """End the program and what it started, at once, without waiting."""
        end_group(self.process.pid)
        self._keeper.release()

    def close(self) -> None:
        """Close its input and wait for its end; after a grace time, terminate, then kill it."""
        self._lines.put(None)
        try:
            if not self._gone():
                end_group(self.process.pid, signal.SIGTERM)
                self._gone()
        finally:
            self.kill()
            self.process.wait()
            for thread in self._threads:
                thread.join(timeout=5)

    def _gone(self) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=GRACE_S)
            return True
        return False

    # -- its three streams ----------------------------------------------------

    def _write(self, sink: BinaryIO) -> None:
        # A broken pipe is not the news; how the program ended is, and the reader tells that.
        with contextlib.suppress(OSError, ValueError):
            while (lines := self._lines.get()) is not None:
                sink.write(lines)
                sink.flush()
        with contextlib.suppress(OSError):
            sink.close()

    def _note(self, source: BinaryIO) -> None:
        with source, contextlib.suppress(OSError, ValueError):
            while line := source.readline(65536):
                if line.strip():
                    self._stderr.append(line.rstrip(b"\r\n").decode("utf-8", "replace")[:300])

    def _listen(self, source: BinaryIO) -> None:
        too_long = False
        with source, contextlib.suppress(OSError, ValueError):
            while line := source.readline(LINE_LIMIT):
                whole = line.endswith(b"\n") or len(line) < LINE_LIMIT
                if not whole and not too_long:
                    self._count_broken(f"a line of more than {LINE_LIMIT} bytes")
                elif whole and not too_long and line.strip():
                    self._take(line)
                too_long = not whole
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=GRACE_S)
            self._threads[0].join(timeout=GRACE_S)  # what it wrote to standard error
        self.kill()
        code = self.process.wait()
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        self.ended = f"it ended with {how}{self.tail()}"
        self._fail_all(ServerFault(f"{self._name} ended with {how} before it answered{self.tail()}"))

    # -- answers --------------------------------------------------------------

    def _take(self, line: bytes) -> None:
        try:
            entry = from_json(line)
        except ValueError:
            entry = None
        number = _number(entry, line)
        if number is None or not 0 < number <= self._last_id:
            self._count_broken(shown(line))
            return
        self.heard = time.monotonic()
        with self._lock:
            promise = self._open.pop(number, None)
        if promise is not None:  # otherwise too late
            broken = f"{self._name} answered with a line that is not a JSON object: {shown(line)}"
            _keep(promise, entry if isinstance(entry, dict) else BadResponse(broken))
        if self._broken:
            self._settle()

    def _count_broken(self, line: str) -> None:
        self._broken.append(line)
        self._settle()

    def _settle(self) -> None:
        """Fail what is open once there are as many lines without an id as open requests."""
        with self._lock:
            enough = self._broken and (self._strict or len(self._broken) >= len(self._open))
            first = self._broken[0] if enough else ""
            if enough:
                self._broken.clear()
        if first:
            self._fail_all(
                BadResponse(
                    f"{self._name} wrote a line that is no answer: {first}. Expected JSON with id and"
                    " output on standard output, one object a line; logs belong on standard error"
                )
            )

    def _fail_all(self, error: CallError) -> None:
        with self._lock:
            waiting, self._open = self._open, {}
        for promise in waiting.values():
            _keep(promise, error)


def _keep(promise: Promise, outcome: Entry | CallError) -> None:
    with contextlib.suppress(InvalidStateError):  # whoever waited was cancelled
        promise.set_result(outcome)


def split(command: str) -> list[str]:
    """The words of a command; `ConfigError` where there are none, quotes are open, or there is no such program."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"model exec:{command}: the command cannot be split ({error})") from error
    if not argv:
        raise ConfigError("model exec: no command given; expected exec:COMMAND, e.g. exec:'python my_model.py'")
    if shutil.which(argv[0]) is None:
        raise ConfigError(f"model exec:{command}: no program {argv[0]!r} on the PATH or in this folder")
    return argv


def digests(argv: Sequence[str]) -> list[str | None]:
    """SHA-256 of each argument that names a file: a script that changes is another model."""
    return [_digest(part) for part in argv[1:]]


def _digest(part: str) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        path = Path(part)
        if path.is_file() and path.stat().st_size <= 1 << 26:
            return reading.sha256(path)
    return None


def _number(entry: object, line: bytes) -> int | None:
    """Find the id that a line names, also where the rest of it is broken."""
    if isinstance(entry, dict):
        value = entry.get("id")
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None
    match = _ID.search(line) if entry is None else None
    return int(match[1]) if match else None


def shown(line: bytes) -> str:
    """The beginning of a line, for messages."""
    return repr(line.decode("utf-8", "replace").strip()[:120])
