"""Every kind of model spec: what it is, what it needs, and whether that is here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

import msgspec

_OPENAI_KEYS = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "OPENAI_API_VERSION",
)
# Providers of LangChain that many use: package that is imported, and the variable of its key.
LANGCHAIN: Mapping[str, tuple[str, str | None]] = {
    "anthropic": ("langchain_anthropic", "ANTHROPIC_API_KEY"),
    "google_genai": ("langchain_google_genai", "GOOGLE_API_KEY"),
    "mistralai": ("langchain_mistralai", "MISTRAL_API_KEY"),
    "ollama": ("langchain_ollama", None),
    "openai": ("langchain_openai", "OPENAI_API_KEY"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One kind of spec.

    ``packages`` must be importable; ``extra`` of this project brings them. ``environment`` are variables that it
    reads. ``network``: it asks a server. ``rows``: it decides on rows of tables, and no text is handed to it.
    """

    spec: str
    what: str
    example: str
    packages: tuple[str, ...] = ()
    extra: str | None = None
    environment: tuple[str, ...] = ()
    network: bool = False
    rows: bool = False


KINDS = (
    Kind(
        spec="reviews",
        what="embedded n-gram classifier of film reviews (sentiment)",
        example="audit --task sentiment --model reviews",
    ),
    Kind(
        spec="vader",
        what="lexicon classifier (sentiment)",
        example="audit --task sentiment --model vader",
        packages=("vaderSentiment",),
    ),
    Kind(
        spec="textblob",
        what="lexicon classifier (sentiment)",
        example="audit --task sentiment --model textblob",
        packages=("textblob",),
        extra="textblob",
    ),
    Kind(
        spec="rules",
        what="embedded rules that choose the first or the second person (coreference)",
        example="audit --task coreference --model rules",
    ),
    Kind(
        spec="openai:NAME",
        what="OpenAI, Azure, or any OpenAI-compatible server",
        example="audit --task hiring --model openai:gpt-4o-mini --max-calls 500",
        packages=("openai",),
        environment=_OPENAI_KEYS,
        network=True,
    ),
    Kind(
        spec="langchain:PROVIDER:NAME",
        what="chat models of LangChain's integration packages",
        example="audit --task hiring --model langchain:anthropic:claude-sonnet-4-5 --max-calls 500",
        packages=("langchain", "langchain_core"),
        extra="langchain",
        environment=tuple(sorted(key for _, key in LANGCHAIN.values() if key)),
        network=True,
    ),
    Kind(
        spec="http:FILE.yaml",
        what="any JSON service, described in a file",
        example="audit --task hiring --model http:service.yaml",
        packages=("httpx",),
        network=True,
    ),
    Kind(
        spec="hf:ID-or-PATH",
        what="Hugging Face models on this machine",
        example="audit --task sentiment --model hf:./my-model",
        packages=("torch", "transformers"),
        extra="local",
    ),
    Kind(
        spec="sklearn:FILE",
        what="scikit-learn models of tables (audit tabular)",
        example="audit tabular --data loans.csv --target approved --model sklearn:model.skops --protected sex",
        packages=("sklearn", "skops"),
        extra="tabular",
        rows=True,
    ),
    Kind(
        spec="python:MODULE:FUNCTION",
        what="a Python function, text to label or list to list",
        example="audit --task sentiment --model python:mymodel:classify",
    ),
    Kind(
        spec="exec:COMMAND",
        what="a program that reads JSON lines and writes answers",
        example='audit --task sentiment --model "exec:./classify --fast"',
    ),
    Kind(
        spec="recorded:FILE",
        what="answers that were recorded before",
        example="audit --task sentiment --model recorded:responses.jsonl",
    ),
)


BY_NAME = {one.spec.partition(":")[0]: one for one in KINDS}


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind of model, or a provider of one, needs, and whether it is here."""

    installed: bool
    install: str | None = None  # the line to run
    environment: dict[str, bool] = {}  # variable → whether it is set; never its value


class Listed(Needs, frozen=True, kw_only=True):
    """A kind of spec as `audit models` lists it."""

    spec: str
    what: str
    example: str
    missing: tuple[str, ...] = ()  # packages
    extra: str | None = None
    network: bool | None = None
    providers: dict[str, Needs] = {}  # of LangChain


def kinds() -> list[Listed]:
    """Every kind of spec; plugins of other packages come last.

    Examples
    --------
    >>> [k.installed for k in kinds() if k.spec == "reviews"]
    [True]
    """
    return [_row(kind) for kind in KINDS] + _plugins()


def _row(kind: Kind) -> Listed:
    missing = [package for package in kind.packages if not installed(package)]
    providers = LANGCHAIN if kind.spec.startswith("langchain:") else {}
    return Listed(
        spec=kind.spec,
        what=kind.what,
        installed=not missing,
        missing=tuple(missing),
        extra=kind.extra,
        install=_line(missing, kind.extra),
        environment={name: _set(name) for name in kind.environment},
        network=kind.network,
        example=kind.example,
        providers={name: _provider(*needs) for name, needs in sorted(providers.items())},
    )


def _provider(package: str, key: str | None) -> Needs:
    here = installed(package)
    return Needs(
        installed=here,
        install=None if here else f"pip install {package.replace('_', '-')}",
        environment={} if key is None else {key: _set(key)},
    )


def _plugins() -> list[Listed]:
    """Models that other packages bring."""
    from auditor.core.registry import MODELS

    names = sorted({name.rpartition(".v")[0] or name for name in MODELS.names() if not MODELS.is_own(name)})
    return [
        Listed(
            spec=name,
            what="plugin of an installed package",
            installed=True,
            example=f"audit --task sentiment --model {name}",
        )
        for name in names
    ]


def installed(package: str) -> bool:
    """Whether ``package`` can be imported; it is not imported."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _line(missing: list[str], extra: str | None) -> str | None:
    if not missing:
        return None
    return f'pip install "llm-bias-auditor[{extra}]"' if extra else f"pip install {' '.join(missing)}"


def _set(name: str) -> bool:
    return bool(os.environ.get(name, "").strip())
