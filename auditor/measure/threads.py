"""Linear algebra on one thread.

The matrices here are small: several threads would only wait for each other, on a busy machine for minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

P = ParamSpec("P")
T = TypeVar("T")


def one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """A function that keeps numpy and scipy from starting threads while it runs.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> threads = one_thread(lambda: {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
    >>> threads()
    {1}
    """
    limited: Callable[P, T] = threadpool_limits.wrap(limits=1, user_api="blas")(function)
    return limited
