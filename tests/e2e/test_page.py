"""The HTML report in a real browser: it opens without a request, without a script, and nothing is cut off."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from auditor import audit

pytestmark = pytest.mark.e2e
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic", "--no-first-run", "--hide-scrollbars",
]  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    folder = tmp_path_factory.mktemp("page")
    result = audit("sentiment", model=["reviews", "vader"], limit=40, out=folder)
    assert result.path is not None
    return result.path / "report.html"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder over HTTP on loopback: resource timing says little about file: addresses."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def browse(page: Path | str, tmp_path: Path, *flags: str) -> str:
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags, page if isinstance(page, str) else page.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout


def probed(page: Path, tmp_path: Path, expression: str, *flags: str, body: str = "") -> str:
    """What a script sees in a copy of the page without its policy; it writes into the title when all is loaded."""
    text = page.read_text()
    start = text.index("<meta http-equiv")
    policy = text[start : text.index(">", start) + 1]
    script = f"<script>addEventListener('load',()=>{{document.title={expression}}})</script>"
    probe = tmp_path / "probe.html"
    probe.write_text(
        text.replace(policy, "").replace("</head>", script + "</head>").replace("</body>", body + "</body>")
    )
    with served(tmp_path) as address:
        dom = browse(address + "probe.html", tmp_path, *flags, "--dump-dom", "--virtual-time-budget=3000")
    return dom[dom.index("<title>") + 7 : dom.index("</title>")]


REQUESTS = "performance.getEntriesByType('resource').map(e=>e.name).join(' ')"


def test_the_page_requests_nothing(page: Path, tmp_path: Path) -> None:
    assert "Bias test report" in browse(page, tmp_path, "--dump-dom")
    assert probed(page, tmp_path, REQUESTS) == ""
    # The probe would see a request: it does when there is one.
    assert "nowhere.png" in probed(page, tmp_path, REQUESTS, body='<img src="nowhere.png" alt="">')


@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_fits_its_window(page: Path, tmp_path: Path, width: int) -> None:
    sizes = "document.documentElement.scrollWidth+' '+window.innerWidth"
    scroll, inner = map(int, probed(page, tmp_path, sizes, f"--window-size={width},900").split())
    assert scroll <= inner + 1


def test_the_page_prints(page: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.pdf"
    browse(page, tmp_path, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    data = target.read_bytes()
    assert data.startswith(b"%PDF")
    assert len(data) > 20_000
