"""From observations to rows of contrasts: two versions of one text that differ in who it is about.

Each text gives one row for a pair of groups: the mean over its versions about the one group minus the mean over
its versions about the other, **whichever was the original**. That is linear in the outcomes of versions: a sparse
matrix, made once, gives the contrasts of outcomes, of covariates and of words alike. What an edit does by itself
is taken out by covariates, whose effect all edits of the attribute and all placebo edits tell.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from auditor.measure.linear import MOST_ROWS, Adjustment, Design, Edits, Seen, Words, within
from auditor.measure.observations import (
    SILENT,
    STATUS,
    Arm,
    Bools,
    Codes,
    Columns,
    Floats,
    Ints,
    Observations,
    Shape,
    token_moves,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Value = Callable[[Columns], tuple[Floats, Bools]]
MOST_LAYOUTS = 8
RUN = 3  # characters of a part of a token
TOKEN = 2.0  # standard deviation of what a token does, in those of what a part does
MOST_EDITS = 20_000  # versions that the effect of edits is estimated from


def outcome_means(columns: Columns, rows: Bools, value: Value) -> tuple[Floats, Bools]:
    """Mean outcome of each version over its replicates, and which versions have one."""
    y, known = value(columns)
    use = rows & known
    size = len(columns.version_text)
    count = np.bincount(columns.version[use], minlength=size)
    total = np.bincount(columns.version[use], y[use], minlength=size)
    out: Floats = np.divide(total, count, out=np.zeros(size), where=count > 0)
    return out, count > 0


def share_in(labels: Iterable[int]) -> Value:
    """1 where the answer is one of ``labels`` (sets that hold a label); answers that were read count."""
    wanted = np.array(sorted(labels), dtype=np.int64)

    def value(columns: Columns) -> tuple[Floats, Bools]:
        return np.isin(columns.label, wanted).astype(np.float64), columns.status == STATUS["ok"]

    return value


def score(columns: Columns) -> tuple[Floats, Bools]:
    """The score of an answer, where it has one."""
    known = ~np.isnan(columns.score) & (columns.status == STATUS["ok"])
    return np.where(known, columns.score, 0.0), known


def silence(columns: Columns) -> tuple[Floats, Bools]:
    """1 where an answer was refused, filtered or could not be read; calls without any answer do not count."""
    silent = np.isin(columns.status, SILENT)
    return silent.astype(np.float64), silent | (columns.status == STATUS["ok"])


class Contrast(NamedTuple):
    """One group against others, as a map from versions.

    ``text`` are the texts that have versions about both; ``here`` and ``there``, of shape (texts, versions), map
    outcomes of versions to the mean outcome of either side.
    """

    text: Ints
    here: csr_array
    there: csr_array

    @property
    def map(self) -> csr_array:
        """Outcomes of versions to contrasts."""
        return self.here - self.there

    @property
    def sides(self) -> int:
        """How many versions about either side stand against one about the other: a text may have several."""
        return int(np.minimum(np.diff(self.here.indptr), np.diff(self.there.indptr)).sum())

    def levels(self, y: Floats) -> tuple[float, float]:
        """Mean outcome of the two sides."""
        return float((self.here @ y).mean()), float((self.there @ y).mean())


class Strands(NamedTuple):
    """The versions about each group, by strand: a text, and the group of its original.

    ``names`` are the groups, sorted; ``text`` is that of each strand; ``strand``, ``group`` and ``version`` have one
    entry for each version of a strand.
    """

    names: list[str]
    text: Ints
    strand: Ints
    group: Ints
    version: Ints

    def contrast(self, group: str, against: Iterable[str], versions: int) -> Contrast:
        """``group`` against the mean of the groups ``against``.

        Several strands of one text (people of two groups, changed one group at a time) give one row, their mean.
        """
        from scipy.sparse import csr_array

        wanted = {name: code for code, name in enumerate(self.names)}
        there = np.array([wanted[name] for name in set(against) if name in wanted], dtype=np.int64)
        groups, strands = len(self.names), len(self.text)
        count = np.bincount(self.strand * groups + self.group, minlength=strands * groups)
        present = count.reshape(strands, groups) > 0
        across = present[:, there].sum(axis=1)
        usable = present[:, wanted[group]] & (across > 0) if group in wanted else np.zeros(strands, dtype=bool)
        text, of_text = np.unique(self.text[usable], return_inverse=True)
        row = np.full(strands, -1)
        row[usable] = of_text
        share = np.zeros(strands)  # of a strand in the row of its text
        share[usable] = 1.0 / np.bincount(of_text, minlength=len(text))[of_text]
        weight = share[self.strand] / count[self.strand * groups + self.group]

        def side(entries: Bools, of: Floats) -> csr_array:
            chosen = entries & usable[self.strand]
            cells = row[self.strand[chosen]], self.version[chosen]
            return csr_array((of[chosen], cells), shape=(len(text), versions))

        own = self.group == wanted.get(group, -1)
        others = np.isin(self.group, there)
        return Contrast(text, side(own, weight), side(others, weight / np.maximum(across, 1)[self.strand]))


class Moves(NamedTuple):
    """What edits put in and take out: the first ``tokens`` columns are tokens, the others runs of characters in these.

    A term of several tokens is no word of its own: "trans man" for "man" puts in "trans" and nothing else. Tokens that
    are written alike may act alike: "Iran" and "Iranian" share four runs of three characters. A token counts twice a
    part: short words would else move answers less than long ones.
    """

    table: csr_array
    tokens: int

    @classmethod
    def of(cls, shapes: Sequence[Shape], rows: Ints, out: float = -1.0) -> Moves:
        """Of the shapes that ``rows`` name; what is taken out counts ``out``."""
        from scipy.sparse import hstack

        codes: Codes[str] = Codes()
        words = word_moves(shapes, codes, out)
        runs: Codes[str] = Codes()
        cells = []
        for n, token in enumerate(codes.values):
            padded = f" {token} "
            cells += [(n, runs.of(padded[at : at + RUN]), 1.0) for at in range(len(padded) - RUN + 1)]
        parts = words @ _sparse(cells, (words.shape[1], len(runs.values)))
        return cls(hstack([TOKEN * words, parts], format="csr")[rows], words.shape[1])


def word_moves(shapes: Sequence[Shape], codes: Codes[str], out: float = -1.0) -> csr_array:
    """Return shapes by tokens: 1 for a token that is put in, ``out`` for one that is taken out."""
    cells = [
        (n, codes.of(token), many * (1.0 if many > 0 else -out))
        for n, shape in enumerate(shapes)
        for token, many in shape.tokens or token_moves(shape.words_out, shape.words_in)
    ]
    return _sparse(cells, (len(shapes), max(1, len(codes.values))))


class Versions:
    """The versions of a table, as arrays: all that contrasts are made of, besides outcomes."""

    def __init__(self, observations: Observations, columns: Columns) -> None:
        self.shapes: list[Shape] = observations.shapes.values
        self.text, self.shape = columns.version_text, columns.version_shape
        self.units = observations.units()  # of each text
        self.arm = np.array([s.arm for s in self.shapes], dtype=np.int64)[self.shape]
        self.single = np.array([len(s.attributes) < 2 for s in self.shapes], dtype=bool)[self.shape]
        moves = [(s.arm != Arm.ORIGINAL, s.more_words, s.more_chars) for s in self.shapes]
        edited, words, chars = np.array(moves, dtype=np.float64).reshape(-1, 3)[self.shape].T
        self.covariates = np.column_stack([edited, edited * columns.version_place / 1000, words, chars])
        self.neutral = (self.arm == Arm.PLACEBO) | (self.arm == Arm.ORIGINAL)
        self._laid_out: dict[bytes, Layout] = {}

    @cached_property
    def words(self) -> Moves:
        """Of versions: 1 for what is put in, −1 for what is taken out."""
        return Moves.of(self.shapes, self.shape)

    @cached_property
    def moved(self) -> Moves:
        """Of versions: 1 for what is put in or taken out."""
        return Moves.of(self.shapes, self.shape, 1.0)

    @cached_property
    def of_groups(self) -> Moves:
        """`words`, those that stand for groups alone: neutral ones are part of how texts vary."""
        table, tokens = self.words
        used = np.unique(table[self.arm == Arm.EDITED].indices)
        return Moves(table[:, used], int(np.searchsorted(used, tokens)))

    def where(self, known: Bools) -> Layout:
        """The versions with an outcome, laid out; kept for the next outcome that the same versions have."""
        key = known.tobytes()
        if key not in self._laid_out:
            if len(self._laid_out) >= MOST_LAYOUTS:
                self._laid_out.clear()
            self._laid_out[key] = Layout(self, known)
        return self._laid_out[key]

    def strands(self, attribute: str, known: Bools) -> Strands:
        """The versions for ``attribute`` alone; those of one edit that moves people to different groups stay out."""
        sources: dict[int, str] = {}
        targets: dict[int, str] = {}
        for code, shape in enumerate(self.shapes):
            edited = shape.attributes == (attribute,) and shape.arm in (Arm.EDITED, Arm.REWORDED)
            if edited and len(shape.directions) == 1:
                _, sources[code], targets[code] = shape.directions[0]
        names = sorted({*sources.values(), *targets.values()})
        number = {name: n for n, name in enumerate(names)}
        groups = max(1, len(names))
        source = np.full(len(self.shapes), -1)
        target = np.full(len(self.shapes), -1)
        for code in sources:
            source[code], target[code] = number[sources[code]], number[targets[code]]
        unmoved = [
            s.arm == Arm.ORIGINAL or (s.arm == Arm.PLACEBO and s.attributes == (attribute,)) for s in self.shapes
        ]
        base = np.array(unmoved, dtype=bool)
        moved = np.flatnonzero((source >= 0)[self.shape] & known)
        keys, strand = np.unique(self.text[moved] * groups + source[self.shape[moved]], return_inverse=True)
        text = keys // groups
        # What was not edited in this attribute is about the group of each strand of its text.
        unedited = np.flatnonzero(base[self.shape] & known)
        unedited = unedited[np.argsort(self.text[unedited], kind="stable")]
        first = np.searchsorted(self.text[unedited], text, side="left")
        many = np.searchsorted(self.text[unedited], text, side="right") - first
        own = np.repeat(np.arange(len(text)), many)
        at = np.arange(len(own)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first, many)
        return Strands(
            names=names,
            text=text,
            strand=np.concatenate([strand, own]),
            group=np.concatenate([target[self.shape[moved]], (keys % groups)[own]]),
            version=np.concatenate([moved, unedited[at]]),
        )

    def carriers(self, contrast: Contrast) -> dict[str, int]:
        """How many texts of a contrast are about their groups by words, by a name, by a statement."""
        both = contrast.map.tocoo()
        edited = np.isin(self.arm[both.coords[1]], (Arm.EDITED, Arm.REWORDED))
        names, carrier = self._carriers
        texts = both.shape[0]
        cells = np.unique(carrier[self.shape[both.coords[1][edited]]] * texts + both.coords[0][edited])
        many = np.bincount(cells // texts, minlength=len(names))
        return {name: int(n) for name, n in zip(names, many, strict=True) if n}

    @cached_property
    def _carriers(self) -> tuple[list[str], Ints]:
        """What groups are told by, sorted, and which of these each shape has."""
        names, code = np.unique([s.carrier for s in self.shapes], return_inverse=True)
        return names.tolist(), code.astype(np.int64)

    def design(self, contrast: Contrast, words: Moves, size: Floats | None = None) -> Design:
        """What contrasts are made of: what differs between the two sides; ``size``: how much each row represents."""
        both, (table, tokens) = contrast.map, words
        return Design(
            focal=np.ones(len(contrast.text)),
            covariates=both @ self.covariates,
            text=self.units[contrast.text],
            words=both @ table,
            tokens=tokens,
            size=size,
        )

    def alike(self, rows: Ints) -> tuple[Ints, csr_array]:
        """Versions of a text with the same words: the first of each, and the map to their means."""
        from scipy.sparse import csr_array

        keys = self.text[rows] * len(self.shapes) + self._worded[self.shape[rows]]
        _, first, row, size = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        return first, csr_array((1.0 / size[row], (row, np.arange(len(rows)))), shape=(len(size), len(rows)))

    @cached_property
    def _worded(self) -> Ints:
        """Of each shape, a number for its arm, groups and words."""
        same: Codes[tuple[object, ...]] = Codes()
        alike = ((s.arm, s.directions, s.words_in, s.words_out) for s in self.shapes)
        return np.array([same.of(one) for one in alike], dtype=np.int64)

    def others(self, attribute: str) -> Floats:
        """What is taken out beside covariates, by shape: the groups, and sentences before or after a text."""
        codes: Codes[tuple[str, str]] = Codes()
        cells = []
        for n, shape in enumerate(self.shapes):
            cells += [(n, codes.of(("frame", frame)), 1.0) for frame in shape.frames]
            if shape.arm in (Arm.EDITED, Arm.REWORDED):
                for name, source, target in shape.directions:
                    if name == attribute:
                        cells += [(n, codes.of(("group", target)), 1.0), (n, codes.of(("group", source)), -1.0)]
        return np.asarray(_sparse(cells, (len(self.shapes), len(codes.values))).toarray())


class Moved(NamedTuple):
    """What words of an attribute do next to neutral words.

    ``size`` is the root of the number of words, and of parts of these, that an edit of the attribute moves; ``texts``
    and ``changed`` count texts with such edits, and those whose answers differ.
    """

    own: Seen
    neutral: Seen
    size: float
    texts: int
    changed: int


class Layout:
    """Versions that have an outcome: what claims about any such outcome share. It lives as long as its versions."""

    def __init__(self, versions: Versions, known: Bools) -> None:
        # Versions keep their layouts: two that keep each other would stay in memory until Python looks for circles.
        self._versions: Versions = weakref.proxy(versions)
        self._known = known
        self._strands: dict[str, Strands] = {}
        self._contrasts: dict[Hashable, tuple[Contrast, Design]] = {}
        self._edits: dict[str, tuple[tuple[Ints, csr_array], Edits]] = {}
        self._words: dict[str, tuple[csr_array, Ints, Ints, Words]] = {}  # by attribute; of neutral edits under ""

    def names(self, attribute: str) -> list[str]:
        """The groups of an attribute."""
        return self._of(attribute).names

    def _of(self, attribute: str) -> Strands:
        if attribute not in self._strands:
            self._strands[attribute] = self._versions.strands(attribute, self._known)
        return self._strands[attribute]

    def contrast(self, attribute: str, group: str, against: tuple[str, ...]) -> tuple[Contrast, Design]:
        """``group`` against the mean of the groups ``against``."""

        def make() -> tuple[Contrast, Design]:
            made = self._of(attribute).contrast(group, against, len(self._known))
            return made, self._versions.design(made, self._versions.of_groups)

        return self.keep((attribute, group, against), make)

    def keep(self, key: Hashable, make: Callable[[], tuple[Contrast, Design]]) -> tuple[Contrast, Design]:
        """What ``make`` gives, made once for each ``key``."""
        if key not in self._contrasts:
            self._contrasts[key] = make()
        return self._contrasts[key]

    def adjust(self, attribute: str, y: Floats) -> Adjustment:
        """Estimate what an edit, its place, a word more and a character more do by themselves.

        From the edits of ``attribute`` alone, and from placebo edits and wordings of all. Versions of a text with
        the same words put in and taken out are one row: a word in many wordings of one text is seen there once.
        """
        own = self._versions
        if attribute not in self._edits:
            turned = [s.attributes == (attribute,) and len(s.directions) == 1 for s in own.shapes]
            about = np.array(turned, dtype=bool)[own.shape]
            rows = np.flatnonzero(self._known & own.single & (about | own.neutral))
            if len(rows) > MOST_EDITS:
                kept = np.unique(own.text[rows])
                drawn = np.random.default_rng(0).random(len(kept)) < MOST_EDITS / len(rows)
                rows = rows[np.isin(own.text[rows], kept[drawn])]
            first, mean = own.alike(rows)
            text = own.text[rows][first]
            self._edits[attribute] = (
                (rows, mean),
                Edits(
                    mean @ own.covariates[rows],
                    mean @ own.others(attribute)[own.shape[rows]],
                    text,
                    own.words.table[rows[first]],
                    own.neutral[rows][first],
                    own.units[text],
                ),
            )
        (rows, mean), edits = self._edits[attribute]
        return edits.tell(mean @ y[rows])

    def omnibus(self, attribute: str, y: Floats) -> Moved | None:
        """Estimate how much words about ``attribute`` differ in what they do, and how much neutral words do.

        None where the edits of either tell nothing. What being edited, its place and length do is taken out; what
        groups do is not.
        """
        own = self._versions
        turned = np.array([s.attributes == (attribute,) and len(s.directions) == 1 for s in own.shapes], dtype=bool)
        about = turned[own.shape] & (own.arm == Arm.EDITED)
        texts = np.isin(own.text, own.text[about])
        both = []
        for key, rows in ((attribute, about | (texts & (own.arm == Arm.ORIGINAL))), ("", own.neutral)):
            if key not in self._words:
                self._words[key] = self._told(np.flatnonzero(self._known & own.single & rows))
            mean, text, unit, words = self._words[key]
            apart = within((mean @ y)[:, None], text)[:, 0]
            seen = words.seen(apart)
            if seen is None or not seen.df:
                return None
            both.append((seen, unit, apart))
        (seen, unit, apart), (neutral, _, _) = both
        squares = own.words.table[np.flatnonzero(about & self._known)].power(2).sum(axis=1)
        changed = np.unique(unit[np.abs(apart) > 1e-9])
        return Moved(seen, neutral, math.sqrt(float(squares.mean())), len(np.unique(unit)), len(changed))

    def _told(self, rows: Ints) -> tuple[csr_array, Ints, Ints, Words]:
        own = self._versions
        most = MOST_ROWS if len(rows) > MOST_ROWS else len(rows)
        rows = rows[own.text[rows] <= own.text[np.sort(rows)[most - 1]]] if most else rows
        first, mean = own.alike(rows)
        text = np.unique(own.text[rows][first], return_inverse=True)[1].astype(np.int64)
        table = own.words.table[rows[first]]
        z = table[:, np.unique(table.indices)].toarray()
        fixed = within(mean @ own.covariates[rows], text)
        across = _sparse([(n, int(row), 1.0) for n, row in enumerate(rows)], (len(rows), len(self._known)))
        return mean @ across, text, own.units[own.text[rows][first]], Words(fixed, within(z, text), text)


def _sparse(cells: list[tuple[int, int, float]], shape: tuple[int, int]) -> csr_array:
    from scipy.sparse import csr_array

    table = np.array(cells, dtype=np.float64).reshape(-1, 3)
    return csr_array((table[:, 2], (table[:, 0].astype(np.int64), table[:, 1].astype(np.int64))), shape=shape)
