"""Files that a user names, read in one way everywhere: regular files only, up to a size."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from gzip import GzipFile
from pathlib import Path
from typing import IO, Any

from auditor.core.errors import DataFileError

LARGEST = 1 << 30  # bytes of data; every copy of them takes as much memory again
SETTINGS = 4_000_000  # bytes of what a person writes: plans, waivers, schemas, dictionaries

_KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))
_CHUNK = 1 << 20


def content(path: Path | str, *, largest: int = LARGEST) -> bytes:
    """The bytes of a file.

    Pipes, devices and sockets are a `DataFileError` before they are opened: they may wait or go on for ever, and cannot
    be read again on resume. So is a file of more than ``largest`` bytes. What is missing or a folder raises `OSError`.
    """
    return b"".join(_chunks(path, largest))


def text(path: Path | str, *, largest: int = SETTINGS) -> str:
    """The text of a file in UTF-8; a byte order mark is dropped. See `content`; raises UnicodeDecodeError too."""
    return content(path, largest=largest).decode("utf-8-sig")


def sha256(path: Path | str) -> str:
    """The SHA-256 of a file of any size; see `content`."""
    total = hashlib.sha256()
    for chunk in _chunks(path, None):
        total.update(chunk)
    return total.hexdigest()


class Bounded(io.RawIOBase):
    """What a stream gives, up to ``largest`` bytes: a small packed file may unpack without end.

    When there is more, reading raises `DataFileError`, which calls the stream ``where``.
    """

    def __init__(self, raw: IO[bytes] | GzipFile, where: str, largest: int) -> None:
        self._raw, self._where, self._largest, self._left = raw, where, largest, largest

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer``; how many bytes that took."""
        piece = self._raw.read(min(len(buffer), self._left + 1))
        self._left -= len(piece)
        if self._left < 0:
            raise too_large(self._where, self._largest)
        buffer[: len(piece)] = piece
        return len(piece)


def too_large(where: Path | str, largest: int) -> DataFileError:
    """The error about a file of more than ``largest`` bytes, packed ones unpacked."""
    return DataFileError(f"{where}: larger than {largest:,} bytes, the most that is read of such a file")


def check(path: Path | str) -> None:
    """Refuse what is no regular file, before it is opened; raises as `content` does."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        kind = next((kind for test, kind in _KINDS if test(mode)), "no file")
        raise DataFileError(f"{path}: this is {kind}, not a regular file; write what it gives into a file first")


def _chunks(path: Path | str, largest: int | None) -> Iterator[bytes]:
    check(path)
    left = largest
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            if left is not None:
                left -= len(chunk)
                if left < 0:
                    raise too_large(path, largest or 0)
            yield chunk
