"""Models: adapters for whatever can be asked, and the client that wraps every one of them.

`make` turns a spec of the command line into an adapter; `wrap` does so for a Python callable or a LangChain model.
Specs are ``vader``, ``reviews``, ``textblob``, ``rules``, ``hf:ID-or-path``, ``openai:NAME``,
``langchain:PROVIDER:NAME``, ``http:FILE.yaml``, ``python:MODULE:FUNCTION``, ``exec:COMMAND``, ``recorded:FILE``, and
``NAME`` or ``NAME:ARGUMENT`` for a plugin of the entry-point group ``auditor.models``.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any

import msgspec

from auditor.core import reading
from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.protocols import MODELS, Model

# Providers of LangChain that many use: package that is imported, and the variable of its key.
LANGCHAIN: Mapping[str, tuple[str, str | None]] = {
    "anthropic": ("langchain_anthropic", "ANTHROPIC_API_KEY"),
    "google_genai": ("langchain_google_genai", "GOOGLE_API_KEY"),
    "mistralai": ("langchain_mistralai", "MISTRAL_API_KEY"),
    "ollama": ("langchain_ollama", None),
    "openai": ("langchain_openai", "OPENAI_API_KEY"),
}


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of spec; ``rows``: it decides on rows of tables and takes no text."""

    spec: str
    what: str
    example: str
    packages: tuple[str, ...] = ()  # must be importable
    extra: str | None = None  # of this project, which brings them
    environment: tuple[str, ...] = ()  # variables that it reads
    rows: bool = False
    install: str | None = None  # the line that installs it, where no extra can


KINDS = msgspec.json.decode(reading.shipped("embedded", "models.json").read_bytes(), type=tuple[Kind, ...])
BY_NAME = {one.spec.partition(":")[0]: one for one in KINDS}
HINT = f"Specs: {', '.join(one.spec for one in KINDS if not one.rows)}. See: audit list models"
# Start of a name that leaves its kind out → the kind.
PREFIXES: Mapping[str, str] = {
    **dict.fromkeys(("gpt-", "chatgpt", "o1", "o3", "o4", "ft:gpt-"), "openai"),
    **{f"{provider}:": "langchain" for provider in LANGCHAIN},
    "claude": "langchain:anthropic",
    "gemini": "langchain:google_genai",
    "mistral": "langchain:mistralai",
}


def make(
    spec: str,
    *,
    base_url: str | None = None,
    task: object = None,
    logprobs: bool | None = None,
    server: Mapping[str, object] | None = None,
    **options: object,
) -> Model:
    """Build the adapter that ``spec`` names.

    ``base_url`` is for adapters that talk to a server, ``task`` for those that can use it (the bound on an answer's
    tokens); others ignore them, so that one run can hold both. ``logprobs`` True asks for log-probabilities, and so for
    scores of labels, where an adapter can; None leaves it to the adapter. ``server`` says how servers are asked
    (`auditor.core.plan.Plan.settings_for`): each adapter takes what it knows of it. ``options`` are further keywords of
    the adapter. Raises `UnknownPlugin` where nothing has this name, with near misses, and `ConfigError` where the spec
    is incomplete or an option is not the adapter's.

    >>> make("vader").name
    'vader'
    """
    plugin = find(spec)
    kind, colon, argument = parts_of(spec)
    known = BY_NAME.get(kind)
    if known is not None and ":" in known.spec and not argument:
        raise ConfigError(f"model {spec!r} is incomplete: {known.spec} is {known.what}, for example: {known.example}")
    parameters = inspect.signature(plugin).parameters
    if (known is not None and ":" not in known.spec and colon) or (argument and not parameters):
        raise ConfigError(f"model {spec!r}: {kind} takes nothing after its name. Write --model {kind}")
    shared = {"base_url": base_url, "task": task, "logprobs": logprobs, **(server or {})}
    keywords = {
        **options,
        **({next(iter(parameters)): argument} if argument else {}),
        **{name: value for name, value in shared.items() if name in parameters and value is not None},
    }
    for name in keywords:
        if name not in parameters:
            raise ConfigError(f"model {kind!r} has no option {name!r}; options: {', '.join(sorted(parameters))}")
    return plugin(**keywords)


def parts_of(spec: str) -> tuple[str, str, str]:
    """Split a spec into kind, colon and argument; a kind may be written ``package:name``."""
    kind, colon, argument = spec.strip().partition(":")
    if colon and not MODELS.is_own(kind) and kind in MODELS.packages():
        name, colon, argument = argument.partition(":")
        kind = f"{kind}:{name}"
    return kind, colon, argument


def find(spec: str) -> Callable[..., Model]:
    """Find the adapter's class for the kind of ``spec``, which may be incomplete; raise the errors of `make`."""
    kind = parts_of(spec)[0]
    if kind in BY_NAME and BY_NAME[kind].rows:
        raise ConfigError(
            f"model {spec!r}: {BY_NAME[kind].what}; for texts, wrap one in a function and use "
            f"python:MODULE:FUNCTION. {HINT}"
        )
    try:
        return MODELS.load(kind)
    except UnknownPlugin as error:
        known = {*MODELS.names(), *BY_NAME}
        name = spec.strip()
        prefix = next((kind for start, kind in PREFIXES.items() if name.casefold().startswith(start)), None)
        if prefix is None:
            raise UnknownPlugin("model", kind, known, HINT) from error
        meant = f"{prefix}:{name}"
        raise UnknownPlugin("model", name, known | {meant}, HINT, synonyms={name.casefold(): meant}) from error


def may_cost(spec: str) -> bool:
    """Return whether a model may cost money: every model that does not say it runs on this machine.

    >>> [may_cost(spec) for spec in ("vader", "planted", "hf:./mine", "openai:gpt-4o-mini", "exec:./ask")]
    [False, False, False, True, True]
    """
    known = BY_NAME.get(spec.strip().partition(":")[0])
    if known is not None and known.rows:
        return False
    plugin = find(spec)
    return not (isinstance(plugin, type) and issubclass(plugin, Model)) or plugin.costs != "nothing"


def wrap(function: Callable[..., object] | object, *, name: str | None = None, **options: object) -> Model:
    """Build the adapter for a Python callable (text to label, or list to list), or an object that answers texts.

    An adapter is returned as it is. Objects are a LangChain `Runnable`, a scikit-learn classifier of texts, a pipeline
    of transformers. ``options`` are further keywords of `auditor.models.python.PythonFunction` or
    `auditor.models.langchain.LangChain`. Raises `ConfigError` where ``function`` cannot be called.
    """
    from auditor.models.langchain import LangChain, is_langchain
    from auditor.models.python import as_function

    if isinstance(function, Model):
        return function
    if is_langchain(function):
        return LangChain(function, name=name, **options)  # type: ignore[arg-type]
    if (predict := as_function(function)) is not None:
        options = {"batch": True, **options}
        function, name = (predict, name or f"{type(function).__module__.partition('.')[0]}:{type(function).__name__}")
    if not callable(function):
        raise ConfigError(f"a model is a spec, an adapter or a callable, not {type(function).__name__}. {HINT}")
    plugin = MODELS.load("python")
    return plugin(function, **options, **({} if name is None else {"name": name}))


def defaults(task: Any) -> list[str]:
    """Return the embedded subjects that can do ``task``, for runs without ``--model``; else raise `ConfigError`."""
    if {"positive", "negative"} <= {str(label) for label in task.labels}:
        return ["reviews", "vader"]
    if {"first", "second"} == {str(label) for label in task.labels}:
        return ["rules"]
    raise ConfigError(
        f"no embedded model does the task {task.name!r}; name one, for example --model openai:NAME "
        "--base-url http://127.0.0.1:8000/v1"
    )


# -- what there is, what it needs, and whether that is here -----------------------------------------------------------


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """The needs of a kind of model, or of a provider, and whether they are met."""

    installed: bool
    install: str | None = None  # the line to run
    environment: dict[str, bool] = {}  # variable → whether it is set; never its value


class Listed(Needs, frozen=True, kw_only=True):
    """A kind of spec as `audit list models` lists it."""

    spec: str
    what: str
    example: str
    missing: tuple[str, ...] = ()  # packages
    providers: dict[str, Needs] = {}  # of LangChain


def kinds() -> list[Listed]:
    """Return every kind of spec; plugins of other packages come last."""
    plugins = [
        Listed(
            spec=name,
            what="plugin of an installed package",
            installed=True,
            example=f"audit --task sentiment --model {name}",
        )
        for name in MODELS.names()
        if not MODELS.is_own(name)
    ]
    return [*map(_listed, KINDS), *plugins]


def _listed(kind: Kind) -> Listed:
    missing = tuple(package for package in kind.packages if not installed(package))
    packages = f'"llm-bias-auditor[{kind.extra}]"' if kind.extra else " ".join(missing)
    return Listed(
        spec=kind.spec,
        what=kind.what,
        installed=not missing,
        missing=missing,
        install=(kind.install or f"pip install {packages}") if missing else None,
        environment=_are_set(kind.environment),
        example=kind.example,
        providers={
            name: Needs(
                installed=installed(package),
                install=None if installed(package) else f"pip install {package.replace('_', '-')}",
                environment=_are_set((key,) if key else ()),
            )
            for name, (package, key) in (LANGCHAIN.items() if kind.spec.startswith("langchain:") else ())
        },
    )


def installed(package: str) -> bool:
    """Return whether ``package`` can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _are_set(names: Iterable[str]) -> dict[str, bool]:
    return {name: bool(os.environ.get(name, "").strip()) for name in names}
