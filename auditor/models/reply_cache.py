"""Answers of earlier runs, in one SQLite file that several processes may share.

It saves calls; it is no record of a run. A power cut can lose the last writes. A cache that fails never fails the run.
Two audits that ask the same prompts at the same time both pay for them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from auditor.core.errors import ConfigError
from auditor.core.protocols import Reply
from auditor.core.reading import from_json
from auditor.core.types import Usage, digest

SCHEMA = 1
FILE_NAME = "responses.sqlite"
BUSY_S = 5.0
CHUNK = 500  # SQLite allows 999 parameters in builds of before 2020


def default_path() -> Path:
    """Return ``AUDIT_CACHE`` (a file, or a folder that exists), else the user's cache folder."""
    if chosen := os.environ.get("AUDIT_CACHE"):
        path = Path(chosen).expanduser()
        return path / FILE_NAME if path.is_dir() or chosen.endswith(("/", os.sep)) else path
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("llm-bias-auditor")) / FILE_NAME


def key(fingerprint: str, prompt_sha256: str, replicate: int) -> str:
    """Return the key of one answer: model with its parameters, prompt content, repeat."""
    return digest({"fingerprint": fingerprint, "prompt_sha256": prompt_sha256, "replicate": replicate})


class CacheStats(NamedTuple):
    """Figures of ``audit list cache``; the size includes the write-ahead log."""

    path: str
    entries: int
    size_bytes: int


class Cache:
    """Replies by key, in the SQLite file ``path``; None means `default_path`.

    Raises `ConfigError` where a path that the user chose cannot be used; without the default path the run goes on.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._connection: sqlite3.Connection | None = None
        chosen = path is not None or bool(os.environ.get("AUDIT_CACHE"))
        self.path = Path(path) if path is not None else default_path()
        self._unsaid: list[str] = []
        self._say: Callable[[str], None] = self._unsaid.append
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = self._open()
        except (OSError, sqlite3.Error) as error:
            if chosen and not _is_corrupt(error):
                raise ConfigError(
                    f"the response cache {self.path} cannot be used: {error}. Set AUDIT_CACHE to a file "
                    "that can be written, or unset it"
                ) from error
            self._switch_off(error)

    def get_many(self, keys: Iterable[str]) -> dict[str, Reply]:
        """Return the replies there are, by key."""
        asked = list(keys)
        texts: dict[str, str] = {}
        for start in range(0, len(asked), CHUNK):
            some = asked[start : start + CHUNK]
            query = f"SELECT key, value FROM responses WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608
            texts.update(self._try(query, some))
        return {k: reply for k, text in texts.items() if (reply := _decode(text)) is not None}

    def put(self, key: str, reply: Reply) -> None:
        """Keep ``reply``."""
        self._try("INSERT OR REPLACE INTO responses VALUES (?, ?, ?)", (key, _encode(reply), int(time.time())))

    def stats(self) -> CacheStats:
        """Return the number of answers and the size on disk."""
        rows = self._try("SELECT count(*) FROM responses")
        size = 0
        for path in (self.path, *self._side_files()):
            with suppress(OSError):
                size += path.stat().st_size
        return CacheStats(str(self.path), rows[0][0] if rows else 0, size)

    def clear(self) -> int:
        """Forget everything; return how many answers there were."""
        entries = self.stats().entries
        self._try("DELETE FROM responses")
        self._try("VACUUM")
        return entries

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def tell(self, warn: Callable[[str], None]) -> None:
        """Hand warnings, also those so far, to ``warn``."""
        self._say = warn
        for message in self._unsaid:
            warn(message)

    def __del__(self) -> None:
        self.close()  # Python 3.13 warns about every connection that nobody closed

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_S, check_same_thread=False, isolation_level=None)
        try:
            with suppress(sqlite3.OperationalError):  # locked: another process is switching it on
                connection.execute("PRAGMA journal_mode=WAL")
            # NORMAL: a power cut may lose the last commits, never the file; the journal has them.
            connection.execute("PRAGMA synchronous=NORMAL")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA:
                raise sqlite3.OperationalError(f"it was written by a newer version of this tool (schema {version})")
            if version < SCHEMA:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS responses"
                    " (key TEXT PRIMARY KEY, value TEXT NOT NULL, created INTEGER NOT NULL) WITHOUT ROWID"
                )
                connection.execute(f"PRAGMA user_version={SCHEMA}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _try(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of one statement, in a transaction of its own; none where it fails."""
        if self._connection is None:
            return []
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            # Where another process writes for longer than BUSY_S, this answer is not kept.
            busy = isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))
            if not busy:
                self._switch_off(error)
        return []

    def _switch_off(self, cause: Exception) -> None:
        """Go on without the cache; a damaged file is moved aside, so that the next run begins a new one."""
        self.close()
        message = f"the response cache {self.path} is off for this run: {cause}"
        if _is_corrupt(cause):
            aside = self.path.with_name(f"{self.path.name}.broken-{time.time_ns()}")
            with suppress(OSError):
                self.path.rename(aside)
                for side in self._side_files():
                    side.unlink(missing_ok=True)
                message = f"the response cache {self.path} is damaged ({cause}); it was moved to {aside.name}"
        self._say(message)

    def _side_files(self) -> tuple[Path, Path]:
        return (self.path.with_name(self.path.name + "-wal"), self.path.with_name(self.path.name + "-shm"))


def _is_corrupt(error: Exception) -> bool:
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code = getattr(error, "sqlite_errorcode", 0)
    return (code & 0xFF) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _encode(reply: Reply) -> str:
    row = {
        "text": reply.text,
        "scores": None if reply.scores is None else dict(reply.scores),
        "usage": reply.usage and [reply.usage.tokens_in, reply.usage.tokens_out],
        "model_reported": reply.model_reported,
    }
    return json.dumps(row | ({"cut_off": True} if reply.cut_off else {}), separators=(",", ":"))


def _decode(text: str) -> Reply | None:
    """Return a reply, or None for a row that is not one: other programs may write into the file."""
    try:
        raw = from_json(text)
        usage = None if raw["usage"] is None else Usage(tokens_in=raw["usage"][0], tokens_out=raw["usage"][1])
        if not isinstance(raw["text"], str):
            return None
        cut_off = raw.get("cut_off") is True
        return Reply(raw["text"], raw["scores"], usage, None, raw["model_reported"], cut_off)
    except (ValueError, TypeError, KeyError, IndexError):
        return None
