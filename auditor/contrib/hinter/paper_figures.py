"""The tables and figures of the HInter paper (Souani et al., 2025), filled with what a run measured.

Shown under ``--protocol hinter``, from ``hinter`` and ``hinter_figures`` of the run record. Pies and Venn
diagrams of the paper are bars here: lengths compare, and every bar carries its figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from auditor.core.record import RunRecord
from auditor.core.record.searches import HinterPair, HinterTotals, Level
from auditor.report import charts, run_checks, words
from auditor.report.document import Block, Chart, Text, table

if TYPE_CHECKING:
    from markupsafe import Markup

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
    bars: tuple[Bars, ...]


Bars = tuple[str, tuple[Bar, ...]]  # a heading and its bars
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


def _figure(key: str, title: str, note: str, columns: str, lines: Iterable[Line], bars: Iterable[Bars]) -> Figure:
    """A figure with its columns, written with bars between them; headings without bars are left out."""
    number = key.lstrip("tf")
    full = f"{'Table' if key[0] == 't' else 'Figure'} {number}: {title}"
    return Figure(
        key=key, title=full, note=note, columns=tuple(columns.split(" | ")), lines=tuple(lines), bars=tuple(bars)
    )


def _two(heading: str, first: str, part: int, second: str, rest: int, *, whole: int, hidden: str) -> Bars:
    """A heading with two bars, of which one is drawn as hidden ones are."""
    return heading, tuple(
        Bar(label=label, part=n, whole=whole, kind="hidden" if label == hidden else "joint")
        for label, n in ((first, part), (second, rest))
    )


def _table9(pairs: Mapping[str, Sequence[HinterPair]], rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    sums: dict[tuple[str, str], list[int]] = {}
    for model, measured in pairs.items():
        for one in measured:
            for name in (model, ALL):
                cell = sums.setdefault((words.attributes(one.attributes), name), [0, 0, 0])
                for i, n in enumerate((one.joint.tested, one.joint.errors, one.hidden)):
                    cell[i] += n
    cells = {(pair, n): sums[pair, n] for pair in sorted({p for p, _ in sums}) for n in rows if (pair, n) in sums}
    cells |= {("all pairs", name): [row.joint.tested, row.joint.errors, row.hidden] for name, row in rows.items()}
    bars: dict[str, list[Bar]] = {}
    for (pair, name), (tested, changed, hidden) in cells.items():
        bars.setdefault(pair, []).append(Bar(label=f"{name}, changed", part=changed, whole=tested))
        bars[pair].append(Bar(label=f"{name}, hidden", part=hidden, whole=changed, kind="hidden"))
    return _figure(
        "t9",
        "joint changes, and the hidden ones among them",
        f"Share of valid joint mutants whose {noun} differs from their original's, and how many of these have "
        f"atomic mutants that are valid and keep the {noun}. The paper has data sets in its rows; a run has one "
        "task, so its rows are pairs of attributes.",
        "Pair | Model | Mutants tested | Changed | Hidden, of the changed",
        (
            (pair, name, words.count(tested), share(changed, tested), share(hidden, changed))
            for (pair, name), (tested, changed, hidden) in cells.items()
        ),
        ((pair, tuple(some)) for pair, some in bars.items()),
    )


def _errors(number: str, order: Order, rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    which = "two attributes" if order == "joint" else "one attribute"
    levels = {name: _of(row, order) for name, row in rows.items()}
    return _figure(
        f"f{number}",
        f"{order} changes by model",
        f"(a) Share of valid mutants of {which} whose {noun} changed. (b) Share of original texts with at least "
        f"one of them{'; over all models, a text counts once for each' if ALL in rows else ''}.",
        "Model | Mutants tested | (a) Changed | Texts | (b) Texts with a change",
        (
            (
                name,
                words.count(x.tested),
                share(x.errors, x.tested),
                words.count(x.originals),
                share(x.originals_with_error, x.originals),
            )
            for name, x in levels.items()
        ),
        (
            ("(a) mutants", tuple(Bar(label=n, part=x.errors, whole=x.tested) for n, x in levels.items())),
            (
                "(b) original texts",
                tuple(Bar(label=n, part=x.originals_with_error, whole=x.originals) for n, x in levels.items()),
            ),
        ),
    )


ORDERS: dict[Order, str] = {"both": "(a) all mutants", "joint": "(b) two attributes", "atomic": "(c) one attribute"}


def _kept(models: Mapping[str, HinterTotals]) -> Figure:
    # Every model gets the same mutants, once for each format it is asked in.
    first = min(models.values(), key=lambda row: row.both.generated, default=None)
    levels = {label: _of(first, order) for order, label in ORDERS.items()} if first is not None else {}
    return _figure(
        "f7",
        "valid and discarded mutants",
        "Mutants that the dependency invariant kept and those it discarded, whatever a model answers.",
        "Mutants | Generated | Kept | Discarded",
        (
            (label, words.count(x.generated), share(x.valid, x.generated), share(x.discarded, x.generated))
            for label, x in levels.items()
        ),
        (
            _two(label, "kept", x.valid, "discarded", x.discarded, whole=x.generated, hidden="discarded")
            for label, x in levels.items()
        ),
    )


def _false_positives(rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    asked = {name: row for name, row in rows.items() if row.both.discarded_tested}
    spared = [
        (name, label, x.errors, x.discarded_errors, x.errors + x.discarded_errors)
        for name, row in asked.items()
        for order, label in ORDERS.items()
        for x in [_of(row, order)]
    ]
    judged = "; ".join(
        f"{n}: {words.count(row.both.discarded_tested)} of {words.count(row.both.discarded)}"
        for n, row in asked.items()
    )
    why = f": what one would have looked at in vain without it. Discarded mutants judged: {judged}."
    return _figure(
        "f8",
        "changes of valid and of discarded mutants",
        f"Of all mutants whose {noun} changed, those that the invariant had kept and those it had discarded"
        + (why if spared else f". {ASK}"),
        "Model | Mutants | Of valid mutants | Of discarded mutants",
        ((n, label, share(kept, both), share(lost, both)) for n, label, kept, lost, both in spared),
        (
            _two(f"{n}, {label}", "valid", kept, "discarded", lost, whole=both, hidden="discarded")
            for n, label, kept, lost, both in spared
        ),
    )


def _mutants(rows: Mapping[str, HinterTotals], noun: str) -> Figure:
    joint, atomic = "(a) joint mutants that change it", "(b) atomic mutants that change it"
    parts = [(name, joint, "no atomic part", row.joint_only, row.joint_with_atomic) for name, row in rows.items()] + [
        (name, atomic, "no joint one with it", row.atomic_only, row.atomic_with_joint) for name, row in rows.items()
    ]
    return _figure(
        "f10",
        "mutants that change the answer jointly, alone, or both",
        f"(a) Of joint mutants whose {noun} changed, those none of whose atomic parts did so: testing one "
        "attribute at a time misses them. (b) Of atomic mutants that are part of a joint one and changed the "
        f"{noun}, those in none of whose joint mutants it changed.",
        "Model | Mutants | Alone | With the other kind",
        ((name, what, share(alone, alone + both), share(both, alone + both)) for name, what, _, alone, both in parts),
        (
            _two(f"{name}, {what}", label, alone, "with the other kind", both, whole=alone + both, hidden=label)
            for name, what, label, alone, both in parts
        ),
    )


def _texts(models: Mapping[str, HinterTotals], noun: str) -> Figure:
    lines: list[Line] = []
    bars: list[Bars] = []
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
    return _figure(
        "f11",
        "original texts by the changes that show on them",
        "Texts with at least one valid joint mutant that was judged, by the mutants for which the "
        f"{noun} changed: those of either attribute alone, and joint ones. Shares are of the texts with any change. "
        "Combinations that no text shows are left out. The paper draws the same sets as circles.",
        "Model | Pair | Changed by | Texts",
        lines,
        bars,
    )


def _region(key: str, attributes: Sequence[str]) -> str:
    names = {"first": attributes[0], "second": attributes[1], "joint": "joint"}
    return " + ".join(names[part] for part in key.split("+")) + " only" if key else "nothing"


def draw(figure: Figure) -> Markup | None:
    """Draw one figure as horizontal bars; nothing where nothing was measured."""
    if not any(bar.whole for _, bars in figure.bars for bar in bars):
        return None
    groups = [(heading, [(b.label, b.part, b.whole, b.text, b.kind) for b in bars]) for heading, bars in figure.bars]
    return charts.bars(groups, name=f"hinter-{figure.key}", title=f"HInter, {figure.title}")


def blocks(record: RunRecord) -> Iterator[Block]:
    """The paper's own counting, and its tables and figures, as parts of a report."""
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
        if (drawing := draw(figure)) is not None:
            yield Chart(drawing, title)
        if figure.lines:
            yield table(title, figure.columns, figure.lines, right=RIGHT)


def _counted(part: int, whole: int) -> str:
    return share(part, whole) if whole else f"none ({words.count(part)} of 0)"
