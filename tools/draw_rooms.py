"""Draw the rooms of the package, from its imports, into docs/extending/architecture.md.

Usage: ``python tools/draw_rooms.py`` (``make rooms``); ``--check`` only says whether the picture is up to date.

An arrow means that a room imports another. Arrows that follow from others are left out (transitive reduction).
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "auditor"
PAGE = ROOT / "docs" / "extending" / "architecture.md"
BLOCK = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.DOTALL)
LAYERS = re.compile(r"```text layers\n(.*?)```", re.DOTALL)


def layers(page: str) -> list[tuple[str, ...]]:
    """The rooms as the page lists them, the topmost row first."""
    found = LAYERS.search(page)
    if found is None:
        raise ValueError(f"{PAGE} has no block of layers")
    return [tuple(line.split()) for line in found[1].splitlines()]


def imported(tree: ast.AST) -> set[str]:
    """The modules that a module imports, wherever the import stands; absolute names."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{a.name}" for a in node.names if node.module == "auditor"}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def modules() -> dict[str, set[str]]:
    """Every module, and the modules of the package that it imports."""
    paths = {
        ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p
        for p in sorted(PACKAGE.rglob("*.py"))
    }
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        targets = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                inner = {f"{node.module}.{a.name}" for a in node.names}
                targets |= {t if t in paths else node.module for t in inner}
            elif isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
        found[name] = {t for t in targets if t in paths and t != name}
    return found


def arrows() -> dict[str, set[str]]:
    """The rooms that each room imports."""
    rooms = {p.parent.name for p in PACKAGE.glob("*/*.py")}
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0]
        if room not in rooms:
            continue
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            target = name.split(".")[1] if name.startswith("auditor.") else room
            if target in rooms - {room}:
                found[room].add(target)
    return found


def reduced(graph: dict[str, set[str]], order: list[str]) -> list[tuple[str, str]]:
    """The arrows that point down ``order`` and do not follow from others."""
    below = {r: {t for t in graph.get(r, ()) if order.index(t) > order.index(r)} for r in order}
    reach: dict[str, set[str]] = {}
    for room in reversed(order):
        reach[room] = below[room].union(*(reach[t] for t in below[room]))
    return [
        (room, target)
        for room in order
        for target in sorted(below[room], key=order.index)
        if not any(target in reach[other] for other in below[room])
    ]


def picture(page: str) -> str:
    """The lines of the drawing."""
    order = [room for row in layers(page) for room in row if room != "__init__"]
    lines = [f"    {a} --> {b}" for a, b in reduced(arrows(), order)]
    return "\n".join(["graph TD", *lines]) + "\n"


def main() -> None:
    """Write the picture, or check it."""
    page = PAGE.read_text(encoding="utf-8")
    fresh = BLOCK.sub(lambda _: picture(page), page, count=1)
    if "--check" in sys.argv:
        sys.exit(0 if fresh == page else "docs/extending/architecture.md is out of date: make rooms")
    PAGE.write_text(fresh, encoding="utf-8")


if __name__ == "__main__":
    main()
