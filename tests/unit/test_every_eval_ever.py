"""Records of Every Eval Ever against the format's own schema.

The schema is not kept here: ``make`` takes its package (which needs a later Python) into ``.venv/schemas``. Without it
the tests that need it are skipped.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from auditor import audit
from auditor.core.errors import ConfigError
from auditor.core.registry import RENDERERS

PACKAGE = next(iter((Path(__file__).parents[2] / ".venv/schemas").glob("every_eval_ever-*.whl")), None)


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return dict(audit("sentiment", model=["reviews", "vader"], limit=60, attributes="gender", out=None).record)


@pytest.fixture(scope="module")
def written(record: dict[str, Any]) -> list[dict[str, Any]]:
    text = RENDERERS.create("every-eval-ever").render(record, None)
    return [json.loads(line) for line in str(text).splitlines()]


@pytest.fixture(scope="module")
def schema() -> Any:
    if PACKAGE is None:
        pytest.skip("the package of the schema is not there")
    with zipfile.ZipFile(PACKAGE) as wheel:
        told = json.loads(wheel.read("every_eval_ever/schemas/eval.schema.json"))
    return jsonschema.Draft7Validator(told)


def test_a_line_for_each_model_with_its_claims(record: dict[str, Any], written: list[dict[str, Any]]) -> None:
    assert [line["model_info"]["name"] for line in written] == ["reviews", "vader"]
    for line in written:
        name = line["model_info"]["name"]
        claims = [c for c in record["claims"] if c["model"] == name and c["estimate"] is not None]
        assert claims
        told = [
            (r["score_details"]["score"], r["score_details"]["details"]["verdict"]) for r in line["evaluation_results"]
        ]
        assert told == [(c["estimate"], c["verdict"]) for c in claims]


def test_the_schema_takes_them(schema: Any, written: list[dict[str, Any]]) -> None:
    assert schema.schema["version"] == written[0]["schema_version"]
    for line in written:
        schema.validate(line)
        bounds = {r["metric_config"]["max_score"] for r in line["evaluation_results"]}
        assert bounds == {"Infinity", 1.0}, "log odds have no bound, shares have one"


def test_the_schema_refuses_what_is_not_right(schema: Any, written: list[dict[str, Any]]) -> None:
    broken = json.loads(json.dumps(written[0]))
    del broken["evaluation_results"][0]["metric_config"]["max_score"]
    assert not schema.is_valid(broken)


def test_a_run_without_claims_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="no claims"):
        RENDERERS.create("every-eval-ever").render(record | {"claims": None}, None)
