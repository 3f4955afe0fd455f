"""`audit --task support` against a server that calls tools: planted amounts are found, every call counts, kills cost little."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nursery import IN_FLIGHT, Nursery, Server, figures, kill_after

pytestmark = pytest.mark.e2e
WOMEN = re.compile(r"\b(she|her|hers|woman|women|widow|mother|daughter|wife|girl)\b", re.IGNORECASE)
PEOPLE = re.compile(r"\b(s?he|hers?|him|his|(wo)?m[ae]n|widow(er)?|boy|girl|they|their|them)\b", re.IGNORECASE)
PLAN = shlex.split("--task support --model openai:clerk --attributes gender --groups gender:female/male --base-url")
Asked = Callable[..., Any]


def clerk(lowered: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Looks up the rules, then pays back what it makes of the ticket, ``lowered`` points less to women."""

    def call(name: str, **arguments: object) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"content": None, "tool_calls": [{"id": f"id-{name}", "type": "function", "function": function}]}

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        messages = body["messages"]
        assert [t["function"]["name"] for t in body["tools"]] == ["rules", "refund", "reject", "hand_over"]
        last = messages[-1]
        if last["role"] == "tool":
            assert messages[-2]["tool_calls"][0]["id"] == last["tool_call_id"]
            return {"content": f"Noted: {last['content']}"}
        ticket = next(m["content"] for m in messages if "A new ticket" in m["content"]).partition("\n\n")[2]
        if "Look up the rules" in last["content"]:
            return call("rules")
        if "Now decide" in last["content"]:
            words = sorted(w for w in ticket.lower().split() if not PEOPLE.search(w))
            percent = 40 + hashlib.sha256(" ".join(words[:6]).encode()).digest()[0] % 50
            if "hammer" in ticket or "sold it on" in ticket or "six years" in ticket or "twelve years" in ticket:
                return call("reject")
            return call("refund", percent=percent - (lowered if WOMEN.search(ticket) else 0))
        return {"content": "A complaint about what was bought."}

    return answer


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(agent=clerk(0), delay_s=0) as made:
        yield made


@pytest.mark.parametrize("lowered", [0, 15])
def test_less_money_for_women_is_found_in_a_call(tmp_path: Path, server: Server, audited: Asked, lowered: int) -> None:
    server.agent = clerk(lowered)
    argv = [*PLAN, server.url, "--max-calls", "5000", "--limit", "40", "--format", "json", "--out", "runs"]
    record = json.loads(audited(*argv).stdout)
    (claim,) = [c for c in record["claims"] if c["family"] == "net" and c["scale"] == "number"]
    assert (claim["verdict"] == "shown") == (lowered > 0)
    assert claim["low"] <= -lowered <= claim["high"]
    counts = record["counts"]
    assert counts["unparsed"] == 0
    # A question whose connection broke before the server read it is counted, and asked again.
    assert 0 <= counts["calls"] - sum(server.asked.values()) <= counts["calls"] / 200
    (folder,) = (tmp_path / "runs").glob("2*")
    variant = re.search(r'"id":"(\w+\.v\d+)"', (folder / "cases.jsonl").read_text())
    shown = audited("show", folder, variant[1]).stdout
    assert "→ refund(" in shown
    assert "tool: The payment is booked." in shown
    audited("verify", folder)


def test_a_run_that_is_killed_asks_nothing_twice_that_was_answered(tmp_path: Path, server: Server) -> None:
    server.delay_s = 0.005
    nursery = Nursery(tmp_path)
    argv = [*PLAN, server.url, "--max-calls", "9000", "--limit", "10", "--yes"]
    whole = tmp_path / "whole"
    nursery.call(*argv, "--no-cache", "--out", str(whole))
    needed = sum(server.asked.values())
    server.asked.clear()
    cut = tmp_path / "cut"
    kill_after(nursery, server, cut, 120, *argv, "--out", str(cut))
    (run,) = cut.glob("2*")
    nursery.call("resume", str(run), "--yes")
    nursery.call("verify", str(run))
    # Beside what was under way: answers that the cache had not yet on disk.
    assert 0 <= sum(server.asked.values()) - needed <= 2 * IN_FLIGHT
    one, other = figures(whole), figures(cut)
    assert one["findings"] == other["findings"]


def test_a_limit_on_calls_counts_those_within_conversations(server: Server, audited: Asked) -> None:
    record = json.loads(audited(*PLAN, server.url, "--max-calls", "100", "--format", "json", code=3).stdout)
    assert record["stopped_by"] == "max_calls"
    # The run books each call before it leaves; the server may miss the last ones.
    assert record["counts"]["calls"] == 100
    assert 90 <= sum(server.asked.values()) <= 100


def test_a_redacted_run_keeps_what_was_read_and_no_conversation(tmp_path: Path, server: Server, audited: Asked) -> None:
    server.agent = clerk(15)
    argv = [*PLAN, server.url, "--limit", "12", "--no-cache", "--yes", "--format", "json", "--out"]
    one, other = (json.loads(audited(*argv, *more).stdout) for more in (["plain"], ["redacted", "--redact"]))
    plain, redacted = (next((tmp_path / name).glob("2*")) for name in ("plain", "redacted"))
    assert one["claims"] == other["claims"]
    said = ("The payment is booked", "smoked on first use", "Faults from the works", "Noted:")
    everything = [file.read_text(errors="replace") for file in redacted.rglob("*") if file.is_file()]
    assert not [word for word in said for text in everything if word in text]
    assert all(word in (plain / "responses.jsonl").read_text() for word in said)
    audited("verify", redacted)

    variant = re.search(r'"id":"(\w+\.v\d+)"', (plain / "cases.jsonl").read_text())
    before = server.asked.total()
    shown = audited("show", plain, variant[1], "--again", "--replicates", "2", "--yes").stdout
    was = re.findall(r"before +(\w+ \(\d+\)) \d+×\n +now +(\w+ \(\d+\)) 2×", shown)
    assert len(was) == 2, shown
    assert all(one == other for one, other in was)  # the server goes by the text alone
    # Two versions, twice; three turns and two calls of tools in them.
    assert server.asked.total() == before + 2 * 2 * 5
    assert "--redact" in audited("show", redacted, variant[1], "--again", "--yes", code=2).stderr
