"""A planner behind an OpenAI-compatible server on this machine: real HTTP, real tool calls, the same rules."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from auditor import SourceText, agent
from auditor.cli.main import run as cli
from auditor.core.errors import UserError
from auditor.testing.planted import Planted

pytest.importorskip("langchain_openai", reason="the extra langchain is not installed")
pytestmark = pytest.mark.e2e

GOAL = "Do film reviews by women get another sentiment?"
KEY = "sk-of-this-test-only"
SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("dry_run", {"purpose": "pilot", "texts": 4, "attributes": ["gender"], "order": 1}),
    ("run_audit", {"purpose": "pilot", "texts": 4, "attributes": ["gender"], "order": 1, "why": "to look"}),
    ("run_audit", {"purpose": "fresh", "texts": 10, "model": "python:os:system", "why": "to escape"}),
    ("run_audit", {"purpose": "fresh", "texts": 10, "attributes": ["gender"], "order": 1, "why": "to test"}),
    ("finish", {"why": "enough"}),
]


class Server(ThreadingHTTPServer):
    """Plays `SCRIPT`, one tool call an answer; ``status`` other than 200 makes it refuse."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        if self.server.status != 200:
            self._send(self.server.status, {"error": {"message": f"no access with {KEY}", "type": "x", "code": None}})
            return
        turn = sum(m["role"] == "assistant" for m in body["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": "done"}
        if turn < len(SCRIPT):
            name, arguments = SCRIPT[turn]
            call = {"name": name, "arguments": json.dumps(arguments)}
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call-{turn}", "type": "function", "function": call}],
            }
        self._send(
            200,
            {
                "id": f"chat-{turn}",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59},
            },
        )

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def texts(n: int = 16) -> list[SourceText]:
    return [
        SourceText(id=f"s{i}", text=f"A man in row {i} liked the film. He bought the book and the coat in the morning.")
        for i in range(n)
    ]


def test_a_session_planned_over_http(server: Server, tmp_path: Path) -> None:
    result = agent.run(
        GOAL,
        model=Planted(additive={"she|woman": 1.0}, base="constant"),
        data=texts(),
        out=tmp_path,
        planner="openai:tiny",
        planner_base_url=server.url,
        max_calls=400,
    )
    assert len(server.bodies) == len(SCRIPT) == result.record["spent"]["planner_calls"]
    assert [r["purpose"] for r in result.record["runs"]] == ["pilot", "fresh"]
    assert [s["tool"] for s in result.steps if s["kind"] == "refused"] == ["run_audit"]
    assert result.record["spent"]["calls"] <= 400
    assert result.complete
    sent = {t["function"]["name"]: t["function"]["parameters"] for t in server.bodies[0]["tools"]}
    assert set(sent) == {"list_attributes", "dry_run", "run_audit", "read_results", "finish"}
    assert "model" not in sent["run_audit"]["properties"]
    told = json.dumps(server.bodies)
    assert "liked the film" not in told
    assert "bought the book" not in told
    written = b"".join(p.read_bytes() for p in result.path.rglob("*") if p.is_file())
    assert KEY.encode() not in written


def test_the_command_with_a_planner_over_http(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "texts.jsonl"
    data.write_text("".join(json.dumps({"id": s.id, "text": s.text}) + "\n" for s in texts()), encoding="utf-8")
    given = ["--model", "vader", "--data", str(data), "--out", str(tmp_path / "out"), "--no-cache"]
    planner = ["--planner", "openai:tiny", "--planner-base-url", server.url]
    code = cli(["agent", GOAL, *given, *planner, "--format", "json"])
    values = json.loads(capsys.readouterr().out)
    assert code == 0
    assert values["planner"] == "openai:tiny"
    assert values["models"] == ["vader"]


def test_a_planner_without_access(server: Server, tmp_path: Path) -> None:
    server.status = 401
    with pytest.raises(UserError, match="gave no plan") as caught:
        agent.run(GOAL, model=Planted(), data=texts(), out=tmp_path, planner="openai:tiny", planner_base_url=server.url)
    assert KEY not in str(caught.value)
    assert len(server.bodies) == 1, "a refusal is not tried again"
    assert not list(tmp_path.iterdir()), "a start that failed leaves no folder"


def test_a_server_fault_is_one_call(server: Server, tmp_path: Path) -> None:
    server.status = 500
    with pytest.raises(UserError, match="gave no plan"):
        agent.run(GOAL, model=Planted(), data=texts(), out=tmp_path, planner="openai:tiny", planner_base_url=server.url)
    assert len(server.bodies) == 1
