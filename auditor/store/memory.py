"""A run folder that is not on disk, for `audit(..., write=False)` and for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from auditor.core.types import Case, Check, Prompt, Response, Variant, Verdict
from auditor.store.base import RunStore


class MemoryFolder(RunStore):
    """Keeps a run in memory."""

    def __init__(self) -> None:
        self.cases: dict[str, tuple[Case, Mapping[str, Check]]] = {}
        self.prompts: dict[str, list[Prompt]] = {}
        self.responses: dict[str, dict[tuple[str, int], Response]] = {}
        self.verdicts: list[Verdict] = []

    def add_cases(self, cases: Iterable[tuple[Case, Mapping[str, Check], bytes | None]]) -> int:
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
        self.verdicts = list(verdicts)

    def evidence(self) -> MemoryEvidence:
        """Access by id, for reports."""
        return MemoryEvidence(self)


class MemoryEvidence:
    """The methods of `auditor.store.evidence.Evidence`, from memory."""

    def __init__(self, folder: MemoryFolder) -> None:
        self._folder = folder
        self._case_of = {
            variant.id: case for case, _ in folder.cases.values() for variant in (case.original, *case.variants)
        }

    def cases(self) -> Iterator[tuple[Case, Mapping[str, Check]]]:
        """Each case with the checks of its variants, in the order added."""
        yield from self._folder.cases.values()

    def case(self, case_id: str) -> Case:
        """The case with this id."""
        return self._folder.cases[case_id][0]

    def case_of(self, variant_id: str) -> Case:
        """The case that holds this variant, or whose original it is."""
        return self._case_of[variant_id]

    def variant(self, variant_id: str) -> Variant:
        """The variant (or original) with this id."""
        case = self._case_of[variant_id]
        return next(v for v in (case.original, *case.variants) if v.id == variant_id)

    def check(self, variant_id: str) -> Check | None:
        """What the validity check said; None for originals and where none was run."""
        return self._folder.cases[self._case_of[variant_id].id][1].get(variant_id)

    def prompts(self, variant_id: str) -> list[Prompt]:
        """What was asked for this variant."""
        return list(self._folder.prompts.get(variant_id, ()))

    def responses(self, variant_id: str) -> list[Response]:
        """The answers to this variant's prompts, by model, format and replicate."""
        found = {
            (model, prompt.format, replicate): replace(response, variant_id=variant_id, format=prompt.format)
            for prompt in self.prompts(variant_id)
            for (model, replicate), response in self._folder.responses.get(prompt.sha256, {}).items()
        }
        return [found[key] for key in sorted(found)]

    def verdicts(self, variant_id: str) -> list[Verdict]:
        """The verdicts on this variant, one for each model and format."""
        return [v for v in self._folder.verdicts if v.variant_id == variant_id]

    def close(self) -> None:
        """Nothing is open."""
