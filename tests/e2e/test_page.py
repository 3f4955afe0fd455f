"""The HTML report in a real browser: it opens without a request, without a script, and nothing is cut off."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from auditor import audit

pytestmark = pytest.mark.e2e
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,Translate,MediaRouter",
]  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    folder = tmp_path_factory.mktemp("page")
    result = audit("sentiment", model=["reviews", "vader"], limit=40, out=folder)
    assert result.path is not None
    return result.path / "report.html"


def browse(page: Path, tmp_path: Path, *flags: str) -> str:
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags, page.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout


def test_the_page_makes_no_request_but_for_itself(page: Path, tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    dom = browse(page, tmp_path, f"--log-net-log={log}", "--dump-dom")
    assert "Bias test report" in dom
    text = log.read_text()
    # A log that was cut off at exit lacks its closing brackets.
    events = json.loads(text if text.rstrip().endswith("}") else text.rstrip().rstrip(",") + "]}")["events"]
    urls = {e["params"]["url"] for e in events if isinstance(e.get("params"), dict) and "url" in e["params"]}
    outside = {u for u in urls if u.startswith(("http:", "https:", "ws:", "ftp:"))}
    assert not outside


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_its_window(page: Path, tmp_path: Path, width: int) -> None:
    """A probe in a copy of the page compares the document's width with the window's."""
    probe = tmp_path / "probe.html"
    text = page.read_text()
    policy = text[text.index("<meta http-equiv") : text.index(">", text.index("<meta http-equiv")) + 1]
    script = (
        "<script>addEventListener('load',()=>{document.title="
        "document.documentElement.scrollWidth+' '+window.innerWidth})</script>"
    )
    probe.write_text(text.replace(policy, "").replace("</head>", script + "</head>"))
    dom = browse(probe, tmp_path, f"--window-size={width},900", "--dump-dom", "--virtual-time-budget=2000")
    title = dom[dom.index("<title>") + 7 : dom.index("</title>")]
    scroll, inner = map(int, title.split())
    assert scroll <= inner + 1


def test_the_page_prints(page: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.pdf"
    browse(page, tmp_path, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    data = target.read_bytes()
    assert data.startswith(b"%PDF")
    assert len(data) > 20_000
