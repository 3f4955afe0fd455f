"""The examples of the documentation, of docstrings and of the notebook run."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
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
from nursery import Server

import auditor
from auditor.cli.main import run
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
    runnable = ("python", *COMMANDS)
    return [b for b in found if not b.mark.startswith("skip ") and (b.mark or b.language in runnable)]


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
    people = [
        (rng.choice(("Female", "Male")), rng.choice(("White", "Asian", "Black or African American")))
        for _ in range(300)
    ]
    lines = [f"{sex},{race},{rng.randrange(2)},{rng.randrange(100)}" for sex, race in people]
    (folder / "applicants.csv").write_text("\n".join(["sex,race,advanced,score", *lines, ""]))
    (folder / "texts.csv").write_text('text\n"She liked it."\n"The old man left early."\n"A black woman spoke."\n')
    rows = [f"{rng.choice('fm')},{rng.randrange(20, 70)},{rng.choice(('own', 'rent'))}" for _ in range(200)]
    (folder / "german.csv").write_text(
        "\n".join(["sex,age,housing,credit", *(f"{row},{rng.choice(('good', 'bad'))}" for row in rows), ""])
    )


def write_row_model(folder: Path) -> None:
    """A model of the rows of ``german.csv``, as scikit-learn keeps it."""
    skops = pytest.importorskip("skops.io", reason="needs the extra tabular")
    pandas = pytest.importorskip("pandas", reason="needs the extra tabular")
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rows = pandas.read_csv(folder / "german.csv")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "housing"]), ("passthrough", ["age"])
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=1000))
    model.fit(rows.drop(columns="credit"), rows["credit"])
    skops.dump(model, folder / "model.skops")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, without keys, cache or modules of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    write_samples(tmp_path)
    path, known = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def printed(stream: io.TextIOWrapper) -> str:
    """What was written to a stream in memory."""
    return stream.buffer.getvalue().decode()


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


def check_console(block: Block, where: str, server: str) -> None:
    options = dict(word.split("=", 1) for word in shlex.split(block.mark)[1:])
    expected = int(options.get("exit", "0"))
    for command, shown in commands(block.code):
        words = shlex.split(command, comments=True)
        if words[:2] == ["pip", "install"]:
            check_install(words, where)
            continue
        words = filled(words, options, server)
        assert words[0] == "audit", f"{where}: only audit is run here: {command}"
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words[1:])
        assert code == expected, f"{where}: {command}\nended with {code}\n{printed(err)}"
        checker = doctest.OutputChecker()
        if shown and not checker.check_output(shown + "\n", printed(out), FLAGS):
            pytest.fail(f"{where}: {command}\nshows\n{shown}\nand prints\n{printed(out)}")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_examples_of_a_page(page: Path, place: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {"__name__": "example"}
    text = page.read_text(encoding="utf-8")
    if "model.skops" in "".join(b.code for b in blocks(text)):
        write_row_model(place)
    for block in blocks(text):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.mark.startswith("file "):
            (place / block.mark.removeprefix("file ").strip()).write_text(block.code, encoding="utf-8")
        elif block.mark.startswith("run") and block.language in COMMANDS:
            with monkeypatch.context() as provider:
                if "openai:" in block.code and "--base-url" not in block.code:
                    provider.setenv("OPENAI_BASE_URL", f"{server}/v1")
                    provider.setenv("OPENAI_API_KEY", "none")
                check_console(block, where, server)
        elif block.language == "python":
            # dataclasses and typing look a class's module up by its name
            exec(compile(block.code, where, "exec"), names)
        else:
            pytest.fail(
                f"{where}: the mark {block.mark!r} says nothing about a {block.language} block; "
                "<!-- docs: run --> or <!-- docs: skip REASON --> stands above a block of commands"
            )


def test_the_texts_of_the_page_about_tests_name_its_attributes() -> None:
    page = (ROOT / "docs" / "guide" / "testing.md").read_text(encoding="utf-8")
    texts = re.findall(r'^    "(.*)",$', page, re.MULTILINE)
    attributes = re.findall(r'"(\w+)"', re.search(r'parametrize\("attribute", \[(.*?)\]', page)[1])
    assert len(texts) == 2
    for attribute in attributes:
        suite = MutationSuite(
            seeds=[SourceText(id=text, text=text) for text in texts],
            dictionaries=[load(attribute)],
            attributes=[attribute],
        )
        assert suite.ask(5, Random(0)), attribute


def test_there_are_examples() -> None:
    names = {str(p.relative_to(ROOT)) for p in PAGES}
    assert {"docs/index.md", "docs/extending/suite.md", "docs/extending/task.md", "docs/extending/model.md"} <= names


def test_install_lines_name_extras_that_there_are() -> None:
    check_install(["pip", "install", ".[langchain]", "langchain-anthropic"], "here")
    for wrong in (".[nothing]", "llm-bias-auditor[langchain]", "./other"):
        with pytest.raises(AssertionError):
            check_install(["pip", "install", wrong], "here")


@pytest.mark.parametrize(
    ("mark", "code"),
    [
        ("run", "$ audit show no-such-code\n"),
        ("run", "$ audit show HID201\nsomething else\n"),
        ("run", "audit show no-such-code   # why\n"),
        ("run", "audit show HID201    prose that is no comment\n"),
    ],
)
def test_a_wrong_example_is_seen(mark: str, code: str, server: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_console(Block(mark, "console", code, 1), "here", server)


NAMES = ["auditor"] + [m.name for m in pkgutil.walk_packages(auditor.__path__, "auditor.") if "__main__" not in m.name]


def test_examples_in_docstrings() -> None:
    assert len(NAMES) > 200
    found = {name: doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS) for name in NAMES}
    assert sum(told.attempted for told in found.values()) > 80
    assert {name: told for name, told in found.items() if told.failed} == {}


NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "quickstart.ipynb"


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
    assert list(reviews.columns) == ["review"]
    assert isinstance(claims, pandas.DataFrame)
    assert set(claims["attribute"]) == {"gender"}
    assert {"gender"} <= set(answers["attributes"])
    assert result._repr_html_().lstrip().startswith("<iframe")
