"""Recorded answers as a run: files of many forms, mapping, planted differences, and files that were made to do harm."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from commands import Capture, Patch

from auditor.cli import main as cli
from auditor.contrib.imports import answer_files, import_run, inference, mapping, observe
from auditor.contrib.imports.mapping import Roles
from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError, UnknownValue
from auditor.core.record.measured import Claim
from auditor.measure.findings import claims
from auditor.run.audit import load
from tests.asking import csv_file, json_lines

GENDERS = ("female", "male")


def planted(effect: float) -> list[dict[str, str]]:
    """Scores of texts about women and men, half of each at first; an edit costs two points."""
    rng = Random(3)
    rows = []
    for text in range(40):
        base, own, other = rng.gauss(50, 10), *(GENDERS if text % 2 else GENDERS[::-1])
        for arm, gender, edit in (("original", own, 0.0), ("edited", other, -2.0), ("placebo", own, -2.0)):
            for run in ("0", "1"):
                value = base + edit + (effect if gender == "female" else 0) + rng.gauss(0, 1)
                row = {"text_id": f"t{text}", "arm": arm, "gender": gender, "run": run, "score": f"{value:.3f}"}
                rows.append(row)
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
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"text_id;score\na;1\nb;2\n"))
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("inner/d.csv", "text_id,score\na,1\nb,2\n")
    assert answer_files.read([tmp_path / "a.jsonl"]).columns == {"text_id": ["a", "b"], "answer.score": ["1", "2"]}
    for name in ("b.json", "c.csv.gz", "d.zip"):
        assert answer_files.read([tmp_path / name]).columns == {"text_id": ["a", "b"], "score": ["1", "2"]}, name
    whole = answer_files.read([tmp_path])
    assert len(whole) == 8
    assert whole.columns["answer.score"] == ["1", "2", *[None] * 6]
    assert [s.rows for s in whole.sources] == [2, 2, 2, 2]


def test_the_command_makes_a_run(place: Path, capsys: Capture) -> None:
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


def test_what_texts_of_one_source_share_is_no_difference_between_groups(tmp_path: Path) -> None:
    """Sixteen sources in eight texts each; each source has a difference of its own, in all of its texts."""
    shown = {16: 0, 128: 0}  # by the number of units
    for n in range(12):
        rng, rows = Random(n), list[dict[str, str]]()
        for cv in range(16):
            own = rng.gauss(0.0, 4)
            for text in range(8):
                base = rng.gauss(50, 10)
                for gender, more in (("female", own), ("male", 0.0)):
                    score = f"{base + more + rng.gauss(0, 2):.2f}"
                    rows.append({"text_id": f"t{cv}-{text}", "cv": f"cv{cv}", "gender": gender, "score": score})
        for source in ("cv", None):
            claim = net(rows, tmp_path / "a.csv", text=("text_id",), source=source)
            shown[claim.texts] += claim.verdict.startswith("shown")
    # Of 12 runs that err in 5 %, more than 3 show something once in 460 series; at 40 %, 19 of 20 series do.
    assert shown[16] <= 3 <= shown[128]
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


def scored(effect: float = -6.0) -> list[tuple[str, str, float]]:
    """Text, gender and score; women differ by ``effect``."""
    rng = Random(1)
    bases = [(f"t{n}", round(rng.uniform(40, 60), 1)) for n in range(40)]
    return [(text, g, round(base + effect * (g == "female"), 1)) for text, base in bases for g in GENDERS[::-1]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_semicolons_decimal_commas_marks_and_spellings(tmp_path: Path, encoding: str) -> None:
    rows = ["item;gender;score"]
    for n, (text, gender, value) in enumerate(scored()):
        spelling = (gender, gender.title(), f"{gender} ")[n % 3]
        rows.append(f"{text};{spelling};{value}".replace(".", ","))
    rows += ["t1;NaN;12,5", "t2;female;N/A"]
    (file := tmp_path / "a.csv").write_text("\n".join(rows), encoding=encoding)
    table = answer_files.read([file])
    seen = observe.observe(table, inference.infer(table))
    assert (seen.counted.no_group, seen.counted.empty) == (1, 1)
    assert differences([file]) == pytest.approx({("recorded", "gender"): -6.0}, abs=0.02)


def test_each_file_of_a_zip_is_a_model(tmp_path: Path) -> None:
    with zipfile.ZipFile(file := tmp_path / "all.zip", "w") as archive:
        for model, effect in (("one", -6.0), ("two", 2.0)):
            rows = [f"{t},{g},{v}" for t, g, v in scored(effect)]
            archive.writestr(f"out/{model}.csv", "\n".join(["item,gender,score", *rows]))
        archive.writestr("__MACOSX/out/._one.csv", "\x00")
    assert differences([file]) == pytest.approx({("one", "gender"): -6.0, ("two", "gender"): 2.0}, abs=0.02)


def test_one_answer_a_file_and_conversations(tmp_path: Path) -> None:
    rows = []
    (tmp_path / "folder").mkdir()
    for text, gender, value in scored():
        talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": f"Score: {value}/100"}]
        rows.append({"meta": {"vignette_id": text, "who": {"gender": gender}}, "messages": talk})
        stored(tmp_path / "folder" / f"{text}_{gender}.json", rows[-1])
    for file in (tmp_path / "folder", json_lines(tmp_path / "a.jsonl", rows)):
        assert differences([file]) == pytest.approx({("recorded", "gender"): -6.0}, abs=0.02)


ROWS = [(f"t{n}", gender, 5 + n % 3 - (gender == "male")) for n in range(8) for gender in GENDERS]


def stored(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def sample(text: str, gender: str, score: int) -> dict[str, Any]:
    """As inspect_ai logs one."""
    said = [{"role": "user", "content": "…"}, {"role": "assistant", "content": str(score)}]
    choice = {"message": said[1], "stop_reason": "stop"}
    return {
        "id": text, "epoch": 1 + (gender == "male"), "input": "Rate the applicant.", "target": "",
        "messages": said * 20,  # longer than the list of samples
        "output": {"model": "openai/some-model", "choices": [choice], "completion": str(score)},
        "scores": {"match": {"value": "C", "answer": str(score)}}, "metadata": {"gender": gender},
        "events": [{"event": "model"}] * 30,
    }  # fmt: skip


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


def test_batches_of_openai_joined_to_what_was_asked(place: Path, capsys: Capture) -> None:
    said, asked = [], list[dict[str, Any]]()
    for n, (text, gender, score) in enumerate(ROWS):
        name, choice = f"{text}/{gender}", {"message": {"role": "assistant", "content": str(score)}}
        told = {"status_code": 200, "body": {"model": "some-model-1", "choices": [choice]}}
        said.append({"id": f"batch_{n}", "custom_id": name, "response": told, "error": None})
        body = {"model": "some-model", "metadata": {"text_id": text, "gender": gender}}
        asked.append({"custom_id": name, "method": "POST", "body": body})
    output, source = json_lines(place / "out.jsonl", said), json_lines(place / "in.jsonl", asked[::-1])
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
    spans = []
    for n, (text, gender, score) in enumerate(ROWS):
        texts = {"gen_ai.request.model": "some-model", "text_id": text, "gender": gender}
        told = [{"key": key, "value": {"stringValue": value}} for key, value in texts.items()]
        spans.append({"spanId": str(n), "attributes": [*told, {"key": "score", "value": {"intValue": str(score)}}]})
    document = {"resourceSpans": [{"scopeSpans": [{"spans": spans[:5]}, {"spans": spans[5:]}]}]}
    table = answer_files.read([stored(tmp_path / "traces.json", document)])
    checked(table, inference.infer(table), "some-model")


def test_rows_at_a_path(tmp_path: Path) -> None:
    """As LangSmith exports runs, beside a longer list that is something else."""
    runs = []
    for text, gender, score in ROWS:
        extra = {"metadata": {"gender": gender, "model": "some-model"}}
        runs.append({"inputs": {"text_id": text}, "outputs": {"output": str(score)}, "extra": extra})
    file = stored(tmp_path / "runs.json", {"examples": [{"id": 1}] * 99, "data": {"runs": runs}})
    table = answer_files.read([file], "$.data.runs[*]")
    checked(table, inference.infer(table), "some-model")
    for path, told in (("$.nothing[*]", "no objects there"), ("$.[", "no JSON path")):
        with pytest.raises(ConfigError, match=told):
            answer_files.read([file], path)


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
    nouns = {"woman": "female", "man": "male"}
    wide = {f"{r} {noun}": {"race": r, "gender": g} for r in ("black", "white") for noun, g in nouns.items()}
    found = differences([file], Roles(text=("item",), answer="score", kind="number", wide=wide))
    assert found == pytest.approx({("recorded", "race"): -5.0, ("recorded", "gender"): 0.0}, abs=1e-6)


def test_an_id_of_each_row_is_no_text(tmp_path: Path) -> None:
    rows = [f'{n},"Hire the {g}?",{g},{t},{v}' for n, (t, g, v) in enumerate(scored())]
    (file := tmp_path / "a.csv").write_text("\n".join(["id,prompt,gender,job,score", *rows]), encoding="utf-8")
    roles = inference.infer(answer_files.read([file]))
    assert (roles.text, roles.format) == (("job",), ())


LINES = b"text_id,answer\n" + b"a,1\n" * 1000
COLUMNS = [f"c{n}" for n in range(101)]


def packed(**members: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.csv", content)
    return made.getvalue()


def parquet() -> bytes:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    made = io.BytesIO()
    parquet.write_table(arrow.table({"answer": arrow.array(["x" * 100] * 200).dictionary_encode()}), made)
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", LINES), ("x.csv.gz", gzip.compress(LINES)), ("x.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 1000)),
        ("x.zip", packed(x=LINES)), ("x.zip", packed(x=LINES[:899], y=LINES[:899])), ("x.parquet", None),
    ],
    ids=["plain", "gzip", "lines", "zip", "many members", "parquet"],
)  # fmt: skip
def test_what_a_file_unpacks_to_is_bounded(name: str, content: Any, tmp_path: Path, monkeypatch: Patch) -> None:
    path = tmp_path / name
    path.write_bytes(content if content is not None else parquet())
    rows = len(answer_files.read([path]))
    assert rows >= 200
    monkeypatch.setattr(reading, "LARGEST", 1500)
    with pytest.raises(DataFileError, match=r"x\.\w+.*: larger than 1,500 bytes"):
        answer_files.read([path])


@pytest.mark.parametrize(
    ("name", "content", "limit", "told"),
    [
        ("x.json.gz", gzip.compress(json.dumps([{"a": 1}] * 100).encode()), "DOCUMENT", "larger than 100 bytes"),
        ("x.csv", ",".join(COLUMNS) + "\n" + ",".join("1" * 101) + "\n", "COLUMNS", "more than 100 columns"),
        ("x.json", json.dumps([[{"a": list(range(101))}]]), "COLUMNS", "more than 100 columns"),
        ("x.jsonl", "".join(f'{{"{name}": 1}}\n' for name in COLUMNS), "COLUMNS", "more than 100 columns"),
    ],
    ids=["document", "csv", "json", "lines"],
)
def test_columns_are_bounded(
    name: str, content: Any, limit: str, told: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert len(answer_files.read([tmp_path / name]).columns) == (101 if limit == "COLUMNS" else 1)
    monkeypatch.setattr(answer_files, limit, 100)
    with pytest.raises(DataFileError, match=told):
        answer_files.read([tmp_path / name])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.parquet", b"PAR1junkPAR1"), ("x.parquet", b""), ("x.zip", b"PK\x03\x04junk"),
        ("x.csv.gz", b"\x1f\x8b\x08junk"), ("x.json", b"[" * 100_000), ("x.jsonl", b'{"a":' * 100_000),
        ("x.json", b'[{"a": ' + b"9" * 5000 + b"}]"), ("x.csv", b"a,b\n\xff,1\n"),
    ],
    ids=range(8),
)  # fmt: skip
def test_a_damaged_file_is_an_error_that_names_it(name: str, content: bytes, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFileError, match=name):
        answer_files.read([tmp_path / name])


def test_names_in_a_zip_file_lead_nowhere(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "x.zip").write_bytes(packed(**{"../../escaped": LINES, str(tmp_path / "absolute"): LINES}))
    assert len(answer_files.read([inside / "x.zip"])) == 2000
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inside", "x.zip"]
