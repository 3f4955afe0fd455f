"""One change of a variant among the words of its sentence and of its text.

Only originals are parsed. An edit that leaves a good sentence good leaves its structure, so the words around an edit
keep the tags and relations that they had; a written word takes the tag of the word that it replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from auditor.core.types import Edit
from auditor.perturb.persons import lexicon
from auditor.text.parse import Parse, Parser
from auditor.text.people import Person, people


class Change(NamedTuple):
    """One edit, at characters of its text or sentence: ``text[start:end]`` becomes ``text``."""

    start: int
    end: int
    text: str
    edit: Edit

    def holds(self, at: int) -> bool:
        """Whether the character at ``at`` of the original is replaced."""
        return self.start <= at < self.end


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


class Original:
    """The text of an original, with its persons, who are looked for when they are asked for."""

    def __init__(self, text: str, parser: Parser) -> None:
        self.text, self._parser = text, parser

    @cached_property
    def persons(self) -> Sequence[Person]:
        """Everybody of whom the text speaks."""
        return people(self._parser.parse_text(self.text), lexicon()).persons


class Place:
    """A change among the words of its sentence: ``units[first:last]`` were written, ``noun`` is the last of them.

    ``change`` and ``changes`` (all of the variant, in order) count characters of the text ``whole``; ``made`` is the
    text of the variant. ``token`` is the last token of the original that the change replaces, -1 for an insertion.
    """

    def __init__(
        self, original: Original, made: str, changes: Sequence[Change], change: Change,
        units: Sequence[Unit], parse: Parse,
    ) -> None:  # fmt: skip
        self.original, self.whole, self.made = original, original.text, made
        self.changes, self.change, self.edit = changes, change, change.edit
        self.units, self.parse = units, parse
        own = [i for i, unit in enumerate(units) if unit.change is change]
        self.first, self.last = own[0], own[-1] + 1
        self.noun = units[own[-1]]
        self.token = self.noun.token

    def before(self, step: int = 1) -> Unit:
        """Return the unit ``step`` before the change."""
        i = self.first - step
        return self.units[i] if i >= 0 else NOTHING

    def after(self, step: int = 1) -> Unit:
        """Return the unit ``step`` after the change."""
        i = self.last - 1 + step
        return self.units[i] if i < len(self.units) else NOTHING

    def changed(self, start: int, end: int) -> bool:
        """Whether a change of the variant touches ``whole[start:end]``."""
        return any(c.start < end and start < max(c.end, c.start + 1) for c in self.changes)


def units_of(sentence: str, offset: int, parse: Parse, changes: Sequence[Change]) -> list[Unit]:
    """Lay out the changed sentence, which begins at ``offset``; ``changes`` are in order and do not overlap."""
    out: list[Unit] = []
    starts = [offset + start for start in parse.starts]
    ends = [start + len(word) for start, word in zip(starts, parse.words, strict=True)]
    n, k, at = len(ends), 0, offset

    def keep() -> None:
        nonlocal k, at
        word = parse.words[k]
        joined = bool(out) and starts[k] == at
        out.append(Unit(word, word.lower().replace("’", "'"), parse.tags[k], None, k, joined))
        k, at = k + 1, ends[k]

    for change in changes:
        while k < n and ends[k] <= change.start:
            keep()
        first = k
        while k < n and starts[k] < change.end:
            k += 1
        text, joined = change.text, bool(out) and change.start == at
        if k > first:
            begin, end = min(starts[first], change.start), max(ends[k - 1], change.end)
            text = (
                sentence[begin - offset : change.start - offset] + text + sentence[change.end - offset : end - offset]
            )
            joined, at = bool(out) and begin == at, end
        token, tag = (k - 1, parse.tags[k - 1]) if k > first else (-1, "JJ")
        for i, word in enumerate(written := text.split()):
            last = i == len(written) - 1
            out.append(Unit(word, word.lower(), tag if last else "JJ", change, token, joined and not i))
    while k < n:
        keep()
    return out
