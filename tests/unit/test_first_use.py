"""What somebody meets who uses the tool for the first time and makes a slip."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from commands import Capture, Patch, both

from auditor.core.explain import pages
from auditor.core.options import Group

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
    code, out, err = both(capsys, argv)
    err = " ".join(err.split())
    assert (code, out) == (2, "")
    assert told in err
    assert untold not in err
    assert len(err) < 1500


def test_the_list_of_tasks_is_short(capsys: Capture) -> None:
    code, out, _ = both(capsys, "list tasks")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert "… and 92 more" in lines["ledgar"]
    assert max(map(len, out.splitlines())) < 400
    assert "a number from 15,000 to 1,000,000 USD/year" in lines["salary"]
    assert "free text" in lines["letter"]
    assert "labels: ;" not in out


SOURCES = sorted((Path(__file__).parents[2] / "auditor").rglob("*.py"))


def test_no_message_names_a_file_of_the_repository() -> None:
    """Docstrings and comments may; what a user reads may not: an installed package has no such file."""
    named = re.compile(r"(?:docs|grammars|prompts|dictionaries)/[\w/]+\.md|\bdocs/\w")
    found = [f"{p.code}: {p.text}" for p in pages() if named.search(p.text)]
    for path in SOURCES:
        if path.name == "schema.py" or not named.search(text := path.read_text(encoding="utf-8")):
            continue
        tree = ast.parse(text)
        plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        said = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in plain)
        found += [f"{path.name}: {one}" for one in said if isinstance(one, str) and named.search(one)]
    assert found == []


def test_no_message_writes_a_plural_behind_a_single_thing() -> None:
    """``{len(x)} rows`` reads "1 rows" some day; a bare number in a message goes through `plural`."""
    bare = re.compile(
        r"\{len\([^{}]*\)(:,)?\} (more |further |such )?(seeds|rows|calls|texts|cases|variants|terms|cells|runs)\b"
    )
    lines = ((path.name, line) for path in SOURCES for line in path.read_text(encoding="utf-8").splitlines())
    assert [one for one in lines if bare.search(one[1]) and "ValueError" not in one[1]] == []


def test_options_stand_under_headings_and_the_first_help_is_short(monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    _, out, _ = both(capsys, "run --help-all")
    assert re.findall(r"^(\S.*):$", out, re.MULTILINE) == [*Group]
    assert re.findall(r"--[a-z-]+", out.partition("Further:")[2]) == ["--help"]
    assert 100 < max(map(len, out.splitlines())) <= 120
    _, out, _ = both(capsys, "run --help")
    assert re.findall(r"^(\S.*):$", out, re.MULTILINE) == [*Group][:3]
    assert len(re.findall(r"^  --[a-z-]+", out, re.MULTILINE)) == 16
    assert "more options: audit run --help-all" in out
