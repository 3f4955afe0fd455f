"""``kill -9`` in the middle of an audit over HTTP, then ``audit resume``: nothing answered is asked again."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

AUDIT = Path(sys.executable).parent / "audit"
LIMIT = "66"


class Server(ThreadingHTTPServer):
    """An OpenAI-compatible server that notes what it was asked, and answers by the text alone."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.delay_s = 0.01

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][-1]["content"]
        time.sleep(self.server.delay_s)
        with self.server.lock:
            self.server.asked[json.dumps(body["messages"])] += 1
        low = hashlib.sha256(text.encode()).digest()[0] < 128
        said = "positive" if low else "negative"
        data = json.dumps(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": "served-model",
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
                ],
                "usage": {
                    "prompt_tokens": len(text) // 4,
                    "completion_tokens": 1,
                    "total_tokens": len(text) // 4 + 1,
                },
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Any:
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever, daemon=True)
        thread.start()
        yield one
        one.shutdown()


def command(server: Server, folder: Path) -> tuple[list[str], dict[str, str]]:
    args = [
        str(AUDIT),
        "--task",
        "sentiment",
        "--limit",
        LIMIT,
        "--model",
        "openai:served-model",
        "--base-url",
        server.url,
    ]
    args += [
        "--replicates",
        "2",
        "--per-seed",
        "4",
        "--no-cache",
        "--yes",
        "--concurrency",
        "8",
        "--out",
        str(folder),
    ]
    return args, os.environ | {"OPENAI_API_KEY": "x", "AUDIT_CACHE": str(folder / "cache.sqlite")}


def figures(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*/run.json")
    record = json.loads(path.read_text())
    assert record["status"] == "complete", record["status_reason"]
    return {key: record[key] for key in ("estimates", "findings", "diagnoses", "counts", "controls")}


def killed_then_resumed(server: Server, folder: Path, after: int) -> dict[str, Any]:
    args, environment = command(server, folder)
    server.asked.clear()
    process = subprocess.Popen(args, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while sum(server.asked.values()) < after and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (run,) = folder.glob("2*")
    lines = (run / "responses.jsonl").read_text(errors="replace").splitlines(keepends=True)
    kept = [json.loads(line) for line in lines if line.endswith("\n")]
    answered = Counter(row["prompt_sha256"] for row in kept)
    before = Counter(server.asked)
    server.asked.clear()
    done = subprocess.run(
        [str(AUDIT), "resume", str(run)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    prompts = {
        json.loads(x)["prompt_sha256"]: json.loads(x)
        for x in (run / "prompts.jsonl").read_text().splitlines()
    }
    for sha256, times in answered.items():
        text = json.dumps(prompts[sha256]["messages"])
        assert server.asked[text] <= 2 - times, "an answered prompt was asked again"
    # What was asked before and is not in the journal was in flight when the process died.
    assert sum(before.values()) - sum(answered.values()) <= 8
    checked = subprocess.run(
        [str(AUDIT), "verify", str(run)], env=environment, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
    return figures(folder)


def whole_run(server: Server, folder: Path) -> tuple[dict[str, Any], int]:
    """The figures of a run that nobody cut off, and how many questions it asked."""
    args, environment = command(server, folder)
    subprocess.run(
        args, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300
    )
    return figures(folder), sum(server.asked.values())


def test_kill_then_resume_gives_the_same_figures(server: Server, tmp_path: Path) -> None:
    expected, total = whole_run(server, tmp_path / "whole")
    assert total > 150
    for number, share in enumerate((0.2, 0.7)):
        assert killed_then_resumed(server, tmp_path / f"killed-{number}", int(share * total)) == expected


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("SOAK"), reason="takes an hour; make soak runs it")
def test_fifty_kills_at_random_moments(server: Server, tmp_path: Path) -> None:
    expected, total = whole_run(server, tmp_path / "whole")
    rng = Random(7)
    for number in range(50):
        assert (
            killed_then_resumed(server, tmp_path / f"killed-{number}", rng.randint(1, total - 1)) == expected
        )
