"""Sentence grammars (ASTRAEA): read, check, count, draw.

>>> from auditor.perturb import grammar
>>> g = grammar.load("sentiment")
>>> grammar.Space(g).derivations > 100_000
True
"""

from __future__ import annotations

from auditor.perturb.grammar.model import Alternative, Grammar, Problem, Rule, Terminal, check
from auditor.perturb.grammar.reader import available, load, parse
from auditor.perturb.grammar.structures import Space

__all__ = ["Alternative", "Grammar", "Problem", "Rule", "Space", "Terminal", "available", "check", "load", "parse"]
