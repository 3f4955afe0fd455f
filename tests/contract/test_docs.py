"""The documentation as a whole: commands and links are right, every page can be reached, the site builds without a warning."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import check_docs
import cli_reference
import pytest
import validity_rates
import yaml

import auditor
from auditor.cli.main import COMMANDS, overview
from auditor.core.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
WORKPLACE = re.compile(r"(?<![\w.])/(?:work|tmp|root|home)/|\bthis session\b|\bthe brief\b", re.IGNORECASE)
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\brel=["']?(?:stylesheet|preload|icon|preconnect)[^>]*\bhref=["']?(?:https?:)?//"""
)


def targets(items: list[Any]) -> list[str]:
    """What the navigation names, in order."""
    out = []
    for item in items:
        target = next(iter(item.values())) if isinstance(item, dict) else item
        out += targets(target) if isinstance(target, list) else [target]
    return out


@pytest.fixture(scope="module")
def navigation() -> list[str]:
    return targets(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])


def test_links_and_commands() -> None:
    assert check_docs.problems() == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("audit --task sentiment --no-such-option", True),
        ("audit nosuch RUN", True),
        ("audit plan freeze --output plan.json --delta 0.02", False),
        ('audit run --fail-on "hidden > 0, net(gender) > 2%"', False),
        ("audit tabular schema german.csv --max-calls 5", True),
        ("audit compare A B --format markdown > out.md", False),
        ("audit list models     # a comment with --words", False),
    ],
)
def test_the_check_of_commands(line: str, wrong: bool) -> None:
    assert bool(check_docs.command_problem(line, cli_reference.commands())) == wrong


def test_commands_are_read_from_blocks_and_running_text() -> None:
    text = "Run `audit show RUN`.\n\n    audit run \\\n      --task x     says more\n\n```console\n$ audit list models\n```\nand audit is a word.\n"
    assert list(check_docs.shown(text)) == ["audit list models", "audit run --task x", "audit show RUN"]


def test_every_block_of_commands_is_run_or_says_why_not() -> None:
    assert list(check_docs.unmarked("<!-- docs: run -->\n```sh\naudit list models\n```\n\n```python\nx\n```\n")) == []
    assert list(check_docs.unmarked("<!-- docs: skip spends money -->\n```console\n$ audit list models\n```\n")) == []
    for wrong in (
        "```sh\naudit list models\n```\n", "<!-- docs: skip -->\n```sh\naudit list models\n```\n",
        "- text\n\n  ```sh\n  audit list models\n  ```\n", "```\naudit list models\n```\n",
        "text\n\n    audit list models\n",
    ):  # fmt: skip
        assert len(list(check_docs.unmarked(wrong))) == 1, wrong


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The noise stands beside it.", 2), ("This is no model.", 1), ("There is no model.", 0),
        ("Code may: `stands beside`.", 0), ("It stands for a name.", 0),
    ],
)  # fmt: skip
def test_phrases_that_need_a_second_reading_are_found(text: str, found: int) -> None:
    assert len(list(check_docs.twisted(text))) == found


def test_a_page_that_is_too_long_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(check_docs.too_long()) == []
    monkeypatch.setattr(check_docs, "PAGE_WORDS", {"README.md": 10})
    monkeypatch.setattr(check_docs, "ALL_WORDS", 10)
    assert [line.partition(":")[0] for line in check_docs.too_long()] == ["README.md", "docs"]


def test_validity_rates_are_those_of_a_run() -> None:
    given = validity_rates.options().parse_args(["FILE"])
    plan = Plan(task="sentiment")
    assert (given.order, given.per_seed, given.parser) == (plan.order, plan.per_seed, plan.parser)


def test_first_steps_can_be_pasted() -> None:
    steps = re.findall(r"^ {14}(audit .*)$", overview(), re.MULTILINE)
    assert len(steps) >= 3
    for line in steps:
        assert check_docs.command_problem(line, cli_reference.commands()) == ""
        assert not re.search(r"\S {3,}[^ #]", line), line


def test_the_page_of_commands_has_every_command_and_option() -> None:
    page = cli_reference.page()
    for name in COMMANDS:
        assert f"\n## audit {name}\n" in page
    for name in ("plan freeze", "plan show", "tabular schema", "list grammars check", "list tasks new"):
        assert f"\n### audit {name}\n" in page
    assert "--fail-on" in cli_reference.commands()["run"]
    assert str(ROOT) not in page


def test_every_page_is_in_the_navigation(navigation: list[str]) -> None:
    folders = tuple(target for target in navigation if target.endswith("/"))
    pages = [str(p.relative_to(DOCS)) for p in sorted(DOCS.rglob("*.md"))]
    assert [p for p in pages if p not in navigation and not p.startswith(folders)] == []
    assert len(navigation) == len(set(navigation))


def test_nothing_is_named_that_does_not_exist(navigation: list[str]) -> None:
    text = (ROOT / "tools" / "mkdocs_hooks.py").read_text(encoding="utf-8")
    for target in navigation:
        made = f'"{target}"' in text
        assert made or (DOCS / target).exists(), target


def test_the_api_pages_name_what_is_public() -> None:
    text = "".join(p.read_text(encoding="utf-8") for p in sorted((DOCS / "reference" / "api").glob("*.md")))
    homes = {home for name, home in auditor._HOME.items()}
    for home in sorted(homes):
        assert f"::: {home}" in text, home
    members = re.findall(r"members: \[(.*?)\]", text)
    named = {name.strip() for row in members for name in row.split(",")}
    assert {n for n, h in auditor._HOME.items() if h == "auditor.run.audit"} <= named


@pytest.mark.parametrize(
    "path", [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md"))], ids=lambda p: str(p.relative_to(ROOT))
)
def test_no_word_of_the_workplace(path: Path) -> None:
    assert WORKPLACE.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("mkdocs is not installed: make docs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")], cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert (tmp_path / "site" / "reference" / "cli.html") in pages
    assert (tmp_path / "site" / "reference" / "files" / "grammars.html") in pages
    for page in pages:
        assert FETCHED.findall(page.read_text(encoding="utf-8")) == [], page.name
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "fonts.googleapis" not in start
    assert 'href="../' not in start


def test_the_search_for_fetched_things_can_fail() -> None:
    assert FETCHED.search('<script src="https://unpkg.com/x.js"></script>')
    assert FETCHED.search('<link rel="stylesheet" href="//fonts.example/x.css">')
    assert not FETCHED.search('<a href="https://example.org">x</a><script src="assets/x.js"></script>')
