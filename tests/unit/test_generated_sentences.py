"""Sentences that once went wrong, through ``audit generate``: what a run would ask of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.cli.main import main
from auditor.testing import SENTENCES, Failure, check_kept


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
    assert check_kept(kept, [one for one in SENTENCES if one.subject == subject]) == []


def test_the_suite_tells_what_is_missing_and_what_is_wrong() -> None:
    assert {failure.fixture for failure in check_kept({})} == {one.id for one in SENTENCES if one.kept}
    wrong = {one.id: [*one.kept, f"So {one.never[0]}."] for one in SENTENCES if one.never}
    found = check_kept(wrong, [one for one in SENTENCES if one.never])
    assert [failure.fixture for failure in found] == [one.id for one in SENTENCES if one.never]
    assert all(isinstance(failure, Failure) for failure in found)
