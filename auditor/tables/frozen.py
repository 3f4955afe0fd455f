"""Plans of rows that are frozen before the run: what stands in them, and running one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.core import userfile
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.types import digest
from auditor.run import freeze
from auditor.tables.plan import TabularPlan, read_settings

if TYPE_CHECKING:
    from auditor.core.protocols import Observer
    from auditor.models.tables import TableModel
    from auditor.tables.schema import Schema


def inputs_of(plan: TabularPlan, schema: Schema, given: int) -> dict[str, Any]:
    """Hashes of what shapes the questions: rows, schema, profile, task with its prompts."""
    from auditor.tables.data import load_task
    from auditor.tables.schemafile import dump

    found: dict[str, Any] = {"schema": {"name": schema.name, "sha256": digest(dump(schema))}}
    if plan.data:
        found["rows"] = {"source": plan.data, "n": given, "sha256": _sha256(plan.data)}
    if plan.profile is not None:
        found["profile"] = {"source": plan.profile, "sha256": _sha256(plan.profile)}
    if plan.distance.endswith((".yaml", ".yml")):
        found["distance"] = {"source": plan.distance, "sha256": _sha256(plan.distance)}
    if plan.task is not None:
        found["task_sha256"] = load_task(plan.task).sha256
    return found


def _sha256(path: str) -> str:
    try:
        return userfile.sha256(path)
    except OSError as error:
        raise DataFileError(f"{path}: cannot be read: {error.strerror or error}") from None


def plan_record(plan: TabularPlan, schema: Schema, model: TableModel, given: int) -> dict[str, Any]:
    """``plan``, ``inputs`` and ``fingerprints``, as `auditor.run.freeze` takes them."""
    return {
        "plan": plan.as_dict(),
        "inputs": inputs_of(plan, schema, given),
        "fingerprints": {plan.model: model.fingerprint},
    }


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """A plan as far as it can be worked out without asking: see `outlook`."""

    record: Mapping[str, Any]
    expected: Mapping[str, Any]


def outlook(plan: TabularPlan) -> Outlook:
    """Read data and schema, open the model, and say what will be asked. The model is asked nothing."""
    from auditor.tables.asking import evaluator_of, open_model
    from auditor.tables.data import load_rows
    from auditor.tables.expect import check_options, expected
    from auditor.tables.run import check_plan, options_of

    check_plan(plan)
    schema, given, _ = load_rows(plan)
    options = options_of(plan, schema, given)
    check_options(plan, schema, options)
    tell: Observer = lambda event: None  # noqa: E731 - nothing is asked
    model, asked = open_model(plan, schema, None, tell)
    try:
        evaluator = evaluator_of(plan, schema, model, asked, tell)
        steady = asked is None or asked.model.deterministic
        told = expected(plan, schema, evaluator, len(given), options, deterministic=steady)
        return Outlook(record=plan_record(plan, schema, model, len(given)), expected=told)
    finally:
        model.close()


def load(path: Path) -> freeze.Frozen:
    """Read a frozen plan of rows and check its hash."""
    frozen = freeze.load(path)
    if frozen.kind != freeze.ROWS:
        raise ConfigError(f"{path} is a plan for texts. Run it with: audit run --plan {path}")
    if unknown := sorted(set(frozen.settings) - TabularPlan.written() - {"kind"}):
        raise DataFileError(f"{path}: plan: unknown setting {unknown[0]!r}")
    return frozen


def with_flags(frozen: freeze.Frozen, flags: Mapping[str, object]) -> TabularPlan:
    """The plan to run: as frozen, but for what was given beside it; options one by one."""
    options = read_settings([frozen.settings["options"], flags["options"]])
    return TabularPlan.from_dict({**frozen.settings, **flags, "options": options})
