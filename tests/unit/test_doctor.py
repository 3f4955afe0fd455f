"""``audit doctor``: checks, figures and exit codes, in at most ten calls; embedded models and a loopback server."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from auditor.cli.main import run
from auditor.run import doctor
from tests.json_server import JsonServer

SECRET = "sk-0123456789-secret"
Answer = Callable[[int, dict[str, Any]], tuple[int, dict[str, Any]]]


def completion(text: str, **extra: Any) -> dict[str, Any]:
    choice: dict[str, Any] = {"message": {"content": text}}
    if "logprobs" in extra:
        choice["logprobs"] = extra.pop("logprobs")
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"choices": [choice], "model": "served-1", "usage": usage, **extra}


def read(body: dict[str, Any]) -> str:
    """The label of a control text: they praise or damn a film."""
    return (
        "negative"
        if re.search("terrible|worst|dull|boring|awful|hated", body["messages"][-1]["content"])
        else "positive"
    )


def label_tokens(label: str) -> dict[str, Any]:
    other = {"positive": "negative", "negative": "positive"}[label]
    pair = [{"token": t, "logprob": math.log(p)} for t, p in ((label, 0.75), (other, 0.25))]
    return {"content": [{**pair[0], "top_logprobs": pair}]}


class Server(JsonServer):
    """Counts its calls; ``answer(number, body)`` says what comes back."""

    def __init__(self) -> None:
        super().__init__(self.reply_to)
        self.url += "/v1"
        self.headers: dict[str, str] = {}
        self.answer: Answer = lambda n, body: (200, completion(read(body)))

    def reply_to(self, body: Any) -> tuple[int, dict[str, str], Any]:
        status, out = self.answer(self.calls, body)
        return status, {"x-ratelimit-remaining-requests": "42"} | self.headers, out

    @property
    def calls(self) -> int:
        return len(self.seen)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for *_, body in self.seen]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    running = Server()
    yield running
    running.close()


def statuses(found: doctor.Examined) -> dict[str, str]:
    return {check.name: check.status for check in found.checks}


def texts(found: doctor.Examined) -> dict[str, str]:
    return {check.name: check.text for check in found.checks}


def test_an_embedded_model() -> None:
    found = doctor.examine("vader")
    assert (found.exit_code, found.calls) == (0, 10)
    assert statuses(found)["repeats"] == "ok"
    assert statuses(found)["label scores"] == "ok"
    assert "nothing is charged" in texts(found)["price"]


def test_a_server_that_does_it_all(server: Server) -> None:
    server.answer = lambda n, body: (
        200,
        completion(read(body), **({"logprobs": label_tokens(read(body))} if body.get("logprobs") else {})),
    )
    found = doctor.examine("openai:m", base_url=server.url, price_in=2.0, price_out=10.0)
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
    found = doctor.examine("openai:m", base_url=server.url)
    assert found.exit_code == 0
    assert statuses(found)["price"] == "note"
    assert "none" in texts(found)["label scores"]
    server.answer = lambda n, body: (400 if body.get("logprobs") else 200, completion(read(body)))
    refused = doctor.examine("openai:m", base_url=server.url)
    assert refused.exit_code == 0
    assert "refuses log-probabilities" in texts(refused)["label scores"]


@pytest.mark.parametrize(
    ("answer", "code", "check", "status", "said"),
    [
        (lambda n: (200, ("positive", "negative")[n % 2]), 0, "repeats", "note", "2 different answers"),
        (lambda n: (200, "the weather is nice"), 3, "task prompt", "failed", "weather"),
        (lambda n: (200 if n != 4 else 400, "positive"), 3, "key and server", "failed", ""),
    ],
)
def test_what_may_be_wrong_with_answers(
    server: Server, answer: Callable[[int], tuple[int, str]], code: int, check: str, status: str, said: str
) -> None:
    def reply(n: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        http, text = answer(n)
        return http, completion(text)

    server.answer = reply
    found = doctor.examine("openai:m", base_url=server.url)
    assert (found.exit_code, statuses(found)[check]) == (code, status)
    assert said in texts(found)[check]
    assert server.calls <= doctor.MAX_CALLS


@pytest.mark.parametrize(
    ("status", "calls"),
    [(401, 1), (400, 2), (429, 5), (500, 3)],  # 400: again without log-probabilities
)
def test_what_fails_in_passing_is_asked_again_and_nothing_else(server: Server, status: int, calls: int) -> None:
    server.headers = {"retry-after": "0"}
    server.answer = lambda n, body: (status, {"error": {"message": f"no {SECRET}"}})
    found = doctor.examine("openai:m", base_url=server.url)
    assert (found.exit_code, server.calls, found.calls) == (2, calls, calls)
    assert found.checks[-1].status == "failed"
    assert f"HTTP {status}" in found.checks[-1].text
    assert SECRET not in str(found)


THINKING = {"choices": [{"finish_reason": "length", "message": {"content": None, "reasoning_content": "Let me see"}}]}


def test_an_answer_that_is_cut_off_is_named_with_the_option_that_helps(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model that thinks longer than the limit lets it, as vLLM tells it."""

    def answer(n: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, completion(read(body)) if body["max_tokens"] >= 1000 else THINKING

    server.answer = answer
    ask = ["doctor", "--model", "openai:m", "--base-url", server.url]
    assert run(ask) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "10 were cut off at the limit on tokens: raise it with --server max-tokens=N" in shown
    assert "Give it more room: --server max-tokens=2048" in shown
    assert run([*ask, "--server", "max-tokens=2048"]) == 0


def test_a_parameter_that_is_not_supported_is_changed_and_told(server: Server) -> None:
    def answer(n: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "max_tokens" in body:
            said = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            return 400, {"error": {"message": said, "param": "max_tokens", "code": "unsupported_parameter"}}
        if "temperature" in body:
            said = "Unsupported value: 'temperature' does not support 0.0 with this model."
            return 400, {"error": {"message": said, "param": "temperature", "code": "unsupported_value"}}
        return 200, completion(read(body))

    server.answer = answer
    found = doctor.examine("openai:m", base_url=server.url)
    assert found.exit_code == 0
    assert "max_tokens is sent as max_completion_tokens; temperature is left out" in texts(found)["parameters"]
    assert sum("max_tokens" in body for body in server.bodies) == 1


@pytest.mark.parametrize("spec", ["openai:", "nobody:x", "http:none.yaml"])
def test_specs_that_are_wrong_are_a_check_that_failed(spec: str) -> None:
    found = doctor.examine(spec)
    assert (found.exit_code, found.calls) == (2, 0)
    assert statuses(found) == {"model spec": "failed"}


def test_the_command(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--model", "vader"]) == 0
    assert "The model can be audited." in capsys.readouterr().out
    server.answer = lambda n, body: (401, {"error": {"message": "no \x1b[31m"}})
    arguments = ["doctor", "--model", "openai:m", "--base-url", server.url]
    assert run(arguments) == 2
    out = capsys.readouterr().out
    assert "FAILED" in out
    assert "\x1b" not in out
    assert run([*arguments, "--format", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["exit_code"] == 2
    assert run(["doctor"]) == 2
