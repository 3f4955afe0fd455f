"""What commands write to: lines of results and complaints, values and pages, the size of a terminal, progress."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from auditor.core.shown import encodable, inline, own, quoted

if TYPE_CHECKING:  # `audit --help` loads nothing that it does not need
    from auditor.core.types import Progress
    from auditor.report.document import Document

HOMES = ("session.json", "trial.json")  # of folders that hold runs
MARKS = 64  # points in time of which the rate of a run is told
EXIT_USER, EXIT_INCOMPLETE, EXIT_DEFECT, EXIT_INTERRUPTED = 2, 3, 70, 130


def screen() -> dict[str, Any]:
    """Return width, encoding and color of what is written to; without a terminal, COLUMNS or 100, and no color."""
    terminal = sys.stdout.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return {
        "width": shutil.get_terminal_size((100, 40)).columns,
        "encoding": sys.stdout.encoding,
        "color": terminal and not plain,
    }


def fitted(line: str, indent: str = "") -> str:
    """Wrap a line at the width of what is written to."""
    return textwrap.fill(
        line, screen()["width"], subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def say(*lines: object, to: TextIO | None = None) -> None:
    """Print ``lines`` to stdout, or to another stream: each is one line there, whatever it holds."""
    stream = sys.stdout if to is None else to
    for line in lines:
        stream.write(encodable(inline(line), stream.encoding) + "\n")


def complain(message: object, below: str = "") -> None:
    """Write one paragraph on stderr, and ``below`` it, unbroken and not set in, a command to run."""
    text = inline(f"audit: {message}")
    lines = textwrap.wrap(text, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    if below.startswith(" "):  # a quoted line with a mark below it
        lines += ["    " + inline(line) for line in textwrap.dedent(below).split("\n")]
    elif below:
        lines.append(inline(below))
    print("\n".join(encodable(line, sys.stderr.encoding) for line in lines), file=sys.stderr)


def written(*, forget: bool = False) -> Path | None:
    """Return the run folder that this command wrote to last; ``forget`` those of commands before it."""
    module = sys.modules.get("auditor.store.folder")  # a command that never loaded it has written nothing
    if module is not None and forget:
        module.RunFolder.latest = None
    path: Path | None = module.RunFolder.latest if module is not None else None
    return path


def interrupted() -> None:
    """Say that Ctrl-C was heard, and the command that goes on with what was written, where something was."""
    path = written()
    if path is None or not path.is_dir():
        return complain("Interrupted.")
    home = next((p for p in (path, *path.parents[:2]) if any((p / name).is_file() for name in HOMES)), path)
    try:
        rows = json.loads((home / "plan.json").read_text(encoding="utf-8")).get("kind") == "tabular"
    except (OSError, ValueError, AttributeError):
        rows = False
    only = " Only runs of rows with --task or an http: model can be resumed; start others again." if rows else ""
    return complain(
        f"Interrupted. All answers so far are on disk.{only}", f"Go on with: audit resume {quoted(str(home))}"
    )


def must_be_new(file: Path, why: str) -> Path:
    """Refuse to write over a file that is there."""
    from auditor.core.errors import ConfigError

    if file.exists():
        raise ConfigError(f"{file} {why}")
    return file


def print_as(format: str, values: object, lines: Iterable[object], *, ordered: bool = True, code: int = 0) -> int:
    """Print ``values`` as JSON, keys in order, or ``lines``, which are not made before; returns ``code``."""
    import msgspec

    if format == "json":
        sys.stdout.write(json.dumps(msgspec.to_builtins(values), indent=2, sort_keys=ordered) + "\n")
    else:
        say(*lines)
    return code


def put(
    values: Mapping[str, object], format: str, document: Document, out: Path | None = None, *, full: bool = True
) -> None:
    """Print ``document``, or ``values`` as JSON; with ``out`` write it there, in full."""
    from auditor.report import html, markdown, terminal
    from auditor.report.exchange import to_json
    from auditor.report.page import Page

    if format == "json":
        text = to_json(values)
    elif format == "terminal":
        text = terminal.write(Page(**screen()), document, full=full or out is not None)
    else:
        text = (html if format == "html" else markdown).write(document)
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        say(out)


class Draw:
    """Progress on stderr: a live line on a terminal, plain lines elsewhere."""

    def __init__(self, *, every_s: float = 5.0) -> None:
        self._live = sys.stderr.isatty()
        self._every = every_s
        self._last: dict[tuple[str, str], float] = {}
        self._marks: dict[tuple[str, str], deque[tuple[float, int]]] = {}  # when, and what was done by then
        self._began: dict[tuple[str, str], float] = {}
        self._width = 0
        self._ended: dict[tuple[str, str], int] = {}

    def __call__(self, event: Progress) -> None:
        """Draw ``event``, at most ten times a second (live) or every few seconds (plain)."""
        now = time.monotonic()
        key = (event.phase, event.model)
        if event.message:
            self._line(f"{event.phase}: {event.message}")
            return
        marks = self._marks.setdefault(key, deque())
        if not marks or marks[0][1] > event.done:  # or another run of the same session
            marks.clear()
            self._began[key] = now
        began = self._began[key]
        # The rate is that of the later half: a run starts with few calls in flight.
        while len(marks) > 1 and marks[1][0] <= (began + now) / 2:
            marks.popleft()
        if not marks or now - marks[-1][0] >= (now - began) / MARKS:
            marks.append((now, event.done))
        since, before = marks[0]
        last = self._last.get(key)
        done = event.planned is not None and event.done >= event.planned
        if not done and last is not None and now - last < (0.1 if self._live else self._every):
            return
        if not self._live and last is None and not done and now - began < self._every:
            self._last[key] = now - self._every + 1.0
            return
        if done:
            if self._ended.get(key) == event.done:
                return  # said already
            self._ended[key] = event.done
        self._last[key] = now
        self._line(describe(event, now - since, before), keep=done)

    def _line(self, text: str, *, keep: bool = True) -> None:
        text = encodable(inline(text), sys.stderr.encoding)
        if self._live:
            own(sys.stderr, "\r" + text.ljust(self._width)[:200])
            self._width = len(text)
            if keep:
                sys.stderr.write("\n")
                self._width = 0
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()


def describe(event: Progress, elapsed_s: float, before: int = 0) -> str:
    """Return one line of progress; ``before`` were done when ``elapsed_s`` began."""
    parts = [event.phase + (f" {event.model}" if event.model else "")]
    parts.append(f"{event.done:,}" + (f"/{event.planned:,}" if event.planned is not None else ""))
    rate = (event.done - before) / elapsed_s if elapsed_s > 1 else 0.0
    if rate:
        parts.append(f"{rate:,.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute")
    if event.cached:
        parts.append(f"{event.cached:,} cached")
    if event.failed:
        parts.append(f"{event.failed:,} failed")
    if event.cost_usd:
        parts.append(f"${event.cost_usd:.4f}")
    if event.planned and event.done < event.planned and rate:
        left = (event.planned - event.done) / rate
        parts.append(f"about {left:.0f} s left" if left < 120 else f"about {left / 60:.0f} min left")
    return " · ".join(parts)
