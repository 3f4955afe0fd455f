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
from auditor.core import registry
from auditor.tasks.kinds import KINDS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "auditor"


def test_all_names_exist_are_sorted_and_complete() -> None:
    assert auditor.__all__ == sorted(auditor.__all__)
    for name in auditor.__all__:
        assert getattr(auditor, name) is not None
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


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, auditor; "
        "heavy = {'numpy','scipy','spacy','openai','pydantic','yaml','pandas','click','jinja2','rich'} & set(sys.modules); "
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (
            ["--help"],
            ["msgspec", "numpy", "scipy", "spacy", "openai", "pydantic", "yaml", "pandas", "jinja2", "click", "typing"],
        ),
        (["run", "--help"], ["numpy", "scipy", "spacy", "openai", "yaml", "pandas", "jinja2", "filelock"]),
        (["agent", "--help"], ["numpy", "scipy", "spacy", "openai", "yaml", "pandas", "jinja2", "asyncio"]),
    ],
)
def test_the_help_loads_nothing_heavy(words: list[str], heavy: list[str]) -> None:
    code = (
        f"import sys; from auditor.cli.main import run; run({words!r}); "
        f"sys.exit(', '.join(sorted(set({heavy!r}) & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


PLUGINS = [(kind, name) for kind in (*registry.KINDS, KINDS) for name in kind.names() if kind.is_own(name)]


@pytest.mark.parametrize(("kind", "name"), PLUGINS, ids=[f"{k.kind}:{n}" for k, n in PLUGINS])
def test_every_plugin_loads_and_is_documented(kind: registry.Registry[object], name: str) -> None:
    plugin = kind.load(name)
    assert inspect.getdoc(plugin)
    assert callable(plugin)


def public_without_docstring(path: Path) -> list[str]:
    bad = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not ast.get_docstring(tree) and path.name != "__init__.py":
        bad.append("module")
    for node in tree.body:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if isinstance(node, kinds) and not node.name.startswith("_") and not ast.get_docstring(node):
            bad.append(node.name)
    return bad


def test_public_names_are_documented() -> None:
    bad = {str(p.relative_to(ROOT)): public_without_docstring(p) for p in sorted(PACKAGE.rglob("*.py"))}
    assert {p: names for p, names in bad.items() if names} == {}


def test_no_print_outside_the_command_line() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        if "cli" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", f"{path}: print"


def test_no_global_random_state() -> None:
    """Random numbers come from a generator that is passed in or seeded from arguments."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random":
                assert node.attr in {"Random", "SystemRandom"}, f"{path}: random.{node.attr}"


def test_every_error_stands_in_the_tree() -> None:
    errors = importlib.import_module("auditor.core.errors")
    tree = errors.__doc__ or ""
    for name, value in vars(errors).items():
        if inspect.isclass(value) and issubclass(value, Exception):
            assert name in tree, f"{name} is not drawn in the tree of auditor/core/errors.py"
