"""Claims of the families "net" and "refusal": one group against others, whichever was the original."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from auditor.measure import contrasts
from auditor.measure.adjustment import Adjustment, Unidentified
from auditor.measure.claims import MIN_TEXTS, OTHERS, PRIMARY, About, Claim, Family, Question, Scale
from auditor.measure.contrasts import Bools, Contrast, Value, Versions
from auditor.measure.enough import FEW, texts_needed
from auditor.measure.likelihood import Floats, Known
from auditor.measure.linear import Rows, fit
from auditor.measure.observations import STATUS, Arm, Columns, Observations, attributes_of
from auditor.measure.verdicts import Tested, filled, rare

EXAMPLES = 5


def tested(
    observations: Observations, columns: Columns, versions: Versions, family: Family, question: Question
) -> Iterator[Tested]:
    """The claims of one family, for each model, format, label and attribute."""
    for model, model_name in enumerate(observations.models.values):
        for format, format_name in enumerate(observations.formats.values):
            rows = (columns.model == model) & (columns.format == format)
            if not rows.any():
                continue
            table = _Table(observations, columns, versions, rows, About(model_name, format_name), question)
            if family == "refusal":
                silent: Measured = {"share": contrasts.outcome_means(columns, rows, contrasts.silence)}
                if silent["share"][0].any():
                    yield from table.claims(family, "", silent, 1.0)
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


def _shared(found: Sequence[tuple[str, str, tuple[str, ...]]], total: float = 1.0) -> list[Pair]:
    return [Pair(*one, total / len(found)) for one in found]


Measured = Mapping[Scale, tuple[Floats, Bools]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Table:
    """The answers of one model in one format."""

    observations: Observations
    columns: Columns
    versions: Versions
    rows: Bools
    about: About
    question: Question

    def claims(self, family: Family, label: str, measured: Measured, share: float) -> Iterator[Tested]:
        """Of all attributes; ``measured`` has outcomes by scale, the deciding one first."""
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
                    model=self.about.model,
                    format=self.about.format,
                )
                made = {s: one.contrast(attribute, pair.group, pair.against) for s, one in laid_out.items()}
                contrast = {s: both[0] for s, both in made.items()}
                rows = {s: Rows(contrast[s].map @ measured[s][0], design) for s, (_, design) in made.items()}
                yield self._test(claim, contrast, rows, measured, taken_out, placebos, pair, share)

    def _test(
        self,
        claim: Claim,
        made: Mapping[Scale, Contrast],
        rows: Mapping[Scale, Rows],
        measured: Measured,
        taken_out: Mapping[Scale, Adjustment],
        placebos: Mapping[Scale, Sequence[Known]],
        pair: Pair,
        share: float,
    ) -> Tested:
        texts = len(np.unique(self.versions.units[made[claim.scale].text]))
        sides = made[claim.scale].sides
        carriers = self.versions.carriers(made[claim.scale])
        claim = dataclasses.replace(claim, texts=texts, carriers=carriers)
        if texts < MIN_TEXTS:
            why = f"{texts} texts have a version about both; at least {MIN_TEXTS} are needed"
            return Tested(dataclasses.replace(claim, why=why))
        compared: Scale = "share" if claim.scale == "log_odds" else claim.scale
        try:
            fits = {scale: fit(rows[scale], taken_out[scale], placebos[scale]) for scale in made}
        except Unidentified as error:
            return Tested(dataclasses.replace(claim, why=str(error)))
        if "share" in fits:
            fits["share"] = rare(fits["share"], rows["share"])
            claim = dataclasses.replace(claim, shares=made["share"].levels(measured["share"][0]))
        main = fits[claim.scale]
        level = self.question.level(claim.attribute)
        claim = filled(claim, main, fits.get("share"), level=level)
        claim = dataclasses.replace(
            claim, examples=self._examples(made[claim.scale], measured[claim.scale][0], main.these.value)
        )
        used = np.zeros(len(self.versions.text), dtype=bool)
        used[made[compared].map.indices] = True
        calls = int((self.rows & used[self.columns.version]).sum())
        missing = max(0, pair.needed(claim.scale) - sides)
        weight = pair.of(sides, claim.scale) * share
        return Tested(claim, weight, main, fits[compared], rows[compared], calls, missing)

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
