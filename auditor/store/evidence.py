"""Read cases, checks, prompts, answers and verdicts of a run by id."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

import msgspec
from msgspec.json import Decoder

from auditor.core.errors import RunFolderError
from auditor.core.types import Case, Check, Prompt, Response, Variant, Verdict
from auditor.store.disk import CASE, PROMPT, RESPONSE, VERDICT, read_error
from auditor.store.journal import Index, decode, pair_number, scan, short

KEPT = 256  # cases kept in memory
T = TypeVar("T")
JUDGE = "judge."  # how the ids of what a judge of texts was asked begin


class Records(Generic[T]):
    """The records of a journal by a field, or by ``part`` of it where records that share this come in runs.

    The file is indexed in one pass when it is first searched. It opens when needed and closes with this object.
    """

    def __init__(self, path: Path, decoder: Decoder[T], field: str, part: Callable[[str], str] | None = None) -> None:
        self._path, self._decoder, self._field, self._part = path, decoder, field, part

    @cached_property
    def _file(self) -> BinaryIO:
        try:
            file = self._path.open("rb")
        except OSError as error:
            raise read_error(self._path, error) from error
        weakref.finalize(self, file.close)
        return file

    def at(self, offset: int) -> Iterator[T]:
        """Yield the records from a byte of the file on."""
        while True:
            self._file.seek(offset)
            line = self._file.readline()
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            yield decode(line, self._decoder, self._path, self._path)

    def find(self, key: str) -> Iterator[T]:
        """Yield the records of a key in the order written."""
        for offset in self._index.get(short(key)):
            for record in self.at(offset):
                if self._key(record) != key:
                    break
                yield record
                if self._part is None:
                    break

    @cached_property
    def _index(self) -> Index:
        """Where records, or runs of them, begin, by digests of their keys."""
        only = Decoder(msgspec.defstruct("Only", [(self._field, str)]))
        index, last = Index(), None
        for offset, line in scan(self._path, only):
            key = self._key(line)
            if self._part is None or key != last:
                index.add(short(key), offset)
            last = key
        return index

    def _key(self, record: object) -> str:
        value: str = getattr(record, self._field)
        return value if self._part is None else self._part(value)


class Answers:
    """The answers of one model in a journal, by question; only offsets stay in memory."""

    def __init__(self, path: Path, model: str) -> None:
        self._records, self._model = Records(path, RESPONSE, "prompt_sha256"), model
        self._index = Index()

    def note(self, response: Response, offset: int) -> None:
        """Say where the line of an answer begins; a later one takes the place of an earlier one."""
        self._index.add(pair_number((response.prompt_sha256, response.replicate)), offset)

    def get(self, key: tuple[str, int]) -> Response | None:
        """Return the answer to (prompt sha256, replicate), if there is one."""
        offsets = self._index.get(pair_number(key))
        if not offsets:
            return None
        response = next(self._records.at(offsets[-1]))
        same = (response.prompt_sha256, response.replicate, response.model) == (*key, self._model)
        return response if same else None

    def __contains__(self, key: tuple[str, int]) -> bool:
        return pair_number(key) in self._index

    def __len__(self) -> int:
        return len(self._index)


class Evidence:
    """Random access to the records of a run, for reports; only offsets stay in memory.

    The folder must not be written meanwhile; ``owner`` is kept as long as this object. An unknown id raises
    `RunFolderError`.
    """

    def __init__(self, path: Path, owner: object = None) -> None:
        self.path, self._owner = path, owner
        self._cases = Records(path / "cases.jsonl", CASE, "id")
        self._prompts = Records(path / "prompts.jsonl", PROMPT, "variant_id", _start)
        self._responses = Records(path / "responses.jsonl", RESPONSE, "prompt_sha256")
        self._verdicts = Records(path / "verdicts.jsonl", VERDICT, "variant_id", _start)
        self._case = lru_cache(KEPT)(self._read_case)

    def cases(self) -> Iterator[tuple[Case, Mapping[str, Check]]]:
        """Each case with the checks of its variants, in the order written."""
        for _, line in scan(self.path / "cases.jsonl", CASE):
            yield line.case(), line.checks()

    def case(self, case_id: str) -> Case:
        """The case with this id."""
        if (held := self._case(case_id)) is None:
            raise self._unknown("case", case_id)
        return held[0]

    def case_of(self, variant_id: str) -> Case:
        """The case that holds this variant, or whose original it is."""
        return self._holding(variant_id)[0]

    def variant(self, variant_id: str) -> Variant:
        """The variant (or original) with this id."""
        case = self.case_of(variant_id)
        return next(v for v in (case.original, *case.variants) if v.id == variant_id)

    def check(self, variant_id: str) -> Check | None:
        """What the validity check said; None for originals and where none was run."""
        return self._holding(variant_id)[1].get(variant_id)

    def prompts(self, variant_id: str) -> list[Prompt]:
        """What was asked for this variant: one prompt for each format. Empty if nothing was asked."""
        return [line.prompt() for line in self._prompts.find(_start(variant_id)) if line.variant_id == variant_id]

    def responses(self, variant_id: str) -> list[Response]:
        """Return the answers to this variant's prompts, by model, format and replicate; the later of two counts.

        Variants with equal prompts share answers; each names the variant and format that it is given for here.
        """
        formats: dict[str, list[str]] = {}
        for prompt in self.prompts(variant_id):
            formats.setdefault(prompt.sha256, []).append(prompt.format)
        answers = {
            (response.model, name, response.replicate): replace(response, variant_id=variant_id, format=name)
            for sha256, names in formats.items()
            for response in self._responses.find(sha256)
            for name in names
        }
        return [answers[key] for key in sorted(answers)]

    def judged(self, about: str) -> dict[str, Prompt]:
        """What a judge of texts was asked about ``about``, by id, in the order of the questions."""
        return {line.variant_id: line.prompt() for line in self._prompts.find(JUDGE + about)}

    def verdicts(self, variant_id: str) -> list[Verdict]:
        """The verdicts on this variant, one for each model and format."""
        return [verdict for verdict in self._verdicts.find(_start(variant_id)) if verdict.variant_id == variant_id]

    def _read_case(self, case_id: str) -> tuple[Case, dict[str, Check]] | None:
        line = next(self._cases.find(case_id), None)
        return None if line is None else (line.case(), line.checks())

    def _holding(self, variant_id: str) -> tuple[Case, Mapping[str, Check]]:
        """Return the case of a variant: by what its id begins with, or else by going through all cases."""
        start = variant_id
        while start:
            held = self._case(start)
            if held is not None and variant_id in _ids(held[0]):
                return held
            start = start.rpartition(".")[0]
        for case, checks in self.cases():
            if variant_id in _ids(case):
                return case, checks
        raise self._unknown("variant", variant_id)

    def _unknown(self, what: str, key: str) -> RunFolderError:
        return RunFolderError(f"{self.path} holds no {what} {key!r}. See what it holds with: audit report {self.path}")


def _ids(case: Case) -> set[str]:
    return {one.id for one in (case.original, *case.variants)}


def _start(variant_id: str) -> str:
    """What the ids of all variants of a case begin with, where they are made of the case's id."""
    return variant_id.rpartition(".")[0] or variant_id
