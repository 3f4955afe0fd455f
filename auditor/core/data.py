"""Finds the project's data files, in a checkout and in a wheel.

``prompts/``, ``dictionaries/`` and ``grammars/`` stand at the top of a checkout and under
``auditor/_data/`` in a wheel; ``auditor/embedded/`` (parser, weights, seed texts) is in both.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
FOLDERS = ("prompts", "dictionaries", "grammars", "embedded")


def folder(kind: str) -> Path:
    """The folder of one kind of data: ``prompts``, ``dictionaries``, ``grammars`` or ``embedded``."""
    if kind not in FOLDERS:
        raise ValueError(f"no data folder {kind!r}; one of {FOLDERS}")
    if kind == "embedded":
        return PACKAGE / "embedded"
    installed = PACKAGE / "_data" / kind
    return installed if installed.is_dir() else PACKAGE.parent / kind


def path(kind: str, *parts: str) -> Path:
    """The path of one data file; it need not exist."""
    return folder(kind).joinpath(*parts)


def names(kind: str, suffix: str = ".yaml") -> list[str]:
    """The stems of the files of one kind, sorted."""
    return sorted(p.stem for p in folder(kind).glob(f"*{suffix}"))
