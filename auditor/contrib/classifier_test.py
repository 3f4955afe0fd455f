"""A classifier two-sample test for pairs of texts: a rule on masked words says which answer is about whom.

For each source text the words of its answer about one group less those of its answer about the other. A linear rule is
learned from other source texts. Without an effect the two answers of a text could change places, so the signs of whole
texts are flipped for the p value, and the rule is learned anew: the test is exact whatever the rule. With placebo
pairs, only what goes beyond the hits of a rule learned from them is an effect of the group.

References
----------
D. Lopez-Paz, M. Oquab, Revisiting classifier two-sample tests, ICLR 2017.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from auditor.measure.intervals import sign_flip
from auditor.measure.observations import Bools, Floats

FOLDS = 5
FLIPS = 999
MIN_TEXTS = 12
FEWEST = 5  # texts in which a word must stand
DRIVING = 12
Bag = frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two answers to versions of one source text, as sets of words."""

    text: str
    first: Bag
    second: Bag


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A word of the rule, and in how many pairs it is on one side alone."""

    word: str
    first: int
    second: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Classified:
    """Result of the test: the share of pairs that the rule gets right, of which half is chance.

    ``placebo`` is the share of placebo pairs, ``beyond`` the p value of the difference to them; None without any.
    """

    texts: int
    pairs: int
    share: float | None
    p_value: float | None
    placebo: float | None = None
    beyond: float | None = None
    words: tuple[Word, ...] = ()

    @property
    def p(self) -> float | None:
        """The larger of the two p values."""
        return self.p_value if self.beyond is None or self.p_value is None else max(self.p_value, self.beyond)


def classify(pairs: Sequence[Pair], placebos: Sequence[Pair] = (), *, seed: int = 7, flips: int = FLIPS) -> Classified:
    """Test whether a rule distinguishes the first answers of ``pairs`` from the second ones.

    ``placebos`` are pairs of which neither differs in who it is about. Several pairs of one text are learned from,
    left out and flipped together.
    """
    texts = sorted({pair.text for pair in pairs})
    if len(texts) < MIN_TEXTS:
        return Classified(texts=len(texts), pairs=len(pairs), share=None, p_value=None)
    own = _Test(pairs, texts, seed)
    observed = own.hits(np.ones(len(texts)))
    rng = np.random.default_rng(seed)
    flipped = [own.hits(rng.choice((-1.0, 1.0), len(texts))).mean() for _ in range(flips)]
    p_value = float((1 + sum(one >= observed.mean() - 1e-12 for one in flipped)) / (flips + 1))
    placebo, beyond = None, None
    shared = sorted(set(texts) & {pair.text for pair in placebos})
    if len(shared) >= MIN_TEXTS:
        other = _Test([p for p in placebos if p.text in set(shared)], shared, seed)
        theirs = other.hits(np.ones(len(shared)))
        mine = observed[np.searchsorted(texts, shared)]
        placebo = float(theirs.mean())
        beyond = float(sign_flip(mine - theirs, rng=rng, alternative="greater"))
    return Classified(
        texts=len(texts),
        pairs=len(pairs),
        share=float(observed.mean()),
        p_value=p_value,
        placebo=placebo,
        beyond=beyond,
        words=own.driving(),
    )


class _Test:
    """Pairs as rows of differences, and the folds that their texts are in."""

    def __init__(self, pairs: Sequence[Pair], texts: Sequence[str], seed: int) -> None:
        from scipy.sparse import csr_array

        standing = Counter(word for pair in pairs for word in pair.first ^ pair.second)
        self._names = sorted(word for word, n in standing.items() if n >= FEWEST)
        self._row_text = np.array([np.searchsorted(texts, pair.text) for pair in pairs])
        folds = (np.random.default_rng(seed).permutation(len(texts)) % FOLDS)[self._row_text]
        self._of_fold = [folds == fold for fold in range(FOLDS)]
        self._size = np.bincount(self._row_text, minlength=len(texts))
        number = {word: n for n, word in enumerate(self._names)}
        cells = [
            (row, number[word], sign)
            for row, pair in enumerate(pairs)
            for words, sign in ((pair.first - pair.second, 1.0), (pair.second - pair.first, -1.0))
            for word in sorted(words)
            if word in number
        ]
        rows, columns, values = (np.array(part) for part in zip(*cells, strict=True)) if cells else ([], [], [])
        shape = len(pairs), max(1, len(self._names))
        self._x = csr_array((values, (rows, columns)), shape=shape, dtype=np.float64)
        self._square = self._x.multiply(self._x).tocsr()

    def weights(self, signs: Floats, rows: Bools) -> Floats:
        """Of each word how much more often it stands first than second, in its own standard errors."""
        weight = np.where(rows, signs[self._row_text], 0.0)
        total, square = self._x.T @ weight, self._square.T @ rows.astype(np.float64)
        # A word that stood on one side k times of n: (k − (n − k)) / √(n + 1), shrunk where it is rare.
        z = total / np.sqrt(square + FEWEST)
        return np.asarray(z / np.sqrt(square + FEWEST))

    def hits(self, signs: Floats) -> Floats:
        """Of each text the share of its pairs that a rule from other texts gets right; a draw is half of one."""
        right = np.zeros(len(self._row_text))
        for held in self._of_fold:
            score = (self._x @ self.weights(signs, ~held)) * signs[self._row_text]
            right[held] = np.where(score > 1e-12, 1.0, np.where(score < -1e-12, 0.0, 0.5))[held]
        return np.asarray(np.bincount(self._row_text, right, minlength=len(self._size)) / self._size)

    def driving(self) -> tuple[Word, ...]:
        """The words with the largest weights."""
        every = np.ones(len(self._row_text), dtype=bool)
        z = self.weights(np.ones(len(self._size)), every) * np.sqrt(self._square.T @ every.astype(np.float64) + FEWEST)
        first = (self._x > 0).sum(axis=0)
        second = (self._x < 0).sum(axis=0)
        order = np.argsort(-np.abs(z))[:DRIVING]
        return tuple(
            Word(word=self._names[n], first=int(first[n]), second=int(second[n])) for n in order if self._names
        )
