"""Whole files of a run folder, written in one step; locks; errors that say where."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import filelock

from auditor._version import __version__
from auditor.core.errors import RunFolderError, UserError
from auditor.core.reading import from_json
from auditor.core.secrets import scrub_bytes
from auditor.core.types import FORMAT_VERSION, SourceText

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

Lock = filelock.BaseFileLock


def write_error(path: Path, error: OSError) -> UserError:
    """The user's view of a failed write: what, where, and what to do next."""
    if error.errno in _FULL:
        return UserError(
            f"cannot write {path}: the disk (or the quota) is full. What was written before is kept. "
            f"Free some space, then run: audit resume {path.parent}"
        )
    return UserError(f"cannot write {path}: {error.strerror or error}. Check the folder's permissions.")


def read_error(path: Path, error: OSError) -> RunFolderError:
    """The user's view of a failed read."""
    return RunFolderError(f"cannot read {path}: {error.strerror or error}")


def hold(path: Path, what: str, *, wait_s: float = 0.0) -> Lock:
    """Hold a lock file, for which the operating system lets go when the process ends, however it ends.

    The file itself may stay behind: only a living process holds the lock. `RunFolderError`, about ``what`` it guards,
    where another process holds it for longer than ``wait_s`` seconds.
    """
    lock = filelock.FileLock(path, timeout=wait_s, thread_local=False)
    try:
        lock.acquire(poll_interval=0.02)
    except filelock.Timeout:
        raise RunFolderError(
            f"{what} is being written by another process. Wait until it ends, or stop it, then try again"
        ) from None
    except OSError as error:
        raise write_error(path, error) from error
    return lock


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write plain data as a JSON file in one step: readers see the old file or the new one, never half.

    Raises
    ------
    ValueError
        A number is NaN or infinite; the message names the field.
    UserError
        The file cannot be written.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    except ValueError as error:
        raise ValueError(f"{path.name}: {_not_finite(value) or 'a field'} is not a finite number") from error
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = json.dumps(value, allow_nan=False, indent=1).encode()
    write_bytes(path, data + b"\n")


def _not_finite(value: object, where: str = "") -> str | None:
    """The path of the first number that JSON cannot hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return where
    items: Iterable[tuple[object, object]] = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    places = (_not_finite(inner, f"{where}.{key}" if where else str(key)) for key, inner in items)
    return next((place for place in places if place is not None), None)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one step; raises `UserError` if it cannot be written."""
    beside = path.with_name(path.name + ".new")
    try:
        with beside.open("wb") as file:
            file.write(scrub_bytes(data))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)
    except OSError as error:
        raise write_error(path, error) from error


def new_folder(root: Path, name: str) -> Path:
    """Make the folder ``name`` under ``root``, with a number behind it where there is one of that name."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        for n in itertools.count(1):
            path = root / (name if n == 1 else f"{name}-{n}")
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                break
    except OSError as error:
        raise write_error(root, error) from error
    return path


def sync_folder(path: Path) -> None:
    """Wait until renames in a folder are on the disk, where the system can."""
    if os.name != "posix":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_texts(path: Path, texts: Iterable[SourceText]) -> None:
    """Write texts as JSON lines that a plan can name as its data, in one step."""
    rows = ({name: value for name, value in asdict(s).items() if value is not None} for s in texts)
    write_bytes(path, "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows).encode())


def read_texts(path: Path) -> list[SourceText]:
    """The texts that `write_texts` wrote."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        SourceText(**row | {name: tuple(map(tuple, row[name])) for name in row if name == "subject"}) for row in rows
    ]


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raises `RunFolderError` if there is none."""
    try:
        value = from_json(path.read_bytes())
    except OSError as error:
        raise read_error(path, error) from error
    except ValueError as error:
        raise RunFolderError(f"{path} is not JSON ({error}). Was it changed by hand?") from error
    if not isinstance(value, dict):
        raise RunFolderError(f"{path} does not hold a JSON object. Was it changed by hand?")
    return value


def check_format(path: Path, record: Mapping[str, object]) -> None:
    """Raise `RunFolderError` if ``record`` is of a format that this version does not know."""
    version = record.get("format_version")
    if type(version) is not int:
        raise RunFolderError(f"{path}: field format_version is missing or not a number; is this a run folder?")
    if version > FORMAT_VERSION:
        writer = record.get("tool_version", "unknown")
        raise RunFolderError(
            f"{path} has run format {version}, written by version {writer} of this tool; this is version "
            f"{__version__}, which reads up to format {FORMAT_VERSION}. "
            f"Install version {writer} or newer: pip install --upgrade llm-bias-auditor"
        )
