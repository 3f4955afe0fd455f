"""What the runs of a session, taken together, show about each attribute set.

A session looks, then looks again where it saw something. The rule that keeps this honest
(docs/decisions/0041-agent.md): only a run on fresh texts, planned on disk before it was asked, settles
anything; and the j-th such run tests at level α / 2^j, so that all of them together err in at most α of the sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

ALPHA = 0.05


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


def settled(row: Mapping[str, Any], alpha: float) -> str:
    """The verdict of one set of a fresh run under ``alpha``: the run's own, or less.

    A bound is taken from the first fresh run alone: its interval has no level to spend over several.
    """
    verdict = str(row["verdict"])
    p = row["p_adjusted"]
    if verdict == "shown" and p is not None and not p < alpha:
        return "not_determined"
    if verdict == "bounded" and alpha < level(1):
        return "not_determined"
    return verdict


def questions(runs: Iterable[Mapping[str, Any]], declared: Iterable[tuple[str, ...]]) -> list[dict[str, Any]]:
    """One entry per model and attribute set: the verdict of the session, where it comes from, what was only explored.

    Parameters
    ----------
    runs : iterable of mapping
        In order, each with ``name``, ``purpose``, ``counts_as_fresh``, ``level`` and ``figures``
        (as of `reading.figures`).
    declared : iterable of tuple of str
        Sets that the goal asks about; they stand in the list also where no run reached them.

    Returns
    -------
    list of dict
        ``attributes``, ``model``, ``declared``, ``verdict``, ``run``, ``finding``, ``level``, ``explored``
        (runs that looked at it and are not fresh), ``row`` (figures behind the verdict, or None).
    """
    asked = list(declared)
    table: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}
    rank = {"shown": 4, "shown_for_words": 3, "bounded": 2, "not_determined": 1, "not_tested": 0}
    models: list[str] = []
    for run in runs:
        for row in run["figures"]["sets"]:
            if row["model"] not in models:
                models.append(row["model"])
            entry = table.setdefault((row["model"], tuple(row["attributes"])), _blank())
            if not run["counts_as_fresh"]:
                entry["explored"].append(run["name"])
                continue
            verdict = settled(row, run["level"])
            known = (entry["row"] or row)["seeds"]
            newer = verdict == entry["verdict"] == "not_determined" and row["seeds"] >= known
            if entry["run"] is None or newer or rank[verdict] > rank[entry["verdict"]]:
                entry.update(
                    verdict=verdict,
                    run=run["name"],
                    finding=row["finding"],
                    level=run["level"],
                    row=dict(row),
                )
    for model in models or ["M1"]:
        for one in asked:
            table.setdefault((model, one), _blank())
    return [
        {"model": model, "attributes": list(names), "declared": names in asked, **entry}
        for (model, names), entry in sorted(
            table.items(), key=lambda item: (item[0][0], item[0][1] not in asked, len(item[0][1]), item[0][1])
        )
    ]


def _blank() -> dict[str, Any]:
    return {"verdict": "not_tested", "run": None, "finding": None, "level": None, "explored": [], "row": None}
