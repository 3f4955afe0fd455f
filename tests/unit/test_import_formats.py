"""Answers as other tools keep them: what is a row, and which of its fields say what."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from auditor.cli import main as cli
from auditor.contrib.imports import answer_files, inference, mapping, observe
from auditor.contrib.imports.mapping import Roles
from auditor.core.errors import ConfigError

GENDERS = ("female", "male")
ROWS = [(f"t{n}", gender, 5 + n % 3 - (gender == "male")) for n in range(8) for gender in GENDERS]


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def lines(path: Path, objects: list[Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
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
    for file in (written(tmp_path / "log.json", log), packed):
        table = answer_files.read([file])
        assert not any(name.startswith(("messages", "events")) for name in table.columns)
        roles = inference.infer(table)
        assert (roles.text, roles.answer, roles.model) == (("id",), "scores.match.answer", ("output.model",))
        assert dict(roles.groups) == {"gender": "metadata.gender"}
        checked(table, roles, "openai/some-model")


def test_results_of_promptfoo(tmp_path: Path) -> None:
    results = [
        {
            "vars": {"text_id": text, "gender": gender},
            "provider": {"id": "openai:some-model", "label": ""},
            "prompt": {"raw": "Rate {{name}}", "label": "plain"},
            "response": {"output": str(score), "tokenUsage": {"total": 9}},
            "success": True,
            "testCase": {"assert": [{"type": "equals"}] * 3},
        }
        for text, gender, score in ROWS
    ]
    document = {"evalId": "e", "results": {"version": 3, "prompts": [{"raw": "Rate {{name}}"}], "results": results}}
    table = answer_files.read([written(tmp_path / "results.json", document)])
    checked(table, inference.infer(table), "openai:some-model")


def test_batches_of_openai_joined_to_what_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
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
    output, source = lines(tmp_path / "out.jsonl", said), lines(tmp_path / "in.jsonl", asked)
    table = answer_files.joined(answer_files.read([output]), answer_files.read([source]), "custom_id")
    roles = inference.infer(table)
    assert roles.answer == "response.body.choices.0.message.content"
    checked(table, roles, "some-model-1")
    # Without the file that was asked: the id says it.
    (tmp_path / "map.toml").write_text(
        'text = "text"\nanswer = "response.body.choices.0.message.content"\nkind = "number"\n'
        'parts = { custom_id = "(?P<text>.+)/(?P<gender>.+)" }\ngroups = { gender = "gender" }\n'
        'model = "response.body.model"\n'
    )
    checked(answer_files.read([output]), mapping.load(tmp_path / "map.toml"), "some-model-1")
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
    table = answer_files.read([written(tmp_path / "traces.json", document)])
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
    file = written(tmp_path / "runs.json", {"examples": [{"id": 1}] * 99, "data": {"runs": runs}})
    table = answer_files.read([file], "$.data.runs[*]")
    checked(table, inference.infer(table), "some-model")
    with pytest.raises(ConfigError, match="no objects there"):
        answer_files.read([file], "$.nothing[*]")
    with pytest.raises(ConfigError, match="no JSON path"):
        answer_files.read([file], "$.[")
