"""No text from a model or a file leaves its place in a compliance report."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from auditor.core.record import read
from auditor.core.registry import RENDERERS


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HERE = Path(__file__).parent
ESCAPE = load(HERE / "test_render_escape.py")
GOLDEN = load(HERE.parent / "golden" / "test_compliance_golden.py")
PAYLOADS, HOSTILE, shape, acting = ESCAPE.PAYLOADS, ESCAPE.HOSTILE, ESCAPE.shape, ESCAPE.acting
SETTINGS = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def run(text: str) -> tuple[dict[str, Any], Any]:
    """The poisoned specimen with a frozen plan, hashes and deviations of the same text."""
    record, evidence = ESCAPE.poisoned(text)
    told = f"p{text}"
    record["spec"]["data"] = told  # an empty setting has no line
    record["frozen"] = {
        "file": told, "sha256": told, "frozen_at": told, "frozen_by": told, "reason": told,
        "deviations": [{"what": told, "planned": told, "actual": told}],
    }  # fmt: skip
    record["provenance"] |= {
        "platform": told, "packages": {f"k{text}": told}, "code": {"sha256": told},
        "dictionaries": [{"attribute": told, "name": told, "sha256": told}],
    }  # fmt: skip
    record["journal"] = {f"f{text}": {"records": 1, "hash": told}}
    return record, evidence


def people(text: str) -> dict[str, Any]:
    record: dict[str, Any] = copy.deepcopy(GOLDEN.people_record())
    told = f"p{text}"
    record["data"] |= {"file": told, "source": told, "sha256": told}
    record["warnings"] = [told]
    record["ll144"]["audit_date"] = told
    for rows in record["ll144"]["tables"].values():
        for row in rows:
            row["category"] = f"{row['category']}{text}"
            row["justification"] = told if row["excluded"] else row["justification"]
    return record


def rows(text: str) -> dict[str, Any]:
    record = copy.deepcopy(GOLDEN.rows())
    told, section = f"p{text}", record["tabular"]
    section["schema"] |= {"name": told, "protected": [told], "sha256": told}
    section["scores"][0] |= {"columns": [told], "population": told}
    section["lattice"][0]["columns"] = [told]
    section["pairs"][0] = {
        "changed": [told], "row": {told: text, "a": told}, "other": {told: told, "a": told},
        "label": told, "other_label": told,
    }  # fmt: skip
    record["findings"][0] |= {"text": told, "attributes": [told], "model": told, "notes": [told]}
    record["models"] = {told: {"fingerprint": told, "reported": [told]}}
    record["spec"]["model"] = told
    return dict(record)


def made(name: str, record: dict[str, Any], evidence: Any = None) -> str:
    return str(RENDERERS.create(name).render(read(record), evidence))


MAKE = {
    "eu-ai-act": lambda text: made("eu-ai-act", *run(text)),
    "rows": lambda text: made("nist-ai-rmf", rows(text)),
    "ll144": lambda text: made("ll144", people(text)),
}
HARMLESS = {kind: shape(make("x")).shape for kind, make in MAKE.items()}


@pytest.mark.parametrize("kind", MAKE)
@SETTINGS
@given(text=HOSTILE.filter(bool))  # an empty entry has no line, and a variant without an id no example
@example(text=PAYLOADS[0])
@example(text=PAYLOADS[1])
@example(text=PAYLOADS[4])
@example(text=PAYLOADS[11])
@example(text="\ud800\u202e")
def test_the_page_keeps_its_structure(kind: str, text: str) -> None:
    page = MAKE[kind](text)
    page.encode("utf-8")
    assert shape(page).shape == HARMLESS[kind]
    assert acting(page) == set()


@SETTINGS
@given(text=HOSTILE)
def test_the_data_are_ascii_json(text: str) -> None:
    page = made("eu-ai-act-json", *run(text))
    assert page.isascii()
    assert acting(page) == set()
    assert json.loads(page)["framework"]


def test_outcomes_beside_a_run_are_escaped_too(tmp_path: Path) -> None:
    (tmp_path / "ll144.json").write_text(json.dumps(people(PAYLOADS[0])), encoding="utf-8")
    record, evidence = run("x")
    evidence.path = tmp_path
    page = made("eu-ai-act", record, evidence)
    assert "<script" not in page
    assert any(PAYLOADS[0] in text for text in shape(page).text)
