"""Claims of the families "net" and "refusal": one group against others, whichever was the original."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from auditor.measure import contrasts
from auditor.measure.adjustment import Adjustment, Unidentified
from auditor.measure.claims import (
    FEW,
    MIN_TEXTS,
    OTHERS,
    PRIMARY,
    Claim,
    Family,
    Question,
    Scale,
    Tested,
    filled,
    rare,
    texts_needed,
)
from auditor.measure.contrasts import Contrast, Value, Versions
from auditor.measure.likelihood import Known
from auditor.measure.linear import Rows, fit
from auditor.measure.observations import STATUS, Arm, Bools, Columns, Floats, Observations, Place, attributes_of

EXAMPLES = 5


Measured = Mapping[Scale, tuple[Floats, Bools]]  # outcomes by scale, the deciding one first


def tested(
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


def scales(
    observations: Observations, columns: Columns, rows: Bools, label: str, question: Question
) -> dict[Scale, Value]:
    """What is read from an answer on each scale that the answers have, the deciding one first."""
    if question.number:
        return {"number": contrasts.score}
    codes = [
        code
        for code, value in enumerate(observations.labels.values)
        if value == label or (isinstance(value, tuple) and label in value)
    ]
    share = contrasts.share_in(codes)
    asked = {observations.formats.values[code] for code in np.unique(columns.format[rows]).tolist()}
    if asked and asked <= question.graded:
        return {"number": contrasts.score, "share": share}
    scored = rows & ~np.isnan(columns.score) & (columns.status == STATUS["ok"])
    answered = rows & (columns.status == STATUS["ok"])
    if len(question.outcomes) == 1 and scored.any() and scored.sum() == answered.sum():
        return {"log_odds": contrasts.score, "share": share}
    return {"share": share}


class Pair(NamedTuple):
    """One group, the name of what it is compared with, the groups behind that, and its share of alpha."""

    group: str
    reference: str
    against: tuple[str, ...]
    weight: float

    def needed(self, scale: Scale) -> int:
        """Versions about either side from which on the claim has its share; numbers may do with few."""
        return texts_needed(self.weight) if scale == "share" else MIN_TEXTS

    def of(self, sides: int, scale: Scale) -> float:
        """Its share of alpha with so many versions about either side: next to nothing where they are too few."""
        return self.weight * (FEW if sides < self.needed(scale) else 1.0)


def pairs(names: Sequence[str], attribute: str, question: Question) -> list[Pair]:
    """Which groups are compared with which."""
    marked = [n for n in names if n not in set(question.unmarked.get(attribute, ()))]
    reference = question.references.get(attribute)
    primary = question.primary.get(attribute)
    if reference is not None:
        return _shared([(g, reference, (reference,)) for g in marked if g != reference])
    if len(marked) == 2:
        group, other = primary if primary is not None and set(primary) == set(marked) else tuple(marked)
        return [Pair(group, other, (other,), 1.0)]
    rest = [(g, OTHERS, tuple(n for n in marked if n != g)) for g in marked]
    if primary is not None and set(primary) <= set(marked):
        first = Pair(primary[0], primary[1], (primary[1],), PRIMARY)
        return [first, *_shared([one for one in rest if one[0] not in primary], 1 - PRIMARY)]
    return _shared(rest)


def _shared(pairs: Sequence[tuple[str, str, tuple[str, ...]]], total: float = 1.0) -> list[Pair]:
    return [Pair(*one, total / len(pairs)) for one in pairs]


class _Made(NamedTuple):
    """One contrast on one scale: what a fit needs."""

    contrast: Contrast
    rows: Rows
    y: Floats  # of versions
    taken_out: Adjustment
    placebos: Sequence[Known]


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
        placebos = {s: laid_out[s].placebos(y) for s, (y, _) in measured.items()}
        for attribute in attributes_of(self.observations):
            taken_out = {s: laid_out[s].adjust(attribute, y) for s, (y, _) in measured.items()}
            for pair in pairs(laid_out[main].names(attribute), attribute, self.question):
                claim = Claim(
                    family=family,
                    attribute=attribute,
                    groups=(pair.group, pair.reference),
                    label=label,
                    scale=main,
                    unit=unit,
                    delta=self.question.limit(unit),
                    model=self.place.model,
                    format=self.place.format,
                )
                made: dict[Scale, _Made] = {}
                for s, one in laid_out.items():
                    contrast, design = one.contrast(attribute, pair.group, pair.against)
                    y = measured[s][0]
                    made[s] = _Made(contrast, Rows(contrast.map @ y, design), y, taken_out[s], placebos[s])
                yield self._test(claim, made, pair, share)

    def _test(self, claim: Claim, made: Mapping[Scale, _Made], pair: Pair, share: float) -> Tested:
        decides = made[claim.scale]
        texts = len(np.unique(self.versions.units[decides.contrast.text]))
        claim = dataclasses.replace(claim, texts=texts, carriers=self.versions.carriers(decides.contrast))
        if texts < MIN_TEXTS:
            why = f"{texts} texts have a version about both; at least {MIN_TEXTS} are needed"
            return Tested(dataclasses.replace(claim, why=why))
        try:
            fits = {scale: fit(one.rows, one.taken_out, one.placebos) for scale, one in made.items()}
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
        return Tested(claim, weight, main, fits[compared], made[compared].rows, calls, missing)

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
