"""HInter's dependency invariant as published, line by line (Souani et al., 2025, Algorithms 3 and 4).

Slow on purpose: every sentence is parsed again for every pair of texts. Tests hold
`auditor.perturb.dependency` equal to it, and benchmarks compare with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


class Tree(Protocol):
    """What the algorithms read of a parse: one tag and one relation per token."""

    @property
    def tags(self) -> Sequence[str]:
        """Penn part-of-speech tags."""
        ...

    @property
    def deps(self) -> Sequence[str]:
        """Dependency relations."""
        ...


def inv_check(
    original: str, mutant: str, sentence_split: Callable[[str], Sequence[str]], dependency_tree: Callable[[str], Tree]
) -> bool:
    """Algorithm 3: whether tags and relations of both texts are similar, sentence by sentence.

    Parameters
    ----------
    original, mutant : str
        The two texts.
    sentence_split : callable
        Text to sentences.
    dependency_tree : callable
        Sentence to parse.
    """
    cs, ms = sentence_split(original), sentence_split(mutant)
    if len(cs) != len(ms):
        return False
    for i in range(len(cs)):
        cdt = dependency_tree(cs[i])
        mdt = dependency_tree(ms[i])
        similar_pos = tolerant_table_comp(cdt.tags, mdt.tags)
        if similar_pos is not True:
            return False
        similar_dp = tolerant_table_comp(cdt.deps, mdt.deps)
        if similar_dp is not True:
            return False
    return True


def tolerant_table_comp(s1: Sequence[str], s2: Sequence[str]) -> bool:
    """Algorithm 4: whether two sequences differ in no more places than their sizes do.

    >>> tolerant_table_comp(["DT", "NN"], ["DT", "JJ", "NN"])
    True
    >>> tolerant_table_comp(["DT", "NN"], ["DT", "NNS"])
    False
    """
    is1 = 0
    is2 = 0
    st1 = len(s1)
    st2 = len(s2)
    error_limit = abs(st1 - st2)
    error = 0
    shift = 0
    while is1 < st1 and is2 < st2:
        if s1[is1] != s2[is2]:
            error = error + 1
            if shift < error_limit:
                shift = shift + 1
                if st1 > st2:
                    is1 = is1 + 1
                elif st1 < st2:
                    is2 = is2 + 1
        is1 = is1 + 1
        is2 = is2 + 1
    error = error + (st1 - is1) + (st2 - is2)
    return error <= error_limit
