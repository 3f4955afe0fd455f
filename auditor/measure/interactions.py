"""Interaction claims: whether two attributes together do more to the outcome than the sum of each alone.

For each text the contrast y(AB) − y(A) − y(B) + y(0), oriented as the net difference is: the difference between two
groups of one attribute, for one group of the other attribute minus for another. What joint placebo edits do beyond
their parts is taken out.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from auditor.measure import contrasts
from auditor.measure.adjustment import Adjustment, Unidentified
from auditor.measure.claims import MIN_TEXTS, About, Claim, Question
from auditor.measure.lattices import Floats, Joints, joints
from auditor.measure.linear import Design, Rows, fit
from auditor.measure.net import Pair, pairs, scales
from auditor.measure.observations import Columns, Observations, Shape
from auditor.measure.verdicts import Tested, filled, rare


def tested(observations: Observations, columns: Columns, question: Question) -> Iterator[Tested]:
    """Claims of the family "interaction": all pairs of attributes that were changed together in enough texts."""
    found = joints(observations, columns).get(2)
    if found is None:
        return
    for model, name in itertools.product(
        range(len(observations.models.values)), range(len(observations.formats.values))
    ):
        rows = (columns.model == model) & (columns.format == name)
        if rows.any():
            about = About(observations.models.values[model], observations.formats.values[name])
            for label in question.outcomes or [""]:
                yield from _of_label(observations, columns, rows, found, label, about, question)


def _of_label(
    observations: Observations,
    columns: Columns,
    rows: Any,
    found: Joints,
    label: str,
    about: About,
    question: Question,
) -> Iterator[Tested]:
    scale, value = next(iter(scales(observations, columns, rows, label, question).items()))
    y, known = contrasts.outcome_means(columns, rows, value)
    here = found.known(known)
    if not here.any():
        return
    table = _Table(observations, found, here, found.contrasts(y))
    for attributes in table.pairs():
        names = [sorted(groups) for groups in table.groups(attributes)]
        chosen = [pairs(n, a, question) for n, a in zip(names, attributes, strict=True)]
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
                model=about.model,
                format=about.format,
                texts=int((made.design.focal > 0).sum()),
            )
            yield _test(claim, made, first.weight * second.weight, table.taken_out)


def _test(claim: Claim, rows: Rows, weight: float, taken_out: Adjustment | None) -> Tested:
    if taken_out is None:
        few = f"fewer than {MIN_TEXTS} texts have joint placebo edits and their parts"
        return Tested(replace(claim, why=few))
    try:
        found = fit(rows, taken_out)
    except Unidentified as error:  # pragma: no cover - placebo edits span the one covariate
        return Tested(replace(claim, why=str(error)))
    if claim.scale == "share":
        found = rare(found, rows)
    return Tested(filled(claim, found), weight, found, None, rows)


class _Table:
    """Contrasts of joint versions by text."""

    def __init__(self, observations: Observations, found: Joints, here: Any, contrast: Floats) -> None:
        self._shapes = observations.shapes.values
        self._by_pair: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._found, self._contrast = found, contrast
        placebos: dict[int, list[int]] = defaultdict(list)
        for row in np.flatnonzero(here).tolist():
            shape = self._shapes[found.shape[row]]
            if found.placebo[row]:
                placebos[int(found.text[row])].append(row)
            elif len(shape.directions) == 2:  # else one edit changes several people to different groups
                self._by_pair[shape.attributes].append(row)
        self._placebos = [(text, [(row, 1.0) for row in rows]) for text, rows in sorted(placebos.items())]
        means = np.array([contrast[[row for row, _ in rows]].mean() for _, rows in self._placebos])
        self.taken_out = None
        if len(means) >= MIN_TEXTS:
            variance = means.var(ddof=1) / len(means)
            self.taken_out = Adjustment(
                effect=np.array([means.mean()]), covariance=np.array([[variance]]), span=np.eye(1)
            )

    def pairs(self) -> list[tuple[str, ...]]:
        """Pairs of attributes, sorted."""
        return sorted(self._by_pair)

    def groups(self, attributes: tuple[str, ...]) -> list[set[str]]:
        """Groups of each attribute of a pair."""
        shapes = {int(self._found.shape[row]) for row in self._by_pair[attributes]}
        return [
            {g for code in shapes for g in self._shapes[code].directions[place][1:]} for place in range(2)
        ]

    def rows(self, attributes: tuple[str, ...], sides: tuple[Pair, Pair]) -> Rows | None:
        """One row for each text, then one for each text with placebos; None for too few texts."""
        by_text: dict[int, list[tuple[int, float]]] = defaultdict(list)
        signs: dict[int, float] = {}
        for row in self._by_pair[attributes]:
            code = int(self._found.shape[row])
            sign = signs.get(code)
            if sign is None:
                sign = signs[code] = _sign(self._shapes[code], sides)
            if sign:
                by_text[int(self._found.text[row])].append((row, sign))
        if len(by_text) < MIN_TEXTS:
            return None
        made = [(text, 1.0, rows) for text, rows in sorted(by_text.items())]
        made += [(text, 0.0, rows) for text, rows in self._placebos]
        codes: dict[str, int] = {}
        words = [
            (n, codes.setdefault(word, len(codes)), weight)
            for n, (_, _, rows) in enumerate(made)
            for word, weight in sorted(self._words(rows).items())
            if abs(weight) > 1e-12
        ]
        design = Design(
            focal=np.array([focal for _, focal, _ in made]),
            covariates=np.array([[sum(s for _, s in rows) / len(rows)] for _, _, rows in made]),
            text=np.array([text for text, _, _ in made], dtype=np.int64),
            words=np.array(words, dtype=np.float64).reshape(-1, 3),
        )
        means = [sum(s * self._contrast[row] for row, s in rows) / len(rows) for _, _, rows in made]
        return Rows(np.array(means), design)

    def _words(self, rows: Sequence[tuple[int, float]]) -> Mapping[str, float]:
        words: dict[str, float] = defaultdict(float)
        for row, sign in rows:
            shape = self._shapes[self._found.shape[row]]
            for word in shape.words_in:
                words[word] += sign / len(rows)
            for word in shape.words_out:
                words[word] -= sign / len(rows)
        return words


def _sign(shape: Shape, sides: tuple[Pair, Pair]) -> float:
    """How a contrast enters: reversing one attribute reverses it, reversing both does not; 0 where it does not."""
    out = 1.0
    for (_, source, target), side in zip(shape.directions, sides, strict=True):
        out *= (target == side.group and source in side.against) - float(
            source == side.group and target in side.against
        )
    return out
