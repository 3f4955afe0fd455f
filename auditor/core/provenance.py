"""Hashes of what shaped a run, for its record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from auditor.core.data import PACKAGE
from auditor.core.types import digest

CODE = (".py", ".j2", ".css")


def head(record: Mapping[str, object]) -> str:
    """The head of a run: one hash for its plan, journals and figures, to be noted elsewhere.

    SHA-256 of the canonical JSON of ``run.json``, which names the plan's hash and the last hash of each journal. What
    is laid over a record when it is shown (waivers, what readers found or people filled in) does not enter.
    """
    own = {k: v for k, v in record.items() if k not in ("waivers", "responsible")}
    plain: dict[str, object] = json.loads(json.dumps(own))
    if isinstance(controls := plain.get("controls"), dict):
        controls.pop("human_readers", None)
    return digest(plain)


def surroundings(packages: Sequence[str]) -> dict[str, object]:
    """Python, platform, and the versions of packages; None for those that are not installed."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return {"python": platform.python_version(), "platform": platform.platform(), "packages": found}


def code_sha256(package: Path = PACKAGE) -> dict[str, object]:
    """One hash over the source files of a package.

    SHA-256 over the sorted lines ``<SHA-256 of the file>  <path>`` with ``/`` between folders, as the tool
    ``sha256sum`` prints them; so it can be recomputed without this package. Byte code, editors' leftovers and
    data (``_data``, whose files have hashes of their own) are left out.

    Parameters
    ----------
    package : Path
        The folder of the package.

    Returns
    -------
    dict
        ``{"sha256": …, "files": number of files}``.

    Examples
    --------
    >>> sorted(code_sha256())
    ['files', 'sha256']
    """
    return dict(_code(package))


@cache
def _code(package: Path) -> tuple[tuple[str, Any], ...]:
    lines = sorted(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(package).as_posix()}\n"
        for path in package.rglob("*")
        if path.suffix in CODE and path.is_file() and not _left_out(path.relative_to(package))
    )
    return (("sha256", hashlib.sha256("".join(lines).encode()).hexdigest()), ("files", len(lines)))


def _left_out(path: Path) -> bool:
    return any(part == "_data" or part.startswith(("__pycache__", ".")) for part in path.parts)


def of_inputs(described: Mapping[str, object]) -> dict[str, object]:
    """What a record lacks beside task, texts, parser and grammar: the code, and the dictionaries of its suite.

    Parameters
    ----------
    described : mapping
        What the suite says of itself (`auditor.core.protocols.Suite.describe`).
    """
    found: dict[str, object] = {"code": code_sha256()}
    dictionaries = msgspec.convert(described.get("dictionaries") or (), tuple[dict[str, object], ...])
    if dictionaries:
        found["dictionaries"] = [
            {k: d.get(k) for k in ("attribute", "name", "version", "sha256")} for d in dictionaries
        ]
    return found
