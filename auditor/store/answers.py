"""The answers that a run has on disk, by question: for clients, which ask nothing twice."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import BinaryIO

from auditor.core.errors import RunFolderError
from auditor.core.types import Response
from auditor.store.compact import IntMap, pair_number
from auditor.store.journal import decode
from auditor.store.records import RESPONSE


class Answers:
    """The answers of one model in a journal; 16 bytes a slot in memory, and each is read from the disk again.

    Parameters
    ----------
    path : Path
        The journal of answers.
    model : str
        Whose answers.
    """

    def __init__(self, path: Path, model: str) -> None:
        self._path, self._model = path, model
        self._places = IntMap()
        self._files: list[BinaryIO] = []
        weakref.finalize(self, _close, self._files)

    def note(self, response: Response, offset: int) -> None:
        """Say where the line of an answer begins; a later one takes the place of an earlier one."""
        self._places[pair_number((response.prompt_sha256, response.replicate))] = offset

    def get(self, key: tuple[str, int], default: Response | None = None) -> Response | None:
        """The answer to (prompt sha256, replicate)."""
        offset = self._places.get(pair_number(key))
        if offset is None:
            return default
        found = self._response(offset)
        same = (found.prompt_sha256, found.replicate, found.model) == (*key, self._model)
        return found if same else default

    def _response(self, offset: int) -> Response:
        if not self._files:
            try:
                self._files.append(self._path.open("rb"))
            except OSError as error:
                raise RunFolderError(f"cannot read {self._path}: {error.strerror or error}") from error
        self._files[0].seek(offset)
        return decode(self._files[0].readline(), RESPONSE, self._path)

    def __contains__(self, key: tuple[str, int]) -> bool:
        return pair_number(key) in self._places

    def __len__(self) -> int:
        return len(self._places)


def _close(files: list[BinaryIO]) -> None:
    for file in files:
        file.close()
