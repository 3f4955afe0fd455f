"""``audit doctor``: checks, figures and exit codes, in at most ten calls; embedded models and a loopback server."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from commands import Capture, said

from auditor.run import doctor
from tests.json_server import JsonServer

SECRET = "sk-0123456789-secret"
Answer = Callable[[int, dict[str, Any]], tuple[int, dict[str, Any]]]


def completion(text: str, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"choices": [{"message": {"content": text}, **more}], "model": "served-1", "usage": usage}


def read(body: dict[str, Any]) -> str:
    """The label of a control text: they praise or damn a film."""
    damned = re.search("terrible|worst|dull|boring|awful|hated", body["messages"][-1]["content"])
    return "negative" if damned else "positive"


def label_tokens(label: str) -> dict[str, Any]:
    other = {"positive": "negative", "negative": "positive"}[label]
    pair = [{"token": t, "logprob": math.log(p)} for t, p in ((label, 0.75), (other, 0.25))]
    return {"content": [{**pair[0], "top_logprobs": pair}]}


class Server(JsonServer):
    """Counts its calls; ``answer(number, body)`` says what comes back."""

    def __init__(self) -> None:
        super().__init__(self.reply_to)
        self.answer: Answer = lambda n, body: (200, completion(read(body)))

    def reply_to(self, body: Any) -> tuple[int, dict[str, str], Any]:
        status, out = self.answer(self.calls, body)
        return status, {"x-ratelimit-remaining-requests": "42"} if status == 200 else {"retry-after": "0"}, out

    @property
    def calls(self) -> int:
        return len(self.seen)

    def examined(self, **options: Any) -> doctor.Examined:
        return doctor.examine("openai:m", base_url=f"{self.url}/v1", **options)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    running = Server()
    yield running
    running.close()


def statuses(found: doctor.Examined) -> dict[str, str]:
    return {check.name: check.status for check in found.checks}


def texts(found: doctor.Examined) -> dict[str, str]:
    return {check.name: check.text for check in found.checks}


def test_a_server_that_does_it_all(server: Server) -> None:
    def answer(n: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, completion(read(body), logprobs=label_tokens(read(body)) if body.get("logprobs") else None)

    server.answer = answer
    found = server.examined(price_in=2.0, price_out=10.0)
    assert found.exit_code == 0
    assert found.calls == server.calls == 10 <= doctor.MAX_CALLS
    assert set(statuses(found).values()) == {"ok"}
    said = texts(found)
    assert said["model"] == "reports itself as served-1"
    assert "negative 0.250, positive 0.750" in said["label scores"]
    assert said["tokens"].startswith("100 in and 10 out")
    assert "about $0.30 for 1,000 such calls" in said["price"]  # 100 × 2 + 10 × 10 per million, × 1000
    assert said["rate limits"] == "x-ratelimit-remaining-requests 42"
    assert SECRET not in str(found)


def test_without_price_and_log_probabilities(server: Server) -> None:
    found = server.examined()
    assert (found.exit_code, statuses(found)["price"]) == (0, "note")
    assert "none" in texts(found)["label scores"]
    server.answer = lambda n, body: (400 if body.get("logprobs") else 200, completion(read(body)))
    refused = server.examined()
    assert refused.exit_code == 0
    assert "refuses log-probabilities" in texts(refused)["label scores"]


@pytest.mark.parametrize(
    ("answer", "code", "check", "status", "told"),
    [
        (lambda n, _: (200, completion(("positive", "negative")[n % 2])), 0, "repeats", "note", "2 different answers"),
        (lambda n, _: (200, completion("the weather is nice")), 3, "task prompt", "failed", "weather"),
        (lambda n, _: (200 if n != 4 else 400, completion("positive")), 3, "key and server", "failed", ""),
    ],
)
def test_what_may_be_wrong_with_answers(
    server: Server, answer: Answer, code: int, check: str, status: str, told: str
) -> None:
    server.answer = answer
    found = server.examined()
    assert (found.exit_code, statuses(found)[check]) == (code, status)
    assert told in texts(found)[check]
    assert server.calls <= doctor.MAX_CALLS


# 400: again without log-probabilities
@pytest.mark.parametrize(("status", "calls"), [(401, 1), (400, 2), (429, 5), (500, 3)])
def test_what_fails_in_passing_is_asked_again_and_nothing_else(server: Server, status: int, calls: int) -> None:
    server.answer = lambda n, body: (status, {"error": {"message": f"no {SECRET}"}})
    found = server.examined()
    assert (found.exit_code, server.calls, found.calls) == (2, calls, calls)
    assert found.checks[-1].status == "failed"
    assert f"HTTP {status}" in found.checks[-1].text
    assert SECRET not in str(found)


# A model that thinks longer than the limit lets it, as vLLM tells it.
THINKING = {"choices": [{"finish_reason": "length", "message": {"content": None, "reasoning_content": "Let me see"}}]}


def test_an_answer_that_is_cut_off_is_named_with_the_option_that_helps(server: Server, capsys: Capture) -> None:
    def answer(n: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, completion(read(body)) if body["max_tokens"] >= 1000 else THINKING

    server.answer = answer
    ask = f"doctor --model openai:m --base-url {server.url}/v1"
    code, shown = said(capsys, ask)
    assert code == 3
    assert "10 were cut off at the limit on tokens: raise it with --server max-tokens=N" in shown
    assert "Give it more room: --server max-tokens=2048" in shown
    assert said(capsys, f"{ask} --server max-tokens=2048")[0] == 0


def test_the_command_and_specs_that_are_wrong(server: Server, capsys: Capture) -> None:
    code, told = said(capsys, "doctor --model vader")
    assert (code, "nothing is charged" in told, "The model can be audited." in told) == (0, True, True)
    server.answer = lambda n, body: (401, {"error": {"message": "no"}})
    ask = f"doctor --model openai:m --base-url {server.url}/v1"
    code, told = said(capsys, ask)
    assert (code, "FAILED" in told) == (2, True)
    code, told = said(capsys, f"{ask} --format json")
    assert code == json.loads(told)["exit_code"] == 2
    for spec in ("openai:", "nobody:x", "http:none.yaml"):
        found = doctor.examine(spec)
        assert (found.exit_code, found.calls, statuses(found)) == (2, 0, {"model spec": "failed"})
    assert said(capsys, "doctor")[0] == 2
