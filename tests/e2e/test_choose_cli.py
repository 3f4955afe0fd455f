"""`audit choose` against a server: a place that is preferred is taken out, a group that is preferred is found."""

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


def judge(against: float, place: float) -> Callable[[str, str], str]:
    """A model that likes the first place, and Black names less: both in shares of its answers."""

    def reply(model: str, text: str) -> str:
        shown = re.findall(r"<candidate-\d+>\n(.*?)\n</candidate-\d+>", text, re.DOTALL)
        black = [bool(BLACK & set(one.split("\n")[0].split())) for one in shown]
        draw = hashlib.sha256(text.encode()).digest()
        if "Rank all" in text:
            score = [draw[n] - 300 * against * is_black - 40 * place * n for n, is_black in enumerate(black)]
            return ", ".join(str(n + 1) for n in sorted(range(len(shown)), key=lambda n: -score[n]))
        if black[0] != black[1] and draw[0] < 256 * against:
            return "second" if black[0] else "first"
        if draw[1] < 256 * place:
            return "The first candidate."
        return ("first", "second", "tie")[draw[2] % 3]

    return reply


@pytest.mark.parametrize("against", [0.0, 0.5])
@pytest.mark.parametrize("candidates", [2, 5])
def test_who_is_chosen(tmp_path: Path, serve: Callable[..., Server], against: float, candidates: int) -> None:
    server = serve(judge(against, 0.5))
    done = audit(
        *f"choose --task resume --carrier name --attributes race --limit 96 --candidates {candidates}".split(),
        *["--model", "openai:judge", "--max-calls", "2000", "--format", "json", "--base-url"], server.url,
        cwd=tmp_path, environment=dict(os.environ) | {"AUDIT_CACHE": str(tmp_path / "c")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    seen = told["panels"]["openai:judge"]
    assert seen["position"] > 0.1
    claims = {c["groups"][0]: c for c in told["claims"] if c["family"] == "net"}
    assert (claims["black"]["verdict"] == "shown") == (against > 0), claims["black"]
    assert ((claims["black"]["estimate"] or 0) < -10) == (against > 0)
    assert all(c["verdict"] != "shown" for g, c in claims.items() if g != "black") or against > 0
    if candidates > 2:
        assert (seen["impact"]["black"] < 0.6) == (against > 0)
    for command in (["verify", "latest"], ["report", "latest", "--format", "markdown"]):
        again = audit(*command, cwd=tmp_path, environment=dict(os.environ))
        assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("candidates", [2, 4])
def test_a_run_that_a_limit_cut_off_goes_on(tmp_path: Path, serve: Callable[..., Server], candidates: int) -> None:
    server = serve(judge(0.5, 0.1))
    given = ["choose", *f"--task resume --carrier name --attributes race --limit 12 --candidates {candidates}".split()]
    given += ["--model", "openai:judge", "--no-cache", "--format", "json", "--base-url", server.url, "--max-calls"]
    environment = dict(os.environ) | {"AUDIT_CACHE": str(tmp_path / "c")}
    whole = audit(*given, "900", "--out", "whole", cwd=tmp_path, environment=environment)
    assert whole.returncode == 0, whole.stderr
    part = audit(*given, "20", "--out", "part", cwd=tmp_path, environment=environment)
    assert part.returncode == 3
    folder = f"part/{json.loads(part.stdout)['id']}"
    assert f"audit resume {folder}" in part.stderr
    calls = ["resume", folder, "--yes", "--format", "json", "--max-calls"]
    short = audit(*calls, "25", cwd=tmp_path, environment=environment)  # the limit is that of the whole run
    assert short.returncode == 3, short.stderr
    assert json.loads(short.stdout)["counts"]["calls"] == 25
    done = audit(*calls, "900", cwd=tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr
    first, last = json.loads(whole.stdout), json.loads(done.stdout)
    for part_of in ("status", "counts", "claims", "findings", "panels"):
        assert first[part_of] == last[part_of]
    assert audit("verify", folder, cwd=tmp_path, environment=environment).returncode == 0
