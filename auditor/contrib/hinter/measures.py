"""HInter's own measures, counted as the paper counts them.

Mutants are the units, without intervals, noise floor and controls, so that figures compare with Souani et al., 2025
(arXiv 2503.11962). `measures` counts one pair of attributes. Table 9 and Figures 4, 5, 7, 8 and 10 are over all pairs:
there a text counts once however many pairs it was changed in, so `totals` is not the sum of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from msgspec.structs import asdict

from auditor.core.record.searches import HinterTotals, Level, Split
from auditor.measure.observations import Arm, Observations
from auditor.measure.rates import PASS, VIOLATION

NOTE = (
    "Counted as in the HInter paper: mutants are the units, without repeats, controls or intervals. Mutants "
    "of one text are not independent, and a share of hidden changes without a noise floor is not evidence by "
    "itself."
)
REGIONS = ("joint", "first+joint", "second+joint", "first+second+joint", "first+second", "first", "second", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """One mutant as HInter counts it."""

    id: str
    original: str
    attributes: tuple[str, ...]  # one (atomic) or two (joint)
    valid: bool  # passed the dependency invariant
    error: bool | None  # has another label than the original; None where it was not judged
    parts: tuple[str, ...] = ()  # ids of the atomic mutants of a joint one


def count(mutants: Sequence[Mutant]) -> Level:
    """Count mutants of one order."""
    tested, rejected = ([m for m in mutants if m.valid is kept and m.error is not None] for kept in (True, False))
    return Level(
        generated=len(mutants),
        valid=sum(m.valid for m in mutants),
        discarded=sum(not m.valid for m in mutants),
        tested=len(tested),
        errors=sum(map(is_error, tested)),
        originals=len({m.original for m in tested}),
        originals_with_error=len({m.original for m in tested if is_error(m)}),
        discarded_tested=len(rejected),
        discarded_errors=sum(m.error is True for m in rejected),
    )


def _shares(level: Level) -> dict[str, object]:
    """Return counts and shares; shares are None where nothing was counted."""
    lost = _ratio(level.discarded_errors, level.errors + level.discarded_errors)
    return {
        **asdict(level),
        "valid_share": _ratio(level.valid, level.generated),
        "error_rate": _ratio(level.errors, level.tested),
        "originals_with_error_share": _ratio(level.originals_with_error, level.originals),
        "false_positive_share": lost if level.discarded_tested else None,
    }


def split(joint: Iterable[Mutant], atomic: Mapping[str, Mutant]) -> Split:
    """Compare joint mutants with the atomic ones (by id) that they are put together from."""
    hidden = errors = with_atomic = 0
    parts: dict[str, bool] = {}  # atomic mutant -> whether a joint mutant with it is an error
    for mutant in joint:
        error = is_error(mutant)
        known = [atomic[part] for part in mutant.parts if part in atomic]
        for part in known:
            parts[part.id] = parts.get(part.id, False) or error
        if error:
            errors += 1
            with_atomic += any(is_error(part) for part in known)
            hidden += len(known) == len(mutant.attributes) and all(p.valid and p.error is False for p in known)
    hits = [joint_error for part, joint_error in parts.items() if is_error(atomic[part])]
    return Split(
        hidden=hidden,
        joint_only=errors - with_atomic,
        joint_with_atomic=with_atomic,
        atomic_only=len(hits) - sum(hits),
        atomic_with_joint=sum(hits),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PairMeasures:
    """HInter's measures of one pair of attributes.

    ``texts`` counts the original texts with a judged joint mutant by the mutants that show an error on them, for all of
    `REGIONS` (Figure 11): atomic mutants of the first or second attribute, and joint ones.
    """

    attributes: tuple[str, str]
    joint: Level
    atomic: Mapping[str, Level]
    split: Split
    texts: Mapping[str, int]

    @property
    def originals(self) -> dict[str, int]:
        """Count original texts by the order of their errors."""
        joint, both, atomic = self.texts["joint"], sum(self.texts[r] for r in REGIONS[1:4]), REGIONS[4:7]
        alone = sum(self.texts[region] for region in atomic)
        return {"joint_only": joint, "atomic_only": alone, "both": both, "neither": self.texts[""]}

    def as_record(self) -> dict[str, object]:
        """Return counts and shares, with the note on how they are counted."""
        split = asdict(self.split)
        hidden, alone = split.pop("hidden"), split.pop("joint_only")
        return {
            "attributes": list(self.attributes),
            "joint": _shares(self.joint),
            "atomic": {name: _shares(level) for name, level in sorted(self.atomic.items())},
            "hidden": hidden,
            "hidden_share": _ratio(hidden, self.joint.errors),
            "mutants": {"joint_only": alone, "joint_only_share": _ratio(alone, self.joint.errors), **split},
            "originals": self.originals,
            "note": NOTE,
        }


def measures(mutants: Iterable[Mutant]) -> list[PairMeasures]:
    """Measure each pair of attributes that joint mutants change, sorted by pair.

    Errors are those of valid mutants (Algorithms 1 and 2); mutants of three and more attributes are left out.

    Examples
    --------
    >>> (pair,) = measures([
    ...     Mutant(id="a", original="o", attributes=("gender",), valid=True, error=False),
    ...     Mutant(id="b", original="o", attributes=("race",), valid=True, error=False),
    ...     Mutant(id="ab", original="o", attributes=("gender", "race"), valid=True, error=True,
    ...            parts=("a", "b")),
    ... ])
    >>> pair.split.hidden, pair.originals["joint_only"], pair.texts["joint"]
    (1, 1, 1)
    """
    atomic, every = _by_order(mutants)
    joint: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in every:
        first, second = sorted(mutant.attributes)
        joint.setdefault((first, second), []).append(mutant)
    return [_pair(pair, joint[pair], atomic) for pair in sorted(joint)]


def _by_order(mutants: Iterable[Mutant]) -> tuple[dict[str, Mutant], list[Mutant]]:
    """Return atomic mutants by id, and joint ones of two attributes."""
    every = list(mutants)
    return {m.id: m for m in every if len(m.attributes) == 1}, [m for m in every if len(m.attributes) == 2]


def _pair(pair: tuple[str, str], joint: Sequence[Mutant], atomic: Mapping[str, Mutant]) -> PairMeasures:
    singles = {name: [m for m in atomic.values() if m.attributes == (name,)] for name in pair}
    kinds = {"first": singles[pair[0]], "second": singles[pair[1]], "joint": joint}
    wrong = {kind: {m.original for m in rows if is_error(m)} for kind, rows in kinds.items()}
    texts = dict.fromkeys(REGIONS, 0)
    for original in {m.original for m in joint if m.valid and m.error is not None}:
        texts["+".join(kind for kind, originals in wrong.items() if original in originals)] += 1
    return PairMeasures(
        attributes=pair,
        joint=count(joint),
        atomic={name: count(rows) for name, rows in singles.items()},
        split=split(joint, atomic),
        texts=texts,
    )


def totals(mutants: Iterable[Mutant]) -> HinterTotals:
    """Count the mutants of one model, whatever their attributes; those of three and more are left out."""
    atomic, joint = _by_order(mutants)
    return _totals(count(joint), count(list(atomic.values())), split(joint, atomic))


def _totals(joint: Level, atomic: Level, parted: Split) -> HinterTotals:
    return HinterTotals(joint=joint, atomic=atomic, both=_added(Level, [joint, atomic]), **asdict(parted))


Counts = TypeVar("Counts", Level, Split)


def _added(kind: type[Counts], rows: Sequence[Counts]) -> Counts:
    """Add up counts; over models, a text counts once for each of them."""
    return kind(**{name: sum(getattr(row, name) for row in rows) for name in kind.__struct_fields__})


def figures(row: HinterTotals) -> dict[str, object]:
    """Return counts and shares; of both orders together without texts, which would count twice."""
    both = {name: value for name, value in _shares(row.both).items() if not name.startswith("originals")}
    parted = {name: getattr(row, name) for name in Split.__struct_fields__}
    return {"joint": _shares(row.joint), "atomic": _shares(row.atomic), "both": both, **parted}


def records(models: Mapping[str, Sequence[Mutant]]) -> dict[str, object]:
    """Return ``hinter`` and ``hinter_figures`` of the run record, by model."""
    pairs = {name: measures(mutants) for name, mutants in models.items()}
    counted = {name: totals(mutants) for name, mutants in models.items()}
    every = list(counted.values())
    joint, atomic = _added(Level, [row.joint for row in every]), _added(Level, [row.atomic for row in every])
    regions = {name: [{"attributes": list(p.attributes), "counts": p.texts} for p in pairs[name]] for name in models}
    return {
        "hinter": {name: [pair.as_record() for pair in pairs[name]] for name in models},
        "hinter_figures": {
            "models": {name: figures(row) | {"regions": regions[name]} for name, row in counted.items()},
            "all": figures(_totals(joint, atomic, _added(Split, every))),
        },
    }


def is_error(mutant: Mutant) -> bool:
    """Return whether a valid mutant got another label than its original."""
    return mutant.valid and mutant.error is True


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def mutants(valid: Observations, discarded: Observations, model: str, formats: Iterable[str]) -> Iterator[Mutant]:
    """Yield the mutants that one model was asked about; each format makes mutants of its own."""
    for table, kept in ((valid, True), (discarded, False)):
        judged, columns = table.judged(), table.columns()
        edited = np.array([s.arm == Arm.EDITED for s in table.shapes.values], dtype=bool)
        rows = np.flatnonzero(edited[columns.version_shape]).tolist()
        for name in formats:
            here = (judged.model == table.models.get(model)) & (judged.format == table.formats.get(name))
            outcome = np.full(len(columns.version_text), -1)
            outcome[judged.version[here]] = judged.outcome[here]
            for row in rows:
                yield Mutant(
                    id=f"{table.name(row)}@{name}",
                    original=table.texts.values[columns.version_text[row]],
                    attributes=table.shapes.values[columns.version_shape[row]].attributes,
                    valid=kept,
                    error={VIOLATION: True, PASS: False}.get(int(outcome[row])),
                    parts=tuple(f"{part}@{name}" for part in table.parts(row)),
                )
