"""The files of a run folder: append-only JSON lines with a hash chain, and files that are written in one step.

Each line of a journal is the JSON of a record (no white space, UTF-8) with three further fields: ``seq`` counts lines
from 0, ``prev`` is the hash of the line before, and ``hash``, which stands last, is ``SHA-256(prev + the line without
hash)`` in hexadecimal, byte for byte as the line stands. The first ``prev`` is the `genesis` value, which ties the file
to its name and to the plan of its run. The order of the other fields is free: run folders of format 1 have them sorted.

The chain does not show that lines at the end are missing, or that a whole file was made again: ``run.json`` has the
number of lines and the last hash. The register ``runs.jsonl`` next to the run folders, a journal too, has each run when
it starts and when it ends.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import filelock
import msgspec
from msgspec import UNSET, UnsetType

from auditor._version import __version__
from auditor.core.errors import RunFolderError, UserError
from auditor.core.reading import from_json
from auditor.core.record.base import Head
from auditor.core.shown import scrub_bytes, scrub_values
from auditor.core.types import (
    FORMAT_VERSION,
    Case,
    Check,
    Edit,
    Input,
    Message,
    Prompt,
    Response,
    Sampling,
    SourceText,
    Variant,
    Verdict,
    canonical,
)

REGISTER = "runs.jsonl"
CHAIN_FIELDS = ("seq", "prev", "hash")
BATCH_BYTES = 1 << 18
_HASH = len(',"hash":""}\n') + 64  # bytes at the end of a line
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

T = TypeVar("T")
Lock = filelock.BaseFileLock
Plain = dict[str, Any]  # a record that has no type of its own
PLAIN: msgspec.json.Decoder[Plain] = msgspec.json.Decoder(Plain)


class Link(msgspec.Struct):
    """What the chain puts into a line."""

    seq: Annotated[int, msgspec.Meta(ge=0)]
    prev: str
    hash: str


_LINK = msgspec.json.Decoder(Link)


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
    """Write one journal file; ``start`` is its `genesis` value. A torn last line of an earlier process is cut off.

    Lines are with the operating system when `append` or `extend` returns, so that a kill loses none of them. Raises
    `RunFolderError` where the last line was changed or belongs to another plan, `UserError` for a failed write.

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
        with writing(path):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
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
        """Write records, plain or encoded, in batches of about 256 KiB; ``places`` gets where each begins."""
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
        with writing(self.path):
            os.fsync(self._fd)

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
        try:  # the system takes lines of a deleted file without a word
            there = os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except OSError:
            there = False
        if not there:
            raise write_error(self.path, FileNotFoundError(errno.ENOENT, "deleted"))
        try:
            left = data
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:
            # Take back what was written of this batch: a later try must not follow half a line.
            os.ftruncate(self._fd, self._size)
            os.lseek(self._fd, self._size, os.SEEK_SET)
            raise write_error(self.path, error) from error
        self._size += len(data)
        self._seq, self._prev = seq, prev


def _resume(path: Path, fd: int, start: str) -> tuple[int, str, int]:
    """Next ``seq``, last hash and size of a file, once a torn last line is cut off."""
    size, line = 0, b""
    with path.open("rb") as file:
        for one in file:
            if one.endswith(b"\n"):
                size, line = size + len(one), one
    os.ftruncate(fd, size)
    os.lseek(fd, size, os.SEEK_SET)
    if not size:
        return 0, start, 0
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
    """Yield byte offset and record of each line; `RunFolderError` names a line that is not a record of this kind.

    A missing file has no records; a torn last line is left out. The chain is not checked.
    """
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
            yield offset, decode(line, decoder, f"{path}, line {number}", path)
            offset += len(line)


def decode(line: bytes, decoder: msgspec.json.Decoder[T], where: object, path: Path) -> T:
    """Return the record of one line; raise `RunFolderError` where it is not one."""
    try:
        return decoded(line, decoder)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise RunFolderError(
            f"{where} is not a JSON record. See what is wrong with: audit verify {path.parent}"
        ) from None


def records(path: Path, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    """Yield the records of a journal; see `scan`."""
    return (record for _, record in scan(path, decoder))


def read(path: Path) -> Iterator[Plain]:
    """Yield the records of a journal as plain data, without the chain fields."""
    for _, record in scan(path, PLAIN):
        yield {name: value for name, value in record.items() if name not in CHAIN_FIELDS}


class Event(msgspec.Struct, frozen=True):
    """One line of the register; ``journal`` holds the heads of the journals at an end."""

    run: str
    event: str
    time: str
    status: str = ""
    plan_sha256: str = ""
    run_sha256: str = ""
    report_sha256: str = ""
    journal: dict[str, Head] = {}


_EVENT = msgspec.json.Decoder(Event)


def register(root: Path, event: str, run_id: str, **fields: object) -> None:
    """Append one event ("started", "resumed", "ended", "reported") of a run to the register in ``root``."""
    record = {"run": run_id, "event": event, "time": datetime.now(UTC).isoformat(timespec="seconds"), **fields}
    with (
        hold(root / ".runs.lock", f"the register {root / REGISTER}", wait_s=10.0),
        Journal(root / REGISTER, genesis(REGISTER, "")) as journal,
    ):
        journal.append(record)


def events(root: Path) -> Iterator[Event]:
    """All events, oldest first; none if there is no register."""
    return records(root / REGISTER, _EVENT)


# -- lines of cases, prompts, answers, verdicts ------------------------------------------------------------------------


class VariantLine(msgspec.Struct, omit_defaults=True):
    """An original, or a variant with its check: ``valid`` is False where one says so, ``status`` where it is unsure."""

    id: str
    input: Input
    groups: Mapping[str, str] | UnsetType = UNSET
    order: int | UnsetType = UNSET
    edits: tuple[Edit, ...] | UnsetType = UNSET
    valid: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    check: str | UnsetType | None = UNSET
    status: Literal["unknown"] | UnsetType = UNSET

    def variant(self) -> Variant:
        """The variant without its check."""
        return Variant(id=self.id, input=self.input, groups=self.groups or {}, edits=self.edits or ())


class CaseLine(msgspec.Struct):
    """One line of ``cases.jsonl``."""

    id: str
    suite: str
    sampling: Sampling
    original: VariantLine
    variants: tuple[VariantLine, ...]
    label: str | None = None
    source: str | UnsetType = UNSET

    def case(self) -> Case:
        """The case of this line."""
        return Case(
            id=self.id,
            suite=self.suite,
            sampling=self.sampling,
            label=self.label,
            original=self.original.variant(),
            variants=tuple([one.variant() for one in self.variants]),
            source=self.source or None,
        )

    def checks(self) -> dict[str, Check]:
        """The checks of this line; variants that no check saw are left out."""
        return {
            one.id: Check(
                variant_id=one.id,
                check=one.check,
                status=one.status or ("valid" if one.valid else "invalid"),
                reason=one.reason or "",
            )
            for one in self.variants
            if one.check
        }


class PromptLine(msgspec.Struct, omit_defaults=True):
    """One line of ``prompts.jsonl``: what is asked for one variant in one format."""

    variant_id: str
    format: str
    prompt_sha256: str
    input: str | UnsetType = UNSET
    messages: tuple[Message, ...] | UnsetType = UNSET

    def prompt(self) -> Prompt:
        """The prompt of this line."""
        return Prompt(
            format=self.format,
            sha256=self.prompt_sha256,
            text=None if self.input is UNSET else self.input,
            messages=None if self.messages is UNSET else self.messages,
        )


CASE = msgspec.json.Decoder(CaseLine)
PROMPT = msgspec.json.Decoder(PromptLine)
RESPONSE = msgspec.json.Decoder(Response)
VERDICT = msgspec.json.Decoder(Verdict)


_encoder = msgspec.json.Encoder()


def encode(value: object) -> bytes:
    """Return ``value`` as JSON in UTF-8; two surrogates of one character become it, lines with one alone are ASCII."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        whole = json.loads(json.dumps(msgspec.to_builtins(value)))
    try:
        return _encoder.encode(whole)
    except UnicodeEncodeError:
        return json.dumps(whole, separators=(",", ":")).encode()


def case_line(case: Case, checks: Mapping[str, Check]) -> bytes:
    """One line of ``cases.jsonl``."""
    original = VariantLine(case.original.id, case.original.input, case.original.groups)
    variants = tuple([_variant(one, checks.get(one.id)) for one in case.variants])
    source = UNSET if case.source is None else case.source
    return encode(CaseLine(case.id, case.suite, case.sampling, original, variants, case.label, source))


def _variant(one: Variant, check: Check | None) -> VariantLine:
    facts = one.id, one.input, one.groups, one.order, one.edits
    if check is None:
        return VariantLine(*facts, True, "no validity check was run", None)
    status: Literal["unknown"] | UnsetType = "unknown" if check.status == "unknown" else UNSET
    return VariantLine(*facts, check.status != "invalid", check.reason, check.check, status)


def prompt_line(variant_id: str, prompt: Prompt) -> bytes:
    """One line of ``prompts.jsonl``."""
    asked = {"messages": prompt.messages or ()} if prompt.text is None else {"input": prompt.text}
    return encode(PromptLine(variant_id, prompt.format, prompt.sha256, **asked))


def response_line(response: Response) -> bytes:
    """One line of ``responses.jsonl``: of ``output`` and ``error`` one is null."""
    numbers = (response.latency_s, response.cost_usd or 0, *(response.scores or {}).values())
    return _finite(response, *numbers)


def verdict_line(verdict: Verdict) -> bytes:
    """One line of ``verdicts.jsonl``."""
    return _finite(verdict, verdict.distance or 0)


def _finite(value: Response | Verdict, *numbers: float) -> bytes:
    if not all(map(isfinite, numbers)):
        raise ValueError(f"a number that is not finite cannot be written: {value!r}")
    return encode(value)


# -- lines by the digests of what they are about -------------------------------------------------------------


SMALLEST = 1 << 10  # slots; their number is a power of 2


def short(content: str | bytes) -> int:
    """Return 8 bytes of a digest as a number; of a million texts two share one with probability 3e-8."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def pair_number(pair: tuple[str, int]) -> int:
    """Return one number for a (prompt sha256, replicate) pair."""
    return short("{}\n{}".format(*pair))


class Index:
    """Map unsigned 64-bit numbers to such numbers, of which a key may have several.

    A hash table in two arrays, at most two thirds full. Key 0 marks free slots and is taken for key 1.

    >>> index = Index()
    >>> index.add(7, 5)
    >>> index.get(7), index.get(8), index.claim(7, 9), index.claim(8, 9)
    ([5], [], 5, None)
    """

    __slots__ = ("_keys", "_size", "_values")

    def __init__(self) -> None:
        free = bytes(8 * SMALLEST)
        self._keys, self._values, self._size = array("Q", free), array("Q", free), 0

    def add(self, key: int, value: int) -> None:
        """Put in one more value of ``key``."""
        if 3 * self._size >= 2 * (len(self._keys) - 1):
            self._grow()
        keys, mask = self._keys, len(self._keys) - 1
        key = key or 1
        slot = key & mask
        while keys[slot]:
            slot = (slot + 1) & mask
        keys[slot], self._values[slot] = key, value
        self._size += 1

    def get(self, key: int) -> list[int]:
        """Return the values of ``key``, sorted."""
        keys, mask = self._keys, len(self._keys) - 1
        key = key or 1
        slot, values = key & mask, []
        while other := keys[slot]:
            if other == key:
                values.append(self._values[slot])
            slot = (slot + 1) & mask
        return sorted(values) if len(values) > 1 else values

    def claim(self, key: int, value: int = 0) -> int | None:
        """Return the least value that ``key`` has already; None where it had none, and has ``value`` now."""
        if values := self.get(key):
            return values[0]
        self.add(key, value)
        return None

    def __contains__(self, key: int) -> bool:
        return bool(self.get(key))

    def __len__(self) -> int:
        return self._size

    def _grow(self) -> None:
        old = zip(self._keys, self._values, strict=True)
        free = bytes(16 * len(self._keys))
        self._keys, self._values, self._size = array("Q", free), array("Q", free), 0
        for key, value in old:
            if key:
                self.add(key, value)


# -- whole files in one step, locks, errors that say where -------------------------------------------------------------


def write_error(path: Path, error: OSError) -> UserError:
    """Return the user's view of a failed write."""
    if error.errno in _FULL:
        return UserError(
            f"cannot write {path}: the disk (or the quota) is full. What was written before is kept. "
            f"Free some space, then run: audit resume {path.parent}"
        )
    if error.errno == errno.ENOENT:
        return UserError(f"cannot write {path}: it or its folder was deleted or moved. Nothing more is asked.")
    return UserError(f"cannot write {path}: {error.strerror or error}. Check the folder's permissions.")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Give the user's view of a write that fails."""
    try:
        yield
    except OSError as error:
        raise write_error(path, error) from error


def read_error(path: Path, error: OSError) -> RunFolderError:
    """Return the user's view of a failed read."""
    return RunFolderError(f"cannot read {path}: {error.strerror or error}")


def hold(path: Path, what: str, *, wait_s: float = 0.0) -> Lock:
    """Hold a lock file until the process ends, however it ends; the file itself may stay.

    Raises `RunFolderError`, about ``what`` it guards, where another process holds it for longer than ``wait_s``.
    """
    lock = filelock.FileLock(path, timeout=wait_s, thread_local=False)
    with writing(path):
        try:
            lock.acquire(poll_interval=0.02)
        except filelock.Timeout:
            raise RunFolderError(
                f"{what} is being written by another process. Wait until it ends, or stop it, then try again"
            ) from None
    return lock


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write plain data as a JSON file in one step; raise `ValueError` where a number is NaN or infinite."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    write_bytes(path, text.encode("utf-8", "backslashreplace") + b"\n")  # JSON escapes a lone surrogate in the same way


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one step: readers see the old file or the new one, never half."""
    beside = path.with_name(path.name + ".new")
    with writing(path):
        with beside.open("wb") as file:
            file.write(scrub_bytes(data))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)


def new_folder(root: Path, name: str) -> Path:
    """Make the folder ``name`` under ``root``, with a number behind it where there is one of that name."""
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        for n in itertools.count(1):
            path = root / (name if n == 1 else f"{name}-{n}")
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                break
    return path


def sync_folder(path: Path) -> None:
    """Wait until renames in a folder are on the disk, where the system can."""
    if os.name != "posix":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_texts(path: Path, texts: Iterable[SourceText]) -> None:
    """Write texts as JSON lines that a plan can name as its data, in one step."""
    rows = ({name: value for name, value in asdict(s).items() if value is not None} for s in texts)
    write_bytes(path, "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows).encode())


def read_texts(path: Path) -> list[SourceText]:
    """Return the texts that `write_texts` wrote."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [msgspec.convert(json.loads(line), SourceText) for line in lines]


def read_json(path: Path, *, versioned: bool = False) -> dict[str, Any]:
    """Read a JSON object; raises `RunFolderError` if there is none.

    With ``versioned`` it must be of a format that this version knows.
    """
    try:
        value = from_json(path.read_bytes())
    except OSError as error:
        raise read_error(path, error) from error
    except ValueError as error:
        raise RunFolderError(f"{path} is not JSON ({error}). Was it changed by hand?") from error
    if not isinstance(value, dict):
        raise RunFolderError(f"{path} does not hold a JSON object. Was it changed by hand?")
    if versioned:
        _check_format(path, value)
    return value


def _check_format(path: Path, record: Mapping[str, object]) -> None:
    version = record.get("format_version")
    if type(version) is not int:
        raise RunFolderError(f"{path}: field format_version is missing or not a number; is this a run folder?")
    if version > FORMAT_VERSION:
        writer = record.get("tool_version", "unknown")
        raise RunFolderError(
            f"{path} has run format {version}, written by version {writer} of this tool; this is version "
            f"{__version__}, which reads up to format {FORMAT_VERSION}. "
            f"Install version {writer} or newer: pip install --upgrade llm-bias-auditor"
        )
