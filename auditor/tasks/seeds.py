"""Reads texts to audit with: JSON lines, CSV, Parquet, plain lines, Hugging Face data sets."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

from auditor.core import row_files
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.reading import LARGEST, from_json
from auditor.core.row_files import Row
from auditor.core.shown import plural
from auditor.core.types import SourceText, Span, digest
from auditor.tasks import readers
from auditor.tasks.readers import SUBJECT

LONGEST = 1_000_000  # characters of a text: it is held once for each of a hundred variants


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The columns that are read, and how messages name what is read.

    A label or id that is not named is a column of that name where there is one. ``option`` is how a column is chosen,
    ``prefix`` starts the ids of rows without one; ``halves``: characters that no UTF-8 file can hold are let be, since
    some models see them.
    """

    name: str
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    limit: int | None
    option: str = "--column {}=COLUMN"
    prefix: str = "row-"
    halves: bool = False

    @property
    def named(self) -> dict[str, str]:
        """The columns that there must be, stripped as the names of columns are read."""
        columns = {"text": "text", **self.columns}
        return {what: columns[what].strip() for what in ("text", "label", "id", "source") if columns.get(what)}

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that may be read: text, label, id, subject, and the source where it is named."""
        columns = [self.named.get(what, what) for what in ("text", "label", "id")]
        return (*columns, SUBJECT, *([self.named["source"]] if "source" in self.named else []))

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a header that lacks a column, or has it twice."""
        for what, column in self.named.items():
            if column not in columns:
                raise DataFileError(f"{self.name}: {self._missing(what, columns)}")
            if list(columns).count(column) > 1:
                raise DataFileError(f"{self.name}: the column {column!r} is there twice")

    def field(self, where: str, row: Mapping[str, object], what: str) -> tuple[str, object]:
        """Return the name of a column, and what a row holds in it; the source may be absent, and what is not named."""
        if what != "source" and what in self.named and self.named[what] not in row:
            raise DataFileError(f"{where}: {self._missing(what, list(row))}")
        column = self.named.get(what, what)
        return column, row.get(column)

    def _missing(self, what: str, columns: Sequence[str]) -> str:
        """Say that a column is missing, which there are, and which is meant perhaps."""
        column = self.named[what]
        near = difflib.get_close_matches(column, columns, n=1, cutoff=0.6)
        near = near or [one for one in columns if one.casefold() == column.casefold()]
        hint = f" Did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(map(str, columns[:20])) + (", …" if len(columns) > 20 else "")
        return f"no column {column!r}; columns: {listed or 'none'}.{hint} Name it with {self.option.format(what)}."


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedFile(Sequence[SourceText]):
    """Seeds and what was read to get them; behaves like the list of its seeds, which are in the order of the rows.

    ``rows`` are ``len(seeds) + skipped + repeated``. ``skipped`` are rows whose text is missing or blank, ``repeated``
    those whose text stood in an earlier row: one text is one seed, whatever its ids, since counted twice its two
    answers would pass for independent. An id that was used before gets ``#2``, ``#3``, …. ``sha256`` is that of the
    file's bytes; for a data set by name, of what was read.
    """

    seeds: tuple[SourceText, ...]
    rows: int
    skipped: int
    repeated: int
    sha256: str
    source: str

    def __getitem__(self, index: int | slice) -> Any:
        return self.seeds[index]

    def __len__(self) -> int:
        return len(self.seeds)


def read(source: str | Path, *, columns: Mapping[str, str] = {}, limit: int | None = None) -> SeedFile:
    """Read seeds from a file of texts, or from ``hf:DATASET[:CONFIG][@SPLIT]``; `DataFileError` where it is malformed.

    ``columns`` are named by what they hold. A missing, blank or repeated ``text`` is left out and counted. ``label``
    (gold) and ``id`` are the columns of these names if there are such. A list of labels becomes a JSON list, and rows
    without an id get ``row-1``, …. ``source`` says what a text was made of, and is never guessed. A column ``subject``
    may say where the text speaks of the person it is about (`subject_of`). Only the first ``limit`` rows are read.
    """
    wanted = Wanted(name=os.fspath(source), columns=columns, limit=limit)
    if isinstance(source, str) and source.startswith("hf:"):
        return collect(wanted, *readers.from_hub(source))
    path = Path(source)
    if path.parent.suffix in {".yaml", ".yml"}:  # the notes of a task in a language file
        return collect(wanted, *readers.from_language(path))
    raw = row_files.text_file(path)
    if path.suffix.lower() == ".txt":
        wanted = Wanted(name=wanted.name, limit=limit)
    return collect(
        wanted, *row_files.from_file(path, raw, wanted.named["text"]), sha256=hashlib.sha256(raw).hexdigest()
    )


def read_given(data: object, *, columns: Mapping[str, str] = {}, limit: int | None = None) -> SeedFile:
    """Read the texts in ``data``, which a program hands over (`readers.from_object`); the rest as in `read`."""
    option = 'columns={{"{}": …}}'
    wanted = Wanted(name="data", columns=columns, limit=limit, option=option, prefix="text-", halves=True)
    return collect(wanted, *readers.from_object(data, wanted.read))


def collect(wanted: Wanted, columns: Sequence[str] | None, rows: Iterable[Row], sha256: str = "") -> SeedFile:
    """Make seeds of ``rows``; see `read` for what is left out, and what is raised."""
    name = wanted.name
    if wanted.limit is not None and wanted.limit < 1:
        raise ConfigError(f"the limit of texts has to be at least 1, got {wanted.limit}")
    if columns is not None:
        wanted.check(columns)
    seeds: list[SourceText] = []
    ids: set[str] = set()
    texts: set[bytes] = set()  # digests: a million texts would be held twice
    repeats: dict[str, int] = {}
    n = repeated = 0
    for n, (place, row) in enumerate(islice(rows, wanted.limit), start=1):
        where = f"{name}, {place}"
        text = _text(where, wanted, row)
        if not text:
            continue
        id_ = _plain(where, *wanted.field(where, row, "id"))
        label = _gold(where, *wanted.field(where, row, "label"))
        seen = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if seen in texts:
            repeated += 1
            continue
        texts.add(seen)
        id_ = id_ or f"{wanted.prefix}{n}"
        if id_ in ids:
            repeat = repeats.get(id_, 1) + 1
            while f"{id_}#{repeat}" in ids:
                repeat += 1
            repeats[id_] = repeat
            id_ = f"{id_}#{repeat}"
        ids.add(id_)
        subject = subject_of(where, text, row.get(SUBJECT))
        source = _plain(where, *wanted.field(where, row, "source")) if "source" in wanted.named else None
        seeds.append(SourceText(id=id_, text=text, label=label, subject=subject, source=source or None))
    if not n:
        raise DataFileError(f"{name}: no rows; an audit needs at least one text")
    if not seeds:
        column = wanted.named["text"]
        raise DataFileError(f"{name}: the column {column!r} holds nothing but blanks ({plural(n, 'row')})")
    if "source" in wanted.named and all(seed.source is None for seed in seeds):
        column = wanted.named["source"]
        raise DataFileError(f"{name}: no text has a source in the column {column!r} ({wanted.option.format('source')})")
    return SeedFile(
        seeds=tuple(seeds),
        rows=n,
        skipped=n - len(seeds) - repeated,
        repeated=repeated,
        sha256=sha256 or digest_of(seeds),
        source=name,
    )


def crossed(seeds: Sequence[SourceText], against: Path | None, limit: int | None = None) -> list[SourceText]:
    """Put each text of the file ``against`` behind each of ``seeds``: a résumé and a post make one text.

    First come, text by text, the pairs that the file names in ``labels``, then all others; at most ``limit``. Without a
    file the texts stay as they are. Its JSON lines have ``id``, ``text``, and the gold label of a pair: ``labels`` by
    the id of the seed, else ``label``.
    """
    if against is None:
        return list(seeds)
    from auditor.core.typed_files import load_lines
    from auditor.tasks.schema import Against

    others = [other for _, other in load_lines(against, Against, largest=LARGEST)]
    pairs = sorted(product(seeds, others), key=lambda pair: pair[0].id not in pair[1].labels)
    return [
        dataclasses.replace(
            seed,
            id=f"{seed.id}.{other.id}",
            text=f"{seed.text}\n\n{other.text}",
            label=other.labels.get(seed.id, other.label),
            source=seed.source or seed.id,
        )
        for seed, other in pairs[:limit]
    ]


def _text(where: str, wanted: Wanted, row: Mapping[str, object]) -> str:
    """The text of a row; empty where it is missing or blank."""
    column, text = wanted.field(where, row, "text")
    if text is None:
        return ""
    if not isinstance(text, str):
        raise DataFileError(
            f"{where}: the column {column!r} holds {_kind(text)}, not a text; "
            f"name the column of the texts with {wanted.option.format('text')}"
        )
    if len(text) > LONGEST and text.strip():
        raise DataFileError(
            f"{where}: a text of {len(text):,} characters, and the longest that is read has {LONGEST:,}. "
            "Divide it, or leave it out"
        )
    lone = None if text.isascii() else next((c for c in text if "\ud800" <= c <= "\udfff"), None)
    if lone is not None and not wanted.halves:
        raise DataFileError(f"{where}: the text holds half a character (\\u{ord(lone):04x})")
    return text if text.strip() else ""


def digest_of(seeds: Iterable[SourceText]) -> str:
    """SHA-256 of ids, texts, labels and, where they are given, subjects."""
    return digest([[s.id, s.text, s.label] + ([] if s.subject is None else [s.subject]) for s in seeds])


def subject_of(where: str, text: str, value: object) -> tuple[Span, ...] | None:
    """The spans that the field ``subject`` holds, as lists or as JSON (in tables).

    A column of that name that holds words or numbers ("Re: your order") is something else, and nothing is read from it.
    A span that is no pair of numbers, is empty, lies outside the text, or begins before the one before it has ended, is
    a `DataFileError`.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = from_json(value)
        except ValueError:
            return None
    if not isinstance(value, list | tuple) or (value and all(isinstance(item, str) for item in value)):
        return None
    spans: list[Span] = []
    for item in value:
        try:
            start, end = map(operator.index, item)
        except (TypeError, ValueError):
            raise DataFileError(f"{where}: the column {SUBJECT!r} takes a list of [start, end], got {item!r}") from None
        if not 0 <= start < end <= len(text):
            raise DataFileError(
                f"{where}: [{start}, {end}] in the column {SUBJECT!r} is not a part of the text, which has "
                f"{plural(len(text), 'character')}"
            )
        if spans and start < spans[-1][1]:
            raise DataFileError(
                f"{where}: [{start}, {end}] in the column {SUBJECT!r} begins before {list(spans[-1])} has ended; "
                "list the spans in the order of the text"
            )
        spans.append((start, end))
    return tuple(spans)


def _gold(where: str, column: str, value: object) -> str | None:
    """Return a gold label as text: several labels (a list) as a JSON list, which tasks read back."""
    if not isinstance(value, list):
        return _plain(where, column, value)
    items = [_plain(where, column, item) for item in value]
    return json.dumps([item for item in items if item is not None], ensure_ascii=False)


def _plain(where: str, column: str, value: object) -> str | None:
    """Return an id or a label as text; None where there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip() or None
    raise DataFileError(f"{where}: the column {column!r} holds {_kind(value)}, not a word or a number")


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return f"a number ({value})"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__
