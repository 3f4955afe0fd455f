"""Interaction claims: whether two attributes together do more to the outcome than the sum of each alone.

For each text the contrast y(AB) − y(A) − y(B) + y(0), oriented as the net difference is: the difference between two
groups of one attribute, for one group of the other attribute minus for another. What joint placebo edits do beyond
their parts is taken out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from auditor.measure import contrasts
from auditor.measure.adjustment import Adjustment
from auditor.measure.claims import MIN_TEXTS, Claim, Question, Tested, filled, rare
from auditor.measure.lattices import Joints, joints
from auditor.measure.linear import Design, Rows, fit
from auditor.measure.net import Pair, pairs, scales
from auditor.measure.observations import Bools, Columns, Floats, Ints, Observations, Place


def tested(observations: Observations, columns: Columns, question: Question) -> Iterator[Tested]:
    """Claims of the family "interaction": all pairs of attributes that were changed together in enough texts."""
    both = joints(observations, columns).get(2)
    if both is not None:
        for place, rows in observations.places(columns):
            for label in question.outcomes or [""]:
                yield from _of_label(observations, columns, rows, both, label, place, question)


def _of_label(
    observations: Observations,
    columns: Columns,
    rows: Bools,
    both: Joints,
    label: str,
    place: Place,
    question: Question,
) -> Iterator[Tested]:
    scale, value = next(iter(scales(observations, columns, rows, label, question).items()))
    y, known = contrasts.outcome_means(columns, rows, value)
    here = both.known(known)
    if not here.any():
        return
    table = _Table(observations, both, here, both.contrasts(y))
    for attributes in table.pairs():
        named = zip(table.groups(attributes), attributes, strict=True)
        chosen = [pairs(names, attribute, question) for names, attribute in named]
        for first, second in itertools.product(*chosen):
            made = table.rows(attributes, (first, second))
            if made is None:
                continue
            claim = Claim(
                family="interaction",
                attribute="+".join(attributes),
                groups=(f"{first.group}+{second.group}", f"{first.reference}+{second.reference}"),
                label=label,
                scale=scale,
                unit=question.unit_of(scale),
                model=place.model,
                format=place.format,
                texts=len(np.unique(made.design.text[made.design.focal > 0])),
            )
            yield _test(claim, made, first.weight * second.weight, table.taken_out)


def _test(claim: Claim, rows: Rows, weight: float, taken_out: Adjustment | None) -> Tested:
    if taken_out is None:
        few = f"fewer than {MIN_TEXTS} texts have joint placebo edits and their parts"
        return Tested(replace(claim, why=few))
    made = fit(rows, taken_out)
    if claim.scale == "share":
        made = rare(made, rows)
    return Tested(filled(claim, made), weight, made, None, rows)


class _Table:
    """Contrasts of joint versions by text."""

    def __init__(self, observations: Observations, both: Joints, here: Bools, contrast: Floats) -> None:
        from scipy.sparse import csr_array

        rows = np.flatnonzero(here)
        used, shape = np.unique(both.shape[rows], return_inverse=True)
        self._shapes = [observations.shapes.values[code] for code in used]
        self._text, self._shape, self._contrast = both.text[rows], shape, contrast[rows]
        self._units = observations.units()
        codes: dict[str, int] = {}
        cells = [
            (n, codes.setdefault(word, len(codes)), sign)
            for n, one in enumerate(self._shapes)
            for words, sign in ((one.words_in, 1.0), (one.words_out, -1.0))
            for word in words
        ]
        n, word, sign = np.array(cells, dtype=np.float64).reshape(-1, 3).T
        self._words = csr_array((sign, (n, word)), shape=(len(used), max(1, len(codes))))
        # From and to which group, for both attributes; none where one edit changes several people to different ones.
        turns = [d if len(d := one.directions) == 2 else (("", "", ""),) * 2 for one in self._shapes]
        self._names, self._turns = np.unique(
            np.array([[turn[1:] for turn in two] for two in turns], dtype=np.str_), return_inverse=True
        )
        self._sides: dict[tuple[int, Pair], Floats] = {}
        placebo = both.placebo[rows]
        self._of: dict[tuple[str, ...], Ints] = {}
        pair = [one.attributes if len(one.directions) == 2 else () for one in self._shapes]
        for attributes in sorted({*pair} - {()}):
            about = np.array([one == attributes for one in pair])
            if (about := about[shape] & ~placebo).any():
                self._of[attributes] = np.flatnonzero(about)
        self._placebos = self._means(np.flatnonzero(placebo), np.ones(int(placebo.sum())))
        self.taken_out = None
        means = self._placebos.y
        unit = np.unique(self._units[self._placebos.text], return_inverse=True)[1]
        if (units := int(unit.max(initial=-1)) + 1) >= MIN_TEXTS:
            apart = np.bincount(unit, means - means.mean())
            variance = float(apart @ apart) / len(means) ** 2 * units / (units - 1)
            self.taken_out = Adjustment(
                effect=np.array([means.mean()]), covariance=np.array([[variance]]), span=np.eye(1)
            )

    def pairs(self) -> list[tuple[str, ...]]:
        """Pairs of attributes, sorted."""
        return list(self._of)

    def groups(self, attributes: tuple[str, ...]) -> list[list[str]]:
        """Groups of each attribute of a pair, sorted."""
        turns = self._turns[np.unique(self._shape[self._of[attributes]])]
        return [self._names[np.unique(turns[:, place])].tolist() for place in range(2)]

    def rows(self, attributes: tuple[str, ...], sides: tuple[Pair, Pair]) -> Rows | None:
        """One row for each text, then one for each text with placebos; None for too few texts."""
        of = self._of[attributes]
        sign = self._signs(sides)[self._shape[of]]
        of, sign = of[sign != 0], sign[sign != 0]
        if len(np.unique(self._units[self._text[of]])) < MIN_TEXTS:
            return None
        made = self._means(of, sign)
        both = [made, self._placebos]
        firsts = np.cumsum([0, len(made.y)])
        words = [one.words + np.array([first, 0, 0]) for one, first in zip(both, firsts, strict=False)]
        design = Design(
            focal=np.repeat([1.0, 0.0], [len(one.y) for one in both]),
            covariates=np.concatenate([one.sign for one in both])[:, None],
            text=self._units[np.concatenate([one.text for one in both])],
            words=np.concatenate(words),
        )
        return Rows(np.concatenate([one.y for one in both]), design)

    def _means(self, rows: Ints, sign: Floats) -> _Means:
        from scipy.sparse import csr_array

        text, of, n = np.unique(self._text[rows], return_inverse=True, return_counts=True)
        mean = csr_array((sign / n[of], (of, np.arange(len(rows)))), shape=(len(text), len(rows)))
        words = (mean @ self._words[self._shape[rows]]).tocoo()
        kept = np.abs(words.data) > 1e-12
        cells = np.column_stack([words.row[kept], words.col[kept], words.data[kept]])
        return _Means(text, mean @ self._contrast[rows], mean @ np.ones(len(rows)), cells)

    def _signs(self, sides: tuple[Pair, Pair]) -> Floats:
        """How shapes enter: reversing one attribute reverses a contrast, reversing both does not; 0: not at all."""
        out = np.ones(len(self._shapes))
        for place, side in enumerate(sides):
            if (place, side) not in self._sides:
                group, against = self._names == side.group, np.isin(self._names, side.against)
                source, target = self._turns[:, place].T
                sign = 1.0 * (group[target] & against[source]) - (group[source] & against[target])
                self._sides[place, side] = sign
            out *= self._sides[place, side]
        return out


class _Means(NamedTuple):
    """Means over the contrasts of each text: of these, of their signs, and of their words (row, word, weight)."""

    text: Ints
    y: Floats
    sign: Floats
    words: Floats
