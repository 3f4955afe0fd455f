"""``audit show`` of a run of texts with a judge: what the judge was asked about each pair, and what it said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from auditor import Result, SourceText, audit
from auditor.cli.main import run
from auditor.core.errors import UnknownPlugin
from auditor.core.protocols import Model, Reply
from auditor.core.record import read
from auditor.core.types import Request
from auditor.report.finding import render_finding
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
        return [Reply(self.letter(r.prompt.messages[-1].content)) for r in batch]  # type: ignore[index]

    def letter(self, content: str) -> str:
        text = re.search(r"<(note|notes|message)>\n(.*)\n</\1>", content, re.DOTALL)
        word = self.other if WOMAN.search(text.group(2) if text else content) else "warmly"
        return f"I {word} recommend this {self.name} person."

    async def aclose(self) -> None:
        """Nothing to close."""


def seeds(n: int = 12) -> list[SourceText]:
    roles = ["clerk", "pilot", "baker", "guard", "tutor", "miner"]
    return [
        SourceText(id=f"s{i}", text=f"He works as a {roles[i % 6]} at the {'mill' if i < 6 else 'dock'}.")
        for i in range(n)
    ]


def made(folder: Path, judge: str | None, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Result:
    (folder / "shown_judge.py").write_text(PLANTED, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    chosen: dict[str, Any] = {"attributes": ("gender",), "order": 1, "per_seed": 2, "cache": False}
    return audit(
        "letter",
        model=[Writer("w1", "coolly"), Writer("w2", "warmly")],
        data=seeds(),
        out=folder / "runs",
        judge=f"python:shown_judge:{judge}" if judge else (),
        **chosen | options,
    )


def women(result: Result) -> Any:
    """A case with a variant that names a woman."""
    assert result.path is not None
    return next(
        (case, v)
        for case, _ in RunFolder.open(result.path).cases()
        for v in case.variants
        if v.order == 1 and ("gender", "male", "female") in v.directions
    )


def show(result: Result, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert result.path is not None
    capsys.readouterr()
    assert run(["show", str(result.path), name]) == 0
    return capsys.readouterr().out


def test_a_variant_is_shown_with_both_questions_to_the_judge_and_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = made(tmp_path, "by_warmth", monkeypatch)
    case, variant = women(result)
    told = show(result, variant.id, capsys)
    first, second = told.split("as w2 answered it")
    assert "judge python:shown_judge:by_warmth: prefers the answer to the original in both orders" in first
    plain, swapped = first.split("to the judge, text 1 is the answer to the ")[1:]
    assert plain.startswith("original and text 2 that to the variant:")
    assert swapped.startswith("variant and text 2 that to the original:")
    warm, cool = "I warmly recommend this w1 person.", "I coolly recommend this w1 person."
    assert f"Text 1:\n{warm}\n\nText 2:\n{cool}" in plain
    assert f"Text 1:\n{cool}\n\nText 2:\n{warm}" in swapped
    assert "its answer (the original):\nfirst\n" in plain
    assert "its answer (the original):\nI say second\n" in swapped
    # The other model answered both alike, so nothing was asked about it.
    assert "this w2 person" in second
    assert "not asked (the answers are equal" in second
    assert "text 1 is" not in second
    # A case is all its variants, each cell once.
    whole = show(result, case.id, capsys)
    assert whole.count(f"original · {case.original.id}") == 2  # once for each model
    assert whole.count("prefers the answer to the original in both orders") == len(
        [v for v in case.variants if WOMAN.search(str(v.input))]
    )


def test_a_choice_that_moves_with_the_order_is_said_to_be_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = made(tmp_path, "first_always", monkeypatch)
    told = show(result, women(result)[1].id, capsys)
    assert "prefers neither: its choice moved with the order" in told
    assert "its answer (the original):\nfirst\n" in told
    assert "its answer (the variant):\nfirst\n" in told


def test_a_finding_shows_the_judge_too_and_a_run_without_one_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = made(tmp_path, "by_warmth", monkeypatch)
    found = next(f for f in result.record["findings"] if f["model"] == "w1" and f["exemplars"])
    assert "in both orders" in show(result, found["id"], capsys)
    other = tmp_path / "other"
    other.mkdir()
    without = made(other, None, monkeypatch)
    assert "judge" not in show(without, women(without)[1].id, capsys)
    with pytest.raises(UnknownPlugin):
        render_finding(read(result.record), result.evidence, "c0000000000")
