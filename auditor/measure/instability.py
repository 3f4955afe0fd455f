"""How often an answer changes at all when the group changes, beyond placebo edits of the same shape.

Signs are not looked at: this is HInter's violation rate, against its own noise. A change of group is compared with
placebo edits of the same text that have as many spans and change the number of words as much; what has no such
partner is left out, because nothing says what its shape alone would do. Variants weigh the same, as in the rates of
changes that the report has.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.measure.claims import MIN_TEXTS, Claim
from auditor.measure.likelihood import Floats
from auditor.measure.linear import Design, Rows, fit
from auditor.measure.observations import STATUS, Arm, Codes, Columns, Observations, Shape
from auditor.measure.verdicts import Tested, filled, rare

Attributes = tuple[str, ...]


class Paired(NamedTuple):
    """Contrasts of one set of attributes, and how often answers changed in the two arms of its texts."""

    rows: Rows
    edited: float
    placebo: float


def tested(observations: Observations, columns: Columns) -> Iterator[Tested]:
    """The claims of the family, for each model, format and set of attributes."""
    placebos = {s.attributes for s in observations.shapes.values if s.arm == Arm.PLACEBO}
    edited = {s.attributes for s in observations.shapes.values if s.arm == Arm.EDITED}
    for model, model_name in enumerate(observations.models.values):
        for format, format_name in enumerate(observations.formats.values):
            rows = (columns.model == model) & (columns.format == format)
            if not (rows & (columns.label >= 0)).any():
                continue
            found = paired(observations, columns, rows)
            for attributes in sorted(edited, key=lambda a: (len(a), a)):
                claim = Claim(
                    family="instability",
                    attribute="+".join(attributes),
                    groups=(),
                    label="",
                    model=model_name,
                    format=format_name,
                    scale="share",
                    unit="points",
                )
                yield _test(claim, found.get(attributes), attributes in placebos)


def _test(claim: Claim, pair: Paired | None, placebos: bool) -> Tested:
    if pair is None or len(pair.rows.y) < MIN_TEXTS:
        texts = 0 if pair is None else len(pair.rows.y)
        why = f"{texts} texts have placebo edits of the same shape; at least {MIN_TEXTS} are needed"
        if not placebos:
            why = "the run has no placebo edits for it"
        return Tested(dataclasses.replace(claim, texts=texts, why=why))
    made = rare(fit(pair.rows), pair.rows)
    claim = dataclasses.replace(filled(claim, made), shares=(pair.edited, pair.placebo))
    if made.group.value <= 0:  # fewer changes than under placebo edits are no instability
        claim = dataclasses.replace(claim, p_value=1.0, p_words=1.0)
    return Tested(claim, 1.0, made, made, pair.rows)


def differing(columns: Columns, rows: NDArray[np.bool_], original: NDArray[np.bool_]) -> Floats:
    """Of each version the chance that one of its answers is another than one to its original; NaN where unknown.

    With one answer each this is 0 or 1.
    """
    used = rows & (columns.status == STATUS["ok"]) & (columns.label >= 0)
    size = len(columns.version_text)
    out: Floats = np.full(size, np.nan)
    if not used.any():
        return out
    labels = int(columns.label.max()) + 1
    cell, count = np.unique(columns.version[used] * labels + columns.label[used], return_counts=True)
    version, label = cell // labels, cell % labels
    total = np.bincount(version, count, size)
    share = count / total[version]
    of_text = np.full(int(columns.version_text.max()) + 1, -1, dtype=np.int64)
    base = np.flatnonzero(original & (total > 0))
    of_text[columns.version_text[base]] = base
    source = of_text[columns.version_text[version]]
    wanted = source * labels + label
    at = np.minimum(np.searchsorted(cell, wanted), len(cell) - 1)
    same = np.where((source >= 0) & (cell[at] == wanted), share * share[at], 0.0)
    known = (total > 0) & (of_text[columns.version_text] >= 0)
    out[known] = 1.0 - np.bincount(version, same, size)[known]
    return out


def paired(observations: Observations, columns: Columns, rows: NDArray[np.bool_]) -> dict[Attributes, Paired]:
    """For each set of attributes the contrasts of its texts that have placebo edits of the same shape."""
    shapes = observations.shapes.values
    arm = np.array([s.arm for s in shapes])[columns.version_shape]
    y = differing(columns, rows, arm == Arm.ORIGINAL)
    cells: dict[Attributes, dict[int, dict[tuple[int, int], tuple[list[int], list[int]]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(lambda: ([], [])))
    )
    for i in np.flatnonzero(~np.isnan(y) & ((arm == Arm.EDITED) | (arm == Arm.PLACEBO))).tolist():
        shape = shapes[columns.version_shape[i]]
        cell = cells[shape.attributes][int(columns.version_text[i])][shape.spans, shape.more_words]
        cell[shape.arm == Arm.PLACEBO].append(i)
    out = {}
    for attributes, by_text in sorted(cells.items()):
        if found := _contrasts(y, columns, shapes, by_text):
            out[attributes] = found
    return out


def _contrasts(
    y: Floats,
    columns: Columns,
    shapes: list[Shape],
    by_text: dict[int, dict[tuple[int, int], tuple[list[int], list[int]]]],
) -> Paired | None:
    codes: Codes[str] = Codes()
    values: list[float] = []
    texts: list[int] = []
    words: list[tuple[int, int, float]] = []
    sizes: list[int] = []
    changed = 0.0
    for text, strata in sorted(by_text.items()):
        both = [(a, b) for a, b in strata.values() if a and b]
        if not both:
            continue
        total = sum(len(a) for a, _ in both)
        weights: dict[str, float] = defaultdict(float)
        for a, b in both:
            for side, sign in ((a, 1.0), (b, -1.0)):
                for i in side:
                    shape = shapes[columns.version_shape[i]]
                    for word in (*shape.words_in, *shape.words_out):
                        weights[word] += sign * len(a) / total / len(side)
        row = len(values)
        values.append(sum(len(a) / total * (y[a].mean() - y[b].mean()) for a, b in both))
        changed += sum(float(y[a].sum()) for a, _ in both)
        sizes.append(total)
        texts.append(text)
        words += [(row, codes.of(w), weight) for w, weight in sorted(weights.items()) if abs(weight) > 1e-12]
    if not values:
        return None
    n = len(values)
    design = Design(
        focal=np.ones(n),
        covariates=np.zeros((n, 0)),
        text=np.array(texts, dtype=np.int64),
        words=np.array(words, dtype=np.float64).reshape(-1, 3),
        size=np.array(sizes, dtype=np.float64),
    )
    made = Rows(np.array(values, dtype=np.float64), design)
    level = changed / sum(sizes)
    return Paired(made, level, level - float(design.plain @ made.y))
