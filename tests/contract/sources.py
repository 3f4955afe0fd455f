"""The modules of the package, parsed once, and the texts in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "auditor"
EMBEDDED = PACKAGE / "embedded"


@cache
def trees() -> dict[Path, ast.Module]:
    """Return every module of the package by its path."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def literal(node: ast.AST) -> str | None:
    """Return a string of the source as one text, with one word for each placeholder; None for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) or "{x}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = literal(node.left), literal(node.right)
        return None if left is None and right is None else (left or "{x}") + (right or "{x}")
    return None


def strings(node: ast.AST, docs: frozenset[int] = frozenset()) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module and their lines; docstrings are left out."""
    if id(node) in docs:
        return
    if (text := literal(node)) is not None:
        yield getattr(node, "lineno", 0), text
        for part in ast.walk(node):
            if isinstance(part, ast.FormattedValue):
                yield from strings(part.value, docs)
            elif isinstance(part, ast.BinOp):
                for operand in (part.left, part.right):
                    yield from strings(operand, docs) if literal(operand) is None else ()
        return
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
        docs |= {id(node.body[0])}
    for child in ast.iter_child_nodes(node):
        yield from strings(child, docs)
