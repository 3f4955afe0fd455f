"""Ends a program that was started here, and what it started, when this process is gone, however it ended.

A small process beside the program waits for the end of a pipe that this process holds: the system closes it also
after ``kill -9``. It is there on systems with process groups; elsewhere (Windows) a program that ignores the end of its
input outlives an audit that was killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

GRACE_S = 2.0  # between asking a program to end and ending it
GROUPS = hasattr(os, "killpg")

_CODE = """
import os, signal, sys, time
if not os.read(0, 1):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(int(sys.argv[1]), number)
        except OSError:
            break
        time.sleep(float(sys.argv[2]))
"""


class Keeper:
    """Watches over one program.

    Parameters
    ----------
    pid : int
        The program; it leads a process group of its own (``start_new_session``).
    """

    def __init__(self, pid: int) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if GROUPS and sys.executable:
            with contextlib.suppress(OSError):
                self._process = subprocess.Popen(  # noqa: S603 - our own code
                    [sys.executable, "-I", "-S", "-c", _CODE, str(pid), str(GRACE_S)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )

    def release(self) -> None:
        """The program has ended: its number may soon be another's."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.communicate(b"x")


def end_group(pid: int, number: int | None = None) -> None:
    """Send a signal (else the one that cannot be refused) to a program and what it started, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if GROUPS:
            os.killpg(pid, signal.SIGKILL if number is None else number)
        else:
            os.kill(pid, signal.SIGTERM)
