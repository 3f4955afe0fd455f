"""Single texts: which joint change does more beyond its parts than joint placebo edits do.

The measure of a joint version is its interaction contrast on the score; where answers are labels alone, how far its
share of the label lies beyond all of its parts. Placebo versions of the same texts, with as many places changed, have
the same measure: what they reach is what any rewording of that extent reaches.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from auditor.core.types import Interaction
from auditor.measure import contrasts
from auditor.measure.claims import MIN_TEXTS, Question
from auditor.measure.lattices import Bools, Floats, Joints, joints
from auditor.measure.multiplicity import benjamini_hochberg, holm
from auditor.measure.net import scales
from auditor.measure.observations import Columns, Observations
from auditor.measure.paired import sign_flip
from auditor.measure.threads import one_thread

LEVEL = 0.05  # of the test of the whole run, and of a version among placebo versions
FALSE_SHARE = 0.10  # of confirmed texts that may be false, where the whole run shows something
MATCHED = 20  # texts with placebos of the same extent from which on only these are compared
MOST_SUBSETS = 70  # sets of placebo versions of one text that are averaged


Key = tuple[str, str, str]  # model, variant id, format


@one_thread
def interactions(
    observations: Observations, question: Question, rows: Mapping[str, int], *, seed: int = 7
) -> dict[Key, Interaction]:
    """What is known of the joint versions in ``rows`` (variant id → row of its version).

    One that is not in the result has parts without an answer, or is no version of the table.
    """
    columns = observations.columns()
    found = joints(observations, columns, list(rows.values()))
    out: dict[Key, Interaction] = {}
    for model, name in itertools.product(
        range(len(observations.models.values)), range(len(observations.formats.values))
    ):
        asked = (columns.model == model) & (columns.format == name)
        if not asked.any():
            continue
        told = _of_model(observations, columns, asked, found, question, np.random.default_rng([seed, 6]))
        about = observations.models.values[model], observations.formats.values[name]
        out |= {(about[0], id, about[1]): told[row] for id, row in rows.items() if row in told}
    return out


def _of_model(
    observations: Observations,
    columns: Columns,
    asked: Bools,
    found: Mapping[int, Joints],
    question: Question,
    rng: np.random.Generator,
) -> dict[int, Interaction]:
    """By row of the joint version."""
    made = [_Arms.of(observations, columns, asked, one, question) for one in found.values()]
    arms = [one for one in made if one is not None]
    gates = holm([one.more_than_placebo(rng) for one in arms])
    return {row: told for one, gate in zip(arms, gates, strict=True) for row, told in one.told(gate).items()}


class _Arms:
    """Measures of the joint versions of one order, edited and placebo ones."""

    def __init__(self, found: Joints, measure: Floats, scale: str, attributes: Sequence[tuple[str, ...]]) -> None:
        self.found, self.measure, self.scale = found, measure, scale
        self.units: dict[tuple[int, tuple[str, ...]], list[int]] = defaultdict(list)
        self.placebos: dict[int, list[int]] = defaultdict(list)
        for row, (text, placebo) in enumerate(zip(found.text.tolist(), found.placebo.tolist(), strict=True)):
            if placebo:
                self.placebos[text].append(row)
            else:
                self.units[text, attributes[row]].append(row)
        self._pools: dict[tuple[int, int], tuple[Floats, Floats, int]] = {}

    @classmethod
    def of(
        cls, observations: Observations, columns: Columns, asked: Bools, found: Joints, question: Question
    ) -> _Arms | None:
        """Those of the answers ``asked``; None without any whose parts were all answered."""
        measures = []
        scale = ""
        here = np.zeros(len(found.text), dtype=bool)
        for label in question.outcomes or [""]:
            scale, value = next(iter(scales(observations, columns, asked, label, question).items()))
            y, known = contrasts.outcome_means(columns, asked, value)
            measures.append(found.beyond_parts(y) if scale == "share" else found.contrasts(y))
            here = found.known(known)
        if not here.any():
            return None
        some = found._replace(
            **{name: getattr(found, name)[here] for name in ("text", "shape", "placebo", "spans", "cells")}
        )
        attributes = [observations.shapes.values[code].attributes for code in some.shape]
        return cls(some, np.column_stack(measures)[here], scale, attributes)

    def more_than_placebo(self, rng: np.random.Generator) -> float | None:
        """One-sided p value that joint edits reach further than placebos in the same texts; None for few texts."""
        size = np.abs(self.measure).max(axis=1)
        edited: dict[int, list[float]] = defaultdict(list)
        for (text, _), rows in self.units.items():
            edited[text].append(float(size[rows].mean()))
        differences = [
            sum(edited[text]) / len(edited[text]) - float(size[rows].mean())
            for text, rows in sorted(self.placebos.items())
            if text in edited
        ]
        if len(differences) < MIN_TEXTS:
            return None
        return sign_flip(differences, rng=rng, alternative="greater")

    def told(self, gate: float | None) -> dict[int, Interaction]:
        """By row of the version, given the p value of the whole run."""
        if gate is None:
            why = f"fewer than {MIN_TEXTS} texts have joint placebo edits to compare with"
            none = Interaction(kind="not_tested", why=why, scale=self.scale)
            return {
                int(self.found.cells[row, -1]): replace(none, contrast=self._strongest(row), se=self._spread())
                for rows in self.units.values()
                for row in rows
            }
        means = [float(np.abs(self.measure[rows].mean(axis=0)).max()) for rows in self.units.values()]
        p_values = [
            self.tail(mean, len(rows), round(float(self.found.spans[rows].mean())))
            for mean, rows in zip(means, self.units.values(), strict=True)
        ]
        q_values = benjamini_hochberg(p_values)
        se = self._spread()
        return {
            int(self.found.cells[row, -1]): self._verdict(row, rows, gate, float(q or 0.0), se)
            for rows, q in zip(self.units.values(), q_values, strict=True)
            for row in rows
        }

    def _verdict(self, row: int, rows: Sequence[int], gate: float, q: float, se: float) -> Interaction:
        contrast = self._strongest(row)
        p = self.tail(abs(contrast), 1, int(self.found.spans[row]))
        # The text as a whole must point where this version does.
        column = int(np.abs(self.measure[row]).argmax())
        along = float(self.measure[rows, column].mean()) * contrast > 0
        why = ""
        if gate > LEVEL:
            why = f"joint edits reach no further beyond their parts than joint placebo edits do (p = {gate:.2g})"
        elif q > FALSE_SHARE or not along:
            why = f"in this text joint edits reach no further than placebo edits may (adjusted p = {q:.2g})"
        elif p > LEVEL:
            why = f"placebo edits reach as far beyond their parts as this change does (p = {p:.2g})"
        return Interaction(
            kind="threshold_crossing" if why else "confirmed",
            why=why,
            contrast=contrast,
            se=se,
            scale=self.scale,
            p_value=p,
            p_adjusted=q,
        )

    def _strongest(self, row: int) -> float:
        measure = self.measure[row]
        return float(measure[np.abs(measure).argmax()])

    def _spread(self) -> float:
        """Standard deviation of a measure over placebos; what joint edits spread counts as one text of them."""
        size = np.abs(self.measure).max(axis=1) ** 2
        edited = size[~self.found.placebo]
        texts = [float(size[rows].mean()) for rows in self.placebos.values()]
        return math.sqrt((sum(texts) + (float(edited.mean()) if len(edited) else 0.0)) / (len(texts) + 1))

    def tail(self, size: float, k: int, spans: int) -> float:
        """Share of placebo texts in which the mean of ``k`` versions is as large, the one in question counted in."""
        if (k, spans) not in self._pools:
            self._pools[k, spans] = self._pool(k, spans)
        values, weights, texts = self._pools[k, spans]
        # `weights` are summed from the largest value down.
        reached = int(len(values) - np.searchsorted(values, size - 1e-9 * max(1.0, size), side="left"))
        return min(1.0, (1.0 + (float(weights[reached - 1]) if reached else 0.0)) / (texts + 1.0))

    def _pool(self, k: int, spans: int) -> tuple[Floats, Floats, int]:
        matched = {
            text: some
            for text, rows in self.placebos.items()
            if (some := [row for row in rows if self.found.spans[row] >= spans])
        }
        chosen = matched if len(matched) >= MATCHED else self.placebos
        values: list[Floats] = []
        weights: list[Floats] = []
        for rows in chosen.values():
            sets = _subsets(rows, k)
            means = np.abs(self.measure[sets].mean(axis=1)).max(axis=1)
            values.append(means)
            weights.append(np.full(len(means), 1.0 / len(means)))
        size, weight = np.concatenate(values), np.concatenate(weights)
        order = np.argsort(size, kind="stable")
        return size[order], np.cumsum(weight[order][::-1]), len(chosen)


def _subsets(rows: Sequence[int], k: int) -> Any:
    """Sets of ``k`` rows (all where there are no more), some of very many."""
    size = min(k, len(rows))
    if math.comb(len(rows), size) <= MOST_SUBSETS:
        return np.array(list(itertools.combinations(rows, size)))
    rng = np.random.default_rng([len(rows), size])
    return np.array([rng.choice(rows, size, replace=False) for _ in range(MOST_SUBSETS)])
