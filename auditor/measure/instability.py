"""How often an answer changes at all when the group changes, beyond placebo edits of the same shape.

Signs are not looked at: this is HInter's violation rate, against its own noise. A change of group is compared with
placebo edits of the same text that have as many spans and change the number of words as much; what has no such
partner is left out, because nothing says what its shape alone would do. Variants weigh the same, as in the rates of
changes that the report has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.measure.claims import MIN_TEXTS, Claim, Tested, filled, rare
from auditor.measure.contrasts import Contrast, Versions
from auditor.measure.linear import Design, Rows, fit
from auditor.measure.observations import STATUS, Arm, Bools, Columns, Floats, Observations


def tested(observations: Observations, columns: Columns, versions: Versions) -> Iterator[Tested]:
    """The claims of the family, for each model, format and set of attributes."""
    placebos = {s.attributes for s in observations.shapes.values if s.arm == Arm.PLACEBO}
    edited = {s.attributes for s in observations.shapes.values if s.arm == Arm.EDITED}
    for (model, format), rows in observations.places(columns):
        if not (rows & (columns.label >= 0)).any():
            continue
        y = differing(columns, rows, versions.arm == Arm.ORIGINAL)
        known = ~np.isnan(y)
        laid_out, y = versions.where(known), np.where(known, y, 0.0)
        for attributes in sorted(edited, key=lambda a: (len(a), a)):
            claim = Claim(
                family="instability",
                attribute="+".join(attributes),
                groups=(),
                label="",
                model=model,
                format=format,
                scale="share",
                unit="points",
            )
            contrast, design = laid_out.keep(attributes, partial(paired, versions, known, attributes))
            yield _test(claim, contrast, Rows(contrast.map @ y, design), y, attributes in placebos)


def _test(claim: Claim, contrast: Contrast, rows: Rows, y: Floats, placebos: bool) -> Tested:
    texts = len(np.unique(rows.design.text))
    if texts < MIN_TEXTS:
        why = f"{texts} texts have placebo edits of the same shape; at least {MIN_TEXTS} are needed"
        if not placebos:
            why = "the run has no placebo edits for it"
        return Tested(dataclasses.replace(claim, texts=texts, why=why))
    made = rare(fit(rows), rows)
    edited, placebo = (float(rows.design.plain @ (side @ y)) for side in (contrast.here, contrast.there))
    claim = dataclasses.replace(filled(claim, made), shares=(edited, placebo))
    if made.group.value <= 0:  # fewer changes than under placebo edits are no instability
        claim = dataclasses.replace(claim, p_value=1.0, p_words=1.0)
    return Tested(claim, 1.0, made, made, rows)


def differing(columns: Columns, rows: Bools, original: Bools) -> Floats:
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


def paired(versions: Versions, known: Bools, attributes: tuple[str, ...]) -> tuple[Contrast, Design]:
    """The texts that have edits of ``attributes`` and placebo edits of the same shape, as contrasts of the two.

    Edits of one shape (places changed, words more) stand against the mean of the placebo edits of that shape.
    """
    from scipy.sparse import csr_array

    shapes, size = versions.shapes, len(versions.text)
    alike = np.array([s.attributes == attributes and s.arm in (Arm.EDITED, Arm.PLACEBO) for s in shapes], dtype=bool)
    form = np.array([(s.spans, s.more_words) for s in shapes], dtype=np.int64).reshape(-1, 2)
    at = np.flatnonzero(known & alike[versions.shape])
    placebo = versions.arm[at] == Arm.PLACEBO
    keys = np.column_stack([versions.text[at], form[versions.shape[at]]])
    strata, of = np.unique(keys, axis=0, return_inverse=True)
    of = of.reshape(-1)
    edits, placebos = (np.bincount(of[arm], minlength=len(strata)) for arm in (~placebo, placebo))
    both = (edits > 0) & (placebos > 0)
    text, row = np.unique(strata[both, 0], return_inverse=True)
    of_stratum = np.full(len(strata), -1)
    of_stratum[both] = row
    total = np.bincount(row, edits[both], minlength=len(text))

    def side(chosen: Bools, weight: Floats) -> csr_array:
        entries = chosen & both[of]
        cells = of_stratum[of[entries]], at[entries]
        return csr_array((weight[of[entries]] / total[cells[0]], cells), shape=(len(text), size))

    contrast = Contrast(text, side(~placebo, np.ones(len(strata))), side(placebo, edits / np.maximum(placebos, 1)))
    return contrast, versions.design(contrast, versions.moved, total.astype(np.float64))
