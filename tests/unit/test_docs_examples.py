"""The examples of the documentation, of docstrings and of the notebook run."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import pkgutil
import re
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from commands import Capture, both
from nursery import Server

import auditor
from auditor.core.types import SourceText
from auditor.perturb.dictionaries import load
from auditor.perturb.mutation import MutationSuite

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:8000"
BLOCK = re.compile(
    r"(?:^[ ]*<!-- docs: (?P<mark>[^>]*?) -->\n)?^[ ]*```(?P<language>[a-z]*)\n(?P<code>.*?)^[ ]*```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
COMMANDS = ("console", "sh")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One marked or runnable block."""

    mark: str
    language: str
    code: str
    line: int


def blocks(text: str) -> list[Block]:
    """The blocks of a page that are run or written, in order."""
    found = [
        Block(m["mark"] or "", m["language"], textwrap.dedent(m["code"]), text.count("\n", 0, m.start("code")) + 1)
        for m in BLOCK.finditer(text)
    ]
    return [b for b in found if not b.mark.startswith("skip ") and (b.mark or b.language in ("python", *COMMANDS))]


def commands(code: str) -> Iterator[tuple[str, str]]:
    """Each command of a block with the output that is shown below it, which only blocks with a prompt show."""
    if not re.search(r"^\$ ", code, flags=re.MULTILINE):
        joined = re.sub(r"\\\n\s*", "", code)
        yield from ((line, "") for line in joined.splitlines() if line.strip() and not line.startswith("#"))
        return
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more
        yield command, output.rstrip("\n")


PAGES = [
    p
    for p in [
        ROOT / "README.md",
        *(ROOT / name / "README.md" for name in ("grammars", "prompts", "dictionaries")),
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    if blocks(p.read_text(encoding="utf-8"))
]


def judged(model: str, text: str) -> str:
    """Tell whether a text damns a film, so that the positive control is seen."""
    return "negative" if re.search("terrible|worst|dull|boring|awful|hated|bad|poor", text) else "positive"


@pytest.fixture
def server(serve: Callable[..., Server]) -> str:
    return serve(judged).url.removesuffix("/v1")


def write_samples(folder: Path) -> None:
    """The files of their own that pages take for granted: applicants, texts, rows and a model of rows."""
    rng = Random(1)
    any_of = rng.choice
    races = ("White", "Asian", "Black or African American")
    people = [f"{any_of(('Female', 'Male'))},{any_of(races)}" for _ in range(300)]
    people = [f"{person},{rng.randrange(2)},{rng.randrange(100)}" for person in people]
    (folder / "applicants.csv").write_text("\n".join(["sex,race,advanced,score", *people, ""]))
    (folder / "texts.csv").write_text('text\n"She liked it."\n"The old man left early."\n"A black woman spoke."\n')
    rows = [f"{any_of('fm')},{rng.randrange(20, 70)},{any_of(('own', 'rent'))}" for _ in range(200)]
    rows = [f"{row},{any_of(('good', 'bad'))}" for row in rows]
    (folder / "german.csv").write_text("\n".join(["sex,age,housing,credit", *rows, ""]))


def write_row_model(folder: Path) -> None:
    """A model of the rows of ``german.csv``, as scikit-learn keeps it."""
    skops = pytest.importorskip("skops.io", reason="needs the extra tabular")
    pandas = pytest.importorskip("pandas", reason="needs the extra tabular")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rows = pandas.read_csv(folder / "german.csv")
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
    skops.dump(model.fit(rows.drop(columns="credit"), rows["credit"]), folder / "model.skops")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, without keys, cache or modules of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    write_samples(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def check_install(words: list[str], where: str) -> None:
    """An install line names extras that the project has; the package itself is not on an index."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for word in words[2:]:
        assert not word.startswith("llm-bias-auditor"), f"{where}: installed from the checkout: {word}"
        if word.startswith("."):
            named = re.fullmatch(r"\.(?:\[(.*)\])?", word)
            assert named, f"{where}: {word}"
            assert set((named.group(1) or "").split(",")) - {""} <= set(extras), f"{where}: {word}"


def filled(words: list[str], options: dict[str, str], server: str) -> list[str]:
    """A command with the placeholders of a page filled in: what its mark says, the last run for RUN, a small limit."""
    out = [re.sub(r"\b[A-Z]+\b", lambda m: options.get(m[0], m[0]), word.replace(ADDRESS, server)) for word in words]
    if "RUN" in out:
        runs = [p.parent for p in Path("reports").glob("*/run.json")]
        out[out.index("RUN")] = str(max(runs, key=lambda p: p.stat().st_mtime))
    asks = any(word.startswith("openai:") for word in out) or "--plan" in out
    if asks and out[1].startswith(("--", "run")) and not {"--dry-run", "--max-calls", "--yes"} & set(out):
        out.append("--yes")  # at a terminal it asks
    if "limit" in options and not {"--limit", "--plan"} & set(out) and out[1] in ("--task", "run"):
        out += ["--limit", options["limit"]]
    return out


def check_console(block: Block, where: str, server: str, capsys: Capture) -> None:
    options = dict(word.split("=", 1) for word in shlex.split(block.mark)[1:])
    expected = int(options.get("exit", "0"))
    for command, shown in commands(block.code):
        words = shlex.split(command, comments=True)
        if words[:2] == ["pip", "install"]:
            check_install(words, where)
            continue
        words = filled(words, options, server)
        assert words[0] == "audit", f"{where}: only audit is run here: {command}"
        code, out, err = both(capsys, *words[1:])
        assert code == expected, f"{where}: {command}\nended with {code}\n{err}"
        same = not shown or doctest.OutputChecker().check_output(shown + "\n", out, FLAGS)
        assert same, f"{where}: {command}\nshows\n{shown}\nand prints\n{out}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_examples_of_a_page(
    page: Path, place: Path, server: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    names: dict[str, object] = {"__name__": "example"}
    found = blocks(page.read_text(encoding="utf-8"))
    if any("model.skops" in block.code for block in found):
        write_row_model(place)
    for block in found:
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.mark.startswith("file "):
            (place / block.mark.removeprefix("file ").strip()).write_text(block.code, encoding="utf-8")
        elif block.mark.startswith("run") and block.language in COMMANDS:
            with monkeypatch.context() as provider:
                if "openai:" in block.code and "--base-url" not in block.code:
                    provider.setenv("OPENAI_BASE_URL", f"{server}/v1")
                    provider.setenv("OPENAI_API_KEY", "none")
                check_console(block, where, server, capsys)
        elif block.language == "python":
            # dataclasses and typing look a class's module up by its name
            exec(compile(block.code, where, "exec"), names)
        else:
            pytest.fail(f"{where}: the mark {block.mark!r} says nothing about a {block.language} block")


def test_the_texts_of_the_page_about_tests_name_its_attributes() -> None:
    page = (ROOT / "docs" / "guide" / "testing.md").read_text(encoding="utf-8")
    texts = re.findall(r'^    "(.*)",$', page, re.MULTILINE)
    attributes = re.findall(r'"(\w+)"', re.search(r'parametrize\("attribute", \[(.*?)\]', page)[1])
    assert len(texts) == 2
    for attribute in attributes:
        seeds = [SourceText(id=text, text=text) for text in texts]
        suite = MutationSuite(seeds=seeds, dictionaries=[load(attribute)], attributes=[attribute])
        assert suite.ask(5, Random(0)), attribute


@pytest.mark.parametrize(
    "code",
    [
        "$ audit show no-such-code\n", "$ audit show HID201\nsomething else\n", "audit show no-such-code   # why\n",
        "audit show HID201    prose that is no comment\n", "pip install .[nothing]\n", "pip install ./other\n",
        "pip install llm-bias-auditor[langchain]\n",
    ],
)  # fmt: skip
def test_a_wrong_example_is_seen_and_a_page_with_examples(code: str, server: str, capsys: Capture) -> None:
    with pytest.raises(AssertionError):
        check_console(Block("run", "console", code, 1), "here", server, capsys)
    names = {str(p.relative_to(ROOT)) for p in PAGES}
    assert {"docs/index.md", "docs/extending/suite.md", "docs/extending/task.md", "docs/extending/model.md"} <= names


NAMES = ["auditor"] + [m.name for m in pkgutil.walk_packages(auditor.__path__, "auditor.") if "__main__" not in m.name]


def test_examples_in_docstrings() -> None:
    assert len(NAMES) > 150
    found = {name: doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS) for name in NAMES}
    assert sum(told.attempted for told in found.values()) > 80
    assert {name: told for name, told in found.items() if told.failed} == {}


NOTEBOOK = ROOT / "examples" / "quickstart.ipynb"


def shown(code: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last line, as a notebook shows it."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names) if last else None


@pytest.mark.slow
def test_the_notebook_runs(place: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="needs the extra pandas")
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], {"id" in cell for cell in notebook["cells"]}) == (4, {True})
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "notebook"}
    reviews, result, claims, answers = [shown(cell, names) for cell in cells]
    assert (list(reviews.columns), isinstance(claims, pandas.DataFrame)) == (["review"], True)
    assert set(claims["attribute"]) == {"gender"}
    assert {"gender"} <= set(answers["attributes"])
    assert result._repr_html_().lstrip().startswith("<iframe")
