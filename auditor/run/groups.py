"""Group fairness of a finished run (ASTRAEA, Algorithm 4 and Table 6): mean scores by group, from its answers.

A case of a grammar run with ``per_seed=None`` holds one sentence with a term of every group. Only cases that were
drawn independently of verdicts count. Where a sentence has several terms of a group, their scores are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from auditor.core.errors import ConfigError, UnknownPlugin, UserError
from auditor.core.types import is_beside
from auditor.measure.fairness import ROUNDS, GroupFairness, group_fairness


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
    cells: dict[str, dict[str, dict[str, list[float]]]] = {}  # label -> case -> group -> scores
    groups: set[str] = set()
    try:
        for case, checks in folder.cases():
            if case.sampling != "iid":
                continue
            for variant in (case.original, *case.variants):
                group = variant.groups.get(attribute)
                if group is None or set(variant.attributes) - {attribute}:
                    continue
                check = checks.get(variant.id)
                # A placebo names the original's group once more; a discarded variant is no text to compare.
                if is_beside(variant) or (check is not None and check.status == "invalid"):
                    continue
                groups.add(group)
                for label, score in _scores(evidence, variant.id, chosen).items():
                    cells.setdefault(label, {}).setdefault(case.id, {}).setdefault(group, []).append(score)
    finally:
        evidence.close()
    if len(groups) < 2:
        raise ConfigError(f"{record['id']}: fewer than two groups of {attribute!r}; see --attribute")
    if not cells:
        raise UserError(
            f"{record['id']}: the answers of {chosen} carry no scores, so no means can be compared."
        )
    for label in labels or ():
        if label not in cells:
            raise UnknownPlugin("label", label, cells)
    return [_compare(label, cells[label], sorted(groups), rounds, seed) for label in labels or sorted(cells)]


def _scores(evidence: Any, variant_id: str, model: str) -> dict[str, float]:
    """Mean score of each label over the replicates of one variant."""
    found: dict[str, list[float]] = {}
    for response in evidence.responses(variant_id):
        if response.model == model:
            for label, score in (response.scores or {}).items():
                found.setdefault(label, []).append(score)
    return {label: fmean(scores) for label, scores in found.items()}


def _compare(
    label: str, cases: dict[str, dict[str, list[float]]], groups: Sequence[str], rounds: int, seed: int
) -> GroupFairness:
    table = {
        group: [fmean(found[group]) if group in found else None for _, found in sorted(cases.items())]
        for group in groups
    }
    paired = all(score is not None for scores in table.values() for score in scores)
    return group_fairness(table, score=f"p({label})", paired=paired, rounds=rounds, seed=seed)
