"""What every plan says, of texts or of rows: the server, chance, limits, prices, speed, and where results go."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, field_serializer

from auditor.core.options import LARGEST, Amount, Count, Group, Option, PathText, PlanModel
from auditor.core.secrets import hidden

# The commands that take an option.
RUN = frozenset({"run", "plan freeze"})
ROWS = frozenset({"tabular", "plan freeze tabular"})
MAKE = RUN | {"generate"}
CHOOSE = MAKE | {"choose"}  # what makes versions of given texts
TEXTS = CHOOSE | {"agent"}
ASK = RUN | {"agent", "doctor", "choose"}
LIMIT = RUN | ROWS | {"agent", "groups", "resume", "tabular resume", "mitigate", "choose"}
OPERATE = frozenset({"run", "tabular", "agent", "mitigate", "choose"})
ASKED, SERVER, CHANGED, MEASURED, LIMITS, OUTPUT = Group


def as_share(delta: float | None) -> float | None:
    """``--delta`` as a share, of percentage points (from 1 on) or a share.

    Raises
    ------
    ValueError
        It is neither.

    Examples
    --------
    >>> as_share(2), as_share(0.02)
    (0.02, 0.02)
    """
    share = delta / 100 if delta is not None and delta >= 1 else delta
    if share is not None and not 0 < share < 1:
        raise ValueError("is a number of percentage points (2), or a share (0.02 is the same)")
    return share


class SharedPlan(PlanModel):
    """The settings that plans of texts and of rows have in common."""

    # fmt: off
    base_url: Annotated[str | None, Option("--base-url", ASKED, ASK | ROWS | {"groups"},
        "Address of an OpenAI-compatible server (else OPENAI_BASE_URL).")] = None
    delta: Annotated[float | None, AfterValidator(as_share), Option("--delta", MEASURED, RUN | ROWS | {"agent"},
        "Largest net difference between groups that counts as none: points (2) or a share (0.02). No default.")] = None
    seed: Annotated[int, Field(ge=0, le=LARGEST), Option("--seed", MEASURED, TEXTS | ROWS | {"groups"},
        "Random seed.")] = 7
    max_calls: Annotated[int | None, Field(ge=0, le=LARGEST), Option("--max-calls", LIMITS, LIMIT,
        "Stop before this many calls are exceeded.")] = None
    max_cost: Annotated[Amount | None, Option("--max-cost", LIMITS, LIMIT,
        "Stop before this cost in USD is exceeded; needs a known price.")] = None
    max_seconds: Annotated[Amount | None, Option("--max-seconds", LIMITS, LIMIT, "Stop after this time.")] = None
    price_in: Annotated[Amount | None, Option("--price-in", LIMITS, ASK | ROWS | {"mitigate"},
        "USD per million tokens in.")] = None
    price_out: Annotated[Amount | None, Option("--price-out", LIMITS, ASK | ROWS | {"mitigate"},
        "USD per million tokens out.")] = None
    concurrency: Annotated[Count, Option("--concurrency", LIMITS, OPERATE,
        "Calls in flight at most.", shapes=False)] = 16
    cache: Annotated[bool, Option("--no-cache", LIMITS, OPERATE,
        "Do not use the response cache.", shapes=False)] = True
    out: Annotated[PathText, Option("--out", OUTPUT, OPERATE | {"generate", "groups"},
        "Folder of the run folders.", shapes=False)] = "reports"
    # fmt: on

    @property
    def limited(self) -> bool:
        """Whether a limit of calls or of cost is set."""
        return self.max_calls is not None or self.max_cost is not None

    @field_serializer("base_url")
    def _without_secrets(self, base_url: str | None) -> str | None:
        return hidden(base_url)

    def as_dict(self) -> dict[str, object]:
        """Plain data, tuples as lists; the address of a server without what is secret in it."""
        return self.model_dump(mode="json", by_alias=True)

    def clashes(self) -> str | None:
        """What does not go together, as a sentence."""
        if (self.price_in is None) != (self.price_out is None):
            return "--price-in and --price-out belong together (USD per million tokens)."
        return None
