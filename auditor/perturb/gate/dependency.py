"""HInter's dependency invariant, with one parse per distinct sentence (Souani et al., 2025, Algorithms 3–4).

A variant is valid where it has as many sentences as its original, and each of its sentences has the tags and
the dependency relations of the sentence it replaces, up to as many insertions as it is longer. That is a
conjunction over sentences, which is what makes the check cheap:

* a sentence that the variant does not change needs no comparison;
* a changed sentence is compared once, whatever number of variants share the change: a variant whose edits
  fall into different sentences is decided by the comparisons of its atomic parts;
* a sentence whose tags differ needs no tree; sentences after the first that fails are not looked at.

`benchmarks/literal_hinter.py` has the algorithms line by line; tests hold the verdicts of both equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.core.protocols import Gate
from auditor.core.types import Case, Check, Variant
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
        found = self._pairs.get((number, new))
        if found is None:
            found = plain_sentence(self.text.sentences[number]), plain_sentence(new)
            self._pairs[number, new] = found
        return found


class DependencyInvariant(Gate):
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

    def __init__(self, *, parser: Parser, max_pairs: int = MAX_PAIRS) -> None:
        self.parser = parser
        self.compared = 0
        self._verdicts: Bounded[Pair, str] = Bounded(max_pairs)

    def check(self, original: Variant, variants: Sequence[Variant]) -> list[Check]:
        """Return one check for each variant of ``original``, in their order."""
        return self.check_groups([(original, variants)])[0]

    def check_many(self, cases: Iterable[Case]) -> list[list[Check]]:
        """Check the variants of several cases together, which makes larger batches for the parser.

        Returns
        -------
        list of list of Check
            For each case, one check for each of its variants, in order.
        """
        return self.check_groups([(case.original, case.variants) for case in cases])

    def check_groups(self, groups: Sequence[tuple[Variant, Sequence[Variant]]]) -> list[list[Check]]:
        """Check originals with their variants; the result is in their order."""
        checks: list[list[Check | None]] = []
        undecided: list[tuple[int, int, _Open]] = []
        for g, (original, variants) in enumerate(groups):
            checks.append([])
            before = _Before(original.input) if isinstance(original.input, str) else None
            for v, variant in enumerate(variants):
                found = self._first_look(before, variant)
                checks[g].append(found if isinstance(found, Check) else None)
                if isinstance(found, _Open):
                    undecided.append((g, v, found))
        self._decide([variant for _, _, variant in undecided])
        for g, v, one in undecided:
            checks[g][v] = self._result(one.variant, one.failed)
        return [[check for check in row if check is not None] for row in checks]

    def _first_look(self, before: _Before | None, variant: Variant) -> Check | _Open:
        """Compare what needs no parse; what is left is the pairs of sentences that differ."""
        if before is None or not isinstance(variant.input, str):
            return self._unknown(variant, "the dependency invariant reads texts, and this input is a table row")
        count, changed = before.text.differing(variant.input)
        own = before.text.sentences
        if count != len(own):
            return self._result(variant, f"{_count(len(own))} became {count}")
        pairs = []
        for i, new in changed:
            if max(len(own[i]), len(new)) > MAX_CHARS:
                return self._unknown(variant, f"sentence {i + 1} is longer than {MAX_CHARS} characters")
            pair = before.pair(i, new)
            if pair[0] != pair[1]:
                pairs.append((i, pair))
        return _Open(variant, pairs)

    def _decide(self, variants: Sequence[_Open]) -> None:
        """Compare pairs in rounds: each round takes the next pair of every variant still in question."""
        verdicts: dict[Pair, str] = {}
        while variants:
            todo: dict[Pair, None] = {}
            for one in variants:
                if one.at < len(one.pairs):
                    pair = one.pairs[one.at][1]
                    if pair not in verdicts:
                        known = self._verdicts.recall(pair)
                        if known is None:
                            todo[pair] = None
                        else:
                            verdicts[pair] = known
            if todo:
                verdicts.update(self._compare(list(todo)))
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
        originals = list(dict.fromkeys(a for a, _ in pairs))  # many variants change one sentence
        parses = dict(zip(originals, self.parser.parse(originals), strict=True))
        before = [parses[a] for a, _ in pairs]

        def tags_agree(i: int, tags: tuple[str, ...]) -> bool:
            return tolerant_table_comp(before[i].tags, tags) is None

        after = self.parser.parse_where([b for _, b in pairs], tags_agree)
        found: dict[Pair, str] = {}
        for pair, old, new in zip(pairs, before, after, strict=True):
            found[pair] = difference(old, new)
            self._verdicts.keep(pair, found[pair])
        return found

    def _result(self, variant: Variant, failed: str) -> Check:
        return Check(variant_id=variant.id, check=self.name, status="invalid" if failed else "valid", reason=failed)

    def _unknown(self, variant: Variant, reason: str) -> Check:
        return Check(variant_id=variant.id, check=self.name, status="unknown", reason=reason)


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
