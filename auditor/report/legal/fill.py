"""What only the people responsible can say: ``responsible.toml``, its template, and the fields of a page; unchecked."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, create_model

from auditor.core import reading
from auditor.core.record import RunRecord
from auditor.core.record.base import Responsible
from auditor.report import document, words
from auditor.report.document import TO_FILL, Entry, Facts, Section, table

FIELDS = words.named("fill_fields")
SIGNATURE = words.named("fill_signature")
MEASURES = words.named("fill_measures")
LINES = 4  # of the table of measures, at least
Filled = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, datetime.date) else value)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """All fields of one page, with what was filled in."""

    fields: tuple[Entry, ...]
    measures: tuple[tuple[Entry, ...], ...]
    signature: tuple[Entry, ...]

    @property
    def filled(self) -> frozenset[str]:
        """Names of the fields that somebody filled in."""
        return frozenset(e.key for e in (*self.fields, *self.signature) if e.value is not None)


def form(record: RunRecord, page: str, own: Mapping[str, str]) -> Form:
    """The fields of the page of a framework, with what was filled in; ``own`` are those that it alone has."""
    filled = record.responsible or Responsible()
    lines = [*filled.measures] + [{}] * (LINES - len(filled.measures))
    return Form(
        fields=(*_entries(FIELDS, filled.fields), *_entries(own, filled.pages.get(page, {}))),
        measures=tuple(_entries(MEASURES, line) for line in lines),
        signature=_entries(SIGNATURE, filled.signature),
    )


def _entries(labels: Mapping[str, str], values: Mapping[str, str]) -> tuple[Entry, ...]:
    return tuple(Entry(key, label, values.get(key)) for key, label in labels.items())


def section(record: RunRecord) -> Section:
    """What people filled in, as a section of a report that is no legal page."""
    made, title = form(record, "", {}), "Filled in by the people responsible"
    facts = Facts(title, tuple((e.label, document.plain(e)) for e in (*made.fields, *made.signature)))
    lines = [[e.value or TO_FILL for e in line] for line in made.measures if any(e.value for e in line)]
    measures = table("What was decided about each finding", tuple(MEASURES.values()), lines)
    return document.section("responsible", title, "Nobody checked it.", facts, measures, short="Filled in")


def load(path: Path, pages: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """What somebody filled in, as a record holds it; ``pages`` are the fields that each page alone has."""
    own: Any = {name: (_table(name, fields), {}) for name, fields in {"signature": SIGNATURE, **pages}.items()}
    measures: Any = (list[_table("measures", MEASURES)], [])  # type: ignore[misc]
    whole = _table("responsible", FIELDS, format=(Literal[1], ...), measures=measures, **own)
    read = reading.load_toml(path, whole)[0].model_dump(exclude_defaults=True, exclude={"format"})
    filled = {name: _filled(values) for name in own if (values := read.pop(name, {}))}
    lines = map(_filled, read.pop("measures", []))
    return {
        "source": path.name,
        "fields": _filled(read),
        "signature": filled.pop("signature", {}),
        "measures": [line for line in lines if set(line) - {"finding"}],
        "pages": {name: values for name, values in filled.items() if values},
    }


def _filled(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _table(name: str, known: Iterable[str], **more: Any) -> type[BaseModel]:
    fields: Any = dict.fromkeys(known, (Filled, "")) | more
    return create_model(name, __config__=ConfigDict(extra="forbid", str_strip_whitespace=True), **fields)


def template(pages: Mapping[str, Mapping[str, str]], findings: Iterable[tuple[str, str]]) -> str:
    """The file to fill in; ``findings`` are (id, sentence) of those that ask for a response."""
    lines = [
        "# What only the people responsible can say, for the legal pages of a report:",
        "#   audit report RUN --format eu-ai-act --fill responsible.toml",
        f'# What stays empty is marked "{TO_FILL}". Nothing of it is checked.',
        "format = 1",
        *_blank(FIELDS),
        "",
        "[signature]",
        *_blank(SIGNATURE),
    ]
    for name, own in pages.items():
        if own:
            lines += ["", f"[{name}]", *_blank(own)]
    rest = {key: label for key, label in MEASURES.items() if key != "finding"}
    for id, sentence in [*findings] or [("", "the id of a finding, such as F001")]:
        line = "".join(c if c.isprintable() else " " for c in sentence)
        lines += ["", "[[measures]]", f'finding = "{id}"  # {line}', *_blank(rest)]
    return "\n".join(lines) + "\n"


def _blank(labels: Mapping[str, str]) -> list[str]:
    return [f'{key} = ""  # {label}' for key, label in labels.items()]
