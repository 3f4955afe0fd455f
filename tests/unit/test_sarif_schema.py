"""Every SARIF log against the schema of the standard, whole: the goldens, the examples, fresh ones.

The schema (SARIF 2.1.0 rtm.5, the text that became the OASIS standard) is not kept here: ``make`` takes it from the npm
package ``@microsoft/jest-sarif`` (MIT) into ``.venv/node``; SARIF_SCHEMA names another place. Without it these tests are
skipped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import specimen as SPECIMEN

from auditor import audit
from auditor.core.protocols import RENDERERS
from auditor.core.record import RunRecord, read

ROOT = Path(__file__).parents[2]
SCHEMA = Path(
    os.environ.get("SARIF_SCHEMA")
    or ROOT / ".venv/node/node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"
)
pytestmark = pytest.mark.skipif(not SCHEMA.is_file(), reason=f"the schema is not installed ({SCHEMA})")
KEPT = sorted([*(ROOT / "tests/golden/files").glob("*.sarif"), *(ROOT / "reports/examples").rglob("*.sarif")])


@pytest.fixture(scope="module")
def schema() -> Any:
    told = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft4Validator.check_schema(told)
    return jsonschema.Draft4Validator(told)


def log_of(record: RunRecord) -> Any:
    return json.loads(RENDERERS.create("sarif").render(record, None))


def test_what_is_kept_and_fresh_logs(schema: Any) -> None:
    assert len(KEPT) >= 2
    for path in KEPT:
        assert [e.message for e in schema.iter_errors(json.loads(path.read_text(encoding="utf-8")))] == [], path
    for made in (SPECIMEN.record(), SPECIMEN.partial(), SPECIMEN.quiet()):
        schema.validate(log_of(read(made)))
    log = log_of(audit("sentiment", model="reviews", limit=12, out=None).run)
    schema.validate(log)
    assert log["runs"][0]["results"]


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("result", {"verdict": "shown"}), ("result", {"level": "severe"}), ("result", {"message": {"markdown": 1}}),
        ("run", {"columnKind": "bytes"}), ("run", {"artifacts": {}}),
    ],
)  # fmt: skip
def test_the_check_can_fail(schema: Any, where: str, what: dict[str, Any]) -> None:
    log = log_of(read(SPECIMEN.record()))
    run = log["runs"][0]
    (run["results"][0] if where == "result" else run).update(what)
    assert not schema.is_valid(log)
