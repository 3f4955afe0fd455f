"""Recorded rankings of applicants by a model: how often each group came first.

Test data by nature: names were assigned, nobody applied. The figures describe a model's choices between texts
that differ in a name; they are no outcome rates of real applicants.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.errors import DataFileError
from auditor.ll144.categories import RACES
from auditor.ll144.people import Cell, Source, read_bytes

SEX_CODES = {"M": "Male", "W": "Female", "F": "Female"}
RACE_CODES = {"H": RACES[0], "W": RACES[1], "B": RACES[2], "A": RACES[4]}
NOT_STATED = "model not stated"
FIELDS = ("job", "default_order", "demo_order", "response")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """One answer: who was shown, and the position (in the order shown) of who came first, None: nobody."""

    job: str
    groups: tuple[tuple[str, str], ...]  # (sex, race) in the order shown
    first: int | None
    listed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class RankingFile:
    """Rankings by model and job, what was left out, and how answers were read.

    ``unread`` answers name nobody who was shown. In ``unlisted`` answers the name that was found first does
    not stand in the first place of the list: mostly that one is misspelt, and the next name is found.
    """

    rankings: Mapping[tuple[str, str], tuple[Ranking, ...]]
    left_out: int
    unread: int
    unlisted: int
    models: tuple[str, ...]
    source: Source


def read(path: Path, *, leave_out: str | None = None, model: str | None = None) -> RankingFile:
    """Read recorded rankings.

    Parameters
    ----------
    path : Path
        JSON lines, gzipped or not: ``job``, ``default_order`` (names as shown), ``demo_order`` (their
        groups as race_sex: A, B, H, W and M, W), ``response``; ``run`` and ``model`` where known.
    leave_out : str, optional
        Leave out lines whose ``run`` contains this text.
    model : str, optional
        Keep the lines of this model only; the others are no part of the result.

    Raises
    ------
    DataFileError
        The file cannot be read, or a line lacks a field; the message names the line.
    """
    raw = read_bytes(path)
    read: dict[tuple[str, str], list[Ranking]] = {}
    models: set[str] = set()
    rows = left_out = 0
    for line, value in _lines(path, raw):
        rows += 1
        if leave_out and leave_out in str(value.get("run", "")):
            left_out += 1
            continue
        answered = str(value.get("model") or NOT_STATED)
        models.add(answered)
        if model in (None, answered):
            read.setdefault((answered, str(value["job"])), []).append(_ranking(path, line, value))
    if models and not read:
        raise DataFileError(
            f"{path}: no ranking by {model!r} (--model). Models: {', '.join(sorted(models))}."
        )
    if not read:
        raise DataFileError(f"{path}: no ranking is left to count")
    every = [r for found in read.values() for r in found]
    return RankingFile(
        rankings={key: tuple(read[key]) for key in sorted(read)},
        left_out=left_out,
        unread=sum(r.first is None for r in every),
        unlisted=sum(r.first is not None and not r.listed for r in every),
        models=tuple(sorted({answered for answered, _ in read})),
        source=Source(file=path.name, sha256=hashlib.sha256(raw).hexdigest(), rows=rows, unmapped=()),
    )


def first_named(names: list[str], response: str) -> int | None:
    """Find the shown name that an answer mentions first, letter for letter, in any case.

    Examples
    --------
    >>> first_named(["ANN LEE", "BO DIAZ"], "1. Bo Diaz, 2. Ann Lee")
    1
    """
    text = response.casefold()
    found = [(at, i) for i, name in enumerate(names) if (at := text.find(name.casefold())) >= 0]
    return min(found)[1] if found else None


def cells(rankings: tuple[Ranking, ...]) -> list[Cell]:
    """Count how often each group was shown and came first; answers that name nobody count as shown."""
    shown: Counter[tuple[str, str]] = Counter()
    first: Counter[tuple[str, str]] = Counter()
    for ranking in rankings:
        shown.update(ranking.groups)
        if ranking.first is not None:
            first[ranking.groups[ranking.first]] += 1
    return [Cell(sex=s, race=r, n=n, x=first[s, r]) for (s, r), n in shown.items()]


def _ranking(path: Path, line: int, value: Mapping[str, Any]) -> Ranking:
    names, codes = value["default_order"], value["demo_order"]
    if not isinstance(names, list) or not isinstance(codes, list) or len(names) != len(codes) or not names:
        raise DataFileError(f"{path}, line {line}: default_order and demo_order need as many entries each")
    groups = []
    for code in codes:
        race, _, sex = str(code).partition("_")
        if race not in RACE_CODES or sex not in SEX_CODES:
            raise DataFileError(
                f"{path}, line {line}, field demo_order: {code!r} is no group; race_sex with race "
                f"{', '.join(RACE_CODES)} and sex {', '.join(SEX_CODES)}"
            )
        groups.append((SEX_CODES[sex], RACE_CODES[race]))
    response = str(value["response"])
    first = first_named([str(n) for n in names], response)
    top = next((part for part in response.splitlines() if part.lstrip(" *#").startswith("1")), response)
    listed = first is not None and str(names[first]).casefold() in top.casefold()
    return Ranking(job=str(value["job"]), groups=tuple(groups), first=first, listed=listed)


def _lines(path: Path, raw: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    if raw.startswith(b"\x1f\x8b"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{path}: damaged gzip file: {error}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    for n, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise DataFileError(f"{path}, line {n}: no JSON: {error}") from None
        missing = [f for f in FIELDS if not isinstance(value, dict) or f not in value]
        if missing:
            raise DataFileError(f"{path}, line {n}: the field {missing[0]} is missing")
        yield n, value
