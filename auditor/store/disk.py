"""The files of a run folder: lines of journals as bytes, whole files in one step, locks, errors that say where."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import filelock
import msgspec
from msgspec import UNSET, UnsetType

from auditor._version import __version__
from auditor.core.errors import RunFolderError, UserError
from auditor.core.reading import from_json
from auditor.core.shown import scrub_bytes
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
)

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

Lock = filelock.BaseFileLock
_encoder = msgspec.json.Encoder()


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


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raises `RunFolderError` if there is none."""
    try:
        value = from_json(path.read_bytes())
    except OSError as error:
        raise read_error(path, error) from error
    except ValueError as error:
        raise RunFolderError(f"{path} is not JSON ({error}). Was it changed by hand?") from error
    if not isinstance(value, dict):
        raise RunFolderError(f"{path} does not hold a JSON object. Was it changed by hand?")
    return value


def check_format(path: Path, record: Mapping[str, object]) -> None:
    """Raise `RunFolderError` if ``record`` is of a format that this version does not know."""
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
