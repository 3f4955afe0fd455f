"""Every name in the code cells of docs/method/papers.md exists: modules are imported, their attributes are read."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.cli.main import COMMANDS
from auditor.tables.tabular_plan import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "method" / "papers.md"
SPAN = re.compile(r"`([^`]+)`")


def cells(text: str) -> Iterator[str]:
    """Yield the code spans in the second column of every table."""
    for line in text.splitlines():
        columns = re.split(r"(?<!\\)\|", line)
        if line.startswith("|") and len(columns) > 3 and columns[2].strip(" -"):
            yield from SPAN.findall(columns[2])


def problem(span: str) -> str:
    """Return what is wrong with a code span, or an empty text: a command, an option, or a path with an attribute."""
    if span.startswith("audit "):
        return "" if span.split()[1] in COMMANDS else "no such command"
    if span.startswith("--"):
        setting = re.match(r"--set (\w+)=", span)
        known = not setting or any(setting[1] in one.model_fields for one in OPTIONS.values())
        return "" if known else "no such setting"
    name, _, attributes = span.partition("::")
    if not (ROOT / name).exists():
        return "no such file; write auditor/ROOM/FILE.py or auditor/ROOM/FILE.py::NAME"
    if name.startswith("auditor/") and name.endswith(".py"):
        found: object = importlib.import_module(name.removesuffix(".py").replace("/", "."))
        for attribute in filter(None, attributes.split(".")):
            if not hasattr(found, attribute):
                return f"{name} has no {attributes}"
            found = getattr(found, attribute)
    return ""


SPANS = sorted(set(cells(PAGE.read_text(encoding="utf-8"))))


def test_the_page_has_code_cells() -> None:
    assert len(SPANS) > 40


@pytest.mark.parametrize("span", SPANS)
def test_a_code_cell_names_what_exists(span: str) -> None:
    assert problem(span) == ""


def test_files_in_the_other_cells_exist() -> None:
    files = [one for one in SPAN.findall(PAGE.read_text(encoding="utf-8")) if re.search(r"\.py\b", one)]
    assert [one for one in files if problem(one)] == []


@pytest.mark.parametrize(
    ("span", "wrong"),
    [
        ("directed.share_estimate", True), ("sg_path", True), ("auditor/tables/sg_surrogate.py", True),
        ("auditor/tables/aequitas.py::no_such_name", True), ("audit nosuch RUN", True), ("--set nosuch=1", True),
        ("auditor/tables/aequitas.py::share_estimate", False),
    ],
)  # fmt: skip
def test_a_wrong_cell_is_seen(span: str, wrong: bool) -> None:
    assert bool(problem(span)) == wrong
