"""What the codes in a run record mean, in plain words: ``audit show CODE``."""

from __future__ import annotations

import functools
import re
import textwrap

import msgspec

from auditor.core import reading
from auditor.core.errors import UnknownPlugin


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What one code means; ``…`` in a code stands for what varies: reasons with a number or a word in them."""

    code: str
    area: str
    title: str
    text: str
    see: tuple[str, ...] = ()

    def matches(self, code: str) -> bool:
        """Whether this page is about ``code``."""
        pattern = ".*".join(map(re.escape, self.code.lower().split("…")))
        return re.fullmatch(pattern, code.strip().lower(), re.DOTALL) is not None


class _File(msgspec.Struct, frozen=True):
    areas: dict[str, str]  # what each is called
    page: tuple[Page, ...]


@functools.cache
def _file() -> _File:
    return msgspec.toml.decode(reading.shipped("embedded", "explain", "codes.toml").read_bytes(), type=_File)


@functools.cache
def pages() -> tuple[Page, ...]:
    """Every page, in the order of the file."""
    return tuple(msgspec.structs.replace(page, text=" ".join(page.text.split())) for page in _file().page)


def every(code: str) -> list[Page]:
    """All pages about ``code``, exact codes before patterns: one word may be a verdict and a status."""
    about = [page for page in pages() if page.matches(code)]
    return [page for page in about if "…" not in page.code] or about


def find(code: str) -> Page | None:
    """The first page about ``code``; None where there is none."""
    return next(iter(every(code)), None)


def explain(code: str) -> str:
    """The page (or pages) about ``code`` as text; `UnknownPlugin` offers near misses.

    Examples
    --------
    >>> explain("HID201").splitlines()[0]
    'HID201 — the answer changed only when several attributes changed together'
    """
    about = every(code)
    if not about:
        raise UnknownPlugin("run or code", code, {p.code for p in pages()}, "List codes with: audit show codes")
    return "\n".join(map(_text, about))


def _text(page: Page) -> str:
    body = textwrap.fill(page.text, 96, initial_indent="  ", subsequent_indent="  ")
    see = f"\n  See also: {', '.join(page.see)}" if page.see else ""
    return f"{page.code} — {page.title}\n  {_file().areas[page.area]}\n\n{body}{see}\n"


def overview() -> str:
    """All codes with their titles, by area."""
    lines = []
    for area, heading in _file().areas.items():
        mine = [f"  {page.code:<28} {page.title}" for page in pages() if page.area == area]
        lines += [heading, *mine, ""] if mine else []
    return "\n".join([*lines, "One page: audit show CODE", ""])
