"""Reads applicants (one line each) and counts (one line per cell)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from auditor.contrib.ll144.categories import CategoryMap
from auditor.core.errors import ConfigError, DataFileError, UnknownValue
from auditor.core.reading import distinct, read_csv, read_data, unpacked

YES = ("yes", "y", "true", "t", "1", "1.0", "selected", "advanced")
NO = ("no", "n", "false", "f", "0", "0.0", "not selected", "rejected")
OUTCOMES = {"selected": "selection", "above_median": "scoring"}  # columns of counts, with what they hold
ALL = "*"  # in counts: the line is a total over the other column


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """One applicant: categories (None: unknown), outcome (None: not recorded), group (None: no column)."""

    sex: str | None
    race: str | None
    outcome: Fraction | None
    group: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What was read: file name, SHA-256 of its bytes, lines, and values that are no category."""

    file: str
    sha256: str
    rows: int
    unmapped: tuple[tuple[str, str, int], ...]  # column, value, lines


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One line of counts; ``sex`` or ``race`` may be None (unknown) or `ALL`; ``x`` None where not given."""

    sex: str | None
    race: str | None
    n: int
    x: int | None


def read_people(path: Path, categories: CategoryMap, columns: Mapping[str, str | None]) -> tuple[list[Person], Source]:
    """Read one applicant from each line; of ``columns`` (`Settings.columns`), sex and race are named."""
    named = {option: name for option, name in columns.items() if name is not None}
    raw = read_data(path)
    people: list[Person] = []
    unmapped: Counter[tuple[str, str]] = Counter()
    for line, row in _rows(path, raw, [(f"--{option}", name) for option, name in named.items()]):
        said = {option: row[name] for option, name in named.items()}
        sex, race = categories.find_sex(said["sex"]), categories.find_race(said["race"], said.get("ethnicity"))
        if sex.unmapped:
            unmapped[named["sex"], said["sex"]] += 1
        if race.unmapped:
            unmapped[named["race"], " / ".join(said[name] for name in ("race", "ethnicity") if name in said)] += 1
        outcome = None
        if "selected" in said:
            outcome = _yes_or_no(path, line, named["selected"], said["selected"])
        elif "score" in said:
            outcome = _number(path, line, named["score"], said["score"])
        people.append(Person(sex=sex.category, race=race.category, outcome=outcome, group=said.get("group")))
    return people, _source(path, raw, len(people), unmapped)


def read_counts(path: Path, categories: CategoryMap) -> tuple[list[Cell], str, Source]:
    """Read people and selected people by cell: the cells, the mode (``selection`` or ``scoring``), the source.

    Columns ``sex``, ``race``, ``n`` and one of `OUTCOMES`. An empty sex or race is unknown; ``*`` means all: a total
    of one table. Lines for the same cell are added.
    """
    raw = read_data(path)
    header = read_csv(path, unpacked(path, raw), wanted=("sex", "race", "n")).columns
    column = next((name for name in OUTCOMES if name in header), "selected")
    cells: list[Cell] = []
    unmapped: Counter[tuple[str, str]] = Counter()
    for line, row in _rows(path, raw, [("", name) for name in ("sex", "race", "n", column)]):
        n = _whole(path, line, "n", row["n"])
        x = _whole(path, line, column, row[column]) if row[column] else None
        if x is not None and x > n:
            raise DataFileError(f"{path}, line {line}: {column} is {x}, more than n = {n}")
        parts: list[str | None] = []
        for name, find in (("sex", categories.find_sex), ("race", categories.find_race)):
            if row[name] == ALL:
                parts.append(ALL)
                continue
            category = find(row[name])
            if category.unmapped:
                unmapped[name, row[name]] += n
            parts.append(category.category)
        if parts.count(ALL) == 2:
            raise DataFileError(f"{path}, line {line}: a line for all sexes and all races is not a category")
        if x is None and None not in parts:
            raise DataFileError(f"{path}, line {line}: {column} is empty; only unknown cells may lack it")
        cells.append(Cell(sex=parts[0], race=parts[1], n=n, x=x))
    return cells, OUTCOMES[column], _source(path, raw, len(cells), unmapped)


def _rows(path: Path, raw: bytes, wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines by column name; ``wanted`` are options with the columns that they name."""
    text = unpacked(path, raw)
    if text.lstrip()[:1] in ("{", "["):
        raise DataFileError(
            f"{path}: this is JSON, not CSV. Give outcomes of people as CSV; answers of a model go to audit import"
        )
    names = tuple(name for _, name in wanted)
    table = read_csv(path, text, wanted=names)
    for option, name in wanted:
        if name not in table.columns:
            raise UnknownValue(f"{path}: {option}".removesuffix(": "), name, "column", table.columns)
    distinct(path, table.columns, names)
    empty = True
    for line, record in table.rows:
        if any(field.strip() for field in record):
            empty = False
            yield line, {c: f.strip() for c, f in zip(table.columns, record, strict=True)}
    if empty:
        raise DataFileError(f"{path}: there is a header and no line below it")


def _yes_or_no(path: Path, line: int, column: str, value: str) -> Fraction | None:
    text = value.casefold()
    if not text:
        return None
    if text in YES:
        return Fraction(1)
    if text in NO:
        return Fraction(0)
    raise DataFileError(
        f"{path}, line {line}, column {column}: {value!r} is neither yes nor no. "
        f"Yes: {', '.join(YES)}. No: {', '.join(NO)}. For numbers of a scale, use --score {column}"
    )


def _number(path: Path, line: int, column: str, value: str) -> Fraction | None:
    if not value:
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or "_" in value or abs(number.adjusted()) > 300:
        raise DataFileError(
            f"{path}, line {line}, column {column}: {value!r} is not a score. Write a decimal number such as 72.5, or "
            "leave the cell empty where no score was given"
        )
    return Fraction(number)


def _whole(path: Path, line: int, column: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise DataFileError(f"{path}, line {line}, column {column}: {value!r} is not a whole number")
    return int(value)


def _source(path: Path, raw: bytes, rows: int, unmapped: Counter[tuple[str, str]]) -> Source:
    lines = sorted(((c, v, n) for (c, v), n in unmapped.items()), key=lambda e: (e[0], -e[2], e[1]))
    return Source(file=path.name, sha256=hashlib.sha256(raw).hexdigest(), rows=rows, unmapped=tuple(lines))


def no_known(path: Path, source: Source) -> ConfigError:
    """Report data in which nobody has a known sex and race."""
    named = ", ".join(f"{v!r} ({n})" for _, v, n in source.unmapped[:6])
    hint = f" Values that the map does not know: {named}." if named else ""
    return ConfigError(
        f"{path}: no person has both a known sex and a known race/ethnicity, so there is nothing to compute.{hint} "
        "Check --sex and --race. Or map the values with audit ll144 --write-map map.yaml, then --map map.yaml"
    )
