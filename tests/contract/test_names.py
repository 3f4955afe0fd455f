"""Names that a reader can rely on: one module of each name, and nouns for what is held."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator

from auditor.core import protocols
from auditor.tasks.kinds import KINDS
from tests.contract.sources import PACKAGE, trees

NO_NOUNS = {"found", "told", "given"}  # what was found, told or given has a name of its own
NO_MODULES = {"extras", "more", "parts", "utils", "helpers", "misc", "common"}
KEYS = {  # fields whose names are keys of files that others read, or of what a command prints as JSON
    "contrib/free_text.py": {"found"},  # run.json, told_apart
    "core/record/measured.py": {"given", "found"},  # run.json, labels in the data and the bound of a grammar
    "run/mitigate.py": {"found"},  # mitigation.json
}


def test_no_two_modules_have_one_name() -> None:
    names = Counter(path.stem for path in trees() if path.stem != "__init__")
    assert {name for name, n in names.items() if n > 1} == set()
    assert NO_MODULES & set(names) == set()


def bound(tree: ast.AST) -> Iterator[str]:
    """Names that a module binds: variables, arguments, attributes, functions, classes, imports under another name."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)) | ast.alias(asname=str(name)):
                yield name


def test_nouns_say_what_they_are() -> None:
    files = {path: NO_NOUNS & set(bound(tree)) for path, tree in trees().items()}
    assert {str(path.relative_to(PACKAGE)): names for path, names in files.items() if names} == KEYS


def test_names_with_dots_in_docstrings_are_there() -> None:
    """Modules, what they hold, and groups of entry points."""
    groups = {kind.group for kind in (*protocols.KINDS, KINDS)}
    missing = []
    for path in trees():
        for name in sorted(set(re.findall(r"`(auditor(?:\.\w+)+)`", path.read_text(encoding="utf-8")))):
            try:
                pkgutil.resolve_name(name)
            except (ImportError, AttributeError):
                if name not in groups:
                    missing.append(f"{path.relative_to(PACKAGE)}: {name}")
    assert not missing
