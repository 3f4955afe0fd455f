"""What tests with servers and processes share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from nursery import Nursery, audit

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Nursery:
    """Start audits that share a cache."""
    return Nursery(tmp_path_factory.mktemp("nursery"))


@pytest.fixture
def audited(tmp_path: Path) -> Callable[..., CompletedProcess[str]]:
    """Run a command with a cache of its own to its end, which must have the exit code that is given."""
    environment = os.environ | {"AUDIT_CACHE": str(tmp_path / "c")}

    def call(*argv: str | Path, code: int = 0) -> CompletedProcess[str]:
        done = audit(*argv, cwd=tmp_path, environment=environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return call


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra e2e)")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()
