"""What the user fixed for a session, what was used of it, and the refusal of a proposal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditor.agent.goal import Goal
from auditor.core.errors import ConfigError
from auditor.core.types import Seed


class Refused(ConfigError):
    """A proposal that cannot be carried out; ``code`` is stable and holds no text from anywhere."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the user fixed for a session. ``models`` are specs or objects; ``common`` are further fields of `Plan`.

    ``planner_spec`` says that the planner was named by a text and not handed in as an object.
    """

    goal: Goal
    models: tuple[Any, ...]
    names: tuple[str, ...]
    out: Path
    data: str | None = None
    seeds: tuple[Seed, ...] | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    planner: str = "rules"
    planner_spec: bool = True
    planner_max_calls: int = 40
    planner_max_cost: float | None = None
    seed: int = 7
    common: Mapping[str, Any] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic


@dataclass(kw_only=True)
class Spent:
    """What was used so far: by the runs, and apart from them by the planner; ``seconds`` by earlier processes."""

    calls: int = 0
    usd: float = 0.0
    planner_calls: int = 0
    planner_usd: float = 0.0
    seconds: float = 0.0
