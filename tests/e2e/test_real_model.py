"""A real language model (SmolLM2-135M-Instruct) on this machine."""

from __future__ import annotations

import importlib.util
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from auditor import audit, models
from auditor.cli.main import run
from auditor.models.transformers import SMOLLM2
from auditor.tasks import load

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

NEEDED = [name for name in ("torch", "transformers", "gguf", SMOLLM2[0]) if importlib.util.find_spec(name) is None]
GIVEN: dict[str, Any] = {"attributes": "gender", "order": 1, "replicates": 1, "anyway": True, "cache": False}


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
