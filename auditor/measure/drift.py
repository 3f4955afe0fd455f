"""Whether a model is still what it was: within one run, and from date to date in a series of runs.

*Within a run* some prompts are asked again. If the model stays as it is, the answers to one prompt are exchangeable
over time, and may be shuffled.

*Between dates* each text has one value at each date: the difference between two groups, or the mean outcome of its
versions. If the model stayed what it was, the dates of a text are in no particular order: its last value could as well
be any of them, and texts are answered independently. So the p value of a look compares the mean distance of the last
values from those before with what it is when each text's last value is drawn from all of its own. Each p value becomes
an e-value (Vovk and Wang 2021), and their products, begun at every look with weights that sum to one, are an e-process:
that it ever reaches 1 / alpha has a chance of alpha at most, at however many looks (Ville's inequality).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from auditor.measure.observations import Floats, Ints
from auditor.measure.p_values import CHUNK, RESAMPLES

ALPHA = 0.01  # a shift puts a warning over the whole report: seldom without cause; of all looks and figures together
DRAWS = 9_999
LEAST = 6  # texts
ANSWERS = "answers"  # the figure of all answers, whoever they are about


# -- within a run ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Drift:
    """Result of the test on canary prompts.

    Attributes
    ----------
    p_value : float
        Of a permutation test, in (0, 1].
    prompts, answers : int
        Prompts that were answered at two or more times, and their answers.
    differing : int
        Prompts whose most frequent answer is not the same at all times.
    shifted : bool
        ``p_value`` below `ALPHA`.
    """

    p_value: float
    prompts: int
    answers: int
    differing: int
    shifted: bool


def shift(
    prompts: Sequence[Sequence[Sequence[Hashable]]], *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Drift | None:
    """Test whether the answers to each prompt have one distribution at all times; None where none has two times.

    They are shuffled within the prompt; the statistic is the sum over prompts, times and answers of count² / answers
    at that time.

    Parameters
    ----------
    prompts : sequence of sequences of sequences, shape (prompts, times, answers)
        The answers to each prompt at each time; times without answers are left out.

    Examples
    --------
    >>> same = shift([[["a", "a"], ["a", "a"]]] * 4, rng=np.random.default_rng(0))
    >>> same.p_value, same.shifted
    (1.0, False)
    """
    observed, null = 0.0, np.zeros(resamples)
    used = answers = differing = 0
    for times in prompts:
        arms = [arm for arm in times if len(arm)]
        if len(arms) < 2:
            continue
        used += 1
        codes: dict[Hashable, int] = {}
        flat = np.array([codes.setdefault(x, len(codes)) for arm in arms for x in arm])
        answers += len(flat)
        if len(codes) < 2:
            continue
        sizes = np.array([len(arm) for arm in arms])
        observed += float(_spread(flat[None], sizes, len(codes))[0])
        shuffled = rng.permuted(np.broadcast_to(flat, (resamples, len(flat))), axis=1)
        null += _spread(shuffled, sizes, len(codes))
        usual = {max(set(arm), key=lambda x: (list(arm).count(x), str(x))) for arm in arms}
        differing += len(usual) > 1
    if not used:
        return None
    p = (1 + int(np.count_nonzero(null >= observed - 1e-9))) / (1 + resamples)
    return Drift(p_value=p, prompts=used, answers=answers, differing=differing, shifted=p < ALPHA)


def _spread(codes: Ints, sizes: Ints, labels: int) -> Floats:
    """Statistic of one prompt for each row of ``codes``, shape (rows, answers)."""
    one_hot = codes[..., None] == np.arange(labels)
    counts = np.add.reduceat(one_hot, np.cumsum(sizes) - sizes, axis=1, dtype=np.int64)
    out: Floats = (counts**2 / sizes.astype(float)[:, None]).sum(axis=(1, 2))
    return out


# -- from date to date ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """One look at one figure.

    Attributes
    ----------
    difference : float or None
        Mean of the last values minus mean of those before, over texts; None where there is nothing before.
    p_value, e_value : float or None
        Of this look alone.
    capital : float
        Of all looks since the last change: a change is found where it reaches ``needed``.
    texts : int
        That were compared.
    """

    difference: float | None = None
    p_value: float | None = None
    e_value: float | None = None
    capital: float = 0.0
    needed: float
    texts: int

    @property
    def changed(self) -> bool:
        """Whether a change was found at this look."""
        return self.capital >= self.needed


def e_value(p: float) -> float:
    """What a bet against uniform p values returns (the mixture of ``k p^(k − 1)`` over k from 0 to 1).

    Examples
    --------
    >>> round(e_value(0.0001), 1), e_value(1.0)
    (117.8, 0.5)
    """
    if p >= 1:
        return 0.5
    log = math.log(p)
    return (1 - p + p * log) / (p * log * log)


def p_value(before: Floats, now: Floats, rng: np.random.Generator, draws: int = DRAWS) -> float:
    """How often the last values would lie as far off, were each drawn from all values of its text.

    ``before`` has shape (dates, texts). The Monte Carlo test is exact: the order that there was counts as one draw.
    """
    values = np.vstack([before, now])
    moved = values[:, np.ptp(values, axis=0) > 0]  # the others are the same whatever is drawn
    dates, texts = moved.shape
    if not texts:
        return 1.0
    total = moved.sum(axis=0)
    seen = abs(float((moved[-1] - (total - moved[-1]) / (dates - 1)).sum()))
    beyond, most = 0, max(1, CHUNK // texts)
    for start in range(0, draws, most):
        size = min(most, draws - start)
        drawn = np.take_along_axis(moved, rng.integers(dates, size=(size, texts)), axis=0)
        apart = np.abs((drawn - (total - drawn) / (dates - 1)).sum(axis=1))
        beyond += int((apart >= seen - 1e-9).sum())
    return (1 + beyond) / (1 + draws)


class Watch:
    """Looks at one figure, date by date; begins anew after a change. Alpha is shared by all ``figures`` watched."""

    def __init__(self, figures: int = 1, *, alpha: float = ALPHA, seed: int = 7) -> None:
        self._needed = figures / alpha
        self._rng = np.random.default_rng(seed)
        self._begin()

    def _begin(self) -> None:
        self._before: list[dict[str, float]] = []
        self._looks = 0
        self._capital = 0.0

    def look(self, values: dict[str, float]) -> Look:
        """Take the values of one more date, by text."""
        texts = sorted(set(values).intersection(*self._before)) if self._before else []
        look = Look(needed=self._needed, texts=len(texts))
        if len(texts) >= LEAST:
            before = np.array([[one[t] for t in texts] for one in self._before])
            now = np.array([values[t] for t in texts])
            p = p_value(before, now, self._rng)
            e = e_value(p)
            self._looks += 1
            self._capital = (self._capital + 1 / (self._looks * (self._looks + 1))) * e
            look = Look(
                difference=float(now.mean() - before.mean()),
                p_value=p,
                e_value=e,
                capital=self._capital + 1 / (self._looks + 1),
                needed=self._needed,
                texts=len(texts),
            )
        if look.changed:
            self._begin()
        self._before.append(values)
        return look


def moved(before: Sequence[dict[str, float]], now: dict[str, float], most: int) -> list[tuple[str, float, float]]:
    """The texts whose values moved most: text, mean before, now; those that did not move are left out."""
    means = [
        (text, float(np.mean([one[text] for one in before])), value)
        for text, value in now.items()
        if before and all(text in one for one in before)
    ]
    apart = [one for one in means if abs(one[2] - one[1]) > 1e-9]
    return sorted(apart, key=lambda one: (-abs(one[2] - one[1]), one[0]))[:most]


# -- a series of runs -----------------------------------------------------------------------------------------


class Key(NamedTuple):
    """What is followed: a pair of groups, or all answers, of one model."""

    model: str
    format: str
    attribute: str
    group: str
    reference: str
    label: str


class Moved(NamedTuple):
    """A text whose value is another than before."""

    id: str
    text: str
    before: float
    now: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One figure at one date."""

    run: str
    date: str
    value: float | None
    low: float | None
    high: float | None
    look: Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One figure over all dates."""

    key: Key
    unit: str
    points: tuple[Point, ...]

    @property
    def changed(self) -> tuple[Point, ...]:
        """The dates at which a change was found."""
        return tuple(point for point in self.points if point.look.changed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """All figures of a folder of runs.

    Attributes
    ----------
    runs : tuple of str
        Those of the plan, by date.
    others : mapping of str to str
        Runs that were left out, and why.
    moved : tuple of Moved
        Texts whose answers moved most at the last date where a change was found, else at the last date.
    moved_at : str
        That run.
    """

    folder: str
    runs: tuple[str, ...]
    others: Mapping[str, str]
    series: tuple[Series, ...]
    moved: tuple[Moved, ...] = ()
    moved_at: str = ""

    @property
    def changed(self) -> bool:
        """Whether a change was found at the last date."""
        return any(one.points[-1].look.changed for one in self.series if one.points)

    def as_record(self) -> dict[str, object]:
        """Plain data, looks among the points."""
        series = [
            one.key._asdict() | {"unit": one.unit, "points": list(map(_plain, one.points))} for one in self.series
        ]
        return {
            "folder": self.folder,
            "runs": list(self.runs),
            "others": dict(self.others),
            "changed": self.changed,
            "series": series,
            "moved": [one._asdict() for one in self.moved],
            "moved_at": self.moved_at,
        }


def _plain(point: Point) -> dict[str, object]:
    plain: dict[str, object] = asdict(point)
    del plain["look"]
    return plain | asdict(point.look) | {"changed": point.look.changed}
