"""Answers of a planted model to the versions of texts that a plan has: for benchmarks and tests of claims.

Every text has a margin of its own, drawn from N(0, 1), on the scale of log odds; the favourable answer is given
where the margin of a version is above 0. What else moves margins is said by `Effects`.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np

from auditor.measure.observations import STATUS, Arm, Columns, Floats, Ints, Observations
from auditor.measure.power import sides
from auditor.run import dryrun
from auditor.run.dryrun import Ahead

if TYPE_CHECKING:
    from numpy.random import Generator
    from scipy.sparse import csr_array

    from auditor.run.preparation import Parts

MODEL, FORMAT, YES, NO = "planted", "simulated", "yes", "no"


@dataclass(frozen=True, kw_only=True, slots=True)
class Effects:
    """What moves the margin of a version.

    Attributes
    ----------
    net : float
        What one unit of worth of a group adds.
    noise : float
        Standard deviation of a shift for each version.
    word, trigram : float
        Standard deviation of a shift for each token of the text, and for each three characters in a row.
    neutral : float
        How many times that a word does which stands for no group.
    per_source : float
        Standard deviation of a net effect that each source text has of its own, whoever is better off.
    per_change : float
        Standard deviation of a shift of each version that grows with the number of places that an edit changes.
    edited, more_words, more_chars, position : float
        For being edited at all, for each word and for each character more, and for a change at the very end in place of
        the very beginning.
    fragile : float
        Share of texts of which any edit turns the answer.
    wobble, replicates : float, int
        Share of answers that come out the other way by chance; how often each version is asked.
    drift : float
        By how much the margin has risen when the last version is asked.
    refused, refused_per_word : float
        Share of refusals, and the log odds of one for each word more.
    refused_net : float
        The log odds of a refusal between the two groups.
    """

    net: float = 0.0
    noise: float = 0.0
    word: float = 0.0
    trigram: float = 0.0
    neutral: float = 1.0
    per_source: float = 0.0
    per_change: float = 0.0
    edited: float = 0.0
    more_words: float = 0.0
    more_chars: float = 0.0
    position: float = 0.0
    fragile: float = 0.0
    wobble: float = 0.0
    replicates: int = 1
    drift: float = 0.0
    refused: float = 0.0
    refused_per_word: float = 0.0
    refused_net: float = 0.0


TOKEN = re.compile(r"\w+|[^\w\s]")


def tokens(text: str) -> list[str]:
    """Return the words and marks of a text."""
    return TOKEN.findall(text.lower())


def trigrams(text: str) -> list[str]:
    """Return all three characters in a row."""
    padded = f" {text.lower()} "
    return [padded[n : n + 3] for n in range(len(padded) - 2)]


CUTS = {"token": tokens, "trigram": trigrams}


def moves(texts: Sequence[str], text: Ints, cut: Callable[[str], list[str]]) -> csr_array:
    """Return versions by units: how many more of each a version has than the first version of its text."""
    from scipy.sparse import csr_array

    first: dict[int, Counter[str]] = {}
    known: dict[str, int] = {}
    cells = []
    for n, (said, of) in enumerate(zip(texts, text.tolist(), strict=True)):
        count = Counter(cut(said))
        apart = Counter(count)
        apart.subtract(first.setdefault(of, count))
        cells += [(n, known.setdefault(unit, len(known)), many) for unit, many in apart.items() if many]
    table = np.array(cells, dtype=np.int64).reshape(-1, 3)
    return csr_array((table[:, 2].astype(float), (table[:, 0], table[:, 1])), shape=(len(texts), max(1, len(known))))


def places(texts: Sequence[str], text: Ints) -> Floats:
    """Return by version what share of the first version of its text comes before the first difference from it."""
    first: dict[int, str] = {}
    out = np.zeros(len(texts))
    for n, (said, of) in enumerate(zip(texts, text.tolist(), strict=True)):
        base = first.setdefault(of, said)
        if said != base:
            same = itertools.takewhile(lambda both: both[0] == both[1], zip(said, base, strict=False))
            out[n] = sum(1 for _ in same) / max(1, len(base))
    return out


class Told(Observations):
    """Versions of texts with the whole text of each: what planted answers are drawn for."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    @classmethod
    def of(cls, parts: Parts) -> Told:
        """Of what a plan asks about."""
        out = cls()
        with patch.object(dryrun, "MOST", sys.maxsize):  # all texts, not a sample of them
            rows = Ahead(parts).rows
        for row in rows:
            if row.case.source is not None:
                out.sources[row.case.id] = row.case.source
            for variant in row.asked:
                out.version(row.case.id, variant.edits, variant.id, row.case.original.input)
                out.said.append(str(variant.input))
        return out

    def only(self, rows: Iterable[int]) -> Told:
        """Of ``rows``."""
        columns, out = self.columns(), Told()
        out.sources = self.sources
        for n in rows:
            text, shape = int(columns.version_text[n]), int(columns.version_shape[n])
            out.shape(self.texts.values[text], self.shapes.values[shape], place=int(columns.version_place[n]))
            out.said.append(self.said[n])
        return out


class Simulated(Observations):
    """A table of observations whose versions stay and whose answers are drawn anew, again and again.

    Parameters
    ----------
    versions : Told
        The versions of texts that a plan has.
    attribute, worth : str, mapping of str to float
        What being about each group is worth, in units of `Effects.net`; 0 for groups that are not named.
    """

    def __init__(self, versions: Told, attribute: str, worth: Mapping[str, float]) -> None:
        super().__init__()
        self.texts, self.shapes, self.name = versions.texts, versions.shapes, versions.name  # type: ignore[method-assign]
        self.sources = versions.sources
        table = versions.columns()
        self._fixed = table
        self._answered = table
        self.model, self.format = self.models.of(MODEL), self.formats.of(FORMAT)
        self.yes, self.no = self.labels.of(YES), self.labels.of(NO)
        shapes = self.shapes.values
        self._text, self._shape = table.version_text, table.version_shape
        self._edited = np.array([float(s.arm != Arm.ORIGINAL) for s in shapes])
        self._spans = np.array([float(s.spans) for s in shapes])
        self._words = np.array([float(s.more_words) for s in shapes])
        self._chars = np.array([float(s.more_chars) for s in shapes])
        self._place = places(versions.said, self._text)
        self._moves = {unit: moves(versions.said, self._text, cut) for unit, cut in CUTS.items()}
        edited = np.array([s.arm == Arm.EDITED for s in shapes], dtype=bool)[self._shape]
        self._neutral = {
            unit: ~np.isin(np.arange(z.shape[1]), np.unique(z[edited].indices)) for unit, z in self._moves.items()
        }
        self._side = sides(shapes, attribute, worth)

    def columns(self) -> Columns:
        """The versions, and the answers that were drawn last."""
        return self._answered

    @property
    def versions(self) -> int:
        """How many versions there are."""
        return len(self._text)

    def centres(self, rng: Generator, effects: Effects) -> Floats:
        """What the words and the shape of each version add to its margin; drawn before everything else."""
        e = effects
        of_shape = (
            e.net * self._side + e.edited * self._edited + e.more_words * self._words + e.more_chars * self._chars
        )
        out: Floats = of_shape[self._shape] + e.position * self._place
        for unit, sd in (("token", e.word), ("trigram", e.trigram)):
            if sd:
                drawn = rng.normal(0.0, sd, self._moves[unit].shape[1])
                out = out + self._moves[unit] @ (np.where(self._neutral[unit], e.neutral, 1.0) * drawn)
        return out

    def margins(self, rng: Generator, effects: Effects) -> Floats:
        """The margin of each version."""
        e, shapes = effects, self._shape
        out = self.centres(rng, e)
        texts = len(self.texts.values)
        out = out + rng.normal(size=texts)[self._text] + e.drift * np.arange(len(shapes)) / len(shapes)
        if e.noise:
            out = out + rng.normal(0.0, e.noise, len(out))
        if e.per_source:
            units = self.units()
            own = rng.normal(0.0, e.per_source, int(units.max(initial=0)) + 1)
            out = out + own[units[self._text]] * self._side[shapes]
        if e.per_change:
            out = out + self._spans[shapes] * rng.normal(0.0, e.per_change, len(out))
        if e.fragile:
            turned = (rng.random(texts) < e.fragile)[self._text] & (self._edited[shapes] > 0)
            out = np.where(turned, -out, out)
        return out

    def give(self, numbers: Floats) -> None:
        """Take ``numbers`` as the answers to all versions."""
        n = len(numbers)
        zero = np.zeros(n, dtype=np.int64)
        self._answered = self._fixed._replace(
            version=np.arange(n),
            model=zero,
            format=zero,
            status=np.full(n, STATUS["ok"]),
            label=zero - 1,
            score=numbers,
        )

    def follow(self, whole: Simulated) -> None:
        """Take the answers of ``whole``, of which these are the first versions, asked once each."""
        n, theirs = self.versions, whole.columns()
        self._answered = self._fixed._replace(
            version=theirs.version[:n],
            model=theirs.model[:n],
            format=theirs.format[:n],
            status=theirs.status[:n],
            label=theirs.label[:n],
            score=theirs.score[:n],
        )

    def draw(self, rng: Generator, effects: Effects, *, scores: bool = False, number: bool = False) -> Floats:
        """Draw answers to all versions; returns the margins behind them.

        Parameters
        ----------
        scores : bool
            Whether labels come with their log odds.
        number : bool
            Whether the margin is itself the answer.
        """
        margins = self.margins(rng, effects)
        k = effects.replicates
        version = np.repeat(np.arange(self.versions), k)
        m = margins[version]
        yes = (m > 0) ^ (rng.random(len(m)) < effects.wobble) if effects.wobble else m > 0
        status = np.full(len(m), STATUS["ok"])
        if effects.refused:
            base = math.log(effects.refused / (1 - effects.refused)) + rng.normal(0.0, 1.0, len(self.texts.values))
            shape = effects.refused_per_word * self._words + effects.refused_net * self._side
            odds = base[self._text[version]] + shape[self._shape[version]]
            status[rng.random(len(m)) < 1 / (1 + np.exp(-odds))] = STATUS["refused"]
        ok = status == STATUS["ok"]
        zero = np.zeros(len(m), dtype=np.int64)
        self._answered = self._fixed._replace(
            version=version,
            model=zero,
            format=zero,
            status=status.astype(np.int64),
            label=np.where(ok & (not number), np.where(yes, self.yes, self.no), -1).astype(np.int64),
            score=np.where(ok & (scores or number), m, np.nan),
        )
        return margins
