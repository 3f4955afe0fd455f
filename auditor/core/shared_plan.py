"""What every plan says, of texts or of rows: the server, chance, limits, prices, speed, and where results go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_serializer

from auditor.core.options import (
    LARGEST,
    Amount,
    AtOnce,
    Count,
    Group,
    Names,
    Numbers,
    Option,
    PathText,
    PlanModel,
    near,
    wrong,
)
from auditor.core.shown import hidden

# The commands that take an option.
RUN = frozenset({"run", "plan freeze"})
ROWS = frozenset({"tabular", "plan freeze tabular"})
MAKE = RUN | {"generate"}
CHOOSE = MAKE | {"choose"}  # what makes versions of given texts
TEXTS = CHOOSE | {"agent"}
LABELLED = MAKE | {"doctor"}  # what reads answers as labels
ASK = RUN | {"agent", "doctor", "choose"}
LIMIT = RUN | ROWS | {"agent", "resume", "mitigate", "choose"}
OPERATE = frozenset({"run", "tabular", "agent", "mitigate", "choose"})
ASKED, CHANGED, LIMITS, FURTHER = Group
MEASURED, OUTPUT = CHANGED, LIMITS
NO_TEMPERATURE = "none"
EVERY = ""  # in `SharedPlan.server`: settings for every model


def as_share(delta: float | None) -> float | None:
    """Return ``--delta`` as a share, given percentage points (from 1 on) or a share; ValueError for anything else.

    Examples
    --------
    >>> as_share(2), as_share(0.02)
    (0.02, 0.02)
    """
    share = delta / 100 if delta is not None and delta >= 1 else delta
    if share is not None and not 0 < share < 1:
        raise ValueError("is a number of percentage points (2), or a share (0.02 is the same)")
    return share


class ServerSettings(BaseModel):
    """How a server is asked. Fields are parameters of adapters, their aliases are what users write."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", allow_inf_nan=False, validate_by_name=True, defer_build=True
    )

    max_tokens: Count | None = None
    temperature: Annotated[float, Field(ge=0, le=LARGEST)] | Literal["none"] | None = None
    timeout_s: Annotated[float | None, Field(alias="timeout", ge=0.001, le=LARGEST)] = None
    reasoning_effort: str | None = None
    extra_body: PathText | None = None
    headers: Annotated[Names, Field(alias="header")] = ()
    logprobs: bool | None = None


SETTINGS = tuple(info.alias or name for name, info in ServerSettings.model_fields.items())


def _server(typed: object) -> object:
    """Read settings by model from a table (with tables for single models), or from texts ``[SPEC] NAME=VALUE …``."""
    by_model: dict[str, dict[str, object]] = {}
    if isinstance(typed, Mapping):
        for key, value in typed.items():
            of_one = isinstance(value, Mapping)
            by_model.setdefault(str(key) if of_one else EVERY, {}).update(value if of_one else {key: value})
    else:
        for text in [typed] if isinstance(typed, str) or not isinstance(typed, Iterable) else typed:
            words = str(text).split()
            spec = words.pop(0) if words and "=" not in words[0] else EVERY
            if not words or not all("=" in word for word in words):
                raise ValueError(
                    'takes "NAME=VALUE …", or "SPEC NAME=VALUE …" for one model: "temperature=0 timeout=30"'
                )
            by_model.setdefault(spec, {}).update(dict(word.split("=", 1) for word in words))
    return {spec: _stated(spec, values) for spec, values in by_model.items() if values}


def _stated(spec: str, values: Mapping[str, object]) -> dict[str, object]:
    """Check the settings of one model, and return them by field."""
    fields = ServerSettings.model_fields
    try:
        made = ServerSettings.model_validate({str(key).replace("-", "_"): value for key, value in values.items()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key, of = str(first["loc"][0]), f"{spec}: " * bool(spec)
        if first["type"] == "extra_forbidden":
            raise ValueError(f"{of}{key!r} is not a setting.{near(key, SETTINGS)}") from None
        info = next(info for name, info in fields.items() if key in (name, info.alias))
        said = "must be a number, or none" if key == "temperature" and len(first["loc"]) > 1 else wrong(info, first)
        raise ValueError(f"{of}{key} {said}") from None
    return {name: value for name in fields if (value := getattr(made, name)) not in (None, ())}


def _two(price: tuple[float, ...]) -> tuple[float, ...]:
    if len(price) not in (0, 2) or not all(0 <= usd <= LARGEST for usd in price):
        raise ValueError("takes two numbers, USD per million tokens in and out, as 0.15,0.6")
    return price


class SharedPlan(PlanModel):
    """The settings that plans of texts and of rows have in common."""

    # fmt: off
    base_url: Annotated[str | None, Option("--base-url", ASKED, ASK | ROWS,
        "Address of an OpenAI-compatible server (else OPENAI_BASE_URL).", first=True)] = None
    server: Annotated[dict[str, Mapping[str, object]], BeforeValidator(_server), Option("--server", ASKED, ASK | ROWS,
        'How servers are asked: "NAME=VALUE …", or "SPEC NAME=VALUE …" for one model. Names: max-tokens, temperature '
        "(none: the server's own), timeout (seconds), reasoning-effort, extra-body (a JSON file), header "
        "(NAME=VARIABLE of the environment), logprobs (yes: insist; no: do without).", repeated=True)
    ] = Field(default_factory=dict)
    favourable: Annotated[str | None, Option("--favourable", ASKED, LABELLED | ROWS,
        "The label that is good for the person concerned (default: the task's).")] = None
    delta: Annotated[float | None, AfterValidator(as_share), Option("--delta", MEASURED, RUN | ROWS | {"agent"},
        "Largest net difference between groups that you call negligible, in points (2) or as a share (0.02). No "
        "default.",
        first=True)] = None
    seed: Annotated[int, Field(ge=0, le=LARGEST), Option("--seed", MEASURED, TEXTS | ROWS,
        "Random seed.")] = 7
    max_calls: Annotated[int | None, Field(ge=0, le=LARGEST), Option("--max-calls", LIMITS, LIMIT,
        "Make at most this many calls.", first=True)] = None
    max_cost: Annotated[Amount | None, Option("--max-cost", LIMITS, LIMIT,
        "Spend at most this much, in USD; needs a known price.", first=True)] = None
    max_seconds: Annotated[Amount | None, Option("--max-seconds", LIMITS, LIMIT, "Stop after this time.")] = None
    price: Annotated[Numbers, AfterValidator(_two), Option("--price", LIMITS, ASK | ROWS | {"mitigate"},
        "IN,OUT: USD per million tokens.")] = ()
    concurrency: Annotated[AtOnce, Option("--concurrency", LIMITS, OPERATE,
        "Calls in flight at most.", shapes=False)] = 16
    cache: Annotated[bool, Option("--no-cache", LIMITS, OPERATE,
        "Do not use the response cache.", shapes=False)] = True
    out: Annotated[PathText, Option("--out", OUTPUT, OPERATE | {"generate"},
        "Folder of the run folders.", shapes=False, first=True)] = "reports"
    # fmt: on

    def settings_for(self, spec: str) -> dict[str, object]:
        """Return how the server of the model ``spec`` is asked, by the names of adapters' parameters."""
        said = {**self.server.get(EVERY, {}), **self.server.get(spec, {})}
        return said | ({"temperature": "server"} if said.get("temperature") == NO_TEMPERATURE else {})

    @property
    def limits(self) -> dict[str, Any]:
        """The limits and prices (USD per million tokens), as a `auditor.models.budget.Budget` takes them."""
        limits = {name: getattr(self, name) for name in ("max_calls", "max_cost", "max_seconds")}
        return limits | dict(zip(("price_in", "price_out"), self.price or (None, None), strict=True))

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
