"""Roles of columns, inferred from their names and values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from auditor.contrib.imports import spelling
from auditor.contrib.imports.answer_files import FILE, Column, Table, named
from auditor.contrib.imports.mapping import Arm, Kind, Long, Roles
from auditor.contrib.imports.spelling import fold, missing, numbers, spelled
from auditor.core import reading
from auditor.core.errors import ConfigError
from auditor.core.shown import quoted

LONG_ANSWER = 60  # characters in the mean, from which an answer is a text
FEW = 400  # different values of a column that names groups, at the most


class Known(msgspec.Struct, frozen=True):
    """The names of ``embedded/import_columns.toml``, those that are looked for first in front."""

    roles: dict[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    long: tuple[tuple[str, str], ...]
    original: tuple[str, ...]
    placebo: tuple[str, ...]
    favourable: tuple[str, ...]


KNOWN = msgspec.toml.decode(reading.shipped("embedded", "import_columns.toml").read_bytes(), type=Known)


def infer(table: Table, answer: str | None = None) -> Roles:
    """Guess the roles from names of columns and their values; ``answer`` names that of answers.

    Raises `ConfigError`, which names the columns that there are, where none of texts or of answers was recognised.
    """
    known = _named(table)
    taken: set[str] = set()

    def pick(role: str) -> str | None:
        for wanted in KNOWN.roles[role]:
            name = known.get(wanted)
            if name is not None and name not in taken:
                taken.add(name)
                return name
        return None

    long = next(
        (
            Long(attribute=known[a], group=known[g])
            for a, g in KNOWN.long
            if {a, g} <= set(known) and _few(table.columns[known[a]])
        ),
        None,
    )
    taken |= {long.attribute, long.group} if long else set()
    groups = {}
    for wanted in KNOWN.attributes if long is None else ():
        name = known.get(wanted) or _whose(table, wanted)
        if name is not None and name not in taken and _few(table.columns[name]):
            groups[wanted] = name
            taken.add(name)
    original = {
        attribute: name
        for attribute, column in groups.items()
        for name in table.columns
        if name not in taken and "original" in name.lower() and column.lower() in name.lower()
    }
    taken |= set(original.values())
    arm = _arm(table, [c for c in (known.get("arm"), long.attribute if long else None, known.get("variant")) if c])
    parts = {
        column: groups_of for column in groups.values() if (groups_of := spelling.split_jointly(table.columns[column]))
    }
    arm = arm or next(filter(None, (_nobody(table, column) for column in groups.values())), None)
    varied = [*groups.values(), *([long.group] if long else []), *filter(None, [known.get("word")])]
    texts = [known[n] for n in KNOWN.roles["text"] if n in known and known[n] not in taken]
    text = next((t for t in texts if _compares(table, (t,), varied)), next(iter(texts), None))
    taken |= {text} if text else set()
    answer = answer or pick("answer")
    taken |= {answer} if answer else set()
    text = text or _left(table, {*taken, answer, *map(known.get, chain(*KNOWN.roles.values()))}, varied)
    if text is None or answer is None:
        what = "which column names the text (or the pair)" if text is None else "which column has the answer"
        raise ConfigError(
            f"it is not clear {what}. The columns are {named(table.columns)}; name the roles in a "
            'file, text = "COLUMN" and answer = "COLUMN", and give it with --map. Where each group has a column of '
            'answers: [wide."COLUMN"] gender = "female"; where labels have log-probabilities: answer and minus'
        )
    roles = Roles(
        text=(text,),
        answer=answer,
        groups=groups,
        long=long,
        original=original,
        arm=arm,
        split=parts,
        where={c: tuple(values) for c, values in parts.items() if {*table.columns[c]} - {*values, None}},
        word=pick("word"),
        model=tuple(filter(None, [pick("model") or _by_file(table, text, varied)])),
        format=tuple(f for f in [pick("format")] if f and _compares(table, (text, f), varied)),
        replicate=pick("replicate"),
        gold=pick("gold"),
    )
    return about(table, roles, answer)


def about(table: Table, roles: Roles, answer: str) -> Roles:
    """``roles`` with another column of answers, read as its values look; `ConfigError` where there is none such."""
    if answer not in table.columns:
        raise ConfigError(f"no column {quoted(answer)}; there are {named(table.columns)}")
    kind = _kind(table.columns[answer])
    said = spelled(v for v in table.columns[answer] if v is not None) if kind == "label" else {}
    labels = {fold(v): v for v in said.values()}
    good = tuple(labels[v] for v in KNOWN.favourable if v in labels)[:1]
    kept = tuple(v for v in roles.favourable if fold(v) in labels)
    unit = "words" if kind == "words" else ""
    return roles.model_copy(update={"answer": answer, "kind": kind, "unit": unit, "favourable": kept or good})


def _named(table: Table) -> dict[str, str]:
    """Columns by their names in small letters, and by what stands behind the last dot where only one has it.

    A column whose whole name says its role (``provider.id``: a model) is known by that alone.
    """
    whole = {name.lower(): name for name in table.columns}
    roles = {wanted for names in KNOWN.roles.values() for wanted in names}
    ends: dict[str, list[str]] = {}
    for name in table.columns:
        ends.setdefault(name.lower().rpartition(".")[2], []).append(name)
    alone = {end: names[0] for end, names in ends.items() if len(names) == 1}
    return {end: name for end, name in alone.items() if name.lower() not in roles} | whole


def _whose(table: Table, attribute: str) -> str | None:
    """The one column that says whose attribute it is: ``applicant_gender``."""
    columns = [c for c in table.columns if c.lower().endswith(f"_{attribute}") and "original" not in c.lower()]
    return columns[0] if len(columns) == 1 else None


def _left(table: Table, taken: Iterable[str | None], varied: Sequence[str]) -> str | None:
    """The one column that nothing else is said by and within which groups differ, row by row."""
    left = [c for c in table.columns if c not in {*taken, FILE} and varied and _compares(table, (c,), varied)]
    many = [c for c in left if 2 <= len(set(table.columns[c])) < len(table)]
    return many[0] if len(many) == 1 else None


def _nobody(table: Table, column: str) -> Arm | None:
    """Rows that name no group, where there are about as many as of a group: the text about nobody in particular."""
    values = table.columns[column]
    groups = len({v for v in values if not missing(v)})
    nobody = sum(missing(v) for v in values)
    each = (len(values) - nobody) / max(1, groups)
    return Arm(column=column, original=("",)) if groups > 1 and 0.8 * each <= nobody <= 1.25 * each else None


def _compares(table: Table, within: Sequence[str], varied: Sequence[str]) -> bool:
    """Whether groups differ within these columns: not within an id of each row, nor within a whole prompt."""
    first: dict[tuple[str | None, ...], tuple[str | None, ...]] = {}
    columns = [[table.columns[name] for name in names] for names in (within, varied)]
    rows = zip(*(zip(*some, strict=True) for some in columns), strict=True) if varied else ()
    return not varied or any(first.setdefault(text, groups) != groups for text, groups in rows)


def _by_file(table: Table, text: str, varied: Sequence[str]) -> str | None:
    """The column of files, where most texts come again about the same group in another file: a model each."""
    if FILE not in table.columns:
        return None
    files: dict[tuple[str | None, ...], set[str | None]] = {}
    for file, *key in zip(*(table.columns[n] for n in (FILE, text, *varied)), strict=True):
        files.setdefault(tuple(key), set()).add(file)
    return FILE if 2 * sum(len(f) > 1 for f in files.values()) > len(files) else None


def _few(column: Column) -> bool:
    return len(set(column)) <= FEW


def _kind(column: Column) -> Kind:
    """Numbers where nearly all answers are, with more than two different ones; texts where they are long."""
    answers = [v for v in column if v is not None]
    read = [v for v in numbers(column) if v is not None]
    if answers and len(read) >= 0.8 * len(answers) and len(set(read)) > 2:
        return "number"
    return "words" if answers and sum(map(len, answers)) > LONG_ANSWER * len(answers) else "label"


def _arm(table: Table, candidates: Sequence[str]) -> Arm | None:
    for name in candidates:
        values = sorted({v for v in table.columns[name] if v is not None})
        original, placebo = _like(values, KNOWN.original), _like(values, KNOWN.placebo)
        if original or placebo:
            return Arm(column=name, original=original, placebo=placebo)
    return None


def _like(values: Iterable[str], wanted: Sequence[str]) -> tuple[str, ...]:
    return tuple(v for v in values if any(v.lower() == w or v.lower().startswith(f"{w}_") for w in wanted))
