"""Recorded rankings of applicants by a model: how often each group came first.

Test data by nature: names were assigned, nobody applied. The figures describe a model's choices between texts
that differ in a name; they are no outcome rates of real applicants.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.contrib.ll144.applicants import Cell, Source
from auditor.contrib.ll144.categories import RACES
from auditor.core import reading, row_files
from auditor.core.errors import DataFileError
from auditor.core.reading import from_json

SEX_CODES = {"M": "Male", "W": "Female", "F": "Female"}
RACE_CODES = {"H": RACES[0], "W": RACES[1], "B": RACES[2], "A": RACES[4]}
NOT_STATED = "model not stated"
FIELDS = ("job", "default_order", "demo_order", "response")
ENDINGS = (".json", ".jsonl", ".ndjson")


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
        groups as race_sex: A, B, H, W and M, W), ``response``; ``run`` and ``model`` where known. Or what a
        provider sent, with these fields in ``context``: the answer is then ``choices[0].message.content`` or
        ``content[0].text``. Or a folder of such files: without ``run`` a file's name within it is the run.
    leave_out : str, optional
        Leave out lines whose ``run`` contains this text.
    model : str, optional
        Keep the lines of this model only; the others are no part of the result.

    Raises
    ------
    DataFileError
        The file cannot be read, or a line lacks a field; the message names the line.
    """
    read: dict[tuple[str, str], list[Ranking]] = {}
    models: set[str] = set()
    rows = left_out = 0
    for where, value in _objects(path):
        rows += 1
        if leave_out and leave_out in str(value.get("run", "")):
            left_out += 1
            continue
        answered = str(value.get("model") or NOT_STATED)
        models.add(answered)
        if model in (None, answered):
            read.setdefault((answered, str(value["job"])), []).append(_ranking(where, value))
    if models and not read:
        raise DataFileError(f"{path}: no ranking by {model!r} (--model). Models: {', '.join(sorted(models))}.")
    if not read:
        raise DataFileError(f"{path}: no ranking is left to count")
    every = [r for several in read.values() for r in several]
    return RankingFile(
        rankings={key: tuple(read[key]) for key in sorted(read)},
        left_out=left_out,
        unread=sum(r.first is None for r in every),
        unlisted=sum(r.first is not None and not r.listed for r in every),
        models=tuple(sorted({answered for answered, _ in read})),
        source=Source(file=path.name, sha256=sha256(path), rows=rows, unmapped=()),
    )


def sha256(path: Path) -> str:
    """The SHA-256 of a file; of a folder, that of the lines ``SHA-256  NAME`` of the files that are read from it."""
    if not path.is_dir():
        return reading.sha256(path)
    each = (f"{reading.sha256(file)}  {file.relative_to(path).as_posix()}\n" for file in _files(path))
    return hashlib.sha256("".join(each).encode()).hexdigest()


def first_named(names: list[str], response: str) -> int | None:
    """Find the shown name that an answer mentions first, letter for letter, in any case.

    Examples
    --------
    >>> first_named(["ANN LEE", "BO DIAZ"], "1. Bo Diaz, 2. Ann Lee")
    1
    """
    text = response.casefold()
    places = [(at, i) for i, name in enumerate(names) if (at := text.find(name.casefold())) >= 0]
    return min(places)[1] if places else None


def cells(rankings: tuple[Ranking, ...]) -> list[Cell]:
    """Count how often each group was shown and came first; answers that name nobody count as shown."""
    shown: Counter[tuple[str, str]] = Counter()
    first: Counter[tuple[str, str]] = Counter()
    for ranking in rankings:
        shown.update(ranking.groups)
        if ranking.first is not None:
            first[ranking.groups[ranking.first]] += 1
    return [Cell(sex=s, race=r, n=n, x=first[s, r]) for (s, r), n in shown.items()]


def _ranking(where: str, value: Mapping[str, object]) -> Ranking:
    names, codes = value["default_order"], value["demo_order"]
    if not isinstance(names, list) or not isinstance(codes, list) or len(names) != len(codes) or not names:
        raise DataFileError(f"{where}: default_order and demo_order need as many entries each")
    groups = []
    for code in codes:
        race, _, sex = str(code).partition("_")
        if race not in RACE_CODES or sex not in SEX_CODES:
            raise DataFileError(
                f"{where}, field demo_order: {code!r} is no group; race_sex with race "
                f"{', '.join(RACE_CODES)} and sex {', '.join(SEX_CODES)}"
            )
        groups.append((SEX_CODES[sex], RACE_CODES[race]))
    response = str(value["response"])
    first = first_named([str(n) for n in names], response)
    top = next((part for part in response.splitlines() if part.lstrip(" *#").startswith("1")), response)
    listed = first is not None and str(names[first]).casefold() in top.casefold()
    return Ranking(job=str(value["job"]), groups=tuple(groups), first=first, listed=listed)


def _files(folder: Path) -> list[Path]:
    """JSON files below a folder, without hidden ones and those in hidden folders."""
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.name.removesuffix(".gz").endswith(ENDINGS)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return sorted(files, key=lambda path: path.relative_to(folder).as_posix())


def _objects(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Where each ranking stands, and its fields."""
    files = _files(path) if path.is_dir() else [path]
    if not files:
        raise DataFileError(f"{path}: no rankings in this folder; they come as {', '.join(ENDINGS)} (or .gz)")
    for file in files:
        for where, value in _values(file):
            ranking = _fields(value)
            if path.is_dir():
                name = file.relative_to(path).as_posix().removesuffix(".gz")
                ranking.setdefault("run", name.rpartition(".")[0])
            if missing := [field for field in FIELDS if field not in ranking]:
                raise DataFileError(f"{where}: the field {missing[0]} is missing{_hint(value)}")
            yield where, ranking


def _hint(value: object) -> str:
    if isinstance(value, dict) and ("choices" in value or "content" in value) and "context" not in value:
        return (
            ". This is what a provider sent; who was shown is not in it: add "
            '"context": {"job": …, "default_order": […], "demo_order": […]}'
        )
    return ""


def _fields(value: object) -> dict[str, object]:
    """The fields of a ranking, also from what a provider of a model sent, with who was shown in ``context``."""
    if not isinstance(value, dict):
        return {}
    context = value.get("context")
    fields = {**(context if isinstance(context, dict) else {}), **value}
    for first, *rest in (("choices", 0, "message", "content"), ("content", 0, "text")):
        answer: Any = fields.get(str(first))
        for step in rest:
            try:
                answer = answer[step]
            except (TypeError, KeyError, IndexError):
                answer = None
        if isinstance(answer, str):
            fields.setdefault("response", answer)
    return fields


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    """The JSON values of a file: one a line, the items of one array, or one value over several lines."""
    raw = row_files.content(path, what="one file of rankings or a folder of them")
    if raw.startswith(b"\x1f\x8b"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{path}: damaged gzip file: {error}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    if path.name.removesuffix(".gz").endswith(".json"):
        try:
            whole = from_json(text)
        except ValueError:
            pass  # JSON lines under another ending
        else:
            items = whole if isinstance(whole, list) else [whole]
            yield from ((f"{path}, item {i}" if len(items) > 1 else str(path), v) for i, v in enumerate(items, 1))
            return
    for n, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield f"{path}, line {n}", from_json(line)
        except ValueError as error:
            raise DataFileError(f"{path}, line {n}: no JSON: {error}") from None
