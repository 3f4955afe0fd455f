"""What a person should look at before rows of a table are varied: ids, names, dates, columns that go together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural
from auditor.tables._values import named
from auditor.tables.reading import missing

MANY = 50  # distinct texts from which on a column of mostly different texts is named
ALWAYS = 1000  # and any column of texts
ROWS = 30  # with a value in both, from which on one column is said to follow from another
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")


def hints(table: Mapping[str, NDArray[Any]], target: str, protected: Sequence[str]) -> list[str]:
    """Sentences about columns that a search over rows should perhaps not vary as they are."""
    inputs = {name: np.asarray(values) for name, values in table.items() if name != target}
    found = [note for name, values in inputs.items() for note in _wide(name, values)]
    for name in protected:
        if name in inputs:
            found += _together(name, inputs)
    return found


def _wide(name: str, values: NDArray[Any]) -> Iterator[str]:
    known = values[~missing(values)]
    distinct = len(np.unique(named(known)))
    if known.dtype.kind in "iu":
        if distinct == len(known) > MANY and int(known.max()) - int(known.min()) < 1.5 * distinct:
            yield (
                f"{name} numbers the rows from {known.min()} to {known.max()}: an id? Leave it out if the model does "
                "not read it."
            )
        return
    if known.dtype != object or not len(known):
        return
    dates = sum(bool(_DATE.fullmatch(str(v))) for v in known) > len(known) / 2
    if not dates and (distinct <= MANY or (distinct <= ALWAYS and 2 * distinct <= len(known))):
        return
    what, advice = (
        ("dates", "Give a number instead, such as days since a date")
        if dates
        else (
            "names, ids or free texts?",
            "Leave it out if the model does not read it, or derive a column with fewer values",
        )
    )
    yield (
        f"{name} has {plural(distinct, 'different text')} in {plural(len(known), 'row')} ({what}), "
        f"and each would be a category that rows are drawn from. {advice}."
    )


def _together(name: str, inputs: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Columns that follow from a protected one, or that it follows from."""
    for other, values in inputs.items():
        if other == name:
            continue
        rows = ~(missing(values) | missing(inputs[name]))
        if rows.sum() < ROWS:
            continue
        a, b = (np.unique(named(v[rows]), return_inverse=True)[1] for v in (inputs[name], values))
        pairs = len(np.unique(a.astype(np.int64) * (int(b.max()) + 1) + b))
        of_a, of_b = int(a.max()) + 1, int(b.max()) + 1
        if min(of_a, of_b) < 2 or pairs not in (of_a, of_b) or 2 * pairs > rows.sum():
            continue
        source, made = (name, other) if pairs == of_a else (other, name)
        yield (
            f"{made} follows from {source} in every row, but rows would be asked in which the two do not go together. "
            f"Make one of them a derived column in the schema ({made}: {{kind: derived, source: {source}, "
            "mapping: …}), or add constraints that keep them together."
        )
