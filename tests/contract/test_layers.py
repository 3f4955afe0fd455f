"""Imports point down; stages do not know each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "auditor"
LAYERS = [  # top first; names in one tuple are siblings and may not import each other
    ("cli", "testing"),
    ("agent",),
    ("__init__",),
    ("tables",),
    ("run",),
    ("contrib",),
    ("report",),
    ("tasks",),
    ("measure",),
    ("models", "store"),
    ("perturb",),
    ("text",),
    ("core",),
    ("_version",),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
EXCEPT = {("report", "contrib")}  # sections of a report that belong to a technique


def imports(source: str) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
            if node.module == "auditor":
                names += [f"auditor.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def broken(source: str, module: str) -> list[str]:
    """Imports in ``source`` (module ``auditor.<part>...``) that do not point down."""
    part = module.split(".")[1]
    bad = []
    for name in imports(source):
        target = name.split(".")[1] if name.startswith("auditor.") else part
        if target == part or target not in RANK or (part, target) in EXCEPT:
            continue
        if RANK[target] <= RANK[part]:
            bad.append(f"{module} imports {name}")
    return bad


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        inner = path.relative_to(PACKAGE).with_suffix("").parts
        found.append((".".join(("auditor", *inner)), path))
    return found


def test_the_rule_itself() -> None:
    assert not broken("from auditor.core.types import Case", "auditor.perturb.template")
    assert broken("from auditor.tasks.oracles.label import X", "auditor.perturb.template")
    assert broken("from auditor import models", "auditor.perturb.template")
    assert broken("import auditor.run", "auditor.tasks.oracles.label")


@pytest.mark.parametrize(("module", "path"), modules(), ids=[m for m, _ in modules()])
def test_imports_point_down(module: str, path: Path) -> None:
    assert broken(path.read_text(encoding="utf-8"), module) == []


HEAVY = {
    "spacy",
    "openai",
    "altair",
    "statsmodels",
    "scipy",
    "sklearn",
    "torch",
    "pandas",
    "vl_convert",
    "z3",
    "lime",
    "langchain",
}


@pytest.mark.parametrize(("module", "path"), modules(), ids=[m for m, _ in modules()])
def test_heavy_packages_are_imported_inside_functions(module: str, path: Path) -> None:
    """``audit --help`` must stay quick: no heavy package at module level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            top += [a.name.split(".")[0] for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            top.append(node.module.split(".")[0])
    assert not HEAVY & set(top)


def test_every_part_is_in_the_layer_table() -> None:
    parts = {p.stem for p in PACKAGE.glob("*.py")} | {p.parent.name for p in PACKAGE.glob("*/*.py")}
    assert parts - {"embedded", "_data"} <= set(RANK)
