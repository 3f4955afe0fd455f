"""No verdict words where somebody reads: templates, texts of the package, documentation, reports.

docs/extending/wording.md says why, and holds the only list of them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contract.sources import EMBEDDED, PACKAGE, ROOT, name, strings, trees

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


def prose(text: str) -> str:
    """A document without code and without the list of banned words."""
    return CODE.sub("", LISTED.sub("", text))


RENDER = sorted((PACKAGE / "report").rglob("*.py"))
TEMPLATES = sorted((PACKAGE / "report").rglob("*.j2"))
FRAMEWORKS = [EMBEDDED / "report.yaml", *sorted((EMBEDDED / "frameworks").glob("*.yaml"))]
GOLDEN = sorted((ROOT / "tests" / "golden" / "files").glob("*.*"))
DOCS = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_there_is_something_to_read() -> None:
    assert all((RENDER, TEMPLATES, FRAMEWORKS, GOLDEN, DOCS))


def test_texts_of_the_package() -> None:
    bad = []
    for path, tree in trees().items():
        banned = REPORTS if path in RENDER else VERDICT  # in reports "pass" is not shown either
        found = [(line, text) for line, text in strings(tree) if banned.search(text)]
        bad += [f"{name(path)}:{line}: {text}" for line, text in found]
    assert bad == []


def test_templates_and_reports() -> None:
    paths = [*TEMPLATES, *FRAMEWORKS, *GOLDEN]
    assert [f"{name(p)}: {m.group()}" for p in paths for m in REPORTS.finditer(read(p))] == []


def test_documentation() -> None:
    assert [f"{name(p)}: {m.group()}" for p in DOCS for m in VERDICT.finditer(prose(read(p)))] == []


@pytest.mark.parametrize(
    "text",
    ["The model is fair.", "This system was found unbiased", "A bias-free classifier", "the audit passed",
     "Certified for use", "compliant with the law", "No bias was detected."],
)  # fmt: skip
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
