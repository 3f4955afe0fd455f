"""Schema, rows and row tasks of a tabular run."""

from __future__ import annotations

import dataclasses
import difflib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural
from auditor.core.errors import ConfigError, DataFileError
from auditor.tables.column import Raw
from auditor.tables.given import Given
from auditor.tables.infer import PERHAPS, derivable, guarded, implications, infer
from auditor.tables.plan import TabularPlan
from auditor.tables.reading import Table, read_table
from auditor.tables.schema import Schema
from auditor.tables.schemafile import dump, load
from auditor.tables.solver import check_realisable

if TYPE_CHECKING:
    from auditor.tasks.task import Task

ROWS = Path(__file__).with_name("rows")  # row tasks and their schemas


def infer_schema(data: str, target: str | None, protected: tuple[str, ...] = ()) -> str:
    """The schema of a table as YAML text, to be edited.

    Without a target the last column is taken. Without protected columns, those are protected whose name is that
    of a protected attribute, also where another column determines it (German credit: `sex` from the personal
    status). Rules between columns that the data suggest are comments.
    """
    table = read_table(data)
    wanted = target or list(table)[-1]
    table = table.without_missing([wanted] if wanted in table else [])
    derived = [] if protected else [c.name for c in derivable(table, wanted)]
    named = tuple(protected) or (*guarded([n for n in table if n != wanted]), *derived)
    table = table.without_missing([n for n in named if n in table])
    schema = infer(table, wanted, named, name=Path(data).name.split(".")[0], where=data)
    comments = list(schema.notes)
    labels = ", ".join(map(str, distinct_labels(table[wanted])[:12]))
    comments.append(
        f"Which label of {wanted} is good for the person concerned is not known. To say it, add the line "
        f"`favourable: LABEL` above `columns`; labels: {labels}."
    )
    if perhaps := [n for n in schema.names if n.lower() in PERHAPS and n not in schema.protected]:
        comments.append(f"Perhaps to be protected too: {', '.join(perhaps)} (add `protected: true`).")
    for column in schema.columns:
        if column.kind == "derived":
            comments.append(
                f"{column.name} is derived from {column.source} and stands in its place: the model must have been "
                f"trained so. For a model that reads {column.source}, protect that column itself."
            )
    if rules := implications(schema, schema.encode(table, where=data)):
        comments.append("The data suggest these rules. Move those that must hold for everybody to constraints:")
        comments += [f"  - {rule}   # {holds:,} of {plural(rows, 'row')}" for rule, holds, rows in rules]
    return dump(schema, comments)


def load_task(name: str) -> Task:
    """The task of this name: one for table rows only, or any other."""
    from auditor import tasks

    own = ROWS / f"{name}.yaml"
    return tasks.load(own if own.is_file() else name)


def load_rows(plan: TabularPlan) -> tuple[Schema, Given, NDArray[np.generic] | None]:
    """Schema, the given rows (none without data), and their labels where the data have them."""
    table: Table | None = read_table(plan.data) if plan.data else None
    if table is not None:
        table = table.without_missing([n for n in (plan.target or "", *plan.protected) if n in table])
    favourable = None if plan.favourable is None else _value(plan.favourable)
    if plan.task is not None:
        task = load_task(plan.task)
        favourable = plan.favourable if plan.favourable is not None else task.favourable
    if plan.schema_file is not None or table is None:
        schema = load(plan.schema_file or _shipped(plan))
        if plan.target and plan.target != schema.target:
            columns = tuple(c for c in schema.columns if c.name != plan.target)
            schema = dataclasses.replace(schema, target=plan.target, columns=columns)
    elif plan.target is None:
        raise ConfigError("--target is missing: name the column of --data that holds the label, or give --schema")
    else:
        name = Path(plan.data).name.split(".")[0]
        schema = infer(table, plan.target, plan.protected, name=name, where=plan.data)
    if table is not None and plan.target is not None and plan.target not in table:
        near = difflib.get_close_matches(plan.target, table, n=1)
        hint = f". Did you mean {near[0]}?" if near else f"; columns: {', '.join(table)}"
        raise DataFileError(f"{plan.data} has no target column {plan.target!r}{hint}")
    if plan.protected:
        schema = schema.protecting(plan.protected)
    if favourable is not None:
        schema = dataclasses.replace(schema, favourable=favourable)
    if not schema.protected and not plan.options.get("columns"):
        raise ConfigError(f"no column is protected: give --protected NAME[,NAME]. Columns: {', '.join(schema.names)}")
    if schema.constraints:
        check_realisable(schema)
    if table is None:
        return schema, Given.none(schema), None
    whole = [c.source or c.name for c in schema.columns if c.protected and not c.may_lack]
    table = table.without_missing([name for name in (schema.target, *whole) if name in table])
    schema = dataclasses.replace(schema, notes=tuple(dict.fromkeys((*schema.notes, *table.notes))))
    return schema, Given.of(schema, table, where=plan.data), table.get(schema.target)


def distinct_labels(column: NDArray[np.generic]) -> list[Raw]:
    """The labels of a target column, sorted."""
    return sorted({v.item() if isinstance(v, np.generic) else v for v in column if v is not None}, key=str)


def _shipped(plan: TabularPlan) -> Path:
    """The schema that comes with a row task."""
    if plan.task is not None and (path := ROWS / f"{plan.task}.schema.yaml").is_file():
        return path
    known = ", ".join(sorted(p.name.partition(".")[0] for p in ROWS.glob("*.schema.yaml")))
    raise ConfigError(
        f"which columns a row has is not known: give --data FILE or --schema FILE. Tasks with a schema of their "
        f"own: {known}"
    )


def _value(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
