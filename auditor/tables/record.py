"""The run record of a search over rows: estimates, findings with their verdicts, and the files of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from auditor._version import __version__
from auditor.core import userfile
from auditor.core.counting import plural, verb
from auditor.core.errors import DataFileError
from auditor.core.provenance import code_sha256, surroundings
from auditor.core.shown import csv_text
from auditor.core.types import FORMAT_VERSION, ClaimVerdict, Finding, digest
from auditor.run import freeze
from auditor.store.folder import REPORT, RunFolder
from auditor.tables.data import load_task
from auditor.tables.evaluate import Evaluator
from auditor.tables.given import bins_note, within
from auditor.tables.pairs import answers_of, pairs_csv, save_judged, save_votes
from auditor.tables.plan import TabularPlan
from auditor.tables.result import Score, TabularResult, plain
from auditor.tables.retrain import Retrained
from auditor.tables.schema import Schema
from auditor.tables.schemafile import dump
from auditor.tables.slices import Slices
from auditor.tables.wald import NOTE

if TYPE_CHECKING:
    from auditor.models.tables import TableModel
    from auditor.tables.rows import RowClient

FILES = ("schema.yaml", "finds.csv", "pairs.csv", "votes.npz", "judged.npz", "retrained.skops")
PACKAGES = ("numpy", "scipy", "scikit-learn", "skops", "z3-solver", "lime")
FEWEST = 10  # rows below which a score is called neither shown nor bounded
NAMES = {
    "apparent_causal": "apparent causal score",
    "apparent_group": "apparent group score",
    "discriminatory_share": "share of cases whose label changes with a change",
}


def record_of(
    plan: TabularPlan,
    schema: Schema,
    model: TableModel,
    result: TabularResult,
    started: datetime,
    facts: Mapping[str, object],
    folder: RunFolder | None,
) -> dict[str, Any]:
    """``run.json`` of a tabular run."""
    stored: Mapping[str, object] = {} if folder is None else folder.plan
    frozen = freeze.of_run(stored, plan.as_dict())
    return {
        "id": "in-memory",
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        "status": result.status,
        "status_reason": result.status_reason,
        "spec": plan.as_dict(),
        "provenance": {
            "started": started.isoformat(timespec="seconds"),
            **surroundings(PACKAGES),
            "model_fingerprint": model.fingerprint,
            "plan_sha256": None if folder is None else folder.plan_sha256,
            "code": code_sha256(),
            **facts,
        },
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
        **({"parameters_changed": dict(changed)} if (changed := asked.model.changed) else {}),
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
    retrained: Retrained | None,
    started: datetime,
) -> None:
    """Everything that a run folder holds beside the plan and the journal."""
    from auditor.report.html import HtmlReport

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


def sections(schema: Schema, result: TabularResult, model: str, delta: float | None) -> dict[str, Any]:
    """The parts of ``run.json`` that follow from a result: counts, estimates, findings and ``tabular``.

    Parameters
    ----------
    model : str
        The spec that was asked.
    delta : float, optional
        The largest score that counts as bounded.
    """
    section = result.to_record()
    if note := bins_note(schema):
        section["notes"].append(note)
    scores = (*section["scores"], *section["minimal_sets"])
    return {
        "counts": dict(section["counts"]),
        "estimates": [_estimate(model, score) for score in scores],
        "findings": [_finding(model, delta, schema, result, i, s) for i, s in enumerate(_claims(result), 1)],
        "tabular": section | {"schema": described(schema)},
    }


def described(schema: Schema) -> dict[str, object]:
    """What a report says about a schema."""
    return {
        "name": schema.name,
        "columns": schema.d,
        "protected": list(schema.protected),
        "binned": [c.name for c in schema.columns if c.kind == "binned"],
        "rows_in_domain": str(schema.size),
        "cases_in_domain": str(schema.cases),
        "constraints": [c.text for c in schema.constraints],
        "sha256": digest(dump(schema)),
    }


def finds_csv(schema: Schema, result: TabularResult) -> str:
    """The distinct discriminatory cases as CSV, without the protected columns: given rows first, as they are."""
    index = schema.free_index.tolist()
    rows: list[list[object]] = [[schema.names[i] for i in index]]
    for found in (result.found_given, result.found):
        if found is not None:
            holds, codes = within(schema, found)
            rows += [[holds.columns[i].raw(row[i]) for i in index] for row in codes.tolist()]
    return csv_text(rows)


def _estimate(model: str, score: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": score["name"],
        "model": model,
        "format": "",
        "attributes": list(score["columns"]),
        "directions": None,
        "kind": None,
        "estimate": score["estimate"],
        "population": score["population"],
    }


def slice_findings(model: str, schema: Schema, found: Slices, first: int) -> list[dict[str, Any]]:
    """The slices that are shown, as findings numbered from ``first``."""
    result = []
    for number, one in enumerate(found.shown, first):
        where = " and ".join(f"{name} = {value}" for name, value in one.where)
        finding = Finding(
            id=f"T{number}",
            kind="claim",
            code="tabular-slice",
            model=model,
            attributes=schema.protected,
            verdict="shown",
            rate=one.estimate,
            p_adjusted=one.p,
            text=f"the label of {one.changes:,} of {plural(one.n, 'row')} with {where} changes, {found.population}",
            notes=(
                f"{found.tested:,} slices were looked at; the interval holds for all of them together at "
                f"{found.level * 100:g} %",
                f"among all other rows the share is {one.rest:.2%}",
            ),
        )
        result.append(dict(plain(finding)))
    return result


def _claims(result: TabularResult) -> list[Score | None]:
    """What findings are made of: every score, and None for the finds of a directed search, which have no rate."""
    claims: list[Score | None] = [*result.scores, *result.minimal_sets]
    return claims if result.sampling == "iid" else [*claims, None]


def _finding(
    model: str, delta: float | None, schema: Schema, result: TabularResult, number: int, score: Score | None
) -> dict[str, Any]:
    """One claim with its verdict: shown, bounded below δ, or not determined."""
    found = result.counts["discriminatory"]
    if score is None:
        finding = Finding(
            id=f"T{number}",
            kind="claim",
            code="tabular-finds",
            model=model,
            attributes=schema.protected,
            verdict="shown" if found else "not_determined",
            text=f"{plural(found, 'distinct case')} {verb(found, 'was', 'were')} found whose label "
            f"changes with {', '.join(schema.protected)}",
            notes=("searched for, not sampled: the number says nothing about how often this happens",),
        )
    else:
        rate = score.estimate
        valid = NOTE not in rate.note  # the paper's own rule has no interval that a verdict could rest on
        shown = rate.low > 0
        bounded = delta is not None and rate.high < delta
        verdict: ClaimVerdict = "bounded" if bounded else "shown" if shown else "not_determined"
        few = rate.n < FEWEST and not rate.method.startswith("enumeration")
        if few:
            verdict = "not_determined"
        finding = Finding(
            id=f"T{number}",
            kind="claim",
            code=f"tabular-{score.name.replace('_', '-')}",
            model=model,
            attributes=score.columns,
            verdict=verdict if valid else "not_tested",
            rate=rate,
            text=f"{NAMES.get(score.name, score.name + ' score')} of {', '.join(score.columns)}, {score.population}",
            notes=(f"{plural(rate.n, 'row')}: fewer than {FEWEST} support no statement",) if few else (),
        )
    return dict(plain(finding))


def inputs_of(plan: TabularPlan, schema: Schema, given: int) -> dict[str, Any]:
    """Hashes of what shapes the questions: rows, schema, profile, task with its prompts."""
    found: dict[str, object] = {"schema": {"name": schema.name, "sha256": digest(dump(schema))}}
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


def plan_record(plan: TabularPlan, schema: Schema, model: TableModel, given: int) -> dict[str, object]:
    """``plan``, ``inputs`` and ``fingerprints``, as `auditor.run.freeze` takes them."""
    return {
        "plan": plan.as_dict(),
        "inputs": inputs_of(plan, schema, given),
        "fingerprints": {plan.model: model.fingerprint},
    }
