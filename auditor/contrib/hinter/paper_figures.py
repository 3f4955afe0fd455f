"""The tables and figures of the HInter paper (Souani et al., 2025) as tables, filled with what a run measured.

Shown under ``--protocol hinter``, from ``hinter`` and ``hinter_figures`` of the run record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from auditor.core.record import RunRecord
from auditor.core.record.searches import HinterPair, HinterTotals, Level
from auditor.report import run_checks, words
from auditor.report.document import Block, Text, table

Line = tuple[str, ...]
Order = Literal["both", "joint", "atomic"]
ALL = "all models"
RIGHT = frozenset(
    {"Mutants tested", "Changed", "Hidden", "Texts", "Texts with a change", "Generated", "Kept", "Discarded"}
)
ORDERS: dict[Order, str] = {"both": "(a) all mutants", "joint": "(b) two attributes", "atomic": "(c) one attribute"}


class Figure(NamedTuple):
    """One table or figure of the paper: what was measured, as a table; no lines where nothing was."""

    title: str
    note: str
    columns: str
    lines: Sequence[Line]


def share(part: int, whole: int) -> str:
    """Return a share with its counts.

    Examples
    --------
    >>> share(3, 40), share(0, 0)
    ('7.5 % (3 of 40)', 'none')
    """
    return f"{words.percent(part / whole)} ({words.count(part)} of {words.count(whole)})" if whole else "none"


def _of(row: HinterTotals, order: Order) -> Level:
    return {"both": row.both, "joint": row.joint, "atomic": row.atomic}[order]


def build(record: RunRecord) -> tuple[Figure, ...]:
    """Return the figures; none where the run was not under ``--protocol hinter``."""
    counted = record.hinter_figures
    if counted is None:
        return ()
    models = counted.models
    rows = models | ({ALL: counted.all} if len(models) > 1 else {})
    noun = words.outcome_noun(record.spec.kind or "classification")
    return (
        _pairs(record.hinter, rows, noun),
        _errors("Figure 4", "joint", rows, noun),
        _errors("Figure 5", "atomic", rows, noun),
        _kept(models),
        _false_positives(rows, noun),
        _mutants(rows, noun),
        _texts(models, noun),
    )


def _pairs(pairs: Mapping[str, Sequence[HinterPair]], rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    sums: dict[tuple[str, str], tuple[int, int, int]] = {}
    for model, measured in pairs.items():
        for one in measured:
            for name in (model, ALL):
                key = words.attributes(one.attributes), name
                tested, changed, hidden = sums.get(key, (0, 0, 0))
                sums[key] = tested + one.joint.tested, changed + one.joint.errors, hidden + one.hidden
    cells = {(pair, n): sums[pair, n] for pair in sorted({p for p, _ in sums}) for n in rows if (pair, n) in sums}
    cells |= {("all pairs", name): (row.joint.tested, row.joint.errors, row.hidden) for name, row in rows.items()}
    return Figure(
        "Table 9: joint changes, and the hidden ones among them",
        f"Share of valid joint mutants whose {noun} differs from their original's, and how many of these have "
        f"atomic mutants that are valid and keep the {noun}. The paper has data sets in its rows; a run has one "
        "task, so its rows are pairs of attributes.",
        "Pair | Model | Mutants tested | Changed | Hidden, of the changed",
        [
            (pair, name, words.count(tested), share(changed, tested), share(hidden, changed))
            for (pair, name), (tested, changed, hidden) in cells.items()
        ],
    )


def _errors(number: str, order: Order, rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    levels = {name: _of(row, order) for name, row in rows.items()}
    return Figure(
        f"{number}: {order} changes by model",
        f"(a) Share of valid mutants of {'two attributes' if order == 'joint' else 'one attribute'} whose {noun} "
        "changed. (b) Share of original texts with at least one of them"
        f"{'; over all models, a text counts once for each' if ALL in rows else ''}.",
        "Model | Mutants tested | (a) Changed | Texts | (b) Texts with a change",
        [
            (
                name,
                words.count(x.tested),
                share(x.errors, x.tested),
                words.count(x.originals),
                share(x.originals_with_error, x.originals),
            )
            for name, x in levels.items()
        ],
    )


def _kept(models: Mapping[str, HinterTotals]) -> Figure:
    # Every model gets the same mutants, once for each format it is asked in.
    first = min(models.values(), key=lambda row: row.both.generated, default=None)
    levels = {label: _of(first, order) for order, label in ORDERS.items()} if first is not None else {}
    return Figure(
        "Figure 7: valid and discarded mutants",
        "Mutants that the dependency invariant kept and those it discarded, whatever a model answers.",
        "Mutants | Generated | Kept | Discarded",
        [
            (label, words.count(x.generated), share(x.valid, x.generated), share(x.discarded, x.generated))
            for label, x in levels.items()
        ],
    )


def _false_positives(rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    asked = {name: row for name, row in rows.items() if row.both.discarded_tested}
    judged = "; ".join(
        f"{n}: {words.count(row.both.discarded_tested)} of {words.count(row.both.discarded)}"
        for n, row in asked.items()
    )
    lines = []
    for name, row in asked.items():
        for order, label in ORDERS.items():
            kept, lost = _of(row, order).errors, _of(row, order).discarded_errors
            lines.append((name, label, share(kept, kept + lost), share(lost, kept + lost)))
    return Figure(
        "Figure 8: changes of valid and of discarded mutants",
        f"Of all mutants whose {noun} changed, those that the invariant had kept and those it had discarded. "
        + (
            f"Discarded mutants judged: {judged}."
            if asked
            else "The mutants that the invariant discarded were not asked about; --test-discarded does so."
        ),
        "Model | Mutants | Of valid mutants | Of discarded mutants",
        lines,
    )


def _mutants(rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    parts = [(name, "(a) joint", row.joint_only, row.joint_with_atomic) for name, row in rows.items()]
    parts += [(name, "(b) atomic", row.atomic_only, row.atomic_with_joint) for name, row in rows.items()]
    return Figure(
        "Figure 10: mutants that change the answer jointly, alone, or both",
        f"(a) Of joint mutants whose {noun} changed, those none of whose atomic parts did so: testing one "
        "attribute at a time misses them. (b) Of atomic mutants that are part of a joint one and changed the "
        f"{noun}, those in none of whose joint mutants it changed.",
        "Model | Mutants | Alone | With the other kind",
        [
            (name, f"{kind} mutants that change it", share(alone, alone + both), share(both, alone + both))
            for name, kind, alone, both in parts
        ],
    )


def _texts(models: Mapping[str, HinterTotals], noun: str) -> Figure:
    lines = []
    for model, row in models.items():
        for one in row.regions:
            pair, names = words.attributes(one.attributes), dict(zip(("first", "second"), one.attributes, strict=True))
            counts = {key: n for key, n in one.counts.items() if key and n}
            for key, n in counts.items():
                said = " + ".join(names.get(part, part) for part in key.split("+"))
                lines.append((model, pair, f"{said} only", share(n, sum(counts.values()))))
            lines.append((model, pair, "nothing", words.count(one.counts.get("", 0))))
    return Figure(
        "Figure 11: original texts by the changes that show on them",
        "Texts with at least one valid joint mutant that was judged, by the mutants for which the "
        f"{noun} changed: those of either attribute alone, and joint ones. Shares are of the texts with any change. "
        "Combinations that no text shows are left out.",
        "Model | Pair | Changed by | Texts",
        lines,
    )


def blocks(record: RunRecord) -> Iterator[Block]:
    """Return the paper's own counting, and its tables and figures, as parts of a report."""
    lines = (
        (
            model,
            words.attributes(pair.attributes),
            _counted(pair.joint.errors, pair.joint.tested),
            "; ".join(f"{a}: {_counted(x.errors, x.tested)}" for a, x in pair.atomic.items()),
            _counted(pair.hidden, pair.joint.errors),
            _counted(pair.joint.valid, pair.joint.generated),
        )
        for model, pairs in record.hinter.items()
        for pair in pairs
    )
    columns = "Model | Pair | Joint errors | Atomic errors | Hidden | Valid, joint"
    yield table("The paper's own counting: every mutant alike, no intervals", columns, lines)
    yield from map(Text, run_checks.protocol_limits(record))
    for figure in build(record):
        title = f"HInter, {figure.title}"
        yield Text(f"{title}: {figure.note}")
        if figure.lines:
            yield table(title, figure.columns, figure.lines, right=RIGHT)


def _counted(part: int, whole: int) -> str:
    return share(part, whole) if whole else f"none ({words.count(part)} of 0)"
