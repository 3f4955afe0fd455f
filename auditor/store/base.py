"""What a run is written to, wherever that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.core.types import Case, Check, Prompt, Response, Verdict

if TYPE_CHECKING:
    from auditor.store.answers import Answers


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

    def add_cases(self, cases: Iterable[tuple[Case, Mapping[str, Check], bytes | None]]) -> int:
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
