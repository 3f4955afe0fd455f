"""The words of a changed sentence, with the tags that the original's words have.

Only originals are parsed. An edit that leaves a good sentence good leaves its structure, so the words around an edit
keep the tags and relations that they had; what was written takes the tag of the word that it replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
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


class Place:
    """A change among the words of its sentence: ``units[first:last]`` were written, ``noun`` is the last of them.

    ``token`` is the last token of the original that the change replaces, -1 for an insertion.
    """

    def __init__(self, units: Sequence[Unit], first: int, last: int, change: Change, parse: Parse) -> None:
        self.units, self.first, self.last, self.change, self.parse = units, first, last, change, parse
        self.edit, self.noun = change.edit, units[last - 1]
        self.token = self.noun.token

    def before(self, step: int = 1) -> Unit:
        """Return the unit ``step`` before the change."""
        i = self.first - step
        return self.units[i] if i >= 0 else NOTHING

    def after(self, step: int = 1) -> Unit:
        """Return the unit ``step`` after the change."""
        i = self.last - 1 + step
        return self.units[i] if i < len(self.units) else NOTHING

    @cached_property
    def facts(self) -> dict[str, str]:
        """What the rows of ``auditor/embedded/gate.yaml`` may ask, by the names they have there."""
        edit, source = self.edit, self.edit.source.lower()
        facts = {
            "kind": edit.kind,
            "attribute": edit.attribute,
            "from": edit.source_group,
            "to": edit.target_group,
            "source": source,
            "target": edit.target.lower(),
            "source noun": (source.split() or [""])[-1],
            "tag": self.noun.tag,
            "stood before": self.parse.words[self.token - 1].lower() if self.token > 0 else "",
        }
        beside = (("before", -1), ("before2", -2), ("after", 1), ("after2", 2), ("after3", 3))
        for name, step in beside:
            unit = self.before(-step) if step < 0 else self.after(step)
            facts[name], facts[f"{name} tag"], first = unit.low, unit.tag, unit.text[:1]
            is_ = "letters" if first.isalpha() else "digits" if first.isalnum() else "mark" if first else "end"
            facts[f"{name} is"] = is_
            facts[f"{name} stands"] = "joined" if unit.joined else "apart"
            facts[f"{name} comes"] = "text" if unit.change is None else "edit"
        return facts


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


def places_of(sentence: str, parse: Parse, changes: Sequence[Change]) -> list[Place]:
    """Lay out the changed sentence and find each change in it; one that writes nothing has no place."""
    units = units_of(sentence, parse, changes)
    spans: dict[int, list[int]] = {}
    for i, unit in enumerate(units):
        if unit.change is not None:
            spans.setdefault(id(unit.change), []).append(i)
    written = ((change, spans[id(change)]) for change in changes if id(change) in spans)
    return [Place(units, own[0], own[-1] + 1, change, parse) for change, own in written]
