"""Suites of other packages in a run: what they are given, and the checks of their variants."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from auditor.core.errors import ConfigError, PluginError
from auditor.core.plan import SUITES as OWN
from auditor.core.plan import Plan
from auditor.core.protocols import Gate, Suite
from auditor.core.registry import Registry
from auditor.core.types import Check, SourceText, Variant
from auditor.tasks.task import Task

P = TypeVar("P")
OFFERED = ("seeds", "dictionaries", "attributes", "order", "scope", "per_seed", "parser", "limit_chars", "seed", "task")
PARTS_OF_PROTOCOL = {
    "hinter": "--protocol hinter",
    "mutation.adaptive": "--strategy adaptive",
}  # built in, but not chosen by --suite


class FromSuite(Gate):
    """Checks that a suite brings with its cases, in its mapping ``checks`` of variant id to `Check`."""

    name = "suite.v1"

    def __init__(self, suite: Suite) -> None:
        self._suite = suite

    def check(self, original: Variant, variants: Sequence[Variant]) -> list[Check]:
        """The suite's own check of every variant.

        Raises
        ------
        PluginError
            A variant has none.
        """
        checks = {} if self._suite.checks is None else self._suite.checks
        try:
            return [checks[variant.id] for variant in variants]
        except KeyError as error:
            raise PluginError(
                f"suite {self._suite.name!r} made {error.args[0]} without a check of it in .checks"
            ) from None


def is_own(plan: Plan) -> bool:
    """Whether the suite of ``plan`` is one that this project chooses by its plain name."""
    return plan.suite in OWN


def require(plan: Plan) -> str:
    """The versioned name of a suite of another package.

    Raises
    ------
    UnknownPlugin
        No installed package offers it; the message lists near misses.
    ConfigError
        The plan asks for what such a suite cannot do.
    """
    from auditor.core.registry import SUITES

    name = SUITES.resolve(plan.suite)
    plain = name.rpartition(".v")[0]
    if plain in PARTS_OF_PROTOCOL:
        raise ConfigError(f"--suite {plan.suite} is chosen by {PARTS_OF_PROTOCOL[plain]}.")
    if plain in OWN:
        raise ConfigError(f"--suite {plan.suite}: write --suite {plain}; the run records its version.")
    if plan.protocol != "default":
        raise ConfigError(f"--protocol {plan.protocol} brings its own cases; leave --suite {plan.suite} out.")
    if plan.jobs > 1 or plan.engine != "local":
        raise ConfigError(f"--suite {plan.suite} makes its cases in one process; leave --jobs and --engine out.")
    if plan.data is not None and not reads_texts(plan):
        raise ConfigError(f"--suite {plan.suite} makes its own texts; leave --data out.")
    return name


def reads_texts(plan: Plan) -> bool:
    """Whether the suite of ``plan`` is given seed texts."""
    from auditor.core.registry import SUITES

    return plan.suite != "grammar" if is_own(plan) else "seeds" in SUITES.options(plan.suite)


def create(registry: Registry[P], name: str, offered: Mapping[str, object]) -> P:
    """Plug-in ``name`` with those of ``offered`` that its signature names."""
    taken = registry.options(name)
    return registry.create(name, **{option: value for option, value in offered.items() if option in taken})


def _own_options(plan: Plan, name: str) -> dict[str, object]:
    """The suite's own options (``--suite-option``), with the types of its signature.

    Raises
    ------
    ConfigError
        An option is not one of the suite's, or its value has another type.
    """
    import pydantic

    from auditor.core.registry import SUITES

    parameters = inspect.signature(SUITES.load(name), eval_str=True).parameters
    own = sorted(set(parameters) - set(OFFERED))
    found: dict[str, object] = {}
    for one in plan.suite_options:
        option, equals, value = one.partition("=")
        if not equals or option not in own:
            raise ConfigError(
                f"--suite-option takes NAME=VALUE, and suite {name!r} has {', '.join(own) or 'no option of its own'}; "
                f"got {one!r}."
            )
        hint = parameters[option].annotation
        adapter = pydantic.TypeAdapter[object](str if hint is inspect.Parameter.empty else hint)
        try:
            found[option] = adapter.validate_python(value)
        except pydantic.ValidationError as error:
            raise ConfigError(f"--suite-option {one}: {error.errors()[0]['msg']}.") from None
    return found


def stages(
    plan: Plan, task: Task, texts: Sequence[SourceText], facts: dict[str, object], dictionaries: Sequence[object]
) -> tuple[Any, Any, Any, int | None, Any]:
    """Suite, gate, agreement check, the number of seeds where it is known, and what makes placebo variants.

    The suite is called with those of `OFFERED` that its signature names. Its variants are judged by its own
    ``checks`` where it has them, else by the dependency invariant; placebo variants are those of its method
    ``placebos``, where it has one.
    """
    from auditor.core.registry import CHECKS, SUITES
    from auditor.text.parse import Parser

    name = require(plan)
    parser = Parser(plan.parser)
    offered = {
        "seeds": texts,
        "dictionaries": dictionaries,
        "attributes": plan.attributes,
        "order": plan.order,
        "scope": plan.scope,
        "per_seed": plan.per_seed,
        "parser": parser,
        "limit_chars": task.kept,
        "seed": plan.seed,
        "task": task,
    }
    taken = SUITES.options(name)
    suite = create(SUITES, name, offered | _own_options(plan, name))
    facts["plugin"] = {"suite": name, "from": SUITES.origin(name)}
    if "seeds" not in taken:
        facts["seeds"] = {"source": f"made by the suite {name}", "n": None, "skipped": {}, "sha256": None}
    gate: object
    if suite.checks is not None:
        gate = FromSuite(suite)
    else:
        gate = create(CHECKS, plan.checked_by, {"parser": parser})
        facts["parser"] = {"name": parser.name, "sha256": parser.fingerprint}
    placebos = suite if suite.brings_placebos else None
    return suite, gate, CHECKS.create("agreement"), len(texts) if "seeds" in taken else None, placebos
