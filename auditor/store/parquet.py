"""The Parquet form of a journal: numbered part files, each one row group, chained by their hashes.

``responses/part-00001.parquet`` and so on stand for ``responses.jsonl``. A row holds ``seq``, ``id`` (the variant,
or the case) and ``record``, the canonical JSON of the record. The footer of a part names ``first`` (its first
``seq``), ``prev`` and ``hash``, which is ``SHA-256(prev + the records, each with a line end)``; the first ``prev`` is
the `genesis` value of the file. A part appears under its name in one step: a kill loses the rows that no part holds
yet (at most `ROWS` rows, or those of the last `SECONDS` seconds and more if nothing came since) and never leaves half
a part.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from auditor.errors import MissingDependency, RunFolderError
from auditor.store.journal import Head, Problem, canonical, encoded, write_error
from auditor.store.lines import Line

ROWS = 4096
SECONDS = 5.0
_SHIFT = 20  # an offset is part << 20 | row


def folder_of(path: Path) -> Path:
    """The folder of the parts that stand for a ``.jsonl`` file."""
    return path.with_suffix("")


def parts_of(path: Path) -> list[Path]:
    """The part files of a journal, in their order."""
    return sorted(folder_of(path).glob("part-*.parquet"))


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependency("A Parquet journal", "pyarrow", "parquet") from error
    return pa, pq


def _link(prev: str, records: Iterable[bytes]) -> str:
    found = hashlib.sha256(prev.encode())
    for record in records:
        found.update(record + b"\n")
    return found.hexdigest()


class ParquetJournal:
    """Writes one journal as part files; as `auditor.store.journal.Journal`, continues where another stopped.

    Parameters
    ----------
    path : Path
        The ``.jsonl`` file that the parts stand for.
    start : str
        Its `genesis` value.

    Raises
    ------
    RunFolderError
        The last part was changed, or belongs to another plan.
    MissingDependency
        pyarrow is not installed.
    """

    def __init__(self, path: Path, start: str) -> None:
        _pyarrow()
        self.path = path
        self._rows: list[bytes] = []
        self._ids: list[str] = []
        self._seq, self._prev, self._part = 0, start, 0
        self._since = time.monotonic()
        try:
            folder_of(path).mkdir(exist_ok=True)
            for torn in folder_of(path).glob("*.new"):
                torn.unlink()
        except OSError as error:
            raise write_error(path, error) from error
        if parts := parts_of(path):
            about, records, _ = _load(parts[-1])
            if about["hash"] != _link(about["prev"], records) or (
                not about["first"] and about["prev"] != start
            ):
                raise RunFolderError(
                    f"{parts[-1]}: the last part was changed, or belongs to another plan. See what is wrong with: "
                    f"audit verify {path.parent}"
                )
            self._seq, self._prev = about["first"] + len(records), about["hash"]
            self._part = int(parts[-1].stem.removeprefix("part-"))

    @property
    def head(self) -> Head:
        """Records written so far, and the hash of the last part; writes what waits."""
        self.sync()
        return Head(records=self._seq, hash=self._prev)

    @property
    def size(self) -> int:
        """Where the next record will be: part and row."""
        return (self._part + 1) << _SHIFT | len(self._rows)

    def append(self, record: Mapping[str, Any] | Line) -> None:
        """Write one record, with the next part."""
        if not self._rows:
            self._since = time.monotonic()
        if isinstance(record, Line):
            self._rows.append(encoded(record.plain))
            self._ids.append(record.id)
        else:
            self._rows.append(canonical(record))
            self._ids.append(str(record.get("variant_id", record.get("id", ""))))
        if len(self._rows) >= ROWS or time.monotonic() - self._since >= SECONDS:
            self.sync()

    def extend(self, records: Iterable[Mapping[str, Any] | Line], *, places: list[int] | None = None) -> None:
        """Write records; ``places`` gets part and row of each."""
        for record in records:
            if places is not None:
                places.append(self.size)
            self.append(record)

    def sync(self) -> None:
        """Write what waits as one part, and wait until it is on the disk."""
        if not self._rows:
            return
        pa, pq = _pyarrow()
        own = _link(self._prev, self._rows)
        about = {"first": self._seq, "prev": self._prev, "hash": own}
        table = pa.table(
            {
                "seq": pa.array(range(self._seq, self._seq + len(self._rows)), pa.int64()),
                "id": pa.array([one.encode("utf-8", "replace").decode() for one in self._ids], pa.string()),
                "record": pa.array([row.decode() for row in self._rows], pa.string()),
            }
        ).replace_schema_metadata({"auditor": json.dumps(about)})
        path = _part(self.path, self._part + 1)
        beside = path.with_name(path.name + ".new")
        try:
            pq.write_table(table, beside, compression="zstd", row_group_size=1 << 30)
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError as error:
            raise write_error(path, error) from error
        self._seq, self._prev, self._part = self._seq + len(self._rows), own, self._part + 1
        self._rows, self._ids = [], []

    def close(self) -> None:
        """Write what waits."""
        self.sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()


def _load(part: Path) -> tuple[dict[str, Any], list[bytes], list[int]]:
    """Footer, records and ``seq`` of one part."""
    _, pq = _pyarrow()
    try:
        table = pq.read_table(part, columns=["seq", "record"])
        about = json.loads(table.schema.metadata[b"auditor"])
        records = [row.encode("utf-8") for row in table.column("record").to_pylist()]
        return (
            {"first": int(about["first"]), "prev": str(about["prev"]), "hash": str(about["hash"])},
            records,
            table.column("seq").to_pylist(),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:  # what pyarrow raises is among these
        raise RunFolderError(
            f"{part} is not a part of a journal ({error}). See what is wrong with: audit verify {part.parent.parent}"
        ) from error


def scan(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Place and record of each row, part by part."""
    for part in parts_of(path):
        number = int(part.stem.removeprefix("part-"))
        for row, record in enumerate(_load(part)[1]):
            yield number << _SHIFT | row, json.loads(record)


@lru_cache(maxsize=8)
def _kept(part: Path, written: int) -> list[bytes]:
    return _load(part)[1]


def record_at(path: Path, place: int) -> dict[str, Any]:
    """The record at a place that `scan` named."""
    return next(records_from(path, place))


def records_from(path: Path, place: int) -> Iterator[dict[str, Any]]:
    """The records from a place on that `scan` named."""
    number, row = place >> _SHIFT, place & ((1 << _SHIFT) - 1)
    part = _part(path, number)
    yield from map(json.loads, _rows(part)[row:])
    while (part := _part(path, number := number + 1)).exists():
        yield from map(json.loads, _rows(part))


def _part(path: Path, number: int) -> Path:
    return folder_of(path) / f"part-{number:05d}.parquet"


def _rows(part: Path) -> list[bytes]:
    try:
        written = part.stat().st_mtime_ns
    except OSError as error:
        raise RunFolderError(f"cannot read {part}: {error.strerror or error}") from error
    return _kept(part, written)


def verify(path: Path, start: str, head: Head | None = None) -> list[Problem]:
    """Recompute the chain over the parts; as `auditor.store.journal.verify`, with a problem for each part."""
    problems: list[Problem] = []
    expected, prev = 0, start

    def note(part: Path | None, kind: Any, message: str) -> None:
        name = folder_of(path).name + ("" if part is None else f"/{part.name}")
        problems.append(Problem(file=name, line=None, kind=kind, message=message))

    for part in parts_of(path):
        try:
            about, records, seqs = _load(part)
        except RunFolderError:
            note(part, "torn", "it cannot be read")
            prev = ""
            continue
        first = about["first"]
        if first > expected:
            note(part, "missing", f"records {expected} to {first - 1} are missing before this part")
        elif first < expected:
            note(part, "repeated", f"record {first} stands here a second time")
        elif prev and about["prev"] != prev:
            whole = "the file belongs to another plan, or plan.json was changed" if not first else ""
            note(
                part,
                "changed" if first else "other-plan",
                whole or "it does not follow from the part before it",
            )
        if about["hash"] != _link(about["prev"], records) or seqs != list(range(first, first + len(records))):
            note(part, "changed", "its content was changed")
        expected, prev = first + len(records), about["hash"]
    if head is not None and (head.records, head.hash) != (expected, prev):
        kind = "missing" if expected < head.records else "changed"
        note(None, kind, f"holds {expected} records, but run.json names {head.records}, or another last hash")
    return problems
