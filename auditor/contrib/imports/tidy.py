"""A table made plain: a row for each answer, one spelling for each group, answers that are read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from auditor.contrib.imports import readings
from auditor.contrib.imports.answer_files import Column, Table
from auditor.contrib.imports.mapping import Roles, decoded, fold, missing, number, spelled
from auditor.core.errors import ConfigError, UnknownValue
from auditor.core.shown import inline, quoted
from auditor.core.types import Answer
from auditor.tasks.answers import Unclear, after_reasoning

SHOWN = 80  # characters of an answer in a message
ABOUT = ("model", "format", "replicate")  # what a column of answers may be about besides groups


def tidied(table: Table, roles: Roles) -> tuple[Table, Roles, tuple[Answer, ...]]:
    """Return a table with one spelling for each group, its roles as they are then, and the answer of each row."""
    if roles.wide:
        table, roles = _long(table, roles)
    roles.check(table)
    if roles.edits is not None:  # a table that a run was written to: nothing is guessed
        return table, roles, tuple(_written(v, roles) for v in table.columns[roles.answer])
    columns = dict(table.columns)
    longs = (roles.long.attribute, roles.long.group) if roles.long else ()
    for name in {*roles.groups.values(), *longs, *roles.original.values()} & set(columns):
        arms = (*roles.arm.original, *roles.arm.placebo) if roles.arm and roles.arm.column == name else ()
        kept = {*arms, *(v for values in roles.unmarked.values() for v in values)}
        values = [None if missing(v) and v not in kept else v for v in columns[name]]
        named = [*roles.references.values(), *roles.split.get(name, ()), *kept]
        spelling = spelled(filter(None, values), named)
        columns[name] = [v and spelling[v] for v in values]
    columns[roles.answer] = [None if missing(v) else v for v in columns[roles.answer]]
    return Table(columns=columns, sources=table.sources), roles, _read(columns, roles)


EMPTY = Answer(status="unparsed", reason="empty")


def _written(raw: str | None, roles: Roles) -> Answer:
    """Return an answer that a run wrote."""
    value: str | tuple[str, ...] | float | None = raw
    if raw is not None and roles.kind == "labels":
        value = decoded(raw, tuple[str, ...], "a list of labels")
    elif raw is not None and roles.kind == "number":
        value = number(raw)
    return Answer(status="unparsed" if value is None else "ok", value=value)


def _read(columns: Mapping[str, Column], roles: Roles) -> tuple[Answer, ...]:
    column, kind = columns[roles.answer], roles.kind
    if (own := roles.favourable or roles.labels) and kind not in ("label", "labels"):
        raise ConfigError(f"{quoted(own[0])} is a label, but answers are read as kind = {kind!r}, which has none")
    if kind in ("label", "labels"):
        labels = roles.labels or readings.labels_of(column, kind, roles.field).labels
        if kind == "label" and not roles.favourable:
            named = f"{', '.join(map(quoted, labels[:8]))}{' …' if len(labels) > 8 else ''}"
            raise ConfigError(
                f"it is not known which answer is good to get: {named}. Say --favourable LABEL, or favourable in "
                "import.toml"
            )
        good = {fold(label): label for label in roles.favourable}
        if lacking := [good[name] for name in good if name not in map(fold, labels)]:
            raise UnknownValue("favourable", lacking[0], f"answer in the column {roles.answer}", labels)
        read = readings.reading(_texts(column), kind, [good.get(fold(label), label) for label in labels], roles.field)
        _check_labels(column, roles, read)
    elif kind == "number":
        read = readings.numbers(column, roles.field)
    elif kind == "text":
        read = readings.reading(_texts(column), kind, (), None)
    else:
        read = {v: _counted(v, roles) for v in _texts(column)}
    if not any(answer.status != "unparsed" for answer in read.values()):
        example = next(iter(read), None)
        such = "all are empty" if example is None else f"one is {inline(example[:SHOWN])!r}"
        raise ConfigError(
            f"no answer in the column {quoted(roles.answer)} can be read as kind = {kind!r}: {such}. Say what the "
            'answers are: --labels LABEL,LABEL, or --kind number, words or text; field = "KEY" names the key of JSON'
        )
    return tuple(EMPTY if v is None else read[v] for v in column)


def _texts(column: Column) -> list[str]:
    return list(dict.fromkeys(v for v in column if v is not None))


def _check_labels(column: Column, roles: Roles, read: Mapping[str, Answer]) -> None:
    """Refuse a label of the mapping that no answer has where an answer that cannot be read looks like it."""
    values = {v for a in read.values() for v in (a.value if isinstance(a.value, tuple) else (a.value,))}
    unread = [raw for raw, answer in read.items() if answer.status == "unparsed"]
    for label in roles.labels:
        near = difflib.get_close_matches(fold(label), map(fold, unread), n=1)
        if label not in values and near:
            raise UnknownValue("labels", label, f"answer in the column {roles.answer}", readings.shown(column))


def _counted(raw: str, roles: Roles) -> Answer:
    """Count the words of an answer, or the matches of the pattern, its reasoning set aside."""
    try:
        text = after_reasoning(raw)
    except Unclear as error:
        return Answer(status="unparsed", reason=str(error))
    n = len(text.split() if roles.kind == "words" else re.findall(roles.pattern, text, re.IGNORECASE))
    return Answer(status="ok", value=float(n))


def _long(table: Table, roles: Roles) -> tuple[Table, Roles]:
    """A row for each answer, where a row had one answer for each of several groups."""
    if lacking := [name for name in roles.wide if name not in table.columns]:
        raise UnknownValue("wide", lacking[0], "column", table.columns)
    added = list(dict.fromkeys(a for groups in roles.wide.values() for a in groups))
    attributes = [name for name in added if name not in ABOUT]
    size = len(table)
    rest = [name for name in table.columns if name not in roles.wide]
    if taken := [name for name in (*added, roles.answer) if name in rest]:
        raise ConfigError(f"wide: the table has a column {taken[0]!r} already; call the answer another name")
    columns: dict[str, Column] = {name: table.columns[name] * len(roles.wide) for name in rest}
    for attribute in added:
        columns[attribute] = [g.get(attribute) for g in roles.wide.values() for _ in range(size)]
    columns[roles.answer] = [value for name in roles.wide for value in table.columns[name]]
    groups = dict(roles.groups) | {name: name for name in attributes}
    more = {role: role if role == "replicate" else (role,) for role in ABOUT if role in added}
    longer = roles.model_copy(update={"groups": groups, **more})
    return type(table)(columns=columns, sources=table.sources), longer
