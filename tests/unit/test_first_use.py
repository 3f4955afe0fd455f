"""What somebody meets who uses the tool for the first time and makes a slip."""

from __future__ import annotations

import ast
import asyncio
import logging
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, Patch

from auditor.cli.main import run
from auditor.core.errors import BadResponse, CallError
from auditor.core.explain import pages
from auditor.core.options import Group
from auditor.core.protocols import Model, Reply
from auditor.core.types import Prompt, Request
from auditor.models.exec import Exec, ProcessGone
from auditor.models.python import PythonFunction


def requests(n: int) -> list[Request]:
    return [Request(prompt=Prompt(format="bare", text=f"text {i}"), replicate=0, variant_id=f"v{i}") for i in range(n)]


def rounds(model: Model, n: int, times: int) -> list[Sequence[Reply | CallError]]:
    """Ask the same requests several times, as retries do."""

    async def go() -> list[Sequence[Reply | CallError]]:
        try:
            return [await model.generate(requests(n)) for _ in range(times)]
        finally:
            await model.aclose()

    return asyncio.run(go())


class TestPrograms:
    @pytest.mark.skipif(shutil.which("false") is None, reason="needs a program that ends at once")
    def test_one_that_ends_at_once_is_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        model = Exec("false")
        with caplog.at_level(logging.WARNING, logger="asyncio"):
            found = rounds(model, 40, 6)
        assert caplog.records == []
        assert all(isinstance(one, CallError) for batch in found for one in batch)
        assert isinstance(found[-1][0], ProcessGone)


class TestPythonNumbers:
    @pytest.mark.parametrize(("value", "text"), [(7, "7"), (0.25, "0.25"), (1e-7, "0.0000001"), (1e20, "1" + 20 * "0")])
    def test_a_number_is_an_answer(self, value: float, text: str) -> None:
        reply = rounds(PythonFunction(lambda _text: value, name="score"), 1, 1)[0][0]
        assert isinstance(reply, Reply)
        assert reply.text == text

    @pytest.mark.parametrize("value", [True, None, float("nan"), float("inf"), [7]])
    def test_what_is_no_number_is_none(self, value: Any) -> None:
        reply = rounds(PythonFunction(lambda _text: value, name="score"), 1, 1)[0][0]
        assert isinstance(reply, BadResponse)


def said(argv: str, capsys: Capture) -> tuple[int, str, str]:
    """Exit code, stdout, and stderr on one line."""
    code = run(shlex.split(argv))
    out, err = capsys.readouterr()
    return code, out, " ".join(err.split())


HELPED = [  # a slip, what is said, and what would not help
    ("--tsk sentiment", "No such option: --tsk. Did you mean --task? See: audit run --help", "--yes"),
    ("--task sentiment --attributes sex", "Did you mean gender?", "Known"),
    ("--task sentiment --attributes ethnicity", "Did you mean race?", "Known"),
    ("--task sentiment --attributes Faith", "Did you mean religion?", "Known"),
    ("list tasks nwe mine", "Did you mean new?", "Known"),
    ("reprot", "Did you mean report?", "Known"),
    ("run --limit x", "is not a valid integer. See: audit run --help", "Known"),
    ("list mdels", "Did you mean models?", "Known"),
    ("list dictionaries nationalty", "Did you mean nationality?", "Known"),
    ("show nocode", "unknown run or code 'nocode'. List codes with: audit show codes", "Did you mean"),
    ("show HID20", "Did you mean HID201", "Known"),
    ("--task sentiment --data missing.csv", "Check the path.", "Did you"),
    ("--task nope.yaml", "audit list tasks", "Did you"),
    ("--task sentiment --model recorded:nothing", "audit generate", "Did you"),
    ("--task sentiment --model http:nothing.yaml", "answer: choices[0].message.content", "docs/"),
    ("--task sentiment --fail-on 'foo > 2'", "write shown, shown(ATTRIBUTE), net(ATTRIBUTE) > 2%", "docs/"),
]
SERVER = "--model openai:x --base-url http://127.0.0.1:9/v1"
NAMED = [  # a slip, and the name of what is wrong
    ("--task sentiment --model vaderr", "vader"),
    ("--task sentiment --model python:no_such_module:f", "no_such_module"),
    ("--task sentiment --data empty.csv", "empty.csv"),
    ("--task sentiment --data latin.csv", "latin.csv"),
    ("--task sentiment --data columns.csv", "text"),
    ("--task sentiment --data columns.csv --column text=revew", "review"),
    ("--task sentiment --data broken.jsonl", "line 2"),
    ("--task sentiment --data plain.txt", "people"),
    ("--task broken.yaml", "broken.yaml"),
    (f"--task sentiment --formats yaml {SERVER}", "format"),
    ("--task sentiment --model openai:x", "OPENAI_API_KEY"),
    (f"--task sentiment --max-cost 1 {SERVER}", "--price IN,OUT"),
    (f"--task sentiment --data people.txt --yes {SERVER}", "127.0.0.1:9"),
    ("--task sentiment --dictionary gone.csv", "gone.csv"),
    ("--task sentiment --dictionary bad.yaml", "bad.yaml"),
    ("--task sentiment --parser no_such_pipeline", "no_such_pipeline"),
    ("--task sentiment --config gone.toml", "gone.toml"),
    ("--task sentiment --format yaml", "--format"),
    ("resume nowhere", "nowhere"),
    ("report newer", "newer"),
    ("list tasks new texts", "exists"),
]


def spoil(place: Path) -> None:
    """Write the files that `NAMED` finds something wrong with."""
    files = {
        "empty.csv": "", "columns.csv": "review,stars\nShe was kind.,4\n", "people.txt": "She was kind.\n",
        "broken.jsonl": '{"text": "She was kind."}\n{"text": \n', "plain.txt": "The rain fell on the stones.\n",
        "broken.yaml": "name: [unclosed\n", "bad.yaml": "format: 1\nattribute: gender\nslots: 7\n", "texts.yaml": "",
        "newer/plan.json": '{"format_version": 99}',
    }  # fmt: skip
    (place / "newer").mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    (place / "latin.csv").write_bytes("text\ncaf\xe9 owner, a woman\n".encode("latin-1"))


@pytest.mark.parametrize(("argv", "told", "untold"), [*HELPED, *((argv, told, "Traceback") for argv, told in NAMED)])
def test_a_slip_is_answered_with_what_helps(
    argv: str, told: str, untold: str, place: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    if untold == "Traceback":
        spoil(place)
    code, out, err = said(argv, capsys)
    assert (code, out) == (2, "")
    assert told in err
    assert untold not in err
    assert len(err) < 1500


def test_the_list_of_tasks_is_short(capsys: Capture) -> None:
    code, out, _ = said("list tasks", capsys)
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert "… and 92 more" in lines["ledgar"]
    assert max(map(len, out.splitlines())) < 400
    assert "a number from 15,000 to 1,000,000 USD/year" in lines["salary"]
    assert "free text" in lines["letter"]
    assert "labels: ;" not in out


@pytest.mark.parametrize(("group", "told"), [("grammars", "alternatives"), ("tasks", "favourable")])
def test_formats_are_described_by_a_command(group: str, told: str, capsys: Capture) -> None:
    code, out, _ = said(f"list {group} format", capsys)
    assert code == 0
    assert told in out


def test_no_message_names_a_file_of_the_repository() -> None:
    """Docstrings and comments may; what a user reads may not: an installed package has no such file."""
    named = re.compile(r"(?:docs|grammars|prompts|dictionaries)/[\w/]+\.md|\bdocs/\w")
    found = []
    for path in sorted((Path(__file__).parents[2] / "auditor").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        found += [
            f"{path.name}: {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in plain
            and named.search(node.value)
        ]
    found += [f"{p.code}: {p.text}" for p in pages() if named.search(p.text)]
    assert [one for one in found if not one.startswith("schema.py")] == []


class TestHelp:
    def test_options_stand_under_headings(self, monkeypatch: Patch, capsys: Capture) -> None:
        monkeypatch.setenv("COLUMNS", "120")
        _, out, _ = said("run --help-all", capsys)
        headings = re.findall(r"^(\S.*):$", out, re.MULTILINE)
        assert headings == [*Group]
        further = out.partition("Further:")[2]
        assert re.findall(r"--[a-z-]+", further) == ["--help"]
        assert 100 < max(map(len, out.splitlines())) <= 120

    def test_the_first_help_is_short(self, capsys: Capture) -> None:
        _, out, _ = said("run --help", capsys)
        assert re.findall(r"^(\S.*):$", out, re.MULTILINE) == [*Group][:3]
        assert len(re.findall(r"^  --[a-z-]+", out, re.MULTILINE)) == 16
        assert "more options: audit run --help-all" in out


class TestCounts:
    def test_no_message_writes_a_plural_behind_a_single_thing(self) -> None:
        """``{len(x)} rows`` reads "1 rows" some day; a bare number in a message goes through `plural`."""
        bare = re.compile(
            r"\{len\([^{}]*\)(:,)?\} (more |further |such )?(seeds|rows|calls|texts|cases|variants|terms|cells|runs)\b"
        )
        found = []
        for path in sorted((Path(__file__).parents[2] / "auditor").rglob("*.py")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if bare.search(line) and "ValueError" not in line:
                    found.append(f"{path.name}:{number}: {line.strip()}")
        assert found == []
