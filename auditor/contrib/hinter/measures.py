"""HInter's own measures, counted as the paper counts them.

Mutants are the units, without intervals, noise floor and controls, so that figures compare with Souani et al., 2025
(arXiv 2503.11962). `measures` counts one pair of attributes; `totals` is over all pairs, where a text counts once
however many pairs it was changed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np
from msgspec.structs import asdict

from auditor.core.record import RunRecord
from auditor.core.record.measured import HinterFigures, HinterPair, HinterTotals, Level, Split
from auditor.measure.observations import Arm, Observations
from auditor.measure.rates import PASS, VIOLATION
from auditor.report import run_checks, words
from auditor.report.document import Block, Table, Text, table

NOTE = (
    "Counted as in the HInter paper: mutants are the units, without repeats, controls or intervals. Mutants "
    "of one text are not independent, and a share of hidden changes without a noise floor is not evidence by "
    "itself."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """One mutant as HInter counts it."""

    id: str
    original: str
    attributes: tuple[str, ...]  # one (atomic) or two (joint)
    valid: bool  # passed the dependency invariant
    error: bool | None  # has another label than the original; None where it was not judged
    parts: tuple[str, ...] = ()  # ids of the atomic mutants of a joint one

    @property
    def wrong(self) -> bool:
        """Whether it is valid and has another label than its original (Algorithms 1 and 2)."""
        return self.valid and self.error is True


def count(mutants: Sequence[Mutant]) -> Level:
    """Count mutants of one order."""
    tested, rejected = ([m for m in mutants if m.valid is kept and m.error is not None] for kept in (True, False))
    return Level(
        generated=len(mutants),
        valid=sum(m.valid for m in mutants),
        discarded=sum(not m.valid for m in mutants),
        tested=len(tested),
        errors=sum(m.wrong for m in tested),
        originals=len({m.original for m in tested}),
        originals_with_error=len({m.original for m in tested if m.wrong}),
        discarded_tested=len(rejected),
        discarded_errors=sum(m.error is True for m in rejected),
    )


def split(joint: Iterable[Mutant], atomic: Mapping[str, Mutant]) -> Split:
    """Compare joint mutants with the atomic ones (by id) that they are put together from."""
    hidden = errors = with_atomic = 0
    parts: dict[str, bool] = {}  # atomic mutant -> whether a joint mutant with it is an error
    for mutant in joint:
        known = [atomic[part] for part in mutant.parts if part in atomic]
        for part in known:
            parts[part.id] = parts.get(part.id, False) or mutant.wrong
        if mutant.wrong:
            errors += 1
            with_atomic += any(part.wrong for part in known)
            hidden += len(known) == len(mutant.attributes) and all(p.valid and p.error is False for p in known)
    hits = [joint_error for part, joint_error in parts.items() if atomic[part].wrong]
    return Split(
        hidden=hidden,
        joint_only=errors - with_atomic,
        joint_with_atomic=with_atomic,
        atomic_only=len(hits) - sum(hits),
        atomic_with_joint=sum(hits),
    )


def measures(mutants: Iterable[Mutant]) -> list[HinterPair]:
    """Measure each pair of attributes that joint mutants change, sorted by pair.

    Mutants of three and more attributes are left out.
    """
    atomic, every = _by_order(mutants)
    joint: dict[tuple[str, ...], list[Mutant]] = {}
    for mutant in every:
        joint.setdefault(tuple(sorted(mutant.attributes)), []).append(mutant)
    return [
        HinterPair(
            attributes=pair,
            joint=count(joint[pair]),
            atomic={name: count([m for m in atomic.values() if m.attributes == (name,)]) for name in pair},
            **asdict(split(joint[pair], atomic)),
        )
        for pair in sorted(joint)
    ]


def _by_order(mutants: Iterable[Mutant]) -> tuple[dict[str, Mutant], list[Mutant]]:
    """Return atomic mutants by id, and joint ones of two attributes."""
    every = list(mutants)
    return {m.id: m for m in every if len(m.attributes) == 1}, [m for m in every if len(m.attributes) == 2]


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


def records(models: Mapping[str, Sequence[Mutant]]) -> dict[str, object]:
    """Return ``hinter`` and ``hinter_figures`` of the run record, by model."""
    counted = {name: totals(mutants) for name, mutants in models.items()}
    every = list(counted.values())
    joint, atomic = _added(Level, [row.joint for row in every]), _added(Level, [row.atomic for row in every])
    figures = HinterFigures(models=counted, all=_totals(joint, atomic, _added(Split, every)))
    pairs = {
        name: [msgspec.to_builtins(pair) | {"note": NOTE} for pair in measures(mutants)]
        for name, mutants in models.items()
    }
    return {"hinter": pairs, "hinter_figures": msgspec.to_builtins(figures)}


def mutants(valid: Observations, discarded: Observations, model: str, formats: Iterable[str]) -> Iterator[Mutant]:
    """Yield the mutants that one model was asked about; each format makes mutants of its own."""
    for one, kept in ((valid, True), (discarded, False)):
        judged, columns = one.judged(), one.columns()
        edited = np.array([s.arm == Arm.EDITED for s in one.shapes.values], dtype=bool)
        rows = np.flatnonzero(edited[columns.version_shape]).tolist()
        for name in formats:
            here = (judged.model == one.models.get(model)) & (judged.format == one.formats.get(name))
            outcome = np.full(len(columns.version_text), -1)
            outcome[judged.version[here]] = judged.outcome[here]
            for row in rows:
                yield Mutant(
                    id=f"{one.name(row)}@{name}",
                    original=one.texts.values[columns.version_text[row]],
                    attributes=one.shapes.values[columns.version_shape[row]].attributes,
                    valid=kept,
                    error={VIOLATION: True, PASS: False}.get(int(outcome[row])),
                    parts=tuple(f"{part}@{name}" for part in one.parts(row)),
                )


# -- three tables with the figures of the paper, filled with what a run measured -----------------------------


ALL = "all models"
Line = tuple[str, ...]


def share(part: int, whole: int) -> str:
    """Return a share with its counts."""
    return f"{words.percent(part / whole)} ({words.count(part)} of {words.count(whole)})" if whole else "none"


def blocks(record: RunRecord) -> Iterator[Block]:
    """Yield the tables of a run under ``--protocol hinter``, with what limits them."""
    yield from map(Text, run_checks.protocol_limits(record))
    if (counted := record.hinter_figures) is None:
        return
    rows = counted.models | ({ALL: counted.all} if len(counted.models) > 1 else {})
    noun = words.NOUNS.get(record.spec.kind or "classification", "answer")
    yield _pairs(record, rows, noun)
    yield _orders(rows, noun)
    yield _alone(rows, noun)


def _pairs(record: RunRecord, rows: dict[str, HinterTotals], noun: str) -> Table:
    lines = [
        _pair(words.attributes(pair.attributes), model, pair.joint, pair.hidden)
        for model, pairs in record.hinter.items()
        for pair in pairs
    ]
    lines += [_pair("all pairs", model, row.joint, row.hidden) for model, row in rows.items()]
    caption = (
        f"HInter, Table 9: valid joint mutants whose {noun} differs from their original's. Hidden: their atomic "
        f"mutants are valid and keep the {noun}"
    )
    return table(caption, "Pair | Model | #Mutants tested | #Changed | #Hidden, of the changed", lines)


def _pair(pair: str, model: str, joint: Level, hidden: int) -> Line:
    return pair, model, words.count(joint.tested), share(joint.errors, joint.tested), share(hidden, joint.errors)


def _orders(rows: dict[str, HinterTotals], noun: str) -> Table:
    lines = [
        (
            model,
            order,
            share(x.valid, x.generated),
            share(x.errors, x.tested),
            share(x.originals_with_error, x.originals),
            share(x.discarded_errors, x.errors + x.discarded_errors) if x.discarded_tested else "not asked",
        )
        for model, row in rows.items()
        for order, x in (("two attributes", row.joint), ("one attribute", row.atomic))
    ]
    caption = (
        f"HInter, Figures 4, 5, 7 and 8: mutants that the dependency invariant kept, and valid mutants whose {noun} "
        "changed. Last column: changes of discarded mutants (--test-discarded asks about these)"
    )
    columns = "Model | Mutants of | #Kept | #Changed | #Texts with a change | #Of discarded mutants"
    return table(caption, columns, lines)


def _alone(rows: dict[str, HinterTotals], noun: str) -> Table:
    parts = [(name, "joint", row.joint_only, row.joint_with_atomic) for name, row in rows.items()]
    parts += [(name, "atomic", row.atomic_only, row.atomic_with_joint) for name, row in rows.items()]
    lines = [(model, kind, share(a, a + b), share(b, a + b)) for model, kind, a, b in parts]
    caption = (
        f"HInter, Figure 10: mutants whose {noun} changed, alone (a joint mutant without a changed atomic part, "
        "or the reverse) and together with the other kind"
    )
    return table(caption, "Model | Mutants | #Alone | #With the other kind", lines)
