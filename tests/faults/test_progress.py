"""What the line of progress and the dry run say is what is asked: under limits, after a resume, in time."""

from __future__ import annotations

import json
import re
import sys
import types

import pytest
from commands import Capture, Patch, both, only

from auditor.cli import frame

PRAISE = re.compile(r"\b(wonderful|best|superb|loved|delight|brilliant|great|excellent|beautiful)\w*", re.IGNORECASE)


pytestmark = pytest.mark.usefixtures("place")


class Clock:
    """Time that passes with calls alone: ``first`` seconds for each of the first twenty answers, then one."""

    def __init__(self, first: float = 1.0) -> None:
        self.now, self.calls, self.first = 0.0, 0, first

    def monotonic(self) -> float:
        return self.now

    def answer(self, text: str) -> str:
        self.calls += 1
        self.now += self.first if self.calls <= 20 else 1.0
        return "positive" if PRAISE.search(text) else "negative"


def clock_of(monkeypatch: Patch, first: float = 1.0) -> Clock:
    clock = Clock(first)
    monkeypatch.setattr(frame, "time", clock)
    monkeypatch.setitem(sys.modules, "timed", types.SimpleNamespace(model=clock.answer))
    return clock


def lines(err: str) -> list[tuple[int, int, float]]:
    """What was done, what was planned, seconds left: of each line of progress that says all three."""
    found = re.findall(r"ask \S+ · ([\d,]+)/([\d,]+) · .*about (\d+) (s|min) left", err)
    return [
        (int(done.replace(",", "")), int(planned.replace(",", "")), float(n) * (60 if unit == "min" else 1))
        for done, planned, n, unit in found
    ]


PLAN = "run --task sentiment --model python:timed:model --attributes gender --no-cache --out runs"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "first"),  # the first answers of a run come slowly
    [
        ("--limit 60", 1.0), ("--limit 60", 4.0), ("--limit 120 --max-calls 600", 1.0),
        ("--replicates 1 --max-calls 400", 4.0),
    ],
)  # fmt: skip
def test_the_rest_is_within_a_third_after_a_tenth(more: str, first: float, capsys: Capture, monkeypatch: Patch) -> None:
    clock = clock_of(monkeypatch, first)
    _, _, err = both(capsys, f"{PLAN} {more}")
    told = [one for one in lines(err) if one[0] >= clock.calls / 10]
    assert len(told) > 20
    for done, planned, left in told:
        assert planned == pytest.approx(clock.calls, rel=0.3)
        if clock.calls - done > 200:  # minutes are whole
            assert left == pytest.approx(clock.calls - done, rel=0.3) or done < 20 * first


@pytest.mark.slow
def test_after_a_resume_the_line_goes_on_from_what_was_answered(capsys: Capture, monkeypatch: Patch) -> None:
    clock = clock_of(monkeypatch)
    assert both(capsys, f"{PLAN} --limit 30 --max-calls 150")[0] == 3
    assert clock.calls == 150
    code, _, err = both(capsys, f"resume {only('runs/2*')} --max-calls 5000 --yes")
    assert code == 0
    told = lines(err)
    assert min(done for done, _, _ in told) >= 150
    done, planned, left = told[3]
    assert planned == pytest.approx(clock.calls, rel=0.3)
    assert left == pytest.approx(clock.calls - done, rel=0.3)


@pytest.mark.slow
def test_the_dry_run_counts_no_more_than_the_limit(capsys: Capture, monkeypatch: Patch) -> None:
    clock_of(monkeypatch)
    plan = "run --task sentiment --model openai:m --limit 30 --attributes gender --price 1,1 --full-plan --dry-run"
    whole = json.loads(both(capsys, f"{plan} --format json")[1])["models"]["openai:m"]
    _, text, _ = both(capsys, f"{plan} --max-calls 50")
    assert re.search(r"--max-calls ends the run there; the whole plan has [\d,]+ calls", text)
    counted = json.loads(both(capsys, f"{plan} --max-calls 50 --format json")[1])
    row = counted["models"]["openai:m"]
    assert 45 <= row["calls"] + row["calls_canary"] <= 50
    assert counted["calls_whole"] == whole["calls"] + whole["calls_canary"] > 50
    assert row["cost_usd"] == pytest.approx(whole["cost_usd"] * 50 / counted["calls_whole"], rel=0.1)
    assert json.loads(both(capsys, f"{plan} --max-calls 5000 --format json")[1])["calls_whole"] == 0
