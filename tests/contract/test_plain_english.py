"""Words that users read: at most 25 of them in a sentence, no phrase that needs a second reading, verbs first in docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from collections.abc import Iterator

import check_docs
import pytest
import yaml

from tests.contract.sources import EMBEDDED, name, strings, trees

MOST = 25
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s+(?=\S)")
# A prompt that models get, not a sentence for people; another wording would be another instruction.
PROMPTS = {"auditor/run/mitigate.py": "Who a person is"}
BANNED = {re.compile(pattern): words for pattern, words in check_docs.PLAIN.items()}  # with plain words


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


@pytest.fixture(scope="module")
def shown() -> list[tuple[str, str]]:
    """Return every text that a user may see: of the code, of the reports, of the legal pages, of the explained codes."""
    found = []
    for path, tree in trees().items():
        found += [(f"{name(path)}:{line}", text) for line, text in strings(tree) if "(?:" not in text]  # no patterns
    for path in (EMBEDDED / "report.yaml", *sorted((EMBEDDED / "frameworks").glob("*.yaml"))):
        found += values(yaml.safe_load(path.read_text(encoding="utf-8")), path.name)
    codes = tomllib.loads((EMBEDDED / "explain" / "codes.toml").read_text(encoding="utf-8"))["page"]
    return found + [(f"codes.toml {page['code']}", f"{page['title']}. {page['text']}") for page in codes]


def long(text: str) -> list[str]:
    """Return the sentences of ``text`` with more than `MOST` words."""
    return [s for s in SENTENCE.split(text) if len(re.findall(r"\S*\w\S*", s)) > MOST]


def twisted(text: str) -> list[str]:
    """Return the phrases of ``text`` that need a second reading, each with plain words."""
    return [f"{m.group()!r}: write {plain}" for phrase, plain in BANNED.items() for m in phrase.finditer(text)]


def test_sentences_have_at_most_25_words(shown: list[tuple[str, str]]) -> None:
    found = [(where, sentence) for where, text in shown for sentence in long(text)]
    assert [
        f"{where}: {sentence}"
        for where, sentence in found
        if not sentence.startswith(PROMPTS.get(where.partition(":")[0], "\0"))
    ] == []


def test_no_sentence_needs_a_second_reading(shown: list[tuple[str, str]]) -> None:
    assert [f"{where}: {found}" for where, text in shown if " " in text.strip() for found in twisted(text)] == []


@pytest.mark.parametrize(
    "source",
    ['raise UserError(f"the file {path} stands beside the folder {folder}, and " + other)',
     'f(help="It is no valid name.")', 'x = "a" if y else ("This was done " "in vain")'],
)  # fmt: skip
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
    *("auditor.core.plan", "auditor.core.protocols", "auditor.core.types", "auditor.run.audit"),
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
    for place in PUBLIC:
        module = importlib.import_module(place)
        own = (n for n, made in vars(module).items() if n[0] != "_" and getattr(made, "__module__", "") == place)
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
