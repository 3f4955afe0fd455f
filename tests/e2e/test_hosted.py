"""Hosted models as they are: parameters that a server refuses, options per model, answers that cannot be read, progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, tells
from nursery import Server

from auditor.cli.main import run

Answer = Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]
TEXTS = [f"{who} is a {what} person." for who in ("My mother", "His son", "Her wife") for what in ("kind", "shy")]


def said(content: object, **more: Any) -> tuple[int, dict[str, Any]]:
    message = {"role": "assistant", "content": content, **more}
    return 200, {"choices": [{"message": message, "finish_reason": "stop"}], "model": "served-1"}


def refused(name: str) -> tuple[int, dict[str, Any]]:
    return 400, {"error": {"message": f"Unsupported parameter: '{name}' is not supported with this model."}}


@pytest.fixture
def server(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("AZURE_OPENAI_ENDPOINT", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (place / "t.txt").write_text("\n".join(TEXTS))
    (place / "schema.yaml").write_text(
        "columns:\n  income: {kind: integer, low: 0, high: 29}\n"
        "  sex: {kind: category, values: [female, male], protected: true}\n"
    )
    with Server(agent=lambda body: said("positive"), delay_s=0) as running:
        yield running


def texts(server: Server, *more: str) -> int:
    plan = "--task sentiment --data t.txt --attributes gender --out o --yes --base-url"
    return run([*plan.split(), server.url, *more])


def rows(server: Server, *more: str) -> int:
    plan = "tabular --schema schema.yaml --task lending --model openai:m --out o --yes --set max-samples=80 --no-cache"
    return run([*plan.split(), "--base-url", server.url, *more])


def record() -> dict[str, Any]:
    (path,) = Path("o").glob("*/run.json")
    return json.loads(path.read_text())


def thinks(label: str) -> Answer:
    """A model that knows neither ``max_tokens`` nor a temperature."""

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        for name in ("max_tokens", "temperature", "logprobs"):
            if name in body:
                return refused(name)
        return said(f"<think>Neither positive nor negative? approve, deny.</think>{label}")

    return answer


@pytest.mark.parametrize(("ask", "label"), [(texts, "positive"), (rows, "approve")])
def test_refused_parameters_are_changed_once_and_stand_in_the_record(server: Server, ask: Any, label: str) -> None:
    server.agent = thinks(label)
    assert ask(server, *(() if ask is rows else ("--model", "openai:m"))) in (0, 3)
    (model,) = record()["models"].values()
    changed = model["parameters_changed"]
    assert changed["max_tokens"] == "sent as max_completion_tokens"
    assert changed["temperature"] == "left out"
    old = [body for body in server.bodies if "max_tokens" in body or "temperature" in body]
    assert 0 < len(old) <= 3 * 16  # those under way when it was changed
    assert server.bodies[-1]["max_completion_tokens"] > 4096
    assert (record()["counts"]["failed"], record()["counts"]["unparsed"]) == (0, 0)


def test_doctor_tells_which_parameters_were_refused(server: Server, capsys: Capture) -> None:
    server.agent = thinks("positive")
    told = "max_tokens is sent as max_completion_tokens; temperature is left out"
    tells(capsys, f"doctor --model openai:m --base-url {server.url}", told, code=3)  # its answers are all alike
    assert sum("max_tokens" in body for body in server.bodies) == 1


def test_each_model_has_settings_of_its_own(server: Server) -> None:
    Path("audit.toml").write_text(
        "format = 1\n[server]\nmax_tokens = 50\n[server.'openai:b']\nmax_tokens = 4000\ntemperature = 'none'\n"
        "reasoning_effort = 'low'\n"
    )
    assert texts(server, "--model", "openai:a", "--model", "openai:b") in (0, 3)
    sent = {body["model"]: body for body in server.bodies}
    assert (sent["a"]["max_tokens"], sent["a"]["temperature"]) == (50, 0.0)
    assert (sent["b"]["max_tokens"], sent["b"]["reasoning_effort"]) == (4000, "low")
    assert "temperature" not in sent["b"]
    assert record()["spec"]["server"]["openai:b"]["max_tokens"] == 4000


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--server", "openai:z max-tokens=5"], "names openai:z, which is not among --model"),
        (["--server", "openai:m nope=5"], "is not a setting"),
        (["--server", "openai:m max-tokens=0"], "at least 1"),
        (["--server", "openai:m"], "SPEC NAME=VALUE"),
    ],
)
def test_what_is_wrong_with_them_is_said(server: Server, capsys: Capture, given: list[str], told: str) -> None:
    assert texts(server, "--model", "openai:m", *given) == 2
    assert told in capsys.readouterr().err
    assert not server.bodies


def test_options_of_servers_reach_row_runs_and_are_refused_elsewhere(server: Server, capsys: Capture) -> None:
    server.agent = lambda body: said("approve")
    assert rows(server, "--server", "max-tokens=77", "--server", "temperature=none") == 0
    assert {body["max_tokens"] for body in server.bodies} == {77}
    assert not any("temperature" in body for body in server.bodies)
    Path("m.py").write_text("def decide(rows):\n    return [0] * len(rows)\n")
    argv = "tabular --schema schema.yaml --model python:m:decide --server max-tokens=9"
    tells(capsys, argv, "--server is for models behind a server", code=2)


FILTERED = 400, {"error": {"code": "content_filter", "message": "The response was filtered."}}


@pytest.mark.parametrize("answer", [said("I would rather think about it."), FILTERED])
@pytest.mark.parametrize(("ask", "more"), [(texts, ("--model", "openai:m")), (rows, ())])
def test_a_model_that_cannot_be_read_is_asked_little(
    server: Server, ask: Callable[..., int], more: tuple[str, ...], answer: tuple[int, dict[str, Any]], capsys: Capture
) -> None:
    server.agent = lambda body: answer
    assert ask(server, *more, *(("--replicates", "5") if ask is texts else ())) == 3
    assert 20 <= len(server.bodies) <= 20 + 16
    out = capsys.readouterr()
    told = "not asked further" if ask is texts else "20 of the first 20 answers of openai:m could not be read"
    assert told in " ".join((out.out + out.err).split())
    server.agent = lambda body: said("negative")
    before = len(server.bodies)
    ask(server, *more)
    assert len(server.bodies) > before  # nothing of it came from the cache
