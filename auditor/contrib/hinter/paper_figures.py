"""Three tables with the figures of the HInter paper (Souani et al., 2025), filled with what a run measured."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.core.record import RunRecord
from auditor.core.record.measured import HinterTotals, Level
from auditor.report import run_checks, words
from auditor.report.document import Block, Table, Text, table

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
