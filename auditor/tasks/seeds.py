"""Reads texts to audit with: JSON lines, CSV, Parquet, plain lines, Hugging Face data sets."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import overload

from auditor.core.counting import plural
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.types import SourceText, digest
from auditor.tasks import readers
from auditor.tasks.readers import Row
from auditor.tasks.subjects import SUBJECT, subject_of

LONGEST = 1_000_000  # characters of a text: it is held once for each of a hundred variants


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """How messages name what is read and how a column is chosen; ``prefix`` starts the ids of rows without one."""

    source: str
    text: str = "--text-column"
    label: str = "--label-column"
    id: str = "--id-column"
    source_column: str = "--source-column"
    prefix: str = "row-"
    halves: bool = False  # characters that no UTF-8 file can hold are let be: some models see them


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedFile(Sequence[SourceText]):
    """Seeds and what was read to get them; behaves like the list of its seeds.

    Attributes
    ----------
    seeds : tuple of SourceText
        In the order of the rows.
    rows : int
        Rows read: ``len(seeds) + skipped + repeated``.
    skipped : int
        Rows whose text is missing or blank.
    repeated : int
        Rows whose text stood in an earlier row. One text is one seed, whatever its ids: counted twice, its
        two answers would pass for independent.
    renamed : int
        Rows whose id had been used before; ``#2``, ``#3``, … was added to it.
    sha256 : str
        Of the file's bytes; for a data set by name, of what was read.
    source : str
        Path or name as given.
    """

    seeds: tuple[SourceText, ...]
    rows: int
    skipped: int
    repeated: int
    renamed: int
    sha256: str
    source: str

    @overload
    def __getitem__(self, index: int) -> SourceText: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SourceText]: ...
    def __getitem__(self, index: int | slice) -> SourceText | Sequence[SourceText]:
        return self.seeds[index]

    def __len__(self) -> int:
        return len(self.seeds)

    def __iter__(self) -> Iterator[SourceText]:
        return iter(self.seeds)


def read(
    source: str | Path,
    *,
    text_column: str = "text",
    label_column: str | None = None,
    id_column: str | None = None,
    source_column: str | None = None,
    limit: int | None = None,
) -> SeedFile:
    """Read seeds from a file or a data set.

    Parameters
    ----------
    source : str or Path
        A ``.jsonl``, ``.csv``, ``.tsv``, ``.parquet`` or ``.txt`` file (one text per line), or
        ``hf:DATASET[:CONFIG][@SPLIT]``.
    text_column : str
        Where the text stands. Beside it, a column ``subject`` may say where the text speaks of the person it is about
        (`subject_of`). A missing (null), blank or repeated text is left out and counted.
    label_column : str or None
        Where the gold label stands; None: ``label`` if there is one. A list (several labels) becomes a JSON
        list. It never selects rows.
    id_column : str or None
        Where the id stands; None: ``id`` if there is one, else ``row-1``, ``row-2``, …
    source_column : str or None
        Where it stands what a text was made of (`SourceText.source`); never guessed.
    limit : int or None
        Take the first ``limit`` rows, blank ones included. Rows behind them are not checked.

    Raises
    ------
    DataFileError
        The file is missing, empty, not UTF-8 or malformed, or has no such column.
    MissingDependency
        Parquet needs the extra ``parquet``, ``hf:`` the extra ``datasets``.
    ConfigError
        ``limit`` is below 1, or the split of a data set has to be named.
    """
    name = os.fspath(source)
    if isinstance(source, str) and source.startswith("hf:"):
        columns, rows = readers.from_hub(source)
        sha256 = ""
    else:
        path = Path(source)
        raw = readers.content(path)
        sha256 = hashlib.sha256(raw).hexdigest()
        if path.suffix.lower() == ".txt":
            text_column, label_column, id_column, source_column = "text", None, None, None
        columns, rows = readers.from_file(path, raw, text_column)
    return collect(
        Where(source=name),
        columns,
        rows,
        text_column,
        label_column,
        id_column,
        limit,
        sha256=sha256,
        source=source_column,
    )


def collect(
    where: Where,
    columns: Sequence[str] | None,
    rows: Iterable[Row],
    text: str,
    label: str | None,
    id_: str | None,
    limit: int | None,
    *,
    sha256: str = "",
    source: str | None = None,
) -> SeedFile:
    """Make seeds of ``rows``; see `read` for what is left out, and for the parameters.

    Raises
    ------
    DataFileError
        No rows, no texts, no such column, or something else than texts in it.
    ConfigError
        ``limit`` is below 1.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"the limit of texts has to be at least 1, got {limit}")
    collected = _collect(where, rows, _Columns(where, columns, text, label, id_, source), limit)
    if not collected.rows:
        raise DataFileError(f"{where.source}: no rows; an audit needs at least one text")
    if not collected.seeds:
        raise DataFileError(
            f"{where.source}: the column {text!r} holds nothing but blanks ({plural(collected.rows, 'row')})"
        )
    if source and all(seed.source is None for seed in collected.seeds):
        raise DataFileError(f"{where.source}: no text has a source in the column {source!r} ({where.source_column})")
    return SeedFile(
        seeds=tuple(collected.seeds),
        rows=collected.rows,
        skipped=collected.rows - len(collected.seeds) - collected.repeated,
        repeated=collected.repeated,
        renamed=collected.renamed,
        sha256=sha256 or digest_of(collected.seeds),
        source=where.source,
    )


def crossed(seeds: Sequence[SourceText], against: Path | None, limit: int | None = None) -> list[SourceText]:
    """Put each text of the file ``against`` behind each of ``seeds``: a résumé and a post make one text.

    First come, text by text, the pairs that the file names in ``labels``, then all others. Without a file the texts
    stay as they are.

    Parameters
    ----------
    seeds : sequence of SourceText
        What is judged.
    against : Path or None
        JSON lines: ``id``, ``text``, and the gold label of a pair: ``labels`` by the id of the seed, else ``label``.
    limit : int or None
        The most pairs.

    Raises
    ------
    DataFileError
        A line of the file is no such object.
    """
    if against is None:
        return list(seeds)
    from pydantic import ValidationError

    from auditor.tasks.schema import Against

    try:
        others = [
            Against.model_validate(row) for _, row in readers.from_file(against, readers.content(against), "text")[1]
        ]
    except ValidationError as error:
        first = error.errors()[0]
        raise DataFileError(f"{against}: field {first['loc'][0]}: {first['msg']}") from None
    pairs = sorted(itertools.product(seeds, others), key=lambda pair: pair[0].id not in pair[1].labels)
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


def digest_of(seeds: Iterable[SourceText]) -> str:
    """SHA-256 of ids, texts, labels and, where they are given, subjects."""
    return digest([[s.id, s.text, s.label] + ([] if s.subject is None else [s.subject]) for s in seeds])


class _Columns:
    """Which columns are read; checked against the header where there is one."""

    def __init__(
        self,
        told: Where,
        columns: Sequence[str] | None,
        text: str,
        label: str | None,
        id_: str | None,
        source: str | None,
    ) -> None:
        self.told, self.text = told, text
        self.label, self.label_needed = label or "label", label is not None
        self.id, self.id_needed = id_ or "id", id_ is not None
        self.source = source
        if columns is not None:
            for name in (text, label, id_, source):
                if name and name not in columns:
                    raise DataFileError(f"{told.source}: {self.missing(name, columns)}")
                if name and list(columns).count(name) > 1:
                    raise DataFileError(f"{told.source}: the column {name!r} stands there twice")

    def field(self, where: str, row: Mapping[str, object], name: str, needed: bool) -> object:
        if needed and name not in row:
            raise DataFileError(f"{self.told.source}, {where}: {self.missing(name, list(row))}")
        return row.get(name)

    def missing(self, name: str, columns: Sequence[str]) -> str:
        """Say that a column is missing, which there are, and which is meant perhaps."""
        near = difflib.get_close_matches(name, columns, n=1, cutoff=0.6)
        if not near:
            near = [column for column in columns if column.casefold().strip() == name.casefold().strip()][:1]
        hint = f" Did you mean {near[0]!r}?" if near else ""
        of = {self.source: self.told.source_column, self.text: self.told.text, self.id: self.told.id}
        option = of.get(name, self.told.label)
        listed = ", ".join(map(str, columns[:20])) + (", …" if len(columns) > 20 else "")
        return f"no column {name!r}; columns: {listed or 'none'}.{hint} Name it with {option}."


class _Collected:
    def __init__(self) -> None:
        self.seeds: list[SourceText] = []
        self.rows = 0
        self.repeated = 0
        self.renamed = 0


def _collect(told: Where, rows: Iterable[Row], columns: _Columns, limit: int | None) -> _Collected:
    out, source = _Collected(), told.source
    used: set[str] = set()
    texts: set[bytes] = set()  # digests: a million texts would be held twice
    repeats: dict[str, int] = {}
    for where, row in islice(rows, limit):
        out.rows += 1
        text = columns.field(where, row, columns.text, needed=True)
        if text is None:
            continue
        if not isinstance(text, str):
            raise DataFileError(
                f"{source}, {where}: the column {columns.text!r} holds {_kind(text)}, not a text; "
                f"name the column of the texts with {told.text}"
            )
        if not text.strip():
            continue
        if len(text) > LONGEST:
            raise DataFileError(
                f"{source}, {where}: a text of {len(text):,} characters, and the longest that is read has {LONGEST:,}. "
                "Divide it, or leave it out"
            )
        lone = next((c for c in text if "\ud800" <= c <= "\udfff"), None) if not text.isascii() else None
        if lone is not None and not told.halves:
            raise DataFileError(f"{source}, {where}: the text holds half a character (\\u{ord(lone):04x})")
        given = _plain(source, where, columns.id, columns.field(where, row, columns.id, columns.id_needed))
        label = _gold(source, where, columns.label, columns.field(where, row, columns.label, columns.label_needed))
        seen = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if seen in texts:
            out.repeated += 1
            continue
        texts.add(seen)
        seed_id = given or f"{told.prefix}{out.rows}"
        if seed_id in used:
            out.renamed += 1
            seed_id = _unused(seed_id, used, repeats)
        used.add(seed_id)
        subject = subject_of(f"{source}, {where}", text, row.get(SUBJECT))
        made_of = columns.source and _plain(source, where, columns.source, row.get(columns.source))
        out.seeds.append(SourceText(id=seed_id, text=text, label=label, subject=subject, source=made_of or None))
    return out


def _unused(name: str, used: set[str], repeats: dict[str, int]) -> str:
    n = repeats.get(name, 1) + 1
    while f"{name}#{n}" in used:
        n += 1
    repeats[name] = n
    return f"{name}#{n}"


def _gold(source: str, where: str, column: str, value: object) -> str | None:
    """Return a gold label as text: several labels (a list) as a JSON list, which tasks read back."""
    if not isinstance(value, list):
        return _plain(source, where, column, value)
    items = [_plain(source, where, column, item) for item in value]
    return json.dumps([item for item in items if item is not None], ensure_ascii=False)


def _plain(source: str, where: str, column: str, value: object) -> str | None:
    """Return an id or a label as text; None where there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip() or None
    raise DataFileError(f"{source}, {where}: the column {column!r} holds {_kind(value)}, not a word or a number")


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return f"a number ({value})"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__
