"""When to ask again, and how long to wait before."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from auditor.core.errors import CallError, ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """Bounded retries with exponential backoff and full jitter.

    The wait after attempt *a* is uniform in [0, min(``cap_s``, ``base_s`` · 2^(a−1))]. Where the server
    names a time (``Retry-After``), that time is kept in full, with jitter of at most ``base_s`` on top so
    that workers do not return together.

    Parameters
    ----------
    attempts : int
        Attempts in all, at least 1.
    base_s, cap_s : float
        Seconds.
    ceiling_s : float
        No wait may end later than this many seconds after the first attempt.
    seed : int
        Seed of the jitter.
    """

    attempts: int = 5
    base_s: float = 0.5
    cap_s: float = 60.0
    ceiling_s: float = 300.0
    seed: int = 7

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.base_s, self.cap_s, self.ceiling_s) < 0:
            raise ConfigError(f"a retry policy needs 1 attempt or more and no negative times, got {self!r}")

    def delay(self, attempt: int, error: CallError, elapsed_s: float, rng: Random) -> float | None:
        """Seconds to wait after ``attempt`` (from 1) ended in ``error``; None means give up.

        Parameters
        ----------
        attempt : int
            Attempts made so far.
        error : CallError
            What the last one ended in.
        elapsed_s : float
            Seconds since the first attempt began.
        rng : random.Random
            Source of the jitter.

        Examples
        --------
        >>> from auditor.core.errors import BadRequest, RateLimited
        >>> RetryPolicy().delay(1, BadRequest("too long"), 0.0, Random(7)) is None
        True
        >>> RetryPolicy(base_s=0).delay(1, RateLimited(retry_after_s=3.0), 0.0, Random(7))
        3.0
        """
        if not error.transient or attempt >= self.attempts:
            return None
        if error.retry_after_s is not None:
            wait = error.retry_after_s + rng.uniform(0.0, self.base_s)
        else:
            wait = rng.uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** (attempt - 1)))
        return wait if elapsed_s + wait <= self.ceiling_s else None
