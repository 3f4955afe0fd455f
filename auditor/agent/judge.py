"""What the runs of a session, taken together, show about each attribute set.

A session looks, then looks again where it saw something. The rule that keeps this honest
(docs/decisions/0041-agent.md): only a run on fresh texts, planned on disk before it was asked, settles
anything; and the j-th such run tests at level α / 2^j, so that all of them together err in at most α of the sessions.
"""

from __future__ import annotations

from collections.abc import Iterable

from auditor.agent.records import Entry, Question, Row
from auditor.core.types import VERDICTS, ClaimVerdict

ALPHA = 0.05
RANK = VERDICTS


def level(number: int, alpha: float = ALPHA) -> float:
    """Significance level of the ``number``-th fresh run of a session, counted from 1.

    Examples
    --------
    >>> level(1), level(2)
    (0.025, 0.0125)
    >>> sum(level(j) for j in range(1, 50)) <= ALPHA
    True
    """
    return float(alpha / 2**number)


def settled(row: Row, alpha: float) -> ClaimVerdict:
    """The verdict of one set of a fresh run under ``alpha``: the run's own, or less.

    A bound is taken from the first fresh run alone: its interval has no level to spend over several.
    """
    late = row.p_adjusted is not None and row.p_adjusted >= alpha
    if (row.verdict == "shown" and late) or (row.verdict == "bounded" and alpha < level(1)):
        return "not_determined"
    return row.verdict


def questions(runs: Iterable[Entry], declared: Iterable[tuple[str, ...]]) -> list[Question]:
    """One entry per model and attribute set: the verdict of the session, where it comes from, what was only explored.

    Parameters
    ----------
    runs : iterable of Entry
        Runs with figures, in order.
    declared : iterable of tuple of str
        Sets that the goal asks about; they stand in the list also where no run reached them.
    """
    asked = list(declared)
    table: dict[tuple[str, tuple[str, ...]], Question] = {}

    def of(model: str, names: tuple[str, ...]) -> Question:
        return table.setdefault((model, names), Question(model=model, attributes=names, declared=names in asked))

    for run in runs:
        for row in run.figures.sets if run.figures else ():
            entry = of(row.model, row.attributes)
            if not run.counts_as_fresh or run.level is None:
                entry.explored.append(run.name)
                continue
            verdict = settled(row, run.level)
            known = (entry.row or row).seeds
            newer = verdict == entry.verdict == "not_determined" and row.seeds >= known
            if entry.run is None or newer or RANK.index(verdict) < RANK.index(entry.verdict):
                entry.verdict, entry.run, entry.finding = verdict, run.name, row.finding
                entry.level, entry.row = run.level, row
    for model in {model for model, _ in table} or {"M1"}:
        for one in asked:
            of(model, one)
    return sorted(table.values(), key=lambda q: (q.model, not q.declared, len(q.attributes), q.attributes))
