"""What SG adds to the record and to both reports, and options on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from auditor.cli.main import run as audit

pytest.importorskip("sklearn", reason="the extra `tabular` is not installed")
sio = pytest.importorskip("skops.io", reason="the extra `tabular` is not installed")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from sklearn.tree import DecisionTreeClassifier

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    rows = np.stack([rng.integers(0, 12, 400), rng.integers(0, 2, 400), rng.integers(0, 9, 400)], axis=1)
    y = (rows[:, 0] + 3 * rows[:, 1] * (rows[:, 2] > 4) >= 7).astype(int)
    lines = ["x,sex,z,y", *(",".join(map(str, [*r, v])) for r, v in zip(rows.tolist(), y.tolist(), strict=True))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sio.dump(DecisionTreeClassifier(random_state=0).fit(rows, y), tmp_path / "tree.skops")
    return tmp_path


def command(*extra: str) -> int:
    base = ["tabular", "--data", "data.csv", "--target", "y", "--protected", "sex"]
    return audit([*base, "--model", "sklearn:tree.skops", *extra])


def page() -> str:
    (folder,) = Path("reports").glob("2*")
    return (folder / "report.html").read_text(encoding="utf-8")


def test_sg_is_reported(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lime", reason="the extra `tabular` is not installed")
    extra = ["--method", "sg", "--protocol", "sg", "--set", "limit=60", "--set", "samples=200"]
    assert command(*extra, "--full") == 0
    text = " ".join(capsys.readouterr().out.split())
    (folder,) = Path("reports").glob("2*")
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    section = record["tabular"]
    assert section["options"]["neighbourhood"] == "marginal"
    assert section["details"]["phases"]["seed"]["generated"] > 0
    assert section["details"]["solver"]["closed_form"] > 0
    for shown in (text, page()):
        assert "their number is not a rate" in shown


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--retrain"], "--retrain was removed in 0.3; use audit augment RUN"),
        (["--method", "sg", "--seed-source", "data"], "--seed-source was removed in 0.3; sg starts from clusters"),
        (["--max-calls", "5"], "--max-calls goes with --task"),
    ],
)
def test_what_cannot_run(place: Path, capsys: pytest.CaptureFixture[str], extra: list[str], message: str) -> None:
    assert command(*extra) == 2
    assert message in " ".join(capsys.readouterr().err.split())
