"""What an attacker, a hurried user or an accident does to an audit, seen at the command line."""

from __future__ import annotations

import itertools
import json
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

import pytest
from commands import Capture, Patch, keys, only, said, tells
from nursery import Server

from auditor.cli.main import run
from tests.asking import GOAL

# -- signatures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_a_report_that_was_added_after_signing_is_not_vouched_for(file: str, place: Path, capsys: Capture) -> None:
    keys("key")
    tells(capsys, "run --task sentiment --limit 3 --model vader")
    folder = only("reports/*/plan.json").parent
    (folder / "report.html").unlink()
    Path("reports/runs.jsonl").unlink()
    tells(capsys, f"verify {folder} --sign key.pem")
    tells(capsys, f"verify {folder} --signed-by key.pub")
    (folder / file).write_text("<p>Nothing was found.</p>")
    tells(capsys, f"verify {folder} --signed-by key.pub", f"{file}: not checked", code=1)
    tells(capsys, f"verify {folder}", f"{file}: not checked")
    tells(capsys, f"verify {folder} --sign key.pem")
    tells(capsys, f"verify {folder} --signed-by key.pub")
    (folder / file).write_text("<p>Something else.</p>")
    tells(capsys, f"verify {folder} --signed-by key.pub", code=1)


# -- Ctrl-C ---------------------------------------------------------------------------------------------

STARTING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
seen = set()

def interrupt(event, names):
    if event == "import" and names[0].startswith("auditor.") and names[0] not in seen:
        seen.add(names[0])
        if "auditor.cli.main" in seen and len(seen) == {n}:
            os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
from auditor.cli.main import main
main(["--task", "sentiment", "--model", "vader", "--limit", "2", "--out", "runs"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 7, 15, 40])
def test_ctrl_c_while_modules_load_exits_130_without_a_traceback(n: int, place: Path) -> None:
    done = subprocess.run([sys.executable, "-c", STARTING.format(n=n)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 130, done.stderr
    assert "Interrupted" in done.stderr
    assert "Traceback" not in done.stderr


# -- the disk -------------------------------------------------------------------------------------------


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize(
    "start",
    [
        "run --task sentiment --model openai:one --model openai:two --limit 60",
        "tabular --task lending --model openai:one --method themis --protected sex",
        "agent 'Do film reviews by women get another sentiment?' --model openai:one --limit 60",
    ],
)
def test_a_run_whose_folder_is_deleted_asks_nothing_more(start: str, place: Path, capsys: Capture) -> None:
    lock, asked = threading.Lock(), list[str]()

    def reply(model: str, text: str) -> str:
        with lock:
            asked.append(text)
            if len(asked) == 20:
                shutil.rmtree(place / "runs")
        return "positive"

    with Server(reply) as server:
        more = ["--base-url", server.url, "--concurrency", "4", "--no-cache", "--out", "runs", "--max-calls", "900"]
        tells(capsys, [*shlex.split(start), *more], "deleted", code=2)
    assert len(asked) <= 20 + 2 * 8  # what was under way, of two models


# -- clients that go away -------------------------------------------------------------------------------


@pytest.mark.e2e
@pytest.mark.slow
def test_a_client_that_goes_away_ends_the_asking(place: Path) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    held, going = threading.Event(), threading.Event()
    count = itertools.count(1)

    def reply(model: str, text: str) -> str:
        if next(count) > 10:
            held.set()
            going.wait(120)
        return "positive"

    with Server(reply) as server:
        argv = ["mcp", GOAL, "--model", "openai:one", "--base-url", server.url, "--max-calls", "3000"]
        argv += ["--no-cache", "--concurrency", "4", "--out", "runs"]
        code = f"from auditor.cli.main import main; main({argv!r})"
        with subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as client:
            about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            run = {"purpose": "pilot", "attributes": ["gender"], "texts": 60, "why": "a first look"}
            for message in (
                {"id": 1, "method": "initialize", "params": about},
                {"method": "notifications/initialized"},
                {"id": 2, "method": "tools/call", "params": {"name": "run_audit", "arguments": run}},
            ):
                client.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                client.stdin.flush()
            assert held.wait(120)
            client.stdin.close()
            time.sleep(2)  # while four calls are held, it can do nothing but see that its input ended
            going.set()
            assert client.wait(120) == 3, client.stderr
        server.settle()
        assert sum(server.asked.values()) <= 10 + 4
    session = json.loads(only("runs/agent-*/session.json").read_text())
    assert session["status"] == "partial"
    assert "client went away" in session["status_reason"]


# -- folders that others made ---------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: Patch, serve: Callable[..., Server]) -> Server:
    monkeypatch.setenv("AWS_SECRET", "hidden-value")
    return serve(lambda model, text: "positive")


TEXTS = "run --task sentiment --limit 4 --attributes gender --max-calls 40 --full-plan"
BEGUN = {  # what makes a folder, and the command that goes on with it
    "texts": (TEXTS, "resume RUN --anyway --max-calls 90"),
    "rows": ("tabular --task lending --protected sex --max-calls 4", "resume RUN --max-calls 8"),
    "trial": (TEXTS, "mitigate RUN --with ignore --max-calls 200"),
    "again": (TEXTS, "show RUN VARIANT --again --replicates 1"),
    "session": ("agent 'Do film reviews by women get another sentiment?' --limit 30 --max-calls 60", "resume RUN"),
}  # fmt: skip


def make(start: str, url: str) -> Path:
    """The folder that a command makes which is sent a variable of the environment and a file."""
    Path("body.json").write_text('{"user": "audit"}')
    argv = [*shlex.split(start), "--model", "openai:one", "--base-url", url, "--server", "header=X-Leak=AWS_SECRET"]
    assert run([*argv, "--server", "openai:one extra-body=body.json", "--no-cache", "--out", "runs"]) in (0, 3)
    if session := list(Path("runs").glob("agent-*/session.json")):  # as if it was killed
        session[0].write_text(json.dumps(json.loads(session[0].read_text()) | {"status": "interrupted"}))
        return session[0].parent
    return only("runs/*/plan.json").parent


def going_on(kind: str, folder: Path) -> list[str]:
    """The command line that goes on with a folder."""
    line = BEGUN[kind][1].replace("RUN", str(folder))
    if kind == "again":
        verdict = json.loads((folder / "verdicts.jsonl").read_text().splitlines()[0])
        line = line.replace("VARIANT", verdict["variant_id"])
    return line.split()


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("kind", BEGUN)
def test_consent_names_what_leaves_the_machine(kind: str, place: Path, server: Server, capsys: Capture) -> None:
    folder = make(BEGUN[kind][0], server.url)
    argv = going_on(kind, folder)
    server.asked.clear()
    named = [] if kind == "session" else ["--base-url", server.url]
    for more in ([], named):
        address = [] if more else [server.url]
        tells(capsys, [*argv, *more], "AWS_SECRET (as X-Leak)", "body.json", "--yes", *address, code=2)
        assert not server.asked
    if kind != "session":
        assert said(capsys, *argv, "--yes")[0] in (0, 3)
        assert server.asked
    assert {headers.get("X-Leak", "") for headers in server.headers} == {"hidden-value"}


def forged(folder: Path, **changes: object) -> Path:
    """A folder that holds nothing but the plan of another one, changed."""
    plan = json.loads((folder / "plan.json").read_text())
    inner = plan.get("plan", plan)
    for name, value in changes.items():
        (plan if name in plan else inner)[name] = value
    other = folder.parent / "forged"
    other.mkdir()
    (other / "plan.json").write_text(json.dumps(plan))
    return other


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["texts", "rows"])
def test_a_plan_without_fingerprints_is_refused(kind: str, place: Path, server: Server, capsys: Capture) -> None:
    folder = forged(make(BEGUN[kind][0], server.url), fingerprints={})
    server.asked.clear()
    tells(capsys, [*going_on(kind, folder), "--yes"], "no fingerprint of the model openai:one", code=2)
    assert not server.asked


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["texts", "rows"])
def test_a_plan_without_limits_asks_again(kind: str, place: Path, server: Server, capsys: Capture) -> None:
    argv = [*shlex.split(BEGUN[kind][0]), "--model", "openai:one", "--base-url", server.url, "--out", "runs"]
    assert run([*argv, "--no-cache"]) in (0, 3)
    folder = only("runs/*/plan.json").parent
    argv, limit = going_on(kind, forged(folder, max_calls=None))[:-2], going_on(kind, folder)[-2:]
    server.asked.clear()
    tells(capsys, [*argv, "--base-url", server.url], "sets no limit", "openai:one may cost money", code=2)
    assert not server.asked
    assert said(capsys, *argv, "--base-url", server.url, *limit)[0] in (0, 3)
    assert server.asked


@pytest.mark.parametrize(
    ("begun", "named"),
    [
        ("--task sentiment --limit 3 --model vader --out runs", {"models": ["http:theirs.yaml"]}),
        ("tabular --task lending --max-calls 4 --model python:lender:decide --out runs", {"model": "http:theirs.yaml"}),
    ],
    ids=["texts", "rows"],
)
def test_consent_names_the_server_and_the_variables_of_a_file(
    begun: str, named: dict[str, object], place: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("THEIR_KEY", "hidden-value")
    Path("theirs.yaml").write_text(
        "format: 1\nurl: http://127.0.0.1:9/ask\nheaders: {X-Key: '${THEIR_KEY}'}\n"
        'request: {text: "{{input}}"}\nanswer: label\n'
    )
    Path("lender.py").write_text("def decide(text):\n    return 'approve'\n")
    assert said(capsys, *begun.split())[0] in (0, 3)
    folder = forged(only("runs/*/plan.json").parent, **named, max_calls=9)
    told = tells(capsys, f"resume {folder}", "http:theirs.yaml (http://127.0.0.1:9/ask, THEIR_KEY)", code=2)
    assert "hidden-value" not in told


# -- names and numbers that nobody means ----------------------------------------------------------------


NAMED = ["run", "--task", "sentiment", "--model", "vader", "--data", "texts.txt", "--dictionary"]


def people(place: Path, pairs: str) -> None:
    """Texts, and in a file of pairs the terms of an attribute."""
    (place / "texts.txt").write_text("The old man sang.\nAn old woman sang.\n")
    (place / pairs).parent.mkdir(exist_ok=True)
    (place / pairs).write_text("old man;young man\nold woman;young woman\n")


@pytest.mark.parametrize("name", ["../../x", "<script>x", "x:y", "x,y", "-x", "x\ny"])
@pytest.mark.parametrize("kind", ["option", "file", "folder"])
def test_an_attribute_has_a_name_that_can_be_written(name: str, kind: str, place: Path, capsys: Capture) -> None:
    if kind == "folder" and "/" in name:
        pytest.skip("the name of a folder holds no slash")
    people(place, f"{name}/pairs.csv" if kind == "folder" else "pairs.csv")
    options = {"option": f"{name}=pairs.csv", "file": "own.yaml", "folder": f"./{name}/pairs.csv"}
    slots = {"s": {"terms": {"a": ["old"], "b": ["young"]}}}
    Path("own.yaml").write_text(json.dumps({"attribute": name, "groups": {"a": {}, "b": {}}, "slots": slots}))
    told = tells(capsys, [*NAMED, options[kind]], code=2)
    assert "name of an attribute" in told or "no such file" in told
    assert not Path("reports").exists()


def test_an_attribute_may_have_letters_of_any_language(place: Path, capsys: Capture) -> None:
    people(place, "pairs.csv")
    tells(capsys, [*NAMED, "Größe 2-b=pairs.csv"])


@pytest.mark.parametrize("option", ["concurrency", "jobs"])
def test_how_much_goes_on_at_once_has_a_limit(option: str, place: Path, capsys: Capture) -> None:
    tells(capsys, f"run --task sentiment --{option} 100000000", f"--{option} must be at most 1,000", code=2)
    Path("audit.toml").write_text(f'task = "sentiment"\nmodel = "vader"\n{option} = 100000000\n')
    tells(capsys, "run", "audit.toml, line 3", "at most 1,000", code=2)
    assert not Path("reports").exists()


@pytest.mark.parametrize("file", ["audit.toml", "waivers.toml"])
@pytest.mark.parametrize(
    "argv",
    [
        "",
        "run --task sentiment --model vader --limit 2",
        "generate --task sentiment --limit 2",
        "plan freeze --task sentiment --model vader --limit 2 --output frozen.json",
        "tabular --data rows.csv --target label --protected sex --model python:rows:classify",
    ],
)
def test_settings_that_are_a_folder_are_refused(argv: str, file: str, place: Path, capsys: Capture) -> None:
    if file == "waivers.toml" and argv.split()[:1] not in (["run"], ["tabular"]):
        pytest.skip("takes no waivers")
    Path(file).mkdir()
    tells(capsys, argv.split(), f"{file}: this is a folder", code=2)
    assert not Path("reports").exists()


# -- proxies --------------------------------------------------------------------------------------------

PROXIED = {
    "run": "run --task sentiment --limit 2 --max-calls 40 --full-plan",
    "planned": "run --task sentiment --limit 2 --max-calls 40 --dry-run",
    "resumed": "resume runs/latest --max-calls 90 --anyway",
    "trial": "mitigate runs/latest --with ignore --max-calls 200",
    "planned trial": "mitigate runs/latest --with ignore --max-calls 200 --dry-run",
    "rows": "tabular --task lending --protected sex --max-calls 4",
    "planned rows": "tabular --task lending --protected sex --max-calls 4 --dry-run",
    "session": "agent 'Do film reviews by women get another sentiment?' --limit 30 --max-calls 60",
    "doctor": "doctor",
}


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("kind", PROXIED)
def test_a_proxy_is_named(kind: str, place: Path, server: Server, monkeypatch: Patch, capsys: Capture) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    proxy = server.url.removesuffix("/v1").removeprefix("http://")
    monkeypatch.setenv("HTTP_PROXY", f"http://someone:pass-phrase@{proxy}")
    url = "http://models.example/v1"  # there is no such place: what is answered went through the proxy
    if "runs/latest" in PROXIED[kind]:
        assert run([*shlex.split(PROXIED["run"]), "--model", "openai:one", "--base-url", url, "--out", "runs"]) == 3
        server.asked.clear()
    model = [] if "runs/latest" in PROXIED[kind] else ["--model", "openai:one"]
    argv = [*shlex.split(PROXIED[kind]), *model, "--base-url", url]
    code, told = said(capsys, *argv)
    assert code in (0, 3), told
    assert bool(server.asked) == ("planned" not in kind)
    assert f"asked through the proxy http://[key]@{proxy} of the environment" in told
    assert "pass-phrase" not in told
    if "planned" in kind:
        monkeypatch.setenv("NO_PROXY", "models.example")
        assert "proxy" not in said(capsys, *argv)[1]
