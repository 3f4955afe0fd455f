"""Which terminals of a grammar the changes go with (ASTRAEA, Algorithm 3); their families are the production rules.

Where a case has several variants, a sensitive terminal counts in the variants it was put into.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from random import Random

from auditor.contrib.astraea.outliers import Tally, as_record
from auditor.core.types import Case, Verdict
from auditor.measure.observations import Observations, Place
from auditor.measure.rates import MIN_UNITS, MIN_VALUES
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.grammar.draw import base_weights
from auditor.perturb.grammar.model import Grammar, Terminal

SPARE = 1.4  # times the expected number of cases, because counts of words scatter


def of_run(table: Observations, suite: GrammarSuite, places: Iterable[Place]) -> list[dict[str, object]]:
    """The diagnosis of each model and format for the run record: the terminals of the grammar."""
    rows = []
    for place in places:
        verdicts = list(table.of(*place))
        again, cases = _drawn_again(suite, verdicts)
        counted = of_terminals(suite.grammar, again.counts, again.errors)
        if not again.describe()["pairs"]:
            counted = [t for t in counted if not t.group] + of_swaps(suite.grammar, cases, verdicts)
        if counted:
            rows.append(as_record(*place, "terminal", counted, partial(enough, suite)))
    return rows


def enough(suite: GrammarSuite, tallies: list[Tally]) -> int | None:
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


def of_terminals(
    grammar: Grammar, counts: Mapping[tuple[str, int], int], errors: Mapping[tuple[str, int], int]
) -> list[Tally]:
    """Count the terminals of a grammar.

    ``counts`` and ``errors`` are, by rule and number of the alternative, distinct cases that held an alternative, and
    those of them that violated.
    """
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
