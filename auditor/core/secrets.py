"""Keys and passwords that this process knows, and how they are kept out of everything that is written.

What asks a server says which secrets it uses (`know`, `of_url`), and variables of the environment whose names say
that they hold one are known too (`look`). `scrub` takes them out again: of answers before they are journaled and
cached, of errors, of every file of a run. So a server that echoes a key does not bring it into a report.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

MARK = "[key]"
SHORTEST = 8  # a shorter value may be a word of an answer
_NAMES = re.compile(r"(?i)(api_?key|token|secret|passw(or)?d|credential)(?!.*(_FILE|_PATH|_DIR|_URL|_ID)$)")
_USER_INFO = re.compile(r"(?<=://)[^/@\s\"'<>]+@")
_OPEN = frozenset({"api-version", "api_version", "version"})  # of a query: no secrets
_known: dict[str, None] = {}  # every form of every secret, longest first


def know(value: str | None) -> None:
    """Keep ``value`` out of everything that is written from now on; one of fewer than 8 characters is let be."""
    value = (value or "").strip()
    if len(value) < SHORTEST or value in _known:
        return
    forms = {value, json.dumps(value)[1:-1], html.escape(value), quote(value, safe="")}
    forms.add(base64.b64encode(value.encode("utf-8", "replace")).decode())
    ordered = sorted({*_known, *forms}, key=lambda form: (-len(form), form))
    _known.clear()
    _known.update(dict.fromkeys(ordered))


def look() -> None:
    """Know the variables of the environment that hold a secret, by their names."""
    for name, value in os.environ.items():
        if _NAMES.search(name):
            know(value)


def of_url(url: str) -> None:
    """Know the user info and the values of the query of ``url``."""
    try:
        parts = urlsplit(url)
        info = parts.netloc.rpartition("@")[0]
    except ValueError:
        return
    for value in (info, info.partition(":")[2], "" if ":" in info else info):
        know(value)
    for name, value in parse_qsl(parts.query):
        if name.lower() not in _OPEN:
            know(value)


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
        return MARK
    info, _, host = parts.netloc.rpartition("@")
    shown = [(name, value if name.lower() in _OPEN else MARK) for name, value in query]
    return parts._replace(netloc=f"{MARK}@{host}" if info else host, query=urlencode(shown, safe="[]/:")).geturl()


def scrub(text: str) -> str:
    """``text`` without the secrets that are known, and without the user info of any URL."""
    if "://" in text:
        text = _USER_INFO.sub(f"{MARK}@", text)
    return scrub_text(text)


def scrub_bytes(data: bytes) -> bytes:
    """`scrub` for the content of a file; what is no user info of ours stays."""
    for form in _known:
        inside = form.encode("utf-8", "replace")
        if inside in data:
            data = data.replace(inside, MARK.encode())
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
            text = text.replace(form, MARK)
    return text
