"""All claims of a run, each family with its own level of 5 %: net differences, refusals, instability, interactions.

*Net* and *refusal* compare one group with others, whichever was the original. *Instability* is how often an answer
changes at all when the group changes, beyond placebo edits of the same shape. Its signs are not looked at: this is
HInter's violation rate, against its own noise. A change of group is compared with placebo edits of the same text that
have as many spans and change the number of words as much; what has no such partner is left out, because nothing says
what its shape alone would do. Variants weigh the same, as in the rates of changes that the report has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from auditor.core.record.measured import Claim, Family, Scale
from auditor.core.shown import plural, verb
from auditor.measure import contrasts, interactions
from auditor.measure.claims import (
    MIN_TEXTS,
    Pair,
    Question,
    Tested,
    decide,
    filled,
    one_thread,
    pairs,
    rare,
    scales,
    with_omnibus,
)
from auditor.measure.contrasts import Contrast, Moved, Versions
from auditor.measure.effects import Adjustment, Unidentified
from auditor.measure.linear import Design, Rows, fit
from auditor.measure.observations import STATUS, Arm, Bools, Columns, Floats, Observations, Place, attributes_of

EXAMPLES = 5
QUANTILES = 0.025, 0.5, 0.975
Measured = Mapping[Scale, tuple[Floats, Bools]]  # outcomes by scale, the deciding one first


@one_thread
def claims(observations: Observations, question: Question, versions: Versions | None = None) -> list[Claim]:
    """All claims of a run; ``versions`` are those of the observations, where they were laid out before."""
    columns = observations.columns()
    laid_out = versions or Versions(observations, columns)
    unsigned = dataclasses.replace(question, delta=None)
    made = [
        *decide(list(net(observations, columns, laid_out, "net", question)), question),
        *decide(list(net(observations, columns, laid_out, "refusal", question)), question),
        *decide(list(instability(observations, columns, laid_out)), unsigned),
    ]
    del laid_out  # 150 MiB of the default audit, which interactions do not need
    return [*made, *decide(list(interactions.tested(observations, columns, question)), question)]


# -- one group against others -----------------------------------------------------------------------------------


def net(
    observations: Observations, columns: Columns, versions: Versions, family: Family, question: Question
) -> Iterator[Tested]:
    """The claims of one family, for each model, format, label and attribute."""
    for place, rows in observations.places(columns):
        table = _Table(observations, columns, versions, rows, place, question)
        if family == "refusal":
            silent = contrasts.outcome_means(columns, rows, contrasts.silence)
            if silent[0].any():
                yield from table.claims(family, "", {"share": silent}, 1.0)
            continue
        for label in question.outcomes or [""]:
            measured: Measured = {
                scale: contrasts.outcome_means(columns, rows, value)
                for scale, value in scales(observations, columns, rows, label, question).items()
            }
            yield from table.claims(family, label, measured, 1.0 / max(1, len(question.outcomes)))


class _Made(NamedTuple):
    """One contrast on one scale: what a fit needs."""

    contrast: Contrast
    rows: Rows
    y: Floats  # of versions
    taken_out: Adjustment


@dataclasses.dataclass(frozen=True, slots=True)
class _Table:
    """The answers of one model in one format."""

    observations: Observations
    columns: Columns
    versions: Versions
    rows: Bools
    place: Place
    question: Question

    def claims(self, family: Family, label: str, measured: Measured, share: float) -> Iterator[Tested]:
        """Of all attributes."""
        main = next(iter(measured))
        unit = self.question.unit_of(main)
        laid_out = {s: self.versions.where(known) for s, (_, known) in measured.items()}
        for attribute in attributes_of(self.observations):
            taken_out = {s: laid_out[s].adjust(attribute, y) for s, (y, _) in measured.items()}
            chosen = pairs(laid_out[main].names(attribute), attribute, self.question)
            of_attribute = Claim(
                family=family,
                attribute=attribute,
                groups=(),
                label=label,
                scale=main,
                unit=unit,
                model=self.place.model,
                format=self.place.format,
            )
            weight, waiting = with_omnibus(chosen) if family == "net" else (0.0, chosen)
            moved = laid_out[main].omnibus(attribute, measured[main][0]) if weight else None
            if moved is not None and moved.texts >= MIN_TEXTS:
                chosen = waiting
                yield omnibus(dataclasses.replace(of_attribute, family="omnibus"), moved, weight * share)
            for pair in chosen:
                groups = pair.group, pair.reference
                claim = dataclasses.replace(of_attribute, groups=groups, delta=self.question.limit(unit))
                made: dict[Scale, _Made] = {}
                for s, one in laid_out.items():
                    contrast, design = one.contrast(attribute, pair.group, pair.against)
                    y = measured[s][0]
                    made[s] = _Made(contrast, Rows(contrast.map @ y, design), y, taken_out[s])
                yield self._test(claim, made, pair, share)

    def _test(self, claim: Claim, made: Mapping[Scale, _Made], pair: Pair, share: float) -> Tested:
        decides = made[claim.scale]
        texts = len(np.unique(self.versions.units[decides.contrast.text]))
        claim = dataclasses.replace(claim, texts=texts, carriers=self.versions.carriers(decides.contrast))
        if texts < MIN_TEXTS:
            some = f"{plural(texts, 'text')} {verb(texts, 'has', 'have')} a version about both"
            why = f"{some}; at least {MIN_TEXTS} are needed"
            return Tested(dataclasses.replace(claim, why=why))
        try:
            fits = {scale: fit(one.rows, one.taken_out) for scale, one in made.items()}
        except Unidentified as error:
            return Tested(dataclasses.replace(claim, why=str(error)))
        if "share" in fits:
            fits["share"] = rare(fits["share"], made["share"].rows)
            claim = dataclasses.replace(claim, shares=made["share"].contrast.levels(made["share"].y))
        main = fits[claim.scale]
        claim = filled(claim, main, fits.get("share"), level=self.question.level(claim.attribute))
        examples = self._examples(decides.contrast, decides.y, main.these.value)
        claim = dataclasses.replace(claim, examples=examples)
        compared: Scale = "share" if claim.scale == "log_odds" else claim.scale
        used = np.zeros(len(self.versions.text), dtype=bool)
        used[made[compared].contrast.map.indices] = True
        calls = int((self.rows & used[self.columns.version]).sum())
        sides = decides.contrast.sides
        missing = max(0, pair.needed(claim.scale) - sides)
        weight = pair.of(sides, claim.scale) * share
        changed = made[compared].rows.changed
        return Tested(claim, weight, changed, fits[compared], calls, missing, pair.waits)

    def _examples(self, contrast: Contrast, y: Floats, value: float) -> tuple[str, ...]:
        """Versions of the texts that differ most the way that the claim says."""
        both = contrast.map
        sign = 1.0 if value > 0 else -1.0
        apart = sign * (both @ y)
        out = []
        for row in np.argsort(-apart, kind="stable")[:EXAMPLES].tolist():
            if apart[row] <= 0:
                break
            here = slice(both.indptr[row], both.indptr[row + 1])
            cells = [
                (sign * weight * y[version], -version)
                for version, weight in zip(both.indices[here].tolist(), both.data[here].tolist(), strict=True)
                if self.versions.arm[version] == Arm.EDITED
            ]
            if cells and (name := self.observations.name(-max(cells)[1])):
                out.append(name)
        return tuple(out)


def omnibus(claim: Claim, moved: Moved, weight: float) -> Tested:
    """Test whether words of an attribute move answers more than neutral words do.

    The estimate is how far an edit of the attribute moves an answer beyond what as many neutral words do: a standard
    deviation, the root of the difference of two variances.
    """
    own, neutral = (seen.spread() for seen in (moved.own, moved.neutral))
    beyond = np.sqrt(np.maximum(own.sd[:, None] ** 2 - neutral.sd[None, :] ** 2, 0.0)).ravel() * moved.size
    order = np.argsort(beyond, kind="stable")
    likely = np.cumsum((own.weight[:, None] * neutral.weight[None, :]).ravel()[order])
    at = np.minimum(np.searchsorted(likely, QUANTILES), len(order) - 1)
    low, middle, high = beyond[order][at].tolist()
    claim = dataclasses.replace(
        claim,
        estimate=middle,
        low=low,
        high=high,
        texts=moved.texts,
        words=moved.own.df,
        p_value=moved.own.p_above(neutral),
    )
    return Tested(claim, weight, moved.changed)


# -- changes beyond placebo edits ---------------------------------------------------------------------------------


def instability(observations: Observations, columns: Columns, versions: Versions) -> Iterator[Tested]:
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
            yield _beside_placebos(claim, contrast, Rows(contrast.map @ y, design), y, attributes in placebos)


def _beside_placebos(claim: Claim, contrast: Contrast, rows: Rows, y: Floats, placebos: bool) -> Tested:
    texts = len(np.unique(rows.design.text))
    if texts < MIN_TEXTS:
        some = f"{plural(texts, 'text')} {verb(texts, 'has', 'have')} placebo edits of the same shape"
        why = f"{some}; at least {MIN_TEXTS} are needed"
        if not placebos:
            why = "the run has no placebo edits for it"
        return Tested(dataclasses.replace(claim, texts=texts, why=why))
    made = rare(fit(rows), rows)
    edited, placebo = (float(rows.design.plain @ (side @ y)) for side in (contrast.here, contrast.there))
    claim = dataclasses.replace(filled(claim, made), shares=(edited, placebo))
    if made.group.value <= 0:  # fewer changes than under placebo edits are no instability
        claim = dataclasses.replace(claim, p_value=1.0, p_words=1.0)
    return Tested(claim, 1.0, rows.changed, made)


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
