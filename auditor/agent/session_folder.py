"""The folder of a session: its record, its steps, and what is needed to go on after it was cut off.

Steps are hash-chained like the journals of a run. Where a session is gone on with, the steps that stand there are not
written twice: a planner by rules takes the same steps again, and each is compared with the one on disk.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from auditor.agent.values import Entry, Fixed, Kept, Planned, Record
from auditor.core.errors import ConfigError, RunFolderError
from auditor.core.types import digest

SESSION, STEPS, SETTINGS, TEXTS = "session.json", "steps.jsonl", "settings.json", "texts.jsonl"
UNFINISHED = ("running", "interrupted")
T = TypeVar("T")
Step = dict[str, Any]  # kind, reason, and figures by name


class Changed(RunFolderError):
    """What a session rests on is not what it was; it is left as it stands."""


def new_folder(out: Path, fixed: Fixed) -> Path:
    """Make the folder of a new session under ``out``; raises `UserError` where it cannot be made."""
    from auditor.store import disk

    return disk.new_folder(out, f"agent-{datetime.now(UTC):%Y%m%d-%H%M%S}-{_sha256(fixed)[:6]}")


def _sha256(fixed: Fixed) -> str:
    return digest(msgspec.to_builtins(fixed))


def write(path: Path, value: msgspec.Struct) -> None:
    """Write a record as a JSON file in one step."""
    from auditor.store.disk import write_json

    write_json(path, msgspec.to_builtins(value))


def read(path: Path, kind: type[T]) -> T:
    """Read what `write` wrote; raises `RunFolderError` where it is no such record or of a newer format."""
    from auditor.store.disk import check_format, read_json

    values = read_json(path)
    check_format(path, values)
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise RunFolderError(f"{path} is no such file of a session: {error}. Was it changed by hand?") from None


class Ledger:
    """Writes the record and the steps of one session; one process at a time, else `RunFolderError`.

    ``known`` are steps that stand on disk. They come again in their order where the planner is one of rules
    (``strict``); otherwise a step that stands there is passed over, wherever it stands, until `forget`.
    """

    def __init__(self, path: Path, fixed: Fixed, *, known: Iterable[Step] = (), strict: bool = True) -> None:
        from auditor.store.disk import hold
        from auditor.store.journal import Journal, genesis

        self.path = path
        self._lock = hold(path / ".lock", f"the session {path}")
        self._steps = Journal(path / STEPS, genesis(STEPS, _sha256(fixed)))
        self._known = deque(known)
        self._strict = strict
        self._number = 0

    def step(self, values: Step) -> None:
        """Append one step, unless it stands there; `Changed` where another one stands in its place."""
        self._number += 1
        plain = json.loads(msgspec.json.encode(values))
        if not self._strict and plain in self._known:
            self._known.remove(plain)
        elif self._strict and self._known:
            stored = self._known.popleft()
            if stored != plain:
                raise Changed(
                    f"{self.path / STEPS}, step {self._number}: the session did {_name(stored)!r} here, and with the "
                    f"texts, model and version of now it would do {_name(plain)!r}, or the same with other figures. "
                    "It cannot be gone on with; start a new one (answers that are cached are not asked again)."
                )
        else:
            self._steps.append(plain)

    def forget(self) -> None:
        """From now on every step is new."""
        self._known.clear()

    def close(self) -> None:
        """Wait for the disk and let go."""
        self._steps.sync()
        self._steps.close()
        self._lock.release()


def _name(step: Mapping[str, object]) -> str:
    return f"{step['kind']} {step.get('run') or ''}".strip()


def session(path: Path) -> Record:
    """``session.json`` as it stands; `RunFolderError` where there is none, or of a newer format."""
    if not (path / SESSION).is_file():
        raise RunFolderError(f"{path} holds no session of the agent: there is no {SESSION} in it")
    return read(path / SESSION, Record)


def steps(path: Path) -> list[Step]:
    """The steps that stand on disk; a torn last one is left out."""
    from auditor.store.journal import read as records

    return list(records(path / STEPS))


def options(path: Path) -> Kept:
    """The options of a session that can be gone on with; `ConfigError` where it came to its end."""
    record = session(path)
    if record.status not in UNFINISHED:
        raise ConfigError(
            f"The session in {path} came to its end ({record.status}: {record.status_reason}). "
            f"Read it with: audit agent {path} --read"
        )
    if not (path / SETTINGS).is_file():
        raise RunFolderError(f"{path} holds no {SETTINGS}, so it cannot be gone on with. Start a new session.")
    return read(path / SETTINGS, Kept)


def before(path: Path, fixed: Fixed) -> Record:
    """The record of the session as it was left.

    Raises `RunFolderError` where goal, texts, models or limits are not those of ``fixed``, or a step or run was
    changed.
    """
    from auditor.store import integrity
    from auditor.store.integrity import verify as chain
    from auditor.store.journal import genesis

    record = session(path)
    for name in fixed.__struct_fields__:
        if getattr(record, name) != getattr(fixed, name):
            what = "words for people, or the task," if name == "goal" else name
            raise RunFolderError(
                f"The {what} changed since the session in {path} began, so it cannot be gone on with. Put the old "
                "files back, or start a new session: answers that are cached are not asked again."
            )
    problems = [p for p in chain(path / STEPS, genesis(STEPS, _sha256(fixed))) if p.kind != "torn"]
    if problems:
        raise RunFolderError(f"{path} is not as it was written: {problems[0]}.")
    for plan in sorted(path.glob("runs/*/plan.json")):
        integrity.require_intact(plan.parent)
    return record


def seconds(path: Path, record: Record) -> float:
    """Seconds that the session took until it was cut off: those it noted, and those in which a run still wrote."""
    at = (path / SESSION).stat().st_mtime
    last = max((f.stat().st_mtime for f in path.glob("runs/*/*.jsonl")), default=at)
    return record.spent.seconds + max(0.0, last - at)


def planned(path: Path, run: Entry) -> Planned:
    """The plan of a run, as it stands on disk."""
    return read(path / f"plan-{int(run.name[1:]):02d}.json", Planned)
