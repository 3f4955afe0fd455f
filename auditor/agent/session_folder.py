"""The folder of a session: its record and its steps as they are on disk, and whether they are as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from auditor.agent.values import Fixed, Options, Record, plain
from auditor.core.errors import ConfigError, RunFolderError
from auditor.core.types import digest
from auditor.store.disk import check_format, read_json
from auditor.store.integrity import Problem, require_intact, verify, verify_folder
from auditor.store.journal import genesis
from auditor.store.journal import read as journal

SESSION, STEPS, TEXTS, PLANNER_BOOK = "session.json", "steps.jsonl", "texts.jsonl", "planner.json"
UNFINISHED = ("running", "interrupted")
Step = dict[str, Any]  # kind, reason, and figures by name


class Changed(RunFolderError):
    """What a session rests on is not what it was; it is left as it stands."""


def read(path: Path) -> Record:
    """``session.json`` as it stands; `RunFolderError` where there is none, or of a newer format."""
    file = path / SESSION
    if not file.is_file():
        raise RunFolderError(f"{path} holds no session of the agent: there is no {SESSION} in it")
    values = read_json(file)
    check_format(file, values)
    try:
        return msgspec.convert(_today(values), Record)
    except msgspec.ValidationError as error:
        raise RunFolderError(f"{file} cannot be read: {error}. Was it changed by hand?") from None


def _today(values: dict[str, Any]) -> dict[str, Any]:
    """A record of 0.2 in the shape of now: what was said of a set was in its run, and intervals in another field."""
    if values.get("options"):
        return values
    runs = {run["name"]: run for run in values["runs"]}
    for run in runs.values():
        if run["purpose"] == "search":  # exploratory as a pilot is
            run["purpose"] = run["request"]["purpose"] = "pilot"
    rows = [(run, row) for run in runs.values() for row in (run.get("figures") or {}).get("sets", ())]
    rows += [(runs[q["run"]], q["row"]) for q in values["questions"] if q.get("row")]
    for run, row in rows:
        if "intervals" in row:
            row |= {"placebo": None, "noise": None} | row.pop("intervals")
            row["why"] = "; ".join(run["reasons"].get(row["finding"], [])[:1])
            row["said"] = [] if row["rate"] else [run["said"].get(row["finding"], "")]
    return values


def steps(path: Path) -> list[Step]:
    """The steps that stand on disk; a torn last one is left out."""
    return list(journal(path / STEPS))


def unfinished(path: Path) -> tuple[Record, Options]:
    """The record of a session that can be gone on with, and its options; `ConfigError` where it came to its end."""
    record = read(path)
    if record.status not in UNFINISHED:
        raise ConfigError(
            f"The session in {path} came to its end ({record.status}: {record.status_reason}). "
            f"Read it with: audit report {path}"
        )
    if record.options is None:
        raise RunFolderError(f"{path} was begun by another version, so it cannot be gone on with. Start a new session.")
    return record, record.options


def start(record: Mapping[str, object]) -> str:
    """Return what the chain of steps begins with: the digest of what was fixed, without paths and times."""
    return genesis(STEPS, digest({name: record[name] for name in Fixed.__struct_fields__}))


def verified(path: Path) -> tuple[int, list[Problem]]:
    """How many runs a session has, and everything that can be seen to be wrong with its steps and its runs."""
    runs = [plan.parent for plan in sorted(path.glob("runs/*/plan.json"))]
    read(path)
    problems = verify(path / STEPS, start(read_json(path / SESSION)))
    return len(runs), problems + [problem for run in runs for problem in verify_folder(run)]


def unchanged(path: Path, fixed: Record) -> Record:
    """The record as it was left; `RunFolderError` where what was fixed, a step or a run is not what it was."""
    record = read(path)
    for name in Fixed.__struct_fields__:
        if getattr(record, name) != getattr(fixed, name):
            what = "words for people, or the task," if name == "goal" else name
            raise RunFolderError(
                f"The {what} changed since the session in {path} began, so it cannot be gone on with. Put the old "
                "files back, or start a new session: answers that are cached are not asked again."
            )
    problems = [p for p in verify(path / STEPS, start(plain(fixed))) if p.kind != "torn"]
    if problems:
        raise RunFolderError(f"{path} is not as it was written: {problems[0]}.")
    for plan in sorted(path.glob("runs/*/plan.json")):
        require_intact(plan.parent)
    return record
