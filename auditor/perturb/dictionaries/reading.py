"""Reads text files."""

from __future__ import annotations

from pathlib import Path

from auditor.core import userfile
from auditor.core.errors import DataFileError


def read_text(path: Path) -> str:
    """Read a UTF-8 file; a byte order mark is dropped. Raises `DataFileError`."""
    try:
        content = userfile.content(path, largest=userfile.SETTINGS)
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot be read ({error.strerror}). Check the path, or list what there is: "
            "audit dictionary list"
        ) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataFileError(
            f"{path}, line {line}: not UTF-8 (byte {error.start}). Save the file as UTF-8, for example: "
            f"iconv -f latin1 -t utf-8 {path.name} > new.csv"
        ) from error
