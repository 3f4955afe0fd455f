"""Thompson sampling over the alternatives of a grammar: a directed phase that goes on learning.

PROB (ASTRAEA, Algorithm 2) fixes its weights after RAND. Here the error rate of each alternative is drawn from its
posterior before every few cases, and each verdict enters the next draw (Thompson 1933; Russo et al. 2018).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from auditor.perturb.grammar.generate import Floats, base_weights
from auditor.perturb.grammar.model import Grammar
from auditor.perturb.grammar.shape import Choice


def bandit_weights(
    grammar: Grammar,
    counts: Mapping[Choice, int],
    errors: Mapping[Choice, int],
    rng: np.random.Generator,
    *,
    mix: float = 0.0,
) -> dict[str, Floats]:
    """Probabilities of the alternatives for the next few cases.

    Every rate is drawn from its Beta(1 + errors, 1 + cases without) posterior. In a sensitive rule the highest one
    gets all the weight; in other rules the squares of the rates are the weights, so that sentences differ.

    Parameters
    ----------
    grammar : Grammar
        Its ``directed`` names the rules that are weighted; None weights all.
    counts, errors : mapping of (rule, alternative) to int
        Cases that held the alternative so far, of both phases, and those among them that violated.
    rng : numpy.random.Generator
    mix : float
        In [0, 1]: the share of RAND that is mixed in.

    Returns
    -------
    dict of str to array
    """
    out = base_weights(grammar)
    for name, weights in out.items():
        if grammar.directed is not None and name not in grammar.directed:
            continue
        n = np.array([counts.get((name, i), 0) for i in range(len(weights))], dtype=np.float64)
        k = np.array([errors.get((name, i), 0) for i in range(len(weights))], dtype=np.float64)
        # A zero weight in the file leaves an alternative out on purpose.
        drawn = rng.beta(1 + k, 1 + n - k) * (weights > 0)
        if grammar.rules[name].attribute is not None:
            drawn = (drawn == drawn.max()).astype(np.float64)
        drawn = drawn**2
        out[name] = (1 - mix) * drawn / drawn.sum() + mix * weights
    return out
