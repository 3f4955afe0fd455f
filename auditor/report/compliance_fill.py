"""What only the people responsible can say: ``responsible.toml``, read, printed as a template, and as fields of a page.

::

    format = 1
    organisation = "Example Ltd"
    purpose = ""                  # empty: the pages mark it "to be filled in"

    [signature]
    name = "A. Person"
    date = 2026-11-22

    [eu-ai-act]                   # fields that one page has
    annex_iii_point = "4(a)"

    [[measures]]                  # what was done about a finding
    finding = "F001"
    measure = "the prompt names no first names"

Nothing of it is checked, and nothing is filled in for anybody.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.core import userfile
from auditor.core.decoded import from_toml
from auditor.core.errors import DataFileError
from auditor.core.record import RunRecord
from auditor.core.record.parts import Responsible
from auditor.report.document import TO_FILL, Block, Entry, Facts, Section, Table, Text

Data = Mapping[str, Any]
FORMAT = 1
FIELDS = {
    "organisation": "Organisation responsible for the system",
    "system": "Name and version of the system under test",
    "purpose": "Purpose, and the decision it serves",
    "deployer": "Who deploys it, and where",
    "affected": "People and groups affected",
    "oversight": "What a human does before and after the answer",
}
SIGNATURE = {
    "name": "Name and role of the responsible person",
    "place": "Place",
    "date": "Date",
    "signed": "Signature, or where the signed copy is kept",
}
MEASURES = {
    "finding": "Finding",
    "decision": "Decision and reason",
    "measure": "Measure",
    "owner": "Owner",
    "due": "Due",
    "retest": "Run that tests it again",
}
LINES = 4  # of the table of measures, at least


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

    @property
    def missing(self) -> tuple[str, ...]:
        """Labels of those that nobody did."""
        return tuple(e.label for e in (*self.fields, *self.signature) if e.value is None)


def form(record: RunRecord, page: str, own: Mapping[str, str]) -> Form:
    """The fields of a page.

    Parameters
    ----------
    record : mapping
        A record; what was filled in lies under ``responsible``.
    page : str
        Id of the framework.
    own : mapping of str to str
        Fields that this page alone has, with their labels.
    """
    given = record.responsible or Responsible()
    special = given.pages.get(page, {})
    lines = [*given.measures]
    lines += [{}] * (LINES - len(lines))
    return Form(
        fields=(*_entries(FIELDS, given.fields), *_entries(own, special)),
        measures=tuple(_entries(MEASURES, line) for line in lines),
        signature=_entries(SIGNATURE, given.signature),
    )


def sections(record: RunRecord) -> tuple[Section, ...]:
    """What people filled in, as a section of a report that is no legal page; none where nobody did."""
    if record.responsible is None:
        return ()
    made = form(record, "", {})
    facts = tuple((e.label, e.value or TO_FILL) for e in (*made.fields, *made.signature))
    lines = tuple(tuple(e.value or TO_FILL for e in line) for line in made.measures if any(e.value for e in line))
    measures = Table(caption="What was decided about each finding", columns=tuple(MEASURES.values()), lines=lines)
    title = "Filled in by the people responsible"
    blocks: tuple[Block, ...] = (Text("Nobody checked it."), Facts(title, facts))
    return (Section(id="responsible", title=title, short="Filled in", blocks=(*blocks, measures) if lines else blocks),)


def _entries(labels: Mapping[str, str], given: Data) -> tuple[Entry, ...]:
    return tuple(Entry(key, label, given.get(key)) for key, label in labels.items())


def load(path: Path, pages: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """Read a file that somebody filled in.

    Parameters
    ----------
    path : Path
        TOML in UTF-8.
    pages : mapping of str to collection of str
        Framework → the fields that its page alone has.

    Returns
    -------
    dict
        ``{"source", "fields", "signature", "measures", "pages"}``, with what was filled in only.

    Raises
    ------
    DataFileError
        The file cannot be read, or holds a name or a value that has no place in it; the message says which.
    """
    try:
        raw = from_toml(userfile.text(path))
    except (OSError, ValueError) as error:
        raise DataFileError(f"{path}: cannot be read as TOML: {error}") from None
    if raw.pop("format", None) != FORMAT:
        raise DataFileError(f"{path}: format must be {FORMAT}")
    tables = {"signature", *pages}
    _known(path, "", raw, {*FIELDS, "measures", *tables})
    for name in tables & set(raw):
        if not isinstance(raw[name], dict):
            raise DataFileError(f"{path}: {name} is a table: [{name}]")
    measures = raw.get("measures", [])
    if not isinstance(measures, list) or not all(isinstance(line, dict) for line in measures):
        raise DataFileError(f"{path}: measures is a list of tables: [[measures]]")
    lines = [_texts(path, "[[measures]]", line, MEASURES) for line in measures]
    own = {name: _texts(path, f"[{name}]", raw[name], pages[name]) for name in pages if name in raw}
    top = {key: value for key, value in raw.items() if key in FIELDS}
    return {
        "source": path.name,
        "fields": _texts(path, "", top, FIELDS),
        "signature": _texts(path, "[signature]", raw.get("signature", {}), SIGNATURE),
        "measures": [line for line in lines if set(line) - {"finding"}],
        "pages": {name: found for name, found in own.items() if found},
    }


def _known(path: Path, where: str, given: Iterable[str], allowed: Collection[str]) -> None:
    for name in given:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(sorted(allowed))}."
            raise DataFileError(f"{path}: {where + ': ' if where else ''}unknown field {name!r}. {hint}")


def _texts(path: Path, where: str, given: Data, allowed: Collection[str]) -> dict[str, str]:
    _known(path, where, given, allowed)
    found = {}
    for name, value in given.items():
        if isinstance(value, datetime.date):
            value = value.isoformat()
        if not isinstance(value, str):
            raise DataFileError(f"{path}: {where + ': ' if where else ''}{name} is a text in quotes")
        if value.strip():
            found[name] = value.strip()
    return found


def template(pages: Mapping[str, Mapping[str, str]], findings: Iterable[tuple[str, str]]) -> str:
    """The file to fill in.

    Parameters
    ----------
    pages : mapping of str to mapping
        Framework → the fields that its page alone has, with their labels.
    findings : iterable of (str, str)
        Ids of findings that ask for a response, each with a sentence.
    """
    lines = [
        "# What only the people responsible can say, for the legal pages of a report:",
        "#   audit report RUN --format eu-ai-act --fill responsible.toml",
        f'# What stays empty is marked "{TO_FILL}". Nothing of it is checked.',
        f"format = {FORMAT}",
        *_blank(FIELDS),
        "",
        "[signature]",
        *_blank(SIGNATURE),
    ]
    for name, own in pages.items():
        if own:
            lines += ["", f"[{name}]", *_blank(own)]
    for id, sentence in [*findings] or [("", "the id of a finding, such as F001")]:
        rest = {key: label for key, label in MEASURES.items() if key != "finding"}
        lines += ["", "[[measures]]", f'finding = "{id}"  # {_one_line(sentence)}', *_blank(rest)]
    return "\n".join(lines) + "\n"


def _blank(labels: Mapping[str, str]) -> list[str]:
    return [f'{key} = ""  # {label}' for key, label in labels.items()]


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
