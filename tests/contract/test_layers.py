"""Imports point down; stages do not know each other."""

from __future__ import annotations

import ast
import graphlib
import re

import draw_rooms
import pytest

from tests.contract.sources import PACKAGE, ROOT, trees

LAYERS = [*draw_rooms.layers(draw_rooms.PAGE.read_text(encoding="utf-8")), ("_version",)]  # top first
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
EXCEPT = {("report", "contrib")}  # sections of a report that belong to a technique


def broken(tree: ast.AST, module: str) -> list[str]:
    """Imports of ``module`` (``auditor.<part>...``) that do not point down."""
    part = module.split(".")[1]
    bad = []
    for name in sorted(draw_rooms.imported(tree)):
        target = name.split(".")[1] if name.startswith("auditor.") else part
        if target == part or target not in RANK or (part, target) in EXCEPT:
            continue
        if RANK[target] <= RANK[part]:
            bad.append(f"{module} imports {name}")
    return bad


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): tree for path, tree in trees().items()}


def test_the_rule_itself() -> None:
    def bad(source: str, module: str) -> list[str]:
        return broken(ast.parse(source), module)

    assert not bad("from auditor.core.types import Case", "auditor.perturb.template")
    assert bad("from auditor.tasks.oracles import X", "auditor.perturb.template")
    assert bad("from auditor import models", "auditor.perturb.template")
    assert bad("import auditor.run", "auditor.tasks.oracles")


def test_imports_point_down(modules: dict[str, ast.Module]) -> None:
    assert [line for name, tree in modules.items() for line in broken(tree, name)] == []


HEAVY = {"spacy", "openai", "altair", "scipy", "sklearn", "torch", "pandas", "vl_convert", "z3", "lime", "langchain"}


def test_heavy_packages_are_imported_inside_functions(modules: dict[str, ast.Module]) -> None:
    """``audit --help`` must stay quick: no heavy package at module level."""
    bad = []
    for name, tree in modules.items():
        top = draw_rooms.imported(ast.Module([n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)], []))
        bad += [f"{name} imports {t}" for t in top if t.split(".")[0] in HEAVY]
    assert bad == []


def test_every_part_is_in_the_layer_table() -> None:
    parts = {p.stem for p in PACKAGE.glob("*.py")} | {p.parent.name for p in PACKAGE.glob("*/*.py")}
    assert parts - {"embedded", "_data"} <= set(RANK)


def test_the_files_that_a_room_begins_with_are_in_it() -> None:
    page = draw_rooms.PAGE.read_text(encoding="utf-8")
    rows = [row.split("|")[1:4] for row in page.splitlines() if row.startswith("| `")]
    assert len(rows) > 10
    for names, _, files in rows:
        rooms = re.findall(r"`(\w+)`", names)
        for file in re.findall(r"`([\w/]+(?:\.py|/))`", files):
            assert any((PACKAGE / room / file).exists() for room in rooms), (rooms, file)


def test_the_picture_is_drawn_from_the_imports() -> None:
    page = draw_rooms.PAGE.read_text(encoding="utf-8")
    assert draw_rooms.picture(page) in page, "make rooms"


def test_no_module_imports_itself_through_others() -> None:
    """Late imports and those for types count: what a module needs stands below it."""
    graph = draw_rooms.modules()
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
    assert len(graph) > 100
