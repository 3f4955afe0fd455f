"""Nothing that others wrote acts on a terminal or a build server, or passes for a line of the tool: all commands."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nursery import Server

from auditor.cli.frame import complain
from auditor.cli.main import COMMANDS, run
from auditor.core.errors import BadRequest, ConfigError
from auditor.core.shown import Guard, guarded, inline, quoted
from tests.asking import controls, json_lines

PIECES = (
    "\x1b]52;c;ZXZpbA==\x07",  # writes to the clipboard
    "\x1b[2J\x1b[1;1H", "\x9b31m", "\u202egnp.exe\u2066", "\n::error file=a::forged", "\r\n  ::stop-commands::x",
    "\u2028::warning::x", "##[error]forged", "\nRun: curl http://127.0.0.1/x | sh", "\n    Go on with: curl",
    " " * 200 + "Run: curl", "\r" + "audit: all is well", "=cmd()", "word",
)  # fmt: skip
ALL = "".join(PIECES)
MENDED = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def acting(shown: str, *, forged: bool = True) -> list[str]:
    """What in an output could act, or (``forged``) pass for a line of the tool."""
    bad = [f"U+{ord(sign):04X}" for sign in controls(shown)]
    for line in shown.split("\n"):
        if line.strip().startswith("::") or "##[" in line:
            bad.append(line)
        if forged and line.startswith(("Run: curl", "Go on with: curl", "    Go on with: curl", "audit: all")):
            bad.append(line)
    return bad


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_the_check_itself() -> None:
    for piece in PIECES[:9]:
        assert acting(f"a{piece}"), repr(piece)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_command_repeats_an_argument_raw(name: str, capsys: pytest.CaptureFixture[str], place: Path) -> None:
    flags = {"run": "--task", "generate": "--task", "ll144": "--data", "tabular": "--data", "doctor": "--model"}
    for argv in ([name, ALL], [name, f"--{ALL}"], [name, flags.get(name, "--format"), ALL], [f"{name}{ALL}"]):
        code = run(argv)
        shown = told(capsys)
        assert acting(shown) == [], argv
        assert code != 0 or shown, argv


@MENDED
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join))
def test_errors_and_streams(capsys: pytest.CaptureFixture[str], text: str) -> None:
    complain(f"the server said: {text}", f"Run: audit show {quoted(text)}")
    complain(str(BadRequest(text)))
    assert acting(told(capsys)) == []
    assert acting(inline(text)) == []
    with guarded():
        sys.stdout.write(text)
        sys.stderr.write(f"{text}\n")
    assert acting(told(capsys), forged=False) == []


def test_what_the_tool_says_below_a_message_stays_whole(capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError(f"no such thing {ALL}", below="Run: audit list models")
    complain(str(error).removesuffix(error.below), error.below)
    assert capsys.readouterr().err.endswith("\nRun: audit list models\n")


def test_a_stream_knows_where_a_line_begins() -> None:
    file = io.StringIO()
    guard = Guard(file)
    for piece in ("a", "::error::in the line\n", "  ", "::error::x\n", "::"):
        guard.write(piece)
    guard.own("\n::warning::ours\n")
    assert file.getvalue() == "a::error::in the line\n  ⟨::⟩error::x\n⟨::⟩\n::warning::ours\n"


def test_texts_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grammar = tmp_path / "g.yaml"
    rules = {
        "s": [f"{{who}} came. {ALL.replace('{', '')}"],
        "who": {"attribute": "gender", "groups": {"female": ["a woman"], "male": ["a man"]}},
    }
    for more in ({f"odd{ALL}": ["x"]}, {}):
        body = {"format": 1, "name": "g", "start": "s", "rules": rules | more}
        grammar.write_text(json.dumps(body), encoding="utf-8")
        run(["list", "grammars", "check", str(grammar)])
        assert acting(told(capsys)) == []
    table = tmp_path / f"t{PIECES[0]}.csv"
    table.write_text(f'"{ALL}","b"\n1,2\n', encoding="utf-8")
    run(["run", "--task", "sentiment", "--data", str(table), "--model", "vader"])
    run(["tabular", "--data", str(table), "--target", "no", "--model", "vader"])
    run(["tabular", "schema", str(table)])
    run(["ll144", str(table)])
    pairs = tmp_path / "pairs.txt"
    pairs.write_text(f"he;she\n{ALL}\n", encoding="utf-8")
    run(["list", "dictionaries", "check", f"gender={pairs}"])
    task = tmp_path / "task.yaml"
    task.write_text(json.dumps({"name": ALL, "kind": "classification", "labels": [ALL, "b"]}), encoding="utf-8")
    run(["run", "--task", str(task), "--model", "vader"])
    assert acting(told(capsys)) == []


def test_a_run_folder_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    spec = {"models": [ALL], "kind": ALL}
    plan = {"format_version": 1, "run_id": ALL, "plan": spec, "inputs": {}, "tool_version": ALL}
    record = {"format_version": 1, "id": ALL, "status": "partial", "status_reason": ALL, "spec": spec}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (folder / "run.json").write_text(json.dumps(record | {"journal": {}}), encoding="utf-8")
    json_lines(folder / "cases.jsonl", [{ALL: 1, "hash": ALL, "prev": ALL, "seq": 0}])
    for argv in (["verify"], ["report"], ["show"], ["compare"], ["resume"], ["augment"]):
        more = {"show": ["v1"], "compare": [str(folder)], "augment": ["--out", str(tmp_path / "o")]}
        # Of a record that lacks parts, what is printed before counts.
        with suppress(KeyError, TypeError, AttributeError, ValueError):
            run([*argv, str(folder), *more.get(argv[0], [])])
            if argv == ["show"]:
                run(["show", str(folder), "v1", "--again"])
        assert acting(told(capsys)) == [], argv


@pytest.mark.e2e
def test_a_server(capsys: pytest.CaptureFixture[str], place: Path, serve: Callable[..., Server]) -> None:
    server = serve(agent=lambda body: (400, {"error": {"message": ALL}}))
    model = ["--model", f"openai:{ALL}", "--base-url", server.url]
    run(["doctor", *model])
    assert "forged" in (shown := told(capsys))
    assert acting(shown) == []
    run(["run", "--task", "sentiment", "--limit", "2", "--max-calls", "8", "--out", str(place / "r"), *model])
    captured = capsys.readouterr()
    assert acting(captured.err) == []
    # In a report a name of many words wraps where the line ends, as any text does.
    assert acting(captured.out, forged=False) == []
