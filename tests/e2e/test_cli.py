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

import nursery
import pytest

pytestmark = pytest.mark.e2e

AUDIT = Path(sys.executable).parent / "audit"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
TEXTS = [
    "The British actress told her brother that the film was dull.",
    "He is a kind man and the Italian lead plays his father with warmth.",
    "She and her husband loved it; a Black man plays the judge.",
    "An Asian woman runs the bar, and the Nigerian guy steals every scene.",
]


def environment(cwd: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "AUDIT_"))}
    return kept | {"AUDIT_CACHE": str(cwd / "cache.sqlite"), "NO_COLOR": "1"} | more


def require(done: subprocess.CompletedProcess[str], code: int | None) -> subprocess.CompletedProcess[str]:
    if code is not None:
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


def audit(*args: str | Path, cwd: Path, code: int | None = 0, **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, a fork of one that has imported what it needs."""
    return require(nursery.audit(*args, cwd=cwd, environment=environment(cwd, **env)), code)


def typed(*args: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command as a shell starts it, imports and all."""
    done = subprocess.run(
        [str(AUDIT), *map(str, args)],
        cwd=cwd,
        env=environment(cwd),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    return require(done, code)


ROLES = ("clerk", "pilot", "nurse", "baker", "judge", "guard", "singer", "tutor", "miner", "vet", "cook", "mayor")


def texts(folder: Path) -> Path:
    path = folder / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def run_of(folder: Path) -> Path:
    (run,) = [p.parent for p in (folder / "reports").glob("*/plan.json")]
    return run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run of the two embedded models."""
    folder = tmp_path_factory.mktemp("finished")
    typed("--task", "sentiment", "--limit", "60", cwd=folder)
    return folder


def test_first_audit_ends_with_reports(finished: Path) -> None:
    run = run_of(finished)
    record = json.loads((run / "run.json").read_text())
    assert record["status"] == "complete"
    assert set(record["models"]) == {"reviews", "vader"}
    assert record["counts"]["seeds"] == 60
    assert record["counts"]["valid"] + record["counts"]["discarded"] == record["counts"]["variants"] > 100
    page = (run / "report.html").read_text()
    assert "http://" not in page.split("</style>")[1].split("<main")[0]
    (script,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert page.count("<script") == 1
    assert f"script-src 'sha256-{allowed}'" in page


def test_run_folder_follows_the_contract(finished: Path) -> None:
    run = run_of(finished)
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
    assert {
        "variant_id", "prompt_sha256", "format", "replicate", "output", "scores", "cached", "latency_s", "usage", "cost_usd",
    } <= set(lines["responses"][0])  # fmt: skip
    assert {
        "case_id", "variant_id", "order", "attributes", "outcome", "hidden", "original_output", "variant_output", "distance", "reason",
    } <= set(lines["verdicts"][0])  # fmt: skip
    record = json.loads((run / "run.json").read_text())
    for key in (
        "format_version",
        "tool_version",
        "status",
        "spec",
        "provenance",
        "counts",
        "estimates",
        "controls",
        "findings",
        "diagnoses",
    ):
        assert key in record
    counts = record["counts"]
    for key in (
        "seeds",
        "cases",
        "variants",
        "valid",
        "discarded",
        "calls",
        "cached",
        "failed",
        "unparsed",
        "refused",
        "tokens_in",
        "tokens_out",
        "cost_usd",
    ):
        assert key in counts
    told = lines["verdicts"]
    for order in ("1", "2"):
        assert counts["violations"][order] == sum(
            v["outcome"] == "violation" and v["order"] == int(order) for v in told
        )
        assert counts["hidden"][order] == sum(v["hidden"] is True and v["order"] == int(order) for v in told)


def test_outside_its_edits_a_variant_is_its_original(finished: Path) -> None:
    for line in (run_of(finished) / "cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        text = case["original"]["input"]
        for variant in case["variants"]:
            pieces, at = [], 0
            for edit in sorted(variant["edits"], key=lambda e: e["where"]):
                start, end = edit["where"]
                assert text[start:end] == edit["source"]
                pieces += [text[at:start], edit["target"]]
                at = end
            assert "".join([*pieces, text[at:]]) == variant["input"]


def test_show_report_verify_need_no_model(finished: Path) -> None:
    run = run_of(finished)
    record = json.loads((run / "run.json").read_text())
    assert record["findings"]
    shown = audit("show", run.name, record["findings"][0]["id"], cwd=finished)
    assert len(shown.stdout) > 200
    assert "F999" in audit("show", run.name, "F999", cwd=finished, code=2).stderr
    before = (run / "report.html").read_text()
    (run / "report.html").unlink()
    assert "report.html" in audit("report", run, "--format", "html,json", cwd=finished).stdout
    assert (run / "report.html").read_text() == before
    assert json.loads((run / "report.json").read_text())["id"] == run.name
    assert "as it was written" in audit("verify", run, cwd=finished).stdout


def test_replay_asks_again(finished: Path) -> None:
    run = run_of(finished)
    record = json.loads((run / "run.json").read_text())
    finding = next(f for f in record["findings"] if f["exemplars"])
    told = json.loads(
        audit("show", run, finding["id"], "--again", "--replicates", "2", "--format", "json", cwd=finished).stdout
    )
    assert told["cells"][0]["role"] == "original"
    assert all(sum(cell["now"].values()) == 2 for cell in told["cells"])


def test_verify_finds_a_changed_line(finished: Path, tmp_path: Path) -> None:
    import shutil

    run = shutil.copytree(run_of(finished), tmp_path / run_of(finished).name)
    path = run / "verdicts.jsonl"
    text = path.read_text()
    assert '"outcome":"pass"' in text
    path.write_text(text.replace('"outcome":"pass"', '"outcome":"violation"', 1))
    assert "verdicts.jsonl" in audit("verify", run, cwd=tmp_path, code=1).stdout


def test_json_stands_alone_on_stdout_and_equals_the_file(tmp_path: Path) -> None:
    done = audit(
        "run", "--task", "sentiment", "--data", texts(tmp_path), "--model", "vader", "--format", "json", cwd=tmp_path
    )
    record = json.loads(done.stdout)
    on_disk = json.loads((run_of(tmp_path) / "run.json").read_text())
    on_disk.pop("journal", None)
    record.pop("journal", None)
    assert record == on_disk


def test_same_seed_same_cases_and_figures(tmp_path: Path) -> None:
    seen = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        audit("--task", "sentiment", "--limit", "25", "--model", "reviews", cwd=folder)
        run = run_of(folder)
        record = json.loads((run / "run.json").read_text())
        rows = [json.loads(x) for x in (run / "cases.jsonl").read_text().splitlines()]
        for row in rows:  # the chain starts from the plan, which names the folder
            for key in ("prev", "hash"):
                row.pop(key)
        seen.append((rows, record["estimates"], record["findings"], record["counts"]))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_real_columns(tmp_path: Path, suffix: str) -> None:
    import csv

    path = tmp_path / f"in.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps({"review": t, "gold": "positive"}) + "\n" for t in TEXTS))
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([["review", "gold"], *[[t, "positive"] for t in TEXTS]])
    audit(
        "--task",
        "sentiment",
        "--data",
        path,
        "--column",
        "text=review",
        "--column",
        "label=gold",
        "--model",
        "vader",
        cwd=tmp_path,
    )
    (first, *_) = (run_of(tmp_path) / "cases.jsonl").read_text().splitlines()
    assert json.loads(first)["original"]["input"] == TEXTS[0]


def test_published_movie_reviews(tmp_path: Path) -> None:
    data = SHARED / "movie_reviews" / "imdb_sample.csv"
    if not data.exists():
        pytest.skip("../shared/data is not beside this checkout")
    audit("--task", "sentiment", "--data", data, "--limit", "30", cwd=tmp_path)
    record = json.loads((run_of(tmp_path) / "run.json").read_text())
    assert record["counts"]["cases"] >= 20


def test_published_pair_files_run_as_they_are(tmp_path: Path) -> None:
    folder = SHARED / "hinter_pairs"
    if not folder.exists():
        pytest.skip("../shared/data is not beside this checkout")
    audit(
        "--task", "sentiment", "--limit", "40", "--model", "reviews", "--protocol", "hinter", "--per-seed", "4",
        "--dictionary", folder / "gender" / "male_female.csv", "--dictionary", folder / "gender" / "female_male.csv",
        "--dictionary", folder / "race" / "asian_arab.csv", "--dictionary", f"race={folder / 'race' / 'arab_asian.csv'}",
        cwd=tmp_path,
    )  # fmt: skip
    record = json.loads((run_of(tmp_path) / "run.json").read_text())
    assert record["spec"]["protocol"] == "hinter"
    assert record["hinter"]["reviews"]


def test_fail_on_sets_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "biased.py").write_text(
        "def model(text):\n    return 'negative' if ' her ' in f' {text} ' or 'She' in text else 'positive'\nmodel.deterministic = True\n"
    )
    # Enough texts, with words that placebo edits can change, to tell the change from what any edit does.
    (tmp_path / "many.txt").write_text(
        "\n".join(f"She is a {role} in the film. The book came in the morning." for role in ROLES) + "\n"
    )
    spec = ("--task", "sentiment", "--data", tmp_path / "many.txt", "--model", "python:biased:model")
    audit(*spec, cwd=tmp_path, code=0)
    audit(*spec, "--fail-on", "shown", cwd=tmp_path, code=1)
    audit(*spec, "--fail-on", "net(gender) > 99%", cwd=tmp_path, code=3)  # its control was not seen


def test_generate_then_score_any_gateway(tmp_path: Path) -> None:
    done = audit("generate", "--task", "sentiment", "--data", texts(tmp_path), "--format", "json", cwd=tmp_path)
    run = Path(json.loads(done.stdout)["run"])
    prompts = [json.loads(line) for line in (tmp_path / run / "prompts.jsonl").read_text().splitlines()]
    assert prompts
    assert "messages" in prompts[0]
    answers = tmp_path / "answers.jsonl"
    with answers.open("w") as file:
        for prompt in prompts:
            for replicate in range(3):
                said = "positive" if "woman" in prompt["messages"][-1]["content"] else "negative"
                file.write(
                    json.dumps({"prompt_sha256": prompt["prompt_sha256"], "replicate": replicate, "output": said})
                    + "\n"
                )
    audit("import", answers, "--generated", run, cwd=tmp_path)
    record = json.loads((tmp_path / run / "run.json").read_text())
    assert record["counts"]["violations"]["1"] > 0
    audit("resume", run, "--yes", cwd=tmp_path, code=None)


@pytest.mark.parametrize("argv", [("--task", "sentiment", "--limit", "3", "--model", "vader"), ("--help",)])
def test_a_reader_that_goes_away_is_no_error(argv: tuple[str, ...], tmp_path: Path) -> None:
    """As ``audit … | head -c 1``: whether the rest is written at once or when the process ends."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [str(AUDIT), *argv], cwd=tmp_path, env=environment(tmp_path), stdout=write, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, timeout=300, check=False,
    )  # fmt: skip
    os.close(write)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_dry_run_asks_nothing(tmp_path: Path) -> None:
    done = audit(
        "--task", "hiring", "--limit", "20", "--model", "openai:some-model", "--base-url", "http://127.0.0.1:9/v1",
        "--price", "1,2", "--dry-run", "--format", "json", cwd=tmp_path,
    )  # fmt: skip
    told = json.loads(done.stdout)
    row = told["models"]["openai:some-model"]
    assert row["replicates"] == 1
    assert row["calls"] == row["prompts"] > 0
    assert row["cost_usd"] > 0
    assert not (tmp_path / "reports").exists()


def test_a_call_limit_ends_with_a_partial_report_and_resume_goes_on(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import pathlib\n"
        "def model(text):\n"
        "    with open('asked.log', 'a') as f: f.write(' | '.join(text.splitlines()) + '\\n')\n"
        "    return 'positive' if len(text) % 2 else 'negative'\n"
    )
    spec = ("--task", "sentiment", "--data", texts(tmp_path), "--model", "python:mine:model", "--no-cache")
    done = audit(*spec, "--max-calls", "20", cwd=tmp_path, code=3)
    assert "resume" in done.stderr
    run = run_of(tmp_path)
    assert json.loads((run / "run.json").read_text())["status"] == "partial"
    first = (tmp_path / "asked.log").read_text().splitlines()
    assert len(first) == 20
    audit("resume", run, "--yes", "--max-calls", "100000", cwd=tmp_path)
    record = json.loads((run / "run.json").read_text())
    assert record["status"] == "complete"
    asked = (tmp_path / "asked.log").read_text().splitlines()
    # Three replicates of each prompt, none asked again; canaries (4 originals here) once more at the end.
    often = {text for text in asked if asked.count(text) > 3}
    assert len(often) <= 4
    assert max(asked.count(text) for text in asked) <= 6, sorted((asked.count(t), t) for t in set(asked))[-5:]
    assert "as it was written" in audit("verify", run, cwd=tmp_path).stdout


WRONG = [
    (("--task", "sentimant"), "Did you mean sentiment"),
    (("--task", "sentiment", "--data", "nowhere.csv"), "nowhere.csv"),
    (("--task", "sentiment", "--attributes", "gendre"), "gender"),
    (("--task", "sentiment", "--model", "vaderr"), "vader"),
    (("--task", "sentiment", "--model", "python:no_such_module:f"), "no_such_module"),
    (("--task", "sentiment", "--data", "empty.csv"), "empty.csv"),
    (("--task", "sentiment", "--data", "latin.csv"), "latin.csv"),
    (("--task", "sentiment", "--data", "columns.csv"), "text"),
    (("--task", "sentiment", "--data", "columns.csv", "--column", "text=revew"), "review"),
    (("--task", "sentiment", "--data", "broken.jsonl"), "line 2"),
    (("--task", "sentiment", "--data", "plain.txt"), "people"),
    (("--task", "broken.yaml"), "broken.yaml"),
    (("--task", "sentiment", "--order", "two"), "--order"),
    (
        ("--task", "sentiment", "--formats", "yaml", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1"),
        "format",
    ),
    (("--task", "sentiment", "--model", "openai:x"), "OPENAI_API_KEY"),
    (
        ("--task", "sentiment", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", "--max-cost", "1"),
        "--price IN,OUT",
    ),
    (("--task", "sentiment", "--dictionary", "gone.csv"), "gone.csv"),
    (("--task", "sentiment", "--dictionary", "bad.yaml"), "bad.yaml"),
    (("--task", "sentiment", "--parser", "no_such_pipeline"), "no_such_pipeline"),
    (("--task", "sentiment", "--config", "gone.toml"), "gone.toml"),
    (("--task", "sentiment", "--format", "yaml"), "--format"),
    (("--tusk", "sentiment"), "--task"),
    (("frobnicate",), "frobnicate"),
    (("show", "nowhere", "F001"), "nowhere"),
    (("resume", "nowhere"), "nowhere"),
    (("report", "newer"), "newer"),
    (("list", "tasks", "new", "texts"), "exists"),
]


@pytest.mark.parametrize(("args", "says"), WRONG, ids=[" ".join(a)[:60] for a, _ in WRONG])
def test_bad_input_gets_one_clear_paragraph(tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "latin.csv").write_bytes("text\ncaf\xe9 owner, a woman\n".encode("latin-1"))
    (tmp_path / "columns.csv").write_text("review,stars\nShe was kind.,4\n")
    (tmp_path / "broken.jsonl").write_text('{"text": "She was kind."}\n{"text": \n')
    (tmp_path / "plain.txt").write_text("The rain fell on the stones.\n")
    (tmp_path / "broken.yaml").write_text("name: [unclosed\n")
    (tmp_path / "bad.yaml").write_text("format: 1\nattribute: gender\nslots: 7\n")
    (tmp_path / "texts.yaml").write_text("")
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "plan.json").write_text('{"format_version": 99}')
    done = (typed if args == WRONG[0][0] else audit)(*args, cwd=tmp_path, code=2)
    assert says in done.stderr
    assert done.stdout == ""
    assert len(done.stderr) < 1500


def test_a_dictionary_of_ones_own_with_regex_characters(tmp_path: Path) -> None:
    folder = tmp_path / "team"
    folder.mkdir()
    (folder / "red_blue.csv").write_text("c++ (red);c# [blue]\nactress*;actor.\nwoman;man\n")
    (tmp_path / "t.txt").write_text("A woman who writes c++ (red) code met an actress* here.\n")
    audit(
        "--task", "sentiment", "--data", "t.txt", "--model", "vader", "--dictionary", "team/red_blue.csv", cwd=tmp_path
    )
    case = json.loads((run_of(tmp_path) / "cases.jsonl").read_text().splitlines()[0])
    assert any("c# [blue]" in v["input"] for v in case["variants"])


def test_unreachable_server_and_wrong_key(tmp_path: Path) -> None:
    spec = (
        "--task",
        "sentiment",
        "--data",
        texts(tmp_path),
        "--model",
        "openai:x",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--yes",
    )
    done = audit(*spec, cwd=tmp_path, code=2, OPENAI_API_KEY="sk-secret-value")
    assert "127.0.0.1:9" in done.stderr
    for path in (tmp_path / "reports").rglob("*"):
        if path.is_file():
            assert "sk-secret-value" not in path.read_text(errors="replace")


def test_untrusted_text_reaches_no_terminal_and_no_markup(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("She said \x1b[31m<script>alert(1)</script> [bold]her[/bold] \u202eevil.\n")
    (tmp_path / "m.py").write_text(
        "def f(text):\n    return 'negative' if 'He' in text else 'positive'\nf.deterministic = True\n"
    )
    done = audit("--task", "sentiment", "--data", "t.txt", "--model", "python:m:f", cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    page = (run_of(tmp_path) / "report.html").read_text()
    assert "<script>alert" not in page


def test_tasks_of_ones_own(tmp_path: Path) -> None:
    audit("list", "tasks", "new", "triage", cwd=tmp_path)
    assert "sentiment" in audit("list", "tasks", cwd=tmp_path).stdout
    (tmp_path / "m.py").write_text(
        "import re\ndef f(text):\n    return LABEL\n".replace("LABEL", repr(label(tmp_path / "triage.yaml")))
    )
    audit("--task", "triage.yaml", "--data", texts(tmp_path), "--model", "python:m:f", cwd=tmp_path)


def label(path: Path) -> str:
    from auditor import tasks

    return str(tasks.load(str(path)).labels[0])


def test_dictionary_commands(tmp_path: Path) -> None:
    assert "gender" in audit("list", "dictionaries", cwd=tmp_path).stdout
    audit("list", "dictionaries", "check", cwd=tmp_path)


@pytest.mark.parametrize("more", [(), ("--jobs", "2")], ids=["one-process", "two-processes"])
def test_ctrl_c_says_how_to_go_on(tmp_path: Path, more: tuple[str, ...]) -> None:
    """A real signal while answers come in: the command library catches it first, and must not swallow the words."""
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ndef classify(text):\n    time.sleep(0.2)\n    return 'positive'\n")
    process = subprocess.Popen(
        [
            str(AUDIT),
            "--task",
            "sentiment",
            "--model",
            "python:slow:classify",
            *more,
            "--limit",
            "70",
            "--concurrency",
            "1",
        ],
        cwd=tmp_path,
        env=os.environ | {"AUDIT_CACHE": str(tmp_path / "cache.sqlite")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
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
