"""What tests with servers and processes share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from nursery import Nursery

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Nursery:
    """Start audits that share a cache."""
    return Nursery(tmp_path_factory.mktemp("nursery"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra e2e)")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()
