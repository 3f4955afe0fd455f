"""HInter's own measures, counted as the paper counts them.

Mutants are the units here and there is no interval, no noise floor and no control, so that figures can be
laid beside those of Souani et al., 2025 (arXiv 2503.11962): error rate, hidden share and originals with an
error of RQ1 (Table 9, Figures 4 and 5), valid and discarded mutants of RQ3.1 (Figure 7), and the split into
atomic only, joint only and both of RQ4 (Figures 10 and 11).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from auditor.measure.observations import Arm, Observations
from auditor.measure.rates import PASS, VIOLATION

NOTE = (
    "Counted as in the HInter paper: mutants are the units, without repeats, controls or intervals. Mutants "
    "of one text are not independent, and a share of hidden changes without a noise floor is not evidence by "
    "itself."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """One mutant as HInter counts it.

    Attributes
    ----------
    id, original : str
        Its id, and that of its original text.
    attributes : tuple of str
        One (atomic) or two (joint).
    valid : bool
        Whether it passed the dependency invariant.
    error : bool or None
        Whether the label differs from the original's; None if it was not asked or not judged.
    parts : tuple of str
        Ids of the atomic mutants of a joint one.
    """

    id: str
    original: str
    attributes: tuple[str, ...]
    valid: bool
    error: bool | None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """Counts of one order of mutants. Rates are None where nothing was counted.

    Attributes
    ----------
    generated, valid, discarded : int
        Mutants, and how many of them the invariant kept and rejected (RQ3.1).
    tested, errors : int
        Valid mutants that were judged, and those with another label than their original.
    originals, originals_with_error : int
        Texts with a tested mutant, and those with an error among them.
    discarded_tested, discarded_errors : int
        The same as ``tested`` and ``errors`` for discarded mutants, where the run asks about them (RQ3.2): what
        a tester without the invariant would have looked at in vain.
    """

    generated: int
    valid: int
    discarded: int
    tested: int
    errors: int
    originals: int
    originals_with_error: int
    discarded_tested: int = 0
    discarded_errors: int = 0

    def as_record(self) -> dict[str, object]:
        """Counts and shares as plain data."""
        return {
            **asdict(self),
            "valid_share": _ratio(self.valid, self.generated),
            "error_rate": _ratio(self.errors, self.tested),
            "originals_with_error_share": _ratio(self.originals_with_error, self.originals),
            "false_positive_share": _ratio(self.discarded_errors, self.errors + self.discarded_errors)
            if self.discarded_tested
            else None,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """Joint and atomic errors laid beside each other (RQ1, RQ4.1).

    Attributes
    ----------
    hidden : int
        Joint errors all of whose atomic mutants are valid and no errors.
    joint_only, joint_with_atomic : int
        Joint errors without and with an atomic error among their parts.
    atomic_only, atomic_with_joint : int
        Atomic errors without and with an error among the joint mutants that they are a part of; atomic mutants
        that are part of no joint one are left out.
    """

    hidden: int
    joint_only: int
    joint_with_atomic: int
    atomic_only: int
    atomic_with_joint: int

    def as_record(self) -> dict[str, int]:
        """Counts as plain data."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairMeasures:
    """HInter's measures of one pair of attributes.

    Attributes
    ----------
    attributes : (str, str)
        The pair.
    joint : Level
        Mutants that change both.
    atomic : mapping of str to Level
        Mutants that change one, by attribute.
    hidden : int
        Joint errors both of whose atomic mutants are valid and no errors.
    joint_errors_only, joint_errors_both : int
        Joint errors without and with an atomic error among their parts (RQ4.1).
    atomic_errors_only, atomic_errors_both : int
        Atomic errors without and with an error among the joint mutants that they are a part of (RQ4.1);
        atomic mutants that are part of no joint one are left out.
    originals : mapping of str to int
        Original texts with errors, "joint_only", "atomic_only", "both" and "neither" (RQ4.2); those with at
        least one judged joint mutant.
    """

    attributes: tuple[str, str]
    joint: Level
    atomic: Mapping[str, Level]
    hidden: int
    joint_errors_only: int
    joint_errors_both: int
    atomic_errors_only: int
    atomic_errors_both: int
    originals: Mapping[str, int]

    def as_record(self) -> dict[str, object]:
        """Counts and shares as plain data, with the note that says how they are counted."""
        return {
            "attributes": list(self.attributes),
            "joint": self.joint.as_record(),
            "atomic": {name: level.as_record() for name, level in sorted(self.atomic.items())},
            "hidden": self.hidden,
            "hidden_share": _ratio(self.hidden, self.joint.errors),
            "mutants": {
                "joint_only": self.joint_errors_only,
                "joint_only_share": _ratio(self.joint_errors_only, self.joint.errors),
                "joint_with_atomic": self.joint_errors_both,
                "atomic_only": self.atomic_errors_only,
                "atomic_with_joint": self.atomic_errors_both,
            },
            "originals": dict(self.originals),
            "note": NOTE,
        }


def measures(mutants: Iterable[Mutant]) -> list[PairMeasures]:
    """Measures of each pair of attributes that joint mutants change, sorted by pair.

    Errors are those of valid mutants (Algorithms 1 and 2); mutants of three and more attributes are left out.

    Examples
    --------
    >>> found = measures([
    ...     Mutant(id="a", original="o", attributes=("gender",), valid=True, error=False),
    ...     Mutant(id="b", original="o", attributes=("race",), valid=True, error=False),
    ...     Mutant(id="ab", original="o", attributes=("gender", "race"), valid=True, error=True,
    ...            parts=("a", "b")),
    ... ])
    >>> found[0].hidden, found[0].originals["joint_only"]
    (1, 1)
    """
    atomic: dict[str, Mutant] = {}
    joint: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants:
        if len(mutant.attributes) == 1:
            atomic[mutant.id] = mutant
        elif len(mutant.attributes) == 2:
            first, second = sorted(mutant.attributes)
            joint.setdefault((first, second), []).append(mutant)
    return [_pair(pair, joint[pair], atomic) for pair in sorted(joint)]


def _pair(pair: tuple[str, str], joint: Sequence[Mutant], atomic: Mapping[str, Mutant]) -> PairMeasures:
    singles = {name: [m for m in atomic.values() if m.attributes == (name,)] for name in pair}
    found = split(joint, atomic)
    return PairMeasures(
        attributes=pair,
        joint=level(joint),
        atomic={name: level(mutants) for name, mutants in singles.items()},
        hidden=found.hidden,
        joint_errors_only=found.joint_only,
        joint_errors_both=found.joint_with_atomic,
        atomic_errors_only=found.atomic_only,
        atomic_errors_both=found.atomic_with_joint,
        originals=_originals(joint, [m for mutants in singles.values() for m in mutants]),
    )


def split(joint: Iterable[Mutant], atomic: Mapping[str, Mutant]) -> Split:
    """Compare joint mutants with the atomic ones that they are put together from.

    Parameters
    ----------
    joint : iterable of Mutant
        Of one pair of attributes or of several.
    atomic : mapping of str to Mutant
        By id.
    """
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


def _originals(joint: Sequence[Mutant], atomic: Sequence[Mutant]) -> dict[str, int]:
    tested = {m.original for m in joint if m.valid and m.error is not None}
    by_joint = {m.original for m in joint if is_error(m)}
    by_atomic = {m.original for m in atomic if is_error(m)} & tested
    return {
        "joint_only": len(by_joint - by_atomic),
        "atomic_only": len(by_atomic - by_joint),
        "both": len(by_joint & by_atomic),
        "neither": len(tested - by_joint - by_atomic),
    }


def level(mutants: Sequence[Mutant]) -> Level:
    """Count mutants of one order."""
    tested = [m for m in mutants if m.valid and m.error is not None]
    rejected = [m for m in mutants if not m.valid and m.error is not None]
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


def is_error(mutant: Mutant) -> bool:
    """Whether a valid mutant got another label than its original."""
    return mutant.valid and mutant.error is True


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def mutants(valid: Observations, discarded: Observations, model: str, formats: Iterable[str]) -> Iterator[Mutant]:
    """The mutants of a run that one model was asked about; each format makes mutants of its own.

    Parameters
    ----------
    valid, discarded : Observations
        Mutants that the invariant kept, and those that it rejected; versions know their parts.
    """
    for table, kept in ((valid, True), (discarded, False)):
        told, columns = table.judged(), table.columns()
        edited = np.array([s.arm == Arm.EDITED for s in table.shapes.values], dtype=bool)
        rows = np.flatnonzero(edited[columns.version_shape]).tolist()
        for name in formats:
            here = (told.model == table.models.get(model)) & (told.format == table.formats.get(name))
            outcome = np.full(len(columns.version_text), -1)
            outcome[told.version[here]] = told.outcome[here]
            for row in rows:
                yield Mutant(
                    id=f"{table.name(row)}@{name}",
                    original=table.texts.values[columns.version_text[row]],
                    attributes=table.shapes.values[columns.version_shape[row]].attributes,
                    valid=kept,
                    error={VIOLATION: True, PASS: False}.get(int(outcome[row])),
                    parts=tuple(f"{part}@{name}" for part in table.parts(row)),
                )
