"""What is written: texts of others are shown and never act, on a terminal, in a log, in a report; secrets stay out.

Texts of models and servers, names in files, file names, run folders of others: each passes `visible` (reports) or
`inline` (one line of a terminal). `guarded` puts the same rule around the streams of the process, so that what no
caller thought of is held there. Counts in sentences are written by `plural`.

What asks a server says which keys and passwords it uses (`keep_secret`, `keep_secrets_of_url`). Variables of the
environment whose names say that they hold one are known too (`keep_secrets_of_environment`). `scrub` takes them out
again: of answers before they are journaled and cached, of errors, of every file of a run. So a server that echoes a key
does not bring it into a report.
"""

from __future__ import annotations

import base64
import html
import io
import json
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

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
    cut = f"; {n:,} {verb(n, 'was', 'were')} cut off at the limit on tokens: raise it with --server max-tokens=N"
    return cut if n else ""


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
        # The first piece may go on with a line that was begun.
        head, end, rest = ("", "", clean) if self._at_start else clean.partition("\n")
        clean = head + end + _AT_START.sub(r"\1⟨::⟩", rest)
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


# -- secrets -----------------------------------------------------------------------------------------------------------


HIDDEN = "[key]"
SHORTEST = 8  # a shorter value may be a word of an answer
_NAMES = re.compile(r"(?i)(api_?key|token|secret|passw(or)?d|credential)(?!.*(_FILE|_PATH|_DIR|_URL|_ID)$)")
_USER_INFO = re.compile(r"(?<=://)[^/@\s\"'<>]+@")
_OPEN = frozenset({"api-version", "api_version", "version"})  # of a query: no secrets
_known: dict[str, None] = {}  # every form of every secret, longest first


def keep_secret(value: str | None) -> None:
    """Keep ``value`` out of everything that is written from now on; one of fewer than 8 characters is let be."""
    value = (value or "").strip()
    if len(value) < SHORTEST or value in _known:
        return
    forms = {value, json.dumps(value)[1:-1], html.escape(value), quote(value, safe="")}
    forms.add(base64.b64encode(value.encode("utf-8", "replace")).decode())
    ordered = sorted({*_known, *forms}, key=lambda form: (-len(form), form))
    _known.clear()
    _known.update(dict.fromkeys(ordered))


def keep_secrets_of_environment() -> None:
    """Know the variables of the environment that hold a secret, by their names."""
    for name, value in os.environ.items():
        if _NAMES.search(name):
            keep_secret(value)


def keep_secrets_of_url(url: str) -> None:
    """Know the user info and the values of the query of ``url``."""
    try:
        parts = urlsplit(url)
        info = parts.netloc.rpartition("@")[0]
    except ValueError:
        return
    for value in (info, info.partition(":")[2], "" if ":" in info else info):
        keep_secret(value)
    for name, value in parse_qsl(parts.query):
        if name.lower() not in _OPEN:
            keep_secret(value)


def hidden(url: str | None) -> str | None:
    """``url`` as it may be written: without user info and without what its query says.

    Examples
    --------
    >>> hidden("http://user:pass@host:8000/v1?api_key=k")
    'http://[key]@host:8000/v1?api_key=[key]'
    """
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return HIDDEN
    info, _, host = parts.netloc.rpartition("@")
    shown = [(name, value if name.lower() in _OPEN else HIDDEN) for name, value in query]
    return parts._replace(netloc=f"{HIDDEN}@{host}" if info else host, query=urlencode(shown, safe="[]/:")).geturl()


def scrub(text: str) -> str:
    """``text`` without the secrets that are known, and without the user info of any URL."""
    return scrub_text(_USER_INFO.sub(f"{HIDDEN}@", text))


def scrub_bytes(data: bytes) -> bytes:
    """`scrub` for the content of a file; what is no user info of ours stays."""
    for form in _known:
        inside = form.encode("utf-8", "replace")
        if inside in data:
            data = data.replace(inside, HIDDEN.encode())
    return data


def scrub_values(value: object) -> Any:
    """Plain data with every text scrubbed of known secrets; the same object where none is known."""
    if not _known:
        return value
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, Mapping):
        return {key: scrub_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_values(item) for item in value]
    return value


def scrub_text(text: str) -> str:
    """``text`` without the secrets that are known; an answer keeps every URL that holds none."""
    for form in _known:
        if form in text:
            text = text.replace(form, HIDDEN)
    return text
