"""Reads applicants (one line each) and counts (one line per cell), and rates as somebody printed them."""

from __future__ import annotations

import difflib
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from auditor.contrib.ll144.categories import CategoryMap
from auditor.core import row_files
from auditor.core.errors import ConfigError, DataFileError

EQUAL, TRUNCATED = "equal", "truncated"
_NUMBER = re.compile(r"(\d+)(?:[.,](\d+))?\s*(%?)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Printed:
    """A number as it was printed: its value, and the value of one step of its last digit."""

    value: Fraction
    step: Fraction

    def fits(self, exact: Fraction) -> str | None:
        """``equal`` if ``exact`` rounds (half up) to it, ``truncated`` if it was cut; else None."""
        steps = exact / self.step
        if math.floor(steps + Fraction(1, 2)) * self.step == self.value:
            return EQUAL
        return TRUNCATED if math.floor(steps) * self.step == self.value else None


def printed(text: str) -> Printed | None:
    """Read a printed rate or ratio: ``0.979``, ``0,979``, ``97.9 %``; None if it is no such number.

    Examples
    --------
    >>> printed("47.9 %")
    Printed(value=Fraction(479, 1000), step=Fraction(1, 1000))
    """
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        return None
    whole, decimals, percent = match[1], match[2] or "", match[3]
    scale = 10 ** len(decimals) * (100 if percent else 1)
    return Printed(value=Fraction(int(whole + decimals), scale), step=Fraction(1, scale))


def counts_of(rate: Printed, n: int) -> tuple[int, int, str]:
    """The smallest and the largest count of ``n`` that a printed rate fits, and what has to be said about it.

    Counts that round to the rate; where there is none, those that it cuts; where there is none either, the nearest.

    Examples
    --------
    >>> counts_of(printed("47.9%"), 200), counts_of(printed("64.2%"), 28)[:2], counts_of(printed("0.5"), 100)[:2]
    ((96, 96, 'rounds to no share of n'), (18, 18), (45, 54))
    """
    half = rate.step / 2
    low, high = math.ceil((rate.value - half) * n), math.ceil((rate.value + half) * n) - 1
    note = ""
    if low > high:
        low, high = math.ceil(rate.value * n), math.ceil((rate.value + rate.step) * n) - 1
        note = "was cut, not rounded"
    if low > high:
        low = high = math.floor(rate.value * n + Fraction(1, 2))
        note = "rounds to no share of n"
    return max(0, low), min(n, max(high, 0)), note


YES = ("yes", "y", "true", "t", "1", "1.0", "selected", "advanced")
NO = ("no", "n", "false", "f", "0", "0.0", "not selected", "rejected")
# Columns of counts with what they hold: people, or shares of n.
OUTCOMES = {
    "selected": "selection",
    "above_median": "scoring",
    "selection_rate": "selection",
    "scoring_rate": "scoring",
}
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
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One line of counts; ``sex`` or ``race`` may be None (unknown) or `ALL`; ``x`` None where not given.

    ``low`` and ``high`` are the counts that a given rate leaves open, ``published`` is a ratio as it was printed.
    """

    sex: str | None
    race: str | None
    n: int
    x: int | None
    low: int | None = None
    high: int | None = None
    published: str | None = None


def read_people(
    path: Path,
    categories: CategoryMap,
    *,
    sex: str,
    race: str,
    ethnicity: str | None = None,
    selected: str | None = None,
    score: str | None = None,
    group: str | None = None,
) -> tuple[list[Person], Source]:
    """Read one applicant from each line.

    Parameters
    ----------
    path : Path
        CSV (comma, semicolon or tab), UTF-8, with a header.
    sex, race, ethnicity, selected, score, group : str
        Names of columns. ``selected`` holds yes or no (see `YES`, `NO`), ``score`` decimal numbers; an empty
        field is an applicant without an outcome.

    Raises
    ------
    DataFileError
        The file cannot be read, a column is missing, or a value is not what it has to be; the message names
        the line.
    """
    options = {"--sex": sex, "--race": race, "--ethnicity": ethnicity, "--selected": selected}
    options |= {"--score": score, "--group": group}
    wanted = {option: name for option, name in options.items() if name is not None}
    raw = row_files.content(path)
    people: list[Person] = []
    unmapped: Counter[tuple[str, str]] = Counter()
    for line, row in _rows(path, raw, wanted):
        of_sex = categories.find_sex(row[sex])
        of_race = categories.find_race(row[race], row[ethnicity] if ethnicity else None)
        if of_sex.unmapped:
            unmapped[sex, row[sex]] += 1
        if of_race.unmapped:
            both = f"{row[race]} / {row[ethnicity]}" if ethnicity else row[race]
            unmapped[race, both] += 1
        outcome = None
        if selected:
            outcome = _yes_or_no(path, line, selected, row[selected])
        elif score:
            outcome = _number(path, line, score, row[score])
        people.append(
            Person(sex=of_sex.category, race=of_race.category, outcome=outcome, group=row[group] if group else None)
        )
    return people, _source(path, raw, len(people), unmapped)


def read_counts(path: Path, categories: CategoryMap, *, published: str | None = None) -> tuple[list[Cell], str, Source]:
    """Read people and selected people by cell: the cells, the mode (``selection`` or ``scoring``), the source.

    Columns ``sex``, ``race``, ``n`` and one of `OUTCOMES`: counts, or rates as printed (``0.479``, ``47.9 %``). An
    empty sex or race is unknown; ``*`` means all, so that the line is a total of one table. Lines for the same cell are
    added. ``published`` is a column with impact ratios as somebody printed them; see
    `auditor.contrib.ll144.other_tables`.
    """
    raw = row_files.content(path)
    header = row_files.parse(path, row_files.decode(path, raw), wanted=("sex", "race", "n")).columns
    column = next((name for name in OUTCOMES if name in header), "selected")
    wanted = {"column": "sex", "column 2": "race", "column 3": "n", "column 4": column}
    wanted |= {"--published": published} if published else {}
    cells: list[Cell] = []
    notes: list[str] = []
    unmapped: Counter[tuple[str, str]] = Counter()
    for line, row in _rows(path, raw, wanted):
        n = _whole(path, line, "n", row["n"])
        x, low, high = _selected(path, line, column, row[column], n, notes)
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
            raise DataFileError(f"{path}, line {line}: a line for all sexes and all races is no category")
        if x is None and None not in parts:
            raise DataFileError(f"{path}, line {line}: {column} is empty; only unknown cells may lack it")
        ratio = (row[published] or None) if published else None
        cells.append(Cell(sex=parts[0], race=parts[1], n=n, x=x, low=low, high=high, published=ratio))
    return cells, OUTCOMES[column], replace(_source(path, raw, len(cells), unmapped), notes=tuple(notes))


def _selected(
    path: Path, line: int, column: str, value: str, n: int, notes: list[str]
) -> tuple[int | None, int | None, int | None]:
    """The count of a line, and the smallest and largest that a given rate leaves open."""
    if not value:
        return None, None, None
    if not column.endswith("_rate"):
        x = _whole(path, line, column, value)
        if x > n:
            raise DataFileError(f"{path}, line {line}: {column} is {x}, more than n = {n}")
        return x, None, None
    rate = printed(value)
    if rate is None or rate.value > 1:
        raise DataFileError(
            f"{path}, line {line}, column {column}: {value!r} is no rate; write 0.48 or 48 %. "
            "For numbers of people use the column selected or above_median"
        )
    low, high, note = counts_of(rate, n)
    if note:
        notes.append(f"Line {line}: the rate {value} {note} = {n:,}; taken for {low:,} of {n:,}.")
    return min(max(low, round(rate.value * n)), high), low, high


def _rows(path: Path, raw: bytes, wanted: dict[str, str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines by column name; ``wanted`` maps the option that names a column to the name."""
    text = row_files.decode(path, raw)
    if text.lstrip()[:1] in ("{", "["):
        raise DataFileError(
            f"{path}: this is JSON, not CSV. Give outcomes of people as CSV; answers of a model go to audit import"
        )
    table = row_files.parse(path, text, wanted=tuple(wanted.values()))
    for option, name in wanted.items():
        if name not in table.columns:
            raise DataFileError(_no_column(path, option, name, table.columns))
    row_files.distinct(path, table.columns, tuple(wanted.values()))
    empty = True
    for line, record in table.rows:
        if any(field.strip() for field in record):
            empty = False
            yield line, {c: f.strip() for c, f in zip(table.columns, record, strict=True)}
    if empty:
        raise DataFileError(f"{path}: there is a header and no line below it")


def _no_column(path: Path, option: str, name: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.casefold(), [c.casefold() for c in columns], n=3, cutoff=0.5)
    offered = [c for c in columns if c.casefold() in near]
    offer = f"Did you mean {' or '.join(offered)}?" if offered else f"Columns: {', '.join(columns)}."
    return f"{path}: there is no column {name!r}{'' if option.startswith('column') else f' ({option})'}. {offer}"


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
            f"{path}, line {line}, column {column}: {value!r} is no score; a decimal number such as 72.5 is "
            "needed, and nothing where no score was given"
        )
    return Fraction(number)


def _whole(path: Path, line: int, column: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise DataFileError(f"{path}, line {line}, column {column}: {value!r} is no whole number")
    return int(value)


def _source(path: Path, raw: bytes, rows: int, unmapped: Counter[tuple[str, str]]) -> Source:
    lines = sorted(((c, v, n) for (c, v), n in unmapped.items()), key=lambda e: (e[0], -e[2], e[1]))
    return Source(file=path.name, sha256=hashlib.sha256(raw).hexdigest(), rows=rows, unmapped=tuple(lines))


def no_known(path: Path, source: Source) -> ConfigError:
    """Report data in which nobody has a known sex and race."""
    named = ", ".join(f"{v!r} ({n})" for _, v, n in source.unmapped[:6])
    hint = f" Values that the map does not know: {named}." if named else ""
    return ConfigError(
        f"{path}: nobody here has a known sex and a known race/ethnicity, so there is nothing to "
        f"compute.{hint} Check --sex and --race, or map the values: "
        "audit ll144 --write-map map.yaml, then --map map.yaml"
    )
