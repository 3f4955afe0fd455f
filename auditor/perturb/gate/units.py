"""The words of a changed sentence, with the tags that the original's words have.

Only originals are parsed. An edit that leaves a good sentence good leaves its structure, so the words around an edit
keep the tags and relations that they had; what was written takes the tag of the word that it replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.core.types import Edit
from auditor.text.parse import Parse


class Change(NamedTuple):
    """One edit, at characters of its sentence: ``sentence[start:end]`` becomes ``text``."""

    start: int
    end: int
    text: str
    edit: Edit


class Unit(NamedTuple):
    """One word or mark of the changed sentence.

    ``change`` is what wrote it, None where the original has it. ``token`` is its token in the original's parse (for a
    written word the last token that it replaced), -1 where there is none. ``joined``: no white space before it.
    """

    text: str
    low: str
    tag: str
    change: Change | None
    token: int
    joined: bool


NOTHING = Unit("", "", "", None, -1, False)


class Place(NamedTuple):
    """A change among the words of its sentence: ``units[first:last]`` were written."""

    units: Sequence[Unit]
    first: int
    last: int
    change: Change
    parse: Parse
    opens: bool  # the sentence is in running text whose first word this change writes

    def before(self, step: int = 1) -> Unit:
        """Return the unit ``step`` before the change."""
        i = self.first - step
        return self.units[i] if i >= 0 else NOTHING

    def after(self, step: int = 1) -> Unit:
        """Return the unit ``step`` after the change."""
        i = self.last - 1 + step
        return self.units[i] if i < len(self.units) else NOTHING

    @property
    def edit(self) -> Edit:
        """What the change writes, and for whom."""
        return self.change.edit

    @property
    def noun(self) -> Unit:
        """The last word that was written."""
        return self.units[self.last - 1]

    @property
    def token(self) -> int:
        """The last token of the original that the change replaces, -1 for an insertion."""
        return self.units[self.last - 1].token if self.last > self.first else -1


def units_of(sentence: str, parse: Parse, changes: Sequence[Change]) -> list[Unit]:
    """Lay out the changed sentence; ``changes`` are in order and do not overlap."""
    out: list[Unit] = []
    ends = [start + len(word) for start, word in zip(parse.starts, parse.words, strict=True)]
    n, k, at = len(ends), 0, 0
    for change in changes:
        while k < n and ends[k] <= change.start:
            at = _keep(out, parse, k, at)
            k += 1
        first = k
        while k < n and parse.starts[k] < change.end:
            k += 1
        text, joined = change.text, bool(out) and change.start == at
        if k > first:
            begin, end = min(parse.starts[first], change.start), max(ends[k - 1], change.end)
            text = sentence[begin : change.start] + text + sentence[change.end : end]
            joined, at = bool(out) and begin == at, end
        tag = parse.tags[k - 1] if k > first else "JJ"
        written = text.split()
        for i, word in enumerate(written):
            last = i == len(written) - 1
            out.append(
                Unit(word, word.lower(), tag if last else "JJ", change, k - 1 if k > first else -1, joined and not i)
            )
    while k < n:
        at = _keep(out, parse, k, at)
        k += 1
    return out


def _keep(out: list[Unit], parse: Parse, k: int, at: int) -> int:
    word, start = parse.words[k], parse.starts[k]
    out.append(Unit(word, word.lower().replace("’", "'"), parse.tags[k], None, k, bool(out) and start == at))
    return start + len(word)


def places_of(sentence: str, parse: Parse, changes: Sequence[Change], *, opens: bool) -> tuple[list[Unit], list[Place]]:
    """Lay out the changed sentence and find each change in it; one that writes nothing has no place."""
    units = units_of(sentence, parse, changes)
    spans: dict[int, list[int]] = {}
    for i, unit in enumerate(units):
        if unit.change is not None:
            spans.setdefault(id(unit.change), []).append(i)
    found = []
    for change in changes:
        own = spans.get(id(change))
        if own:
            found.append(Place(units, own[0], own[-1] + 1, change, parse, opens and own[0] == 0))
    return units, found
