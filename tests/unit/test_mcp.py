"""The server of the Model Context Protocol, asked by the client of its own SDK."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor.agent import load
from auditor.agent.session import Session
from auditor.agent.settings import Settings
from auditor.agent.tools import TOOLS, server
from auditor.cli import main as cli

GOAL = "Does the sentiment of film reviews change with gender?"
MORE = {"show_finding", "write_report"}


def told(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.content[0].text)
    return found


def asked(tmp_path: Path, *calls: tuple[str, dict[str, Any]], **limits: Any) -> tuple[Session, list[Any], list[Any]]:
    """The tools that a client sees, and the answers to its calls, in process."""
    from mcp import Client

    session = Session(
        Settings.of(GOAL, model="vader", out=tmp_path, planner="mcp", **limits), observe=lambda event: None
    )

    async def go() -> tuple[list[Any], list[Any]]:
        async with Client(server(session)) as client:
            tools = (await client.list_tools()).tools
            return list(tools), [await client.call_tool(name, values) for name, values in calls]

    seen = asyncio.run(go())
    session.end("partial", "the client of the test went away")
    return session, *seen


def test_a_client_counts_runs_reads_shows_and_ends(tmp_path: Path) -> None:
    run = {"purpose": "pilot", "attributes": ["gender"], "texts": 12, "why": "a first look"}
    count = {name: value for name, value in run.items() if name != "why"}
    session, tools, answers = asked(
        tmp_path,
        ("dry_run", count),
        ("run_audit", run),
        ("read_results", {"run": "R1"}),
        ("write_report", {"run": "R1"}),
        ("finish", {"why": "enough"}),
        ("dry_run", count),
        max_calls=5_000,
    )
    assert {tool.name for tool in tools} == {*TOOLS}
    assert set(TOOLS) >= {"dry_run", "run_audit", "read_results"} | MORE
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)
    sized, ran, read, report, finished, late = map(told, answers)
    assert sized["result"]["calls"] > 0
    assert ran["result"]["run"] == "R1"
    assert ran["left"]["calls"] < 5_000
    assert read["result"]["figures"] == ran["result"]["figures"]
    assert Path(report["result"]["page"]).is_file()
    assert finished["result"] == {"finished": True}
    assert late["result"]["error"] == "finished"
    assert answers[-1].is_error
    tools_used = [step.get("tool") for step in load(session.path).steps]
    assert "dry_run" in tools_used or any(step["action"] == "dry_run" for step in load(session.path).steps)


def test_the_budget_and_the_types_hold(tmp_path: Path) -> None:
    run = {"purpose": "pilot", "attributes": ["gender"], "texts": 12, "why": "a first look"}
    _, _, answers = asked(
        tmp_path,
        ("run_audit", run | {"model": "openai:another"}),
        ("run_audit", run),
        ("show_finding", {"run": "R7", "finding": "F001"}),
        ("no_such_tool", {}),
        max_calls=30,
    )
    assert [told(one)["result"].get("error") for one in answers[:1]] == ["not-possible"]
    assert told(answers[1])["left"]["calls"] >= 0
    assert told(answers[2])["result"]["error"] == "unknown-run"
    assert all(one.is_error for one in (answers[0], *answers[2:]))


def test_a_model_that_costs_money_needs_a_limit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert cli.run(["mcp", GOAL, "--model", "openai:some-model"]) == 2
    assert "no limit is set" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_over_stdin_and_stdout(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters

    command = ["-m", "auditor.cli.main", "mcp", GOAL, "--model", "vader", "--max-calls", "3000", "--out", str(tmp_path)]
    code = f"import sys; from auditor.cli.main import main; main({command[2:]!r})"

    async def go() -> Any:
        async with Client(StdioServerParameters(command=sys.executable, args=["-c", code])) as client:
            return await client.call_tool("list_attributes", {})

    assert "gender" in told(asyncio.run(go()))["result"]
