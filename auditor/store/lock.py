"""One writer at a time, by a lock that ends with its process."""

from __future__ import annotations

from pathlib import Path

import filelock

from auditor.core.errors import RunFolderError
from auditor.store.journal import write_error

Lock = filelock.BaseFileLock


def hold(path: Path, what: str, *, wait_s: float = 0.0) -> Lock:
    """Hold a lock file; the operating system lets go when the process ends, however it ends.

    The file itself may stay behind: only a living process holds the lock, so that what a killed one left
    is taken over without asking.

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
