"""The run record of a search over rows: estimates, findings with their verdicts, and the files of its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

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
from auditor.tables.noise import Noise
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Came:
    """What a run came to, before it is written."""

    result: TabularResult
    findings: Sequence[Finding]
    slices: Slices | None
    retrained: Retrained | None
    noise: Noise | None  # only of a model that is not declared to repeat itself
    asked: RowClient | None  # behind a task or a server


def record_of(
    plan: TabularPlan,
    evaluator: Evaluator,
    model: TableModel,
    came: Came,
    started: datetime,
    given: int,
    folder: RunFolder | None,
) -> dict[str, object]:
    """``run.json`` of a tabular run; rows and seconds are of the whole run: slices, pairs, retraining included.

    Parameters
    ----------
    given : int
        Rows of ``--data``.
    """
    schema, result, asked = evaluator.schema, came.result, came.asked
    # The report is left out: `audit report` writes it anew, and the register names its hash.
    files = {} if folder is None else {"files": _files(folder, evaluator, came)}  # asks about rows of pairs
    ended = datetime.now(UTC)
    seconds = round((ended - started).total_seconds(), 3)
    counts = {**result.counts, "evaluations_in_all": evaluator.evaluations, "seconds": seconds}
    record = {
        "id": "in-memory" if folder is None else folder.id,
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        "status": result.status,
        "status_reason": result.status_reason if asked is None else _reason(plan, result, schema, asked),
        "spec": plan.as_dict(),
        "provenance": {
            "started": started.isoformat(timespec="seconds"),
            **surroundings(PACKAGES),
            "model_fingerprint": model.fingerprint,
            "plan_sha256": None if folder is None else folder.plan_sha256,
            "code": code_sha256(),
            **inputs_of(plan, schema, given),
            **files,
            "ended": ended.isoformat(timespec="seconds"),
            "seconds": seconds,
        },
        "controls": {},
        "diagnoses": [],
        "models": {
            plan.model: {
                "fingerprint": model.fingerprint,
                **({"counts": {"calls": evaluator.evaluations}} if asked is None else _asked(asked)),
            }
        },
        "counts": counts | ({} if asked is None else _answered(asked, evaluator)),
        "estimates": [_estimate(plan.model, score) for score in (*result.scores, *result.minimal_sets)],
        "findings": plain(came.findings),
        "tabular": _section(plan, schema, came) | {"counts": counts},
    }
    frozen = freeze.of_run({} if folder is None else folder.plan, plan.as_dict())
    return record if frozen is None else record | {"frozen": frozen}


def _section(plan: TabularPlan, schema: Schema, came: Came) -> dict[str, object]:
    """``tabular``: the result as it is, the schema, and what was asked beside the search."""
    notes = [*came.result.notes]
    if note := bins_note(schema):
        notes.append(note)
    section = came.result.to_record() | {"schema": described(schema)}
    if came.retrained is not None:
        section["retraining"] = came.retrained.to_record()
    if came.slices is not None:
        section["slices"] = plain(came.slices)
    if came.asked is not None:
        section["answers"] = {
            "task": plan.task and came.asked.task.name,
            "format": came.asked.format,
            "replicates": came.asked.replicates,
            "rows": came.asked.statuses(),
            "calls": came.asked.budget.calls,
            "cached": came.asked.client.counts.cached,
        }
    if came.noise is not None:
        section["noise"] = came.noise.to_record(schema.protected)
        notes.append(came.noise.told(schema.protected, plan.replicates, schema.protected))
    return section | {"notes": notes}


def _asked(asked: RowClient) -> dict[str, object]:
    """What was asked of a language model or a server."""
    counts, changed = asked.client.counts, asked.model.changed
    return {
        "counts": {
            "calls": asked.budget.calls,
            "cached": counts.cached,
            "replayed": counts.replayed,
            "retries": counts.retries,
            "tokens_in": counts.tokens_in,
            "tokens_out": counts.tokens_out,
            "cost_usd": counts.cost_usd or None,
            "rows": asked.statuses(),
        },
        "deterministic": asked.model.deterministic,
        "style": asked.model.style,
        "reported": sorted(asked.reported),
        **({"parameters_changed": dict(changed)} if changed else {}),
    }


def _answered(asked: RowClient, evaluator: Evaluator) -> dict[str, object]:
    """Calls, and rows without a label by what became of them."""
    rows = asked.statuses()
    return {
        "calls": asked.budget.calls,
        "cached": asked.client.counts.cached,
        "rows_asked": sum(rows.values()),
        **{name: rows[name] for name in ("failed", "filtered", "refused", "unparsed")},
        "not_judged": evaluator.not_judged,
    }


def _reason(plan: TabularPlan, result: TabularResult, schema: Schema, asked: RowClient) -> str:
    left = asked.left()
    if result.status == "partial" and left is not None and left < len(schema.combos):
        return f"the limit of {plural(plan.max_calls or 0, 'call')} (--max-calls) was reached"
    return result.status_reason


def _files(folder: RunFolder, evaluator: Evaluator, came: Came) -> dict[str, str]:
    """Write what a run folder holds beside the plan, the journal and the record; their hashes."""
    schema, result = evaluator.schema, came.result
    folder.write_text("schema.yaml", dump(schema))
    folder.write_text("finds.csv", finds_csv(schema, result))
    if result.found is not None and len(result.found) and len(schema.protected_index):
        answers = answers_of(evaluator, result.found)
        if answers is not None:
            folder.write_text("pairs.csv", pairs_csv(evaluator, answers))
            save_votes(folder.path / "votes.npz", evaluator, answers)
    if result.judged:
        save_judged(folder.path / "judged.npz", schema, result.judged)
    if came.retrained is not None:
        import skops.io as sio  # type: ignore[import-untyped,unused-ignore]

        sio.dump(came.retrained.model, folder.path / "retrained.skops")
    return {name: userfile.sha256(path) for name in FILES if (path := folder.path / name).is_file()}


def write(folder: RunFolder, record: dict[str, object]) -> None:
    """The record and its page."""
    from auditor.report.html import HtmlReport

    folder.write_run(record)
    folder.write_text(REPORT, HtmlReport().render(folder.record()))


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


def _estimate(model: str, score: Score) -> dict[str, object]:
    return {
        "name": score.name,
        "model": model,
        "format": "",
        "attributes": list(score.columns),
        "directions": None,
        "kind": None,
        "estimate": plain(score.estimate),
        "population": score.population,
    }


def slice_findings(model: str, schema: Schema, found: Slices, first: int) -> list[Finding]:
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
        result.append(finding)
    return result


def findings_of(model: str, delta: float | None, schema: Schema, result: TabularResult) -> list[Finding]:
    """One claim for every score, and one for the finds of a directed search, which have no rate.

    Parameters
    ----------
    delta : float, optional
        The largest score that counts as bounded.
    """
    claims: list[Score | None] = [*result.scores, *result.minimal_sets]
    if result.sampling != "iid":
        claims.append(None)
    return [_finding(model, delta, schema, result, number, score) for number, score in enumerate(claims, 1)]


def _finding(
    model: str, delta: float | None, schema: Schema, result: TabularResult, number: int, score: Score | None
) -> Finding:
    """One claim with its verdict: shown, bounded below δ, or not determined."""
    found = int(result.counts["discriminatory"])
    if score is None:
        return Finding(
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
    rate = score.estimate
    valid = NOTE not in rate.note  # the paper's own rule has no interval that a verdict could rest on
    shown = rate.low > 0
    bounded = delta is not None and rate.high < delta
    verdict: ClaimVerdict = "bounded" if bounded else "shown" if shown else "not_determined"
    few = rate.n < FEWEST and not rate.method.startswith("enumeration")
    if few:
        verdict = "not_determined"
    return Finding(
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


def inputs_of(plan: TabularPlan, schema: Schema, given: int) -> dict[str, object]:
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
