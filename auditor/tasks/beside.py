"""What lies beside a task file: control texts, and texts that others are judged against."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from auditor.core import reading
from auditor.core.errors import DataFileError
from auditor.core.reading import from_json
from auditor.core.types import SourceText
from auditor.tasks import readers

_LARGEST = 1_000_000  # bytes; every text is asked of every model
_FIELDS = ("text", "changed")
_HELP = 'One JSON object a line: {"text": "…", "changed": "…"}, two texts that need different answers.'


def control_texts(path: Path, kept: Callable[[str], int] = len) -> tuple[tuple[str, str], ...]:
    """Read a file of control texts: pairs that a model which can do the task answers differently.

    JSON lines; each an object with the fields ``text`` and ``changed``. ``kept`` says how many characters of a text a
    prompt keeps; texts that differ only after them are an error. `DataFileError` names file, line and field.

    Examples
    --------
    >>> from auditor.core import reading
    >>> len(control_texts(reading.shipped("embedded", "controls", "sentiment.jsonl")))
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
        return reading.text(path, largest=_LARGEST)
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


def crossed(seeds: Sequence[SourceText], against: Path | None, limit: int | None = None) -> list[SourceText]:
    """Put each text of the file ``against`` behind each of ``seeds``: a résumé and a post make one text.

    First come, text by text, the pairs that the file names in ``labels``, then all others; at most ``limit``. Without a
    file the texts stay as they are. Its JSON lines have ``id``, ``text``, and the gold label of a pair: ``labels`` by
    the id of the seed, else ``label``.
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
