"""Every kind of model spec: what it is, what it needs, and whether that is here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

import msgspec

from auditor.core import reading
from auditor.core.protocols import MODELS

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
