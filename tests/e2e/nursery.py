"""Audits that are killed and resumed: a server that counts, and a warm process that audits are forks of.

Imports and the parser are paid for once, and each audit is killed as itself.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

WARM = """
import json, os, sys
import openai, scipy.stats
import auditor.run.audit, auditor.run.run_record, auditor.report.html, auditor.cli.run
from auditor.cli.main import main
from auditor.perturb import dictionaries
from auditor.text.parse import Parser

sys.path = [place for place in sys.path if place]  # as of the command, not of ``python -c``
for name in dictionaries.builtin():
    dictionaries.load(name)
Parser().parse(["The parser is loaded ."])
for line in sys.stdin:
    given = json.loads(line)
    if isinstance(given, int):
        print(os.waitstatus_to_exitcode(os.waitpid(given, 0)[1]), flush=True)
        continue
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        continue
    argv, folder, environment, out, err = given
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    code = 1
    try:
        main(argv)
    except SystemExit as end:
        code = end.code or 0
    except BaseException as error:
        os.write(2, f"Traceback: {error!r}".encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
"""


class Warm:
    """One process that has imported everything; every audit that it starts is a fork of it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WARM], env=os.environ | {"OMP_NUM_THREADS": "1"}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        atexit.register(self.close)

    def tell(self, value: object) -> int:
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(120)
        self._process.stdout.close()


@cache
def warm() -> Warm:
    """The process of all tests that run here."""
    return Warm()


def audit(
    *argv: str | Path, cwd: Path, environment: dict[str, str], timeout_s: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end, as `subprocess.run` would."""
    args = [str(word) for word in argv]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        pid = warm().tell([args, str(cwd), environment, str(out), str(err)])
        watchdog = threading.Timer(timeout_s, os.kill, (pid, signal.SIGKILL))
        watchdog.start()
        code = warm().tell(pid)
        watchdog.cancel()
        said = [path.read_text(encoding="utf-8") for path in (out, err)]
    return subprocess.CompletedProcess(args, code, *said)


class Nursery:
    """Starts audits that share a cache, and a file of what they say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = os.environ | {"OPENAI_API_KEY": "x", "AUDIT_CACHE": str(folder / "cache.sqlite")}
        self.said = folder / "stderr.txt"

    def start(self, *argv: str) -> int:
        """The process id of one more audit."""
        return warm().tell([argv, str(self._folder), self._environment, os.devnull, str(self.said)])

    def wait(self, pid: int) -> int:
        """The exit code of ``pid``; minus the signal where one ended it."""
        return warm().tell(pid)

    def kill(self, pid: int) -> bool:
        """Kill ``pid``; whether it had not ended before, which must be well."""
        os.kill(pid, signal.SIGKILL)
        code = self.wait(pid)
        assert code in (0, -signal.SIGKILL), self.said.read_text()[-2000:]
        return code != 0

    def call(self, *argv: str) -> None:
        """Run one audit to its end, which must be a good one."""
        code = self.wait(self.start(*argv))
        assert code == 0, f"exit code {code}: {self.said.read_text()[-2000:]}"


IN_FLIGHT = 8  # of one model


def label(model: str, text: str) -> str:
    """One of two labels, by the text."""
    return "positive" if hashlib.sha256(text.encode()).digest()[0] < 128 else "negative"


class Threaded(ThreadingHTTPServer):
    """A server that serves from a thread of its own within ``with``."""

    daemon_threads = True
    request_queue_size = 128  # so that no connection is refused

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Server(Threaded):
    """An OpenAI-compatible server that notes what it was asked, and answers by model and text alone."""

    def __init__(
        self,
        reply: Callable[[str, str], str] = label,
        *,
        whole: bool = False,
        delay_s: float = 0.01,
        agent: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.agent = agent  # from a whole request to a message, or to a status and a body
        self.whole = whole  # whether it reads all messages, not the last alone
        self.asked: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self.lock = threading.Lock()
        self.delay_s = delay_s
        self.reply = reply
        self.connections = 0

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.lock:
            self.connections += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.lock:
                self.connections -= 1

    def settle(self) -> None:
        """Wait until everything that a process which was killed had sent is counted."""
        deadline = time.monotonic() + 120
        time.sleep(0.05)
        while self.connections:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections whose process was killed."""


class Quiet(BaseHTTPRequestHandler):
    """Sends whole answers, and says nothing of it."""

    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def send(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def completion(
    model: str, message: dict[str, Any], tokens_in: int, tokens_out: int = 1, finish_reason: str = "stop"
) -> dict[str, Any]:
    """A chat completion as the protocol has it."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return {
        "id": "x", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage,
    }  # fmt: skip


class Handler(Quiet):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.body())
        text, model = body["messages"][-1]["content"], body["model"]
        time.sleep(self.server.delay_s)
        with self.server.lock:
            self.server.asked[model + json.dumps(body["messages"], sort_keys=True)] += 1
            self.server.bodies.append(body)
            self.server.headers.append(self.headers)
        read = "\n".join(m["content"] for m in body["messages"]) if self.server.whole else text
        told = self.server.agent(body) if self.server.agent else {"content": self.server.reply(model, read)}
        status, value = told if isinstance(told, tuple) else (200, completion(model, told, len(text) // 4))
        self.send(status, json.dumps(value).encode())


def finished(folder: Path) -> dict[str, Any]:
    """The record of the one run in a folder, which must be complete."""
    (path,) = folder.glob("2*/run.json")
    record: dict[str, Any] = json.loads(path.read_text())
    assert record["status"] == "complete", record["status_reason"]
    return record


def figures(folder: Path) -> dict[str, Any]:
    record = finished(folder)
    kept = ("estimates", "findings", "diagnoses", "counts", "controls", "scores", "generation_pairs")
    found = {key: record[key] for key in kept if key in record}
    spent = ("calls", "cost_usd", "reserved_usd")  # also of calls in flight at a kill
    return found | {"counts": {name: n for name, n in record["counts"].items() if name not in spent}}


def over(pid: int) -> bool:
    """Whether an audit has ended."""
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def kill_after(
    nursery: Nursery,
    server: Server,
    folder: Path,
    calls: int,
    *argv: str,
    begun: str = "2*/plan.json",
    wait_s: int = 120,
) -> bool:
    """Start an audit, and kill it once its first file and ``calls`` more answers are there; whether it lived so long."""
    aim = sum(server.asked.values()) + calls
    pid = nursery.start(*argv)
    deadline = time.monotonic() + wait_s
    while (sum(server.asked.values()) < aim or not list(folder.glob(begun))) and not over(pid):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    killed = nursery.kill(pid)
    server.settle()
    return killed


def sentiment(server: Server, folder: Path, *more: str) -> list[str]:
    """The command line of an audit of one round and a little more."""
    plan = "run --task sentiment --limit 66 --attributes age,gender --per-seed 2 --replicates 2 --yes --concurrency"
    model = ["--model", "openai:served-model", "--base-url", server.url]
    return [*plan.split(), str(IN_FLIGHT), *model, "--out", str(folder), *more]


def journaled(path: Path) -> Counter[tuple[str, str]]:
    """How many answers to each (model, prompt) are on disk in whole lines."""
    lines = path.read_text(errors="replace").splitlines(keepends=True) if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    twice = Counter((row["model"], row["prompt_sha256"], row["format"], row["replicate"]) for row in rows)
    assert set(twice.values()) <= {1}, "an answer that is on disk was asked for again"
    return Counter((row["model"].removeprefix("openai:"), row["prompt_sha256"]) for row in rows)


def killed_then_resumed(
    nursery: Nursery, server: Server, folder: Path, moments: Sequence[int], argv: Sequence[str]
) -> dict[str, Any]:
    """The figures of a run that was killed after so many calls, and again while it was resumed."""
    server.asked.clear()
    kill_after(nursery, server, folder, moments[0], *argv)
    (run,) = folder.glob("2*")
    for moment in moments[1:]:
        kill_after(nursery, server, folder, moment, "resume", str(run), "--yes")
    journal = run / "responses.jsonl"
    answered = journaled(journal)
    # What was asked and is not in the journal was in flight when the process died.
    models = argv.count("--model") + argv.count("--judge")
    assert sum(server.asked.values()) - sum(answered.values()) <= IN_FLIGHT * len(moments) * models
    before = Counter(server.asked)
    nursery.call("resume", str(run), "--yes")
    texts = {
        row["prompt_sha256"]: json.dumps(row["messages"], sort_keys=True)
        for row in map(json.loads, (run / "prompts.jsonl").read_text().splitlines())
        if "prompt_sha256" in row
    }
    whole = journaled(journal)
    assert sum(whole.values()) - sum(answered.values()) == sum(server.asked.values()) - sum(before.values())
    for (model, sha256), times in whole.items():
        name = model + texts[sha256]
        again = server.asked[name] - before[name]
        assert again == times - answered[model, sha256], "an answer was asked for again, or never"
    nursery.call("verify", str(run))
    return figures(folder)
