"""Names to plugins: a lazy table of built-ins plus entry points."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from auditor.core import data
from auditor.core.errors import ConfigError, PluginError, UnknownPlugin


class Registry:
    """Plugins of one kind.

    A plugin is a callable (usually a class) that takes its options as keywords. Names end in a version;
    a name without one means the newest. A built-in table and installed entry points may not collide, and a name
    without a version is never that of an entry point where it is that of a built-in plugin.

    Parameters
    ----------
    kind : str
        Singular; the entry-point group is ``auditor.{kind}s``.
    builtin : mapping of str to str
        Versioned name to ``"module:attribute"``, imported on first use.
    """

    def __init__(self, kind: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self._targets: dict[str, str | EntryPoint] = dict(builtin)
        self._builtin = frozenset(builtin)
        self._scanned = False

    def names(self) -> list[str]:
        """All known versioned names, sorted."""
        self._scan()
        return sorted(self._targets)

    def resolve(self, name: str) -> str:
        """The versioned name for ``name``, of a built-in plugin where there is one; raises `UnknownPlugin`.

        A package cannot take the place of a built-in plugin: neither with an entry point that has no version nor with
        a higher one. Its plugin is reached by the whole name.
        """
        if name in self._builtin:
            return name
        versions = _versions(name, self._builtin)
        if not versions:
            self._scan()
            if name in self._targets:
                return name
            versions = _versions(name, self._targets)
        if not versions:
            known = {n.rpartition(".v")[0] or n for n in self._targets}
            raise UnknownPlugin(self.kind, name, known, "See: audit plugins")
        return max(versions, key=lambda n: int(n.rpartition(".v")[2]))

    def load(self, name: str) -> Callable[..., Any]:
        """The plugin itself.

        Raises
        ------
        UnknownPlugin
            No such name; the message lists near misses.
        PluginError
            The plugin could not be imported; the original error is chained.
        """
        name = self.resolve(name)
        target = self._targets[name]
        try:
            if isinstance(target, EntryPoint):
                return cast(Callable[..., Any], target.load())
            module, _, attribute = target.partition(":")
            return cast(Callable[..., Any], getattr(importlib.import_module(module), attribute))
        except (ImportError, AttributeError) as error:
            raise PluginError(f"{self.kind} {name!r} ({target}) did not load: {error}") from error

    def create(self, name: str, **options: object) -> Any:
        """Build plugin ``name`` with ``options``.

        Raises
        ------
        ConfigError
            An option is not one of the plugin's.
        """
        plugin = self.load(name)
        allowed = set(inspect.signature(plugin).parameters)
        for option in options:
            if option not in allowed:
                raise ConfigError(
                    f"{self.kind} {name!r} has no option {option!r}; options: {', '.join(sorted(allowed))}"
                )
        return plugin(**options)

    def options(self, name: str) -> frozenset[str]:
        """The keywords that plugin ``name`` takes."""
        return frozenset(inspect.signature(self.load(name)).parameters)

    def origin(self, name: str) -> str:
        """Package and version that ``name`` comes from; "built in" for this project's own."""
        target = self._targets[self.resolve(name)]
        if not isinstance(target, EntryPoint):
            return "built in"
        return f"{target.dist.name} {target.dist.version}" if target.dist else target.value

    def where(self, name: str) -> str:
        """``module:attribute`` of plugin ``name``; nothing is imported."""
        target = self._targets[self.resolve(name)]
        return target.value if isinstance(target, EntryPoint) else target

    def _scan(self) -> None:
        if self._scanned:
            return
        for entry in entry_points(group=f"auditor.{self.kind}s"):
            if entry.name in self._targets:
                raise PluginError(f"two {self.kind}s are named {entry.name!r}: {entry.value}")
            self._targets[entry.name] = entry
        self._scanned = True


def _versions(name: str, known: Iterable[str]) -> list[str]:
    return [n for n in known if n.rpartition(".v")[0] == name and n.rpartition(".v")[2].isdigit()]


SUITES = Registry(
    "suite",
    {
        "mutation.v1": "auditor.perturb.mutation:MutationSuite",
        "hinter.v1": "auditor.contrib.hinter.suite:HinterSuite",
        "grammar.v1": "auditor.perturb.grammar.suite:GrammarSuite",
    },
)
CHECKS = Registry(
    "check",
    {
        "constructs.v1": "auditor.perturb.gate.constructs:Constructs",
        "dependency.v1": "auditor.perturb.gate.dependency:DependencyInvariant",
        "agreement.v1": "auditor.perturb.gate.agreement:Agreement",
    },
)
ORACLES = Registry(
    "oracle",
    {
        "label.v1": "auditor.tasks.oracles.label:LabelOracle",
        "labelset.v1": "auditor.tasks.oracles.labelset:LabelSetOracle",
        "probability.v1": "auditor.tasks.oracles.probability:ProbabilityOracle",
        "score.v1": "auditor.tasks.oracles.score:ScoreOracle",
        "generation.v1": "auditor.tasks.oracles.generation:GenerationOracle",
    },
)
MODELS = Registry(
    "model",
    {
        "vader.v1": "auditor.models.lexicon:Vader",
        "reviews.v1": "auditor.models.reviews:Reviews",
        "python.v1": "auditor.models.python:PythonFunction",
        "exec.v1": "auditor.models.process:Exec",
        "openai.v1": "auditor.models.openai:OpenAIChat",
        "recorded.v1": "auditor.models.recorded:Recorded",
        "planted.v1": "auditor.models.planted:Planted",
        "textblob.v1": "auditor.models.textblob:TextBlobModel",
        "rules.v1": "auditor.models.rules:Rules",
        "hf.v1": "auditor.models.transformers:Transformers",
        "langchain.v1": "auditor.models.langchain:LangChain",
        "http.v1": "auditor.models.http:HttpTemplate",
    },
)
PAGES = tuple(sorted(path.stem for path in data.path("embedded", "frameworks").glob("*.yaml")))
RENDERERS = Registry(
    "renderer",
    {
        f"{page}{form}.v1": f"auditor.report.compliance:page-{page}{form}"
        for page in PAGES
        for form in ("", "-md", "-json")
    }
    | {
        "terminal.v1": "auditor.report.terminal:TerminalReport",
        "html.v1": "auditor.report.html:HtmlReport",
        "json.v1": "auditor.report.json:JsonReport",
        "markdown.v1": "auditor.report.markdown:MarkdownReport",
        "csv.v1": "auditor.report.csv:CsvReport",
        "junit.v1": "auditor.report.junit:JunitReport",
        "sarif.v1": "auditor.report.sarif:SarifReport",
        "parquet.v1": "auditor.report.parquet:ParquetReport",
        "github.v1": "auditor.report.github:GithubSummary",
        "ai-verify-json.v1": "auditor.report.compliance_data:AiVerifyJson",
        "ll144-summary.v1": "auditor.report.ll144_summary:Ll144Summary",
    },
)
