"""HInter's dependency invariant, with one parse per distinct sentence (Souani et al., 2025, Algorithms 3–4).

A variant is valid where it has as many sentences as its original, and each of its sentences has the tags and
the dependency relations of the sentence it replaces, up to as many insertions as it is longer. That is a
conjunction over sentences, which is what makes the check cheap:

* a sentence that the variant does not change needs no comparison;
* a changed sentence is compared once, whatever number of variants share the change: a variant whose edits
  fall into different sentences is decided by the comparisons of its atomic parts;
* sentences after the first that fails are not looked at.

`benchmarks/literal_hinter.py` has the algorithms line by line; tests hold the verdicts of both equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.core.types import Check, Variant
from auditor.perturb.gate import TextGate
from auditor.text.parse import MAX_CHARS, Bounded, Parse, Parser, plain_sentence
from auditor.text.split import Baseline

MAX_PAIRS = 400_000  # remembered comparisons of two sentences
SIMILAR = ""  # the reason of a comparison that found no difference

Pair = tuple[str, str]


def tolerant_table_comp(first: Sequence[str], second: Sequence[str]) -> int | None:
    """Compare two sequences as HInter's Algorithm 4 does, and say where they part.

    They are similar if they differ in no more places than their sizes do; the longer one may be shifted that
    often. For equal sizes that is equality.

    Parameters
    ----------
    first, second : sequence of str
        Tags or relations of the original sentence and of its mutant.

    Returns
    -------
    int or None
        None where they are similar; otherwise the index in ``second`` (at most its size) of the mismatch
        that was one too many.

    Examples
    --------
    >>> tolerant_table_comp(("DT", "NN"), ("DT", "JJ", "NN")) is None
    True
    >>> tolerant_table_comp(("PRP$", "NN"), ("PRP", "NN"))
    0
    """
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
    """A variant in question: its changed sentences, first to last, and how far they are compared."""

    variant: Variant
    pairs: list[tuple[int, Pair]]
    at: int = 0
    failed: str = ""


class _Before:
    """An original, and the pairs of sentences that its variants were found to have, as the parser sees them."""

    def __init__(self, text: str) -> None:
        self.text = Baseline(text)
        self._pairs: dict[tuple[int, str], Pair] = {}

    def pair(self, number: int, new: str) -> Pair:
        """Return sentence ``number`` of the original and its replacement in plain form."""
        pair = self._pairs.get((number, new))
        if pair is None:
            pair = plain_sentence(self.text.sentences[number]), plain_sentence(new)
            self._pairs[number, new] = pair
        return pair


class DependencyInvariant(TextGate):
    """Checks variants against their original by part-of-speech tags and dependency relations.

    Parameters
    ----------
    parser : Parser
        Tags and parses sentences; shared with whoever else needs parses, so that none is made twice.
    max_pairs : int
        How many comparisons of two sentences are remembered.

    Attributes
    ----------
    name : str
        ``dependency.v1``.
    compared : int
        Distinct pairs of sentences compared so far.

    Examples
    --------
    >>> from auditor.core.types import Variant
    >>> check = DependencyInvariant(parser=Parser())
    >>> original = Variant(id="c.o", input="The woman sold his car.")
    >>> texts = ["The man sold his car.", "The men sold him car."]
    >>> variants = [Variant(id=f"c.v{i}", input=text) for i, text in enumerate(texts)]
    >>> [c.status for c in check.check(original, variants)]
    ['valid', 'invalid']
    """

    name = "dependency.v1"
    reads = "the dependency invariant reads"

    def __init__(self, *, parser: Parser, max_pairs: int = MAX_PAIRS) -> None:
        self.parser = parser
        self.compared = 0
        self._verdicts: Bounded[Pair, str] = Bounded(max_pairs)

    def check_groups(self, groups: Sequence[tuple[Variant, Sequence[Variant]]]) -> list[list[Check]]:
        """Check originals with their variants; the result is in their order."""
        rows = []
        for original, variants in groups:
            before = _Before(original.input) if isinstance(original.input, str) else None
            rows.append([self._first_look(before, variant) for variant in variants])
        self._decide([one for row in rows for one in row if isinstance(one, _Open) and one.pairs])
        return [
            [self._judged(one.variant, one.failed) if isinstance(one, _Open) else one for one in row] for row in rows
        ]

    def _first_look(self, before: _Before | None, variant: Variant) -> Check | _Open:
        """Compare what needs no parse; what is left is the pairs of sentences that differ."""
        if before is None or not isinstance(variant.input, str):
            return self._row(variant)
        count, changed = before.text.differing(variant.input)
        own = before.text.sentences
        if count != len(own):
            return self._judged(variant, f"{_count(len(own))} became {count}")
        pairs = []
        for i, new in changed:
            if max(len(own[i]), len(new)) > MAX_CHARS:
                return self._result(variant, "unknown", f"sentence {i + 1} is longer than {MAX_CHARS} characters")
            pair = before.pair(i, new)
            if pair[0] != pair[1]:
                pairs.append((i, pair))
        return _Open(variant, pairs)

    def _decide(self, variants: Sequence[_Open]) -> None:
        """Compare pairs in rounds: each round takes the next pair of every variant still in question."""
        verdicts: dict[Pair, str] = {}
        while variants:
            todo = []
            for pair in dict.fromkeys(one.pairs[one.at][1] for one in variants):
                known = self._verdicts.recall(pair)
                if known is not None:
                    verdicts[pair] = known
                elif pair not in verdicts:
                    todo.append(pair)
            if todo:
                verdicts.update(self._compare(todo))
            variants = [one for one in variants if self._advance(one, verdicts)]

    def _advance(self, one: _Open, verdicts: dict[Pair, str]) -> bool:
        """Move past the sentences that are known; whether the variant is still in question."""
        while one.at < len(one.pairs):
            i, pair = one.pairs[one.at]
            reason = verdicts.get(pair)
            if reason is None:
                return True
            if reason != SIMILAR:
                one.failed = f"sentence {i + 1}: {reason}"
                return False
            one.at += 1
        return False

    def _compare(self, pairs: Sequence[Pair]) -> dict[Pair, str]:
        """Parse what these pairs need and compare; the reasons by pair, `SIMILAR` where there is none."""
        self.compared += len(pairs)
        asked = list(dict.fromkeys(sentence for pair in pairs for sentence in pair))
        parses = dict(zip(asked, self.parser.parse(asked), strict=True))
        reasons = {(a, b): difference(parses[a], parses[b]) for a, b in pairs}
        for pair, reason in reasons.items():
            self._verdicts.keep(pair, reason)
        return reasons


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
    return SIMILAR


def _count(n: int) -> str:
    return "1 sentence" if n == 1 else f"{n} sentences"
