"""Reads applicants (one line each) and counts (one line per cell), and computes the breakdowns of the rule."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from auditor.contrib.ll144.categories import RACES, SEXES, CategoryMap
from auditor.core.errors import ConfigError, DataFileError, UnknownValue
from auditor.core.reading import distinct, read_csv, read_data, unpacked
from auditor.measure.impact import Count, ImpactTable, impact_ratio, table

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


# -- the three breakdowns of the rule, and bounds for people of unknown category -----------------------------


def label(sex: str, race: str) -> str:
    """Name an intersectional cell: ``Asian / Female``."""
    return f"{race} / {sex}"


# The tables, with their categories.
TABLES = {"sex": SEXES, "race_ethnicity": RACES, "intersectional": tuple(label(s, r) for r in RACES for s in SEXES)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """Lowest and highest impact ratio that people of unknown category could make true."""

    table: str
    category: str
    reference: str
    low: Fraction
    high: Fraction


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakdown:
    """The three tables for one pool of people.

    ``unknown`` counts people whose sex or race is unknown; ``unknown_sex`` and ``unknown_race`` overlap.
    ``bounds_reason`` says why there are no bounds.
    """

    tables: Mapping[str, ImpactTable]
    unknown: int
    unknown_sex: int
    unknown_race: int
    bounds: tuple[Bound, ...]
    bounds_reason: str
    warnings: tuple[str, ...]


def tally(people: Iterable[Person], x: Iterable[bool]) -> list[Cell]:
    """Count people and outcomes by sex and race."""
    counted: dict[tuple[str | None, str | None], list[int]] = {}
    for person, hit in zip(people, x, strict=True):
        cell = counted.setdefault((person.sex, person.race), [0, 0])
        cell[0] += 1
        cell[1] += hit
    return [Cell(sex=s, race=r, n=n, x=k) for (s, r), (n, k) in counted.items()]


def breakdown(
    cells: Sequence[Cell], *, excluded: Mapping[str, str] | None = None, partly_known: bool = False
) -> Breakdown:
    """Compute the three tables from people by sex and race.

    Totals (`ALL`) replace sums of cells in their table. With ``partly_known`` a person with one unknown attribute
    counts in the table of the other; otherwise such people are in no table, as in the rule's example.
    """
    counts = {name: _counts(cells, name, partly_known) for name in TABLES}
    tables = {n: table(c, excluded=excluded) for n, c in counts.items()}
    unknown = [c for c in cells if None in (c.sex, c.race)]
    bounds, reason = _bounds(cells, tables, counts, partly_known)
    return Breakdown(
        tables=tables,
        unknown=sum(c.n for c in unknown),
        unknown_sex=sum(c.n for c in unknown if c.sex is None),
        unknown_race=sum(c.n for c in unknown if c.race is None),
        bounds=tuple(bounds),
        bounds_reason=reason,
        warnings=tuple(_disagreements(counts)),
    )


def place_of(cell: Cell, name: str) -> str | None:
    """Return the category of a cell in a table; None where it is unknown."""
    if name == "sex":
        return cell.sex
    if name == "race_ethnicity":
        return cell.race
    return label(cell.sex, cell.race) if cell.sex and cell.race else None


def _is_total(cell: Cell, name: str) -> bool:
    return (cell.race if name == "sex" else cell.sex) == ALL and name != "intersectional"


def _counts(cells: Sequence[Cell], name: str, partly_known: bool) -> list[Count]:
    totals = [c for c in cells if _is_total(c, name) and place_of(c, name) not in (None, ALL)]
    used = totals or [c for c in cells if ALL not in (c.sex, c.race) and _counted(c, name, partly_known)]
    sums = dict.fromkeys(TABLES[name], (0, 0))
    for cell in used:
        place = place_of(cell, name)
        assert place is not None
        n, x = sums[place]
        sums[place] = (n + cell.n, x + (cell.x or 0))
    return [Count(category=c, n=n, x=x) for c, (n, x) in sums.items()]


def _counted(cell: Cell, name: str, partly_known: bool) -> bool:
    if partly_known and cell.x is not None:
        return place_of(cell, name) is not None
    return cell.sex is not None and cell.race is not None


def _disagreements(counts: Mapping[str, Sequence[Count]]) -> Iterable[str]:
    """Name the tables of the same people that have different totals."""
    cross = counts["intersectional"]
    n, x = sum(c.n for c in cross), sum(c.x for c in cross)
    if not n:
        return
    for name, title in (("sex", "sex"), ("race_ethnicity", "race/ethnicity")):
        own_n, own_x = sum(c.n for c in counts[name]), sum(c.x for c in counts[name])
        apart = [
            f"{c.category} {c.x}/{c.n} against {k}/{m}"
            for c in counts[name]
            for m, k in [_summed(cross, name, c.category)]
            if (m, k) != (c.n, c.x)
        ]
        if apart:
            yield (
                f"The {title} table and the intersectional table do not add up: {own_x}/{own_n} against "
                f"{x}/{n} ({'; '.join(apart)}). They are computed as given."
            )


def _summed(cross: Sequence[Count], name: str, category: str) -> tuple[int, int]:
    at = 1 if name == "sex" else 0
    inner = [c for c in cross if c.category.split(" / ")[at] == category]
    return sum(c.n for c in inner), sum(c.x for c in inner)


def _bounds(
    cells: Sequence[Cell], tables: Mapping[str, ImpactTable], counts: Mapping[str, Sequence[Count]], partly_known: bool
) -> tuple[list[Bound], str]:
    unknown = [c for c in cells if None in (c.sex, c.race) and ALL not in (c.sex, c.race)]
    if not sum(c.n for c in unknown):
        return [], "nobody has an unknown sex or race/ethnicity"
    if any(c.x is None for c in unknown):
        return [], "the outcomes of people of unknown category are not given"
    bounds = []
    for name in TABLES:
        free = _free(unknown, name, partly_known, any(_is_total(c, name) for c in cells))
        by_name = {c.category: c for c in counts[name]}
        reference = tables[name].reference
        for row in tables[name].rows:
            if reference is None or row.ratio is None or row.count.category == reference:
                continue
            pair = by_name[row.count.category], by_name[reference]
            low, high = (impact_ratio(*_allocate(*pair, free, raise_it=up)) for up in (False, True))
            if low is not None and high is not None:
                bounds.append(Bound(table=name, category=row.count.category, reference=reference, low=low, high=high))
    return bounds, "" if bounds else "no impact ratio is computable"


def _free(
    unknown: Sequence[Cell], name: str, partly_known: bool, totals: bool
) -> list[tuple[tuple[str, ...], int, int]]:
    """Return where people of unknown category could belong in a table: (categories, people, selected)."""
    free = []
    for cell in unknown:
        if name == "intersectional":
            sexes = SEXES if cell.sex is None else (cell.sex,)
            races = RACES if cell.race is None else (cell.race,)
            where = tuple(label(s, r) for s in sexes for r in races)
        else:
            place = place_of(cell, name)
            if place is not None and (partly_known or totals):
                continue  # counted already
            where = TABLES[name] if place is None else (place,)
        free.append((where, cell.n, cell.x or 0))
    return free


def _allocate(
    count: Count, reference: Count, free: Sequence[tuple[tuple[str, ...], int, int]], *, raise_it: bool
) -> tuple[Count, Count]:
    """Give unknown people to the two categories so that the ratio is lowest (or highest).

    To raise it, selected people go to the category and the others to the reference, or else to a third category.
    """
    n, x, n0, x0 = count.n, count.x, reference.n, reference.x
    for where, people, selected in free:
        for k, size in ((selected, selected), (0, people - selected)):
            good = (k > 0) == raise_it
            first, last = (count, reference) if good else (reference, count)
            if first.category in where:
                target = first
            elif where == (last.category,):
                target = last
            else:
                continue
            if target is count:
                n, x = n + size, x + k
            else:
                n0, x0 = n0 + size, x0 + k
    return (Count(category=count.category, n=n, x=x), Count(category=reference.category, n=n0, x=x0))
