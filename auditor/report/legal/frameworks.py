"""Frameworks that a record is mapped to: clause by clause, from dated files, loaded strictly."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from auditor.core import reading
from auditor.core.errors import DataFileError, UnknownPlugin
from auditor.core.protocols import PAGES
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


class Part(BaseModel):
    """What a file holds; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Clause(Part):
    """One provision: what it asks, and what a report of this kind can give for it."""

    ref: str
    asks: str
    level: Level  # where the record has all ``needs``
    otherwise: Level = "not_covered"
    needs: tuple[str, ...] = ()  # keys of `NEEDS`
    gives: str
    sections: tuple[str, ...]  # keys of `SECTIONS`
    fields: tuple[str, ...] = ()  # that people fill in
    read: str  # a key of `READ`
    source: str = ""  # a key of `Framework.sources`
    consulted: datetime.date | None = None


class Ground(Part):
    """A ground of discrimination as a text names it, and the attributes or columns that represent it."""

    name: str
    attributes: tuple[str, ...] = ()


class Retention(Part):
    """How long records are kept: ``years`` from ``since``, by ``ref``, which was read as `READ` has it."""

    years: float
    since: str
    ref: str
    read: str

    @property
    def text(self) -> str:
        """``10 years from the placing on the market (Art. 18; secondary source)``."""
        length = f"{self.years:g} years" if self.years >= 1 else f"{12 * self.years:g} months"
        return f"{length} from {self.since} ({self.ref}; {READ[self.read]})"


class Framework(Part):
    """One text, with the date on which it was consulted and how."""

    format: Literal[1]
    id: str
    title: str
    within: str  # the title within a sentence
    text: str
    consulted: datetime.date
    how: str
    sources: dict[str, str]  # short name → what was read
    notes: tuple[str, ...]
    not_this: tuple[str, ...]
    clauses: tuple[Clause, ...]
    fields: dict[str, str] = {}  # that only this page has: name → label
    grounds: tuple[Ground, ...] = ()
    retention: tuple[Retention, ...] = ()

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        refs = [clause.ref for clause in self.clauses]
        wrong = [f"clause {ref!r} is there twice" for ref in refs if refs.count(ref) > 1]
        for clause in self.clauses:
            if not clause.sections and "not_covered" not in (clause.level, clause.otherwise):
                wrong.append(f"{clause.ref}: names no section, so nothing is given")
            if clause.otherwise == "direct":
                wrong.append(f"{clause.ref}: a clause that lacks something is not direct evidence")
        for kind, names, allowed in (
            ("section", [s for c in self.clauses for s in c.sections], SECTIONS),
            ("need", [n for c in self.clauses for n in c.needs], NEEDS),
            ("way of reading", [*(c.read for c in self.clauses), *(r.read for r in self.retention)], READ),
            ("field", [f for c in self.clauses for f in c.fields], {**fill.FIELDS, **self.fields}),
            ("source", [c.source for c in self.clauses if c.source], self.sources),
        ):
            wrong += [f"no {kind} {name!r}; one of {', '.join(allowed)}" for name in names if name not in allowed]
        if wrong:
            raise ValueError(wrong[0])
        return self


@dataclass(frozen=True, slots=True)
class Crossing:
    """One clause for one record: its level, why that is not higher, and the sections with what is given."""

    clause: Clause
    level: Level
    lacking: tuple[str, ...]
    sections: tuple[str, ...]


@cache
def load(name: str) -> Framework:
    """Load an embedded framework by its id; `UnknownPlugin` for another name, `DataFileError` for a malformed file."""
    if name not in PAGES:
        raise UnknownPlugin("framework", name, PAGES)
    return read(reading.shipped("embedded", "frameworks", f"{name}.yaml"))


def read(path: Path) -> Framework:
    """Read one file; what is wrong is a `DataFileError` with its line."""
    raw, lines = reading.load_fields(path)
    made = reading.checked(Framework, raw, path, lines)
    if made.id != path.stem:
        raise DataFileError(f"{path}: id must be the name of the file; got {made.id!r}")
    return made


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
        crossings.append(Crossing(clause, level, tuple(lacking), () if level == "not_covered" else sections))
    return tuple(crossings)
