"""``audit show`` of a run of texts with a judge: what the judge was asked about each pair, and what it said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commands import Capture, Patch, said

from auditor import Result, audit
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request
from auditor.store.folder import RunFolder

WOMAN = re.compile(r"\b(she|her|woman)\b", re.IGNORECASE)
PLANTED = """
import re

def pair(messages):
    return messages[-1]["content"].partition("Text 1:")[2].partition("Text 2:")[::2]

def by_warmth(messages):
    warm = ["warmly" in text for text in pair(messages)]
    return "equal" if warm[0] == warm[1] else "first" if warm[0] else "I say second"

def first_always(messages):
    return "first"

for judge in (by_warmth, first_always):
    judge.auditor_style = "chat"
    judge.deterministic = True
"""


class Writer(Model):
    """Letters with another word for women, or the same for all."""

    costs = "nothing"
    max_batch, style, cacheable, deterministic = 64, "chat", False, True

    def __init__(self, name: str, other: str) -> None:
        self.name, self.fingerprint, self.other = name, name, other

    async def generate(self, batch: Sequence[Request]) -> list[Reply]:
        return [Reply(self.letter(r.prompt.messages[-1].content)) for r in batch]

    def letter(self, content: str) -> str:
        text = re.search(r"<(note|notes|message)>\n(.*)\n</\1>", content, re.DOTALL)
        word = self.other if WOMAN.search(text.group(2) if text else content) else "warmly"
        return f"I {word} recommend this {self.name} person."


ROLES = ["clerk", "pilot", "baker", "guard", "tutor", "miner"]
SEEDS = [f"He works as a {role} at the {place}." for place in ("mill", "dock") for role in ROLES]


def made(folder: Path, judge: str | None, monkeypatch: Patch) -> Result:
    folder.mkdir(exist_ok=True)
    (folder / "shown_judge.py").write_text(PLANTED, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    return audit(
        "letter", model=[Writer("w1", "coolly"), Writer("w2", "warmly")], data=SEEDS, out=folder / "runs",
        judge=f"python:shown_judge:{judge}" if judge else (), attributes=("gender",), order=1, per_seed=2, cache=False,
        anyway=True,
    )  # fmt: skip


def women(result: Result) -> Any:
    """A case with a variant that names a woman."""
    return next(
        (case, v)
        for case, _ in RunFolder.open(result.path).cases()
        for v in case.variants
        if v.order == 1 and ("gender", "male", "female") in v.directions
    )


def show(result: Result, name: str, capsys: Capture) -> str:
    code, text = said(capsys, "show", str(result.path), name)
    assert code == 0
    return text


def test_a_variant_is_shown_with_what_the_judge_said_or_that_its_choice_moved(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    result = made(tmp_path, "by_warmth", monkeypatch)
    case, variant = women(result)
    first, second = show(result, variant.id, capsys).split("as w2 answered it")
    told = "judge python:shown_judge:by_warmth: prefers the answer to the original in both orders"
    assert f"{told} (original first: original, variant first: original; judge." in first
    assert "not asked (the answers are equal" in second  # the other model answered both alike
    whole = show(result, case.id, capsys)  # a case is all its variants, each cell once
    assert whole.count(f"original · {case.original.id}") == 2  # once for each model
    assert whole.count(told) == len([v for v in case.variants if WOMAN.search(str(v.input))])
    found = next(f for f in result.record["findings"] if f["model"] == "w1" and f["exemplars"])
    assert "in both orders" in show(result, found["id"], capsys)
    without = made(tmp_path / "without", None, monkeypatch)
    assert "judge" not in show(without, women(without)[1].id, capsys)
    moved = made(tmp_path / "moved", "first_always", monkeypatch)
    neither = "prefers neither: its choice moved with the order (original first: original, variant first: variant;"
    assert neither in show(moved, women(moved)[1].id, capsys)
