from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.core.errors import DataFileError
from auditor.tasks import load
from auditor.tasks.load import available

GOOD = json.dumps({"text": "A superb novel.", "changed": "A dreadful novel."})
TASK = """
format: 1
name: novels
kind: classification
labels: [good, bad]
question: Is the novel good or bad? {input}
formats:
  plain: {answer: "{label}"}
  json: {answer: '{"label": {json}}'}
"""


@pytest.mark.parametrize("name", available())
def test_every_task_that_comes_with_the_tool_has_eight_pairs_of_different_texts(name: str) -> None:
    task = load(name)
    pairs = task.controls
    assert len(pairs) == (12 if name == "judge" else 8)  # those of the judge measure its error
    texts = [text for pair in pairs for text in pair]
    assert all(first != second for first, second in pairs)
    prompts = {task.render(text, task.default_format).sha256 for text in texts}
    assert len(prompts) == len(set(texts))
    seeds = task.seeds() if task.seeds_path is not None else []
    assert not {seed.text for seed in seeds} & set(texts)


def own(tmp_path: Path, controls: str, extra: str = "") -> Path:
    (tmp_path / "pairs.jsonl").write_text(controls, encoding="utf-8")
    file = tmp_path / "novels.yaml"
    file.write_text(TASK + "controls: pairs.jsonl\n" + extra, encoding="utf-8")
    return file


def test_a_task_file_names_its_own_control_texts(tmp_path: Path) -> None:
    pairs = load(own(tmp_path, f"\ufeff{GOOD}\n\n")).controls
    assert list(pairs) == [("A superb novel.", "A dreadful novel.")]


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        (GOOD + "\nno json", "line 2: no JSON"),
        ("[1]", "line 1: not an object"),
        ('{"text": "a"}', "field changed: this field is missing"),
        ('{"text": "a", "changed": 3}', "field changed: .* valid string"),
        ('{"text": " ", "changed": "a"}', "field text: is blank"),
        ('{"text": "a", "changed": "a"}', "both texts are equal"),
        ('{"text": "a", "changed": "b", "label": "good"}', "field label: no such field"),
        ("\n \n", "no control texts"),
    ],
)
def test_a_bad_file_is_named_with_line_and_field(tmp_path: Path, controls: str, message: str) -> None:
    with pytest.raises(DataFileError, match=message) as caught:
        load(own(tmp_path, controls))
    assert "pairs.jsonl" in str(caught.value)


def test_texts_that_differ_only_beyond_the_truncation(tmp_path: Path) -> None:
    controls = json.dumps({"text": "one two three four", "changed": "one two three five"})
    with pytest.raises(DataFileError, match="truncation"):
        load(own(tmp_path, controls, "truncation: {words: 3}\n"))
    assert load(own(tmp_path, controls, "truncation: {words: 4}\n")).controls
