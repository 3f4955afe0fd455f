"""A tabular run from plan to report, and its resumption."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import ConfigError, RunFolderError
from auditor.core.protocols import Observer
from auditor.core.types import Progress
from auditor.run import freeze
from auditor.run.freeze import Frozen
from auditor.store.folder import RunFolder
from auditor.tables.asking import evaluator_of, open_model, slices_of, try_one
from auditor.tables.data import load_rows
from auditor.tables.distance import read_distance
from auditor.tables.expect import announced, check_options, expected
from auditor.tables.given import Given
from auditor.tables.noise import Book, against_noise, columns_of, measure
from auditor.tables.plan import METHODS, TabularPlan, TabularRun
from auditor.tables.profile import load_profile
from auditor.tables.record import Came, findings_of, plan_record, record_of, slice_findings, write
from auditor.tables.result import TabularResult
from auditor.tables.retrain import Retrained, retrain
from auditor.tables.schema import Schema
from auditor.tables.schemafile import dump

if TYPE_CHECKING:
    from auditor.models.tables import TableModel


def audit_table(plan: TabularPlan, *, observe: Observer | None = None, frozen: Frozen | None = None) -> TabularRun:
    """Run one method on one model of rows.

    Parameters
    ----------
    frozen : Frozen, optional
        The plan that was frozen beforehand; what ``plan`` does otherwise is recorded.

    Raises
    ------
    UserError
        A file, option or model is wrong.
    """
    return _audit(plan, observe or _silent, None, frozen)


def resume_table(
    path: Path, *, observe: Observer | None = None, limits: Mapping[str, object] | None = None
) -> TabularRun:
    """Finish a run with a task or an ``http:`` model that was cut off: what was answered is not asked again.

    Parameters
    ----------
    path : Path
        The run folder.
    limits : mapping, optional
        New ``max_calls``, ``max_cost`` or ``max_seconds``; they are for the whole run.

    Raises
    ------
    RunFolderError
        It is no such run, or its schema is no longer what it was.
    """
    with RunFolder.open(path, write=True) as folder:
        stored = folder.plan | {k: v for k, v in (limits or {}).items() if v is not None}
        if stored.get("kind") != "tabular" or not TabularPlan.from_dict(stored).served:
            raise RunFolderError(
                f"{path} is no tabular run with a task or an http: model; other tabular runs are just run again"
            )
        return _audit(TabularPlan.from_dict(stored), observe or _silent, folder, None)


def check_plan(plan: TabularPlan) -> None:
    """Refuse what cannot run, whatever the data are."""
    if plan.retrain and (plan.method != "aequitas" or not plan.model.startswith("sklearn:")):
        raise ConfigError("--retrain goes with --method aequitas and --model sklearn:FILE")
    for name in ("data", "profile"):
        if name in plan.options:
            raise ConfigError(f"--set {name}: this is no option of a method. Name the file: --{name} FILE")
    read_distance(plan.distance, plan.distance_threshold, plan.distance_scale)


def options_of(plan: TabularPlan, schema: Schema, given: Given) -> dict[str, object]:
    """The options as a method takes them, with the given rows and the profile.

    Scores are about the rows as they are; a search starts from the codes that stand for them.
    """
    rows = given if plan.method == "themis" else given.bins
    options: dict[str, object] = {"data": rows if len(given) else None, **plan.options}
    if plan.profile is not None:
        options["profile"] = load_profile(plan.profile, schema)
    return options


def _audit(plan: TabularPlan, tell: Observer, folder: RunFolder | None, frozen: Frozen | None) -> TabularRun:
    started = datetime.now(UTC)
    tell(Progress(phase="tabular", done=0, message=f"reading {plan.data or 'the schema'}"))
    check_plan(plan)
    schema, given, labels = load_rows(plan)
    options = options_of(plan, schema, given)
    check_options(plan, schema, options)
    if folder is not None and folder.plan.get("schema_text") != dump(schema):
        raise RunFolderError(
            f"the schema is not what it was when {folder.path} began: undo the change, or start a new run"
        )
    with ExitStack() as stack:
        book = Book()
        model, asked = open_model(plan, schema, folder, tell, book)
        stack.callback(model.close)
        if folder is None and plan.out:  # the plan names the model, so the model comes first
            about = _before(plan, schema, model, len(given), frozen, tell)
            folder = stack.enter_context(_new_folder(plan, schema, about))
            if plan.served:
                model.close()
                model, asked = open_model(plan, schema, folder, tell, book)
                stack.callback(model.close)
        evaluator = evaluator_of(plan, schema, model, asked, tell)
        try_one(evaluator, given, model)
        for line in announced(plan, expected(plan, schema, evaluator, len(given), options)):
            tell(Progress(phase="tabular", done=0, message=line))
        run = import_module(METHODS[plan.method][0]).run
        result: TabularResult = run(evaluator, schema, options, np.random.default_rng(plan.seed))
        result = dataclasses.replace(result, notes=(*schema.notes, *result.notes))
        retrained = None
        if plan.retrain:
            tell(Progress(phase="tabular", done=0, message="retraining"))
            retrained = _retrain(plan, schema, given, labels, model)
        findings = findings_of(plan.model, plan.delta, schema, result)
        if (found := slices_of(plan, evaluator, given)) is not None:
            findings += slice_findings(plan.model, schema, found, len(findings) + 1)
        noise = None
        if asked is not None and not asked.model.deterministic:
            sets = [columns_of(finding, schema.protected) for finding in findings]
            noise = measure(book, asked, schema, sets, plan.seed, complete=result.whole_cases)
            findings = against_noise(findings, noise, plan.replicates, schema.protected)
        came = Came(result=result, findings=findings, slices=found, retrained=retrained, noise=noise, asked=asked)
        record = record_of(plan, evaluator, model, came, started, len(given), folder)
        if folder is None:
            return TabularRun(record=record, result=result)
        write(folder, record)
        model.close()
        return TabularRun(record=record, result=result, path=folder.path)


def _silent(event: Progress) -> None:
    """Nobody watches."""


def _before(
    plan: TabularPlan, schema: Schema, model: TableModel, given: int, frozen: Frozen | None, tell: Observer
) -> dict[str, object]:
    """What ``plan.json`` says beside the settings, before anything is asked: hashes, fingerprint, frozen plan."""
    record = plan_record(plan, schema, model, given)
    about = {name: record[name] for name in ("inputs", "fingerprints")}
    if frozen is None:
        return about
    reference = freeze.reference(frozen, record)
    for row in reference["deviations"]:
        tell(Progress(phase="deviation from the frozen plan", done=0, message=str(row["what"])))
    return about | {"frozen": reference}


def _new_folder(plan: TabularPlan, schema: Schema, about: Mapping[str, object]) -> RunFolder:
    return RunFolder.create(Path(plan.out), plan.as_dict() | {"schema_text": dump(schema)} | dict(about))


def _retrain(
    plan: TabularPlan, schema: Schema, given: Given, labels: NDArray[np.generic] | None, model: TableModel
) -> Retrained:
    if labels is None:
        raise ConfigError("--retrain needs --data with the target column (--target NAME)")
    return retrain(model.estimator, schema, given, labels, np.random.default_rng(plan.seed), frame=model.frame)
