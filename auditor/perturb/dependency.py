"""HInter's dependency invariant, with one parse per distinct sentence (Souani et al., 2025, Algorithms 3–4).

A variant is valid where it has as many sentences as its original, and each of its sentences has the tags and
the dependency relations of the sentence it replaces, up to as many insertions as it is longer. That is a
conjunction over sentences, which is what makes the check cheap:

* a sentence that the variant does not change needs no comparison;
* a sentence is parsed once, however many variants hold it;
* sentences after the first that fails are not looked at.

`benchmarks/literal_hinter.py` has the algorithms line by line; tests hold the verdicts of both equal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.core.shown import plural
from auditor.core.types import Case, Check, Variant
from auditor.perturb.gate import TextGate
from auditor.text.parse import MAX_CHARS, Parse, Parser, plain_sentence, sentences


def tolerant_table_comp(first: Sequence[str], second: Sequence[str]) -> int | None:
    """Compare two sequences as HInter's Algorithm 4 does, and say where they part."""
    n, m = len(first), len(second)
    if n == m:
        if first == second:
            return None
        return next(i for i in range(n) if first[i] != second[i])
    limit = abs(n - m)
    i = j = errors = shifts = 0
    while i < n and j < m:
        if first[i] != second[j]:
            errors += 1
            if errors > limit:
                return j
            if shifts < limit:
                shifts += 1
                if n > m:
                    i += 1
                else:
                    j += 1
        i += 1
        j += 1
    return None if errors + (n - i) + (m - j) <= limit else j


@dataclass(slots=True)
class _Open:
    """A variant in question: its changed sentences with what they became, those that are compared left out."""

    variant: Variant
    pairs: deque[tuple[int, str, str]]
    failed: str = ""


class DependencyInvariant(TextGate):
    """Checks variants against their original by part-of-speech tags and dependency relations."""

    name = "dependency.v1"
    reads = "the dependency invariant reads"

    def __init__(self, *, parser: Parser) -> None:
        self.parser = parser

    def check_many(self, cases: Iterable[Case]) -> list[list[Check]]:
        """Check the variants of several cases; their changed sentences are parsed together."""
        rows = []
        for case in cases:
            before = _sentences(case.original.input) if isinstance(case.original.input, str) else None
            rows.append([self._first_look(before, variant) for variant in case.variants])
        left = [one for row in rows for one in row if isinstance(one, _Open)]
        while left := [one for one in left if one.pairs and not one.failed]:  # the next sentence of each
            asked = list(dict.fromkeys(sentence for one in left for sentence in one.pairs[0][1:]))
            parses = dict(zip(asked, self.parser.parse(asked), strict=True))
            for one in left:
                number, old, new = one.pairs.popleft()
                reason = difference(parses[old], parses[new])
                one.failed = f"sentence {number + 1}: {reason}" if reason else ""
        return [
            [self._judged(one.variant, one.failed) if isinstance(one, _Open) else one for one in row] for row in rows
        ]

    def _first_look(self, before: Sequence[str] | None, variant: Variant) -> Check | _Open:
        """Compare what needs no parse; what is left is the pairs of sentences that differ."""
        if before is None or not isinstance(variant.input, str):
            return self._row(variant)
        after = _sentences(variant.input)
        if len(after) != len(before):
            return self._judged(variant, f"{plural(len(before), 'sentence')} became {len(after)}")
        changed = [(i, old, new) for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        for i, old, new in changed:
            if max(len(old), len(new)) > MAX_CHARS:
                return self._result(variant, "unknown", f"sentence {i + 1} is longer than {MAX_CHARS} characters")
        pairs = ((i, plain_sentence(old), plain_sentence(new)) for i, old, new in changed)
        return _Open(variant, deque(pair for pair in pairs if pair[1] != pair[2]))


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def difference(old: Parse, new: Parse) -> str:
    """Say in words how two parses differ, tags before relations; empty where they are similar."""
    for kind, before, after in (("tag", old.tags, new.tags), ("relation", old.deps, new.deps)):
        at = tolerant_table_comp(before, after)
        if at is None:
            continue
        if len(before) == len(after):
            return f"{kind} {before[at]} became {after[at]} at {new.words[at]!r}"
        word = new.words[at] if at < len(new.words) else "the end"
        return (
            f"{len(before)} tokens became {len(after)}, and the {kind}s differ in more places than that "
            f"(one too many at {word!r})"
        )
    return ""
