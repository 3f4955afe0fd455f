"""Frameworks that a record is mapped to: clause by clause, from dated files, loaded strictly."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

from auditor.core import reading
from auditor.core.errors import DataFileError, UnknownPlugin
from auditor.core.registry import PAGES
from auditor.report import words
from auditor.report.legal import fill

Level = Literal["direct", "input", "not_covered"]
LEVELS = {"direct": "direct evidence", "input": "input", "not_covered": "not covered"}
READ = {"text": "the text", "secondary": "secondary source", "general": "not re-read; check before relying on it"}
SECTIONS = words.named("legal_sections")
NEEDS = words.named("legal_needs")
EVIDENCE = frozenset({"claims", "accuracy", "counterfactual", "intersections", "rows", "impact", "evidence"})
FILLED = frozenset({"system", "response", "signature"})  # what people fill in
NOTHING_HERE = "this record holds no test of that kind"
STRICT = {"extra": "forbid"}  # pydantic refuses unknown fields


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """One provision: what it asks, and what a report of this kind can give for it."""

    __pydantic_config__: ClassVar = STRICT
    ref: str
    asks: str
    level: Level
    gives: str
    sections: tuple[str, ...]
    read: str
    needs: tuple[str, ...] = ()
    otherwise: Level = "not_covered"
    fields: tuple[str, ...] = ()
    source: str = ""
    consulted: datetime.date | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """A ground of discrimination as a text names it, and the attributes or columns that represent it."""

    __pydantic_config__: ClassVar = STRICT
    name: str
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Retention:
    """How long records are kept: ``years`` from ``since``, by ``ref``, which was read as `READ` has it."""

    __pydantic_config__: ClassVar = STRICT
    years: float
    since: str
    ref: str
    read: str

    @property
    def text(self) -> str:
        """``10 years from the placing on the market (Art. 18; secondary source)``."""
        length = f"{self.years:g} years" if self.years >= 1 else f"{12 * self.years:g} months"
        return f"{length} from {self.since} ({self.ref}; {READ[self.read]})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Framework:
    """One text, with the date on which it was consulted and how."""

    __pydantic_config__: ClassVar = STRICT
    id: str
    title: str
    within: str
    text: str
    consulted: datetime.date
    how: str
    sources: dict[str, str]
    notes: tuple[str, ...]
    not_this: tuple[str, ...]
    clauses: tuple[Clause, ...]
    fields: dict[str, str] = field(default_factory=dict)
    grounds: tuple[Ground, ...] = ()
    retention: tuple[Retention, ...] = ()


@dataclass(frozen=True, slots=True)
class Crossing:
    """One clause for one record: its level, why that is not higher, and the sections that hold something for it."""

    framework: Framework
    clause: Clause
    level: Level
    lacking: tuple[str, ...]
    sections: tuple[str, ...]

    @property
    def read(self) -> str:
        """How, from what and when the clause was read, in words."""
        key = self.clause.source or next(iter(self.framework.sources))
        return f"{READ[self.clause.read]}: {key}, {self.clause.consulted or self.framework.consulted}"

    @property
    def gives(self) -> str:
        """What is given, and what is lacking for more."""
        why = "; ".join(self.lacking)
        if not why:
            return self.clause.gives
        if self.level == "not_covered":
            return f"Nothing here: {why}. Otherwise: {self.clause.gives}"
        return f"{self.clause.gives} Lacking: {why}."

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """(id, title) of the sections with what is given; empty where nothing is."""
        return () if self.level == "not_covered" else tuple((s, SECTIONS[s]) for s in self.sections)


@cache
def load(name: str) -> Framework:
    """Load an embedded framework by its id; `UnknownPlugin` for another name, `DataFileError` for a malformed file."""
    if name not in PAGES:
        raise UnknownPlugin("framework", name, PAGES)
    return read(reading.shipped("embedded", "frameworks", f"{name}.yaml"))


def read(path: Path) -> Framework:
    """Read one file; every field is checked, and unknown ones are refused with a `DataFileError`."""
    import pydantic

    raw = reading.load_yaml(path)
    if not isinstance(raw, dict):
        raise DataFileError(f"{path}: a framework file holds fields, such as id and clauses")
    if raw.pop("format", None) != 1:
        raise DataFileError(f"{path}: format must be 1")
    adapter: pydantic.TypeAdapter[Framework] = pydantic.TypeAdapter(Framework)
    try:
        made = adapter.validate_python(raw)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        *place, name = first["loc"]
        if first["type"] == "unexpected_keyword_argument":
            where = f"{place[0]}[{place[1]}]" if place else "the file"
            raise DataFileError(f"{path}: {where}: unknown field {name!r}") from None
        raise DataFileError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    for wrong in _wrong(path, made):
        raise DataFileError(f"{path}: {wrong}")
    return made


def _wrong(path: Path, made: Framework) -> list[str]:
    """What the types of the fields cannot say."""
    refs = [clause.ref for clause in made.clauses]
    wrong = [f"id must be the name of the file; got {made.id!r}"] if made.id != path.stem else []
    wrong += [f"clause {ref!r} is there twice" for ref in refs if refs.count(ref) > 1]
    for clause in made.clauses:
        if not clause.sections and "not_covered" not in (clause.level, clause.otherwise):
            wrong.append(f"{clause.ref}: names no section, so nothing is given")
        if clause.otherwise == "direct":
            wrong.append(f"{clause.ref}: a clause that lacks something is not direct evidence")
    for kind, names, allowed in (
        ("section", [s for c in made.clauses for s in c.sections], SECTIONS),
        ("need", [n for c in made.clauses for n in c.needs], NEEDS),
        ("way of reading", [*(c.read for c in made.clauses), *(r.read for r in made.retention)], READ),
        ("field", [f for c in made.clauses for f in c.fields], {**fill.FIELDS, **made.fields}),
        ("source", [c.source for c in made.clauses if c.source], made.sources),
    ):
        wrong += [f"no {kind} {name!r}; one of {', '.join(allowed)}" for name in names if name not in allowed]
    return wrong


def cross(
    framework: Framework, has: Collection[str], absent: Collection[str] = (), filled: Collection[str] = ()
) -> tuple[Crossing, ...]:
    """Decide every clause, by the needs that the record ``has`` and the fields that are ``filled`` in."""
    labels = {**fill.FIELDS, **framework.fields}
    crossings = []
    for clause in framework.clauses:
        lacking = [NEEDS[need] for need in clause.needs if need not in has]
        level: Level = clause.otherwise if lacking else clause.level
        blank = [name for name in clause.fields if name not in filled]
        if blank:
            lacking.append(f"empty fields ({'; '.join(labels[name] for name in blank)})")
            alone = FILLED.issuperset(clause.sections) and len(blank) == len(clause.fields)
            level = "not_covered" if alone or level == "not_covered" else "input"
        sections = tuple(s for s in clause.sections if s not in absent)
        evidence = EVIDENCE.intersection(clause.sections)
        if level != "not_covered" and evidence and not evidence.intersection(sections):
            level = "not_covered"
            lacking.append(NOTHING_HERE)
        crossings.append(Crossing(framework, clause, level, tuple(lacking), sections))
    return tuple(crossings)
