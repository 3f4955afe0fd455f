"""The result of a search: counts and scores, which sets of columns change a label, minimal pairs, files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded, RunFolderError
from auditor.core.record.rows import ColumnSet, RowPair, Score
from auditor.core.shown import csv_text
from auditor.core.types import Sampling
from auditor.tables.columns import Codes, Mask
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Labels
from auditor.tables.row_schema import row_keys

LATTICE_COLUMNS = 6  # sets double with each further protected column
SHOWN = 20  # exemplary pairs of a run
LATTICE_CASES = 20_000  # finds that the lattice of a directed search is about
PAIRS = 100_000  # finds of which a pair is written
LATE = 10_000  # the same after a limit was reached


@dataclass(frozen=True, kw_only=True, slots=True)
class TabularResult:
    """The outcome of Themis, Aequitas or SG on one model."""

    method: Literal["themis", "aequitas", "sg"]
    mode: str  # ``score`` or ``search``; ``fully``; ``symbolic``
    sampling: Sampling  # only cases that were drawn independently of earlier verdicts ("iid") enter a rate
    options: Mapping[str, object]
    # At least ``generated`` (distinct cases judged), ``discriminatory``, ``off_manifold`` (their label differs only on
    # rows that nobody could be) and ``evaluations`` (rows passed to the model).
    counts: Mapping[str, float]
    scores: tuple[Score, ...] = ()
    minimal_sets: tuple[Score, ...] = ()
    lattice: tuple[ColumnSet, ...] = ()  # smaller sets first
    pairs: tuple[RowPair, ...] = ()
    details: Mapping[str, object] = field(default_factory=dict)  # tables of the method's own
    whole_cases: bool = True  # whether all rows of a case were asked about, whatever the answers were
    finds: Codes | None = None  # discriminatory cases that were drawn or searched for
    given_finds: Codes | None = None  # given rows whose label changes
    status_reason: str = ""  # why it was cut short
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> Literal["complete", "partial"]:
        """Whether a limit cut it short."""
        return "partial" if self.status_reason else "complete"

    def to_record(self) -> dict[str, object]:
        """The result as plain data (JSON), without the arrays."""
        arrays = ("finds", "given_finds", "whole_cases")
        names = ["status", *(f.name for f in dataclasses.fields(self) if f.name not in arrays)]
        return {name: plain(getattr(self, name)) for name in names}


def plain(value: object) -> Any:
    """``value`` as JSON holds it, NumPy's scalars and arrays too."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=lambda array: array.tolist())


def lattice(evaluator: Evaluator, labels: Labels, possible: Mask) -> tuple[ColumnSet, ...]:
    """How often each set of protected columns changes a label of a grid, and how often no smaller set does."""
    schema = evaluator.schema
    p, combos = len(schema.protected_index), schema.combos
    if p > LATTICE_COLUMNS:
        return ()
    flips: dict[tuple[int, ...], NDArray[np.bool_]] = {}  # by set: rows whose label changes when it is varied
    for chosen in (chosen for size in range(1, p + 1) for chosen in combinations(range(p), size)):
        rest = [j for j in range(p) if j not in chosen]
        groups = row_keys(combos[:, rest], schema.cards[schema.protected_index[rest]])
        flips[chosen] = np.zeros(labels.shape, dtype=bool)
        for group in np.unique(groups):
            cells = np.flatnonzero(groups == group)
            flips[chosen][:, cells] = evaluator.each(labels[:, cells], possible[:, cells])
        flips[chosen] &= possible
    rows = int(possible.sum())
    return tuple(
        ColumnSet(
            columns=tuple(schema.protected[j] for j in chosen),
            rows=rows,
            changes=int(changed.sum()),
            minimal=_beyond(flips, chosen, range(1, len(chosen))),
            hidden=_beyond(flips, chosen, [1]) if len(chosen) > 1 else 0,
        )
        for chosen, changed in flips.items()
    )


def _beyond(flips: dict[tuple[int, ...], NDArray[np.bool_]], chosen: tuple[int, ...], sizes: Iterable[int]) -> int:
    """Rows that a set changes and none of its parts of some sizes does."""
    result = flips[chosen].copy()
    for size in sizes:
        for part in combinations(chosen, size):
            result &= ~flips[part]
    return int(result.sum())


class Answers(NamedTuple):
    """Finds, shape (k, d), and what the model said about them as far as it is known."""

    codes: Codes
    labels: Labels
    possible: Mask

    def first(self, n: int) -> Answers:
        """The first ``n``."""
        return Answers(self.codes[:n], self.labels[:n], self.possible[:n])

    def votes(self, labels: Iterable[int]) -> NDArray[np.int64]:
        """Count the possible combinations of each find that got each of ``labels``, shape (k, labels)."""
        return np.stack([((self.labels == label) & self.possible).sum(axis=1) for label in labels], axis=1)


def answers_of(evaluator: Evaluator, finds: Codes | None) -> Answers | None:
    """Return the labels of finds without asking a slow or limited model again; None where none are known."""
    late = evaluator.remaining == 0 and not evaluator.slow
    if finds is None or not len(finds):
        return None
    codes = finds[: LATE if late else PAIRS]
    try:
        judged = evaluator.recall(codes)
        return Answers(codes, judged.labels, judged.possible)
    except BudgetExceeded:
        return None


class Known(NamedTuple):
    """What the model said about finds: given rows, as they are, and cases of the method."""

    of_rows: Answers | None
    of_method: Answers | None

    def pairs(self, evaluator: Evaluator, most: int = PAIRS) -> Iterator[RowPair]:
        """Yield a pair for each find, at most so many of each kind, given rows first."""
        return (pair for one in self if one is not None for pair in pairs_of(evaluator, one.first(most)))


def with_examples(evaluator: Evaluator, result: TabularResult) -> tuple[TabularResult, Known]:
    """Add minimal pairs, and after a directed search the lattice of its finds; also what is known of all finds."""
    known = Known(answers_of(evaluator, result.given_finds), answers_of(evaluator, result.finds))
    sets = result.lattice
    if result.sampling == "directed" and known.of_method is not None:
        first = known.of_method.first(LATTICE_CASES)
        sets = lattice(evaluator, first.labels, first.possible)
    pairs = tuple(known.pairs(evaluator, 4 * SHOWN))[:SHOWN]
    return dataclasses.replace(result, pairs=pairs, lattice=sets), known


def pairs_of(evaluator: Evaluator, answers: Answers) -> Iterator[RowPair]:
    """Yield one minimal counterfactual pair for each find of which two different answers are known."""
    schema, chosen = evaluator.schema, witnesses(evaluator, answers)
    at = np.flatnonzero(chosen[:, 0] >= 0)
    sides = [schema.put(answers.codes[at], schema.protected_index, schema.combos[chosen[at, k]]) for k in (0, 1)]
    labels = [answers.labels[at, chosen[at, k]].tolist() for k in (0, 1)]
    for a, b, *said in zip(*sides, *labels, strict=True):
        one, other = schema.row(a), schema.row(b)
        names = [evaluator.label_name(label) for label in said]
        changed = tuple(name for name in schema.protected if one[name] != other[name])
        yield RowPair(row=one, other=other, changed=changed, label=names[0], other_label=names[1])


def witnesses(evaluator: Evaluator, answers: Answers) -> NDArray[np.intp]:
    """Return two combinations per case, (k, 2), with different labels and few changed columns; -1 without any."""
    combos = evaluator.schema.combos
    result = np.full((len(answers.codes), 2), -1, dtype=np.intp)
    apart = (combos[:, None, :] != combos[None, :, :]).sum(axis=2)
    pairs = sorted(combinations(range(len(combos)), 2), key=lambda pair: int(apart[pair]))
    left = np.arange(len(result))
    for a, b in pairs:
        if not len(left):
            break
        both = answers.possible[left][:, [a, b]]
        hit = evaluator.differ(answers.labels[left][:, [a, b]], both) & both.all(axis=1)
        result[left[hit]] = a, b
        left = left[~hit]
    return result


def pairs_csv(evaluator: Evaluator, known: Known) -> str:
    """One pair of rows per find: both labels, both values of each protected column, then what they share."""
    protected, names = evaluator.schema.protected, evaluator.schema.names
    shared = [name for name in names if name not in protected]
    rows: list[Sequence[object]] = [
        ["pair", "changed", "label A", "label B", *(f"{name} {side}" for name in protected for side in "AB"), *shared]
    ]
    for pair in known.pairs(evaluator):
        values = [side[name] for name in protected for side in (pair.row, pair.other)]
        same = [pair.row[name] for name in shared]
        rows.append([len(rows), " + ".join(pair.changed), pair.label, pair.other_label, *values, *same])
    return csv_text(rows)


def save_votes(path: Path, evaluator: Evaluator, answers: Answers) -> None:
    """Write finds and how many combinations got which label: ``codes`` (k, d), ``votes`` (k, l), ``labels`` (l,)."""
    labels = [x for x in np.unique(answers.labels[answers.possible]).tolist() if x != NOT_JUDGED]
    names = np.array([evaluator.label_name(x) for x in labels], dtype=np.str_)
    np.savez_compressed(path, codes=answers.codes, votes=answers.votes(labels).astype(np.int32), labels=names)


def arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """The arrays of an .npz file by name."""
    import zipfile
    import zlib

    try:
        if zipfile.is_zipfile(path):  # numpy takes other files for pickles
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        pass
    raise RunFolderError(f"{path} cannot be read: it is broken or was changed. See: audit verify {path.parent}")
