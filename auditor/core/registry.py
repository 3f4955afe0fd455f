"""Names to plug-ins: entry points, those of this project among them."""

from __future__ import annotations

import inspect
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from importlib.metadata import EntryPoint, distribution, entry_points
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from auditor.core import reading
from auditor.core.errors import ConfigError, PluginError, UnknownPlugin
from auditor.core.protocols import Gate, Model, Oracle, Renderer, Suite

PACKAGE = "llm-bias-auditor"
P = TypeVar("P")


class Offer(NamedTuple):
    """One plug-in that a package offers; ``package`` is empty for this project's own."""

    entry: EntryPoint
    package: str = ""
    version: str = ""


class Registry(Generic[P]):
    """Plug-ins of one kind: classes that take their options as keywords and derive from ``base``.

    What this project offers keeps its name: a plug-in of another package that has it too, or one that two packages
    offer, is reached by ``package:name`` alone. The entry-point group is ``auditor.{kind}s``.
    """

    def __init__(self, kind: str, base: type[P]) -> None:
        self.kind, self.base, self.group = kind, base, f"auditor.{kind}s"

    def names(self) -> list[str]:
        """All names by which a plug-in can be reached, sorted."""
        return sorted(self._all)

    def resolve(self, name: str) -> str:
        """``name``, where it reaches one plug-in.

        Raises `UnknownPlugin` with near misses, or `ConfigError` where several packages offer it.
        """
        if name in self._all:
            return name
        if others := sorted(key for key, offer in self._all.items() if offer.entry.name == name):
            raise ConfigError(f"{self.kind} {name!r} is not this project's alone; give one of {', '.join(others)}.")
        raise UnknownPlugin(self.kind, name, self._all, "See: audit list plugins")

    def load(self, name: str) -> Callable[..., P]:
        """The plug-in itself; `PluginError` where it could not be imported, or is no plug-in of this kind."""
        name = self.resolve(name)
        entry = self._offer(name).entry
        try:
            plugin: Callable[..., P] = entry.load()
        except (ImportError, AttributeError) as error:
            raise PluginError(f"{self.kind} {name!r} ({entry.value}) did not load: {error}") from error
        if not (isinstance(plugin, type) and issubclass(plugin, self.base)):
            raise PluginError(f"{self.kind} {name!r} ({entry.value}) does not derive from auditor.{self.base.__name__}")
        return plugin

    def create(self, name: str, **options: object) -> P:
        """Build plug-in ``name`` with ``options``; `ConfigError` where one is not the plug-in's."""
        allowed = self.options(name)
        for option in options:
            if option not in allowed:
                raise ConfigError(
                    f"{self.kind} {name!r} has no option {option!r}; options: {', '.join(sorted(allowed))}"
                )
        return self.load(name)(**options)

    def options(self, name: str) -> frozenset[str]:
        """The keywords that plug-in ``name`` takes."""
        return frozenset(inspect.signature(self.load(name)).parameters)

    def is_own(self, name: str) -> bool:
        """Whether ``name`` is one of this project's."""
        return name in self._own()

    def origin(self, name: str) -> str:
        """Package and version that ``name`` comes from; "built in" for this project's own."""
        offer = self._offer(self.resolve(name))
        return f"{offer.package} {offer.version}" if offer.package else "built in"

    def where(self, name: str) -> str:
        """``module:attribute`` of plug-in ``name``; nothing is imported."""
        return self._offer(self.resolve(name)).entry.value

    def packages(self) -> frozenset[str]:
        """Other packages that offer plug-ins of this kind."""
        return frozenset(offer.package for offer in self._all.values()) - {""}

    def _offer(self, name: str) -> Offer:
        return self._own().get(name) or self._all[name]

    def _own(self) -> Mapping[str, Offer]:
        return {entry.name: Offer(entry) for entry in _declared() if entry.group == self.group}

    @cached_property
    def _all(self) -> Mapping[str, Offer]:
        """By the name that reaches it: what this project offers, then other packages."""
        every = dict(self._own())
        others = [
            Offer(entry, entry.dist.name, entry.dist.version)
            for entry in entry_points(group=self.group)
            if entry.dist is not None and entry.dist.name != PACKAGE
        ]
        owners: dict[str, set[str]] = defaultdict(set)
        for offer in (*every.values(), *others):
            owners[offer.entry.name].add(offer.package)
        for offer in others:
            free = len(owners[offer.entry.name]) == 1
            every[offer.entry.name if free else f"{offer.package}:{offer.entry.name}"] = offer
        return every


@cache
def _declared() -> tuple[EntryPoint, ...]:
    """The entry points of this project: as installed, or as ``pyproject.toml`` of the source tree has them."""
    source = Path(__file__).parents[2] / "pyproject.toml"
    if source.is_file():
        project = tomllib.loads(source.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == PACKAGE:
            return tuple(
                EntryPoint(name, value, group)
                for group, entries in project["entry-points"].items()
                for name, value in entries.items()
            )
    return tuple(distribution(PACKAGE).entry_points)


SUITES = Registry("suite", Suite)
CHECKS = Registry("check", Gate)
ORACLES = Registry("oracle", Oracle)
MODELS = Registry("model", Model)
RENDERERS = Registry("renderer", Renderer)
KINDS = (SUITES, CHECKS, ORACLES, MODELS, RENDERERS)
PAGES = tuple(sorted(path.stem for path in reading.shipped("embedded", "frameworks").glob("*.yaml")))
