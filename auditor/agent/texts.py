"""The texts of a session: which of them name the people in question, and which no run has asked yet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from auditor.agent.settings import Settings
from auditor.core.errors import DataFileError
from auditor.core.plan import Plan
from auditor.core.types import SourceText, digest

ROUND = 64
SOON = 100  # texts that come before others, at most


@dataclass(kw_only=True)
class Pool:
    """Texts in an order that depends on their wording and the session's seed alone, never on answers.

    Equal texts count once, so that a fresh run holds no text that an earlier one has asked.
    """

    seeds: tuple[SourceText, ...] = ()
    used: int = 0

    @classmethod
    def of(cls, seeds: Sequence[SourceText], seed: int) -> Pool:
        """The pool of ``seeds``."""
        first: dict[str, SourceText] = {}
        for one in seeds:
            first.setdefault(one.text, one)
        return cls(seeds=tuple(sorted(first.values(), key=lambda s: digest([seed, s.text]))))

    @property
    def left(self) -> int:
        """Texts that no run has asked."""
        return len(self.seeds) - self.used

    def fresh(self, n: int, *, take: bool = True) -> list[SourceText]:
        """The next ``n`` texts; they count as used from now on, where they are taken."""
        chosen = list(self.seeds[self.used : self.used + n])
        self.used += len(chosen) if take else 0
        return chosen

    def keep(self, usable: Mapping[str, bool], *, pilot: Callable[[int], int]) -> None:
        """Drop texts that cannot be changed; only before the first run.

        Of few texts with what is named most seldom (true in ``usable``), those that the pilot does not ask come next,
        so that the first test has them.
        """
        if self.used:
            return
        kept = [s for s in self.seeds if s.text in usable]
        few = [s.text for s in kept if usable[s.text]]
        if 2 * len(few) < len(kept):
            head, rest = kept[: pilot(len(kept))], kept[pilot(len(kept)) :]
            soon = set(few[:SOON])
            kept = head + sorted(rest, key=lambda s: s.text not in soon)
        self.seeds = tuple(kept)


def scan(plan: Plan, pool: Pool) -> dict[str, bool]:
    """The texts of ``pool`` that ``plan`` can change, before anything is asked; true for those that name what is asked.

    That is, all attributes of the plan together (any two where it names none); where each is asked alone, the attribute
    that the fewest texts name.
    """
    from auditor import run as pipeline

    parts = pipeline.prepare(plan.but(data=None), seeds=pool.seeds, need_models=False)
    wanted, rng = min(len(plan.attributes) if plan.attributes else 2, plan.order), Random(plan.seed)
    alone = dict[str, set[str]]((name, set()) for name in plan.attributes or () if plan.order == 1)
    usable: dict[str, bool] = {}
    while cases := parts.suite.ask(ROUND, rng):
        for case in cases:
            value: Any = case.original.input
            text = value if isinstance(value, str) else json.dumps(dict(value), sort_keys=True)
            made = [v for v in case.variants if v.order]
            if made:
                usable[text] = usable.get(text, False) or any(v.order >= wanted for v in made)
            for name in alone.keys() & {name for v in made for name in v.attributes}:
                alone[name].add(text)
    if alone:
        rarest = min(alone.values(), key=len)
        usable = {text: text in rarest for text in usable}
    return usable


def read(settings: Settings, task: Any) -> tuple[str, Sequence[SourceText]]:
    """Where the texts of a session come from, and the texts."""
    from auditor import tasks

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
