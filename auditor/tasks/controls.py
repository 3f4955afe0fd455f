"""Control texts of a task: pairs that a model which can do the task answers differently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from auditor.core import userfile
from auditor.core.decoded import from_json
from auditor.core.errors import DataFileError

_LARGEST = 1_000_000  # bytes; every text is asked of every model
_FIELDS = ("text", "changed")
_HELP = 'One JSON object a line: {"text": "…", "changed": "…"}, two texts that need different answers.'


def read(path: Path, kept: Callable[[str], int] = len) -> tuple[tuple[str, str], ...]:
    """Read a file of control texts.

    Parameters
    ----------
    path : Path
        JSON lines; each an object with the fields ``text`` and ``changed``.
    kept : callable
        How many characters of a text a prompt keeps; texts that differ only after them are an error.

    Raises
    ------
    DataFileError
        The file is missing, empty, too large or not UTF-8; a line is no such object; a text is blank; the two
        texts of a line are equal. The message names file, line and field.

    Examples
    --------
    >>> from auditor.core import data
    >>> len(read(data.path("embedded", "controls", "sentiment.jsonl")))
    8
    """
    pairs = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip():
            pairs.append(_pair(line, f"{path}, line {number}", kept))
    if not pairs:
        raise DataFileError(f"{path}: there are no control texts in this file. {_HELP}")
    return tuple(pairs)


def _text(path: Path) -> str:
    try:
        return userfile.text(path, largest=_LARGEST)
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8.") from None
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot read the control texts ({error.strerror}). Correct the field `controls` of the task "
            "file, or take it out; the path is relative to the task file."
        ) from None


def _pair(line: str, where: str, kept: Callable[[str], int]) -> tuple[str, str]:
    try:
        row = from_json(line)
    except ValueError as error:
        raise DataFileError(f"{where}: no JSON ({error}). {_HELP}") from None
    if not isinstance(row, dict):
        raise DataFileError(f"{where}: not an object. {_HELP}")
    for name in sorted(set(row) - set(_FIELDS)):
        raise DataFileError(f"{where}: field {name}: no such field. {_HELP}")
    texts = []
    for name in _FIELDS:
        text = row.get(name)
        if not isinstance(text, str) or not text.strip():
            what = "is missing" if name not in row else "is not a text, or blank"
            raise DataFileError(f"{where}: field {name}: {what}. {_HELP}")
        texts.append(text)
    first, second = texts
    if first == second:
        raise DataFileError(f"{where}: both texts are equal, so no answer can tell them apart. {_HELP}")
    if first[: kept(first)] == second[: kept(second)]:
        raise DataFileError(f"{where}: the texts differ only in what the task's `truncation` cuts off. {_HELP}")
    return first, second
