"""Python's search for cyclic garbage, less often while a run streams.

The values of a round are many and hold no cycles; looking through them again and again took a third of the time of
the loop and a fifth of that of the workers.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

ALLOCATIONS = 100_000  # net new objects between two searches; Python's own default is 700


def look_less_often() -> None:
    """Search only once in `ALLOCATIONS`; for processes that do nothing else. Off stays off."""
    first, second, third = gc.get_threshold()
    if 0 < first < ALLOCATIONS:
        gc.set_threshold(ALLOCATIONS, second, third)


@contextlib.contextmanager
def rare_searches() -> Iterator[None]:
    """`look_less_often`, and as before afterwards."""
    before = gc.get_threshold()
    look_less_often()
    try:
        yield
    finally:
        gc.set_threshold(*before)
