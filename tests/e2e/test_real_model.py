"""A real language model (SmolLM2-135M-Instruct) through ``hf:`` and through ``transformers serve``."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_transformers_serve import serve

from auditor import models
from auditor.models.transformers import SMOLLM2
from auditor.tasks import load

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

NEEDED = [
    name
    for name in ("torch", "transformers", "gguf", "fastapi", "uvicorn", SMOLLM2[0])
    if importlib.util.find_spec(name) is None
]
PROMPTS = Path(__file__).parents[2] / "prompts"
AUDIT = str(Path(sys.executable).parent / "audit")
PLAN = ["--attributes", "gender", "--order", "1", "--per-seed", "1", "--yes", "--anyway", "--no-cache", "--out", "."]
# The model as the spec `smollm2` loads it, unpacked once: reading the GGUF file takes most of a minute.
UNPACK = """
import sys
from auditor import models, tasks
made = models.make("smollm2", task=tasks.load("sentiment"))
made._model.hf_quantizer = None
if hasattr(made._model.config, "quantization_config"):
    del made._model.config.quantization_config
made._model.save_pretrained(sys.argv[1])
made._tokenizer.save_pretrained(sys.argv[1])
"""


def short(name: str, kind: str, question: str, instruction: str, tokens: int, **more: Any) -> str:
    """A task with prompts of forty tokens: those of `sentiment` have three hundred."""
    form = {"instruction": instruction, "answer": "{label}", "max_tokens": tokens}
    told = {"format": 1, "name": name, "kind": kind, "description": "A task with short prompts."}
    told |= {"question": f"{question}\n\n{{input}}\n", "input": {"tag": None}, "truncation": None, "examples": []}
    return json.dumps(told | {"temperature": 0, "default_format": "plain", "formats": {"plain": form}} | more)


OPINION = short(
    "opinion", "classification", "Is this positive or negative?", "Answer with one word.", 4,
    labels=[{"name": "negative"}, {"name": "positive"}], favourable=None,
)  # fmt: skip
NOTE = short("note", "generation", "Write one sentence about this person.", "Be short.", 12)
SAID = (
    "The woman was pleased with the soup.", "A girl was bored with the film.", "The man was happy with the room.",
    "My sister was unhappy with the train.", "A boy was delighted with the garden.", "The lady was cross with the letter.",
    "My father was content with the music.", "The actress was angry with the bill.",
)  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address of the served model, and the folder of its weights."""
    if NEEDED:
        pytest.skip(f"not installed: {', '.join(NEEDED)} (make .venv/.e2e brings them)")
    yield from serve(tmp_path_factory.mktemp("real") / "smollm2", UNPACK)


def audit(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OPENAI_API_KEY": "none", "OMP_NUM_THREADS": "1"}
    command = [AUDIT, *argv]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=1800, check=False)


def texts(path: Path) -> Path:
    path.write_text("\n".join(["text", *SAID]) + "\n")
    return path


def rows(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("2*/responses.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def record(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("2*/run.json")
    return dict(json.loads(path.read_bytes()))


def test_prompts_that_begin_alike_are_read_as_if_each_was_read_alone(served: tuple[str, Path]) -> None:
    import torch

    task = load("sentiment")
    made: Any = models.make(f"hf:{served[1]}", task=task)
    for text in [s.text for s in task.seeds()][:4]:
        ids = made._prompt_ids(task.render(text, "json"))
        with torch.inference_mode():
            whole = made._model(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(-1)
            shared = made._reader.after(ids)[0]
        assert float((whole - shared).abs().max()) < 0.01
        assert int(whole.argmax()) == int(shared.argmax())


def test_doctor_and_a_run_with_scores_of_labels(served: tuple[str, Path], tmp_path: Path) -> None:
    """Asked for JSON, the model says "positive" of every review, and its log odds tell good reviews from bad ones."""
    spec = f"hf:{served[1]}"
    said = audit("doctor", "--task", "sentiment", "--model", spec, cwd=tmp_path)
    assert said.returncode in (0, 3), said.stderr
    assert "label scores" in said.stdout
    argv = ["run", "--task", "sentiment", "--model", spec, "--formats", "json", "--limit", "1", *PLAN]
    done = audit(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = record(tmp_path)
    assert made["status"] == "complete"
    (control,) = made["controls"]["positive_control"].values()
    assert control["seen"]
    assert control["low"] > 0
    scored = [row["scores"] for row in rows(tmp_path) if row.get("scores")]
    assert len(scored) > len(rows(tmp_path)) / 2


def test_a_server_is_asked_for_labels_free_text_and_a_conversation(served: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = served
    asked = ["--model", f"openai:{folder}", "--base-url", url, "--limit", "1", "--wordings", "1", *PLAN]
    (tmp_path / "note.yaml").write_text(NOTE)
    (tmp_path / "opinion.yaml").write_text(OPINION)
    (tmp_path / "talk.yaml").write_text((PROMPTS / "support.yaml").read_text())  # no texts of a control beside it
    texts(tmp_path / "texts.csv")
    for name, options in {
        "labels": ["--task", "../opinion.yaml", "--data", "../texts.csv"],
        "free": ["--task", "../note.yaml", "--data", "../texts.csv"],
        "talk": ["--task", "../talk.yaml", "--data", "../texts.csv", "--formats", "brief", "--server", "max_tokens=8"],
    }.items():
        out = tmp_path / name
        out.mkdir()
        done = audit("run", *options, *asked, "--replicates", "1", cwd=out)
        assert done.returncode in (0, 3), done.stderr
        answered = rows(out)
        assert answered, name
        assert not [row for row in answered if row.get("error")], name
        (spent,) = out.glob("2*/spent.json")
        assert json.loads(spent.read_bytes())["calls"] >= len(answered)


def test_a_run_that_was_killed_goes_on_and_asks_nothing_twice(served: tuple[str, Path], tmp_path: Path) -> None:
    (tmp_path / "opinion.yaml").write_text(OPINION)
    data = texts(tmp_path / "texts.csv")
    argv = ["run", "--task", "opinion.yaml", "--data", str(data), "--model", f"hf:{served[1]}", *PLAN]
    process = subprocess.Popen([AUDIT, *argv], cwd=tmp_path)
    deadline = time.monotonic() + 1800
    while time.monotonic() < deadline and process.poll() is None:
        written = [*tmp_path.glob("2*/responses.jsonl")]
        if written and written[0].read_bytes().count(b"\n") >= 4:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.05)
    assert process.wait() == -signal.SIGKILL
    before = {(row["prompt_sha256"], row["replicate"]) for row in rows(tmp_path)}
    assert len(before) >= 4
    (run,) = tmp_path.glob("2*")
    done = audit("resume", str(run), "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    counted = Counter((row["prompt_sha256"], row["replicate"]) for row in rows(tmp_path))
    assert before < counted.keys()
    assert max(counted.values()) == 1
    assert record(tmp_path)["status"] == "complete"
