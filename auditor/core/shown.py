"""What did not come from our own source is shown, and never acts: on a terminal, in a log, in a report.

Texts of models and servers, names in files, file names, run folders of others: each passes `visible` (reports) or
`inline` (one line of a terminal). `guarded` puts the same rule around the streams of the process, so that what no
caller thought of is held there. Counts in sentences are written by `plural`.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

BIDI_SAFE = frozenset("\u200c\u200d\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")
_SUSPECT = re.compile(r"[^\n -~]")
_ACTING = re.compile(r"[^\n\t -~]")
# GitHub reads `::command::` at the start of a line, after any white space, and `##[command]` anywhere in one.
_AT_START = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
_AT_WORD = re.compile(r"(?<!\S)::")
_ANYWHERE = "##["


def visible(text: str, *, newlines: bool = True) -> str:
    """Make characters that act instead of showing visible, as ``⟨U+202E⟩`` (categories Cc, Cf, Cs, Zl, Zp).

    Joiners that scripts and emoji need stay. A tab becomes four spaces; with ``newlines=False`` a line break becomes
    ``⏎``.
    """
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    text = _SUSPECT.sub(lambda m: _shown(m.group()), text)
    return text if newlines else text.replace("\n", " ⏎ ")


def inline(text: object) -> str:
    r"""One line of a terminal or a log: `visible`, without line breaks, and no workflow command of a build server.

    Examples
    --------
    >>> inline("busy\n::error::x")
    'busy ⏎ ⟨::⟩error::x'
    """
    return _AT_WORD.sub("⟨::⟩", visible(str(text), newlines=False)).replace(_ANYWHERE, "##⟨[⟩")


_STARTS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
# A semicolon parts cells where the list separator is one.
_FORMULA = re.compile(rf"(^\s*|[;,|]\s*)(?=[{_STARTS}])")
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def cell(value: object, *, newlines: bool = True) -> object:
    """A cell of a CSV file: numbers as they are, missing as nothing, text so that it stays text in a spreadsheet.

    A text that begins like a formula (also after white space or a separator) gets an apostrophe in front.
    """
    if not isinstance(value, str):
        return "" if value is None else value if isinstance(value, int | float) else cell(str(value))
    text = visible(value, newlines=newlines)
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1'", text)


def csv_text(rows: Iterable[Iterable[object]], *, newlines: bool = True) -> str:
    """Rows as CSV of safe cells: the one way in which such a file is written."""
    import csv

    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([cell(value, newlines=newlines) for value in row] for row in rows)
    return file.getvalue()


def _shown(char: str) -> str:
    if char in BIDI_SAFE or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return char
    return f"⟨U+{ord(char):04X}⟩"


def quoted(text: object) -> str:
    r"""A word as a shell takes it, in a command that is printed to be copied, on one line.

    Examples
    --------
    >>> quoted("my run"), quoted("a\nb")
    ("'my run'", "$'a\\nb'")
    """
    word = str(text)
    if word.isprintable():
        return shlex.quote(word)
    body = word.encode("unicode_escape", "backslashreplace").decode().replace("'", "\\'")
    return f"$'{body}'"


def plural(n: int, word: str, many: str = "") -> str:
    """Count things; ``many`` is the name of several where it is not ``word`` and an s."""
    return f"{n:,} {word if n == 1 else many or word + 's'}"


def cut_off(n: int) -> str:
    """What to do about ``n`` answers that end at the limit on tokens, as the end of a sentence; empty for none."""
    return (
        f"; {n:,} {verb(n, 'was', 'were')} cut off at the limit on tokens: raise it with --server max-tokens=N"
        if n
        else ""
    )


def verb(n: int, one: str, many: str) -> str:
    """Choose the verb that goes with ``n`` things."""
    return one if n == 1 else many


ASCII = str.maketrans(
    {
        "▲": "!", "●": "o", "–": "-", "—": "-", "→": "->", "…": "...", "·": "|", "×": "x", "“": '"', "”": '"',
        "‘": "'", "’": "'", "δ": "delta", "⟨": "<", "⟩": ">", "⏎": "\\n", "≥": ">=", "≤": "<=", "−": "-",
        "\u00a0": " ",
    }
)  # fmt: skip


def encodable(text: str, encoding: str | None) -> str:
    """Write ``text`` as ``encoding`` can carry it: symbols get ASCII stand-ins, the rest escapes."""
    if encoding is None or is_utf8(encoding):
        return text
    return text.translate(ASCII).encode(encoding, "backslashreplace").decode(encoding)


def is_utf8(encoding: str) -> bool:
    """Whether ``encoding`` names a UTF form."""
    return encoding.lower().replace("_", "-").startswith(("utf-8", "utf8", "utf-16", "utf-32"))


class Guard:
    """A text stream through which nothing acts on what reads it; all else is that stream's.

    Control characters become visible, and a line that a build server would take for a command does not begin like
    one. What the program itself means to act goes through `own`.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._at_start = True

    def write(self, text: str) -> int:
        """Write ``text``, made harmless."""
        clean = _ACTING.sub(lambda m: _shown(m.group()), text.replace("\r\n", "\n"))
        clean = clean.replace(_ANYWHERE, "##⟨[⟩")
        if not self._at_start:  # the first piece goes on with a line that was begun
            head, end, rest = clean.partition("\n")
            clean = head + end + _AT_START.sub(r"\1⟨::⟩", rest)
        else:
            clean = _AT_START.sub(r"\1⟨::⟩", clean)
        if text:
            self._at_start = not clean.rpartition("\n")[2].strip()
        self.stream.write(clean if clean == text else encodable(clean, self.stream.encoding))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of ``lines``."""
        for line in lines:
            self.write(line)

    def own(self, text: str) -> None:
        """Write what the program made itself: a workflow command, the carriage return of a progress line."""
        self._at_start = text.endswith("\n")
        self.stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


def own(stream: TextIO, text: str) -> None:
    """Write ``text``, every part of which is escaped already, past a `Guard`."""
    (stream.own if isinstance(stream, Guard) else stream.write)(text)


@contextmanager
def guarded() -> Iterator[None]:
    """Put a `Guard` around stdout and stderr of this process."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        stream if isinstance(stream, Guard) or stream is None else cast(TextIO, Guard(stream)) for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
