"""Counts in sentences: one helper for every message and report."""

from __future__ import annotations


def plural(n: int, word: str, many: str = "") -> str:
    """Count things; ``many`` is the name of several where it is not ``word`` and an s.

    Examples
    --------
    >>> plural(1, "seed"), plural(3, "seed"), plural(1200, "category", "categories")
    ('1 seed', '3 seeds', '1,200 categories')
    """
    return f"{n:,} {word if n == 1 else many or word + 's'}"


def cut_off(n: int) -> str:
    """What to do about ``n`` answers that end at the limit on tokens, as the end of a sentence; empty for none.

    Examples
    --------
    >>> cut_off(2), cut_off(0)
    ('; 2 were cut off at the limit on tokens: raise it with --max-tokens', '')
    """
    return f"; {n:,} {verb(n, 'was', 'were')} cut off at the limit on tokens: raise it with --max-tokens" if n else ""


def verb(n: int, one: str, many: str) -> str:
    """Choose the verb that goes with ``n`` things.

    Examples
    --------
    >>> verb(1, "was", "were"), verb(0, "was", "were")
    ('was', 'were')
    """
    return one if n == 1 else many
