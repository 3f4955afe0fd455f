"""Columns made plain: one spelling for each label and group, bare numbers, one column of answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from auditor.contrib.imports.mapping import Roles
from auditor.contrib.imports.spelling import missing, numbers, spelled
from auditor.contrib.imports.tables import Column, Table
from auditor.core.errors import ConfigError

ROLES = ("model", "format", "replicate")  # what a column of answers may be about besides groups


def tidied(table: Table, roles: Roles) -> tuple[Table, Roles, int]:
    """``table`` with one column of answers, one spelling for each label and group, and plain numbers.

    Returns
    -------
    tuple
        The table, the roles as they are then, and how many fields are read as another spelling.
    """
    if roles.wide:
        table, roles = _long(table, roles)
    if roles.edits is not None:  # a table that a run was written to: nothing is guessed
        return table, roles, 0
    columns, changed = dict(table.columns), 0
    longs = (roles.long.attribute, roles.long.group) if roles.long else ()
    for name in {*roles.groups.values(), *longs, *roles.original.values()} & set(columns):
        values = [None if missing(v) else v for v in columns[name]]
        named = [*roles.references.values(), *roles.split.get(name, ()), *_arms(roles, name)]
        columns[name], more = _one(values, named)
        changed += more
    if roles.answer in columns:
        given: Column = [None if missing(v) else v for v in columns[roles.answer]]
        if roles.kind == "label":
            given, more = _one(given, roles.favourable)
            changed += more
        elif roles.kind == "number":
            given = numbers(given)
            if roles.minus:
                given = _difference(given, columns, roles.minus)
        columns[roles.answer] = given
    return type(table)(columns=columns, sources=table.sources), roles, changed


def _arms(roles: Roles, name: str) -> tuple[str, ...]:
    return (*roles.arm.original, *roles.arm.placebo) if roles.arm and roles.arm.column == name else ()


def _one(column: Column, named: Iterable[str]) -> tuple[Column, int]:
    spelling = spelled((v for v in column if v is not None), named)
    return (
        [None if v is None else spelling[v] for v in column],
        sum(v is not None and spelling[v] != v for v in column),
    )


def _difference(column: Column, columns: Mapping[str, Column], minus: str) -> Column:
    if minus not in columns:
        raise ConfigError(f"minus: no column {minus!r}; there are {', '.join(columns)}")
    other = numbers(columns[minus])
    return [None if a is None or b is None else repr(float(a) - float(b)) for a, b in zip(column, other, strict=True)]


def _long(table: Table, roles: Roles) -> tuple[Table, Roles]:
    """A row for each answer, where a row had one answer for each of several groups."""
    if lacking := [name for name in roles.wide if name not in table.columns]:
        raise ConfigError(f"wide: no column {lacking[0]!r}; there are {', '.join(table.columns)}")
    added = list(dict.fromkeys(a for groups in roles.wide.values() for a in groups))
    attributes = [name for name in added if name not in ROLES]
    size = len(table)
    rest = [name for name in table.columns if name not in roles.wide]
    if taken := [name for name in (*added, roles.answer) if name in rest]:
        raise ConfigError(f"wide: the table has a column {taken[0]!r} already; call the answer another name")
    columns: dict[str, Column] = {name: table.columns[name] * len(roles.wide) for name in rest}
    for attribute in added:
        columns[attribute] = [g.get(attribute) for g in roles.wide.values() for _ in range(size)]
    columns[roles.answer] = [value for name in roles.wide for value in table.columns[name]]
    groups = dict(roles.groups) | {name: name for name in attributes}
    more = {role: role if role == "replicate" else (role,) for role in ROLES if role in added}
    found = roles.model_copy(update={"groups": groups, **more})
    return type(table)(columns=columns, sources=table.sources), found
