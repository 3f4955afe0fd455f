"""Which of many words stand out (ASTRAEA, Algorithm 3): the index, and error rates.

The median-deviation index of ASTRAEA (Soremekun et al. 2022, §6) divides a distance from the median by the median of
such distances. That median is 0 where more than half of the values are equal, and with few values chance alone passes
the threshold often. So an exact test is given next to it.

In mutation runs a token is a term that was put in and its family the attribute; in runs of a grammar it is a terminal
and its family the production rule. The unit is the case: several variants of one case count once, with an error if any
of them violates; but a sensitive terminal counts in the variants it was put into.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from random import Random

import msgspec
import numpy as np

from auditor.core.record.measured import Token, TokenFamily, Tokens
from auditor.core.types import Case, Verdict
from auditor.measure.intervals import benjamini_hochberg, clopper_pearson
from auditor.measure.observations import Arm, Observations, Place, Shape
from auditor.measure.rates import MIN_UNITS, MIN_VALUES, tabulate
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.grammar.draw import base_weights
from auditor.perturb.grammar.model import Grammar, Terminal

THRESHOLD = 2.0  # the published threshold of the absolute index
SIGNIFICANT = 0.05  # the false discovery rate at which a token is said to stand out
SPARE = 1.4  # times the expected number of cases, because counts of words scatter


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """What one token came to: ``errors`` of ``n`` cases."""

    family: str
    token: str
    group: str
    n: int
    errors: int


def family_of(name: str, tallies: Sequence[Tally]) -> tuple[TokenFamily, list[float | None]]:
    """Return a family, and the index of each token: its rate's distance from the median in median absolute deviations.

    A token of fewer than `MIN_UNITS` cases takes no part, and has no index. An index of 2 is two standard deviations of
    a normal distribution, as the paper reads its threshold.
    """
    from scipy.stats import median_abs_deviation

    rates = [t.errors / t.n if t.n >= MIN_UNITS else None for t in tallies]
    part = [rate for rate in rates if rate is not None]
    family = TokenFamily(name=name, tokens=len(tallies), reason="")
    none: list[float | None] = [None] * len(tallies)
    if len(part) < MIN_VALUES:
        reason = f"not computable: fewer than {MIN_VALUES} values with {MIN_UNITS} or more cases"
        return msgspec.structs.replace(family, reason=reason), none
    median = float(np.median(part))
    mad = float(median_abs_deviation(part, scale="normal"))
    if not mad:
        reason = "not computable: more than half of the values are equal, so their median deviation is 0"
        return msgspec.structs.replace(family, median=median, mad=0.0, reason=reason), none
    away = [None if rate is None else round((rate - median) / mad, 9) for rate in rates]
    return msgspec.structs.replace(family, median=median, mad=mad), away


Enough = Callable[[Sequence[Tally]], int | None]  # how many cases give the tallies of a family an index


def diagnose(tallies: Iterable[Tally], enough: Enough | None = None) -> tuple[list[Token], list[TokenFamily]]:
    """Error rates of tokens, the highest lower limit first, and of their families.

    The p value is the exact two-sided binomial one against the pooled rate of the family, the token included.
    """
    from scipy.stats import binomtest

    by_family: dict[str, list[Tally]] = {}
    for tally in tallies:
        if tally.n:
            by_family.setdefault(tally.family, []).append(tally)
    rows, families = [], []
    for name, own in sorted(by_family.items()):
        own.sort(key=lambda t: (t.token, t.group))
        pool = sum(t.errors for t in own), sum(t.n for t in own)
        family, indices = family_of(name, own)
        families.append(family if enough is None else msgspec.structs.replace(family, enough=enough(own)))
        rows += [(t, index, pool) for t, index in zip(own, indices, strict=True)]
    p_values = [
        float(binomtest(t.errors, t.n, pool[0] / pool[1]).pvalue) if t.n < pool[1] else None for t, _, pool in rows
    ]
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
    model: str, format: str, unit: str, tallies: Iterable[Tally], enough: Enough | None = None
) -> dict[str, object]:
    """Return the diagnosis of one model as plain data."""
    tokens, families = diagnose(tallies, enough)
    made = Tokens(model=model, format=format, unit=unit, families=tuple(families), tokens=tuple(tokens))
    return dict(msgspec.to_builtins(made))


def of_words(table: Observations, places: Iterable[Place]) -> list[dict[str, object]]:
    """The diagnosis of each model and format for the run record: the terms that were put in."""
    terms = of_terms(table)
    return [as_record(*place, "term", terms[place]) for place in places if terms.get(place)]


def of_grammar(table: Observations, suite: GrammarSuite, places: Iterable[Place]) -> list[dict[str, object]]:
    """The diagnosis of each model and format for the run record: the terminals of the grammar."""
    rows = []
    for place in places:
        verdicts = list(table.of(*place))
        again, cases = _drawn_again(suite, verdicts)
        counted = [
            Tally(family=rule, token=one.text, group=one.group or "", n=n, errors=again.errors.get((rule, number), 0))
            for (rule, number), n in sorted(again.counts.items())  # distinct cases that held an alternative
            if isinstance(one := suite.grammar.rules[rule].alternatives[number], Terminal)
        ]
        if not again.describe()["pairs"]:
            counted = [t for t in counted if not t.group] + of_swaps(suite.grammar, cases, verdicts)
        if counted:
            rows.append(as_record(*place, "terminal", counted, partial(enough_cases, suite)))
    return rows


def enough_cases(suite: GrammarSuite, tallies: Sequence[Tally]) -> int | None:
    """Return about how many cases give the rule of ``tallies`` an index, rounded up to two digits.

    None where it has enough already, has too few terminals, or the grammar has fewer derivations.
    """
    about, rule, seen = suite.describe(), tallies[0].family, sum(t.n for t in tallies)
    weights = [
        float(weight)
        for one, weight in zip(suite.grammar.rules[rule].alternatives, base_weights(suite.grammar)[rule], strict=True)
        if isinstance(one, Terminal) and weight > 0
    ]
    if len(weights) < MIN_VALUES or sum(t.n >= MIN_UNITS for t in tallies) >= MIN_VALUES:
        return None
    rarest = sorted(weights, reverse=True)[MIN_VALUES - 1] / sum(weights)
    cases = about["cases"] * SPARE * MIN_UNITS / (seen * rarest)
    digits = 10 ** max(0, math.floor(math.log10(cases)) - 1)
    rounded = math.ceil(cases / digits) * digits
    return rounded if rounded <= suite.space.derivations else None


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


def _drawn_again(suite: GrammarSuite, verdicts: list[Verdict]) -> tuple[GrammarSuite, list[Case]]:
    """The suite once more, told the verdicts of one model alone, and its independent cases."""
    about = suite.describe()
    again = type(suite)(
        grammar=suite.grammar,
        generation="rand",
        cases=about["rand_cases"],
        **{key: about[key] for key in ("attributes", "order", "per_case", "pairs", "seed")},
    )
    cases: list[Case] = []
    while more := again.ask(1024, Random(0)):
        cases += more
    again.tell(verdicts)
    return again, cases
