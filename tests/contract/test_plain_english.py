"""Words that users read: at most 25 of them in a sentence, no phrase that needs a second reading, verbs first in docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "auditor"
EMBEDDED = PACKAGE / "embedded"
MOST = 25
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s+(?=\S)")
# A prompt that models get, not a sentence for people; another wording would be another instruction.
PROMPTS = {"auditor/run/mitigations.py": "Who a person is"}


@cache
def banned() -> dict[re.Pattern[str], str]:
    """Return the phrases that the docs may not hold, each with plain words."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        plain = importlib.import_module("check_docs").PLAIN
    finally:
        sys.path.pop(0)
    return {re.compile(pattern): words for pattern, words in plain.items()}


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
    """Yield the strings of a module and their lines; docstrings and patterns are left out."""
    if id(node) in docs:
        return
    if (text := literal(node)) is not None:
        if "(?:" not in text:
            yield getattr(node, "lineno", 0), text
        for part in ast.walk(node):
            if isinstance(part, ast.FormattedValue):
                yield from strings(part.value, docs)
        return
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
        docs |= {id(node.body[0])}
    for child in ast.iter_child_nodes(node):
        yield from strings(child, docs)


def values(content: object, where: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a data file with their places."""
    if isinstance(content, str):
        yield where, content
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from values(value, f"{where} {key}")
    elif isinstance(content, list):
        for n, value in enumerate(content):
            yield from values(value, f"{where}[{n}]")


def shown() -> Iterator[tuple[str, str]]:
    """Yield every text that a user may see: of the code, of the reports, of the legal pages, of the explained codes."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, text in strings(ast.parse(path.read_text(encoding="utf-8"))):
            yield f"{path.relative_to(ROOT)}:{line}", text
    for path in (EMBEDDED / "report.yaml", *sorted((EMBEDDED / "frameworks").glob("*.yaml"))):
        yield from values(yaml.safe_load(path.read_text(encoding="utf-8")), path.name)
    codes = tomllib.loads((EMBEDDED / "explain" / "codes.toml").read_text(encoding="utf-8"))["page"]
    yield from ((f"codes.toml {page['code']}", f"{page['title']}. {page['text']}") for page in codes)


def long(text: str) -> list[str]:
    """Return the sentences of ``text`` with more than `MOST` words."""
    return [s for s in SENTENCE.split(text) if len(re.findall(r"\S*\w\S*", s)) > MOST]


def twisted(text: str) -> list[str]:
    """Return the phrases of ``text`` that need a second reading, each with plain words."""
    return [f"{m.group()!r}: write {plain}" for phrase, plain in banned().items() for m in phrase.finditer(text)]


def test_sentences_have_at_most_25_words() -> None:
    found = [(where, sentence) for where, text in shown() for sentence in long(text)]
    assert [
        f"{where}: {sentence}"
        for where, sentence in found
        if not sentence.startswith(PROMPTS.get(where.partition(":")[0], "\0"))
    ] == []


def test_no_sentence_needs_a_second_reading() -> None:
    assert [f"{where}: {found}" for where, text in shown() if " " in text.strip() for found in twisted(text)] == []


@pytest.mark.parametrize(
    "source",
    [
        'raise UserError(f"the file {path} stands beside the folder {folder}, and " + other)',
        'f(help="It is no valid name.")',
        'x = "a" if y else ("This was done " "in vain")',
    ],
)
def test_the_phrases_of_a_source_are_found(source: str) -> None:
    assert any(twisted(text) for _, text in strings(ast.parse(source)))


def test_long_sentences_of_a_source_are_found() -> None:
    words = " ".join(["word"] * 20)
    assert long(f"{words} {words[:20]}. Short.") == []
    [(_, text)] = strings(ast.parse(f'raise E(f"{words} {{placeholder}} "\n"one two three four five")'))
    assert len(long(text)) == 1
    assert list(strings(ast.parse('def f():\n    """A docstring."""'))) == []


# The modules that docs/reference/api shows.
PUBLIC = (
    *("auditor", "auditor.agent", "auditor.models", "auditor.tables", "auditor.testing", "auditor.core.errors"),
    *("auditor.core.plan", "auditor.core.protocols", "auditor.core.types", "auditor.run.front", "auditor.run.result"),
)
VERBS = frozenset(
    [
        "Add", "Apply", "Ask", "Assert", "Audit", "Build", "Check", "Compare", "Compute", "Count", "Draw", "Find",
        "Finish", "Freeze", "Give", "Infer", "Join", "Judge", "Label", "Learn", "Let", "List", "Load", "Make",
        "Measure", "Plan", "Put", "Raise", "Read", "Release", "Render", "Replay", "Resume", "Return", "Run", "Say",
        "Score", "Search", "Send", "Serve", "Set", "Show", "Split", "Sum", "Take", "Test", "Train", "Write",
    ]
)  # fmt: skip


def public_functions() -> Iterator[tuple[str, str]]:
    """Yield the names and docstrings of public functions and methods; properties are nouns and left out."""
    for name in PUBLIC:
        module = importlib.import_module(name)
        own = (n for n, made in vars(module).items() if n[0] != "_" and getattr(made, "__module__", "") == name)
        for made in (getattr(module, n) for n in getattr(module, "__all__", own)):
            members = [v for k, v in vars(made).items() if not k.startswith("_")] if inspect.isclass(made) else [made]
            for member in members:
                function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
                if inspect.isfunction(function) and (docs := inspect.getdoc(function)):
                    yield f"{function.__module__}.{function.__qualname__}", docs


def test_public_docstrings_begin_with_a_verb() -> None:
    found = dict(public_functions())
    assert len(found) > 60
    assert {name: docs.splitlines()[0] for name, docs in found.items() if docs.split()[0] not in VERBS} == {}
