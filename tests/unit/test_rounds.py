"""Where rounds come from changes nothing about them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor import audit
from auditor.run import workers
from auditor.store.integrity import verify_folder
from auditor.store.journal import read

OPTIONS: dict[str, Any] = {"model": "reviews", "limit": 40, "attributes": ("gender", "race"), "per_seed": 3}
TIMES = {"provenance", "id", "journal"}


def figures(record: dict[str, Any]) -> str:
    """The record without times and without what names the engine."""
    plain = {k: v for k, v in record.items() if k not in TIMES}
    plain["spec"] = {k: v for k, v in plain["spec"].items() if k not in ("engine", "jobs", "out")}
    return json.dumps(plain, sort_keys=True, default=str)


def run(**options: Any) -> tuple[str, list[dict[str, Any]]]:
    """Figures of a run, and what it wrote about its cases."""
    result = audit("sentiment", **OPTIONS, **options)
    assert result.path is not None
    assert not verify_folder(result.path)
    return figures(result.record), list(read(result.path / "cases.jsonl"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    return run(out=str(tmp_path_factory.mktemp("alone")))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["2", "ray:2"])
def test_workers_make_the_same_run(alone: object, jobs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if jobs != "2":
        pytest.importorskip("ray", reason="the extra ray is not installed")
    monkeypatch.setattr(workers, "CHUNK", 6)  # each gets several
    assert run(jobs=jobs, out=str(tmp_path)) == alone


def test_discarded_variants_are_asked_and_kept_apart() -> None:
    plain = audit("sentiment", model="reviews", limit=30, attributes=("gender",)).record
    both = audit("sentiment", model="reviews", limit=30, attributes=("gender",), test_discarded=True).record
    assert both["discarded"]["rows"][0]["estimate"]["n_variants"] > 0
    assert "discarded" not in plain
    assert both["estimates"] == plain["estimates"]
    assert [f["id"] for f in both["findings"]] == [f["id"] for f in plain["findings"]]
    assert both["counts"]["calls"] > plain["counts"]["calls"] or both["counts"]["cached"] > 0


def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    """Each worker runs the script again, tries to start workers of its own and dies."""
    script = tmp_path / "script.py"
    script.write_text("from auditor import audit\naudit('sentiment', model='vader', limit=5, jobs=2)\n")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 1
    assert 'if __name__ == "__main__"' in done.stderr.splitlines()[-1]
    assert "BrokenProcessPool" not in done.stderr
