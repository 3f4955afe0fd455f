"""One writer at a time, by a lock that ends with its process."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from auditor.core.errors import RunFolderError
from auditor.store.journal import write_error

if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        # A byte far beyond the text, so that the holder's number stays readable for others.
        os.lseek(fd, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class FileLock:
    """Hold a lock file; the operating system lets go when the process ends, however it ends.

    The file itself may stay behind: only a living process holds the lock, so that what a killed one left
    is taken over without asking. It holds the process number of its last holder, for messages.

    Parameters
    ----------
    path : Path
        The lock file.
    what : str
        What it guards, for the message.
    wait_s : float
        How long to wait for another holder, in seconds.

    Raises
    ------
    RunFolderError
        Another process holds it.
    """

    def __init__(self, path: Path, what: str, *, wait_s: float = 0.0) -> None:
        try:
            self._fd: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise write_error(path, error) from error
        until = time.monotonic() + wait_s
        while not _try_lock(self._fd):
            if time.monotonic() >= until:
                os.lseek(self._fd, 0, os.SEEK_SET)
                holder = os.read(self._fd, 32).decode(errors="replace").strip("\0 \n") or "unknown"
                os.close(self._fd)
                raise RunFolderError(
                    f"{what} is being written by another process (number {holder}). "
                    f"Wait until it ends, or stop it, then try again"
                )
            time.sleep(0.02)
        os.ftruncate(self._fd, 0)
        os.lseek(self._fd, 0, os.SEEK_SET)
        os.write(self._fd, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let go; a second call does nothing."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
