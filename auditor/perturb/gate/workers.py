"""Processes that check shards of cases.

Each is a fresh interpreter with a parser of its own (nothing is forked, and the caller's main module is not
imported again). They talk in frames of JSON over standard input and output, and end at once when their input does,
whatever they are at, so that none outlives the process that started it, however that one ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, Literal

from auditor.core.errors import AuditError, PluginError

Shard = Sequence[tuple[str, Sequence[str]]]  # originals, each with its variants
Outcome = tuple[Literal["valid", "invalid", "unknown"], str]  # status and reason of one variant

_SIZE = struct.Struct(">Q")
_ROOT = str(Path(__file__).resolve().parents[3])
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from auditor.perturb.gate.workers import serve; serve()"
)


class Worker:
    """One process. It is started by the first shard.

    Parameters
    ----------
    parser : str
        Name of the pipeline, as `auditor.text.parse.Parser` takes it.
    max_pairs : int
        How many comparisons it remembers.
    """

    def __init__(self, parser: str, max_pairs: int) -> None:
        self._hello = {"parser": parser, "max_pairs": max_pairs}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process number; None where it does not run."""
        return None if self._process is None else self._process.pid

    def send(self, shard: Shard) -> None:
        """Hand over a shard; `receive` waits for what was found.

        Raises
        ------
        PluginError
            The process has ended.
        """
        if self._process is None:
            command = [sys.executable, "-c", _PROGRAM, _ROOT]
            self._process = subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            weakref.finalize(self, _end, self._process)
            self._write(self._hello)
        self._write(shard)

    def receive(self) -> tuple[list[list[Outcome]], dict[str, int]]:
        """Return status and reason of each variant, and how much work it was.

        Raises
        ------
        PluginError
            The process has ended, or says why it could not check.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        answer = _read(self._process.stdout)
        if answer is None:
            raise self._lost()
        if "error" in answer:
            raise PluginError(
                f"a worker process could not check its variants: {answer['error']}. Run with one worker"
            )
        found = [[(status, reason) for status, reason in row] for row in answer["found"]]
        return found, answer["work"]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            _end(self._process)
            self._process = None

    def _write(self, value: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            _write(self._process.stdin, value)
        except OSError as error:
            raise self._lost() from error

    def _lost(self) -> PluginError:
        assert self._process is not None
        _end(self._process)
        return PluginError(
            f"a worker process ended with status {self._process.returncode} before it was done (out of memory?). "
            "Run with one worker"
        )


def share(costs: Sequence[int], shards: int) -> list[list[int]]:
    """Deal numbered tasks to shards of like cost: the dearest first, each to the shard that has least.

    >>> share([5, 1, 4], 2)
    [[0], [1, 2]]
    """
    loads = [0] * shards
    dealt: list[list[int]] = [[] for _ in range(shards)]
    for task in sorted(range(len(costs)), key=lambda i: -costs[i]):
        least = loads.index(min(loads))
        loads[least] += costs[task]
        dealt[least].append(task)
    return [sorted(tasks) for tasks in dealt]


def serve() -> None:
    """Check the shards that come in on standard input; ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    source, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get between the frames
    frames: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(source, frames), daemon=True).start()
    hello = frames.get()
    from auditor.core.types import Variant
    from auditor.perturb.gate.dependency import DependencyInvariant
    from auditor.text.parse import Parser

    parser = Parser(hello["parser"])
    check = DependencyInvariant(parser=parser, max_pairs=hello["max_pairs"])
    while True:
        shard = frames.get()
        before = _work(check)
        try:
            groups = [
                (Variant(id="", input=original), [Variant(id="", input=text) for text in texts])
                for original, texts in shard
            ]
            checks = check.check_groups(groups)
        except AuditError as error:
            _write(out, {"error": str(error)})
            continue
        found = [[(one.status, one.reason) for one in row] for row in checks]
        work = {name: total - before[name] for name, total in _work(check).items()}
        _write(out, {"found": found, "work": work})


def _listen(source: BinaryIO, frames: SimpleQueue[Any]) -> None:
    """Take in what comes; where the input ends there is nobody left to work for."""
    while (frame := _read(source)) is not None:
        frames.put(frame)
    os._exit(0)


def _work(check: Any) -> dict[str, int]:
    parser = check.parser
    return {
        "compared": check.compared,
        "asked": parser.asked,
        "tagged": parser.tagged,
        "parsed": parser.parsed,
    }


def _write(stream: Any, value: Any) -> None:
    body = json.dumps(value).encode("ascii")  # escapes carry lone surrogates too
    stream.write(_SIZE.pack(len(body)))
    stream.write(body)
    stream.flush()


def _read(stream: BinaryIO | Any) -> Any:
    """Return the next frame; None where the stream has ended."""
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    body = stream.read(size)
    return json.loads(body) if len(body) == size else None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the process end by itself, and see to it that it does."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # it was gone, with what was still to be written
                stream.close()
    try:
        process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
