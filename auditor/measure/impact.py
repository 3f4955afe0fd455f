"""Selection rates and impact ratios of groups of people, exactly.

Pure functions on counts. A count ``x of n`` is people selected (or scoring above the median) of people
assessed; rates and ratios are `fractions.Fraction`, so that nothing is decided on a rounded figure.
Intervals and tests compare ``x`` of ``n`` people with the reference, ``x0`` of ``n0``.

References
----------
6 RCNY 5-300 to 5-304 (New York City, automated employment decision tools); 29 CFR 1607.4(D) (four-fifths rule
of thumb); 44 FR 11996 (1979), questions 18 to 27 (one person more or less).

A. Donner, G. Y. Zou, Closed-form confidence intervals for functions of the normal mean and standard deviation,
Statistical Methods in Medical Research 21 (2012): limits of a ratio from the limits of its parts (MOVER-R).
C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934). J. C. Hsu, Constrained
simultaneous confidence intervals for multiple comparisons with the best, Annals of Statistics 12 (1984).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from auditor.measure.intervals import LEVEL, holm

FOUR_FIFTHS = Fraction(4, 5)
STEADY = 30  # people that a reference has at least, besides 2 % of the table, for ratios to rest on it
REFERENCE, EMPTY = "the reference itself", "nobody in this category"
ZERO_REFERENCE = "not computable: the rate of the reference is 0"
NO_REFERENCE = "not computable: no category holds anybody"
METHOD = "MOVER-R of Clopper–Pearson limits, to the best of all categories (Hsu, Bonferroni)"
METHOD_ONE_PER_RUN = "Clopper–Pearson on the sum of two, to the best of all categories (Hsu, Bonferroni)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """``x`` of ``n`` people of one category; 0 <= x <= n."""

    category: str
    n: int
    x: int

    def __post_init__(self) -> None:
        if not 0 <= self.x <= self.n:
            raise ValueError(f"{self.category}: 0 <= x <= n, got {self.x} of {self.n}")

    @property
    def rate(self) -> Fraction | None:
        """``x / n``; None where nobody is in the category."""
        return Fraction(self.x, self.n) if self.n else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One category of an `ImpactTable`."""

    count: Count
    justification: str | None  # why it is left out of the impact ratios; None: it is not left out
    reason: str  # why there is no ratio
    interval: tuple[float, float] | None = None  # of the ratio to the highest true rate (`to_best`)
    share: Fraction | None = None  # of the people of the table
    small: bool = False  # below 2 % of them
    ratio: Fraction | None = None
    ratio_to_excluded: Fraction | None = None  # where the highest rate of all is left out
    ratio_to_steady: Fraction | None = None  # to `ImpactTable.steady_reference`
    below_four_fifths: bool | None = None  # whether the upper limit is; None without a ratio
    one_person_flip: bool | None = None  # None without a ratio, and for the reference
    p: float | None = None  # exact, two-sided, against the reference
    p_holm: float | None = None  # adjusted for the tests of this table
    z: float | None = None  # difference to the reference in standard deviations, pooled


@dataclass(frozen=True, kw_only=True, slots=True)
class ImpactTable:
    """Rates and ratios of the categories of one breakdown.

    ``reference`` is the category with the highest rate among those that are not left out,
    ``excluded_reference`` one that is left out and has a higher rate, ``steady_reference`` where the reference holds
    few people (below 2 % of the table, or fewer than `STEADY`) the one with the highest rate among the others.
    ``omnibus_p`` belongs to the question whether the rates differ at all; ``interval_method`` to `Row.interval`.
    """

    rows: tuple[Row, ...]
    n: int
    x: int
    reference: str | None
    excluded_reference: str | None
    steady_reference: str | None
    omnibus_p: float | None
    interval_method: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MedianRule:
    """The median of a full sample, and how much of the sample it splits.

    ``above`` and ``tied`` are numbers of people of the ``n`` strictly above the median and exactly at it.
    """

    median: Fraction
    n: int
    above: int
    tied: int


# -- exact ------------------------------------------------------------------------------------------------------


def round_half_up(value: Fraction, digits: int) -> str:
    """Write an exact value with ``digits`` decimals, halves away from zero."""
    scaled = (abs(value) * 10**digits * 2 + 1) // 2
    whole, rest = divmod(scaled, 10**digits)
    sign = "-" if value < 0 and scaled else ""
    return f"{sign}{whole}.{rest:0{digits}d}" if digits else f"{sign}{whole}"


def ratio_text(value: Fraction, digits: int = 3) -> str:
    """Write a ratio with ``digits`` decimals, or with as many as show on which side of 4/5 it lies."""
    while value != FOUR_FIFTHS and Fraction(round_half_up(value, digits)) == FOUR_FIFTHS and digits < 30:
        digits += 1
    return round_half_up(value, digits)


def impact_ratio(count: Count, reference: Count) -> Fraction | None:
    """Rate of ``count`` over that of ``reference``; None where one has nobody or the reference's rate is 0."""
    if not count.n or not reference.n or not reference.x:
        return None
    return Fraction(count.x * reference.n, count.n * reference.x)


def below_four_fifths(count: Count, reference: Count) -> bool:
    """Whether the rate is less than four-fifths of the reference's, in integers; exactly 4/5 is not less."""
    return 5 * count.x * reference.n < 4 * reference.x * count.n


def is_small(n: int, total: int) -> bool:
    """Whether ``n`` is below 2 % of ``total``, in integers."""
    return 50 * n < total


def highest(counts: Sequence[Count]) -> Count | None:
    """The category with the highest rate; of equal ones the largest, then the first."""
    return max((c for c in counts if c.n), key=lambda c: (Fraction(c.x, c.n), c.n), default=None)


def one_person_flip(counts: Sequence[Count], category: str, reference: str) -> bool | None:
    """Whether one selection given to another person moves the ratio of ``category`` across 4/5.

    Below 4/5 the category gets one selection more and the reference one less; else the reverse. The highest rate is
    then looked up anew. None where no such move is possible.
    """
    now = {c.category: c for c in counts}
    own, other = now[category], now[reference]
    below = below_four_fifths(own, other)
    step = 1 if below else -1
    if not (0 <= own.x + step <= own.n and 0 <= other.x - step <= other.n):
        return None
    now[category], now[reference] = replace(own, x=own.x + step), replace(other, x=other.x - step)
    top = highest(tuple(now.values()))
    assert top is not None
    return below_four_fifths(now[category], top) is not below


def median_rule(scores: Sequence[Fraction]) -> MedianRule:
    """Take the median of the full sample, once; a score counts as above it only if it is strictly higher."""
    if not scores:
        raise ValueError("a median needs at least one score")
    ordered = sorted(scores)
    half, odd = divmod(len(ordered), 2)
    middle = ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2
    above, tied = sum(s > middle for s in scores), sum(s == middle for s in scores)
    return MedianRule(median=middle, n=len(scores), above=above, tied=tied)


def table(
    counts: Sequence[Count], *, excluded: Mapping[str, str] | None = None, one_per_run: bool = False
) -> ImpactTable:
    """Compute one breakdown.

    Categories ``excluded`` from the ratios, with the justification, still have rates. With ``one_per_run`` every
    selection was one choice among all categories (a ranking's first place): tests condition on sums of two.
    """
    excluded = {k: v for k, v in (excluded or {}).items() if any(c.category == k for c in counts)}
    if any(not reason.strip() for reason in excluded.values()):
        raise ValueError("each category that is left out needs a justification")
    kept = [c for c in counts if c.category not in excluded]
    reference, top = highest(kept), highest(counts)
    total = sum(c.n for c in counts)

    def few(count: Count) -> bool:  # people, for ratios to rest on them
        return count.n < STEADY or is_small(count.n, total)

    higher = top and (reference is None or top.x * reference.n > reference.x * top.n)
    beyond = top if top and higher and top.category in excluded else None
    steady = highest([c for c in kept if not few(c)]) if reference and few(reference) else None
    people = [c for c in kept if c.n]
    limits = to_best([(c.x, c.n) for c in people], one_per_run=one_per_run)
    intervals = {c.category: limit for c, limit in zip(people, limits, strict=True)}
    rows = []
    for count in counts:
        reason = _why_none(count, reference, excluded.get(count.category))
        against = reference if not reason else None  # another category
        ratio = impact_ratio(count, reference) if reference and reason in ("", REFERENCE) else None
        limit = intervals[count.category] if against else None
        pair = (count.x, count.n, against.x, against.n) if against else None
        rows.append(
            Row(
                count=count,
                justification=excluded.get(count.category),
                reason=reason,
                interval=limit,
                share=Fraction(count.n, total) if total else None,
                small=bool(count.n) and is_small(count.n, total),
                ratio=ratio,
                ratio_to_excluded=impact_ratio(count, beyond) if beyond else None,
                ratio_to_steady=impact_ratio(count, steady) if steady and ratio is not None else None,
                below_four_fifths=None if ratio is None else limit is not None and limit[1] < FOUR_FIFTHS,
                one_person_flip=one_person_flip(kept, count.category, against.category) if against else None,
                p=exact_test(*pair, one_per_run=one_per_run) if pair else None,
                z=z_score(*pair) if pair and not one_per_run else None,
            )
        )
    rows = [replace(row, p_holm=p) for row, p in zip(rows, holm([row.p for row in rows]), strict=True)]
    return ImpactTable(
        rows=tuple(rows),
        n=total,
        x=sum(c.x for c in counts),
        reference=reference.category if reference else None,
        excluded_reference=beyond.category if beyond else None,
        steady_reference=steady.category if steady else None,
        omnibus_p=omnibus([(c.x, c.n) for c in counts if c.n], one_per_run=one_per_run),
        interval_method=METHOD_ONE_PER_RUN if one_per_run else METHOD,
    )


def _why_none(count: Count, reference: Count | None, justification: str | None) -> str:
    """Why a category has no ratio to another one; empty where it has one."""
    if justification is not None:
        return f"left out of the impact ratios: {justification}"
    if reference is None:
        return NO_REFERENCE
    if not count.n:
        return EMPTY
    return ZERO_REFERENCE if not reference.x else REFERENCE if count is reference else ""


# -- intervals and tests ----------------------------------------------------------------------------------------------


def to_best(counts: Sequence[tuple[int, int]], *, one_per_run: bool = False) -> list[tuple[float, float] | None]:
    """Return the interval of each category's rate over the highest true rate, at `LEVEL` each, of counts (x, n).

    The data name a best category, and chance helps it there. So no category is taken as given. The ratio to the best
    rate is at most the ratio to any rate: the upper limit is the lowest one against each other category, at a level
    shared among them (Bonferroni). One category is truly the best: the lower limit is the lowest one against each. The
    limits of single rates are exact, so few people give a wide interval.
    """
    if len(counts) < 2:
        return [None] * len(counts)
    x, n = np.array(counts, dtype=float).T
    limits, tail = _upper_one_per_run if one_per_run else _upper, (1 - LEVEL) / 2
    upper, back = limits(x, n, tail / (len(counts) - 1)), limits(x, n, tail)
    np.fill_diagonal(upper, np.inf)
    np.fill_diagonal(back, 1.0)
    high, low = upper.min(axis=1), 1 / back.max(axis=0)  # the lowest ratio is one over the highest the other way round
    return [(float(a), float(b)) if math.isfinite(b) else None for a, b in zip(low, high, strict=True)]


def _upper(x: NDArray[np.float64], n: NDArray[np.float64], tail: float) -> NDArray[np.float64]:
    """Upper limits of the rates (rows) over each other (columns); inf where the other may be 0."""
    from scipy.stats import beta

    rate = x / n
    most = np.where(x < n, beta.isf(tail, x + 1, np.maximum(n - x, 1)), 1.0)[:, None]
    least = np.where(x > 0, beta.ppf(tail, np.maximum(x, 1), n - x + 1), 0.0)
    own, other, below = rate[:, None], rate[None, :], (least * (2 * rate - least))[None, :]
    root = np.sqrt(np.maximum((own * other) ** 2 - most * (2 * own - most) * below, 0.0))
    limits = np.full((len(x), len(x)), np.inf)
    np.divide(own * other + root, below, out=limits, where=below > 0)
    return limits


def _upper_one_per_run(x: NDArray[np.float64], n: NDArray[np.float64], tail: float) -> NDArray[np.float64]:
    """`_upper` for first places: the share that one of two categories has of their sum."""
    from scipy.stats import beta

    share = beta.isf(tail, x[:, None] + 1, np.maximum(x, 1)[None, :])
    limits: NDArray[np.float64] = np.where(x[None, :] > 0, share / (1 - share) * n[None, :] / n[:, None], np.inf)
    return limits


def exact_test(x: int, n: int, x0: int, n0: int, *, one_per_run: bool = False) -> float:
    """Two-sided exact p value of equal rates: Fisher's test, or with ``one_per_run`` the binomial test."""
    if one_per_run:
        from scipy.stats import binomtest

        return float(binomtest(x, x + x0, n / (n + n0)).pvalue) if x + x0 else 1.0
    from scipy.stats import fisher_exact

    return min(1.0, float(fisher_exact([[x, n - x], [x0, n0 - x0]]).pvalue))


def z_score(x: int, n: int, x0: int, n0: int) -> float | None:
    """Difference of the rates in pooled standard deviations; None where everybody or nobody is selected."""
    pooled = (x + x0) / (n + n0)
    variance = pooled * (1 - pooled) * (1 / n + 1 / n0)
    return (x / n - x0 / n0) / math.sqrt(variance) if variance > 0 else None


def omnibus(counts: Sequence[tuple[int, int]], *, one_per_run: bool = False) -> float | None:
    """Chi-square p value of equal rates in all categories (x of n each); None where there is no spread."""
    selected, total = sum(x for x, _ in counts), sum(n for _, n in counts)
    if len(counts) < 2 or selected in (0, total):
        return None
    if one_per_run:
        from scipy.stats import chisquare

        return float(chisquare([x for x, _ in counts], [selected * n / total for _, n in counts]).pvalue)
    from scipy.stats import chi2_contingency

    return float(chi2_contingency([[x for x, _ in counts], [n - x for x, n in counts]])[1])
