"""What somebody meets who uses the tool for the first time and makes a slip."""

from __future__ import annotations

import ast
import asyncio
import csv
import json
import logging
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from auditor.cli.main import run
from auditor.core.errors import BadResponse, CallError, DataFileError, MissingDependency
from auditor.core.explain import pages
from auditor.core.options import Group
from auditor.core.protocols import Model, Reply
from auditor.core.shown import plural, verb
from auditor.core.types import Prompt, Request
from auditor.models.exec import Exec, Garbled, ProcessGone
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


def program(tmp_path: Path, answer: str) -> str:
    """The command of a program that writes ``answer`` (a Python expression of the request r) for each line."""
    file = tmp_path / "program.py"
    file.write_text(
        "import json, sys\n"
        "for i, line in enumerate(sys.stdin):\n"
        "    r = json.loads(line)\n"
        f"    print({answer}, flush=True)\n",
        encoding="utf-8",
    )
    return f"{sys.executable} {file}"


class TestPrograms:
    @pytest.mark.skipif(shutil.which("false") is None, reason="needs a program that ends at once")
    def test_one_that_ends_at_once_is_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        model = Exec("false")
        with caplog.at_level(logging.WARNING, logger="asyncio"):
            found = rounds(model, 40, 6)
        assert caplog.records == []
        assert all(isinstance(one, CallError) for batch in found for one in batch)
        assert isinstance(found[-1][0], ProcessGone)

    def test_one_that_writes_no_answers_is_not_asked_on(self, tmp_path: Path) -> None:
        found = rounds(Exec(program(tmp_path, "'positive'")), 3, 2)
        assert all(isinstance(one, BadResponse) for one in found[0])
        last = found[1][-1]
        assert isinstance(last, Garbled)
        assert not last.transient
        assert last.code == "bad-response"
        assert "'positive'" in str(last)
        assert "6 times in a row" in str(last)

    def test_answers_between_begin_the_count_again(self, tmp_path: Path) -> None:
        answer = "json.dumps({'id': r['id'], 'output': 'yes'} if i % 4 == 0 else {'id': r['id']})"
        found = rounds(Exec(program(tmp_path, answer)), 4, 6)
        assert not any(isinstance(one, Garbled) for batch in found for one in batch)
        assert sum(isinstance(one, BadResponse) for batch in found for one in batch) == 18

    def test_a_deterministic_one_is_not_asked_again(self, tmp_path: Path) -> None:
        answer = "json.dumps({'id': r['id'], 'output': 'yes'} if i else {'id': r['id']})"
        found = rounds(Exec(program(tmp_path, answer), deterministic=True), 2, 1)
        assert isinstance(found[0][0], BadResponse)
        assert not found[0][0].transient
        assert isinstance(found[0][1], Reply)


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

    def test_a_score_task_reads_it(self) -> None:
        from auditor import tasks

        task = tasks.load(next(n for n in tasks.available() if tasks.load(n).kind.number))
        reply = rounds(PythonFunction(lambda _text: 7.5, name="score"), 1, 1)[0][0]
        assert isinstance(reply, Reply)
        assert task.read(reply.text, "text").value == 7.5


class TestTables:
    def test_a_huge_field_is_read(self, tmp_path: Path) -> None:
        from auditor.tables.csv_table import read_table

        before = csv.field_size_limit(131_072)
        file = tmp_path / "huge.csv"
        file.write_text(f"note,label\n{'x' * 200_000},1\nshort,0\n", encoding="utf-8")
        try:
            table = read_table(file)
        finally:
            csv.field_size_limit(before)
        assert [len(value) for value in table["note"]] == [200_000, 5]

    def test_a_wrong_row_is_named_by_the_line_it_begins_in(self, tmp_path: Path) -> None:
        from auditor.tables.csv_table import read_table

        file = tmp_path / "rows.csv"
        file.write_text('note,label\n"two\nlines",1\nonly\n', encoding="utf-8")
        with pytest.raises(DataFileError, match=r"line 4: 1 field where the header has 2"):
            read_table(file)


class TestUnreachable:
    @pytest.mark.parametrize(
        ("given", "variable", "told"),
        [
            (None, None, "network"),
            ("http://a.test/v1", None, "--base-url"),
            (None, "http://a.test/v1", "OPENAI_BASE_URL"),
        ],
    )
    def test_says_what_named_the_server(
        self, given: str | None, variable: str | None, told: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from auditor.core.errors import ServerFault
        from auditor.models.openai import OpenAIChat

        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        if variable:
            monkeypatch.setenv("OPENAI_BASE_URL", variable)
        text = OpenAIChat("m", base_url=given)._say(OSError("no route"), ServerFault, None)
        assert told in text
        assert ("Is the server running" in text) == (told != "network")


def said(argv: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout, and stderr on one line."""
    code = run(list(argv))
    out, err = capsys.readouterr()
    return code, out, " ".join(err.split())


@pytest.mark.parametrize(
    ("argv", "told", "untold"),
    [
        (["--tsk", "sentiment"], "No such option: --tsk. Did you mean --task? See: audit run --help", "--yes"),
        (["--task", "sentiment", "--attributes", "sex"], "Did you mean gender?", "Known"),
        (["--task", "sentiment", "--attributes", "ethnicity"], "Did you mean race?", "Known"),
        (["--task", "sentiment", "--attributes", "Faith"], "Did you mean religion?", "Known"),
        (["list", "tasks", "nwe", "mine"], "Did you mean 'new'?", "Known"),
        (["list", "mdels"], "Did you mean models?", "Known"),
        (["list", "dictionaries", "origin"], "Did you mean nationality?", "Known"),
        (["show", "nocode"], "unknown run or code 'nocode'. List codes with: audit show codes", "Did you mean"),
        (["show", "HID20"], "Did you mean HID201", "Known"),
        (["--task", "sentiment", "--data", "missing.csv"], "Check the path.", "Did you"),
        (["--task", "nope.yaml"], "audit list tasks", "Did you"),
        (["--task", "sentiment", "--model", "recorded:nothing"], "audit generate", "Did you"),
        (["--task", "sentiment", "--model", "http:nothing.yaml"], "answer: choices[0].message.content", "docs/"),
        (
            ["--task", "sentiment", "--fail-on", "foo > 2"],
            "write shown, shown(ATTRIBUTE), net(ATTRIBUTE) > 2%",
            "docs/",
        ),
    ],
)
def test_a_slip_is_answered_with_what_helps(
    argv: list[str],
    told: str,
    untold: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = said(argv, capsys)
    assert code == 2
    assert told in err
    assert untold not in err


def test_settings_are_offered_as_the_flags_are_named(tmp_path: Path) -> None:
    from auditor.core.plan import Plan

    file = tmp_path / "audit.toml"
    file.write_text('modle = "vader"\n', encoding="utf-8")
    with pytest.raises(DataFileError, match="Did you mean 'model'"):
        Plan.read_toml(file)


def test_a_pair_file_without_pairs_is_refused_not_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.csv"
    file.write_text("hello\n", encoding="utf-8")
    code, _, err = said(["list", "dictionaries", "check", str(file)], capsys)
    assert code == 2
    assert "passed over" not in err
    assert "man;woman" in err


def test_the_list_of_tasks_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(["list", "tasks"], capsys)
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert "… and 92 more" in lines["ledgar"]
    assert max(map(len, out.splitlines())) < 400
    assert "a number from 15,000 to 1,000,000 USD/year" in lines["salary"]
    assert "free text" in lines["letter"]
    assert "labels: ;" not in out


def test_the_json_list_of_tasks_holds_every_label(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(["list", "tasks", "--format", "json"], capsys)
    rows = {row["name"]: row for row in json.loads(out)}
    assert len(rows["ledgar"]["labels"]) == 100
    assert rows["salary"]["scale"] == [15000, 1000000]


@pytest.mark.parametrize(("group", "told"), [("grammars", "alternatives"), ("tasks", "favourable")])
def test_formats_are_described_by_a_command(group: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(["list", group, "format"], capsys)
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
    def test_options_stand_under_headings(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "120")
        _, out, _ = said(["run", "--help-all"], capsys)
        headings = re.findall(r"^(\S.*):$", out, re.MULTILINE)
        assert headings == [*Group]
        further = out.partition("Further:")[2]
        assert re.findall(r"--[a-z-]+", further) == ["--help"]
        assert 100 < max(map(len, out.splitlines())) <= 120

    def test_the_first_help_is_short(self, capsys: pytest.CaptureFixture[str]) -> None:
        _, out, _ = said(["run", "--help"], capsys)
        assert re.findall(r"^(\S.*):$", out, re.MULTILINE) == [*Group][:3]
        assert len(re.findall(r"^  --[a-z-]+", out, re.MULTILINE)) == 16
        assert "more options: audit run --help-all" in out

    def test_a_narrow_terminal_is_kept_to(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "70")
        _, out, _ = said(["run", "--help"], capsys)
        assert max(map(len, out.splitlines())) <= 70

    @pytest.mark.parametrize("name", ["list grammars", "list dictionaries", "list tasks", "ll144", "list cache"])
    def test_summaries_are_whole(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        _, out, _ = said([*name.split(), "--help"], capsys)
        assert "..." not in out.partition("Commands:")[2]

    def test_tabular_names_its_commands_first(self, capsys: pytest.CaptureFixture[str]) -> None:
        _, out, _ = said(["tabular", "--help"], capsys)
        head = out.partition("--data")[0]
        assert "audit tabular schema DATA" in head


@pytest.mark.parametrize(("package", "extra"), [("pyarrow", "[parquet]"), ("datasets", "[datasets]")])
def test_the_light_extra_is_named(package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from auditor.core import row_files

    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency) as caught:
        row_files.package(package, "Reading it")
    assert extra in str(caught.value)


class TestCounts:
    def test_one_and_many(self) -> None:
        assert [plural(n, "such row") for n in (0, 1, 2, 1200)] == [
            "0 such rows",
            "1 such row",
            "2 such rows",
            "1,200 such rows",
        ]
        assert plural(1, "dictionary", "dictionaries") == "1 dictionary"
        assert [verb(n, "was", "were") for n in (0, 1, 2)] == ["were", "was", "were"]

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
