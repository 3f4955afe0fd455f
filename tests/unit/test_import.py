"""Recorded answers as a run: files, mapping, what is counted, claims that do not depend on the order of rows."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auditor.cli import main as cli
from auditor.contrib.imports import answer_files, import_run, inference, mapping, observe
from auditor.contrib.imports.mapping import Roles
from auditor.core.errors import DataFileError, UnknownValue
from auditor.core.record.measured import Claim
from auditor.measure.families import claims
from auditor.run.result import load

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "recorded_llm"


def planted(effect: float, *, texts: int = 40, seed: int = 3, placebo: bool = True) -> list[dict[str, str]]:
    """Scores of texts about women and men, half of each at first; an edit costs two points."""
    rng = Random(seed)
    rows = []
    for text in range(texts):
        base, own = rng.gauss(50, 10), ("female", "male")[text % 2]
        versions = [("original", own, 0.0)]
        versions.append(("edited", "male" if own == "female" else "female", -2.0))
        versions += [("placebo", own, -2.0)] if placebo else []
        for arm, gender, edit in versions:
            for run in range(2):
                value = base + edit + (effect if gender == "female" else 0) + rng.gauss(0, 1)
                rows.append(
                    {"text_id": f"t{text}", "arm": arm, "gender": gender, "run": str(run), "score": f"{value:.3f}"}
                )
    return rows


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def net(rows: list[dict[str, str]], path: Path, **roles: Any) -> Claim:
    table = answer_files.read([written(path, rows)])
    found = observe.observe(table, inference.infer(table).model_copy(update=roles))
    return next(c for c in claims(found.table, found.question) if c.family == "net")


def test_roles_are_inferred_written_and_read(tmp_path: Path) -> None:
    table = answer_files.read([written(tmp_path / "a.csv", planted(0))])
    roles = inference.infer(table)
    assert roles.text == ("text_id",)
    assert (roles.answer, roles.kind, roles.replicate, dict(roles.groups)) == (
        "score",
        "number",
        "run",
        {"gender": "gender"},
    )
    assert roles.arm == mapping.Arm(column="arm", original=("original",), placebo=("placebo",))
    (tmp_path / "import.toml").write_text(mapping.dump(roles))
    assert mapping.load(tmp_path / "import.toml") == roles


@pytest.mark.parametrize("effect", [0.0, 4.0])
def test_a_planted_difference_and_none(tmp_path: Path, effect: float) -> None:
    claim = net(planted(effect), tmp_path / "a.csv", references={"gender": "male"})
    assert claim.groups == ("female", "male")
    assert claim.low is not None
    assert claim.high is not None
    assert claim.low < effect < claim.high
    assert claim.verdict == ("shown" if effect else "not_determined")


def test_repeated_contradictory_missing_and_foreign_rows_are_counted(tmp_path: Path) -> None:
    rows = planted(0.0, texts=8)
    extra = [dict(rows[0]), dict(rows[1], score="7"), dict(rows[2], run="9", score=""), dict(rows[3], gender="")]
    table = answer_files.read([written(tmp_path / "a.csv", rows + extra)])
    found = observe.observe(table, inference.infer(table)).counted
    assert (found.rows, found.repeated, found.contradictory, found.empty) == (len(rows) + 4, 1, 1, 1)
    assert found.no_group == 1
    assert (found.texts, found.without_placebo, found.unbalanced) == (8, 0, {"gender": 0})
    roles = inference.infer(table).model_copy(update={"where": {"run": ("0",)}})
    assert observe.observe(table, roles).counted.elsewhere == sum(row["run"] != "0" for row in rows + extra)


def test_two_attributes_in_every_row_are_told_apart(tmp_path: Path) -> None:
    """All four identities of each text, no unchanged one: each attribute is compared within the other."""
    rng = Random(5)
    rows = [
        {
            "text_id": f"t{t}",
            "identity": f"{race} {gender}",
            "score": f"{base + 3 * (race == 'black') + rng.gauss(0, 1):.2f}",
        }
        for t in range(30)
        for base in [rng.gauss(0, 5)]
        for race in ("black", "white")
        for gender in ("woman", "man")
    ]
    table = answer_files.read([written(tmp_path / "a.csv", rows)])
    identities = {
        f"{race} {word}": {"race": race, "gender": gender}
        for race in ("black", "white")
        for word, gender in (("woman", "female"), ("man", "male"))
    }
    roles = inference.infer(table).model_copy(update={"split": {"identity": identities}})
    found = observe.observe(table, roles)
    by = {c.attribute: c for c in claims(found.table, found.question) if c.family == "net"}
    assert set(by) == {"gender", "race"}
    assert by["race"].texts == 30
    assert by["race"].estimate == pytest.approx(3.0, abs=0.6)
    assert by["race"].verdict == "shown"
    assert by["gender"].verdict == "not_determined"


def test_files_of_all_kinds_hold_the_same_rows(tmp_path: Path) -> None:
    rows = [{"text_id": "a", "score": "1"}, {"text_id": "b", "score": "2"}]
    nested = "\n".join(json.dumps({"text_id": r["text_id"], "answer": {"score": int(r["score"])}}) for r in rows)
    (tmp_path / "a.jsonl").write_text(nested)
    (tmp_path / "b.json").write_text(json.dumps({"meta": [1], "results": {"results": rows}}))
    with gzip.open(tmp_path / "c.csv.gz", "wt") as packed:
        packed.write("text_id;score\na;1\nb;2\n")
    text = io.BytesIO()
    with zipfile.ZipFile(text, "w") as archive:
        archive.writestr("inner/d.csv", "text_id,score\na,1\nb,2\n")
    (tmp_path / "d.zip").write_bytes(text.getvalue())
    assert answer_files.read([tmp_path / "a.jsonl"]).columns == {"text_id": ["a", "b"], "answer.score": ["1", "2"]}
    for name in ("b.json", "c.csv.gz", "d.zip"):
        assert answer_files.read([tmp_path / name]).columns == {"text_id": ["a", "b"], "score": ["1", "2"]}, name
    whole = answer_files.read([tmp_path])
    assert len(whole) == 8
    assert whole.columns["answer.score"] == ["1", "2", *[None] * 6]
    assert [s.rows for s in whole.sources] == [2, 2, 2, 2]


def test_answers_are_joined_to_what_was_asked(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text('{"custom_id": "1", "score": 3}\n{"custom_id": "2", "score": 4}\n')
    (tmp_path / "in.jsonl").write_text('{"custom_id": "2", "gender": "female"}\n{"custom_id": "1", "gender": "male"}\n')
    both = answer_files.joined(
        answer_files.read([tmp_path / "out.jsonl"]), answer_files.read([tmp_path / "in.jsonl"]), "custom_id"
    )
    assert both.columns["gender"] == ["male", "female"]
    with pytest.raises(UnknownValue, match=r"--on 'id': no such column.*'custom_id'"):
        answer_files.joined(both, both, "id")


def test_the_command_makes_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.csv", planted(4.0))
    assert cli.run(["import", "a.csv", "--reference", "gender:male", "--name", "ratings"]) == 0
    told = capsys.readouterr()
    assert "Men and boys were given " in told.out
    assert 'answer = "score"' in told.err
    assert "does not say which words name a group" in told.err
    run = next((tmp_path / "reports").glob("2*"))
    result = load(run)
    claim = next(c for c in result.record["claims"] if c["family"] == "net")
    assert claim["groups"] == ["female", "male"]
    assert cli.run(["verify", str(run)]) == 0
    assert cli.run(["report", str(run), "--format", "html,markdown,csv,json"]) == 0
    capsys.readouterr()
    for command in (["import", "a.csv", "--generated", str(run)], ["augment", str(run), "--out", "x.csv"]):
        assert cli.run(command) == 2
        assert "recorded answers without their prompts" in " ".join(capsys.readouterr().err.split())
    assert cli.run(["import", "a.csv", "--map", str(run / import_run.MAP), "--format", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["claims"] == result.record["claims"]


def of_sources(rng: Random, effect: float) -> answer_files.Table:
    """Sixteen sources in eight texts each; each source has a difference of its own, in all of its texts."""
    columns: dict[str, answer_files.Column] = {name: [] for name in ("text_id", "cv", "gender", "score", "run")}
    for cv in range(16):
        own = rng.gauss(effect, 4)
        for text in range(8):
            base = rng.gauss(50, 10)
            for gender, more in (("female", own), ("male", 0.0)):
                row = (f"t{cv}-{text}", f"cv{cv}", gender, f"{base + more + rng.gauss(0, 2):.2f}", "0")
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
    return answer_files.Table(columns=columns, sources=(answer_files.Source(file="x", sha256="", rows=0),))


def test_what_texts_of_one_source_share_is_no_difference_between_groups() -> None:
    roles = Roles(text=("text_id",), answer="score", kind="number", groups={"gender": "gender"}, replicate="run")
    shown = {False: 0, True: 0}
    for n in range(60):
        table = of_sources(Random(n), 0.0)
        for joined in shown:
            found = observe.observe(table, roles.model_copy(update={"source": "cv" if joined else None}))
            (claim,) = (c for c in claims(found.table, found.question) if c.family == "net")
            assert claim.texts == (16 if joined else 128)
            shown[joined] += claim.verdict.startswith("shown")
    assert shown[True] <= 9  # more than that come in 0.1 % of series where 5 % err
    assert shown[False] > 15


def test_a_text_has_one_source(tmp_path: Path) -> None:
    rows = [{"text_id": "t", "cv": cv, "gender": g, "score": "1"} for cv, g in (("a", "female"), ("b", "male"))]
    with pytest.raises(DataFileError, match="'t' has two sources: 'a' and 'b'"):
        net(rows, tmp_path / "a.csv", source="cv")
