"""The public face: names, versions, docstrings, plugins that can be loaded by name."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import auditor
from auditor.core import protocols
from auditor.tasks.kinds import KINDS
from tests.contract.sources import PACKAGE, ROOT, name, trees


def test_all_names_exist_are_sorted_and_complete() -> None:
    assert auditor.__all__ == sorted(auditor.__all__)
    assert all(getattr(auditor, public) is not None for public in auditor.__all__)
    assert set(auditor._HOME) | {"__version__"} == set(auditor.__all__)


def test_one_version_everywhere() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in told["project"]["dynamic"]
    assert ROOT / told["tool"]["hatch"]["version"]["path"] == PACKAGE / "_version.py"
    changes = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (\S+)( \(unreleased\))?", changes, re.MULTILINE)
    assert newest is not None
    # A version that is not out yet ends with .dev0, so nobody mistakes its figures for a release's.
    assert auditor.__version__ == newest[1] + (".dev0" if newest[2] else "")


HEAVY = {"numpy", "scipy", "spacy", "openai", "yaml", "pandas", "jinja2"}
HELP = "from auditor.cli.main import run; run({})"


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("import auditor", {"pydantic", "click", "rich"}),
        (HELP.format(["--help"]), {"msgspec", "pydantic", "click", "typing"}),
        (HELP.format(["run", "--help"]), {"filelock"}),
        (HELP.format(["agent", "--help"]), {"asyncio"}),
    ],
    ids=["import", "help", "run", "agent"],
)
def test_importing_the_package_and_its_help_load_nothing_heavy(code: str, more: set[str]) -> None:
    code = f"import sys; {code}; sys.exit(', '.join(sorted({HEAVY | more!r} & set(sys.modules))) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


PLUGINS = [(kind, name) for kind in (*protocols.KINDS, KINDS) for name in kind.names() if kind.is_own(name)]


@pytest.mark.parametrize(("kind", "name"), PLUGINS, ids=[f"{k.kind}:{n}" for k, n in PLUGINS])
def test_every_plugin_loads_and_is_documented(kind: protocols.Registry[object], name: str) -> None:
    plugin = kind.load(name)
    assert inspect.getdoc(plugin)
    assert callable(plugin)


def public_without_docstring(path: Path, tree: ast.Module) -> list[str]:
    bad = []
    if not ast.get_docstring(tree) and path.name != "__init__.py":
        bad.append("module")
    for node in tree.body:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if isinstance(node, kinds) and not node.name.startswith("_") and not ast.get_docstring(node):
            bad.append(node.name)
    return bad


def test_public_names_are_documented() -> None:
    bad = {name(path): public_without_docstring(path, tree) for path, tree in trees().items()}
    assert {path: names for path, names in bad.items() if names} == {}


def test_no_print_outside_the_command_line_and_no_global_random_state() -> None:
    """Random numbers come from a generator that is passed in or seeded from arguments."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="print")):
                    assert "cli" in path.parts, f"{path}: print"
                case ast.Attribute(value=ast.Name(id="random"), attr=used):
                    assert used in {"Random", "SystemRandom"}, f"{path}: random.{used}"


def test_every_error_stands_in_the_tree() -> None:
    errors = importlib.import_module("auditor.core.errors")
    tree = errors.__doc__ or ""
    for drawn, value in vars(errors).items():
        if inspect.isclass(value) and issubclass(value, Exception):
            assert drawn in tree, f"{drawn} is not drawn in the tree of auditor/core/errors.py"
