"""Requests as tests send them to an adapter, and what it answers; files of texts and rows."""

from __future__ import annotations

import asyncio
import csv
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.core.errors import CallError
from auditor.core.protocols import Reply
from auditor.core.shown import BIDI_SAFE
from auditor.core.types import Message, Prompt, Request, SourceText
from auditor.models.limits import Price
from auditor.tables.columns import Column
from auditor.testing.planted import Planted


def bare(text: str, *, replicate: int = 0, variant: str = "v", form: str = "bare") -> Request:
    return Request(prompt=Prompt(format=form, text=text), replicate=replicate, variant_id=variant)


def chat(text: str, *before: tuple[str, str], form: str = "plain", variant: str = "v", replicate: int = 0) -> Request:
    """A last message of the user, after messages of (role, content)."""
    said = tuple(Message(role=role, content=content) for role, content in (*before, ("user", text)))  # type: ignore[arg-type]
    return Request(prompt=Prompt(format=form, messages=said), replicate=replicate, variant_id=variant)


class Says(Planted):
    """Answers everything alike; costs what its price says."""

    def __init__(self, reply: Reply | CallError, price: Price | None = None, **options: Any) -> None:
        super().__init__(base="constant", **options)
        self.reply, self.price = reply, price
        self.costs = "tokens" if price else "nothing"

    def max_tokens(self, format: str) -> int:
        return 10

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        return [self.reply for _ in batch]


def ask(model: Any, *requests: Request) -> list[Any]:
    async def go() -> list[Any]:
        try:
            return list(await model.generate(list(requests)))
        finally:
            await model.aclose()

    return asyncio.run(go())


GOAL = "Do film reviews by women get another sentiment?"


def films(n: int = 16, more: str = "", label: str | None = None, name: str = "s") -> list[SourceText]:
    """Texts about a man, for sessions of the agent."""
    text = "A man in row {} liked the film. {}He bought the book and the coat in the morning."
    return [SourceText(id=f"{name}{i}", text=text.format(i, more), label=label) for i in range(n)]


ROLES = ["clerk", "pilot", "nurse", "baker", "judge", "guard", "singer", "tutor", "miner", "vet"]
PLACES = ["in the harbour", "at the mill", "on the hill", "near the bridge", "by the station", "at the market"]
LIKES = ["the film", "the song", "the story", "the city", "the village", "cake"]  # placebo edits change these words
THINGS = ["bag", "hat", "phone", "bicycle", "car", "boat", "photo"]


def workers(n: int, text: str) -> list[SourceText]:
    """Texts about people at work: ``text`` with a {role}, a {place}, what they {like} and a {thing}."""
    pairs = [(role, place) for place in PLACES for role in ROLES][:n]
    return [
        SourceText(id=f"s{i}", text=text.format(role=role, place=place, like=LIKES[i % 6], thing=THINGS[i % 7]))
        for i, (role, place) in enumerate(pairs)
    ]


def column(name: str, codes: int, **more: Any) -> Column:
    """A column of whole numbers."""
    return Column(name=name, kind="integer", codes=codes, **more)


def csv_file(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def controls(text: str) -> list[str]:
    """The signs of a text that could act on what shows it; line breaks and safe marks of direction do not."""
    signs = sorted(set(text) - BIDI_SAFE - {"\n"})
    return [sign for sign in signs if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
