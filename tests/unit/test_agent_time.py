"""The limit on time: it holds over all runs of a session together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from auditor import SourceText
from auditor.agent.rules import Rules
from auditor.agent.session import Session
from auditor.agent.settings import Settings

GOAL = "Do film reviews by women get another sentiment?"


def texts(n: int = 60) -> list[SourceText]:
    return [
        SourceText(id=f"s{i}", text=f"A man in row {i} liked the film. He bought the book and the coat in the morning.")
        for i in range(n)
    ]


class Clock:
    """Goes on by ``step`` seconds with every answer."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        return self.now

    def classify(self, text: str) -> str:
        self.now += self.step
        return "negative" if "woman" in text.split() else "positive"


def session(out: Path, clock: Clock, most: float) -> tuple[Session, str]:
    settings = Settings.of(GOAL, model=clock.classify, data=texts(), out=out, max_seconds=most, cache=False)
    made = Session(settings, observe=lambda event: None, clock=clock)
    why = Rules(made).go()
    made.end("complete", why)
    return made, why


def plan_of(made: Session, number: int) -> dict[str, Any]:
    folder = made.path / str(made.runs[number - 1].folder)
    plan: dict[str, Any] = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["plan"]
    return plan


def test_each_run_gets_the_seconds_that_are_left(tmp_path: Path) -> None:
    made, _ = session(tmp_path, Clock(1.0), 100_000.0)
    used = 0
    assert len(made.runs) >= 2
    for number, run in enumerate(made.runs, 1):
        plan = plan_of(made, number)
        assert plan["max_seconds"] == 100_000.0 - used
        used += run.calls
    assert made.record.spent.seconds == used
