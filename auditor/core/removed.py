"""What version 0.3 took away: commands, options, their values, words of rules; each with what to use instead."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Literal

from auditor.core import reading


@cache
def gone(what: Literal["commands", "values", "options", "rules"]) -> Mapping[str, str]:
    """What there is no more of one sort, and what to use instead."""
    every = tomllib.loads(reading.shipped("embedded", "removed.toml").read_text(encoding="utf-8"))
    return dict(every[what])


def instead(option: str) -> str:
    """Return what to use instead of an option (``--max-tokens``), a key or a keyword (``max_tokens``), or ""."""
    flag = option if option.startswith("--") else f"--{option.replace('_', '-')}"
    flag = {"--timeout-s": "--timeout", "--headers": "--header"}.get(flag, flag)
    return f"{option} was removed in 0.3; {gone('options')[flag]}." if flag in gone("options") else ""
