"""Cases, checks, prompts, answers and verdicts of a run, by id."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from auditor.errors import RunFolderError
from auditor.store import codec
from auditor.store.compact import Places
from auditor.store.journal import decode, in_parts, scan, scan_field
from auditor.types import Case, Check, Prompt, Response, Variant, Verdict

KEPT = 256  # cases kept in memory

T = TypeVar("T")


class Evidence:
    """Random access to a run folder for reports.

    Each file is passed over once, when something of it is first asked for; only offsets stay in memory
    (16 bytes for each id), and each answer is read from the disk again. The folder must not be written meanwhile.

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
        return [
            prompt
            for _, prompt in self._records(
                "prompts.jsonl", self._prompts, "variant_id", variant_id, codec.prompt_value
            )
        ]

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
            for response in self._records(
                "responses.jsonl", self._responses, "prompt_sha256", sha256, codec.response_value
            ):
                for name in names:
                    found[response.model, name, response.replicate] = replace(
                        response, variant_id=variant_id, format=name
                    )
        return [found[key] for key in sorted(found)]

    def verdicts(self, variant_id: str) -> list[Verdict]:
        """The verdicts on this variant, one for each model and format."""
        return list(
            self._records("verdicts.jsonl", self._verdicts, "variant_id", variant_id, codec.verdict_value)
        )

    def close(self) -> None:
        """Close the files; they open again when needed."""
        _close(self._files)

    # -- inside -------------------------------------------------------------------------------------------

    @cached_property
    def _cases(self) -> Places:
        places = Places()
        for offset, record in scan(self.path / "cases.jsonl"):
            places.add(record["id"], offset)
            places.add(record["original"]["id"], offset)
            for variant in record["variants"]:
                places.add(variant["id"], offset)
        return places

    @cached_property
    def _prompts(self) -> Places:
        return self._index("prompts.jsonl", "variant_id")

    @cached_property
    def _responses(self) -> Places:
        return self._index("responses.jsonl", "prompt_sha256")

    @cached_property
    def _verdicts(self) -> Places:
        return self._index("verdicts.jsonl", "variant_id")

    def _index(self, name: str, field: str) -> Places:
        places = Places()
        for offset, value in scan_field(self.path / name, field):
            places.add(value, offset)
        return places

    def _found(self, key: str, what: str) -> tuple[Case, dict[str, Check]]:
        for offset in self._cases.get(key):
            case, checks = self._case_at(offset)
            held = {case.id} if what == "case" else {v.id for v in (case.original, *case.variants)}
            if key in held:
                return case, checks
        raise RunFolderError(
            f"{self.path} holds no {what} {key!r}. See what it holds with: audit report {self.path}"
        )

    def _case_at(self, offset: int) -> tuple[Case, dict[str, Check]]:
        if offset in self._kept:
            self._kept.move_to_end(offset)
            return self._kept[offset]
        record = self._line("cases.jsonl", offset)
        self._kept[offset] = codec.case_value(record), codec.check_values(record)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[offset]

    def _records(
        self, name: str, places: Places, field: str, key: str, make: Callable[[dict[str, Any]], T]
    ) -> Iterable[T]:
        for offset in places.get(key):
            record = self._line(name, offset)
            if record[field] == key:
                yield make(record)

    def _line(self, name: str, offset: int) -> dict[str, Any]:
        if in_parts(self.path / name):
            from auditor.store import parquet

            return parquet.record_at(self.path / name, offset)
        if name not in self._files:
            try:
                self._files[name] = (self.path / name).open("rb")
            except OSError as error:
                raise RunFolderError(f"cannot read {self.path / name}: {error.strerror or error}") from error
        self._files[name].seek(offset)
        return decode(self._files[name].readline(), self.path / name)


def _close(files: dict[str, BinaryIO]) -> None:
    for file in files.values():
        file.close()
    files.clear()
