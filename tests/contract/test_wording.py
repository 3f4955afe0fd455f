"""No verdict words where somebody reads: templates, texts of the package, documentation, reports.

docs/extending/wording.md says why, and holds the only list of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EVERYWHERE = re.compile(
    r"\b(unbiased|bias[- ]free|non[- ]?compliant|compliant|certified|no bias (was )?(detected|found)"
    r"|AI Act[- ]ready|NIST[- ]approved)\b",
    re.IGNORECASE,
)
# In reports these words have no other use; in documentation "make test passes" has.
REPORTS = re.compile(EVERYWHERE.pattern + r"|\b(un)?fair(ly)?\b|\bpass(es|ed)\b", re.IGNORECASE)
VERDICT = re.compile(
    EVERYWHERE.pattern + r"|\b(is|are|was|were|be|being|seems?|looks?) (\w+ )?(un)?fair\b"
    r"|\b(model|system|classifier|audit|vendor|company) (has )?pass(es|ed)\b",
    re.IGNORECASE,
)
LISTED = re.compile(r"<!-- banned words: begin -->.*?<!-- banned words: end -->", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """String constants of a module that are not docstrings: what may reach a reader."""
    tree = ast.parse(source)
    docs = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docs.add(id(first.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def prose(text: str) -> str:
    """A document without code and without the list of banned words."""
    return CODE.sub("", LISTED.sub("", text))


RENDER = sorted((ROOT / "auditor" / "report").rglob("*.py"))
TEMPLATES = sorted((ROOT / "auditor" / "report").rglob("*.j2"))
EMBEDDED = ROOT / "auditor" / "embedded"
FRAMEWORKS = [EMBEDDED / "report.yaml", *sorted((EMBEDDED / "frameworks").glob("*.yaml"))]
GOLDEN = sorted((ROOT / "tests" / "golden" / "files").glob("*.*"))
DOCS = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
PACKAGE = sorted(p for p in (ROOT / "auditor").rglob("*.py") if "_data" not in p.parts)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_there_is_something_to_read() -> None:
    assert RENDER
    assert TEMPLATES
    assert FRAMEWORKS
    assert GOLDEN
    assert DOCS


def test_texts_of_the_package() -> None:
    bad = []
    for path in PACKAGE:
        banned = REPORTS if path in RENDER else VERDICT  # in reports "pass" is not shown either
        found = [(line, text) for line, text in texts(read(path)) if banned.search(text)]
        bad += [f"{name(path)}:{line}: {text}" for line, text in found]
    assert bad == []


def test_templates_and_reports() -> None:
    paths = [*TEMPLATES, *FRAMEWORKS, *GOLDEN]
    assert [f"{name(p)}: {m.group()}" for p in paths for m in REPORTS.finditer(read(p))] == []


def test_documentation() -> None:
    assert [f"{name(p)}: {m.group()}" for p in DOCS for m in VERDICT.finditer(prose(read(p)))] == []


@pytest.mark.parametrize(
    "text",
    [
        "The model is fair.",
        "This system was found unbiased",
        "A bias-free classifier",
        "the audit passed",
        "Certified for use",
        "compliant with the law",
        "No bias was detected.",
    ],
)
def test_the_test_can_fail(text: str) -> None:
    assert VERDICT.search(text)
    assert REPORTS.search(text)


@pytest.mark.parametrize(
    "text", ["`make test` passes", "fairness metrics", "the value is passed on", "a compliance guide"]
)
def test_plain_uses_stay(text: str) -> None:
    assert not VERDICT.search(prose(text))


def test_the_list_of_banned_words_is_complete() -> None:
    listed = LISTED.search((ROOT / "docs" / "extending" / "wording.md").read_text(encoding="utf-8"))
    assert listed is not None
    for word in ("fair", "unbiased", "bias-free", "passes", "compliant", "certified", "no bias detected"):
        assert word in listed.group()
