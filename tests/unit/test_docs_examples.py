"""The examples of the documentation run: Python blocks, and console blocks that say so; files they name are written.

CONTRIBUTING.md describes the marks. A server of the OpenAI protocol on the loopback stands in for the address that the
pages show.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import re
import shlex
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from auditor.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:8000"
BLOCK = re.compile(
    r"(?:^<!-- docs: (?P<mark>[^>]*?) -->\n)?^```(?P<language>[a-z]*)\n(?P<code>.*?)^```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One marked or runnable block."""

    mark: str
    language: str
    code: str
    line: int


def blocks(text: str) -> list[Block]:
    """The blocks of a page that are run or written, in order."""
    found = [
        Block(m["mark"] or "", m["language"], m["code"], text.count("\n", 0, m.start("code")) + 1)
        for m in BLOCK.finditer(text)
    ]
    return [b for b in found if not b.mark.startswith("skip") and (b.mark or b.language == "python")]


def commands(code: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the output that is shown below it."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more
        yield command, output.rstrip("\n")


PAGES = [
    p
    for p in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if blocks(p.read_text(encoding="utf-8"))
]


class Stub(BaseHTTPRequestHandler):
    """Answers every question with "positive"."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "positive"}
        body = json.dumps(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "my-model",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 50, "completion_tokens": 1, "total_tokens": 51},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    stub = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    thread = threading.Thread(target=stub.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{stub.server_address[1]}"
    stub.shutdown()
    stub.server_close()
    thread.join()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, without keys, cache or modules of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    path, known = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def printed(stream: io.TextIOWrapper) -> str:
    """What was written to a stream in memory."""
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]


def check_console(block: Block, where: str, server: str) -> None:
    told = re.search(r"exit=(\d+)", block.mark)
    expected = int(told.group(1)) if told else 0
    for command, shown in commands(block.code):
        words = shlex.split(command.replace(ADDRESS, server))
        assert words[0] == "audit", f"{where}: only audit is run here: {command}"
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words[1:])
        assert code == expected, f"{where}: {command}\nended with {code}\n{printed(err)}"
        checker = doctest.OutputChecker()
        if shown and not checker.check_output(shown + "\n", printed(out), FLAGS):
            pytest.fail(f"{where}: {command}\nshows\n{shown}\nand prints\n{printed(out)}")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_examples_of_a_page(
    page: Path, place: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, object] = {"__name__": "example"}
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.mark.startswith("file "):
            (place / block.mark.removeprefix("file ").strip()).write_text(block.code, encoding="utf-8")
        elif block.mark.startswith("run") and block.language == "console":
            check_console(block, where, server)
        elif block.language == "python":
            # dataclasses and typing look a class's module up by its name
            exec(compile(block.code, where, "exec"), names)
        else:
            pytest.fail(f"{where}: the mark {block.mark!r} says nothing about a {block.language} block")


def test_there_are_examples() -> None:
    names = {str(p.relative_to(ROOT)) for p in PAGES}
    assert {
        "docs/index.md",
        "docs/statistics.md",
        "docs/extending/suite.md",
        "docs/extending/task.md",
        "docs/extending/model.md",
    } <= names


def test_blocks_are_found_with_their_marks() -> None:
    text = "a\n<!-- docs: file a.txt -->\n```text\nx\n```\n\n```python\n1\n```\n\n<!-- docs: skip needs a key -->\n```python\n2\n```\n```console\n$ ls\n```\n"
    assert blocks(text) == [Block("file a.txt", "text", "x\n", 4), Block("", "python", "1\n", 8)]


def test_commands_are_split_from_their_output() -> None:
    code = "$ audit a \\\n  b\nout\nmore\n$ audit c\n"
    assert list(commands(code)) == [("audit a   b", "out\nmore"), ("audit c", "")]


@pytest.mark.parametrize(
    ("mark", "code"),
    [("run", "$ audit explain no-such-code\n"), ("run", "$ audit explain HID201\nsomething else\n")],
)
def test_a_wrong_example_is_seen(mark: str, code: str, server: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_console(Block(mark, "console", code, 1), "here", server)
