"""The rule language of ``--fail-on``: what in a run record makes a command end with exit code 1.

Grammar (keywords and names of counts in any case; docs/formats.md explains it with examples)::

    rule     = and { "or" and }
    and      = not { "and" not }
    not      = "not" not | "(" rule ")" | atom
    atom     = count [ op number ] | rate op number
    count    = "shown" | "hidden" | "violations" | "failed" | "filtered" | "refused" | "unparsed" | "partial" | "never"
    rate     = ("rate" | "lower" | "upper") "(" ( places | score "(" places ")" ) ")" | score "(" places ")"
    score    = "causal" | "group" | "apparent_causal" | "apparent_group" | "share"      of a search over rows
    places   = place { sep place }
    place    = name [ ":" name "->" name ]          an attribute, or a direction in it; "all", "any"
    sep      = "x" | "×" | "*" | "+" | ","
    op       = ">" | ">=" | "<" | "<=" | "=" | "==" | "!="
    number   = digits [ "." digits ] [ "%" ]
    name     = letters, digits, "_" and "-", or a text in double quotes

A count without a comparison means "more than 0". Findings that are waived do not count.
"""

from auditor.core.rules.decide import Match, Outcome, evaluate
from auditor.core.rules.syntax import Count, Join, Not, Rate, Rule, RuleError, parse, rates

__all__ = ["Count", "Join", "Match", "Not", "Outcome", "Rate", "Rule", "RuleError", "evaluate", "parse", "rates"]
