"""Cases per second from a grammar, with edits and provenance, beside the same cases made one object at a time.

A case is an original and one counterpart as strings, the edits as offsets, and the terminal of every cell as an
index. The object row makes the same as `auditor.core.types.Case` values through the suite.
"""

from __future__ import annotations

import resource
import time
from random import Random

import numpy as np
from common import Row

from auditor.perturb import grammar
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.grammar.counterparts import stream

RUNS = 3


def drawn(space: grammar.Space, n: int) -> tuple[float, int]:
    """Cases per CPU second over ``n`` cases, everything read, and the number of edits."""
    start, made, edits = time.process_time(), 0, 0
    for batch in stream(space, n, np.random.default_rng(7)):
        texts, variants = batch.texts(), batch.variants()
        edits += len(batch.edits)
        made += min(len(texts), len(variants))
    return made / (time.process_time() - start), edits


def objects(name: str, n: int) -> float:
    """Cases per CPU second as values with checks and ids, distinct ones only."""
    suite = GrammarSuite(grammar=name, generation="rand", cases=n, pairs=True)
    start, made = time.process_time(), 0
    while cases := suite.ask(1000, Random(0)):
        made += len(cases)
    return made / (time.process_time() - start)


def peak_mb() -> float:
    """The largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure() -> list[Row]:
    """All rows."""
    space = grammar.space(grammar.load("sentiment"))
    drawn(space, 50_000)
    speeds = sorted(drawn(space, 500_000)[0] for _ in range(RUNS))
    slow = objects("sentiment", 5_000)
    fast = speeds[RUNS // 2]
    drawn(space, 1_000_000)
    before = peak_mb()
    ten, edits = drawn(space, 10_000_000)
    return [
        Row(
            "grammar: pairs with edits and provenance",
            fast,
            "cases/s of CPU",
            RUNS,
            "as Case values, distinct",
            slow,
            fast / slow,
            "grammar sentiment, one core",
        ),
        Row("grammar: the same at 10 million", ten, "cases/s of CPU", note=f"{edits:,} edits"),
        Row("grammar: memory at 10 million", peak_mb(), "MB at most", 1, "at 1 million", before, peak_mb() / before),
    ]


if __name__ == "__main__":
    for row in measure():
        print(row)
