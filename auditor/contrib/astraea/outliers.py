"""Which of many words stand out (ASTRAEA, Algorithm 3): the index, and error rates.

The median-deviation index of ASTRAEA (Soremekun et al. 2022, §6) divides a distance from the median by the median of
such distances. That median is 0 where more than half of the values are equal, and with few values chance alone passes
the threshold often. So an exact test is given next to it.

In mutation runs a token is a term that was put in and its family the attribute; in runs of a grammar it is a terminal.
The unit is the case: several variants of one case count once, with an error if any of them violates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import msgspec
import numpy as np

from auditor.core.record.measured import Token, TokenFamily, Tokens
from auditor.measure.intervals import clopper_pearson
from auditor.measure.observations import Arm, Observations, Place, Shape
from auditor.measure.p_values import benjamini_hochberg
from auditor.measure.rates import MIN_UNITS, MIN_VALUES, tabulate

THRESHOLD = 2.0  # the published threshold of the absolute index
TINY = 1e-12
SIGNIFICANT = 0.05  # the false discovery rate at which a token is said to stand out


@dataclass(frozen=True, kw_only=True, slots=True)
class Indices:
    """Anomaly indices of several values, None for a value without one; or the ``reason`` why there are none.

    ``median`` and ``mad`` are of the values that took part; ``mad`` is 0.0 where that is the reason.
    """

    values: tuple[float | None, ...]
    median: float | None = None
    mad: float | None = None
    reason: str = ""


def anomaly_indices(values: Sequence[float], units: Sequence[int] | None = None) -> Indices:
    """Distance of each value from the median, in median absolute deviations, with its sign.

    ``units`` are the independent units behind each value: one with fewer than `MIN_UNITS` takes no part. An index of 2
    is two standard deviations of a normal distribution, as the paper reads its threshold.
    """
    from scipy.stats import median_abs_deviation

    enough = [units is None or units[i] >= MIN_UNITS for i in range(len(values))]
    part = np.asarray([v for v, ok in zip(values, enough, strict=True) if ok], dtype=float)
    none: tuple[float | None, ...] = (None,) * len(values)
    if len(part) < MIN_VALUES:
        what = f" with {MIN_UNITS} or more cases" if units is not None else ""
        return Indices(values=none, reason=f"not computable: fewer than {MIN_VALUES} values{what}")
    median = float(np.median(part))
    mad = float(median_abs_deviation(part, scale="normal"))
    # Equal values can differ in the last bits; such a deviation is none.
    if mad <= TINY * max(1.0, abs(median)):
        reason = "not computable: more than half of the values are equal, so their median deviation is 0"
        return Indices(values=none, median=median, mad=0.0, reason=reason)
    away = tuple(round((float(v) - median) / mad, 9) if ok else None for v, ok in zip(values, enough, strict=True))
    return Indices(values=away, median=median, mad=mad)


def funnel_p(errors: int, total: int, family_errors: int, family_total: int) -> float | None:
    """Exact two-sided binomial p value of one rate against the pooled rate of its family, itself included."""
    from scipy.stats import binomtest

    if not total or family_total <= total:
        return None
    return float(binomtest(errors, total, family_errors / family_total).pvalue)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """What one token came to: ``errors`` of ``n`` cases."""

    family: str
    token: str
    group: str
    n: int
    errors: int


def diagnose(tallies: Iterable[Tally]) -> tuple[list[Token], list[TokenFamily]]:
    """Error rates of tokens, the highest lower limit first, and of their families."""
    by_family: dict[str, list[Tally]] = {}
    for tally in tallies:
        if tally.n:
            by_family.setdefault(tally.family, []).append(tally)
    rows, families = [], []
    for name, own in sorted(by_family.items()):
        own.sort(key=lambda t: (t.token, t.group))
        errors, numbers = [t.errors for t in own], [t.n for t in own]
        indices = anomaly_indices([t.errors / t.n for t in own], numbers)
        pool = sum(errors), sum(numbers)
        families.append(
            TokenFamily(name=name, tokens=len(own), median=indices.median, mad=indices.mad, reason=indices.reason)
        )
        rows += [(t, index, pool) for t, index in zip(own, indices.values, strict=True)]
    p_values = [funnel_p(t.errors, t.n, *pool) for t, _, pool in rows]
    tokens = []
    for (t, index, pool), p, q in zip(rows, p_values, benjamini_hochberg(p_values), strict=True):
        rate = clopper_pearson(t.errors, t.n)
        tokens.append(
            Token(
                **asdict(t),
                rate=rate.value,
                low=rate.low,
                high=rate.high,
                index=index,
                p=p,
                q=q,
                anomalous=None if index is None else abs(index) > THRESHOLD,
                stands_out=q is not None and q <= SIGNIFICANT and t.errors * pool[1] > pool[0] * t.n,
            )
        )
    return sorted(tokens, key=lambda t: (-t.low, -t.rate, t.family, t.token)), families


def of_terms(table: Observations) -> dict[Place, list[Tally]]:
    """Count the terms that were put in, over variants that change one attribute, by model and format."""
    return {
        place: [
            Tally(family=family, token=term, group=group, n=n, errors=int((counts.violations > 0).sum()))
            for (family, term, group), counts in sorted(terms.items())
            if (n := int((counts.judged > 0).sum()))
        ]
        for place, terms in tabulate(table, _terms).items()
    }


def _terms(shape: Shape) -> list[tuple[str, str, str]]:
    if shape.arm != Arm.EDITED or len(shape.attributes) > 1:
        return []
    groups = ", ".join(sorted({target for _, _, target in shape.directions}))
    return [(shape.attributes[0], word, groups) for word in shape.words_in]


def as_record(
    model: str,
    format: str,
    unit: str,
    tallies: Iterable[Tally],
    enough: Callable[[list[Tally]], int | None] | None = None,
) -> dict[str, object]:
    """Return the diagnosis of one model as plain data; ``enough`` says how many cases give a family an index."""
    rows = list(tallies)
    tokens, families = diagnose(rows)
    kept = []
    for one in families:
        wanted = None if enough is None else enough([t for t in rows if t.family == one.name])
        kept.append(msgspec.structs.replace(one, enough=wanted))
    made = Tokens(model=model, format=format, unit=unit, families=tuple(kept), tokens=tuple(tokens))
    return dict(msgspec.to_builtins(made))


def of_words(table: Observations, places: Iterable[Place]) -> list[dict[str, object]]:
    """The diagnosis of each model and format for the run record: the terms that were put in."""
    terms = of_terms(table)
    return [as_record(*place, "term", terms[place]) for place in places if terms.get(place)]
