"""The wheel in a clean environment, outside the checkout: a working ``audit`` with all its data."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path | None = None, **env: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "AUDIT", "VIRTUAL"))} | env
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_the_wheel_carries_the_data_and_runs_in_a_clean_environment(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind in ("prompts", "dictionaries", "grammars"):
        for path in sorted((ROOT / kind).rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                assert f"auditor/_data/{kind}/{path.relative_to(ROOT / kind)}" in names
    assert "auditor/embedded/parser/tok2vec/model" in names
    assert "auditor/embedded/seeds/sentiment.jsonl" in names
    assert any(name.startswith("auditor/embedded/reviews/weights") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "reports/")) for name in names)
    assert wheel.stat().st_size < 30_000_000

    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv)
    pip = (venv / "bin" / "python", "-m", "pip")
    run(*pip, "install", "-q", "--no-compile", "-c", ROOT / "constraints.txt", wheel)
    out = run(venv / "bin" / "audit", "--task", "sentiment", "--limit", "30", cwd=tmp_path)
    assert "reviews" in out
    assert (next((tmp_path / "reports").glob("*/report.html"))).stat().st_size > 10_000
    # The parts that need an extra say which.
    told = subprocess.run(
        [str(venv / "bin" / "audit"), "--task", "sentiment", "--data", "hf:imdb"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 2
    assert 'pip install "llm-bias-auditor[datasets]"' in told.stderr
