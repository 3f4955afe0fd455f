"""The rules of ``--fail-on``: what in a run makes a command end with exit code 1.

A rule is one part or several with commas between them, and holds where any of them does. `auditor.core.verdict` says
whether a rule holds for a run; docs/guide/formats.md has examples::

    shown                   something is shown and not waived
    shown(ATTRIBUTE)        the same of one attribute, or of several that were changed together: gender+race
    net(ATTRIBUTE) > 2%     a net difference is shown, and its whole interval lies beyond 2 points
    excess(ATTRIBUTE) > 2%  changes beyond placebo edits are shown, and the lower limit lies above 2 points
    failed > 5%             share of calls without an answer that can be read
    hidden > N              hidden findings that were confirmed and not waived
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from auditor.core.errors import ConfigError

FORMS = {
    "shown": "shown or shown(ATTRIBUTE)",
    "net": "net(ATTRIBUTE) > 2%",
    "excess": "excess(ATTRIBUTE) > 2%",
    "failed": "failed > 5%",
    "hidden": "hidden > 0",
}
SHAPES = {"shown": ("", "()"), "net": ("()>%", "()>"), "excess": ("()>%",), "failed": (">%",), "hidden": (">",)}
_PART = re.compile(
    r'\s*(?P<word>[^\W\d]\w*)\s*(?:\((?P<about>(?:"[^"]*"|[^"(),<>:])*)\)\s*)?'
    r"(?:>\s*(?P<limit>\d+(?:\.\d+)?|\.\d+)\s*(?P<percent>%\s*)?)?"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of a rule, as it was written in ``text``; ``about`` are attributes in order, none for any."""

    word: str
    text: str
    about: tuple[str, ...] = ()
    limit: float = 0.0  # a share where it is a percentage
    percent: bool = False


def parse(text: str) -> tuple[Part, ...]:
    """Read a rule; `ConfigError` shows the place, and says what to write there.

    Examples
    --------
    >>> [(part.word, part.about, part.limit) for part in parse("net(race+gender) > 2%, hidden > 1")]
    [('net', ('gender', 'race'), 0.02), ('hidden', (), 1.0)]
    """
    parts, at = [], 0
    while True:
        match = _PART.match(text, at)
        if match is None or match["word"].lower() not in FORMS:
            raise _slip(text, at, f"write {', '.join(FORMS.values()).replace(' or ', ', ')}, with commas between")
        parts.append(_part(text, match))
        at = match.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ",":
            raise _slip(text, at, "expected a comma or the end")
        at += 1


def _part(text: str, match: re.Match[str]) -> Part:
    word, about = match["word"].lower(), (match["about"] or "").split("+")
    names = tuple(sorted(name.strip().strip('"') for name in about if name.strip()))
    shape = ("()" if names else "") + (">" if match["limit"] else "") + ("%" if match["percent"] else "")
    if shape not in SHAPES[word] or (match["about"] is not None and len(names) < len(about)):
        raise _slip(text, match.start("word"), f"write {FORMS[word]}")
    limit = float(match["limit"] or 0) / (100 if match["percent"] else 1)
    if match["percent"] and limit > 1:
        raise _slip(text, match.start("limit"), "no share lies above 100%")
    return Part(word=word, text=match[0].strip(), about=names, limit=limit, percent=bool(match["percent"]))


def _slip(text: str, at: int, what: str) -> ConfigError:
    """The rule ``text`` cannot be read at a place: ``what`` is wrong."""
    from auditor.core.options import gone  # pydantic comes with it

    at += len(text[at:]) - len(text[at:].lstrip())
    word = re.match(r"\w*", text[at:])
    if word is not None and (other := gone("rules").get(word[0].lower())):
        what = f"{word[0]} is gone: write {other}"
    elif word is not None and (near := difflib.get_close_matches(word[0].lower(), set(FORMS) - {word[0]}, n=1)):
        what = f"did you mean {near[0]}? {what[0].upper()}{what[1:]}"
    flat = "".join(c if c.isprintable() else "?" for c in text)
    return ConfigError(f"--fail-on: {what}.", below=f"    {flat}\n    {' ' * at}^")
