"""Which words the changes go with: error rates of terminals or terms (ASTRAEA, Algorithm 3).

In runs from a grammar a token is a terminal and its family the production rule, as published; where a case has
several variants, a sensitive terminal counts in the variants it was put into. In mutation runs a token is a
term that was put in and its family the attribute. The unit is the case (one seed text, one
generated sentence): several variants of one case count once, with an error if any of them violates, so that
units are independent and the intervals are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from auditor.core.protocols import Suite
from auditor.core.types import Case, Verdict
from auditor.measure.intervals import clopper_pearson
from auditor.measure.observations import Arm, Observations, Place, Shape
from auditor.measure.outliers import LEVEL, THRESHOLD, anomaly_indices
from auditor.measure.p_values import benjamini_hochberg
from auditor.measure.rates import tabulate

if TYPE_CHECKING:
    from auditor.perturb.grammar.cases import GrammarSuite
    from auditor.perturb.grammar.model import Grammar

MIN_WORTH, MAX_WORTH = 0.5, 1e6  # units of evidence that a prior is worth; beyond, all rates are equal
SIGNIFICANT = 0.05  # the false discovery rate at which a token is said to stand out


@dataclass(frozen=True, kw_only=True, slots=True)
class Prior:
    """A beta distribution of rates; ``alpha + beta`` is how many units of evidence it is worth."""

    alpha: float
    beta: float


def fit_prior(errors: Sequence[int], totals: Sequence[int]) -> Prior | None:
    """Beta distribution that the rates of a family come from, by maximum marginal likelihood.

    Parameters
    ----------
    errors, totals : sequence of int, shape (k,)
        Events and units of each member; members without units say nothing.

    Returns
    -------
    Prior or None
        None where there are fewer than two members with units, or where no unit or every unit has the event.
    """
    from scipy.special import betaln

    x, n = np.array([errors, totals], dtype=float)
    x, n = x[n > 0], n[n > 0]
    if len(n) < 2 or x.sum() in (0, n.sum()):
        return None
    centre = math.log(x.sum() / (n.sum() - x.sum()))
    low, high = math.log(MIN_WORTH), math.log(MAX_WORTH)
    spans = ((centre - 2.0, centre + 2.0), (low, high))
    alpha = beta = 1.0
    # The likelihood is smooth with one top: a grid, then a finer one around its best point, is exact enough
    # and cannot wander off along the flat ridge of equal rates.
    for _ in range(3):
        logits = np.linspace(*spans[0], 21)
        worths = np.linspace(*spans[1], 41)
        mean, worth = (1 / (1 + np.exp(-logits)))[:, None], np.exp(worths)[None, :]
        a, b = (mean * worth)[..., None], ((1 - mean) * worth)[..., None]
        gain = (betaln(a + x, b + n - x) - betaln(a, b)).sum(axis=-1)
        i, j = np.unravel_index(int(np.argmax(gain)), gain.shape)
        alpha, beta = float(a[i, j, 0]), float(b[i, j, 0])
        step = (float(logits[1] - logits[0]), float(worths[1] - worths[0]))
        spans = (
            (float(logits[i]) - step[0], float(logits[i]) + step[0]),
            (max(low, float(worths[j]) - step[1]), min(high, float(worths[j]) + step[1])),
        )
    return Prior(alpha=alpha, beta=beta)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shrunken:
    """A rate pulled towards those of its family, with the limits of its 95 % credible interval."""

    value: float
    low: float
    high: float


def shrink(prior: Prior, errors: int, total: int) -> Shrunken:
    """Posterior mean and credible interval of one rate under ``prior``."""
    from scipy.stats import beta

    a, b = prior.alpha + errors, prior.beta + total - errors
    tail = (1 - LEVEL) / 2
    return Shrunken(value=a / (a + b), low=float(beta.ppf(tail, a, b)), high=float(beta.ppf(1 - tail, a, b)))


def funnel_p(errors: int, total: int, family_errors: int, family_total: int) -> float | None:
    """Exact two-sided binomial p value of one rate against the pooled rate of its family, itself included.

    Including it keeps the pooled rate from being 0 where the member has the only events; the p value is on the
    safe side for it. None where the member is the whole family.
    """
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Token(Tally):
    """One line of the diagnosis.

    Attributes
    ----------
    rate, low, high : float
        Share of cases with a violation and its exact 95 % interval (Clopper–Pearson), in [0, 1].
    index : float or None
        Anomaly index within the family; None where it is not computable.
    p, q : float or None
        Exact binomial p value against the pooled rate of the family, and after Benjamini–Hochberg over all
        tokens of the model.
    shrunken : Shrunken or None
        The rate under the family's beta distribution.
    anomalous : bool or None
        ``|index| > 2``, as published; None without an index.
    stands_out : bool
        ``q`` is at most 0.05 and the rate is above the family's.
    """

    rate: float
    low: float
    high: float
    index: float | None
    p: float | None
    q: float | None
    shrunken: Shrunken | None
    anomalous: bool | None
    stands_out: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """What was compared with each other, and why there are no indices where there are none."""

    name: str
    tokens: int
    median: float | None
    mad: float | None
    reason: str


def diagnose(tallies: Iterable[Tally]) -> tuple[list[Token], list[Family]]:
    """Error rates of tokens with everything that says how far they may be read.

    Returns
    -------
    tokens : list of Token
        Highest shrunken rate first (the plain rate where there is none).
    families : list of Family
        In alphabetical order.

    Examples
    --------
    >>> rows = [Tally(family="job", token="nurse", group="", n=100, errors=30)]
    >>> rows += [Tally(family="job", token=str(i), group="", n=100, errors=4 + i % 3) for i in range(12)]
    >>> tokens, _ = diagnose(rows)
    >>> tokens[0].token, tokens[0].stands_out
    ('nurse', True)
    """
    by_family: dict[str, list[Tally]] = {}
    for tally in tallies:
        if tally.n:
            by_family.setdefault(tally.family, []).append(tally)
    rows, families = [], []
    for name, own in sorted(by_family.items()):
        own.sort(key=lambda t: (t.token, t.group))
        errors, numbers = [t.errors for t in own], [t.n for t in own]
        indices = anomaly_indices([t.errors / t.n for t in own], numbers)
        prior, pool = fit_prior(errors, numbers), (sum(errors), sum(numbers))
        families.append(
            Family(name=name, tokens=len(own), median=indices.median, mad=indices.mad, reason=indices.reason)
        )
        rows += [(t, index, prior, pool) for t, index in zip(own, indices.values, strict=True)]
    p_values = [funnel_p(t.errors, t.n, *pool) for t, _, _, pool in rows]
    tokens = []
    for (t, index, prior, pool), p, q in zip(rows, p_values, benjamini_hochberg(p_values), strict=True):
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
                shrunken=None if prior is None else shrink(prior, t.errors, t.n),
                anomalous=None if index is None else abs(index) > THRESHOLD,
                stands_out=q is not None and q <= SIGNIFICANT and t.errors * pool[1] > pool[0] * t.n,
            )
        )
    return sorted(tokens, key=_rank), families


def _rank(token: Token) -> tuple[float, float, str, str]:
    value = token.shrunken.value if token.shrunken is not None else token.rate
    return (-value, -token.rate, token.family, token.token)


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


def of_terminals(
    grammar: Grammar, counts: Mapping[tuple[str, int], int], errors: Mapping[tuple[str, int], int]
) -> list[Tally]:
    """Count the terminals of a grammar.

    ``counts`` and ``errors`` are, by rule and number of the alternative, distinct cases that held an alternative, and
    those of them that violated.
    """
    from auditor.perturb.grammar.model import Terminal

    tallies = []
    for (rule, number), n in sorted(counts.items()):
        one = grammar.rules[rule].alternatives[number]
        if isinstance(one, Terminal):
            wrong = errors.get((rule, number), 0)
            tallies.append(Tally(family=rule, token=one.text, group=one.group or "", n=n, errors=wrong))
    return tallies


def of_swaps(grammar: Grammar, cases: Iterable[Case], verdicts: Iterable[Verdict]) -> list[Tally]:
    """Count the sensitive terminals that were put in, over variants that change one attribute.

    A case with many variants errs as soon as one of them does; counting whole cases, as for other terminals,
    would charge every term that stands in such a case with the error of one. ``verdicts`` are of one model and format.
    """
    places = {
        (terminal.attribute, terminal.text.lower()): (rule, terminal)
        for rule, terminal in grammar.terminals()
        if terminal.attribute is not None
    }
    judged = {v.variant_id: v.outcome for v in verdicts if v.outcome in ("pass", "violation")}
    seen: dict[tuple[str, str, str], dict[str, bool]] = {}
    for case in cases:
        for variant in case.variants:
            if variant.order != 1 or variant.id not in judged:
                continue
            for edit in variant.edits:
                place = places.get((edit.attribute, edit.target.lower()))
                if place is not None and edit.kind != "agreement":
                    rule, terminal = place
                    errs = seen.setdefault((rule, terminal.text, terminal.group or ""), {})
                    errs[case.id] = errs.get(case.id, False) or judged[variant.id] == "violation"
    return [
        Tally(family=rule, token=text, group=group, n=len(errs), errors=sum(errs.values()))
        for (rule, text, group), errs in sorted(seen.items())
    ]


def as_record(model: str, format: str, unit: str, tallies: Iterable[Tally]) -> dict[str, object]:
    """The diagnosis of one model as plain data, for the run record."""
    tokens, families = diagnose(tallies)
    row: dict[str, object] = {"model": model, "format": format, "unit": unit}
    return row | {"families": list(map(asdict, families)), "tokens": list(map(asdict, tokens))}


def of_run(table: Observations, suite: Suite, places: Iterable[Place]) -> list[dict[str, object]]:
    """The diagnosis of each model and format for the run record: terminals of a grammar, or the terms put in."""
    from auditor.perturb.grammar.cases import GrammarSuite

    terms, rows = of_terms(table), []
    for place in places:
        unit, counted = "term", terms.get(place, [])
        if isinstance(suite, GrammarSuite):
            verdicts = list(table.of(*place))
            again, cases = _drawn_again(suite, verdicts)
            unit, counted = "terminal", of_terminals(suite.grammar, again.counts, again.errors)
            if not again.describe()["pairs"]:
                counted = [t for t in counted if not t.group] + of_swaps(suite.grammar, cases, verdicts)
        if counted:
            rows.append(as_record(*place, unit, counted))
    return rows


def _drawn_again(suite: GrammarSuite, verdicts: list[Verdict]) -> tuple[GrammarSuite, list[Case]]:
    """The suite once more, told the verdicts of one model alone, and its independent cases."""
    about = suite.describe()
    uniform = about["generation"] == "uniform"
    again = type(suite)(
        grammar=suite.grammar,
        generation="uniform" if uniform else "rand",
        cases=about["cases" if uniform else "rand_cases"],
        **{key: about[key] for key in ("attributes", "order", "per_case", "pairs", "seed")},
    )
    cases: list[Case] = []
    while more := again.ask(1024, Random(0)):
        cases += more
    again.tell(verdicts)
    return again, cases
