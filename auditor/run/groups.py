"""Group fairness of a finished run (ASTRAEA, Algorithm 4 and Table 6): mean scores by group, from its answers.

A case of a grammar run with ``per_seed=None`` holds one sentence with a term of every group. Only cases that were
drawn independently of verdicts count. Where a sentence has several terms of a group, their scores are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from auditor.core.errors import ConfigError, UnknownPlugin, UserError
from auditor.core.types import Answer, Response
from auditor.measure.fairness import ROUNDS, GroupFairness, group_fairness, groups_of, scores_by_group
from auditor.run.observed import Observed


def group_report(
    folder: Any,
    *,
    attribute: str,
    labels: Sequence[str] | None = None,
    model: str | None = None,
    rounds: int = ROUNDS,
    seed: int = 7,
) -> list[GroupFairness]:
    """Compare the groups of ``attribute`` on the score of each label.

    Parameters
    ----------
    folder : RunFolder
        A run whose answers carry scores.
    attribute : str
        Whose groups.
    labels : sequence of str or None
        The labels whose scores are compared; None means all that the answers score.
    model : str or None
        None means the first model of the run.
    rounds, seed : int
        As in `auditor.measure.fairness.group_fairness`.

    Returns
    -------
    list of GroupFairness
        One for each label. Sentences are paired if every sentence has a score for every group.

    Raises
    ------
    UserError
        The run has no such groups, or its answers carry no scores.
    """
    record = folder.record()
    names = list(record["spec"]["models"])
    if model is not None and model not in names:
        raise UnknownPlugin("model", model, names)
    chosen = model or names[0]
    evidence = folder.evidence()
    observed = Observed()
    try:
        for case, checks in folder.cases():
            invalid = {v.id for v in case.variants if (c := checks.get(v.id)) and c.status == "invalid"}
            if case.sampling != "iid":
                continue
            own = [v for v in (case.original, *case.variants) if v.id not in invalid]
            observed.add(case, {v.id for v in own})
            for variant in own:
                for response in evidence.responses(variant.id):
                    if response.model == chosen:
                        observed.take({variant.id: _scores(response)}, model=chosen, format=response.format)
            observed.forget()
    finally:
        evidence.close()
    groups = groups_of(observed.table, attribute)
    if len(groups) < 2:
        raise ConfigError(f"{record['id']}: fewer than two groups of {attribute!r}; see --attribute")
    known = [str(label) for label in observed.table.labels.values]
    if not known:
        raise UserError(f"{record['id']}: the answers of {chosen} carry no scores, so no means can be compared.")
    for label in labels or ():
        if label not in known:
            raise UnknownPlugin("label", label, known)
    found = []
    for label in labels or sorted(known):
        table = scores_by_group(observed.table, attribute, label)
        paired = all(score is not None for scores in table.values() for score in scores)
        found.append(group_fairness(table, score=f"p({label})", paired=paired, rounds=rounds, seed=seed))
    return found


def _scores(response: Response) -> list[Answer]:
    """What a response says of each label: an answer that is the label's probability."""
    return [Answer(status="ok", value=label, number=p) for label, p in (response.scores or {}).items()]
