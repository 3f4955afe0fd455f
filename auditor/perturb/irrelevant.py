"""Placebo edits that a task names itself: what can have no bearing on the answer, such as a hobby or the layout."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

from auditor.core.types import Edit, Span

Irrelevant = Mapping[str, Sequence[Sequence[str]]]  # kind -> lists of what may be written for each other

IRRELEVANT = "irrelevant: "  # before the kind, where a placebo edit names the group that it leaves as it is


def is_irrelevant(edits: Sequence[Edit]) -> bool:
    """Whether all edits are those of this module: their task says that they are good English."""
    return all(edit.source_group.startswith(IRRELEVANT) for edit in edits)


def irrelevant(text: str, named: Irrelevant, attribute: str, n: int, rng: Random) -> list[tuple[Edit, ...]]:
    r"""Up to ``n`` sets of placebo edits beside ``attribute``, of different kinds first.

    Each writes one alternative for another in all places where that stands as a word of its own.

    Examples
    --------
    >>> for edits in irrelevant("Interests\nChess", {"hobby": [["Chess", "Hiking"]]}, "gender", 2, Random(0)):
    ...     print([(e.source, e.target, e.where) for e in edits])
    [('Chess', 'Hiking', (10, 15))]
    """
    found: list[list[tuple[Edit, ...]]] = []
    for kind, lists in named.items():
        made = []
        for alternatives in lists:
            standing = {a: spans for a in alternatives if (spans := _spans(text, a))}
            free = [a for a in alternatives if a not in standing]
            made += [_edits(kind, attribute, a, new, spans) for a, spans in standing.items() for new in free]
        rng.shuffle(made)
        found.append(made)
    rng.shuffle(found)
    ranked = sorted((place, of) for of, made in enumerate(found) for place in range(len(made)))
    return [found[of][place] for place, of in ranked[:n]]


def _spans(text: str, words: str) -> list[Span]:
    before, after = (r"(?<!\w)" if words[0].isalnum() else ""), (r"(?!\w)" if words[-1].isalnum() else "")
    return [match.span() for match in re.finditer(before + re.escape(words) + after, text)]


def _edits(kind: str, attribute: str, source: str, target: str, spans: Sequence[Span]) -> tuple[Edit, ...]:
    group = IRRELEVANT + kind
    return tuple(
        Edit(
            attribute=attribute,
            kind="placebo",
            source_group=group,
            target_group=group,
            source=source,
            target=target,
            where=span,
        )
        for span in spans
    )
