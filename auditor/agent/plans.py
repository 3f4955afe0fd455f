"""A proposal as a plan: everything that the user fixed, and what the proposal chooses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auditor.agent import judge
from auditor.agent.records import Entry, Left
from auditor.agent.request import Request
from auditor.agent.settings import Settings
from auditor.core.plan import Plan

OF_TEXTS = (  # a run reads texts that the session wrote
    "text_column", "label_column", "id_column", "source_column", "limit",
)  # fmt: skip


def build(settings: Settings, request: Request, *, left: Left, out: Path, data: Path | None, runs: int) -> Plan:
    """The plan of ``request``, after ``runs`` others, within what is left; ``data`` are its texts."""
    chosen = {k: v for k, v in request.as_dict().items() if k not in ("purpose", "texts")}
    return Plan.model_validate(
        {
            **{k: v for k, v in settings.common.items() if k not in OF_TEXTS},
            **chosen,
            "attributes": request.attributes,
            "groups": request.groups,
            "task": settings.goal.task,
            "models": settings.names,
            "data": None if request.grammar or data is None else str(data),
            "source_column": settings.common.get("source_column") and "source",
            "generation": "rand" if request.grammar else "prob",
            "limit": request.texts if request.grammar else None,
            # Another grammar run draws other sentences; a text keeps its variants whatever its number.
            "seed": settings.seed + (runs if request.grammar else 0),
            "max_calls": left.calls,
            "max_cost": left.cost_usd,
            "max_seconds": left.seconds,
            "out": str(out),
        }
    )


def entry(request: Request, reason: str, *, runs: Sequence[Entry], texts: int) -> Entry:
    """What the record says of a run that is planned: the ``len(runs) + 1``-th."""
    fresh = request.purpose == "fresh"
    return Entry(
        name=f"R{len(runs) + 1}",
        purpose=request.purpose,
        counts_as_fresh=fresh,
        level=judge.level(sum(r.counts_as_fresh for r in runs) + 1) if fresh else None,
        request=request,
        reason=reason,
        texts=texts,
    )
