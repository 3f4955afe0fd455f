"""The suite of docs/extending/suite.md as a package of its own: found by its entry point, run by every command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/extending/suite.md").read_text(encoding="utf-8")


def block(language: str, begins: str) -> str:
    """The block of the page that begins so."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(next(code for code in found if code.startswith(begins)))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``pip install`` leaves: the module, and the folder that names its entry points."""
    import tomllib

    folder = tmp_path_factory.mktemp("site")
    (folder / "acme_titles.py").write_text(block("python", '"""acme_titles.py'), encoding="utf-8")
    told = tomllib.loads(block("toml", "[project]"))["project"]
    info = folder / "acme_titles-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {told['name']}\nVersion: {told['version']}\n"
    )
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items())
        for group, entries in told["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n[auditor.renderers]\nacme.v1 = gone:Gone\n")
    return folder


def call(place: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("audit")), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(place), "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_page_runs_as_it_stands(place: Path, tmp_path: Path) -> None:
    commands = re.findall(r"^\$ audit (.*)$", block("console", "$ audit plugins"), re.MULTILINE)
    assert len(commands) == 2
    listed, ran = (call(place, tmp_path, *command.split()) for command in commands)
    assert listed.returncode == 0, listed.stderr
    row = next(line for line in listed.stdout.splitlines() if "acme/titles.v1" in line)
    assert row.split() == ["acme/titles.v1", "acme-titles", "1.0", "acme_titles:Titles"]
    assert "renderer 'acme.v1'" in listed.stdout  # what does not load is told, and the rest is listed
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("sentiment · reviews · 40 texts")
    assert "title" in ran.stdout

    (folder,) = (p for p in (tmp_path / "reports").iterdir() if p.is_dir())
    record = json.loads((folder / "run.json").read_text("utf-8"))
    assert record["counts"]["seeds"] == 40
    assert record["counts"]["discarded"] == 0
    assert record["provenance"]["plugin"] == {"suite": "acme/titles.v1", "from": "acme-titles 1.0"}
    assert {tuple(e["attributes"]) for e in record["estimates"]} >= {("title",)}
    checked = call(place, tmp_path, "verify", str(folder))
    assert checked.returncode == 0, checked.stderr + checked.stdout
    assert call(place, tmp_path, "resume", str(folder)).returncode == 0
    rendered = call(place, tmp_path, "report", str(folder), "--format", "md,csv,sarif,eu-ai-act")
    assert rendered.returncode == 0, rendered.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--suite", "acme/title"], "Did you mean acme/titles?"),
        (["--suite", "acme/titles", "--jobs", "2"], "leave --jobs and --engine out"),
        (["--suite", "acme/titles", "--protocol", "hinter"], "leave --suite acme/titles out"),
        (["--suite", "hinter"], "--protocol hinter"),
    ],
)
def test_what_cannot_be_is_told(place: Path, tmp_path: Path, words: list[str], told: str) -> None:
    done = call(place, tmp_path, "--task", "sentiment", "--model", "vader", *words)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split())
    assert not (tmp_path / "reports").exists()
