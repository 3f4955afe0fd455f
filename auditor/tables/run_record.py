"""The record of a tabular run and the files of its folder."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from auditor._version import __version__
from auditor.core import userfile
from auditor.core.counting import plural
from auditor.core.types import FORMAT_VERSION
from auditor.tables.plan import TabularPlan

FILES = ("schema.yaml", "finds.csv", "pairs.csv", "votes.npz", "judged.npz", "retrained.skops")

if TYPE_CHECKING:
    from auditor.models.rows import RowClient
    from auditor.models.tables import TableModel
    from auditor.store.folder import RunFolder
    from auditor.tables.evaluate import Evaluator
    from auditor.tables.result import TabularResult
    from auditor.tables.schema import Schema


def record_of(
    plan: TabularPlan,
    schema: Schema,
    model: TableModel,
    result: TabularResult,
    started: datetime,
    facts: Mapping[str, Any],
    folder: RunFolder | None,
) -> dict[str, Any]:
    """``run.json`` of a tabular run."""
    from auditor.run import freeze
    from auditor.tables.record import sections

    stored: Mapping[str, Any] = {} if folder is None else folder.plan
    frozen = freeze.of_run(stored, plan.as_dict())
    return {
        "id": "in-memory",
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        "status": result.status,
        "status_reason": result.status_reason,
        "spec": plan.as_dict(),
        "provenance": _provenance(started, model, folder) | dict(facts),
        **({} if frozen is None else {"frozen": frozen}),
        "controls": {},
        "diagnoses": [],
        "models": {
            plan.model: {"fingerprint": model.fingerprint, "counts": {"calls": result.counts["evaluations"]}}
        },
        **sections(schema, result, plan.model, plan.delta),
    }


def add_task(record: dict[str, Any], plan: TabularPlan, asked: RowClient, evaluator: Evaluator) -> None:
    """What was asked of a language model or a server: calls, rows without a label, what one answer a row can say."""
    facts = asked.facts()
    record["models"][plan.model] |= {
        "counts": facts,
        "deterministic": asked.model.deterministic,
        "style": asked.model.style,
        "reported": sorted(asked.reported),
    }
    lost = {name: facts["rows"][name] for name in ("failed", "filtered", "refused", "unparsed")}
    record["counts"] |= {
        "calls": facts["calls"],
        "cached": facts["cached"],
        "rows_asked": sum(facts["rows"].values()),
    }
    record["counts"] |= lost | {"not_judged": evaluator.not_judged}
    left = asked.left()
    if record["status"] == "partial" and left is not None and left < len(evaluator.schema.combos):
        record["status_reason"] = (
            f"the limit of {plural(plan.max_calls or 0, 'call')} (--max-calls) was reached"
        )
    section = record["tabular"]
    section["answers"] = {
        "task": plan.task and asked.task.name,
        "format": asked.format,
        "replicates": asked.replicates,
        "rows": facts["rows"],
        "calls": facts["calls"],
        "cached": facts["cached"],
    }


def finish(record: dict[str, Any], plan: TabularPlan, evaluator: Evaluator, started: datetime) -> None:
    """Rows and seconds of the whole run, not of the search alone: share, slices, pairs and retraining included."""
    ended = datetime.now(UTC)
    seconds = round((ended - started).total_seconds(), 3)
    record["provenance"] |= {"ended": ended.isoformat(timespec="seconds"), "seconds": seconds}
    for counts in (record["counts"], record["tabular"]["counts"]):
        counts |= {"evaluations_in_all": evaluator.evaluations, "seconds": seconds}
    if not plan.served:
        record["models"][plan.model]["counts"]["calls"] = evaluator.evaluations


def write(
    folder: RunFolder,
    record: dict[str, Any],
    plan: TabularPlan,
    evaluator: Evaluator,
    result: TabularResult,
    retrained: Any,
    started: datetime,
) -> None:
    """Everything that a run folder holds beside the plan and the journal."""
    from auditor.report.html import HtmlReport
    from auditor.store.folder import REPORT
    from auditor.tables.pairs import answers_of, pairs_csv, save_judged, save_votes
    from auditor.tables.record import finds_csv
    from auditor.tables.schemafile import dump

    record["id"], schema = folder.id, evaluator.schema
    folder.write_text("schema.yaml", dump(schema))
    folder.write_text("finds.csv", finds_csv(schema, result))
    if result.found is not None and len(result.found) and len(schema.protected_index):
        answers = answers_of(evaluator, result.found)
        if answers is not None:
            folder.write_text("pairs.csv", pairs_csv(evaluator, answers))
            save_votes(folder.path / "votes.npz", evaluator, answers)
    if result.judged:
        save_judged(folder.path / "judged.npz", schema, result.judged)
    if retrained is not None:
        import skops.io as sio  # type: ignore[import-untyped,unused-ignore]

        sio.dump(retrained.model, folder.path / "retrained.skops")
    # The report is left out: `audit report` writes it anew, and the register names its hash.
    record["provenance"]["files"] = {
        name: userfile.sha256(path) for name in FILES if (path := folder.path / name).is_file()
    }
    finish(record, plan, evaluator, started)
    folder.write_run(record)
    folder.write_text(REPORT, HtmlReport().render(folder.record()))


def _provenance(started: datetime, model: TableModel, folder: RunFolder | None) -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    from auditor.core.provenance import code_sha256

    packages: dict[str, str | None] = {}
    for name in ("numpy", "scipy", "scikit-learn", "skops", "z3-solver", "lime"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "started": started.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "model_fingerprint": model.fingerprint,
        "plan_sha256": None if folder is None else folder.plan_sha256,
        "code": code_sha256(),
    }
