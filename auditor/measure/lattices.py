"""Joint versions of texts with their parts: the same words, fewer attributes at a time, down to the original.

An edited version stands with the versions of its text that make some of its changes and no others; a joint placebo
version with its single placebo edits. What the joint one does beyond its parts is their interaction contrast.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.measure.observations import Arm, Columns, Observations, Shape

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
MOST_JOINTS = 20_000  # joint versions that are looked at, beside those that are asked for


class Joints(NamedTuple):
    """Joint versions of one order, each with all its parts.

    Attributes
    ----------
    text, shape : (n,) array
        Source text, code of the joint version's shape.
    placebo : (n,) array of bool
        Whether it is a joint placebo version.
    spans : (n,) array
        How many places of the text were changed.
    cells : (n, 2 ** order) array
        Rows of versions: the original, the parts by size, the joint version.
    signs : (2 ** order,) array
        Of the cells in the interaction contrast.
    """

    text: Ints
    shape: Ints
    placebo: Bools
    spans: Ints
    cells: Ints
    signs: Floats

    def known(self, known: Bools) -> Bools:
        """Those with an outcome in each cell."""
        return np.asarray(known[self.cells].all(axis=1))

    def contrasts(self, y: Floats) -> Floats:
        """Interaction contrasts: for two attributes y(AB) − y(A) − y(B) + y(0)."""
        return np.asarray(y[self.cells] @ self.signs)

    def beyond_parts(self, y: Floats) -> Floats:
        """How far the joint version lies beyond all its parts, signed; 0 where it lies among them."""
        cells = y[self.cells]
        joint, parts = cells[:, -1], cells[:, :-1]
        above, below = joint - parts.max(axis=1), joint - parts.min(axis=1)
        return np.asarray(np.where(above > 0, above, np.where(below < 0, below, 0.0)))


def joints(observations: Observations, columns: Columns, wanted: Collection[int] = ()) -> dict[int, Joints]:
    """Joint versions by order; of very many, a sample of texts and those of the versions ``wanted``."""
    shapes = observations.shapes.values
    order = np.array([len(s.attributes) for s in shapes], dtype=np.int64)
    arm = np.array([s.arm for s in shapes], dtype=np.int64)
    usable = np.isin(arm, (Arm.EDITED, Arm.PLACEBO))
    joint = np.flatnonzero((usable & (order > 1))[columns.version_shape])
    if not len(joint):
        return {}
    texts = np.unique(columns.version_text[joint])
    if len(joint) > MOST_JOINTS:
        share = MOST_JOINTS / len(joint)
        drawn = texts[np.random.default_rng(0).random(len(texts)) < share]
        texts = np.union1d(drawn, columns.version_text[list(wanted)])
    near = np.flatnonzero(
        np.isin(columns.version_text, texts) & (usable | (arm == Arm.ORIGINAL))[columns.version_shape]
    )
    by_text: dict[int, list[int]] = defaultdict(list)
    for row, text in zip(near.tolist(), columns.version_text[near].tolist(), strict=True):
        by_text[text].append(row)
    found: dict[int, list[tuple[int, int, list[int]]]] = defaultdict(list)
    for text, rows in by_text.items():
        for row, cells in _of_text([(row, shapes[columns.version_shape[row]]) for row in rows]):
            found[int(order[columns.version_shape[row]])].append((text, row, cells))
    return {size: _pack(size, some, columns, shapes) for size, some in sorted(found.items())}


def _pack(size: int, found: list[tuple[int, int, list[int]]], columns: Columns, shapes: Sequence[Shape]) -> Joints:
    shape = columns.version_shape[[row for _, row, _ in found]]
    return Joints(
        text=np.array([text for text, _, _ in found], dtype=np.int64),
        shape=shape,
        placebo=np.array([shapes[code].arm == Arm.PLACEBO for code in shape]),
        spans=np.array([shapes[code].spans for code in shape], dtype=np.int64),
        cells=np.array([cells for _, _, cells in found], dtype=np.int64),
        signs=np.array([(-1.0) ** (size - k) for k in range(size + 1) for _ in itertools.combinations(range(size), k)]),
    )


def _of_text(versions: Sequence[tuple[int, Shape]]) -> Iterator[tuple[int, list[int]]]:
    """(joint version, its cells) of one text, for the joint versions all of whose parts are there."""
    original = next((row for row, shape in versions if shape.arm == Arm.ORIGINAL), None)
    if original is None:
        return
    singles = [(row, shape) for row, shape in versions if shape.arm and len(shape.attributes) == 1]
    by_key = {_key(shape): row for row, shape in reversed(versions) if shape.arm}
    for row, shape in versions:
        if len(shape.attributes) < 2:
            continue
        parts = _parts(shape, singles, by_key)
        if parts is not None:
            yield row, [original, *parts, row]


def _key(shape: Shape) -> tuple[object, ...]:
    # A placebo may stand against edits of several attributes: its words say what it is.
    placebo = shape.arm == Arm.PLACEBO
    attributes = len(shape.attributes) if placebo else shape.attributes
    return shape.arm, attributes, () if placebo else shape.directions, shape.words_out, shape.words_in


def _parts(
    joint: Shape, singles: Sequence[tuple[int, Shape]], by_key: dict[tuple[object, ...], int]
) -> list[int] | None:
    words = set(joint.words_in) | set(joint.words_out)
    near = [
        (row, s)
        for row, s in singles
        if s.arm == joint.arm and words.issuperset(s.words_in) and words.issuperset(s.words_out)
    ]
    if joint.arm == Arm.PLACEBO:
        options = [near] * len(joint.attributes)
    else:
        options = [
            [(row, s) for row, s in near if s.attributes == (name,) and set(s.directions) == _about(joint, name)]
            for name in joint.attributes
        ]
    for chosen in itertools.product(*options):
        told = [s for _, s in chosen]
        if _together(told, "words_in") != joint.words_in or _together(told, "words_out") != joint.words_out:
            continue
        cells = [row for row, _ in chosen]
        if len(set(cells)) < len(cells):
            continue
        for size in range(2, len(chosen)):
            for some in itertools.combinations(told, size):
                part = joint._replace(
                    attributes=tuple(s.attributes[0] for s in some),
                    directions=tuple(sorted({d for s in some for d in s.directions})),
                    words_in=_together(some, "words_in"),
                    words_out=_together(some, "words_out"),
                )
                cells.append(by_key.get(_key(part), -1))
        if -1 not in cells:
            return cells
    return None


def _about(joint: Shape, name: str) -> set[tuple[str, str, str]]:
    return {d for d in joint.directions if d[0] == name}


def _together(shapes: Sequence[Shape], which: str) -> tuple[str, ...]:
    return tuple(sorted(itertools.chain.from_iterable(getattr(s, which) for s in shapes)))
