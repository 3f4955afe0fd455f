"""Suites of other packages in a run: what they are given, and the checks of their variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.core.errors import ConfigError, PluginError
from auditor.core.plan import SUITES as OWN
from auditor.core.plan import Plan
from auditor.core.types import Case, Check, Seed

OFFERED = (
    "seeds",
    "dictionaries",
    "attributes",
    "order",
    "scope",
    "per_seed",
    "parser",
    "limit_chars",
    "seed",
    "task",
)
PARTS_OF_PROTOCOL = {"hinter": "--protocol hinter"}  # built in, but not chosen by --suite


class FromSuite:
    """Checks that a suite brings with its cases, in its mapping ``checks`` of variant id to `Check`."""

    name = "suite.v1"

    def __init__(self, suite: Any) -> None:
        self._suite = suite

    def check_many(self, cases: Sequence[Case]) -> list[list[Check]]:
        """The suite's own check of every variant of every case.

        Raises
        ------
        PluginError
            A variant has none.
        """
        return [[self._check(variant.id) for variant in case.variants] for case in cases]

    def _check(self, variant: str) -> Check:
        checks: Mapping[str, Check] = self._suite.checks
        try:
            return checks[variant]
        except KeyError:
            raise PluginError(
                f"suite {self._suite.name!r} made {variant} without a check of it in .checks"
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
        raise ConfigError(
            f"--suite {plan.suite} makes its cases in one process; leave --jobs and --engine out."
        )
    if plan.data is not None and not reads_texts(plan):
        raise ConfigError(f"--suite {plan.suite} makes its own texts; leave --data out.")
    return name


def reads_texts(plan: Plan) -> bool:
    """Whether the suite of ``plan`` is given seed texts."""
    from auditor.core.registry import SUITES

    return plan.suite != "grammar" if is_own(plan) else "seeds" in SUITES.options(plan.suite)


def stages(
    plan: Plan, task: Any, texts: Sequence[Seed], facts: dict[str, Any], dictionaries: Sequence[Any]
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
    suite = SUITES.create(name, **{option: offered[option] for option in OFFERED if option in taken})
    facts["plugin"] = {"suite": name, "from": SUITES.origin(name)}
    if "seeds" not in taken:
        facts["seeds"] = {"source": f"made by the suite {name}", "n": None, "skipped": {}, "sha256": None}
    gate: Any
    if hasattr(suite, "checks"):
        gate = FromSuite(suite)
    else:
        gate = CHECKS.create(plan.checked_by, parser=parser)
        facts["parser"] = {"name": parser.name, "sha256": parser.fingerprint}
    placebos = suite if hasattr(suite, "placebos") else None
    return suite, gate, CHECKS.create("agreement"), len(texts) if "seeds" in taken else None, placebos
