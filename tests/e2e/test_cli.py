"""The real command in real processes: what a user types, what comes out, which exit code."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nursery
import pytest

pytestmark = pytest.mark.e2e

AUDIT = Path(sys.executable).parent / "audit"
TEXTS = [
    "The British actress told her brother that the film was dull.",
    "He is a kind man and the Italian lead plays his father with warmth.",
    "She and her husband loved it; a Black man plays the judge.",
    "An Asian woman runs the bar, and the Nigerian guy steals every scene.",
]


def environment(cwd: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "AUDIT_"))}
    return kept | {"AUDIT_CACHE": str(cwd / "cache.sqlite"), "NO_COLOR": "1"}


def require(done: subprocess.CompletedProcess[str], code: int | None) -> subprocess.CompletedProcess[str]:
    if code is not None:
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


def audit(*args: str | Path, cwd: Path, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, a fork of one that has imported what it needs."""
    return require(nursery.audit(*args, cwd=cwd, environment=environment(cwd)), code)


def spawned(cwd: Path, *args: str | Path, stdout: int) -> subprocess.CompletedProcess[str]:
    """The command as a shell starts it, imports and all."""
    return subprocess.run(
        [str(AUDIT), *map(str, args)], cwd=cwd, env=environment(cwd), stdout=stdout, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, timeout=300, check=False,
    )  # fmt: skip


def run_of(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The one run of a folder, and its record."""
    (record,) = folder.glob("reports/*/run.json")
    return record.parent, json.loads(record.read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run of the two embedded models."""
    folder = tmp_path_factory.mktemp("finished")
    require(spawned(folder, "--task", "sentiment", "--limit", "30", stdout=subprocess.PIPE), 0)
    return folder


def test_first_audit_ends_with_reports(finished: Path) -> None:
    run, record = run_of(finished)
    assert record["status"] == "complete"
    assert set(record["models"]) == {"reviews", "vader"}
    assert record["counts"]["seeds"] == 30
    assert record["counts"]["valid"] + record["counts"]["discarded"] == record["counts"]["variants"] > 50
    page = (run / "report.html").read_text()
    assert "http://" not in page.split("</style>")[1].split("<main")[0]
    (script,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert page.count("<script") == 1
    assert f"script-src 'sha256-{allowed}'" in page


def test_run_folder_follows_the_contract(finished: Path) -> None:
    run, record = run_of(finished)
    lines = {
        name: [json.loads(line) for line in (run / f"{name}.jsonl").read_text().splitlines()]
        for name in ("cases", "prompts", "responses", "verdicts")
    }
    case = lines["cases"][0]
    assert {"id", "suite", "sampling", "original", "variants"} <= set(case)
    assert {"id", "input", "groups"} <= set(case["original"])
    variants = [v for c in lines["cases"] for v in c["variants"]]
    for variant in variants:
        assert {"id", "input", "order", "groups", "edits", "valid", "reason"} <= set(variant)
        assert variant["valid"] or variant["reason"]
        for edit in variant["edits"]:
            assert {"attribute", "kind", "source_group", "target_group", "source", "target", "where"} <= set(edit)
    assert any(not v["valid"] for v in variants)
    assert any(v["order"] == 2 for v in variants)
    assert {"variant_id", "format", "prompt_sha256", "input"} <= set(lines["prompts"][0])
    answer = "variant_id prompt_sha256 format replicate output scores cached latency_s usage cost_usd"
    assert set(answer.split()) <= set(lines["responses"][0])
    verdict = "case_id variant_id order attributes outcome hidden original_output variant_output distance reason"
    assert set(verdict.split()) <= set(lines["verdicts"][0])
    whole = "format_version tool_version status spec provenance counts estimates controls findings diagnoses"
    assert set(whole.split()) <= set(record)
    counts = record["counts"]
    assert {"seeds", "cases", "variants", "valid", "discarded", "calls", "cached", "failed", "unparsed"} <= set(counts)
    assert {"refused", "tokens_in", "tokens_out", "cost_usd"} <= set(counts)
    for order in (1, 2):
        told = [v for v in lines["verdicts"] if v["order"] == order]
        assert counts["violations"][str(order)] == sum(v["outcome"] == "violation" for v in told)
        assert counts["hidden"][str(order)] == sum(v["hidden"] is True for v in told)


def test_show_report_verify_need_no_model(finished: Path) -> None:
    run, record = run_of(finished)
    assert record["findings"]
    assert len(audit("show", run.name, record["findings"][0]["id"], cwd=finished).stdout) > 200
    assert "F999" in audit("show", run.name, "F999", cwd=finished, code=2).stderr
    before = (run / "report.html").read_text()
    (run / "report.html").unlink()
    assert "report.html" in audit("report", run, "--format", "html,json", cwd=finished).stdout
    assert (run / "report.html").read_text() == before
    assert json.loads((run / "report.json").read_text())["id"] == run.name
    assert "as it was written" in audit("verify", run, cwd=finished).stdout


def test_replay_asks_again(finished: Path) -> None:
    run, record = run_of(finished)
    finding = next(f for f in record["findings"] if f["exemplars"])
    again = ["--again", "--replicates", "2", "--format", "json"]
    told = json.loads(audit("show", run, finding["id"], *again, cwd=finished).stdout)
    assert told["cells"][0]["role"] == "original"
    assert all(sum(cell["now"].values()) == 2 for cell in told["cells"])


def test_json_stands_alone_on_stdout_and_equals_the_file(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    argv = "run --task sentiment --data texts.txt --model vader --format json"
    record = json.loads(audit(*argv.split(), cwd=tmp_path).stdout)
    _, on_disk = run_of(tmp_path)
    on_disk.pop("journal", None)
    record.pop("journal", None)
    assert record == on_disk


@pytest.mark.parametrize("argv", [("list", "tasks"), ("--help",)])
def test_a_reader_that_goes_away_is_no_error(argv: tuple[str, ...], tmp_path: Path) -> None:
    """As ``audit … | head -c 1``: whether the rest is written at once or when the process ends."""
    read, write = os.pipe()
    os.close(read)
    done = spawned(tmp_path, *argv, stdout=write)
    os.close(write)
    assert "BrokenPipe" not in require(done, 0).stderr


@pytest.mark.parametrize("more", [(), ("--jobs", "2")], ids=["one-process", "two-processes"])
def test_ctrl_c_says_how_to_go_on(tmp_path: Path, more: tuple[str, ...]) -> None:
    """A real signal while answers come in: the command library catches it first, and must not swallow the words."""
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ndef classify(text):\n    time.sleep(0.2)\n    return 'positive'\n")
    argv = "--task sentiment --model python:slow:classify --limit 70 --concurrency 1"
    process = subprocess.Popen(
        [str(AUDIT), *argv.split(), *more], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"AUDIT_CACHE": str(tmp_path / "cache.sqlite")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not any(p.stat().st_size for p in tmp_path.glob("reports/*/responses.jsonl")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    (run,) = tmp_path.glob("reports/2*")
    assert said.count(f"audit resume reports/{run.name}\n") == 1
    assert "Traceback" not in said
    assert audit("verify", run, cwd=tmp_path, code=None).returncode == 0
