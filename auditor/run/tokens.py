"""Which words the changes go with: error rates of terminals or terms (ASTRAEA, Algorithm 3).

In runs from a grammar a token is a terminal and its family the production rule, as published; where a case has
several variants, a sensitive terminal counts in the variants it was put into. In mutation runs a token is a
term that was put in and its family the attribute. The unit is the case (one seed text, one
generated sentence): several variants of one case count once, with an error if any of them violates, so that
units are independent and the intervals are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.core.types import Case, Verdict
from auditor.measure import anomaly
from auditor.measure.observations import Arm, Observations, Shape
from auditor.measure.rates import Place, tabulate

SIGNIFICANT = 0.05  # the false discovery rate at which a token is said to stand out


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """What one token came to: ``errors`` of ``n`` cases."""

    family: str
    token: str
    group: str
    n: int
    errors: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """One line of the diagnosis.

    Attributes
    ----------
    n, errors : int
        Cases that held the token, and those of them that showed a violation.
    rate, low, high : float
        Share and its exact 95 % interval (Clopper–Pearson), in [0, 1].
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

    family: str
    token: str
    group: str
    n: int
    errors: int
    rate: float
    low: float
    high: float
    index: float | None
    p: float | None
    q: float | None
    shrunken: anomaly.Shrunken | None
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
    from auditor.measure.multiplicity import benjamini_hochberg

    by_family: dict[str, list[Tally]] = {}
    for tally in tallies:
        if tally.n:
            by_family.setdefault(tally.family, []).append(tally)
    found, families = [], []
    for name, rows in sorted(by_family.items()):
        rows = sorted(rows, key=lambda t: (t.token, t.group))
        indices = anomaly.anomaly_indices([t.errors / t.n for t in rows], [t.n for t in rows])
        prior = anomaly.fit_prior([t.errors for t in rows], [t.n for t in rows])
        pool = sum(t.errors for t in rows), sum(t.n for t in rows)
        families.append(
            Family(name=name, tokens=len(rows), median=indices.median, mad=indices.mad, reason=indices.reason)
        )
        found += [(t, index, prior, pool) for t, index in zip(rows, indices.values, strict=True)]
    p_values = [anomaly.funnel_p(t.errors, t.n, *pool) for t, _, _, pool in found]
    adjusted = benjamini_hochberg(p_values)
    tokens = [_token(*entry, p, q) for entry, p, q in zip(found, p_values, adjusted, strict=True)]
    return sorted(tokens, key=_rank), families


def _token(
    tally: Tally,
    index: float | None,
    prior: anomaly.Prior | None,
    pool: tuple[int, int],
    p: float | None,
    q: float | None,
) -> Token:
    from auditor.measure.intervals import clopper_pearson

    rate = clopper_pearson(tally.errors, tally.n)
    return Token(
        family=tally.family,
        token=tally.token,
        group=tally.group,
        n=tally.n,
        errors=tally.errors,
        rate=rate.value,
        low=rate.low,
        high=rate.high,
        index=index,
        p=p,
        q=q,
        shrunken=None if prior is None else anomaly.shrink(prior, tally.errors, tally.n),
        anomalous=None if index is None else abs(index) > anomaly.THRESHOLD,
        stands_out=q is not None and q <= SIGNIFICANT and tally.errors * pool[1] > pool[0] * tally.n,
    )


def _rank(token: Token) -> tuple[float, float, str, str]:
    value = token.shrunken.value if token.shrunken is not None else token.rate
    return (-value, -token.rate, token.family, token.token)


def of_terms(table: Observations) -> dict[Place, list[Tally]]:
    """Count the terms that were put in, over variants that change one attribute, by model and format."""
    return {
        place: [
            Tally(family=family, token=term, group=group, n=n, errors=int((counts.violations > 0).sum()))
            for (family, term, group), counts in sorted(found.items())
            if (n := int((counts.judged > 0).sum()))
        ]
        for place, found in tabulate(table, _terms).items()
    }


def _terms(shape: Shape) -> list[tuple[str, str, str]]:
    if shape.arm != Arm.EDITED or len(shape.attributes) > 1:
        return []
    groups = ", ".join(sorted({target for _, _, target in shape.directions}))
    return [(shape.attributes[0], word, groups) for word in shape.words_in]


def of_terminals(
    grammar: Any, counts: Mapping[tuple[str, int], int], errors: Mapping[tuple[str, int], int]
) -> list[Tally]:
    """Count the terminals of a grammar.

    Parameters
    ----------
    grammar : Grammar
        What the cases came from.
    counts, errors : mapping of (rule, alternative) to int
        Distinct cases that held an alternative, and those of them that violated.
    """
    from auditor.perturb.grammar.model import Terminal

    told = [(*place, grammar.rules[place[0]].alternatives[place[1]], n) for place, n in sorted(counts.items())]
    return [
        Tally(family=rule, token=one.text, group=one.group or "", n=n, errors=errors.get((rule, number), 0))
        for rule, number, one, n in told
        if isinstance(one, Terminal)
    ]


def of_swaps(grammar: Any, cases: Iterable[Case], verdicts: Iterable[Verdict]) -> list[Tally]:
    """Count the sensitive terminals that were put in, over variants that change one attribute.

    A case with many variants errs as soon as one of them does; counting whole cases, as for other terminals,
    would charge every term that stands in such a case with the error of one.

    Parameters
    ----------
    grammar : Grammar
        What the cases came from.
    cases : iterable of Case
        The cases.
    verdicts : iterable of Verdict
        Of one model and format.
    """
    places = {
        (terminal.attribute, terminal.text.lower()): (rule, terminal)
        for rule, terminal in grammar.terminals()
        if terminal.attribute is not None
    }
    told = {v.variant_id: v.outcome for v in verdicts if v.outcome in ("pass", "violation")}
    seen: dict[tuple[str, str, str], dict[str, bool]] = {}
    for case in cases:
        for variant in case.variants:
            if variant.order != 1 or variant.id not in told:
                continue
            for edit in variant.edits:
                place = places.get((edit.attribute, edit.target.lower()))
                if place is not None and edit.kind != "agreement":
                    rule, terminal = place
                    errs = seen.setdefault((rule, terminal.text, terminal.group or ""), {})
                    errs[case.id] = errs.get(case.id, False) or told[variant.id] == "violation"
    return [
        Tally(family=rule, token=text, group=group, n=len(errs), errors=sum(errs.values()))
        for (rule, text, group), errs in sorted(seen.items())
    ]


def as_record(model: str, format: str, unit: str, tallies: Sequence[Tally]) -> dict[str, object]:
    """The diagnosis of one model as plain data, for the run record."""
    import dataclasses

    tokens, families = diagnose(tallies)
    return {
        "model": model,
        "format": format,
        "unit": unit,
        "families": [dataclasses.asdict(f) for f in families],
        "tokens": [dataclasses.asdict(t) for t in tokens],
    }
