"""Which answers are being asked for right now: locks that several processes on one cache share.

A key is one byte of a lock file beside the cache, far into it and never written. The system lets go of a lock when its
process ends, however it ends, so nothing of a killed audit has to be recognised and cleared away. Such locks are
those of a process; which of its threads and clients holds one is kept here.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import RLock

try:
    import fcntl
except ImportError:  # Windows: claims hold within one process
    fcntl = None  # type: ignore[assignment]

MOST = 4096  # locks of one process: the system looks through all of them for each further one
_HELD_ELSEWHERE = (errno.EACCES, errno.EAGAIN)


class _File:
    """The lock file of one cache in this process. Closing any descriptor of it would let go of all locks."""

    def __init__(self, path: Path) -> None:
        self.users = 0
        self.held: set[str] = set()
        self.locked: set[str] = set()  # of held; beyond `MOST`, as in large batches, others may ask too
        self.descriptor: int | None = None
        if fcntl is not None:
            with suppress(OSError):
                self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def lock(self, key: str) -> bool:
        if self.descriptor is not None:
            try:
                fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
            except OSError as error:
                # Where a file system has no locks, there is nobody to wait for.
                return error.errno not in _HELD_ELSEWHERE
            self.locked.add(key)
            if len(self.locked) > MOST:
                self.unlock(key)
        return True

    def unlock(self, key: str) -> None:
        if self.descriptor is not None and key in self.locked:
            self.locked.discard(key)
            with suppress(OSError):
                fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, _place(key))


def _place(key: str) -> int:
    """The byte of a key, in 60 bits: two keys that share one would only wait for each other."""
    return int(key[:15], 16)


_files: dict[str, _File] = {}
_guard = RLock()  # the garbage collector may close claims in the midst of taking others


class Claims:
    """Claims on keys, shared by all processes that name the same cache; the lock file stands beside it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ours, theirs = Claims(Path(folder) / "c"), Claims(Path(folder) / "c")
    ...     sorted(ours.take(["aa", "bb"])), sorted(theirs.take(["bb", "cc"]))
    (['aa', 'bb'], ['cc'])
    """

    def __init__(self, cache: Path) -> None:
        path = cache.with_name(cache.name + "-claims")
        self._name = os.path.realpath(path)
        self._mine: set[str] = set()
        self._open = True
        with _guard:
            self._file = _files.get(self._name) or _File(path)
            _files[self._name] = self._file
            self._file.users += 1

    def take(self, keys: Iterable[str]) -> set[str]:
        """Claim what nobody else has claimed; returns which of ``keys`` (hexadecimal) that is."""
        with _guard:
            taken = {key for key in keys if key not in self._file.held and self._file.lock(key)}
            self._file.held |= taken
            self._mine |= taken
        return taken

    def release(self, keys: Iterable[str]) -> None:
        """Let go of those of ``keys`` that were claimed here."""
        with _guard:
            for key in self._mine.intersection(keys):
                self._file.unlock(key)
                self._file.held.discard(key)
                self._mine.discard(key)

    def close(self) -> None:
        """Let go of everything; closing twice does nothing."""
        self.release(tuple(self._mine))
        with _guard:
            self._file.users -= self._open
            if self._open and not self._file.users:
                del _files[self._name]
                if self._file.descriptor is not None:
                    os.close(self._file.descriptor)
            self._open = False
