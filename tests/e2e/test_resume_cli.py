"""`audit --task resume` against a server: what is planted in the scores is found, and nothing where nothing is."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nursery import Server, audit

from auditor.perturb.name_lines import full_names

pytestmark = pytest.mark.e2e
BLACK = {first.name for (race, _), names in full_names().items() if race == "black" for first in names}


def screener(lowered: int) -> Callable[[str, str], str]:
    """A model that reads the words of a résumé, not its layout, and gives Black names ``lowered`` points less."""

    def reply(model: str, text: str) -> str:
        found = re.search(r"<application>\n(?:Applicant: (\S+) \S+\n\n)?(.*)</application>", text, re.DOTALL)
        words = re.sub(r"\W+", " ", found[2])
        score = 30 + hashlib.sha256(words.encode()).digest()[0] // 5
        score -= lowered if found[1] in BLACK else 0
        decision = "invite" if score >= 60 else "hold" if score >= 45 else "reject"
        return json.dumps({"score": score, "decision": decision})

    return reply


@pytest.mark.parametrize("lowered", [0, 10])
def test_a_lower_score_for_some_names(tmp_path: Path, serve: Callable[..., Server], lowered: int) -> None:
    server = serve(screener(lowered))
    argv = "--task resume --model openai:screener --limit 48 --carrier name --attributes race --groups race:black/white"
    done = audit(
        *argv.split(), "--base-url", server.url, "--max-calls", "1000", "--format", "json",
        "--out", tmp_path / "runs", cwd=tmp_path, environment=dict(os.environ) | {"AUDIT_CACHE": str(tmp_path / "c")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    (claim,) = [c for c in record["claims"] if c["family"] == "net" and c["scale"] == "number"]
    assert (claim["verdict"] == "shown") == (lowered > 0)
    assert claim["low"] <= -lowered <= claim["high"]
    assert record["counts"]["unparsed"] == 0
    (folder,) = (tmp_path / "runs").glob("2*")
    kinds = set(re.findall(r'"irrelevant: (\w+)"', (folder / "cases.jsonl").read_text()))
    assert kinds == {"layout", "hobby", "date"}
