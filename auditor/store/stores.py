"""What a run is written to where it is not a folder: nothing, or memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.core.types import Case, Check, Prompt, Response, Verdict
from auditor.store.evidence import Answers, MemoryEvidence

ToWrite = tuple[Case, Mapping[str, Check], bytes | None]  # a case, its checks, and its line where that was made before


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
