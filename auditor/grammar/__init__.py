"""Sentence grammars (ASTRAEA): read, check, count, draw.

>>> from auditor import grammar
>>> g = grammar.load("sentiment")
>>> grammar.space(g).derivations > 100_000
True
"""

from __future__ import annotations

from auditor.grammar.check import Problem, check
from auditor.grammar.load import available, load, parse
from auditor.grammar.model import Alternative, Grammar, Rule, Terminal
from auditor.grammar.shape import Space, space

__all__ = [
    "Alternative",
    "Grammar",
    "Problem",
    "Rule",
    "Space",
    "Terminal",
    "available",
    "check",
    "load",
    "parse",
    "space",
]
