"""The tables and figures of the HInter paper (Souani et al., 2025), filled with what a run measured.

Shown under ``--protocol hinter``, from ``hinter`` and ``hinter_figures`` of the run record. Pies and Venn
diagrams of the paper are bars here: lengths compare, and every bar carries its figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from auditor.core.record import RunRecord
from auditor.core.record.searches import HinterPair, HinterTotals, Level
from auditor.report import words

Line = tuple[str, ...]
ALL = "all models"
RIGHT = frozenset(
    {"Mutants tested", "Changed", "Hidden", "Texts", "Texts with a change", "Generated", "Kept", "Discarded"}
)
ASK = "The mutants that the invariant discarded were not asked about; --test-discarded does so."


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One share of a chart: ``part`` of ``whole``; ``kind`` is its class in the style sheet."""

    label: str
    part: int
    whole: int
    kind: str = "joint"

    @property
    def text(self) -> str:
        """Write the share with its counts."""
        return share(self.part, self.whole)


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One table or figure of the paper, as a table and a chart.

    Attributes
    ----------
    key : str
        Prefix of element ids.
    title : str
        Which one of the paper, and what it shows.
    note : str
        What was measured here.
    columns, lines
        The table; no lines where nothing was measured.
    bars : tuple of (str, tuple of Bar)
        The chart, under headings.
    """

    key: str
    title: str
    note: str
    columns: Line
    lines: tuple[Line, ...]
    bars: tuple[tuple[str, tuple[Bar, ...]], ...]


Order = Literal["both", "joint", "atomic"]


def _of(row: HinterTotals, order: Order) -> Level:
    return {"both": row.both, "joint": row.joint, "atomic": row.atomic}[order]


def share(part: int, whole: int) -> str:
    """``7.5 % (3 of 40)``.

    Examples
    --------
    >>> share(3, 40), share(0, 0)
    ('7.5 % (3 of 40)', 'none')
    """
    return f"{words.percent(part / whole)} ({words.count(part)} of {words.count(whole)})" if whole else "none"


def build(record: RunRecord) -> tuple[Figure, ...]:
    """Lay out the figures; none where the run was not under ``--protocol hinter``."""
    counted = record.hinter_figures
    if counted is None:
        return ()
    models = counted.models
    rows = models | ({ALL: counted.all} if len(models) > 1 else {})
    noun = words.outcome_noun(record.spec.kind or "classification")
    return (
        _table9(record.hinter, rows, noun),
        _errors("4", "joint", rows, noun),
        _errors("5", "atomic", rows, noun),
        _kept(models),
        _false_positives(rows, noun),
        _mutants(rows, noun),
        _texts(models, noun),
    )


def _table9(pairs: Mapping[str, Sequence[HinterPair]], rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    by_pair: dict[str, dict[str, list[int]]] = {}
    for model, measured in pairs.items():
        for one in measured:
            found = by_pair.setdefault(words.attributes(one.attributes), {})
            for name in (model, ALL):
                cell = found.setdefault(name, [0, 0, 0])
                for i, n in enumerate((one.joint.tested, one.joint.errors, one.hidden)):
                    cell[i] += n
    cells = {(pair, name): found[name] for pair, found in sorted(by_pair.items()) for name in rows if name in found}
    for name, row in rows.items():
        cells["all pairs", name] = [row.joint.tested, row.joint.errors, row.hidden]
    headings = list(dict.fromkeys(pair for pair, _ in cells))
    return Figure(
        key="t9",
        title="Table 9: joint changes, and the hidden ones among them",
        note=f"Share of valid joint mutants whose {noun} differs from their original's, and how many of these have "
        f"atomic mutants that are valid and keep the {noun}. The paper has data sets in its rows; a run has one "
        "task, so its rows are pairs of attributes.",
        columns=("Pair", "Model", "Mutants tested", "Changed", "Hidden, of the changed"),
        lines=tuple(
            (pair, name, words.count(tested), share(changed, tested), share(hidden, changed))
            for (pair, name), (tested, changed, hidden) in cells.items()
        ),
        bars=tuple(
            (
                heading,
                tuple(
                    bar
                    for (pair, name), (tested, changed, hidden) in cells.items()
                    if pair == heading
                    for bar in (
                        Bar(label=f"{name}, changed", part=changed, whole=tested),
                        Bar(label=f"{name}, hidden", part=hidden, whole=changed, kind="hidden"),
                    )
                ),
            )
            for heading in headings
        ),
    )


def _errors(number: str, order: Order, rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    which = "two attributes" if order == "joint" else "one attribute"
    levels = {name: _of(row, order) for name, row in rows.items()}
    a, b = (f"({part}) {what}" for part, what in (("a", "mutants"), ("b", "original texts")))
    return Figure(
        key=f"f{number}",
        title=f"Figure {number}: {order} changes by model",
        note=f"(a) Share of valid mutants of {which} whose {noun} changed. (b) Share of original texts with at least "
        f"one of them{'; over all models, a text counts once for each' if ALL in rows else ''}.",
        columns=("Model", "Mutants tested", "(a) Changed", "Texts", "(b) Texts with a change"),
        lines=tuple(
            (
                name,
                words.count(x.tested),
                share(x.errors, x.tested),
                words.count(x.originals),
                share(x.originals_with_error, x.originals),
            )
            for name, x in levels.items()
        ),
        bars=(
            (a, tuple(Bar(label=n, part=x.errors, whole=x.tested) for n, x in levels.items())),
            (b, tuple(Bar(label=n, part=x.originals_with_error, whole=x.originals) for n, x in levels.items())),
        ),
    )


ORDERS: dict[Order, str] = {"both": "(a) all mutants", "joint": "(b) two attributes", "atomic": "(c) one attribute"}


def _kept(models: Mapping[str, HinterTotals]) -> Figure:
    # Every model gets the same mutants, once for each format it is asked in.
    first = min(models.values(), key=lambda row: row.both.generated, default=None)
    levels = {label: _of(first, order) for order, label in ORDERS.items()} if first is not None else {}
    return Figure(
        key="f7",
        title="Figure 7: valid and discarded mutants",
        note="Mutants that the dependency invariant kept and those it discarded, whatever a model answers.",
        columns=("Mutants", "Generated", "Kept", "Discarded"),
        lines=tuple(
            (label, words.count(x.generated), share(x.valid, x.generated), share(x.discarded, x.generated))
            for label, x in levels.items()
        ),
        bars=tuple(
            (
                label,
                (
                    Bar(label="kept", part=x.valid, whole=x.generated),
                    Bar(label="discarded", part=x.discarded, whole=x.generated, kind="hidden"),
                ),
            )
            for label, x in levels.items()
        ),
    )


def _false_positives(rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    asked = {
        (name, label): _of(row, order)
        for name, row in rows.items()
        for order, label in ORDERS.items()
        if row.both.discarded_tested
    }
    spared = [
        (n, label, x.errors, x.discarded_errors, x.errors + x.discarded_errors) for (n, label), x in asked.items()
    ]
    what = f"Of all mutants whose {noun} changed, those that the invariant had kept and those it had discarded"
    tested = "; ".join(
        f"{n}: {words.count(row.both.discarded_tested)} of {words.count(row.both.discarded)}"
        for n, row in rows.items()
        if row.both.discarded_tested
    )
    why = f": what one would have looked at in vain without it. Discarded mutants judged: {tested}."
    return Figure(
        key="f8",
        title="Figure 8: changes of valid and of discarded mutants",
        note=what + (why if spared else f". {ASK}"),
        columns=("Model", "Mutants", "Of valid mutants", "Of discarded mutants"),
        lines=tuple((n, label, share(kept, both), share(lost, both)) for n, label, kept, lost, both in spared),
        bars=tuple(
            (
                f"{n}, {label}",
                (
                    Bar(label="valid", part=kept, whole=both),
                    Bar(label="discarded", part=lost, whole=both, kind="hidden"),
                ),
            )
            for n, label, kept, lost, both in spared
        ),
    )


def _mutants(rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    joint, atomic = "(a) joint mutants that change it", "(b) atomic mutants that change it"
    parts = {
        (name, heading): (alone, alone + both, label)
        for heading, label in ((joint, "no atomic part"), (atomic, "no joint one with it"))
        for name, row in rows.items()
        for alone, both in [
            (row.joint_only, row.joint_with_atomic) if heading == joint else (row.atomic_only, row.atomic_with_joint)
        ]
    }
    return Figure(
        key="f10",
        title="Figure 10: mutants that change the answer jointly, alone, or both",
        note=f"(a) Of joint mutants whose {noun} changed, those none of whose atomic parts did so: testing one "
        "attribute at a time misses them. (b) Of atomic mutants that are part of a joint one and changed the "
        f"{noun}, those in none of whose joint mutants it changed.",
        columns=("Model", "Mutants", "Alone", "With the other kind"),
        lines=tuple(
            (name, heading, share(alone, whole), share(whole - alone, whole))
            for (name, heading), (alone, whole, _) in parts.items()
        ),
        bars=tuple(
            (
                f"{name}, {heading}",
                (
                    Bar(label=label, part=alone, whole=whole, kind="hidden"),
                    Bar(label="with the other kind", part=whole - alone, whole=whole),
                ),
            )
            for (name, heading), (alone, whole, label) in parts.items()
        ),
    )


def _texts(models: Mapping[str, HinterTotals], noun: str) -> Figure:
    lines: list[Line] = []
    bars: list[tuple[str, tuple[Bar, ...]]] = []
    for name, row in models.items():
        for one in row.regions:
            pair = words.attributes(one.attributes)
            counts = {key: n for key, n in one.counts.items() if key and n}
            shown, rest = sum(counts.values()), one.counts.get("", 0)
            drawn = tuple(
                Bar(
                    label=_region(key, one.attributes),
                    part=n,
                    whole=shown,
                    kind="hidden" if key == "joint" else "joint",
                )
                for key, n in counts.items()
            )
            lines += [(name, pair, bar.label, bar.text) for bar in drawn]
            lines.append((name, pair, "nothing", words.count(rest)))
            if drawn:
                bars.append((f"{name}, {pair}", drawn))
    return Figure(
        key="f11",
        title="Figure 11: original texts by the changes that show on them",
        note="Texts with at least one valid joint mutant that was judged, by the mutants for which the "
        f"{noun} changed: those of either attribute alone, and joint ones. Shares are of the texts with any change. "
        "Combinations that no text shows are left out. The paper draws the same sets as circles.",
        columns=("Model", "Pair", "Changed by", "Texts"),
        lines=tuple(lines),
        bars=tuple(bars),
    )


def _region(key: str, attributes: Sequence[str]) -> str:
    names = {"first": attributes[0], "second": attributes[1], "joint": "joint"}
    return " + ".join(names[part] for part in key.split("+")) + " only" if key else "nothing"


def draw(figure: Figure) -> Any:
    """Draw one figure as horizontal bars (markup); empty where nothing was measured."""
    from auditor.report import charts

    if not any(bar.whole for _, bars in figure.bars for bar in bars):
        return ""
    groups = [(heading, [(b.label, b.part, b.whole, b.text, b.kind) for b in bars]) for heading, bars in figure.bars]
    return charts.bars(groups, name=f"hinter-{figure.key}", title=f"HInter, {figure.title}")


def drawn(record: RunRecord) -> Iterable[tuple[Figure, Any]]:
    """Yield every figure with its drawing, for the page."""
    for figure in build(record):
        yield figure, draw(figure)
