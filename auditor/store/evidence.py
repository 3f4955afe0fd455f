"""Cases, checks, prompts, answers and verdicts of a run, by id."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TypeVar

from msgspec.json import Decoder

from auditor.core.errors import RunFolderError
from auditor.core.types import Case, Check, Prompt, Response, Variant, Verdict
from auditor.store.compact import Places
from auditor.store.journal import decode, scan, scan_field
from auditor.store.records import CASE, PROMPT, RESPONSE, VERDICT, PromptLine

KEPT = 256  # cases kept in memory
T = TypeVar("T")
OfVariant = TypeVar("OfVariant", PromptLine, Verdict)
JUDGE = "judge."  # how the ids of what a judge of texts was asked begin


class Evidence:
    """Random access to a run folder for reports.

    Each file is passed over once, when something of it is first asked for; only offsets stay in memory
    (16 bytes for each case and answer), and each answer is read from the disk again. The folder must not be written
    meanwhile.

    Parameters
    ----------
    path : Path
        The run folder.

    Raises
    ------
    RunFolderError
        A method was asked for an id that the folder does not hold, or a line cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[str, BinaryIO] = {}
        self._kept: OrderedDict[int, tuple[Case, dict[str, Check]]] = OrderedDict()
        weakref.finalize(self, _close, self._files)  # nobody has to close what a result hands out

    def cases(self) -> Iterator[tuple[Case, dict[str, Check]]]:
        """Each case with the checks of its variants, in the order written."""
        for _, line in scan(self.path / "cases.jsonl", CASE):
            yield line.case(), line.checks()

    def case(self, case_id: str) -> Case:
        """The case with this id."""
        return self._found(case_id, "case")[0]

    def case_of(self, variant_id: str) -> Case:
        """The case that holds this variant, or whose original it is."""
        return self._found(variant_id, "variant")[0]

    def variant(self, variant_id: str) -> Variant:
        """The variant (or original) with this id."""
        case = self.case_of(variant_id)
        return next(v for v in (case.original, *case.variants) if v.id == variant_id)

    def check(self, variant_id: str) -> Check | None:
        """What the validity check said; None for originals and where none was run."""
        return self._found(variant_id, "variant")[1].get(variant_id)

    def prompts(self, variant_id: str) -> list[Prompt]:
        """What was asked for this variant: one prompt for each format. Empty if nothing was asked."""
        found = self._run("prompts.jsonl", self._prompts, _start(variant_id), PROMPT)
        return [line.prompt() for line in found if line.variant_id == variant_id]

    def responses(self, variant_id: str) -> list[Response]:
        """The answers to this variant's prompts, by model, format and replicate.

        Variants with equal prompts share their answers; of two for one question the later one counts. Each
        answer names the format and the variant that it is given for here.
        """
        from dataclasses import replace

        formats: dict[str, list[str]] = {}
        for prompt in self.prompts(variant_id):
            formats.setdefault(prompt.sha256, []).append(prompt.format)
        found: dict[tuple[str, str, int], Response] = {}
        for sha256, names in formats.items():
            for offset in self._responses.get(sha256):
                response = self._line("responses.jsonl", offset, RESPONSE)
                if response.prompt_sha256 != sha256:
                    continue
                for name in names:
                    found[response.model, name, response.replicate] = replace(
                        response, variant_id=variant_id, format=name
                    )
        return [found[key] for key in sorted(found)]

    def judged(self, about: str) -> dict[str, Prompt]:
        """What a judge of texts was asked about ``about``, by id, in the order of the questions."""
        found = self._run("prompts.jsonl", self._prompts, JUDGE + about, PROMPT)
        return {line.variant_id: line.prompt() for line in found}

    def verdicts(self, variant_id: str) -> list[Verdict]:
        """The verdicts on this variant, one for each model and format."""
        found = self._run("verdicts.jsonl", self._verdicts, _start(variant_id), VERDICT)
        return [verdict for verdict in found if verdict.variant_id == variant_id]

    def close(self) -> None:
        """Close the files; they open again when needed."""
        _close(self._files)

    # -- inside -------------------------------------------------------------------------------------------

    @cached_property
    def _cases(self) -> Places:
        # A case's own id comes before those of its variants.
        return self._index("cases.jsonl", "id")

    @cached_property
    def _variants(self) -> Places:
        places = Places()
        for offset, line in scan(self.path / "cases.jsonl", CASE):
            for variant in (line.original, *line.variants):
                places.add(variant.id, offset)
        return places

    @cached_property
    def _prompts(self) -> Places:
        return self._runs("prompts.jsonl")

    @cached_property
    def _responses(self) -> Places:
        return self._index("responses.jsonl", "prompt_sha256")

    @cached_property
    def _verdicts(self) -> Places:
        return self._runs("verdicts.jsonl")

    def _index(self, name: str, field: str) -> Places:
        places = Places()
        for offset, value in scan_field(self.path / name, field):
            places.add(value, offset)
        return places

    def _runs(self, name: str) -> Places:
        """Where runs of records begin whose variant ids begin alike."""
        places, last = Places(), None
        for offset, variant_id in scan_field(self.path / name, "variant_id"):
            start = _start(variant_id)
            if start != last:
                places.add(start, offset)
                last = start
        return places

    def _run(self, name: str, places: Places, start: str, decoder: Decoder[OfVariant]) -> Iterator[OfVariant]:
        """The records whose variant ids begin so, in the order written."""
        for offset in places.get(start):
            for record in self._lines(name, offset, decoder):
                if _start(record.variant_id) != start:
                    break
                yield record

    def _offsets(self, key: str, what: str) -> Iterator[int]:
        """Where a case may be: by what the ids of its variants begin with, or else by all ids that there are."""
        start = key
        while start:
            yield from self._cases.get(start)
            start = "" if what == "case" else start.rpartition(".")[0]
        if what == "variant":
            yield from self._variants.get(key)

    def _found(self, key: str, what: str) -> tuple[Case, dict[str, Check]]:
        for offset in self._offsets(key, what):
            case, checks = self._case_at(offset)
            held = {case.id} if what == "case" else {v.id for v in (case.original, *case.variants)}
            if key in held:
                return case, checks
        raise RunFolderError(f"{self.path} holds no {what} {key!r}. See what it holds with: audit report {self.path}")

    def _case_at(self, offset: int) -> tuple[Case, dict[str, Check]]:
        if offset in self._kept:
            self._kept.move_to_end(offset)
            return self._kept[offset]
        line = self._line("cases.jsonl", offset, CASE)
        self._kept[offset] = line.case(), line.checks()
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[offset]

    def _line(self, name: str, offset: int, decoder: Decoder[T]) -> T:
        return next(self._lines(name, offset, decoder))

    def _lines(self, name: str, offset: int, decoder: Decoder[T]) -> Iterator[T]:
        """The records from a place on."""
        path = self.path / name
        if name not in self._files:
            try:
                self._files[name] = path.open("rb")
            except OSError as error:
                raise RunFolderError(f"cannot read {path}: {error.strerror or error}") from error
        while True:
            self._files[name].seek(offset)
            line = self._files[name].readline()
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            yield decode(line, decoder, path)


def _start(variant_id: str) -> str:
    """What the ids of all variants of a case begin with, where they are made of the case's id."""
    return variant_id.rpartition(".")[0] or variant_id


def _close(files: dict[str, BinaryIO]) -> None:
    for file in files.values():
        file.close()
    files.clear()
