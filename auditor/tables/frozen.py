"""Plans of rows that are frozen before the run: what stands in them, and running one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from auditor.core.errors import ConfigError, DataFileError
from auditor.core.protocols import Observer
from auditor.core.record.rows import ExpectedRows
from auditor.run import freeze
from auditor.tables.asking import evaluator_of, open_model
from auditor.tables.data import load_rows
from auditor.tables.expect import check_options, expected
from auditor.tables.plan import TabularPlan, read_settings
from auditor.tables.record import plan_record
from auditor.tables.run import check_plan, options_of


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """A plan as far as it can be worked out without asking: see `outlook`."""

    record: Mapping[str, object]
    expected: ExpectedRows


def outlook(plan: TabularPlan) -> Outlook:
    """Read data and schema, open the model, and say what will be asked. The model is asked nothing."""
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
