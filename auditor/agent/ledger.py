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
from typing import Any

from auditor.core.errors import RunFolderError, UserError
from auditor.core.types import digest

SESSION, STEPS, SETTINGS, TEXTS = "session.json", "steps.jsonl", "settings.json", "texts.jsonl"
UNFINISHED = ("running", "interrupted")


class Changed(RunFolderError):
    """What a session rests on is not what it was; it is left as it stands."""


def new_folder(out: Path, fixed: Mapping[str, Any]) -> Path:
    """Make the folder of a new session under ``out``.

    Raises
    ------
    UserError
        It cannot be made.
    """
    from auditor.store.journal import write_error

    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    name = f"agent-{stamp}-{digest(fixed)[:6]}"
    try:
        for n in range(1, 1000):
            path = out / (name if n == 1 else f"{name}-{n}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            return path
    except OSError as error:
        raise write_error(out, error) from error
    raise UserError(f"cannot make a folder for the session under {out}")


class Ledger:
    """Writes the record and the steps of one session; one process at a time.

    Parameters
    ----------
    path : Path
        The session's folder.
    fixed : mapping
        What the user fixed; the chain of steps stands on it.
    known : iterable of mapping
        Steps that stand on disk.
    strict : bool
        Whether the steps come in the order in which they stand there (a planner by rules). Otherwise a step that
        stands there is passed over, wherever it stands, until `forget`.

    Raises
    ------
    RunFolderError
        Another process writes the session.
    """

    def __init__(
        self,
        path: Path,
        fixed: Mapping[str, Any],
        *,
        known: Iterable[Mapping[str, Any]] = (),
        strict: bool = True,
    ) -> None:
        from auditor.store.journal import Journal, genesis
        from auditor.store.lock import hold

        self.path = path
        self._lock = hold(path / ".lock", f"the session {path}")
        self._steps = Journal(path / STEPS, genesis(STEPS, digest(fixed)))
        self._known = deque(_bare(step) for step in known)
        self._strict = strict
        self._number = 0

    def write(self, record: Mapping[str, Any]) -> None:
        """Write ``session.json`` in one step."""
        from auditor.store.files import write_json

        write_json(self.path / SESSION, record)

    def step(self, values: Mapping[str, Any]) -> None:
        """Append one step, unless it stands there.

        Raises
        ------
        Changed
            Another step stands in its place: texts, model or version of the tool are not those of before.
        """
        self._number += 1
        plain = json.loads(json.dumps(values))
        if not self._strict and plain in self._known:
            self._known.remove(plain)
            return
        if self._strict and self._known:
            stored = self._known.popleft()
            if stored != plain:
                raise Changed(
                    f"{self.path / STEPS}, step {self._number}: the session did {_name(stored)!r} here, and with the "
                    f"texts, model and version of now it would do {_name(plain)!r}, or the same with other figures. "
                    "It cannot be gone on with; start a new one (answers that are cached are not asked again)."
                )
            return
        self._steps.append(values)

    def forget(self) -> None:
        """From now on every step is new."""
        self._known.clear()

    def close(self) -> None:
        """Wait for the disk and let go."""
        self._steps.sync()
        self._steps.close()
        self._lock.release()


def _bare(step: Mapping[str, Any]) -> dict[str, Any]:
    from auditor.store.journal import CHAIN_FIELDS

    return {k: v for k, v in step.items() if k not in CHAIN_FIELDS}


def _name(step: Mapping[str, Any]) -> str:
    return f"{step['kind']} {step.get('run') or ''}".strip()
