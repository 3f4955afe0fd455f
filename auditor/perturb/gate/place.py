"""One edit of a variant among the words of its sentence and of its text.

Only originals are parsed. An edit that leaves a good sentence good leaves its structure, so the words around an edit
keep the tags and relations that they had; a written word takes the tag of the word that it replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from auditor.core.types import Edit
from auditor.perturb.edits import span_of
from auditor.perturb.persons import lexicon
from auditor.text.parse import Parse, Parser
from auditor.text.people import Person, people
from auditor.text.split import sentences


class Unit(NamedTuple):
    """One word or mark of the changed sentence."""

    text: str
    low: str
    tag: str
    edit: Edit | None
    token: int
    joined: bool


NOTHING = Unit("", "", "", None, -1, False)


class Original:
    """The text of an original, where its sentences stand, and its persons, who are looked for when asked for."""

    def __init__(self, text: str, parser: Parser) -> None:
        self.text, self.sentences, self._parser = text, sentences(text), parser

    @cached_property
    def persons(self) -> Sequence[Person]:
        """Everybody of whom the text speaks."""
        return people(self._parser.parse_text(self.text), lexicon()).persons


class Place:
    """An edit among the words of its sentence: ``units[first:last]`` were written, ``noun`` is the last of them."""

    def __init__(
        self, original: Original, made: str, edits: Sequence[Edit], edit: Edit, units: Sequence[Unit], parse: Parse
    ) -> None:
        self.original, self.whole, self.made = original, original.text, made
        self.edits, self.edit, (self.start, self.end) = edits, edit, span_of(edit)
        self.units, self.parse = units, parse
        own = [i for i, unit in enumerate(units) if unit.edit is edit]
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

    def edited(self, start: int, end: int) -> Edit | None:
        """Return the edit of the variant that touches ``whole[start:end]``."""
        return next(
            (e for e in self.edits if span_of(e)[0] < end and start < max(span_of(e)[1], span_of(e)[0] + 1)), None
        )


def units_of(sentence: str, offset: int, parse: Parse, edits: Sequence[Edit]) -> list[Unit]:
    """Lay out the changed sentence, which begins at ``offset``; ``edits`` are in order and do not overlap."""
    out: list[Unit] = []
    starts = [offset + start for start in parse.starts]
    ends = [start + len(word) for start, word in zip(starts, parse.words, strict=True)]
    n, k, at = len(ends), 0, offset
    for edit in (*edits, None):  # None: only what stands behind the last one is left
        start, end = span_of(edit) if edit else (offset + len(sentence), 0)
        while k < n and ends[k] <= start:
            word = parse.words[k]
            joined = bool(out) and starts[k] == at
            out.append(Unit(word, word.lower().replace("’", "'"), parse.tags[k], None, k, joined))
            k, at = k + 1, ends[k]
        if edit is None:
            break
        first = k
        while k < n and starts[k] < end:
            k += 1
        text, joined = edit.target, bool(out) and start == at
        if k > first:
            begin, stop = min(starts[first], start), max(ends[k - 1], end)
            text = sentence[begin - offset : start - offset] + text + sentence[end - offset : stop - offset]
            joined, at = bool(out) and begin == at, stop
        token, tag = (k - 1, parse.tags[k - 1]) if k > first else (-1, "JJ")
        for i, word in enumerate(written := text.split()):
            last = i == len(written) - 1
            out.append(Unit(word, word.lower(), tag if last else "JJ", edit, token, joined and not i))
    return out
