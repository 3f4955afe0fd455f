"""Schemas from YAML files.

::

    name: census
    target: income
    favourable: ">50K"
    columns:
      age:          {kind: integer, low: 17, high: 90}
      hours:        {kind: binned, edges: [20, 40, 60], values: [10, 35, 45, 70]}
      sex:          {kind: category, values: [Female, Male], protected: true}
      gender:       {kind: derived, source: personal_status, mapping: {A91: male, A92: female}}
      relationship: {kind: category, values: [Husband, Wife, Other], immutable: true}
    constraints:
      - relationship == Husband implies sex == Male
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

from auditor.core import yamlfile
from auditor.core.errors import DataFileError
from auditor.tables.column import Column, Kind
from auditor.tables.constraints import Constraint
from auditor.tables.schema import Schema

KEYS = ("kind", "low", "high", "step", "values", "edges", "protected", "immutable", "ordered", "source", "mapping")


def dump(schema: Schema, comments: Sequence[str] = ()) -> str:
    """A schema as YAML text, one line per column; ``comments`` follow the constraints."""
    import yaml

    lines = [
        "# Which values a row may have. Edit it: add values that the data lack, mark protected and immutable",
        "# columns, and add constraints between columns (rows that no person could have are counted apart).",
    ]
    head = {"name": schema.name, "target": schema.target, "favourable": schema.favourable}
    lines += [yaml.safe_dump({k: v}, allow_unicode=True).strip() for k, v in head.items() if v not in (None, "")]
    lines.append("columns:")
    for column in schema.columns:
        text = yaml.safe_dump(
            {column.name: _plain(column)}, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True
        ).strip()
        lines.append(f"  {text[1:-1]}")
    rules = [c.text for c in schema.constraints]
    lines.append(yaml.safe_dump({"constraints": rules}, allow_unicode=True, width=10**6).strip())
    lines += [f"# {line}" for line in comments]
    return "\n".join(lines) + "\n"


def _plain(column: Column) -> dict[str, object]:
    entry: dict[str, object] = {"kind": column.kind}
    if column.kind == "integer":
        entry |= {"low": column.low, "high": column.raw(column.codes - 1)}
        entry |= {"step": column.step} if column.step != 1 else {}
    elif column.kind == "derived":
        entry |= {"source": column.source, "mapping": dict(column.mapping), "values": list(column.values)}
    else:
        entry |= {"edges": list(column.edges)} if column.kind == "binned" else {}
        entry["values"] = list(column.values)
    for flag in ("protected", "immutable"):
        entry |= {flag: True} if getattr(column, flag) else {}
    if column.ordered != (column.kind in ("integer", "binned")):
        entry["ordered"] = column.ordered
    return entry


def load(path: str | Path) -> Schema:
    """Read a schema file."""
    value = yamlfile.load(path)
    if not isinstance(value, dict) or not isinstance(value.get("columns"), dict):
        raise DataFileError(f"{path}: expected a mapping with the entry `columns` (column name: what it holds)")
    if unknown := sorted(set(map(str, value)) - {"name", "target", "favourable", "columns", "constraints"}):
        raise DataFileError(f"{path}: unknown entry {unknown[0]!r}")
    rules = value.get("constraints") or []
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise DataFileError(
            f"{path}: constraints must be a list of lines, e.g. `- relationship == Wife implies sex == Female`"
        )
    return Schema(
        columns=tuple(_column(str(key), entry, path) for key, entry in value["columns"].items()),
        target=str(value.get("target") or ""),
        favourable=value.get("favourable"),
        constraints=tuple(Constraint(rule) for rule in rules),
        name=str(value.get("name") or Path(path).stem),
    )


def _column(name: str, entry: object, path: str | Path) -> Column:
    where = f"{path}, column {name!r}"
    if not isinstance(entry, dict):
        raise DataFileError(f"{where}: expected fields such as kind and values")
    if unknown := sorted(set(map(str, entry)) - set(KEYS)):
        raise DataFileError(f"{where}: unknown field {unknown[0]!r}; fields: {', '.join(KEYS)}")
    kind = entry.get("kind")
    if kind not in ("integer", "category", "binned", "derived"):
        raise DataFileError(f"{where}: kind must be integer, category, binned or derived; got {kind!r}")
    flags = {flag: entry.get(flag, False) for flag in ("protected", "immutable")}
    flags["ordered"] = entry.get("ordered", kind in ("integer", "binned"))
    if wrong := [flag for flag, value in flags.items() if not isinstance(value, bool)]:
        raise DataFileError(f"{where}: {wrong[0]} must be true or false")
    known: Kind = kind
    if known == "integer":
        low, high, step = entry.get("low"), entry.get("high"), entry.get("step", 1)
        if not (_int(low) and _int(high) and _int(step)) or high < low or step < 1:
            raise DataFileError(f"{where}: needs whole numbers low <= high, and step >= 1 where given")
        return Column(name=name, kind=known, codes=(high - low) // step + 1, low=low, step=step, **flags)
    mapping = entry.get("mapping") or {}
    if known == "derived" and not (isinstance(entry.get("source"), str) and isinstance(mapping, dict) and mapping):
        raise DataFileError(f"{where}: a derived column needs source (a column of the data) and mapping")
    values = entry.get("values") or list(dict.fromkeys(mapping.values()))
    if not isinstance(values, list) or not all(isinstance(v, str | int | float | bool) for v in values):
        raise DataFileError(f"{where}: values must be a list of texts or numbers (quote dates and times)")
    edges = entry.get("edges") or []
    if not isinstance(edges, list) or not all(isinstance(v, int | float) for v in edges):
        raise DataFileError(f"{where}: edges must be a list of numbers")
    return Column(
        name=name,
        kind=known,
        codes=len(values),
        values=tuple(values),
        edges=tuple(map(float, edges)),
        source=entry.get("source") if known == "derived" else None,
        mapping=tuple(mapping.items()) if known == "derived" else (),
        **flags,
    )


def _int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
