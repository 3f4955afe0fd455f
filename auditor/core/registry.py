"""Names to plug-ins: entry points, those of this project among them."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
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

    What this project offers keeps its name; a name that two other packages offer is of the first one by the alphabet.
    The entry-point group is ``auditor.{kind}s``.
    """

    def __init__(self, kind: str, base: type[P]) -> None:
        self.kind, self.base = kind, base
        self._offers: dict[str, Offer] | None = None

    @property
    def group(self) -> str:
        """The entry-point group."""
        return f"auditor.{self.kind}s"

    def names(self) -> list[str]:
        """All names by which a plug-in can be reached, sorted."""
        return sorted(self._all())

    def resolve(self, name: str) -> str:
        """``name``, where a plug-in has it; `UnknownPlugin` offers near misses."""
        if name not in self._all():
            raise UnknownPlugin(self.kind, name, self._all(), "See: audit list plugins")
        return name

    def load(self, name: str) -> Callable[..., P]:
        """The plug-in itself; `PluginError` where it could not be imported, or is no plug-in of this kind."""
        entry = self._all()[self.resolve(name)].entry
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
        offer = self._all()[self.resolve(name)]
        return f"{offer.package} {offer.version}" if offer.package else "built in"

    def where(self, name: str) -> str:
        """``module:attribute`` of plug-in ``name``; nothing is imported."""
        return self._all()[self.resolve(name)].entry.value

    def _own(self) -> Mapping[str, Offer]:
        return {entry.name: Offer(entry) for entry in _declared() if entry.group == self.group}

    def _all(self) -> Mapping[str, Offer]:
        """By name: what this project offers, then other packages."""
        if self._offers is None:
            offers = dict(self._own())
            others = [(entry.dist, entry) for entry in entry_points(group=self.group) if entry.dist is not None]
            for dist, entry in sorted(others, key=lambda one: one[0].name):
                if dist.name != PACKAGE:
                    offers.setdefault(entry.name, Offer(entry, dist.name, dist.version))
            self._offers = offers
        return self._offers


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
