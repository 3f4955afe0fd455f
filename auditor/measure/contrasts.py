"""From observations to rows of contrasts: two versions of one text that differ in who it is about.

Each text gives one row for a pair of groups: the mean over its versions about the one group minus the mean over
its versions about the other, **whichever was the original**. What an edit does by itself is taken out by
covariates, which placebo contrasts of the same attribute (placebo versions minus original) help to tell apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.measure.linear import Adjustment, Rows, adjustment
from auditor.measure.observations import SILENT, STATUS, Arm, Codes, Columns, Observations, Shape

Floats = NDArray[np.float64]
MOST_EDITS = 20_000  # versions that the effect of edits is estimated from
Strand = tuple[int, str]  # text, group of its original: versions that can stand against each other


class Version(NamedTuple):
    """One version of a text with its mean outcome."""

    text: int
    group: str
    shape: Shape
    y: float


@dataclass(frozen=True, slots=True)
class Strands:
    """The versions of every text for one attribute (or one set of them), by the group that they are about.

    ``groups`` holds, by text and group of the original, the versions about each group. ``placebos`` holds, by
    text, the original and its placebo versions.
    """

    groups: Mapping[Strand, Mapping[str, list[Version]]]
    placebos: Mapping[int, tuple[Version, list[Version]]]
    unoriented: int  # texts of which one edit changes several people to different groups

    def names(self) -> list[str]:
        """All groups, sorted."""
        return sorted({name for sides in self.groups.values() for name in sides})


def outcome_means(
    columns: Columns, rows: NDArray[np.bool_], value: Callable[[Columns], tuple[Floats, NDArray[np.bool_]]]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Mean outcome of each version over its replicates, and which versions have one."""
    y, known = value(columns)
    use = rows & known
    size = len(columns.version_text)
    count = np.bincount(columns.version[use], minlength=size)
    total = np.bincount(columns.version[use], y[use], minlength=size)
    out: Floats = np.divide(total, count, out=np.zeros(size), where=count > 0)
    return out, count > 0


def share_of(label: int) -> Callable[[Columns], tuple[Floats, NDArray[np.bool_]]]:
    """1 where the answer is ``label``; answers that were read count."""

    def value(columns: Columns) -> tuple[Floats, NDArray[np.bool_]]:
        return (columns.label == label).astype(np.float64), columns.status == STATUS["ok"]

    return value


def share_in(labels: Iterable[int]) -> Callable[[Columns], tuple[Floats, NDArray[np.bool_]]]:
    """1 where the answer is one of ``labels`` (sets that hold a label)."""
    wanted = np.array(sorted(labels), dtype=np.int64)

    def value(columns: Columns) -> tuple[Floats, NDArray[np.bool_]]:
        return np.isin(columns.label, wanted).astype(np.float64), columns.status == STATUS["ok"]

    return value


def score(columns: Columns) -> tuple[Floats, NDArray[np.bool_]]:
    """The score of an answer, where it has one."""
    known = ~np.isnan(columns.score) & (columns.status == STATUS["ok"])
    return np.where(known, columns.score, 0.0), known


def silence(columns: Columns) -> tuple[Floats, NDArray[np.bool_]]:
    """1 where an answer was refused, filtered or could not be read; calls without any answer do not count."""
    silent = np.isin(columns.status, SILENT)
    return silent.astype(np.float64), silent | (columns.status == STATUS["ok"])


def strands(
    observations: Observations, columns: Columns, y: Floats, known: NDArray[np.bool_], attribute: str
) -> Strands:
    """The versions for ``attribute`` alone, put in order."""
    wanted: dict[int, str | None] = {}  # shape -> source group; None: an original or placebo
    unoriented: set[int] = set()
    for code, shape in enumerate(observations.shapes.values):
        if shape.arm == Arm.ORIGINAL:
            wanted[code] = None
        elif shape.attributes == (attribute,):
            if shape.arm == Arm.PLACEBO:
                wanted[code] = None
            elif len(shape.directions) == 1:
                wanted[code] = shape.directions[0][1]
            else:
                unoriented.add(code)
    keep = np.isin(columns.version_shape, list(wanted)) & known
    base: dict[int, list[Version]] = defaultdict(list)
    edited: list[tuple[Version, str]] = []
    for i in np.flatnonzero(keep).tolist():
        code, text = int(columns.version_shape[i]), int(columns.version_text[i])
        shape = observations.shapes.values[code]
        source = wanted[code]
        if source is None:
            base[text].append(Version(text, "", shape, float(y[i])))
        else:
            edited.append((Version(text, shape.directions[0][2], shape, float(y[i])), source))
    groups: dict[Strand, dict[str, list[Version]]] = {}
    for version, source in edited:
        sides = groups.get((version.text, source))
        if sides is None:
            sides = groups[version.text, source] = {}
            own = [v._replace(group=source) for v in base.get(version.text, ())]
            if own:
                sides[source] = own
        sides.setdefault(version.group, []).append(version)
    placebos: dict[int, tuple[Version, list[Version]]] = {}
    for text, found in base.items():
        original = [v for v in found if v.shape.arm == Arm.ORIGINAL]
        others = [v for v in found if v.shape.arm == Arm.PLACEBO]
        if original and others:
            placebos[text] = original[0], others
    lost = {int(t) for t in columns.version_text[np.isin(columns.version_shape, list(unoriented)) & known]}
    return Strands(groups, placebos, len(lost - {text for text, _ in groups}))


def rows(found: Strands, group: str, against: Iterable[str]) -> Rows:
    """Contrasts of ``group`` with the mean of the groups ``against``, and the placebo contrasts.

    Several strands of one text (people of two groups, changed one group at a time) give one row, their mean.
    """
    other = set(against)
    by_text: dict[int, list[_Difference]] = defaultdict(list)
    for (text, _), sides in found.groups.items():
        here = sides.get(group)
        there = [sides[name] for name in sorted(other & sides.keys())]
        if here and there:
            by_text[text].append(_difference([here], there))
    made = [(text, 1.0, _mean(parts)) for text, parts in sorted(by_text.items())]
    made += [
        (text, 0.0, _difference([others], [[original]]))
        for text, (original, others) in sorted(found.placebos.items())
    ]
    return _pack(made)


def levels(found: Strands, group: str, against: Iterable[str]) -> tuple[float, float]:
    """Mean outcome of the two sides, over the texts that have both."""
    other = set(against)
    here: dict[int, list[float]] = defaultdict(list)
    there: dict[int, list[float]] = defaultdict(list)
    for (text, _), sides in found.groups.items():
        across = [sides[name] for name in sorted(other & sides.keys())]
        if sides.get(group) and across:
            here[text].append(_side([sides[group]]).y)
            there[text].append(_side(across).y)
    if not here:
        return 0.0, 0.0
    return (
        sum(sum(y) / len(y) for y in here.values()) / len(here),
        sum(sum(y) / len(y) for y in there.values()) / len(there),
    )


class _Difference(NamedTuple):
    y: float
    covariates: Floats
    words: Mapping[str, float]


def _side(versions: list[list[Version]]) -> _Difference:
    """The mean over groups of the mean over versions."""
    parts = []
    for group in versions:
        words: dict[str, float] = defaultdict(float)
        covariates = np.zeros(3)
        for v in group:
            covariates += _covariates(v.shape)
            for word in v.shape.words_in:
                words[word] += 1 / len(group)
            for word in v.shape.words_out:
                words[word] -= 1 / len(group)
        parts.append(_Difference(sum(v.y for v in group) / len(group), covariates / len(group), words))
    return _mean(parts)


def _covariates(shape: Shape) -> tuple[float, float, float]:
    return float(shape.arm != Arm.ORIGINAL), float(shape.more_words), float(shape.more_chars)


def adjust(observations: Observations, columns: Columns, y: Floats, known: NDArray[np.bool_]) -> Adjustment:
    """What an edit, a word more and a character more do by themselves, from all edits of one attribute and placebos."""
    shapes = observations.shapes.values
    single = np.array([len(s.attributes) < 2 for s in shapes])
    is_original = np.array([s.arm == Arm.ORIGINAL for s in shapes])[columns.version_shape]
    texts = len(observations.texts.values)
    original, has = np.zeros(texts), np.zeros(texts, dtype=bool)
    base = np.flatnonzero(known & is_original)
    original[columns.version_text[base]], has[columns.version_text[base]] = y[base], True
    rows = np.flatnonzero(known & ~is_original & single[columns.version_shape] & has[columns.version_text])
    if len(rows) > MOST_EDITS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_EDITS, replace=False))
    groups: Codes[tuple[str, str]] = Codes()
    codes: Codes[str] = Codes()
    cells: list[tuple[int, int, float]] = []
    words: list[tuple[int, int, float]] = []
    for n, code in enumerate(columns.version_shape[rows].tolist()):
        shape = shapes[code]
        if shape.arm != Arm.PLACEBO:
            for attribute, source, target in shape.directions:
                cells += [(n, groups.of((attribute, target)), 1.0), (n, groups.of((attribute, source)), -1.0)]
        words += [(n, codes.of(w), 1.0) for w in shape.words_in]
        words += [(n, codes.of(w), -1.0) for w in shape.words_out]
    others = np.zeros((len(rows), len(groups.values)))
    for n, column, value in cells:
        others[n, column] += value
    covariates = [_covariates(shapes[code]) for code in columns.version_shape[rows].tolist()]
    return adjustment(
        y[rows] - original[columns.version_text[rows]],
        np.array(covariates, dtype=np.float64).reshape(len(rows), 3),
        others,
        columns.version_text[rows],
        np.array(words, dtype=np.float64).reshape(-1, 3),
    )


def _mean(parts: list[_Difference]) -> _Difference:
    if len(parts) == 1:
        return parts[0]
    words: dict[str, float] = defaultdict(float)
    for part in parts:
        for word, weight in part.words.items():
            words[word] += weight / len(parts)
    covariates = np.mean([p.covariates for p in parts], axis=0)
    return _Difference(sum(p.y for p in parts) / len(parts), covariates, words)


def _difference(here: list[list[Version]], there: list[list[Version]]) -> _Difference:
    a, b = _side(here), _side(there)
    words = defaultdict(float, a.words)
    for word, weight in b.words.items():
        words[word] -= weight
    return _Difference(a.y - b.y, a.covariates - b.covariates, words)


def _pack(made: list[tuple[int, float, _Difference]]) -> Rows:
    codes: dict[str, int] = {}
    words = [
        (row, codes.setdefault(word, len(codes)), weight)
        for row, (_, _, d) in enumerate(made)
        for word, weight in _sorted(d.words)
        if abs(weight) > 1e-12
    ]
    return Rows(
        y=np.array([d.y for _, _, d in made]),
        focal=np.array([focal for _, focal, _ in made]),
        covariates=np.array([d.covariates for _, _, d in made]).reshape(len(made), -1),
        text=np.array([text for text, _, _ in made], dtype=np.int64),
        words=np.array(words, dtype=np.float64).reshape(-1, 3),
    )


def _sorted(words: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    return iter(sorted(words.items()))
