"""The run record of a search over rows: estimates, findings with their verdicts, and the files of its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from auditor.core import reading
from auditor.core.record import RunRecord, frame
from auditor.core.record.rows import Score
from auditor.core.shown import plural, verb
from auditor.core.types import ClaimVerdict, Estimate, Finding, digest
from auditor.measure.comparison import Change, Comparison, RateChange, comparison_of
from auditor.run import freeze
from auditor.store.folder import IN_MEMORY, RunFolder
from auditor.tables.columns import Codes
from auditor.tables.evaluate import Evaluator
from auditor.tables.finds import Known, TabularResult, pairs_csv, plain, save_votes
from auditor.tables.method_options import NOTE, OptionSet
from auditor.tables.row_data import load_task
from auditor.tables.row_schema import Schema, dump_schema
from auditor.tables.tabular_plan import TabularPlan

if TYPE_CHECKING:
    from auditor.models.row_models import TableModel
    from auditor.tables.row_client import RowClient
    from auditor.tables.row_noise import Noise


FILES = ("schema.yaml", "pairs.csv", "votes.npz")
PACKAGES = ("numpy", "scipy", "scikit-learn", "skops", "z3-solver", "lime")
STATUSES = ("ok", "unparsed", "refused", "filtered", "failed", "divided")  # divided: replicates without a majority
FEWEST_ROWS = 10  # rows below which a score is called neither shown nor bounded
NAMES = {
    "apparent_causal": "apparent causal score",
    "apparent_group": "apparent group score",
    "discriminatory_share": "share of cases whose label changes with a change",
}


class Opened(NamedTuple):
    """A plan with what it names: rows, the options of the method, the model, and what asks it."""

    plan: TabularPlan
    rows: Codes  # of ``--data``
    options: OptionSet  # of the method
    model: TableModel
    asked: RowClient | None  # behind a task or a server
    evaluator: Evaluator

    @property
    def schema(self) -> Schema:
        """What a row may hold."""
        return self.evaluator.schema


def record_of(
    opened: Opened,
    result: TabularResult,
    known: Known,
    findings: Sequence[Finding],
    noise: Noise | None,
    started: datetime,
    folder: RunFolder | None,
) -> dict[str, object]:
    """Return ``run.json`` of a tabular run; rows and seconds include pairs, ``noise`` is that of repeated answers."""
    plan, asked, evaluator, fingerprint = opened.plan, opened.asked, opened.evaluator, opened.model.fingerprint
    # The report is left out: `audit report` writes it anew, and the register names its hash.
    files = {} if folder is None else {"files": _files(folder, evaluator, known)}
    seconds = (datetime.now(UTC) - started).total_seconds()
    counts: dict[str, object] = {
        **result.counts,
        "evaluations_in_all": evaluator.evaluations,
        "seconds": round(seconds, 3),
    }
    reason = result.status_reason
    of_model: dict[str, object] = {"counts": {"calls": evaluator.evaluations}}
    section = _section(result, opened.schema, noise) | {"counts": dict(counts)}
    if asked is not None:
        left, lost = asked.left(), {status: asked.rows[status] for status in STATUSES}
        if result.status == "partial" and left is not None and left < len(opened.schema.combos):
            reason = f"the limit of {plural(plan.max_calls or 0, 'call')} (--max-calls) was reached"
        used, calls = asked.used(), asked.budget.calls
        replays = {name: getattr(asked.client.counts, name) for name in ("replayed", "retries")}
        changed = asked.model.changed
        of_model = {
            "deterministic": asked.model.deterministic,
            "style": asked.model.style,
            "reported": sorted(asked.reported),
            **({"parameters_changed": dict(changed)} if changed else {}),
            "counts": {"calls": calls, **used, **replays, "rows": lost},
        }
        counts |= {
            **asked.budget.as_record([asked.model]),
            "cached": used["cached"],
            "rows_asked": sum(lost.values()),
            **{name: lost[name] for name in ("failed", "filtered", "refused", "unparsed")},
            "not_judged": evaluator.not_judged,
        }
        section["answers"] = {
            "task": asked.task and asked.task.name,
            "format": asked.format,
            "replicates": plan.replicates,
            "rows": lost,
            "calls": calls,
            "cached": used["cached"],
        }
    facts = {"model_fingerprint": fingerprint, **inputs_of(opened), **files}
    id, plan_sha256 = (IN_MEMORY, None) if folder is None else (folder.id, folder.plan_sha256)
    record = {
        **frame(id, plan_sha256, plan.as_dict(), facts, started, seconds, reason=reason, packages=PACKAGES),
        "models": {plan.model: {"fingerprint": fingerprint, **of_model}},
        "counts": counts,
        "estimates": [
            {
                "name": score.name,
                "model": plan.model,
                "format": "",
                "attributes": list(score.columns),
                "directions": None,
                "kind": None,
                "estimate": plain(score.estimate),
                "population": score.population,
            }
            for score in (*result.scores, *result.minimal_sets)
        ],
        "findings": plain(findings),
        "tabular": section,
    }
    frozen = freeze.of_run({} if folder is None else folder.plan, plan.as_dict())
    return record if frozen is None else record | {"frozen": frozen}


def _section(result: TabularResult, schema: Schema, noise: Noise | None) -> dict[str, object]:
    """``tabular``: the result as it is, the schema, and further measures."""
    notes = [*result.notes]
    if binned := ", ".join(f"{c.name} ({c.codes})" for c in schema.columns if c.kind == "binned"):
        notes.append(
            f"Searched, uniform and enumerated rows take one value for each bin of {binned}: what a model does between "
            "these values they cannot show. Given rows in scores were asked with the values that they have."
        )
    section = result.to_record() | {"schema": described(schema)}
    if noise is not None:
        section["noise"] = {name: value for name, value in asdict(noise).items() if name != "note"}
        notes.append(noise.note)
    return section | {"notes": notes}


def _files(folder: RunFolder, evaluator: Evaluator, known: Known) -> dict[str, str]:
    """Write what a run folder holds beside the plan, the journal and the record; their hashes."""
    folder.write_text("schema.yaml", dump_schema(evaluator.schema))
    if any(known):
        folder.write_text("pairs.csv", pairs_csv(evaluator, known))
    if known.of_method is not None:
        save_votes(folder.path / "votes.npz", evaluator, known.of_method)
    return {name: reading.sha256(path) for name in FILES if (path := folder.path / name).is_file()}


def described(schema: Schema) -> dict[str, object]:
    """What a report says about a schema."""
    return {
        "name": schema.name,
        "columns": schema.d,
        "protected": list(schema.protected),
        "binned": [c.name for c in schema.columns if c.kind == "binned"],
        "rows_in_domain": str(schema.size),
        "cases_in_domain": str(schema.cases),
        "constraints": list(schema.constraints),
        "sha256": digest(dump_schema(schema)),
    }


def findings_of(opened: Opened, result: TabularResult) -> list[Finding]:
    """One claim for every score, and one for the finds of a directed search, which have no rate."""
    plan, schema = opened.plan, opened.schema
    claims = [_of_score(plan, score) for score in (*result.scores, *result.minimal_sets)]
    if result.sampling != "iid":
        n = int(result.counts["discriminatory"])
        cases = f"{plural(n, 'distinct case')} {verb(n, 'was', 'were')} found"
        text = f"{cases} whose label changes with {', '.join(schema.protected)}"
        note = "searched for, not sampled: the number says nothing about how often this happens"
        verdict: ClaimVerdict = "shown" if n else "not_determined"
        claims.append(_claim(plan, "finds", schema.protected, verdict, text, note))
    return [replace(claim, id=f"T{number}") for number, claim in enumerate(claims, 1)]


def _claim(
    plan: TabularPlan, code: str, columns: tuple[str, ...], verdict: ClaimVerdict, text: str, *notes: str
) -> Finding:
    return Finding(
        id="",
        kind="claim",
        code=f"tabular-{code}",
        model=plan.model,
        attributes=columns,
        verdict=verdict,
        text=text,
        notes=notes,
    )


def _of_score(plan: TabularPlan, score: Score) -> Finding:
    """One claim with its verdict: shown, bounded below δ, or not determined."""
    rate, delta = score.estimate, plan.delta
    few = rate.n < FEWEST_ROWS and not rate.method.startswith("enumeration")
    verdict: ClaimVerdict = "not_determined"
    if NOTE in rate.note:  # the paper's own rule has no interval that a verdict could rest on
        verdict = "not_tested"
    elif not few and delta is not None and rate.high < delta:
        verdict = "bounded"
    elif not few and rate.low > 0:
        verdict = "shown"
    notes = [f"{plural(rate.n, 'row')}: fewer than {FEWEST_ROWS} support no statement"] if few else []
    text = f"{NAMES.get(score.name, score.name + ' score')} of {', '.join(score.columns)}, {score.population}"
    return replace(_claim(plan, score.name.replace("_", "-"), score.columns, verdict, text, *notes), rate=rate)


def inputs_of(opened: Opened) -> dict[str, object]:
    """Hashes of what shapes the questions: rows, schema, task with its prompts."""
    plan, schema, rows = opened.plan, opened.schema, len(opened.rows)
    inputs: dict[str, object] = {"schema": {"name": schema.name, "sha256": digest(dump_schema(schema))}}
    if plan.data:
        inputs["rows"] = {"source": plan.data, "n": rows, "sha256": reading.sha256(plan.data)}
    if plan.task is not None:
        inputs["task_sha256"] = load_task(plan.task).sha256
    return inputs


def plan_record(opened: Opened) -> dict[str, object]:
    """``plan``, ``inputs`` and ``fingerprints``, as `auditor.run.freeze` takes them."""
    return {
        "plan": opened.plan.as_dict(),
        "inputs": inputs_of(opened),
        "fingerprints": {opened.plan.model: opened.model.fingerprint},
    }


def compared(first: RunRecord, second: RunRecord) -> Comparison:
    """Compare two runs over rows; scores differ if both are exact, or if their intervals do not overlap."""
    notes = []
    if first.rows.schema.sha256 != second.rows.schema.sha256:
        notes.append("the schemas are not the same, so a score may differ because its rows do")
    for name, record in (("before", first), ("after", second)):
        if record.rows.sampling == "directed":
            notes.append(
                f"the cases of the run {name} were searched for: their number hangs on the search and its length"
            )
    # The whole domain is one population, however it was looked at.
    before, after = (
        {(s.name, s.columns, s.population.partition(" (")[0]): s.estimate for s in record.rows.measured}
        for record in (first, second)
    )
    rates = []
    for name, columns, population in sorted(before.keys() | after.keys()):
        a, b = (side.get((name, columns, population)) for side in (before, after))
        if a is None or b is None:
            tested = RateChange(reason=f"measured only in the run {'before' if b is None else 'after'}")
        else:
            tested = _difference(a, b)
        said = f"{NAMES.get(name, name + ' score')}, {population}"
        rates.append(replace(tested, format=said, attributes=columns))
    return comparison_of(first, second, rates, notes=notes, unit="row")


def _difference(a: Estimate, b: Estimate) -> RateChange:
    valid = not any(NOTE in e.note for e in (a, b))
    exact = all(e.method.startswith("enumeration") for e in (a, b))
    difference = b.value - a.value
    change: Change = "unclear"
    if exact and not difference:
        change = "same"
    elif not valid:
        change = "untested"
    elif exact or a.high < b.low or b.high < a.low:
        change = "worse" if difference > 0 else "better"
    test = "both exact" if exact else "intervals that do not overlap" if valid else ""
    return RateChange(
        change=change,
        test=test,
        before=a.value,
        after=b.value,
        difference=difference,
        n_before=a.n,
        n_after=b.n,
        reason="" if valid else NOTE,
    )
