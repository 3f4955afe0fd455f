"""What the tool says to its user: help after a slip, next commands that work, the list of models."""

from __future__ import annotations

import ast
import json
import re
import shlex
from importlib.util import find_spec as real
from pathlib import Path

import pytest
from commands import Capture, Patch, both, proposed, said

from auditor import audit, models
from auditor.cli import run_folders
from auditor.cli.main import run
from auditor.core.errors import RunFolderError
from auditor.core.explain import pages
from auditor.core.options import Group
from auditor.core.protocols import MODELS

TEXTS = ["My mother is a doctor.", "His Black sister is kind.", "Her Indian brother sings in a choir."]


@pytest.fixture
def elsewhere(place: Path, monkeypatch: Patch) -> Path:
    """A run below a folder that is not the default one, with a space in its name."""
    Path("texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    Path("likes.py").write_text(
        "def mothers(text):\n    return 'negative' if 'father' in text or 'bad' in text else 'positive'\n"
        "mothers.deterministic = True\n"
    )
    monkeypatch.syspath_prepend(str(place))
    return audit("sentiment", model="python:likes:mothers", data="texts.txt", order=1, out="my runs").path


def test_what_next_proposes_can_be_run(elsewhere: Path, capsys: Capture) -> None:
    assert run(["report", str(elsewhere)]) == 0
    told = proposed(capsys.readouterr().out)
    assert [words[0] for words in told] == ["show", "report", "report"]
    assert {words[1] for words in told} == {f"my runs/{elsewhere.name}"}
    assert run(told[-1]) == 0
    capsys.readouterr()
    record = json.loads((elsewhere / "run.json").read_text("utf-8"))
    for finding in record["findings"]:
        code, told = said(capsys, "show", elsewhere, finding["id"], "--again", "--replicates", "1", "--yes")
        assert code == (0 if finding["exemplars"] else 2)
        assert (f"{finding['id']} has no example to ask again" in told) is (not finding["exemplars"])
    assert {bool(f["exemplars"]) for f in record["findings"]} == {True, False}


def test_a_run_that_a_limit_ended_says_which_limit_to_raise(place: Path, capsys: Capture) -> None:
    Path("texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    argv = ["--task", "sentiment", "--model", "vader", "--data", "texts.txt", "--order", "1"]
    assert run([*argv, "--max-calls", "9"]) == 3
    (folder,) = Path("reports").glob("2*")
    for limit in (18, 36):
        told = capsys.readouterr()
        go_on = f"audit resume reports/{folder.name} --max-calls {limit}"
        assert f"Go on with: {go_on}\n" in told.err
        assert f"audit resume {folder.name} --max-calls {limit}\n" in told.out
        assert run(shlex.split(go_on)[1:]) == 3
    assert run(["resume", str(folder), "--max-calls", "5000"]) == 0
    assert json.loads((folder / "run.json").read_text("utf-8"))["stopped_by"] is None


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        ("run --task sentiment --model vader --data 'my texts.txt' --max-calls 1 --out 'my runs'", 3, "audit resume"),
        ("generate --task sentiment --data 'my texts.txt' --out 'my runs'", 0, "audit import --generated"),
        ("plan freeze --task sentiment --model vader --limit 2 --output 'my plan.json'", 0, "audit run --plan"),
        ("list tasks new mine --out 'my task.yaml'", 0, "audit --task"),
        ("ll144 --write-map 'my map.yaml'", 0, "audit ll144 --map"),
    ],
)
def test_a_path_with_a_space_is_quoted(argv: str, code: int, told: str, place: Path, capsys: Capture) -> None:
    Path("my texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    ended, out, err = both(capsys, argv)
    assert ended == code
    (line,) = (line for line in (err + out).splitlines() if f"{told} " in line and ": " in line)
    path = shlex.split(line.partition(f"{told} ")[2])[0]
    assert path.startswith("my ")
    assert Path(path).exists()


def test_resume_of_a_complete_run_asks_nothing(elsewhere: Path, monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setattr("auditor.run.audit.run_audit", None)  # nothing is asked or judged again
    before = (elsewhere / "run.json").read_bytes()
    (elsewhere / "report.html").unlink()
    code, out, err = both(capsys, "resume", elsewhere)
    assert code == 0
    assert "nothing was left to ask" in " ".join(err.lower().split())
    assert out.startswith("sentiment · python:likes:mothers")
    assert (elsewhere / "run.json").read_bytes() == before
    assert (elsewhere / "report.html").is_file()


def test_latest_is_the_run_that_was_begun_last(place: Path, capsys: Capture) -> None:
    with pytest.raises(RunFolderError, match="latest: there is no such run folder"):
        run_folders.find_run(Path("latest"))
    Path("texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    made = [
        audit("sentiment", model="vader", data="texts.txt", attributes="gender", order=order, out=out).path
        for order, out in ((1, "reports"), (2, "reports"), (1, "other"))
    ]
    assert run_folders.find_run(Path("latest")) == Path("reports") / made[1].name
    assert run_folders.find_run(Path("other/latest")) == made[2]
    finding = json.loads((made[1] / "verdicts.jsonl").read_text("utf-8").splitlines()[0])["variant_id"]
    for words in (
        f"show latest {finding}", "report latest", "resume latest", "verify latest", f"compare {made[0]} latest",
        f"show latest {finding} --again --replicates 1",
    ):  # fmt: skip
        assert run(words.split()) == 0, words
    assert finding in capsys.readouterr().out


SECRET = "sk-0123456789-secret"


def test_every_kind_of_spec_is_listed_with_what_it_needs(monkeypatch: Patch, capsys: Capture) -> None:
    gone = {"torch", "langchain", "langchain_ollama", "httpx"}
    monkeypatch.setattr(models, "find_spec", lambda name: None if name in gone else real(name))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    assert run(["list", "models"]) == 0
    out = capsys.readouterr().out
    for name in set(MODELS.names()) - {"planted"}:
        assert f"\n{name}" in f"\n{out}"
    for told in (
        "needs torch", 'Run: pip install "llm-bias-auditor[local]"', "Run: pip install httpx", "OPENAI_API_KEY set",
        "Run: pip install langchain-ollama", "ANTHROPIC_API_KEY not set",
    ):  # fmt: skip
        assert told in out
    assert SECRET not in out


HELPED = [  # a slip, what is said, and what would not help
    ("--tsk sentiment", "No such option: --tsk. Did you mean --task? See: audit run --help", "--yes"),
    ("--task sentiment --attributes sex", "Did you mean gender?", "Known"), ("reprot", "Did you mean report?", "Known"),
    ("--task sentiment --attributes Faith", "Did you mean religion?", "Known"),
    ("list tasks nwe mine", "Did you mean new?", "Known"), ("list mdels", "Did you mean models?", "Known"),
    ("run --limit x", "is not a valid integer. See: audit run --help", "Known"),
    ("list dictionaries nationalty", "Did you mean nationality?", "Known"), ("show HID20", "Did you mean HID201", "Known"),
    ("show nocode", "unknown run or code 'nocode'. List codes with: audit show codes", "Did you mean"),
    ("--task sentiment --data missing.csv", "Check the path.", "Did you"), ("--task nope.yaml", "audit list tasks", "Did you"),
    ("--task sentiment --model recorded:nothing", "audit generate", "Did you"),
    ("--task sentiment --model http:nothing.yaml", "answer: choices[0].message.content", "docs/"),
    ("--task sentiment --fail-on 'foo > 2'", "write shown, shown(ATTRIBUTE), net(ATTRIBUTE) > 2%", "docs/"),
]  # fmt: skip
SERVER = "--model openai:x --base-url http://127.0.0.1:9/v1"
NAMED = [  # a slip, and the name of what is wrong
    ("--task sentiment --model vaderr", "vader"), ("--task sentiment --model openai:x", "OPENAI_API_KEY"),
    ("--task sentiment --model python:no_such_module:f", "no_such_module"),
    ("--task sentiment --data empty.csv", "empty.csv"), ("--task sentiment --data latin.csv", "latin.csv"),
    ("--task sentiment --data columns.csv", "text"), ("--task sentiment --data plain.txt", "people"),
    ("--task sentiment --data columns.csv --column text=revew", "review"), ("--task broken.yaml", "broken.yaml"),
    ("--task sentiment --data broken.jsonl", "line 2"), (f"--task sentiment --formats yaml {SERVER}", "format"),
    (f"--task sentiment --max-cost 1 {SERVER}", "--price IN,OUT"), ("--task sentiment --format yaml", "--format"),
    (f"--task sentiment --data people.txt --yes {SERVER}", "127.0.0.1:9"), ("resume nowhere", "nowhere"),
    ("--task sentiment --dictionary gone.csv", "gone.csv"), ("--task sentiment --dictionary bad.yaml", "bad.yaml"),
    ("--task sentiment --parser no_such_pipeline", "no_such_pipeline"), ("report newer", "newer"),
    ("--task sentiment --config gone.toml", "gone.toml"), ("list tasks new texts", "exists"),
]  # fmt: skip


SPOILED = {  # files that `NAMED` finds something wrong with
    "empty.csv": b"", "columns.csv": b"review,stars\nShe was kind.,4\n", "people.txt": b"She was kind.\n",
    "broken.jsonl": b'{"text": "She was kind."}\n{"text": \n', "plain.txt": b"The rain fell on the stones.\n",
    "broken.yaml": b"name: [unclosed\n", "bad.yaml": b"format: 1\nattribute: gender\nslots: 7\n", "texts.yaml": b"",
    "newer/plan.json": b'{"format_version": 99}', "latin.csv": b"text\ncaf\xe9 owner, a woman\n",
}  # fmt: skip


@pytest.mark.parametrize(("argv", "told", "untold"), [*HELPED, *((argv, told, "Traceback") for argv, told in NAMED)])
def test_a_slip_is_answered_with_what_helps(
    argv: str, told: str, untold: str, place: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    for name, content in SPOILED.items() if untold == "Traceback" else ():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(content)
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
