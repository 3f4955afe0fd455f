"""Algorithm 4 from a grammar run to the table: occupations that a planted model moves are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor import audit
from auditor.cli.main import run as command
from auditor.contrib.astraea.group_scores import group_report
from auditor.core.errors import ConfigError, UnknownPlugin, UserError
from auditor.core.types import digest
from auditor.perturb import grammar
from auditor.store.folder import RunFolder


def leaning(text: str) -> Any:
    """p(his) that differs by sentence a little, and by two occupations a lot."""
    p = 0.5 + 0.1 * (int(digest(text, size=3), 16) / 0xFFFFFF - 0.5)
    p += -0.3 if "registered nurse" in text.lower() else 0.3 if "truck driver" in text.lower() else 0.0
    return {"his": p, "her": 1 - p}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = audit(
        "fill-mask",
        model=leaning,
        suite="grammar",
        suite_options=["generation=rand"],
        per_seed=None,
        order=1,
        limit=40,
        out=tmp_path_factory.mktemp("runs"),
    )
    assert result.path is not None
    return result.path


def test_the_planted_occupations_and_no_others(path: Path) -> None:
    with RunFolder.open(path) as folder:
        her, his = group_report(folder, attribute="occupation", rounds=1999)
    assert (her.score, his.score) == ("p(her)", "p(his)")
    assert len(his.groups) == 43
    assert his.paired
    assert {g.n for g in his.groups} == {40}
    assert {g.name for g in his.groups if g.stands_out} == {"registered_nurse", "truck_driver"}
    signs = {g.name: g.index for g in his.groups if g.stands_out}
    assert signs["registered_nurse"] is not None
    assert signs["registered_nurse"] < -2 < 2 < (signs["truck_driver"] or 0)
    assert [g.mean + h.mean for g, h in zip(his.groups, her.groups, strict=True)] == pytest.approx([1.0] * 43)


def test_the_command(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["show", str(path), "--scores", "occupation"]) == 0
    assert "▲ truck driver" in capsys.readouterr().out
    assert command(["show", str(path), "--scores", "occupation", "--format", "json"]) == 0
    assert [one["score"] for one in json.loads(capsys.readouterr().out)] == ["p(her)", "p(his)"]


def test_a_run_of_the_command_line_has_every_group_in_every_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted_leaning.py").write_text(
        "from zlib import crc32\ndef leaning(text):\n"
        "    p = 0.9 if 'plumber' in text else 0.5 + crc32(text.encode()) % 7 / 100\n"
        "    return {'his': p, 'her': 1 - p}\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    options = ["--model", "python:planted_leaning:leaning", "--out", str(tmp_path / "runs"), "--limit", "9"]
    options += ["--task", "fill-mask", "--suite", "grammar", "--suite-option", "generation=rand"]
    options += ["--per-seed", "0", "--order", "1"]
    assert command(options) == 0
    capsys.readouterr()
    argv = ["show", str(tmp_path / "runs" / "latest"), "--scores", "occupation", "--format", "json"]
    assert command(argv) == 0
    her, his = json.loads(capsys.readouterr().out)
    assert (her["score"], his["score"]) == ("p(her)", "p(his)")
    assert len(his["groups"]) == 43
    assert {g["n"] for g in his["groups"]} == {9}
    assert {g["name"] for g in his["groups"] if g["stands_out"]} == {"plumber"}
    [made] = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    with RunFolder.open(made) as folder:
        frames = {str(c.original.input).replace(_job(c.original), "") for c, _ in folder.cases()}
    assert len(frames) == 9, "two cases hold the same sentences"


def _job(original: Any) -> str:
    return " ".join(("the", *original.groups["occupation"].split("_")))


def test_the_grammar_has_as_many_occupations_as_the_published_study() -> None:
    assert len(grammar.load("fill-mask").rules["person"].groups) == 43


def test_directed_cases_do_not_count(tmp_path: Path) -> None:
    result = audit(
        "fill-mask",
        model=leaning,
        suite="grammar",
        per_seed=None,
        order=1,
        limit=20,
        suite_options=["generation=prob"],
        out=tmp_path,
    )
    assert result.path is not None
    with RunFolder.open(result.path) as folder:
        drawn = [case for case, _ in folder.cases() if case.sampling == "iid"]
        found = group_report(folder, attribute="occupation", labels=["his"], rounds=99)[0]
    assert 0 < len(drawn) < 20
    assert {g.n for g in found.groups} == {len(drawn)}


def test_what_cannot_be_compared(path: Path, tmp_path: Path) -> None:
    with RunFolder.open(path) as folder:
        with pytest.raises(ConfigError, match="fewer than two groups"):
            group_report(folder, attribute="race")
        with pytest.raises(UnknownPlugin):
            group_report(folder, attribute="occupation", labels=["theirs"])
    plain = audit(
        "fill-mask", model=lambda text: "his", suite="grammar", limit=3, suite_options=["generation=rand"], out=tmp_path
    )
    assert plain.path is not None
    with RunFolder.open(plain.path) as folder, pytest.raises(UserError, match="no scores"):
        group_report(folder, attribute="occupation")
