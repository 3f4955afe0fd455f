"""The register of runs: ``runs.jsonl`` beside the run folders.

A hash chain shows that a run's records were not changed; it cannot show runs that were begun and thrown away.
The register does: each run is entered when it starts and when it ends. A start without an end is a run that
was aborted, or that is still going on.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from auditor.core.errors import RunFolderError
from auditor.store.journal import Head, Journal, genesis, read
from auditor.store.lock import hold

FILE = "runs.jsonl"


class Event(msgspec.Struct, frozen=True):
    """One line of the register; ``journal`` holds the heads of the journals at an end. Empty: the line names none."""

    run: str
    event: str
    time: str
    status: str = ""
    plan_sha256: str = ""
    run_sha256: str = ""
    report_sha256: str = ""
    journal: dict[str, Head] = {}


def register(root: Path, event: str, run_id: str, **fields: object) -> None:
    """Append one event ("started", "resumed", "ended", "reported") of one run.

    Parameters
    ----------
    root : Path
        The folder that holds the run folders.
    event : str
        What happened.
    run_id : str
        Which run.
    **fields
        Plain data to keep with it, such as ``plan_sha256`` or ``status``.

    Raises
    ------
    UserError
        The register cannot be written.
    """
    record = {"run": run_id, "event": event, "time": datetime.now(UTC).isoformat(timespec="seconds"), **fields}
    with (
        hold(root / ".runs.lock", f"the register {root / FILE}", wait_s=10.0),
        Journal(root / FILE, genesis(FILE, "")) as journal,
    ):
        journal.append(record)


def events(root: Path) -> Iterator[Event]:
    """All events, oldest first; none if there is no register.

    Raises
    ------
    RunFolderError
        A line has another form.
    """
    for record in read(root / FILE):
        try:
            yield msgspec.convert(record, Event)
        except msgspec.ValidationError as error:
            raise RunFolderError(f"{root / FILE} cannot be read: {error}") from None
