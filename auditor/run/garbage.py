"""Python's search for cyclic garbage, less often while a run streams.

The values of a round are many and hold no cycles; looking through them again and again took a third of the time of
the loop and a fifth of that of the workers.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

ALLOCATIONS = 100_000  # net new objects between two searches; Python's own default is 700


def look_less_often() -> None:
    """Search only once in `ALLOCATIONS`; for processes that do nothing else. Off stays off."""
    first, second, third = gc.get_threshold()
    if 0 < first < ALLOCATIONS:
        gc.set_threshold(ALLOCATIONS, second, third)


class _Runs:
    """Runs under way in this process, in all threads, and what held before the first of them."""

    lock = threading.Lock()
    under_way = 0
    before = gc.get_threshold()


@contextlib.contextmanager
def rare_searches() -> Iterator[None]:
    """`look_less_often`, and as before once the last of the runs that overlap has ended."""
    with _Runs.lock:
        if not _Runs.under_way:
            _Runs.before = gc.get_threshold()
            look_less_often()
        _Runs.under_way += 1
    try:
        yield
    finally:
        with _Runs.lock:
            _Runs.under_way -= 1
            if not _Runs.under_way:
                gc.set_threshold(*_Runs.before)
