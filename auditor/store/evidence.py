"""Cases, checks, prompts, answers and verdicts of a run: taken by a store, and read by id."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from msgspec.json import Decoder

from auditor.core.errors import RunFolderError
from auditor.core.types import Case, Check, Prompt, Response, Variant, Verdict
from auditor.store.compact import IntMap, Places, pair_number
from auditor.store.disk import CASE, PROMPT, RESPONSE, VERDICT, PromptLine, read_error
from auditor.store.journal import decode, scan, scan_field

KEPT = 256  # cases kept in memory
T = TypeVar("T")
OfVariant = TypeVar("OfVariant", PromptLine, Verdict)
ToWrite = tuple[Case, Mapping[str, Check], bytes | None]  # a case, its checks, and its line where that was made before
JUDGE = "judge."  # how the ids of what a judge of texts was asked begin


class _Lines:
    """The lines of a journal by their offsets; the file opens when needed, and nobody has to close it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: list[BinaryIO] = []
        weakref.finalize(self, _close, self._opened)

    def read(self, offset: int, decoder: Decoder[T]) -> Iterator[T]:
        """The records from a place on."""
        while True:
            if not self._opened:
                try:
                    self._opened.append(self.path.open("rb"))
                except OSError as error:
                    raise read_error(self.path, error) from error
            self._opened[0].seek(offset)
            line = self._opened[0].readline()
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            yield decode(line, decoder, self.path)

    def close(self) -> None:
        _close(self._opened)


def _close(opened: list[BinaryIO]) -> None:
    while opened:
        opened.pop().close()


class Answers:
    """The answers of one model in a journal, by question, so that clients ask nothing twice.

    Takes 16 bytes a slot in memory; each answer is read from the disk again.
    """

    def __init__(self, path: Path, model: str) -> None:
        self._lines, self._model = _Lines(path), model
        self._places = IntMap()

    def note(self, response: Response, offset: int) -> None:
        """Say where the line of an answer begins; a later one takes the place of an earlier one."""
        self._places[pair_number((response.prompt_sha256, response.replicate))] = offset

    def get(self, key: tuple[str, int], default: Response | None = None) -> Response | None:
        """The answer to (prompt sha256, replicate)."""
        offset = self._places.get(pair_number(key))
        if offset is None:
            return default
        response = next(self._lines.read(offset, RESPONSE))
        same = (response.prompt_sha256, response.replicate, response.model) == (*key, self._model)
        return response if same else default

    def __contains__(self, key: tuple[str, int]) -> bool:
        return pair_number(key) in self._places

    def __len__(self) -> int:
        return len(self._places)


class Evidence:
    """Random access to the records of a run, for reports.

    Each file is passed over once, when something of it is first asked for; only offsets stay in memory
    (16 bytes for each case and answer), and each answer is read from the disk again. The folder must not be written
    meanwhile.

    Raises
    ------
    RunFolderError
        A method was asked for an id that the folder does not hold, or a line cannot be read.
    """

    _files: Sequence[_Lines] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        names = ("cases", "prompts", "responses", "verdicts")
        self._case_lines, self._prompt_lines, self._response_lines, self._verdict_lines = self._files = [
            _Lines(path / f"{name}.jsonl") for name in names
        ]
        self._kept: OrderedDict[int, tuple[Case, dict[str, Check]]] = OrderedDict()

    def cases(self) -> Iterator[tuple[Case, Mapping[str, Check]]]:
        """Each case with the checks of its variants, in the order written."""
        for _, line in scan(self._case_lines.path, CASE):
            yield line.case(), line.checks()

    def case(self, case_id: str) -> Case:
        """The case with this id."""
        return self._look_up(case_id, "case")[0]

    def case_of(self, variant_id: str) -> Case:
        """The case that holds this variant, or whose original it is."""
        return self._look_up(variant_id, "variant")[0]

    def variant(self, variant_id: str) -> Variant:
        """The variant (or original) with this id."""
        case = self.case_of(variant_id)
        return next(v for v in (case.original, *case.variants) if v.id == variant_id)

    def check(self, variant_id: str) -> Check | None:
        """What the validity check said; None for originals and where none was run."""
        return self._look_up(variant_id, "variant")[1].get(variant_id)

    def prompts(self, variant_id: str) -> list[Prompt]:
        """What was asked for this variant: one prompt for each format. Empty if nothing was asked."""
        lines = self._run(self._prompt_lines, self._prompts, _start(variant_id), PROMPT)
        return [line.prompt() for line in lines if line.variant_id == variant_id]

    def responses(self, variant_id: str) -> list[Response]:
        """The answers to this variant's prompts, by model, format and replicate.

        Variants with equal prompts share their answers; of two for one question the later one counts. Each
        answer names the format and the variant that it is given for here.
        """
        formats: dict[str, list[str]] = {}
        for prompt in self.prompts(variant_id):
            formats.setdefault(prompt.sha256, []).append(prompt.format)
        answers = {
            (response.model, name, response.replicate): replace(response, variant_id=variant_id, format=name)
            for sha256, names in formats.items()
            for response in self._answers_to(sha256)
            for name in names
        }
        return [answers[key] for key in sorted(answers)]

    def judged(self, about: str) -> dict[str, Prompt]:
        """What a judge of texts was asked about ``about``, by id, in the order of the questions."""
        lines = self._run(self._prompt_lines, self._prompts, JUDGE + about, PROMPT)
        return {line.variant_id: line.prompt() for line in lines}

    def verdicts(self, variant_id: str) -> list[Verdict]:
        """The verdicts on this variant, one for each model and format."""
        verdicts = self._run(self._verdict_lines, self._verdicts, _start(variant_id), VERDICT)
        return [verdict for verdict in verdicts if verdict.variant_id == variant_id]

    def close(self) -> None:
        """Close the files; they open again when needed."""
        for file in self._files:
            file.close()

    # -- inside -------------------------------------------------------------------------------------------

    @cached_property
    def _cases(self) -> Places:
        # A case's own id comes before those of its variants.
        return self._index(self._case_lines, "id")

    @cached_property
    def _variants(self) -> Places:
        places = Places()
        for offset, line in scan(self._case_lines.path, CASE):
            for variant in (line.original, *line.variants):
                places.add(variant.id, offset)
        return places

    @cached_property
    def _prompts(self) -> Places:
        return self._runs(self._prompt_lines)

    @cached_property
    def _responses(self) -> Places:
        return self._index(self._response_lines, "prompt_sha256")

    @cached_property
    def _verdicts(self) -> Places:
        return self._runs(self._verdict_lines)

    def _answers_to(self, sha256: str) -> Iterator[Response]:
        responses = (next(self._response_lines.read(o, RESPONSE)) for o in self._responses.get(sha256))
        return (response for response in responses if response.prompt_sha256 == sha256)

    def _index(self, lines: _Lines, field: str) -> Places:
        places = Places()
        for offset, value in scan_field(lines.path, field):
            places.add(value, offset)
        return places

    def _runs(self, lines: _Lines) -> Places:
        """Where runs of records begin whose variant ids begin alike."""
        places, last = Places(), None
        for offset, variant_id in scan_field(lines.path, "variant_id"):
            start = _start(variant_id)
            if start != last:
                places.add(start, offset)
                last = start
        return places

    def _run(self, lines: _Lines, places: Places, start: str, decoder: Decoder[OfVariant]) -> Iterator[OfVariant]:
        """The records whose variant ids begin so, in the order written."""
        for offset in places.get(start):
            for record in lines.read(offset, decoder):
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

    def _look_up(self, key: str, what: str) -> tuple[Case, dict[str, Check]]:
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
        line = next(self._case_lines.read(offset, CASE))
        self._kept[offset] = line.case(), line.checks()
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[offset]


class MemoryEvidence(Evidence):
    """The same from what `auditor.store.evidence.MemoryFolder` keeps."""

    def __init__(
        self,
        cases: Mapping[str, tuple[Case, Mapping[str, Check]]],
        prompts: Mapping[str, list[Prompt]],
        responses: Mapping[str, Mapping[tuple[str, int], Response]],
        verdicts: Sequence[Verdict],
    ) -> None:
        self._by_id, self._asked, self._answered, self._judged = cases, prompts, responses, verdicts
        self._case_of = {v.id: case for case, _ in cases.values() for v in (case.original, *case.variants)}

    def cases(self) -> Iterator[tuple[Case, Mapping[str, Check]]]:
        """Each case with the checks of its variants, in the order added."""
        yield from self._by_id.values()

    def case(self, case_id: str) -> Case:
        """The case with this id."""
        return self._by_id[case_id][0]

    def case_of(self, variant_id: str) -> Case:
        """The case that holds this variant, or whose original it is."""
        return self._case_of[variant_id]

    def check(self, variant_id: str) -> Check | None:
        """What the validity check said; None for originals and where none was run."""
        return self._by_id[self._case_of[variant_id].id][1].get(variant_id)

    def prompts(self, variant_id: str) -> list[Prompt]:
        """What was asked for this variant."""
        return list(self._asked.get(variant_id, ()))

    def verdicts(self, variant_id: str) -> list[Verdict]:
        """The verdicts on this variant, one for each model and format."""
        return [v for v in self._judged if v.variant_id == variant_id]

    def _answers_to(self, sha256: str) -> Iterator[Response]:
        yield from self._answered.get(sha256, {}).values()


def _start(variant_id: str) -> str:
    """What the ids of all variants of a case begin with, where they are made of the case's id."""
    return variant_id.rpartition(".")[0] or variant_id


class RunStore:
    """Takes everything that a run asks, gets and concludes; this one keeps nothing of it.

    Attributes
    ----------
    path : Path or None
        The folder on disk, where there is one.
    plan : dict
        ``plan.json`` as plain data.
    plan_sha256 : str or None
        The digest of the plan, on which the journals' hash chains stand.
    """

    path: Path | None = None
    plan: dict[str, Any] = {}  # noqa: RUF012 - empty, and set anew by those that have one
    plan_sha256: str | None = None

    @property
    def id(self) -> str:
        """The run id, such as ``20261121-142233-1a2b3c``."""
        return "in-memory" if self.path is None else self.path.name

    def add_case(self, case: Case, checks: Mapping[str, Check]) -> bool:
        """Write one case with the checks of its variants (by variant id); False if it is there already."""
        return self.add_cases([(case, checks, None)]) == 1

    def add_cases(self, cases: Iterable[ToWrite]) -> int:
        """Write several cases; gives how many were not there yet."""
        return 0

    def add_prompt(self, variant_id: str, prompt: Prompt) -> bool:
        """Write what is asked for one variant in one format; False if it is there already."""
        return self.add_prompts([(variant_id, prompt)]) == 1

    def add_prompts(self, prompts: Iterable[tuple[str, Prompt]]) -> int:
        """Write several (variant id, prompt); gives how many were not there yet."""
        return 0

    def add_response(self, response: Response) -> None:
        """Write one answer. A later one for the same model, prompt and replicate takes its place."""
        self.add_responses((response,))

    def add_responses(self, responses: Sequence[Response]) -> None:
        """Write several answers."""

    def answers(self, model: str) -> Answers | None:
        """The answers of one model where they are found again as they came, so that they need not stay in memory."""
        return None

    def write_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Replace all verdicts."""

    def write_run(self, record: Mapping[str, object]) -> None:
        """Write the record of the run."""


class MemoryFolder(RunStore):
    """Keeps a run in memory, for `audit(..., write=False)` and for tests."""

    def __init__(self) -> None:
        self.cases: dict[str, tuple[Case, Mapping[str, Check]]] = {}
        self.prompts: dict[str, list[Prompt]] = {}
        self.responses: dict[str, dict[tuple[str, int], Response]] = {}
        self.verdicts: list[Verdict] = []

    def add_cases(self, cases: Iterable[ToWrite]) -> int:
        """Keep several cases; gives how many were not there yet."""
        before = len(self.cases)
        self.cases |= {case.id: (case, dict(checks)) for case, checks, _ in cases}
        return len(self.cases) - before

    def add_prompts(self, prompts: Iterable[tuple[str, Prompt]]) -> int:
        """Keep several (variant id, prompt); gives how many were not there yet."""
        new = 0
        for variant_id, prompt in prompts:
            known = self.prompts.setdefault(variant_id, [])
            if prompt not in known:
                known.append(prompt)
                new += 1
        return new

    def add_responses(self, responses: Sequence[Response]) -> None:
        """Keep several answers."""
        for response in responses:
            key = response.model, response.replicate
            self.responses.setdefault(response.prompt_sha256, {})[key] = response

    def write_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Replace all verdicts."""
        self.verdicts[:] = list(verdicts)

    def evidence(self) -> MemoryEvidence:
        """Access by id, for reports."""
        return MemoryEvidence(self.cases, self.prompts, self.responses, self.verdicts)
