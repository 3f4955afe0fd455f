"""Tables as others lay them out: columns per model or replicate, a baseline about nobody, names of columns with an owner."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from random import Random

import pytest

from auditor.contrib.imports import answer_files, inference, observe
from auditor.contrib.imports.mapping import Roles
from auditor.core.errors import ConfigError
from auditor.core.record.measured import Claim
from auditor.measure.families import claims

TEXTS = 40


def written(path: Path, header: str, rows: list[list[object]]) -> answer_files.Table:
    held = io.StringIO()
    csv.writer(held).writerows([header.split(), *rows])
    path.write_text(held.getvalue(), encoding="utf-8")
    return answer_files.read([path])


def net(table: answer_files.Table, roles: Roles | None = None) -> dict[str, Claim]:
    """The difference between women and men, by model."""
    seen = observe.observe(table, roles or inference.infer(table))
    return {c.model: c for c in claims(seen.table, seen.question) if c.family == "net"}


def rated(seed: int = 1) -> list[tuple[str, str, float]]:
    """Text, gender, score: women get four points more."""
    rng = Random(seed)
    texts = [(f"q{n}", rng.gauss(60, 10)) for n in range(TEXTS)]
    return [(t, g, b + e + rng.gauss(0, 1)) for t, b in texts for g, e in (("male", 0), ("female", 4))]


def close(claim: Claim, value: float) -> bool:
    assert claim.low is not None
    assert claim.high is not None
    return claim.groups == ("female", "male") and claim.low < value < claim.high


def test_a_column_for_each_model(tmp_path: Path) -> None:
    table = written(tmp_path / "a.csv", "question gender gpt-4 claude", [[t, g, s, 50] for t, g, s in rated()])
    with pytest.raises(ConfigError, match=r"wide"):
        inference.infer(table)
    roles = Roles(
        text=("question",), answer="rating", kind="number", groups={"gender": "gender"},
        wide={"gpt-4": {"model": "gpt-4"}, "claude": {"model": "claude"}},
    )  # fmt: skip
    found = net(table, roles)
    assert close(found["gpt-4"], 4)
    assert found["claude"].estimate == 0


def test_columns_are_known_by_whose_they_are_and_nothing_is_guessed_from_what_is_left(tmp_path: Path) -> None:
    rows: list[list[object]] = [[t, g, s, 7] for t, g, s in rated()]
    table = written(tmp_path / "a.csv", "scenario applicant_gender grade batch", rows)
    roles = inference.infer(table)
    assert (roles.text, dict(roles.groups), roles.answer) == (("scenario",), {"gender": "applicant_gender"}, "grade")
    assert close(net(table)["recorded"], 4)
    with pytest.raises(ConfigError, match="which column names the text"):
        inference.infer(written(tmp_path / "b.csv", "profile gender grade folder", rows))


def test_variables_of_promptfoo_and_the_output_not_its_grade(tmp_path: Path) -> None:
    results = [
        {
            "provider": {"id": "openai:some-model"},
            "vars": {"scenario": t, "gender": g},
            "response": {"output": f"{s:.2f}"},
            "success": True,
            "score": 1,
        }
        for t, g, s in rated()
    ]
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"version": 4, "results": {"version": 3, "results": results}}))
    table = answer_files.read([path])
    roles = inference.infer(table)
    assert (roles.text, roles.answer, roles.model) == (("vars.scenario",), "response.output", ("provider.id",))
    assert close(net(table)["openai:some-model"], 4)
