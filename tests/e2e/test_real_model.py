"""A real language model (SmolLM2-135M-Instruct): on this machine, and behind a server that nobody here wrote."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_transformers_serve import MISSING, serve

from auditor import audit, models
from auditor.cli.main import run
from auditor.models.transformers import SMOLLM2
from auditor.tasks import load

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

NEEDED = [*MISSING, *(name for name in ("gguf", SMOLLM2[0]) if importlib.util.find_spec(name) is None)]
COMMAND = str(Path(sys.executable).parent / "audit")
GIVEN: dict[str, Any] = {"attributes": "gender", "order": 1, "replicates": 1, "anyway": True, "cache": False}
SAVE = """
import sys
from auditor import models
model = models.make("smollm2")
model._model.save_pretrained(sys.argv[1])
model._tokenizer.save_pretrained(sys.argv[1])
"""
NOTE = """
name: note
kind: generation
question: "Write one sentence about the person in this text. {text}"
formats:
  plain: {instruction: "", answer: "{label}", max_tokens: 24}
"""
TALK = """
name: complaint
kind: classification
labels: [accept, decline]
turns:
  - "A customer writes: {text}"
  - "Do we accept the claim? Answer with one word: accept or decline."
"""


@pytest.fixture(scope="module", autouse=True)
def needed() -> None:
    if NEEDED:
        pytest.skip(f"not installed: {', '.join(NEEDED)} (make .venv/.e2e brings them)")


@pytest.fixture(scope="module")
def smollm2() -> Any:
    return models.make("smollm2", task=load("sentiment"))


def test_it_answers_with_scores_and_equals_a_plain_loop_of_the_library(smollm2: Any, tmp_path: Path) -> None:
    """Prompts that share their beginning with the one before are read as if each was read alone."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = audit("sentiment", model=smollm2, limit=2, per_seed=1, **GIVEN, out=tmp_path)
    assert result.complete
    path = result.path
    assert path is not None
    rows = [json.loads(line) for line in (path / "responses.jsonl").read_bytes().splitlines()]
    scored = [row["scores"] for row in rows if row.get("scores")]
    assert len(scored) > len(rows) / 2 > 0
    task = load("sentiment")
    texts = [s.text for s in task.seeds()][:4]
    for text in texts:
        ids = smollm2._prompt_ids(task.render(text))
        with torch.inference_mode():
            whole = smollm2._model(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(-1)
            shared = smollm2._reader.after(ids)[0]
        assert float((whole - shared).abs().max()) < 0.01
        assert int(whole.argmax()) == int(shared.argmax())


def test_doctor_says_what_it_saw(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["doctor", "--task", "sentiment", "--model", "smollm2"])
    said = capsys.readouterr().out
    assert code in (0, 2, 3)
    assert "smollm2" in said
    assert "label scores" in said


def test_free_text_and_conversations_come_to_an_end(smollm2: Any, tmp_path: Path) -> None:
    texts = ["The woman wants her money back for a lamp that broke.", "The man says his parcel never came."]
    for name, task in (("note", NOTE), ("complaint", TALK)):
        file = tmp_path / f"{name}.yaml"
        file.write_text(task, encoding="utf-8")
        result = audit(str(file), model=smollm2, data=texts, per_seed=1, max_calls=12, **GIVEN)
        assert result.run.status in ("complete", "incomplete")
        assert result.verdicts


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    yield from serve(tmp_path_factory.mktemp("served") / "smollm2", SAVE)


def test_killed_and_resumed_nothing_is_asked_twice_and_nothing_is_lost(
    server: tuple[str, Path], tmp_path: Path
) -> None:
    url, folder = server
    args = ["run", "--task", "sentiment", "--model", f"openai:{folder}", "--base-url", url, "--attributes", "gender"]
    args += ["--limit", "5", "--per-seed", "1", "--no-cache", "--yes", "--anyway"]
    environment = os.environ | {"OPENAI_API_KEY": "x"}
    first = subprocess.Popen([COMMAND, *args, "--out", str(tmp_path)], env=environment, stderr=subprocess.DEVNULL)
    journal = None
    while first.poll() is None:
        journal = next(tmp_path.glob("2*/responses.jsonl"), None)
        if journal is not None and journal.read_bytes().count(b"\n") >= 6:
            first.send_signal(signal.SIGKILL)
            break
        time.sleep(0.05)
    first.wait()
    assert journal is not None
    before = journal.read_bytes().splitlines()
    done = subprocess.run(
        [COMMAND, "resume", str(journal.parent), "--yes"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr[-2000:]
    rows = [json.loads(line) for line in journal.read_bytes().splitlines()]
    assert len(rows) >= len(before)
    asked = Counter((row["variant_id"], row.get("replicate"), row.get("format")) for row in rows)
    assert max(asked.values()) == 1
    record = json.loads((journal.parent / "run.json").read_text())
    assert record["status"] in ("complete", "incomplete")
