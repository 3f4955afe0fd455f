"""The words by which goals are read (``embedded/agent/goal.toml``)."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from auditor.core import data


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The words of ``embedded/agent/goal.toml``; a star stands for any ending."""

    generic: str
    nobody: str
    persons: tuple[str, ...]
    intent: tuple[str, ...]
    not_groups: frozenset[str]
    traits: frozenset[str]
    legal: tuple[str, ...]
    legal_tasks: tuple[str, ...]
    tasks: dict[str, tuple[str, ...]]
    attributes: dict[str, tuple[str, ...]]
    groups: dict[str, str]
    countries: dict[str, str]

    @property
    def of_tasks(self) -> list[str]:
        """The words of all tasks."""
        return [word for words in self.tasks.values() for word in words]

    @property
    def ignored(self) -> frozenset[str]:
        """Words that name nobody."""
        return frozenset((*self.generic.split(), *self.nobody.split()))


@lru_cache(maxsize=1)
def known_words() -> Words:
    """The words by which goals are read."""
    text = data.path("embedded", "agent", "goal.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=Words)
