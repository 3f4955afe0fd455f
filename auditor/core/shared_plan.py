"""What every plan says, of texts or of rows: the server, chance, limits, prices, speed, and where results go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_serializer

from auditor.core import reading
from auditor.core.errors import ConfigError
from auditor.core.options import FLAG, LARGEST, Amount, AtOnce, Count, Group, Names, Option, PathText, PlanModel, near
from auditor.core.secrets import hidden

# The commands that take an option.
RUN = frozenset({"run", "plan freeze"})
ROWS = frozenset({"tabular", "plan freeze tabular"})
MAKE = RUN | {"generate"}
CHOOSE = MAKE | {"choose"}  # what makes versions of given texts
TEXTS = CHOOSE | {"agent"}
LABELLED = MAKE | {"doctor"}  # what reads answers as labels
ASK = RUN | {"agent", "doctor", "choose"}
LIMIT = RUN | ROWS | {"agent", "resume", "mitigate", "choose"}
SERVED = ASK | ROWS
OPERATE = frozenset({"run", "tabular", "agent", "mitigate", "choose"})
ASKED, SERVER, CHANGED, MEASURED, LIMITS, OUTPUT, FURTHER = Group
NO_TEMPERATURE = "none"


def as_share(delta: float | None) -> float | None:
    """``--delta`` as a share, of percentage points (from 1 on) or a share; ValueError where it is neither.

    Examples
    --------
    >>> as_share(2), as_share(0.02)
    (0.02, 0.02)
    """
    share = delta / 100 if delta is not None and delta >= 1 else delta
    if share is not None and not 0 < share < 1:
        raise ValueError("is a number of percentage points (2), or a share (0.02 is the same)")
    return share


def _temperature(typed: object) -> object:
    try:
        value = float(typed) if isinstance(typed, str) and typed != NO_TEMPERATURE else typed
    except ValueError:
        raise ValueError(f"takes a number, or {NO_TEMPERATURE} for the server's own") from None
    if isinstance(value, int | float) and not 0 <= value <= LARGEST:
        raise ValueError("must be at least 0")
    return value


class ServerPlan(PlanModel):
    """How servers are asked."""

    # fmt: off
    max_tokens: Annotated[Count | None, Option("--max-tokens", SERVER, SERVED,
        "Most tokens of an answer (default: the task's); reasoning counts too.")] = None
    temperature: Annotated[float | Literal["none"] | None, BeforeValidator(_temperature), Option(
        "--temperature", SERVER, SERVED,
        "A number (default: the task's), or none: the server's own.")] = None
    timeout_s: Annotated[float | None, Field(ge=0.001, le=LARGEST), Option("--timeout", SERVER, SERVED,
        "Seconds for one whole call (default 60).")] = None
    reasoning_effort: Annotated[str | None, Option("--reasoning-effort", SERVER, SERVED,
        "Sent to openai: models, e.g. low.")] = None
    extra_body: Annotated[PathText | None, Option("--extra-body", SERVER, SERVED,
        "JSON file with further fields of every request to openai: models.")] = None
    headers: Annotated[Names, Option("--header", SERVER, SERVED,
        "NAME=VARIABLE: a header for openai: models, its value from the environment.", repeated=True)] = ()
    # fmt: on

    def stated(self) -> dict[str, object]:
        """What the plan says of it, by the names of adapters' parameters."""
        said = {n: value for n in ServerPlan.settings() if (value := getattr(self, n)) not in (None, ())}
        return said | ({"temperature": "server"} if self.temperature == NO_TEMPERATURE else {})


def _per_model(typed: object) -> object:
    """Settings by model: of a table of tables, or of texts ``SPEC NAME=VALUE …``."""
    by_model: dict[str, Mapping[str, object]] = {}
    if isinstance(typed, Mapping):
        by_model = dict(typed)
    else:
        for text in [typed] if isinstance(typed, str) or not isinstance(typed, Iterable) else typed:
            spec, *pairs = str(text).split()
            if not pairs or not all("=" in pair for pair in pairs):
                raise ValueError('takes "SPEC NAME=VALUE …", as "openai:NAME max-tokens=4096 temperature=none"')
            by_model[spec] = {**by_model.get(spec, {}), **dict(pair.split("=", 1) for pair in pairs)}
    return {spec: _checked(spec, settings) for spec, settings in by_model.items()}


def _checked(spec: str, settings: object) -> Mapping[str, object]:
    """The settings of one model, by field, each read as its option is."""
    if not isinstance(settings, Mapping):
        raise ValueError(f"takes a table of settings for {spec}")
    fields = {ServerPlan.key(name): name for name in ServerPlan.settings()}
    values: dict[str, object] = {}
    for key, value in settings.items():
        name = fields.get(str(key).replace("-", "_"), str(key))
        if name not in fields.values():
            raise ValueError(f"{spec}: {key!r} is no such setting.{near(key, fields)}")
        number = name in ("max_tokens", "timeout_s") and isinstance(value, str)
        values[name] = reading.load_yaml("--per-model", str(value)) if number else value
    try:
        made = ServerPlan.model_validate(values)
    except ConfigError as error:
        raise ValueError(f"{spec}: {FLAG.sub(lambda m: m.group()[2:], str(error))}") from None
    return {name: value for name in values if (value := getattr(made, name)) is not None}


class SharedPlan(ServerPlan):
    """The settings that plans of texts and of rows have in common."""

    # fmt: off
    base_url: Annotated[str | None, Option("--base-url", ASKED, ASK | ROWS,
        "Address of an OpenAI-compatible server (else OPENAI_BASE_URL).")] = None
    per_model: Annotated[dict[str, Mapping[str, object]], BeforeValidator(_per_model), Option(
        "--per-model", SERVER, SERVED, '"SPEC NAME=VALUE …": options of this group for one of several models, e.g. '
        '"openai:NAME max-tokens=4096 temperature=none".', repeated=True)] = Field(default_factory=dict)
    favourable: Annotated[str | None, Option("--favourable", ASKED, LABELLED | ROWS,
        "The label that is good for the person concerned (default: the task's).")] = None
    delta: Annotated[float | None, AfterValidator(as_share), Option("--delta", MEASURED, RUN | ROWS | {"agent"},
        "Largest net difference between groups that counts as none: points (2) or a share (0.02). No default.")] = None
    seed: Annotated[int, Field(ge=0, le=LARGEST), Option("--seed", MEASURED, TEXTS | ROWS,
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
    concurrency: Annotated[AtOnce, Option("--concurrency", LIMITS, OPERATE,
        "Calls in flight at most.", shapes=False)] = 16
    cache: Annotated[bool, Option("--no-cache", LIMITS, OPERATE,
        "Do not use the response cache.", shapes=False)] = True
    out: Annotated[PathText, Option("--out", OUTPUT, OPERATE | {"generate"},
        "Folder of the run folders.", shapes=False)] = "reports"
    # fmt: on

    def server(self, spec: str = "") -> dict[str, object]:
        """How the server of the model ``spec`` is asked, by the names of adapters' parameters."""
        own = ServerPlan.model_validate(self.per_model.get(spec, {}))
        return self.stated() | own.stated()

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
