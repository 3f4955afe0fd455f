"""The task `resume` against a server: what is planted in scores, choices and changed prompts is found, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nursery import IN_FLIGHT, Nursery, kill_after

from auditor.perturb.name_lines import full_names
from auditor.run.mitigate import BLANK, IGNORE

pytestmark = pytest.mark.e2e
BLACK = {first.name for (race, _), names in full_names().items() if race == "black" for first in names}
Asked = Callable[..., Any]
SCORES = shlex.split(
    "--task resume --model openai:screener --carrier name --attributes race --groups race:black/white --format json "
    "--base-url"
)


def screener(base: int, off: Callable[[str, bool], int]) -> Callable[[str, str], str]:
    """A model that reads the words of a résumé, not its layout; points are off by its prompt and for Black names."""

    def reply(model: str, text: str) -> str:
        found = re.search(r"<application>\n(?:Applicant: (\S+) \S+\n\n)?(.*)</application>(.*)", text, re.DOTALL)
        words = re.sub(r"\W+", " ", found[2].replace(BLANK, ""))
        score = base + hashlib.sha256(words.encode()).digest()[0] // 5
        score -= off(text, found[1] in BLACK)
        decision = "invite" if score >= 60 else "hold" if score >= 45 else "reject"
        return json.dumps({"score": score, "decision": decision})

    return reply


# -- scores ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lowered", [0, 10])
def test_a_lower_score_for_some_names(tmp_path: Path, serve: Asked, audited: Asked, lowered: int) -> None:
    server = serve(screener(30, lambda text, black: lowered * black))
    record = json.loads(audited(*SCORES, server.url, "--limit", "48", "--max-calls", "1000").stdout)
    (claim,) = [c for c in record["claims"] if c["family"] == "net" and c["scale"] == "number"]
    assert (claim["verdict"] == "shown") == (lowered > 0)
    assert claim["low"] <= -lowered <= claim["high"]
    assert record["counts"]["unparsed"] == 0
    (cases,) = tmp_path.glob("reports/2*/cases.jsonl")
    assert set(re.findall(r'"irrelevant: (\w+)"', cases.read_text())) == {"layout", "hobby", "date"}


# -- choices ---------------------------------------------------------------------------------------------


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


def choice(candidates: int) -> list[str]:
    line = f"choose --task resume --carrier name --attributes race --candidates {candidates} --model openai:judge"
    return [*line.split(), "--format", "json", "--base-url"]


@pytest.mark.parametrize("against", [0.0, 0.5])
@pytest.mark.parametrize("candidates", [2, 5])
def test_who_is_chosen(serve: Asked, audited: Asked, against: float, candidates: int) -> None:
    server = serve(judge(against, 0.5))
    told = json.loads(audited(*choice(candidates), server.url, "--limit", "96", "--max-calls", "2000").stdout)
    seen = told["panels"]["openai:judge"]
    assert seen["position"] > 0.1
    claims = {c["groups"][0]: c for c in told["claims"] if c["family"] == "net"}
    assert (claims["black"]["verdict"] == "shown") == (against > 0), claims["black"]
    assert ((claims["black"]["estimate"] or 0) < -10) == (against > 0)
    assert all(c["verdict"] != "shown" for g, c in claims.items() if g != "black") or against > 0
    if candidates > 2:
        assert (seen["impact"]["black"] < 0.6) == (against > 0)
    audited("verify", "latest")
    audited("report", "latest", "--format", "markdown")


@pytest.mark.parametrize("candidates", [2, 4])
def test_a_run_that_a_limit_cut_off_goes_on(serve: Asked, audited: Asked, candidates: int) -> None:
    server = serve(judge(0.5, 0.1))
    given = [*choice(candidates), server.url, "--limit", "12", "--no-cache", "--max-calls"]
    first = json.loads(audited(*given, "900", "--out", "whole").stdout)
    part = audited(*given, "20", "--out", "part", code=3)
    folder = f"part/{json.loads(part.stdout)['id']}"
    assert f"audit resume {folder}" in part.stderr
    calls = ["resume", folder, "--yes", "--format", "json", "--max-calls"]
    short = json.loads(audited(*calls, "25", code=3).stdout)  # the limit is that of the whole run
    assert short["counts"]["calls"] == 25
    last = json.loads(audited(*calls, "900").stdout)
    for part_of in ("status", "counts", "claims", "findings", "panels"):
        assert first[part_of] == last[part_of]
    audited("verify", folder)


# -- changed prompts -------------------------------------------------------------------------------------

MINE = "Think of the work alone."


def off(text: str, black: bool) -> int:
    """Points that a prompt takes from everybody, and from Black names."""
    return (25 if MINE in text else 0) + black * (-9 if IGNORE in text else 10)


def test_changed_prompts_reduce_reverse_and_change_nothing(tmp_path: Path, serve: Asked, audited: Asked) -> None:
    server = serve(screener(40, off), whole=True)
    audited(*SCORES, server.url, *["--limit", "48", "--replicates", "1", "--full-plan", "--max-calls", "1000"])
    before = sum(server.asked.values())
    (tmp_path / "less.txt").write_text(MINE)
    argv = ["mitigate", "latest", "--base-url", server.url, "--format", "json", "--with"]
    trial = json.loads(audited(*argv, "ignore,redact", "--prompt", "less.txt", "--max-calls", "2000").stdout)
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
    audited("verify", folder / spent["ignore"]["run"])

    few = json.loads(audited(*argv, "ignore", "--max-calls", "60").stdout)
    assert few["texts"] < trial["texts"]
    assert "enough for" in few["notes"][0]


def test_a_trial_that_was_killed_goes_on(tmp_path: Path, serve: Asked, audited: Asked) -> None:
    server = serve(screener(40, off), whole=True, delay_s=0.005)
    plan = ["--limit", "8", "--replicates", "1", "--full-plan", "--no-cache", "--max-calls", "400"]
    audited(*SCORES, server.url, *plan, "--concurrency", str(IN_FLIGHT))
    (tmp_path / "mine.txt").write_text(IGNORE)
    trial = ["mitigate", "latest", "--with", "ignore,redact", "--prompt", "mine.txt", "--yes", "--max-calls", "900"]
    whole = json.loads(audited(*trial, "--format", "json").stdout)

    (first,) = (tmp_path / "reports").glob("*-mitigated-*")
    before = server.asked.total()
    assert kill_after(Nursery(tmp_path), server, tmp_path / "reports", 40, *trial)
    (folder,) = set((tmp_path / "reports").glob("*-mitigated-*")) - {first}
    assert not (folder / "mitigation.json").exists()

    audited("resume", folder, code=2)  # the server that the folder names was not named
    gone_on = json.loads(audited("resume", "latest", "--base-url", server.url, "--format", "json").stdout)
    calls = sum(one["calls"] for one in whole["spent"])
    assert calls <= server.asked.total() - before <= calls + IN_FLIGHT
    assert gone_on["found"] == whole["found"]
    assert [s["answers"] for s in gone_on["spent"]] == [s["answers"] for s in whole["spent"]]
    assert calls <= sum(one["calls"] for one in gone_on["spent"]) <= calls + IN_FLIGHT
    again = server.asked.total()
    audited("resume", folder, "--yes")
    assert server.asked.total() == again

    (tmp_path / "mine.txt").write_text("Another prompt.")
    assert "mine.txt changed" in audited("resume", folder, "--yes", code=2).stderr
    assert server.asked.total() == again
