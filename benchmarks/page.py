"""A report of 5,000 findings: time to write it, its size, and time until a browser has it on the screen."""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from common import Row, seconds

FINDINGS = 5000
RUNS = 5
SPECIMEN = Path(__file__).parents[1] / "tests" / "golden" / "specimen.py"
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
PAINT = "(performance.getEntriesByName('first-contentful-paint')[0] || {startTime: 0}).startTime"


def measure() -> list[Row]:
    """Rendering always; opening, searching and clearing where Chromium and Playwright are installed."""
    from auditor.report.html import HtmlReport

    specimen = _load()
    record = _record(specimen)
    evidence = specimen.evidence()
    page = HtmlReport().render(record, evidence)
    name = f"report of {FINDINGS:,} findings"
    rows = [
        Row(f"{name}, written", seconds(lambda: HtmlReport().render(record, evidence), RUNS), "s", RUNS),
        Row(f"{name}, size", len(page.encode()) / 1e6, "MB"),
    ]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None or importlib.util.find_spec("playwright") is None:
        return [*rows, Row(f"{name}, opened", 0.0, "s", 0, note="not measured: no Chromium or no Playwright")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        opened, painted, searched = _browse(chromium, path)
    return [
        *rows,
        Row(f"{name}, opened", opened, "s", RUNS, note="load and two frames; target < 2"),
        Row(f"{name}, first contents on the screen", painted, "s", RUNS),
        Row(f"{name}, searched", searched, "s", RUNS, note="from the last key to the count, 0.12 s of waiting in it"),
    ]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("specimen", SPECIMEN)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(SPECIMEN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _record(specimen: ModuleType) -> dict[str, Any]:
    """The made-up run with findings repeated, a fifth of them single changes."""
    record: dict[str, Any] = specimen.record()
    models = [f for f in record["findings"] if f["kind"] == "hidden"]
    record["findings"] = [
        models[i % len(models)] | {"id": f"F{i:04}", "kind": "violation" if i % 5 == 0 else "hidden"}
        for i in range(FINDINGS)
    ]
    return record


def _browse(chromium: str, path: Path) -> tuple[float, float, float]:
    """Medians in seconds: opened, first contents painted, searched."""
    from playwright.sync_api import sync_playwright

    times: list[tuple[float, float, float]] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(RUNS):
            tab = browser.new_page()
            start = time.perf_counter()
            tab.goto(path.as_uri())
            tab.evaluate(FRAMES)
            opened = time.perf_counter() - start
            painted = tab.evaluate(PAINT) / 1000
            start = time.perf_counter()
            tab.fill("#filter-text", "F4999")
            tab.locator("#filter-count", has_text=f" of {FINDINGS} findings shown").wait_for()
            times.append((opened, painted, time.perf_counter() - start))
            tab.close()
        browser.close()
    opened_all, painted_all, searched_all = zip(*times, strict=True)
    return statistics.median(opened_all), statistics.median(painted_all), statistics.median(searched_all)
