"""Append-only JSON lines with a hash chain.

Each line is the JSON of a record (no white space, UTF-8) with three further fields: ``seq`` counts lines from 0,
``prev`` is the hash of the line before, and ``hash``, which stands last, is ``SHA-256(prev + the line without hash)``
in hexadecimal, byte for byte as the line stands. The first ``prev`` is the `genesis` value, which ties the file to its
name and to the plan of its run. The order of the other fields is free: run folders of format 1 have them sorted.

The chain shows order and integrity after the fact. It does not show that lines at the end are missing, or
that a whole file was made anew: for that the number of lines and the last hash are kept in ``run.json``.
Nor can it show runs that were begun and thrown away: the register ``runs.jsonl`` beside the run folders, a journal
too, has each run when it starts and when it ends. A start without an end was aborted, or is still going on.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import msgspec

from auditor.core.errors import RunFolderError
from auditor.core.secrets import scrub_values
from auditor.core.types import canonical
from auditor.store.disk import hold, read_error, write_error

REGISTER = "runs.jsonl"
CHAIN_FIELDS = ("seq", "prev", "hash")
BATCH_BYTES = 1 << 18
_HASH = len(',"hash":""}\n') + 64  # bytes at the end of a line

T = TypeVar("T")
Plain = dict[str, Any]  # a record that has no type of its own
PLAIN: msgspec.json.Decoder[Plain] = msgspec.json.Decoder(Plain)


class Link(msgspec.Struct):
    """What the chain puts into a line."""

    seq: Annotated[int, msgspec.Meta(ge=0)]
    prev: str
    hash: str


_LINK = msgspec.json.Decoder(Link)


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The state of a journal: how many records it holds, and the hash of the last."""

    records: int
    hash: str


def genesis(file_name: str, plan_sha256: str) -> str:
    """The value that stands before the first line of a file: SHA-256 of ``auditor:<file>:<plan>``."""
    return hashlib.sha256(f"auditor:{file_name}:{plan_sha256}".encode()).hexdigest()


def chained(record: Mapping[str, object] | bytes, seq: int, prev: str) -> tuple[bytes, str]:
    """The line for ``record`` (with its line end) and its hash."""
    plain = record if isinstance(record, bytes) else canonical(record)
    comma = b"," if len(plain) > len(b"{}") else b""
    body = b'{"seq":%d,"prev":"%s"%s%s' % (seq, prev.encode(), comma, plain[1:])
    own = hashlib.sha256(prev.encode() + body).hexdigest()
    return b'%s,"hash":"%s"}\n' % (body[:-1], own.encode()), own


class Journal:
    """Writes one journal file; continues where an earlier process stopped.

    A last line without line end (the process was killed while it wrote) is cut off. Each call of `append`
    and `extend` hands its lines to the operating system before it returns, so that nothing of them is lost
    if the process is killed.

    The file is made if it is not there; ``start`` is its `genesis` value.

    Raises
    ------
    RunFolderError
        The last line was changed, or belongs to another plan.
    UserError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cases.jsonl"
    ...     with Journal(path, genesis("cases.jsonl", "")) as journal:
    ...         journal.append({"id": "c1"})
    ...     [record["id"] for record in read(path)]
    ['c1']
    """

    def __init__(self, path: Path, start: str) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise write_error(path, error) from error
        try:
            self._seq, self._prev, self._size = _resume(path, self._fd, start)
        except BaseException:
            os.close(self._fd)
            raise
        self._open = True

    @property
    def head(self) -> Head:
        """Records written so far, and the hash of the last one (the genesis value if there is none)."""
        return Head(records=self._seq, hash=self._prev)

    def append(self, record: Mapping[str, object] | bytes) -> None:
        """Write one record."""
        self.extend((record,))

    def extend(self, records: Iterable[Mapping[str, object] | bytes], *, places: list[int] | None = None) -> None:
        """Write records, in batches of about 256 KiB: constant memory for any number of them.

        They are plain, or JSON objects that are encoded already; ``places`` gets where each begins, in bytes.
        """
        seq, prev = self._seq, self._prev
        lines: list[bytes] = []
        waiting = 0
        for record in records:
            if not isinstance(record, bytes):  # what is encoded already was scrubbed as an answer
                if not record.keys().isdisjoint(CHAIN_FIELDS):
                    raise ValueError(f"a record must not hold the fields {CHAIN_FIELDS}, got {sorted(record)}")
                record = scrub_values(record)
            if places is not None:
                places.append(self._size + waiting)
            line, prev = chained(record, seq, prev)
            seq += 1
            lines.append(line)
            waiting += len(line)
            if waiting >= BATCH_BYTES:
                self._write(b"".join(lines), seq, prev)
                lines.clear()
                waiting = 0
        if lines:
            self._write(b"".join(lines), seq, prev)

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise write_error(self.path, error) from error

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._open:
            self._open = False
            os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, data: bytes, seq: int, prev: str) -> None:
        if not self._open:
            raise ValueError(f"{self.path} is closed")
        if not self._there():  # the system takes lines of a deleted file without a word
            raise write_error(self.path, FileNotFoundError(errno.ENOENT, "deleted"))
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            # Take back what was written of this batch: a later try must not follow half a line.
            os.ftruncate(self._fd, self._size)
            os.lseek(self._fd, self._size, os.SEEK_SET)
            raise write_error(self.path, error) from error
        self._size += len(data)
        self._seq, self._prev = seq, prev

    def _there(self) -> bool:
        """Whether the file that is written is still the one at its path."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except OSError:
            return False


def _resume(path: Path, fd: int, start: str) -> tuple[int, str, int]:
    """Next ``seq``, last hash and size of a file, once a torn last line is cut off."""
    size = os.lseek(fd, 0, os.SEEK_END)
    tail, begin = b"", size
    while begin > 0 and tail.count(b"\n") < 2:
        begin = max(0, begin - (1 << 16))
        os.lseek(fd, begin, os.SEEK_SET)
        chunk = b""
        while len(chunk) < size - begin - len(tail):
            chunk += os.read(fd, size - begin - len(tail) - len(chunk))
        tail = chunk + tail
    whole = tail.rfind(b"\n") + 1
    if begin + whole < size:
        size = begin + whole
        os.ftruncate(fd, size)
    os.lseek(fd, size, os.SEEK_SET)
    if not size:
        return 0, start, 0
    line = tail[tail.rfind(b"\n", 0, whole - 1) + 1 : whole]
    link = link_of(line)
    if link is None or not intact(line, link):
        raise RunFolderError(f"{path}: the last line was changed. See what is wrong with: audit verify {path.parent}")
    if link.seq == 0 and link.prev != start:
        raise RunFolderError(f"{path} belongs to another plan. See what is wrong with: audit verify {path.parent}")
    return link.seq + 1, link.hash, size


def link_of(line: bytes) -> Link | None:
    """The chain fields of a line; None where it is not a record."""
    try:
        return decoded(line, _LINK)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def decoded(line: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """The record of one line that was made here."""
    try:
        return decoder.decode(line)
    except msgspec.DecodeError:  # or a lone surrogate, which only the standard library reads
        return msgspec.convert(json.loads(line), decoder.type)


def intact(line: bytes, link: Link) -> bool:
    """Whether a line is, byte for byte, what its hash was made of."""
    body = line[:-_HASH] + b"}"
    end = b',"hash":"%s"}\n' % link.hash.encode("utf-8", "replace")
    return line.endswith(end) and hashlib.sha256(link.prev.encode("utf-8", "replace") + body).hexdigest() == link.hash


def scan(path: Path, decoder: msgspec.json.Decoder[T]) -> Iterator[tuple[int, T]]:
    """Yield byte offset and record of each line; see `records`."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    except OSError as error:
        raise read_error(path, error) from error
    with file:
        offset = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            yield offset, decode(line, decoder, path, number)
            offset += len(line)


def decode(line: bytes, decoder: msgspec.json.Decoder[T], path: Path, number: int | None = None) -> T:
    """The record of one line; raises `RunFolderError` if it is none."""
    try:
        return decoded(line, decoder)
    except (msgspec.DecodeError, ValueError, RecursionError):
        where = f"{path}, line {number}" if number is not None else str(path)
        raise RunFolderError(
            f"{where} is not a JSON record. See what is wrong with: audit verify {path.parent}"
        ) from None


def records(path: Path, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    """The records of a journal, one at a time; `RunFolderError` names a line that is none of this kind.

    A file that is not there has no records; a torn last line is left out. The chain is not checked.
    """
    for _, record in scan(path, decoder):
        yield record


def read(path: Path) -> Iterator[Plain]:
    """The records of a journal as plain data, without the chain fields; as `records`."""
    for record in records(path, PLAIN):
        for name in CHAIN_FIELDS:
            record.pop(name, None)
        yield record


class Event(msgspec.Struct, frozen=True):
    """One line of the register; ``journal`` holds the heads of the journals at an end. Empty: the line names none."""

    run: str
    event: str
    time: str
    status: str = ""
    plan_sha256: str = ""
    run_sha256: str = ""
    report_sha256: str = ""
    journal: dict[str, Head] = {}


def register(root: Path, event: str, run_id: str, **fields: object) -> None:
    """Append one event ("started", "resumed", "ended", "reported") of one run to the register in ``root``.

    ``fields`` are plain data to keep with it, such as ``plan_sha256`` or ``status``.
    """
    record = {"run": run_id, "event": event, "time": datetime.now(UTC).isoformat(timespec="seconds"), **fields}
    with (
        hold(root / ".runs.lock", f"the register {root / REGISTER}", wait_s=10.0),
        Journal(root / REGISTER, genesis(REGISTER, "")) as journal,
    ):
        journal.append(record)


def events(root: Path) -> Iterator[Event]:
    """All events, oldest first; none if there is no register."""
    for record in read(root / REGISTER):
        try:
            yield msgspec.convert(record, Event)
        except msgspec.ValidationError as error:
            raise RunFolderError(f"{root / REGISTER} cannot be read: {error}") from None
