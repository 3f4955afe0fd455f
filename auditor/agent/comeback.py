"""Going on with a session that was cut off: what was fixed, how far it came, how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.agent.ledger import SESSION, SETTINGS, STEPS, TEXTS, UNFINISHED
from auditor.agent.request import Request, checked
from auditor.agent.settings import Settings
from auditor.core.errors import ConfigError, RunFolderError
from auditor.core.secrets import hidden
from auditor.core.types import FORMAT_VERSION, digest

LIMITS = ("max_calls", "max_cost", "max_seconds", "planner_max_calls", "planner_max_cost")


def keep(path: Path, settings: Settings, *, task: str | None, base_url: str | None) -> None:
    """Write what a later process needs to go on: options as they were given, and texts that stood in no file."""
    from auditor.store.files import write_json, write_texts

    specs = all(isinstance(m, str) for m in settings.models)
    values = {
        "format_version": FORMAT_VERSION,
        "goal": settings.goal.text,
        "task": task,
        "models": list(settings.models) if specs else None,
        "data": settings.data,
        "texts": TEXTS if settings.seeds is not None else None,
        "planner": settings.planner,
        "planner_spec": settings.planner_spec,
        "planner_base_url": hidden(base_url),
        "seed": settings.seed,
        "common": {
            k: hidden(v) if k == "base_url" else list(v) if isinstance(v, tuple) else v
            for k, v in settings.common.items()
        },
        **{name: getattr(settings, name) for name in LIMITS},
    }
    if settings.seeds is not None:
        write_texts(path / TEXTS, settings.seeds)
    write_json(path / SETTINGS, values)


def options(path: Path) -> dict[str, Any]:
    """What `keep` wrote, for a session that can be gone on with.

    Raises
    ------
    RunFolderError
        There is no session, or of a newer format.
    ConfigError
        The session came to its end.
    """
    from auditor.store.files import check_format, read_json

    if not (path / SESSION).is_file():
        raise RunFolderError(f"{path} holds no session of the agent: there is no {SESSION} in it")
    record = read_json(path / SESSION)
    check_format(path / SESSION, record)
    if record["status"] not in UNFINISHED:
        raise ConfigError(
            f"The session in {path} came to its end ({record['status']}: {record['status_reason']}). "
            f"Read it with: audit agent {path} --read"
        )
    if not (path / SETTINGS).is_file():
        raise RunFolderError(
            f"{path} holds no {SETTINGS}, so it cannot be gone on with. Start a new session."
        )
    return read_json(path / SETTINGS)


def before(path: Path, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """The record of the session as it was left.

    Raises
    ------
    RunFolderError
        Goal, texts, models or limits are not those of ``fixed``.
    """
    from auditor.store.files import read_json

    record = read_json(path / SESSION)
    for name, value in fixed.items():
        if record.get(name) != value:
            what = "words for people, or the task," if name == "goal" else name
            raise RunFolderError(
                f"The {what} changed since the session in {path} began, so it cannot be gone on with. Put the old "
                "files back, or start a new session: answers that are cached are not asked again."
            )
    return record


def require_intact(path: Path, fixed: Mapping[str, Any]) -> None:
    """Refuse a session in whose steps or runs something was changed.

    Raises
    ------
    RunFolderError
        Something was changed; the message names the first place.
    """
    from auditor.store import verify
    from auditor.store.journal import genesis
    from auditor.store.journal import verify as chain

    problems = chain(path / STEPS, genesis(STEPS, digest(fixed)))
    if problems := [problem for problem in problems if problem.kind != "torn"]:
        raise RunFolderError(f"{path} is not as it was written: {problems[0]}.")
    for plan in sorted(path.glob("runs/*/plan.json")):
        verify.require_intact(plan.parent)


def steps(path: Path) -> Sequence[Mapping[str, Any]]:
    """The steps that stand on disk; a torn last one is left out."""
    from auditor.store.journal import read

    return list(read(path / STEPS))


def seconds(path: Path, record: Mapping[str, Any]) -> float:
    """Seconds that the session took until it was cut off: those it noted, and those in which a run still wrote."""
    noted = float(record["spent"].get("seconds") or 0.0)
    at = (path / SESSION).stat().st_mtime
    last = max((f.stat().st_mtime for f in path.glob("runs/*/*.jsonl")), default=at)
    return noted + max(0.0, last - at)


def proposal(path: Path, run: Mapping[str, Any]) -> tuple[Request, str, dict[str, Any]]:
    """Request, reason and figures of a run that was planned, as they stand on disk."""
    from auditor.perturb import dictionaries
    from auditor.store.files import read_json

    stored = read_json(path / f"plan-{int(run['name'][1:]):02d}.json")
    request = checked(stored["request"], attributes=dictionaries.builtin())
    return request, str(stored["reason"]), dict(stored["figures"])
