"""Frameworks that a report is laid beside: clause by clause, from dated files, loaded strictly."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from auditor import data, yamlfile
from auditor.errors import DataFileError, UnknownPlugin

Level = Literal["direct", "input", "not_covered"]
LEVELS = {"direct": "direct evidence", "input": "input", "not_covered": "not covered"}
READ = {
    "text": "the text",
    "secondary": "secondary sources",
    "general": "not re-read; check before relying on it",
}
SECTIONS = {
    "status": "Status",
    "says": "What this report says and does not say",
    "claims": "Claims",
    "system": "System and context",
    "plan": "Plan and deviations",
    "materials": "Materials and coverage",
    "controls": "Controls as gates",
    "counterfactual": "Treatment: one attribute changed",
    "intersections": "Treatment: several attributes changed",
    "rows": "Treatment: rows of a table",
    "impact": "Impact: outcomes of recorded people",
    "evidence": "Evidence and counterexamples",
    "response": "Response to the results",
    "crosswalk": "Framework cross-reference",
    "limits": "Limits",
    "statistics": "Statistical appendix",
    "provenance": "Provenance",
    "signature": "Signature",
}
EVIDENCE = frozenset({"claims", "counterfactual", "intersections", "rows", "impact", "evidence"})
NOTHING_HERE = "this record holds no test of that kind"
NEEDS = {
    "frozen": "the plan was not frozen before the run (audit plan freeze)",
    "delta": "no bound δ was set before the run",
    "noise": "same-prompt noise was neither measured nor declared absent",
    "placebo": "no placebo edits were asked",
    "age": "age is not among the attributes tested",
    "outcomes": "there are no recorded outcomes of people",
    "selection": "the outcomes are not selections",
    "scoring": "the outcomes are not scores",
    "groups": "the outcomes are not classified into groups",
    "historical": "the outcomes are not said to be historical data",
    "test_data": "nothing says that test data were used in place of historical data",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """One provision: what it asks, and what a report of this kind can give for it.

    ``level`` holds where the record has all of ``needs`` (keys of `NEEDS`); else ``otherwise`` does.
    """

    ref: str
    asks: str
    level: Level
    gives: str
    sections: tuple[str, ...]
    read: str
    needs: tuple[str, ...] = ()
    otherwise: Level = "not_covered"


@dataclass(frozen=True, kw_only=True, slots=True)
class Framework:
    """One text, with the date on which it was consulted and how."""

    id: str
    title: str
    text: str
    consulted: datetime.date
    how: str
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    not_this: tuple[str, ...]
    clauses: tuple[Clause, ...]

    @property
    def the(self) -> str:
        """The title within a sentence."""
        return f"the {self.title}" if self.id in ("eu-ai-act", "nist-ai-rmf") else self.title


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossing:
    """One clause as it stands for one record."""

    clause: Clause
    level: Level
    word: str
    lacking: tuple[str, ...]  # why the level is lower than it could be
    sections: tuple[str, ...] = ()  # those of the clause that hold something in this report

    @property
    def read(self) -> str:
        """How the clause was read, in words."""
        return READ[self.clause.read]

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """(id, title) of the sections with what is given; none where nothing is."""
        return () if self.level == "not_covered" else tuple((s, SECTIONS[s]) for s in self.sections)


def names() -> list[str]:
    """The frameworks there are, sorted."""
    return sorted(path.stem for path in data.path("embedded", "frameworks").glob("*.yaml"))


@cache
def load(name: str) -> Framework:
    """Load an embedded framework by its id.

    Raises
    ------
    UnknownPlugin
        There is none of this name.
    DataFileError
        Its file is malformed; the message names file and field.
    """
    if name not in names():
        raise UnknownPlugin("framework", name, names())
    return read(data.path("embedded", "frameworks", f"{name}.yaml"))


def read(path: Path) -> Framework:
    """Read one file; every field is checked, and unknown ones are refused.

    Raises
    ------
    DataFileError
        Not UTF-8 or YAML, an unknown, missing or mistyped field, or a value that is not one of those allowed.
    """
    import pydantic

    raw = yamlfile.load(path)
    if not isinstance(raw, dict):
        raise DataFileError(f"{path}: a framework file holds fields, such as id and clauses")
    if raw.pop("format", None) != 1:
        raise DataFileError(f"{path}: format must be 1")
    for place, value, allowed in _fields(raw):
        unknown = sorted(set(value) - allowed, key=str)
        if unknown:
            raise DataFileError(f"{path}: {place}: unknown field {unknown[0]!r}")
    adapter: Any = pydantic.TypeAdapter(Framework)
    try:
        found = cast(Framework, adapter.validate_python(raw))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataFileError(f"{path}: {where}: {first['msg']}") from None
    _check(path, found)
    return found


def _fields(raw: dict[str, Any]) -> list[tuple[str, dict[str, Any], set[str]]]:
    clauses = raw.get("clauses")
    listed = clauses if isinstance(clauses, list) else []
    rows = [(f"clauses[{i}]", c, set(Clause.__slots__)) for i, c in enumerate(listed) if isinstance(c, dict)]
    return [("the file", raw, set(Framework.__slots__)), *rows]


def _check(path: Path, found: Framework) -> None:
    if found.id != path.stem:
        raise DataFileError(f"{path}: id must be the name of the file; got {found.id!r}")
    seen: set[str] = set()
    for clause in found.clauses:
        if clause.ref in seen:
            raise DataFileError(f"{path}: clause {clause.ref!r} stands twice")
        seen.add(clause.ref)
        for kind, given, known in (
            ("section", clause.sections, SECTIONS),
            ("need", clause.needs, NEEDS),
            ("way of reading", (clause.read,), READ),
        ):
            for item in given:
                if item not in known:
                    raise DataFileError(
                        f"{path}: {clause.ref}: no {kind} {item!r}; one of {', '.join(known)}"
                    )


def cross(framework: Framework, has: Collection[str], absent: Collection[str] = ()) -> tuple[Crossing, ...]:
    """Decide every clause.

    Parameters
    ----------
    framework : Framework
        The clauses.
    has : collection of str
        The keys of `NEEDS` that the record has.
    absent : collection of str
        Sections in which this report has nothing. A clause whose evidence would stand in such sections only is not
        covered, whatever its file says.
    """
    found = []
    for clause in framework.clauses:
        lacking = tuple(NEEDS[need] for need in clause.needs if need not in has)
        level: Level = clause.otherwise if lacking else clause.level
        sections = tuple(s for s in clause.sections if s not in absent)
        evidence = EVIDENCE.intersection(clause.sections)
        if level != "not_covered" and evidence and not evidence.intersection(sections):
            level, lacking = "not_covered", (*lacking, NOTHING_HERE)
        found.append(
            Crossing(clause=clause, level=level, word=LEVELS[level], lacking=lacking, sections=sections)
        )
    return tuple(found)
