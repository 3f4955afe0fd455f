"""Recorded answers as a run: files of many forms, mapping, what is counted, planted differences."""

from __future__ import annotations

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
from auditor.core.errors import ConfigError, DataFileError, UnknownValue
from auditor.core.record.measured import Claim
from auditor.measure.families import claims
from auditor.run.result import load
from tests.asking import csv_file, json_lines


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


def net(rows: list[dict[str, str]], path: Path, **roles: Any) -> Claim:
    table = answer_files.read([csv_file(path, rows)])
    found = observe.observe(table, inference.infer(table).model_copy(update=roles))
    return next(c for c in claims(found.table, found.question) if c.family == "net")


@pytest.mark.parametrize("effect", [0.0, 4.0])
def test_a_planted_difference_and_none(tmp_path: Path, effect: float) -> None:
    claim = net(planted(effect), tmp_path / "a.csv", references={"gender": "male"})
    assert claim.groups == ("female", "male")
    assert claim.low < effect < claim.high
    assert claim.verdict == ("shown" if effect else "not_determined")


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


def test_the_command_makes_a_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    csv_file(place / "a.csv", planted(4.0))
    assert cli.run(["import", "a.csv", "--reference", "gender:male", "--name", "ratings"]) == 0
    told = capsys.readouterr()
    assert "Men and boys were given " in told.out
    assert 'answer = "score"' in told.err
    assert "does not say which words name a group" in told.err
    run = next((place / "reports").glob("2*"))
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
    for n in range(12):
        table = of_sources(Random(n), 0.0)
        for joined in shown:
            found = observe.observe(table, roles.model_copy(update={"source": "cv" if joined else None}))
            (claim,) = (c for c in claims(found.table, found.question) if c.family == "net")
            assert claim.texts == (16 if joined else 128)
            shown[joined] += claim.verdict.startswith("shown")
    # Of 12 runs that err in 5 %, more than 3 show something once in 460 series; at 40 %, 19 of 20 series do.
    assert shown[True] <= 3 <= shown[False]


def test_a_text_has_one_source(tmp_path: Path) -> None:
    rows = [{"text_id": "t", "cv": cv, "gender": g, "score": "1"} for cv, g in (("a", "female"), ("b", "male"))]
    with pytest.raises(DataFileError, match="'t' has two sources: 'a' and 'b'"):
        net(rows, tmp_path / "a.csv", source="cv")


def differences(files: list[Path], roles: Roles | None = None) -> dict[tuple[str, str], float]:
    """Net difference of female and male answers (or of black and white), by model and attribute."""
    table = answer_files.read(files)
    seen = observe.observe(table, roles or inference.infer(table))
    return {
        (c.model, c.attribute): c.estimate * (1 if c.groups[0].lower() in ("female", "black") else -1)
        for c in claims(seen.table, seen.question)
        if c.family == "net" and c.estimate is not None
    }


def scored(effect: float = -6.0, *, seed: int = 1, texts: int = 40) -> list[tuple[str, str, float]]:
    rng = Random(seed)
    return [
        (f"t{n}", gender, round(base + (effect if gender == "female" else 0), 1))
        for n in range(texts)
        for base in [round(rng.uniform(40, 60), 1)]
        for gender in ("male", "female")
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_semicolons_decimal_commas_marks_and_spellings(tmp_path: Path, encoding: str) -> None:
    rows = ["item;gender;score"]
    for n, (text, gender, value) in enumerate(scored()):
        spelling = (gender, gender.title(), f"{gender} ")[n % 3]
        rows.append(f"{text};{spelling};{value}".replace(".", ","))
    rows += ["t1;NaN;12,5", "t2;female;N/A"]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(rows), encoding=encoding)
    table = answer_files.read([file])
    seen = observe.observe(table, inference.infer(table))
    assert (seen.counted.no_group, seen.counted.empty) == (1, 1)
    assert differences([file]) == pytest.approx({("recorded", "gender"): -6.0}, abs=0.02)


def test_spellings_of_a_label_are_one(tmp_path: Path) -> None:
    rng, rows = Random(2), ["case_id,gender,decision"]
    for n in range(60):
        rows.append(f"{n},male,{rng.choice(['yes', 'Yes.', 'YES', '**Yes**'])}")
        said = rng.choice(["yes", "Yes.", "YES"]) if n % 2 else rng.choice(["No.", "no", "NO"])
        rows.append(f"{n},female,{said}")
    (file := tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    assert differences([file]) == pytest.approx({("recorded", "gender"): -0.5})


def test_each_file_of_a_zip_is_a_model(tmp_path: Path) -> None:
    with zipfile.ZipFile(file := tmp_path / "all.zip", "w") as archive:
        for model, effect in (("one", -6.0), ("two", 2.0)):
            rows = [f"{t},{g},{v}" for t, g, v in scored(effect)]
            archive.writestr(f"out/{model}.csv", "\n".join(["item,gender,score", *rows]))
        archive.writestr("__MACOSX/out/._one.csv", "\x00")
    expected = {("one", "gender"): -6.0, ("two", "gender"): 2.0}
    assert differences([file]) == pytest.approx(expected, abs=0.02)


def test_one_answer_a_file_and_conversations(tmp_path: Path) -> None:
    lines = []
    for text, gender, value in scored():
        talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": f"Score: {value}/100"}]
        row = {"meta": {"vignette_id": text, "who": {"gender": gender}}, "messages": talk}
        lines.append(json.dumps(row))
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / f"{text}_{gender}.json").write_text(lines[-1], encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for file in (tmp_path / "folder", tmp_path / "a.jsonl"):
        assert differences([file]) == pytest.approx({("recorded", "gender"): -6.0}, abs=0.02)


GENDERS = ("female", "male")
ROWS = [(f"t{n}", gender, 5 + n % 3 - (gender == "male")) for n in range(8) for gender in GENDERS]


def stored(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def sample(text: str, gender: str, score: int) -> dict[str, Any]:
    """As inspect_ai logs one."""
    said = [{"role": "user", "content": "…"}, {"role": "assistant", "content": str(score)}]
    return {
        "id": text,
        "epoch": 1 + (gender == "male"),
        "input": "Rate the applicant.",
        "target": "",
        "messages": said * 20,  # longer than the list of samples
        "output": {
            "model": "openai/some-model",
            "choices": [{"message": said[1], "stop_reason": "stop"}],
            "completion": str(score),
        },
        "scores": {"match": {"value": "C", "answer": str(score)}},
        "metadata": {"gender": gender},
        "events": [{"event": "model"}] * 30,
    }


def checked(table: answer_files.Table, roles: Roles, model: str) -> None:
    found = observe.observe(table, roles)
    assert (found.counted.rows, found.counted.used, found.counted.texts) == (16, 16, 8)
    assert list(found.models) == [model]
    assert found.counted.unbalanced == {"gender": 0}
    columns = found.table.columns()
    assert sorted(columns.score.tolist()) == sorted(float(score) for _, _, score in ROWS)


def test_logs_of_inspect(tmp_path: Path) -> None:
    samples = [sample(*row) for row in ROWS]
    log = {"version": 2, "status": "success", "eval": {"model": "openai/some-model"}, "samples": samples}
    packed = tmp_path / "log.eval"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": log["eval"]}))
        archive.writestr("summaries.json", json.dumps([{"id": "t0"}] * 99))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    for file in (stored(tmp_path / "log.json", log), packed):
        table = answer_files.read([file])
        assert not any(name.startswith(("messages", "events")) for name in table.columns)
        roles = inference.infer(table)
        assert (roles.text, roles.answer, roles.model) == (("id",), "scores.match.answer", ("output.model",))
        assert dict(roles.groups) == {"gender": "metadata.gender"}
        checked(table, roles, "openai/some-model")


def test_batches_of_openai_joined_to_what_was_asked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = [
        {
            "id": f"batch_{n}",
            "custom_id": f"{text}/{gender}",
            "response": {
                "status_code": 200,
                "body": {
                    "model": "some-model-1",
                    "choices": [{"message": {"role": "assistant", "content": str(score)}}],
                },
            },
            "error": None,
        }
        for n, (text, gender, score) in enumerate(ROWS)
    ]
    asked = [
        {
            "custom_id": f"{text}/{gender}",
            "method": "POST",
            "body": {"model": "some-model", "metadata": {"text_id": text, "gender": gender}},
        }
        for text, gender, _ in reversed(ROWS)
    ]
    output, source = json_lines(place / "out.jsonl", said), json_lines(place / "in.jsonl", asked)
    table = answer_files.joined(answer_files.read([output]), answer_files.read([source]), "custom_id")
    roles = inference.infer(table)
    assert roles.answer == "response.body.choices.0.message.content"
    with pytest.raises(UnknownValue, match=r"--on 'id': no such column.*'custom_id'"):
        answer_files.joined(answer_files.read([source]), table, "id")
    checked(table, roles, "some-model-1")
    # Without the file that was asked: the id says it.
    (place / "map.toml").write_text(
        'text = "text"\nanswer = "response.body.choices.0.message.content"\nkind = "number"\n'
        'parts = { custom_id = "(?P<text>.+)/(?P<gender>.+)" }\ngroups = { gender = "gender" }\n'
        'model = "response.body.model"\n'
    )
    checked(answer_files.read([output]), mapping.load(place / "map.toml"), "some-model-1")
    assert cli.run(["import", "out.jsonl", "--map", "map.toml"]) == 0
    assert "8 texts" in capsys.readouterr().out


def test_spans_of_traces(tmp_path: Path) -> None:
    spans = [
        {
            "spanId": str(n),
            "attributes": [
                {"key": "gen_ai.request.model", "value": {"stringValue": "some-model"}},
                {"key": "text_id", "value": {"stringValue": text}},
                {"key": "gender", "value": {"stringValue": gender}},
                {"key": "score", "value": {"intValue": str(score)}},
            ],
        }
        for n, (text, gender, score) in enumerate(ROWS)
    ]
    document = {"resourceSpans": [{"scopeSpans": [{"spans": spans[:5]}, {"spans": spans[5:]}]}]}
    table = answer_files.read([stored(tmp_path / "traces.json", document)])
    checked(table, inference.infer(table), "some-model")


def test_rows_at_a_path(tmp_path: Path) -> None:
    """As LangSmith exports runs, beside a longer list that is something else."""
    runs = [
        {
            "inputs": {"text_id": text},
            "outputs": {"output": str(score)},
            "extra": {"metadata": {"gender": gender, "model": "some-model"}},
        }
        for text, gender, score in ROWS
    ]
    file = stored(tmp_path / "runs.json", {"examples": [{"id": 1}] * 99, "data": {"runs": runs}})
    table = answer_files.read([file], "$.data.runs[*]")
    checked(table, inference.infer(table), "some-model")
    with pytest.raises(ConfigError, match="no objects there"):
        answer_files.read([file], "$.nothing[*]")
    with pytest.raises(ConfigError, match="no JSON path"):
        answer_files.read([file], "$.[")


def test_a_column_for_each_model(tmp_path: Path) -> None:
    rows = [f"{t},{g},{v},50" for t, g, v in scored()]
    (file := tmp_path / "a.csv").write_text("\n".join(["question,gender,gpt-4,claude", *rows]), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"wide"):
        inference.infer(answer_files.read([file]))
    wide = {name: {"model": name} for name in ("gpt-4", "claude")}
    roles = Roles(text=("question",), answer="rating", kind="number", groups={"gender": "gender"}, wide=wide)
    expected = {("gpt-4", "gender"): -6.0, ("claude", "gender"): 0.0}
    assert differences([file], roles) == pytest.approx(expected, abs=0.02)


def test_na_may_be_a_name() -> None:
    cells = (None, " NaN", "NA", "Na", "none", "")
    assert [mapping.missing(cell) for cell in cells] == [True, True, True, False, False, True]


def test_a_column_for_each_identity(tmp_path: Path) -> None:
    rng, rows = Random(3), ["item,black woman,black man,white woman,white man"]
    for n in range(40):
        base = rng.uniform(-1, 1)
        rows.append(f"{n},{base - 5},{base - 5},{base},{base}")
    (file := tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    wide = {
        f"{race} {noun}": {"race": race, "gender": gender}
        for race in ("black", "white")
        for noun, gender in (("woman", "female"), ("man", "male"))
    }
    found = differences([file], Roles(text=("item",), answer="score", kind="number", wide=wide))
    assert found == pytest.approx({("recorded", "race"): -5.0, ("recorded", "gender"): 0.0}, abs=1e-6)


def test_an_id_of_each_row_is_no_text(tmp_path: Path) -> None:
    rows = [f'{n},"Hire the {g}?",{g},{t},{v}' for n, (t, g, v) in enumerate(scored())]
    (file := tmp_path / "a.csv").write_text("\n".join(["id,prompt,gender,job,score", *rows]), encoding="utf-8")
    roles = inference.infer(answer_files.read([file]))
    assert (roles.text, roles.format) == (("job",), ())
