"""A proposal as a plan on disk: everything that the user fixed, and what the proposal chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.agent import judge
from auditor.agent.request import Request
from auditor.agent.settings import Settings
from auditor.core.plan import Plan
from auditor.core.types import FORMAT_VERSION, Seed, digest

NO_LIMITS: Mapping[str, Any] = {"calls": None, "cost_usd": None, "seconds": None}
OF_TEXTS = ("text_column", "label_column", "id_column", "limit")  # a run reads texts that the session wrote


def build(
    settings: Settings, request: Request, *, left: Mapping[str, Any], out: Path, data: Path | None, runs: int
) -> Plan:
    """The plan of ``request``.

    Parameters
    ----------
    settings : Settings
        What the user fixed.
    request : Request
        The proposal.
    left : mapping
        What is left of each limit.
    out : Path
        Where run folders are made.
    data : Path or None
        The texts of the run; None for a grammar.
    runs : int
        Runs made before.
    """
    grammar = request.suite == "grammar"
    return Plan(
        **{
            **{k: v for k, v in settings.common.items() if k not in OF_TEXTS},
            "task": settings.goal.task,
            "models": settings.names,
            "data": None if grammar or data is None else str(data),
            "attributes": request.attributes,
            "groups": request.groups,
            "order": request.order,
            "suite": request.suite,
            "generation": "rand" if grammar else "prob",
            "limit": request.texts if grammar else None,
            "per_seed": request.per_seed,
            "replicates": request.replicates,
            "insertions": request.insertions,
            "strategy": request.strategy,
            "scope": request.scope,
            # Another grammar run draws other sentences; a text keeps its variants whatever its number.
            "seed": settings.seed + (runs if grammar else 0),
            "max_calls": left["calls"],
            "max_cost": left["cost_usd"],
            "max_seconds": left["seconds"],
            "out": str(out),
        }
    )


def entry(request: Request, reason: str, *, runs: Sequence[Mapping[str, Any]], texts: int) -> dict[str, Any]:
    """What ``session.json`` says of a run that is planned: the ``len(runs) + 1``-th."""
    fresh = request.purpose == "fresh"
    return {
        "name": f"R{len(runs) + 1}",
        "purpose": request.purpose,
        "counts_as_fresh": fresh,
        "level": judge.level(sum(r["counts_as_fresh"] for r in runs) + 1) if fresh else None,
        "request": request.as_dict(),
        "reason": reason,
        "folder": None,
        "texts": texts,
        "calls": 0,
        "cost_usd": 0.0,
        "priced": "free",
        "figures": None,
        "ends": [],
        "reasons": {},
        "said": {},
        "notes": [],
    }


def write(
    path: Path, run: Mapping[str, Any], plan: Plan, chosen: Sequence[Seed], figures: Mapping[str, Any]
) -> None:
    """Write ``plan-NN.json``: the plan, its reason and the figures behind it."""
    from auditor.store.files import write_json

    values = {
        "format_version": FORMAT_VERSION,
        "run": run["name"],
        "request": run["request"],
        "reason": run["reason"],
        "figures": dict(figures),
        "level": run["level"],
        "texts_sha256": digest([s.text for s in chosen]),
        "plan": plan.as_dict(),
    }
    write_json(path, values)
