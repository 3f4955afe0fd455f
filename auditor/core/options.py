"""Options, each written once: beside its field of a plan; and those that plans of texts and of rows share.

A plan is a frozen pydantic model whose annotations hold an `Option`. From it come the options of every command with
their help (`auditor.cli.frame`), the keys of ``audit.toml``, the keywords of `auditor.audit`, what a frozen plan
fixes, what may change when a run goes on, and the reference in the documentation.
"""

from __future__ import annotations

import difflib
import inspect
import numbers
import os
import re
import tomllib
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from auditor.core import reading
from auditor.core.errors import AuditError, ConfigError, DataFileError
from auditor.core.reading import from_toml, toml_place
from auditor.core.shown import hidden
from auditor.core.types import names

LARGEST = 10**12  # of any option that is a number
MOST_TIMES = 1000  # that one prompt is asked: all of them are held at once
MOST_AT_ONCE = 1000  # calls in flight, or processes
FORMAT = 1  # of audit.toml
FILE = Path("audit.toml")
TABLES = ("tabular",)  # of audit.toml
F = TypeVar("F", bound=Callable[..., object])
QUOTED = re.compile(r"'([^']*)'")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


class Group(StrEnum):
    """The headings under which a command's help has its options."""

    ASKED = "What is asked, and of whom"
    CHANGED = "What is changed and measured"
    LIMITS = "Limits and output"
    FURTHER = "Further"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a plan: what ``--no-cache`` turns off is on without it.

    ``commands`` take it; ``resume`` can change it. ``help`` gets the default. A ``repeated`` option is given once for
    each value. One that ``shapes`` no answer is not in a frozen plan. ``--help`` shows the ``first`` ones.
    """

    flag: str
    group: Group
    commands: frozenset[str]
    help: str
    repeated: bool = False
    shapes: bool = True
    first: bool = False

    def meaning(self, commands: frozenset[str], help: str) -> Option:
        """The option by the same name where it means something else."""
        return replace(self, commands=commands, help=help, repeated=False)

    @property
    def off(self) -> bool:
        """Whether it turns off what is on without it."""
        return self.flag.startswith("--no-")


def about(error: AuditError, file: Path | None, flags: Iterable[str]) -> AuditError:
    """Return ``error``, with ``file`` and line where it is about one of ``flags``, which stand there."""
    said, there = str(error).removesuffix(error.below).rstrip(), set(flags)
    flag = next((one for one in FLAG.findall(said) if one in there), None)
    if file is None or flag is None:
        return error
    place = toml_place(file, reading.read_text(file), flag.removeprefix("--").replace("-", "_"))
    return DataFileError(f"{place}: {said}", below=error.below)


def _plain(value: object) -> object:
    """Numbers of arrays as numbers of Python; all else as it is."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else value


def _listed(value: object) -> object:
    if isinstance(value, str):
        return names(value)
    if isinstance(value, Iterable) and not isinstance(value, tuple | bytes | Mapping):
        return tuple(value)
    return value


def _numbers(value: object) -> object:
    if isinstance(value, int | float):
        return (value,)
    if not isinstance(value, str):
        return _listed(value)
    try:
        return tuple(float(part) for part in names(value))
    except ValueError:
        raise ValueError("takes numbers with commas between them, as 0.05,0.1") from None


def _path(value: object) -> object:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


Listed = BeforeValidator(_listed)  # of a list that may be given as one text with commas
Names = Annotated[tuple[str, ...], Listed]
Numbers = Annotated[tuple[float, ...], BeforeValidator(_numbers)]
PathText = Annotated[str, BeforeValidator(_path)]
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Times = Annotated[int, Field(ge=1, le=MOST_TIMES)]
AtOnce = Annotated[int, Field(ge=1, le=MOST_AT_ONCE)]
Amount = Annotated[float, Field(ge=0, le=LARGEST)]


class PlanModel(BaseModel):
    """Frozen settings whose fields are options: each annotation holds an `Option`.

    What is unknown, of a wrong type or out of range, or does not go together, is a `ConfigError`: one sentence that
    names the option.
    """

    gone: ClassVar[Mapping[str, str]] = {}  # keys of its table until 0.2, and what to use instead
    table: ClassVar[str] = ""  # of ``audit.toml`` that holds the settings; empty: they stand at its top

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_by_name=True, defer_build=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, values: object, build: Callable[[object], Self]) -> Self:
        if isinstance(values, Mapping):
            values = {name: _plain(value) for name, value in values.items()}
        try:
            made = build(values)
        except ValidationError as error:
            raise ConfigError(_sentence(cls, error)) from None
        if message := made.clashes():
            raise ConfigError(message)
        return made

    def clashes(self) -> str | None:
        """Return the first clash between settings, as a sentence."""
        return None

    def but(self, **changes: object) -> Self:
        """The same with some settings changed, and checked again."""
        return type(self).model_validate({name: getattr(self, name) for name in self.model_fields_set} | changes)

    @classmethod
    def settings(cls) -> Mapping[str, FieldInfo]:
        """The fields by name, those of the class itself first."""
        fields = cls.model_fields
        return {**{name: fields[name] for name in inspect.get_annotations(cls) if name in fields}, **fields}

    @classmethod
    def flags(cls, command: str | None = None) -> dict[str, Option]:
        """The options by field; those that ``command`` takes."""
        options = {name: option_of(info) for name, info in cls.settings().items()}
        return {n: o for n, o in options.items() if command is None or command in o.commands}

    @classmethod
    def flag(cls, name: str) -> str:
        """The option that sets the field ``name``, as typed."""
        return option_of(cls.settings()[name]).flag

    @classmethod
    def key(cls, name: str) -> str:
        """The key of ``audit.toml`` that sets the field ``name``: the flag's name with underscores."""
        flag = cls.flag(name)
        return name if option_of(cls.settings()[name]).off else flag.removeprefix("--").replace("-", "_")

    @classmethod
    def read_toml(cls, path: Path, *further: type[PlanModel]) -> dict[str, object]:
        """Read the settings of one ``audit.toml``, of this plan and ``further`` ones.

        The file holds ``format = 1`` and the flags' names with underscores; plans of rows stand in the table
        ``[tabular]``. What is not TOML, or an unknown key, is a `DataFileError` that names file, line and key.
        """
        text = reading.read_text(path, missing=" Give an existing file with --config.")
        try:
            raw: dict[str, object] = from_toml(text)
        except tomllib.TOMLDecodeError as error:
            raise DataFileError(f"{path}: not a TOML file: {error}") from None
        if raw.pop("format", FORMAT) != FORMAT:
            raise DataFileError(f"{path}: format must be {FORMAT}; a newer version of this tool wrote this file.")
        tables = {name: raw.pop(name) for name in TABLES if name in raw}
        if cls.table:
            text = "\n" * text.count("\n", 0, text.find(f"[{cls.table}]")) + text.partition(f"[{cls.table}]")[2]
            table = tables.get(cls.table, {})
            if not isinstance(table, dict):
                raise DataFileError(f"{path}: {cls.table} must be a table: [{cls.table}]")
            raw = table
        plans = (cls, *further)
        fields = {plan.key(name): name for plan in plans for name in plan.settings()}
        known = set(fields.values())
        for key in raw:
            if fields.get(key, key) not in known:
                own = next((f"{key} was removed in 0.3; {p.gone[key]}." for p in plans if key in p.gone), "")
                said = own or instead(key) or f"unknown key {key!r}.{near(key, fields)}"
                raise DataFileError(f"{toml_place(path, text, key)}: {said}")
        return {fields.get(key, key): value for key, value in raw.items()}


def option_of(info: FieldInfo) -> Option:
    """The option that a field of a plan holds."""
    (option,) = (one for one in info.metadata if isinstance(one, Option))
    return option


def near(word: str, known: Iterable[str]) -> str:
    """The nearest of ``known``, or all of them, as a sentence."""
    close = difflib.get_close_matches(word, known := list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else f" Known: {', '.join(known)}."


def keywords(plan: type[PlanModel], *, without: frozenset[str] = frozenset()) -> Callable[[F], F]:
    """Tell `help` and editors the keywords of a function that takes ``**options`` of ``plan``."""

    def telling(function: F) -> F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        further = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=info.default, annotation=info.annotation)
            for name, info in plan.settings().items()
            if name not in signature.parameters and name not in without
        ]
        vars(function)["__signature__"] = signature.replace(parameters=[*own, *further])
        return function

    return telling


def members(annotation: object) -> tuple[object, ...]:
    """The types of a union without None; of any other annotation itself."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(m for one in get_args(annotation) for m in members(one))
    return () if annotation is type(None) else (annotation,)


WRONG: Mapping[str, str] = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": f"must be a number of at most {LARGEST:,}",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "tuple_type": "must be a list, or one text with commas",
}


def _sentence(plan: type[PlanModel], error: ValidationError) -> str:
    """What is wrong with the first wrong value."""
    first, *further = error.errors(include_url=False)
    unknown = sorted(str(one["loc"][0]) for one in (first, *further) if one["type"] == "extra_forbidden")
    if unknown:
        return f"the plan has settings that this version does not know: {', '.join(unknown)[:200]}."
    key = str(first["loc"][0])
    name = next(name for name, info in plan.settings().items() if key in (name, info.alias))
    return f"{plan.flag(name)} {_wrong(first)}"


def _shown(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"


def _wrong(error: ErrorDetails) -> str:
    """Say what is wrong with the value of a field, and which it is."""
    value = error["input"]
    shown = ", ".join(map(_shown, value)) if isinstance(value, tuple | list) else _shown(value)
    limits = error.get("ctx", {})
    match error["type"]:
        case "greater_than_equal":
            said = f"must be at least {limits['ge']:,g}"
        case "less_than_equal":
            said = f"must be at most {limits['le']:,}"
        case "literal_error":
            words = [word for word in QUOTED.findall(limits["expected"]) if word]
            close = difflib.get_close_matches(str(value), words, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            return f"must be one of {', '.join(words)}; got {shown}.{hint}"
        case "value_error":
            said = str(limits["error"])
        case "missing":
            return "is needed."
        case kind:
            said = WRONG.get(kind, error["msg"])
    return f"{said}; got {shown}."


# -- what every plan says: the server, chance, limits, prices, speed, and where results go -----------------------------


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
    try:
        made = ServerSettings.model_validate({str(key).replace("-", "_"): value for key, value in values.items()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key, of = str(first["loc"][0]), f"{spec}: " * bool(spec)
        if first["type"] == "extra_forbidden":
            raise ValueError(f"{of}{key!r} is not a setting.{near(key, SETTINGS)}") from None
        said = "must be a number, or none" if key == "temperature" and len(first["loc"]) > 1 else _wrong(first)
        raise ValueError(f"{of}{key} {said}") from None
    return {name: value for name in ServerSettings.model_fields if (value := getattr(made, name)) not in (None, ())}


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
    delta: Annotated[float | None, AfterValidator(as_share), Option("--delta", CHANGED, RUN | ROWS | {"agent"},
        "Largest net difference between groups that you call negligible, in points (2) or as a share (0.02). No "
        "default.",
        first=True)] = None
    seed: Annotated[int, Field(ge=0, le=LARGEST), Option("--seed", CHANGED, TEXTS | ROWS,
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
    out: Annotated[PathText, Option("--out", LIMITS, OPERATE | {"generate"},
        "Folder of the run folders.", shapes=False, first=True)] = "reports"
    # fmt: on

    def settings_for(self, spec: str) -> dict[str, object]:
        """Return how the server of the model ``spec`` is asked, by the names of adapters' parameters."""
        said = {**self.server.get(EVERY, {}), **self.server.get(spec, {})}
        return said | ({"temperature": "server"} if said.get("temperature") == NO_TEMPERATURE else {})

    @property
    def limits(self) -> dict[str, Any]:
        """The limits and prices (USD per million tokens), as a `auditor.models.limits.Budget` takes them."""
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


# -- what version 0.3 took away ----------------------------------------------------------------------------------------


@cache
def gone(what: Literal["commands", "values", "options", "rules"]) -> Mapping[str, str]:
    """Commands, options, their values or words of rules that are gone; each with what to use instead."""
    every = tomllib.loads(reading.shipped("embedded", "removed.toml").read_text(encoding="utf-8"))
    return dict(every[what])


def instead(option: str) -> str:
    """Return what to use instead of an option (``--max-tokens``), a key or a keyword (``max_tokens``), or ""."""
    flag = option if option.startswith("--") else f"--{option.replace('_', '-')}"
    flag = {"--timeout-s": "--timeout", "--headers": "--header"}.get(flag, flag)
    return f"{option} was removed in 0.3; {gone('options')[flag]}." if flag in gone("options") else ""
