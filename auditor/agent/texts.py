"""The texts of a session: which of them name the people in question, and which no run has asked yet."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from random import Random
from typing import Any

from auditor import tasks
from auditor.agent.settings import Settings
from auditor.core.errors import DataFileError
from auditor.core.plan import Plan
from auditor.core.types import SourceText, digest
from auditor.run.preparation import prepare

ROUND = 64


class Pool:
    """Texts in an order that depends on their wording and the session's seed alone; equal texts count once."""

    def __init__(self, seeds: Iterable[SourceText], seed: int) -> None:
        first: dict[str, SourceText] = {}
        for one in seeds:
            first.setdefault(one.text, one)
        self.seeds = sorted(first.values(), key=lambda s: digest([seed, s.text]))
        self._used: set[str] = set()

    @property
    def left(self) -> int:
        """Return how many texts no run has asked."""
        return sum(s.text not in self._used for s in self.seeds)

    def fresh(self, n: int) -> list[SourceText]:
        """Return the next ``n`` texts that no run has asked."""
        return [s for s in self.seeds if s.text not in self._used][:n]

    def take(self, chosen: Iterable[SourceText]) -> None:
        """Count texts as asked from now on."""
        self._used |= {s.text for s in chosen}

    def keep(self, usable: Collection[str]) -> None:
        """Drop texts that cannot be changed."""
        self.seeds = [s for s in self.seeds if s.text in usable]


def scan(plan: Plan, pool: Pool) -> dict[str, bool]:
    """Return the texts of ``pool`` that ``plan`` can change; true for those that name all its attributes."""
    parts = prepare(plan.but(data=None), seeds=tuple(pool.seeds), need_models=False)
    wanted, rng = min(len(plan.attributes) if plan.attributes else 2, plan.order), Random(plan.seed)
    usable: dict[str, bool] = {}
    while cases := parts.suite.ask(ROUND, rng):
        for case in cases:
            value: Any = case.original.input
            text = value if isinstance(value, str) else json.dumps(dict(value), sort_keys=True)
            made = [v for v in case.variants if v.order]
            if made:
                usable[text] = usable.get(text, False) or any(v.order >= wanted for v in made)
    return usable


def read(settings: Settings, task: Any) -> tuple[str, Sequence[SourceText]]:
    """Return where the texts of a session come from, and the texts."""
    if settings.seeds is not None:
        return "texts given by the caller", settings.seeds
    options = settings.options
    source = options.data or task.seeds_path
    if source is None:
        return "none: cases come from a grammar", ()
    try:
        file = tasks.read_seeds(source, columns=options.common.get("columns") or {}, limit=options.common.get("limit"))
    except DataFileError as error:
        if "--column text=" not in str(error):
            raise
        raise DataFileError(
            f"{error} The agent works on texts; a table of people is audited with: audit tabular --data {source} "
            "--target COLUMN --protected COLUMN --model SPEC"
        ) from None
    return ("texts given by the user" if options.data else "embedded texts of the task"), tuple(file.seeds)
