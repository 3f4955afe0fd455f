"""`audit mitigate` against a server: what each changed prompt was made to do is what the report says of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nursery import IN_FLIGHT, Server, audit, warm

from auditor.perturb.name_lines import full_names
from auditor.run.mitigations import BLANK, IGNORE

pytestmark = pytest.mark.e2e
BLACK = {first.name for (race, _), names in full_names().items() if race == "black" for first in names}
MINE = "Think of the work alone."
LOWERED = {IGNORE: -9, MINE: 10}  # points for Black names; else 10
LESS = {MINE: 25}  # points for everybody


def screener(model: str, text: str) -> str:
    """Scores a resume by its words, less for Black names: by how much hangs on the prompt."""
    found = re.search(r"<application>\n(?:Applicant: (\S+) \S+\n\n)?(.*)</application>(.*)", text, re.DOTALL)
    words = re.sub(r"\W+", " ", found[2].replace(BLANK, ""))
    score = 40 + hashlib.sha256(words.encode()).digest()[0] // 5
    if found[1] in BLACK:
        score -= next((by for said, by in LOWERED.items() if said in text), 10)
    score -= next((by for said, by in LESS.items() if said in text), 0)
    decision = "invite" if score >= 60 else "hold" if score >= 45 else "reject"
    return json.dumps({"score": score, "decision": decision})


def test_changed_prompts_reduce_reverse_and_change_nothing(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(screener, whole=True)
    environment = dict(os.environ) | {"AUDIT_CACHE": str(tmp_path / "c")}

    def run(*argv: str, code: int = 0) -> dict[str, Any]:
        done = audit(*argv, "--format", "json", cwd=tmp_path, environment=environment)
        assert done.returncode == code, done.stderr
        read: dict[str, Any] = json.loads(done.stdout)
        return read

    run(
        *["--task", "resume", "--model", "openai:screener", "--carrier", "name", "--attributes", "race", "--groups", "race:black/white"],
        *["--limit", "48", "--replicates", "1", "--full-plan", "--max-calls", "1000", "--base-url"], server.url,
    )  # fmt: skip
    before = sum(server.asked.values())
    (tmp_path / "less.txt").write_text(MINE)
    trial = run(
        *["mitigate", "latest", "--with", "ignore,redact", "--prompt", "less.txt"],
        *["--base-url", server.url, "--max-calls", "2000"],
    )
    spent = {one["mitigation"]: one for one in trial["spent"]}
    calls = sum(server.asked.values()) - before
    assert calls == sum(one["calls"] for one in spent.values()) <= 2000

    effects = {c["mitigation"]: c for c in trial["found"]["changes"] if c["change"]["family"] == "net"}
    assert {name: c["effect"] for name, c in effects.items()} == {
        "ignore": "reversed", "redact": "reduced", "less": "not_shown",
    }  # fmt: skip
    for name, change in {"ignore": 19, "redact": 10}.items():
        claim = effects[name]["change"]
        assert claim["estimate"] == pytest.approx(change, abs=2.5)
        assert claim["p_adjusted"] < 0.05
    assert abs(effects["redact"]["after"]["estimate"]) < 2.5
    (less,) = [s for s in trial["found"]["sides"] if (s["mitigation"], s["what"]) == ("less", "accuracy")]
    assert less["texts"] > 30
    assert set(trial["helps"]) == {"redact"}

    (folder,) = (tmp_path / "reports").glob("*-mitigated-*")
    assert "reversed" in (folder / "mitigation.html").read_text()
    inner = folder / spent["ignore"]["run"]
    done = audit("verify", str(inner), cwd=tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr

    few = run("mitigate", "latest", "--with", "ignore", "--base-url", server.url, "--max-calls", "60")
    assert few["texts"] < trial["texts"]
    assert "enough for" in few["notes"][0]


def test_a_trial_that_was_killed_goes_on(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(screener, whole=True, delay_s=0.005)
    environment = dict(os.environ) | {"AUDIT_CACHE": str(tmp_path / "c")}

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        return audit(*argv, "--format", "json", cwd=tmp_path, environment=environment)

    done = run(
        *["--task", "resume", "--model", "openai:screener", "--carrier", "name", "--attributes", "race", "--groups", "race:black/white"],
        *["--limit", "8", "--replicates", "1", "--full-plan", "--no-cache", "--max-calls", "400", "--concurrency", str(IN_FLIGHT), "--base-url"], server.url,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (tmp_path / "mine.txt").write_text(IGNORE)
    trial = ["mitigate", "latest", "--with", "ignore,redact", "--prompt", "mine.txt", "--yes", "--max-calls", "900"]
    whole = json.loads(run(*trial).stdout)

    (first,) = (tmp_path / "reports").glob("*-mitigated-*")
    before = server.asked.total()
    pid = warm().tell([trial, str(tmp_path), environment, os.devnull, str(tmp_path / "err")])
    while server.asked.total() < before + 40:
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    assert warm().tell(pid) == -signal.SIGKILL
    server.settle()
    (folder,) = set((tmp_path / "reports").glob("*-mitigated-*")) - {first}
    assert not (folder / "mitigation.json").exists()

    asked = run("resume", str(folder))
    assert asked.returncode == 2  # the server that the folder names was not named
    gone_on = json.loads(run("resume", "latest", "--base-url", server.url).stdout)
    calls = sum(one["calls"] for one in whole["spent"])
    assert calls <= server.asked.total() - before <= calls + IN_FLIGHT
    assert gone_on["found"] == whole["found"]
    assert [s["answers"] for s in gone_on["spent"]] == [s["answers"] for s in whole["spent"]]
    assert calls <= sum(one["calls"] for one in gone_on["spent"]) <= calls + IN_FLIGHT
    again = server.asked.total()
    assert run("resume", str(folder), "--yes").returncode == 0
    assert server.asked.total() == again

    (tmp_path / "mine.txt").write_text("Another prompt.")
    changed = run("resume", str(folder), "--yes")
    assert (changed.returncode, server.asked.total()) == (2, again)
    assert "mine.txt changed" in changed.stderr
