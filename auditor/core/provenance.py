"""Hashes of what shaped a run, for its record."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from auditor.core.data import PACKAGE
from auditor.core.types import digest

CODE = (".py", ".j2", ".css")
_LEFT_OUT = re.compile(r"(^|/)(__pycache__|\.|_data(/|$))")


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

    versions: dict[str, str | None] = dict.fromkeys(packages)
    for name in packages:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {"python": platform.python_version(), "platform": platform.platform(), "packages": versions}


def code_sha256(package: Path = PACKAGE) -> dict[str, object]:
    """One hash over the source files of a package, and how many there are: ``{"sha256": …, "files": …}``.

    SHA-256 over the sorted lines ``<SHA-256 of the file>  <path>`` with ``/`` between folders, as the tool
    ``sha256sum`` prints them; so it can be recomputed without this package. Byte code, editors' leftovers and
    data (``_data``, whose files have hashes of their own) are left out.

    Examples
    --------
    >>> sorted(code_sha256())
    ['files', 'sha256']
    """
    return _code(package).copy()


@cache
def _code(package: Path) -> dict[str, object]:
    lines = sorted(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(package).as_posix()}\n"
        for path in package.rglob("*")
        if path.suffix in CODE and path.is_file() and not _LEFT_OUT.search(path.relative_to(package).as_posix())
    )
    return {"sha256": hashlib.sha256("".join(lines).encode()).hexdigest(), "files": len(lines)}


def of_inputs(described: Mapping[str, object]) -> dict[str, object]:
    """What a record lacks beside task, texts, parser and grammar: the code, and the dictionaries of its suite.

    ``described`` is what the suite says of itself (`auditor.core.protocols.Suite.describe`).
    """
    dictionaries = msgspec.convert(described.get("dictionaries") or (), tuple[dict[str, object], ...])
    listed = [{k: d.get(k) for k in ("attribute", "name", "version", "sha256")} for d in dictionaries]
    return {"code": code_sha256()} | ({"dictionaries": listed} if listed else {})
