"""Sentences that once went wrong, through ``audit generate``: what a run would ask of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from auditor.cli.main import main


class Sentence(msgspec.Struct, frozen=True):
    """One text, variants that a run must keep, and phrases that none may contain."""

    id: str
    text: str
    kept: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    subject: bool = False


SENTENCES = msgspec.yaml.decode(
    Path(__file__).with_name("generated_sentences.yaml").read_bytes(), type=tuple[Sentence, ...]
)


def problems(kept: Mapping[str, Sequence[str]], sentences: Iterable[Sentence]) -> list[tuple[str, str]]:
    """Return the sentences whose texts lack a good variant or include a bad one."""
    found = []
    for one in sentences:
        texts = kept.get(one.id, ())
        found += [(one.id, f"{text!r} is missing") for text in one.kept if text not in texts]
        for phrase in one.never:
            if re.search(rf"(?<!\w){re.escape(phrase)}", "\n".join(texts).lower()):
                found.append((one.id, f"contains {phrase!r}"))
    return found


def generated(folder: Path, task: str, *, subject: bool) -> dict[str, list[str]]:
    """What ``audit generate`` keeps of the sentences, by id."""
    data, out = folder / "data.jsonl", folder / "out"
    chosen = [one for one in SENTENCES if one.subject == subject]
    data.write_text("".join(json.dumps({"id": one.id, "text": one.text}) + "\n" for one in chosen), encoding="utf-8")
    options = ["--task", task, "--data", str(data), "--order", "1", "--per-seed", "0", "--out", str(out)]
    with pytest.raises(SystemExit) as done:
        main(["generate", *options])
    assert not done.value.code
    kept: dict[str, list[str]] = {one.id: [] for one in chosen}
    by_text = {one.text: one.id for one in chosen}
    (file,) = out.glob("*/cases.jsonl")
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        name = by_text.get(case["original"]["input"])
        if name is not None:  # else a line with a name stands before the text
            kept[name] += [v["input"] for v in case["variants"] if v["valid"]]
    return kept


@pytest.mark.parametrize(("task", "subject"), [("sentiment", False), ("hiring", True)])
def test_a_run_asks_the_good_variants_and_none_that_is_wrong(
    task: str, subject: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = generated(tmp_path, task, subject=subject)
    capsys.readouterr()
    assert problems(kept, [one for one in SENTENCES if one.subject == subject]) == []


def test_missing_and_wrong_variants_are_seen() -> None:
    assert {name for name, _ in problems({}, SENTENCES)} == {one.id for one in SENTENCES if one.kept}
    wrong = {one.id: [*one.kept, f"So {one.never[0]}."] for one in SENTENCES if one.never}
    found = problems(wrong, [one for one in SENTENCES if one.never])
    assert [name for name, _ in found] == [one.id for one in SENTENCES if one.never]
