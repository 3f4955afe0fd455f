"""A tabular run from plan to record: what it will ask, its resumption, and plans that were frozen beforehand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from auditor import models
from auditor.core import reading
from auditor.core.errors import BudgetExceeded, ConfigError, DataFileError, RunFolderError, UnknownValue, UserError
from auditor.core.protocols import Model, Observer
from auditor.core.record import RunRecord, frame, read
from auditor.core.record.rows import METHODS, ExpectedRows, Range, Score
from auditor.core.shown import plural, verb
from auditor.core.types import ClaimVerdict, Estimate, Finding, Progress, digest
from auditor.measure.comparison import Change, Comparison, RateChange, comparison_of
from auditor.models.http import HttpTemplate
from auditor.models.row_models import load_table_model
from auditor.run import freeze
from auditor.run.audit import Result, outside_loop, require_same_models
from auditor.run.freeze import Frozen
from auditor.run.preparation import require_server, tell_proxies
from auditor.run.state import silent
from auditor.store.folder import IN_MEMORY, REPORT, RunFolder
from auditor.tables.columns import Codes
from auditor.tables.columns import name as spelled
from auditor.tables.evaluate import NOT_JUDGED, Distance, Evaluator
from auditor.tables.finds import Known, TabularResult, pairs_csv, plain, save_votes, with_examples
from auditor.tables.row_client import RowClient, measure
from auditor.tables.row_data import load_rows, load_task
from auditor.tables.row_schema import Schema, dump_schema, uniform
from auditor.tables.tabular_plan import (
    NOTE,
    OPTIONS,
    REMOVED,
    AequitasOptions,
    OptionSet,
    SgOptions,
    TabularPlan,
    ThemisOptions,
    read_settings,
    walks,
)

if TYPE_CHECKING:
    from auditor.models.row_models import TableModel
    from auditor.tables.row_client import Noise, RowClient

KEPT = 1_000_000  # a limit up to which answers are kept, so that finds need not be asked again
LOOKED_AT = 2_000  # rows that a function is asked about, to see which labels it gives
FILES = ("schema.yaml", "pairs.csv", "votes.npz")
PACKAGES = ("numpy", "scipy", "scikit-learn", "skops", "z3-solver", "lime")
STATUSES = ("ok", "unparsed", "refused", "filtered", "failed", "divided")  # divided: replicates without a majority
FEWEST_ROWS = 10  # rows below which a score is called neither shown nor bounded
NAMES = {
    "apparent_causal": "apparent causal score",
    "apparent_group": "apparent group score",
    "discriminatory_share": "share of cases whose label changes with a change",
}


class TabularRun(Result):
    """A finished search; ``result`` holds its scores, pairs and finds as they are."""

    def __init__(self, record: dict[str, object], result: TabularResult, path: Path | None) -> None:
        super().__init__(read(record), path=path, evidence=None, verdicts=tuple)
        self.result = result


def audit_table(plan: TabularPlan, *, observe: Observer | None = None, frozen: Frozen | None = None) -> TabularRun:
    """Run one method on one model of rows; deviations from a ``frozen`` plan are recorded.

    Raises `UserError` where a file, option or model is wrong.
    """
    return outside_loop(lambda: _audit(plan, observe or silent, None, frozen))


def resume_table(
    path: Path, *, observe: Observer | None = None, limits: Mapping[str, object] | None = None
) -> TabularRun:
    """Finish a run with a task or an ``http:`` model that was cut off: the search runs again on known answers.

    ``limits`` are new ``max_calls``, ``max_cost`` or ``max_seconds`` of the whole run. Raises `RunFolderError` where it
    is no such run, or its schema changed.
    """
    with RunFolder.open(path, write=True) as folder:
        stored = folder.plan | {k: v for k, v in (limits or {}).items() if v is not None}
        if stored.get("kind") != freeze.ROWS or not TabularPlan.from_dict(stored).served:
            raise RunFolderError(
                f"{path} is not a tabular run with a task or an http: model. Start other tabular runs again"
            )
        return outside_loop(lambda: _audit(TabularPlan.from_dict(stored), observe or silent, folder, None))


def outlook(plan: TabularPlan, observe: Observer = silent) -> tuple[Mapping[str, object], ExpectedRows]:
    """Return the record of a plan, as `auditor.run.freeze` takes it, and what will be asked. Nothing is asked yet."""

    def look() -> tuple[Mapping[str, object], ExpectedRows]:
        opened = open_plan(plan, None, observe)
        with closing(opened.model):
            return plan_record(opened), expected(opened)

    return outside_loop(look)


def load_frozen(path: Path) -> Frozen:
    """Read a frozen plan of rows and check its hash."""
    frozen = freeze.load(path)
    if frozen.kind != freeze.ROWS:
        raise ConfigError(f"{path} is a plan for texts. Run it with: audit run --plan {path}")
    if unknown := sorted(set(frozen.settings) - TabularPlan.written() - REMOVED.keys() - {"kind"}):
        raise DataFileError(f"{path}: plan: unknown setting {unknown[0]!r}")
    return frozen


def with_flags(frozen: Frozen, flags: Mapping[str, object]) -> TabularPlan:
    """The plan to run: as frozen, but for what was given beside it; options one by one."""
    options = read_settings([frozen.settings["options"], flags["options"]])
    return TabularPlan.from_dict({**frozen.settings, **flags, "options": options})


def open_plan(plan: TabularPlan, folder: RunFolder | None, tell: Observer) -> Opened:
    """Open schema, rows, options and model, checked before anything is asked; ``folder`` is that of a resumed run."""
    if "data" in plan.options:
        raise ConfigError("--set data: this is not an option of a method. Name the file: --data FILE")
    schema, rows = load_rows(plan)
    options = OPTIONS[plan.method].of(plan.options)
    if folder is not None and folder.plan.get("schema_text") != dump_schema(schema):
        raise RunFolderError(
            f"the schema is not what it was when {folder.path} began: undo the change, or start a new run"
        )
    asked = _served(plan, schema, folder, tell) if plan.served else None
    if asked is not None:
        model = asked.table_model()
    elif plan.server:
        raise ConfigError(f"--server is for models behind a server; {plan.model} cannot use it.")
    else:
        model = load_table_model(plan.model, schema.names, trust_pickle=plan.trust_pickle, max_seconds=plan.max_seconds)

    def watch(rows: int) -> None:
        if asked is None:  # a client tells of its calls itself
            tell(Progress(phase="rows asked", model=plan.model, done=rows, planned=plan.max_evaluations))

    evaluator = Evaluator(
        model.predict,
        schema,
        cache=model.slow,
        keep=plan.max_evaluations is not None and plan.max_evaluations <= KEPT,
        max_evaluations=plan.max_evaluations,
        max_seconds=plan.max_seconds,
        frame=model.frame,
        distance=Distance(plan.distance_threshold),
        left=None if asked is None else asked.left,
        watch=watch,
    )
    opened = Opened(plan, rows, options, model, asked, evaluator)
    try:
        require_favourable(opened)
    except UserError:
        model.close()
        raise
    return opened


def _audit(plan: TabularPlan, tell: Observer, folder: RunFolder | None, frozen: Frozen | None) -> TabularRun:
    from auditor.report.html import HtmlReport

    started = datetime.now(UTC)

    def say(message: str) -> None:
        tell(Progress(phase="tabular", done=0, message=message))

    say(f"reading {plan.data or 'the schema'}")
    with ExitStack() as stack:
        opened = open_plan(plan, folder, tell)
        stack.callback(opened.model.close)
        schema, evaluator, asked = opened.schema, opened.evaluator, opened.asked
        if folder is not None:
            require_same_models(folder.plan.get("fingerprints") or {}, {plan.model: opened.model.fingerprint})
        elif plan.out:  # the plan names the model, so the model comes first
            made = plan_record(opened)
            stored = plan.as_dict() | {name: made[name] for name in ("inputs", "fingerprints")}
            stored |= {"schema_text": dump_schema(schema)}
            stored |= {} if frozen is None else freeze.tell_deviations(frozen, made, tell)
            folder = stack.enter_context(RunFolder.create(Path(plan.out), stored))
            if asked is not None:
                asked.journal(folder)
        look_for_favourable(opened)
        say(f"{METHODS[plan.method]} on {plan.model}")
        # Scores are about the rows as they are; a search starts from the codes that represent them.
        rows = opened.rows if plan.method == "themis" else schema.binned(opened.rows)
        method = import_module(f"auditor.tables.{plan.method}")
        result: TabularResult = method.run(evaluator, opened.options, np.random.default_rng(plan.seed), rows)
        result, known = with_examples(evaluator, result)
        result = dataclasses.replace(result, notes=(*schema.notes, *result.notes))
        findings = findings_of(opened, result)
        noise = None
        if asked is not None and not asked.model.deterministic:
            said = asked.repeated() if plan.replicates > 1 else []
            noise = measure(said, schema, plan.seed, replicates=plan.replicates, complete=result.whole_cases)
            findings = noise.beside(findings)
        record = record_of(opened, result, known, findings, noise, started, folder)
        if folder is not None:
            folder.write_run(record)
            folder.write_text(REPORT, HtmlReport().render(folder.run()))
        return TabularRun(record, result, None if folder is None else folder.path)


def _served(plan: TabularPlan, schema: Schema, folder: RunFolder | None, tell: Observer) -> RowClient:
    """The client of a model behind a task or a server."""
    require_server(plan, [plan.model])
    task = None if plan.task is None else load_task(plan.task)
    adapter: Model
    if task is None:
        adapter = HttpTemplate(plan.model.partition(":")[2], rows=True)
    else:
        adapter = models.make(plan.model, base_url=plan.base_url, task=task, server=plan.settings_for(plan.model))
    tell_proxies([adapter], tell)
    return RowClient(adapter, task, schema, plan, folder=folder, tell=tell)


def require_favourable(opened: Opened) -> None:
    """Refuse a favourable label that the task or the classifier does not have; other models say theirs in the run."""
    task = None if opened.asked is None else opened.asked.task
    own = getattr(opened.model.estimator, "classes_", None) if task is None else task.labels
    if own is not None and np.ndim(own) == 1 and not opened.evaluator.distance.numeric:
        _require_label(opened.schema.favourable, [spelled(label) for label in own])


def look_for_favourable(opened: Opened) -> None:
    """Refuse a favourable label that a function on this machine does not give to many rows, but two others."""
    evaluator = opened.evaluator
    try:
        codes = set(evaluator.labels(_looked_at(opened)).tolist()) - {NOT_JUDGED}
    except BudgetExceeded:
        return
    if len(codes) > 1:
        _require_label(opened.schema.favourable, sorted(map(evaluator.label_name, codes)))


def _looked_at(opened: Opened) -> Codes:
    """Return the rows that tell the labels of a model; none where nobody needs them or something else tells them."""
    evaluator, rows = opened.evaluator, opened.rows
    no_need = evaluator.slow or getattr(opened.model.estimator, "classes_", None) is not None
    if opened.schema.favourable is None or no_need or evaluator.distance.numeric:
        return rows[:0]
    most = LOOKED_AT if evaluator.remaining is None else min(LOOKED_AT, evaluator.remaining // 4)
    return rows[:most] if len(rows) else uniform(opened.schema, most, np.random.default_rng(opened.plan.seed))


def _require_label(wanted: object, known: Sequence[str]) -> None:
    if wanted is not None and spelled(wanted) not in known:
        quote = " (in YAML, yes and no are quoted)" if isinstance(wanted, bool) else ""
        raise UnknownValue("--favourable", str(wanted), "label" + quote, known)


def expected(opened: Opened) -> ExpectedRows:
    """Return how many cases and questions a plan has, as far as that is known beforehand."""
    plan, evaluator, options, rows = opened.plan, opened.evaluator, opened.options, len(opened.rows)
    combos, all_cases, left = len(evaluator.schema.combos), int(evaluator.schema.cases), evaluator.remaining
    reason, most = "", None
    if isinstance(options, ThemisOptions):
        cases, most = _themis(evaluator, rows, options, combos)
    elif isinstance(options, AequitasOptions):
        trials, size = options.estimate(evaluator.schema, left)
        made = min(options.generated or all_cases, all_cases, options.global_n * (1 + options.local_n))
        cases = Range(at_least=1, at_most=made)
        reason = "how many rows a walk asks about hangs on what it finds" if options.local_n else ""
        most = (made + min(trials * size, all_cases)) * combos
    else:
        assert isinstance(options, SgOptions)
        cases = Range(at_least=1, at_most=min(options.limit, all_cases))
        reason = "how many rows its neighbourhoods ask about hangs on the paths that it takes"
    most = None if most is None else most + len(_looked_at(opened))
    if left is not None and (most is None or most > left):
        most, reason = left, "the limit"
    limits = {name: getattr(plan, name) for name in ("max_evaluations", "max_calls", "max_cost", "max_seconds")}
    return ExpectedRows(
        combinations=combos,
        given_rows=rows,
        cases=cases,
        evaluations=Range(at_most=most, reason=reason),
        limits={name: value for name, value in limits.items() if value is not None},
        calls_at_most=most * plan.replicates if plan.served and most is not None else None,
    )


def _themis(evaluator: Evaluator, rows: int, settings: ThemisOptions, combos: int) -> tuple[Range, int]:
    """Cases, and the rows that are asked about at most."""
    schema, search, printed = evaluator.schema, settings.theta is not None, settings.protocol == "themis"
    own = 0 if search or printed else rows * combos
    if search:  # each set of columns has as many combinations as the product of its values
        combos = math.prod(1 + card for card in schema.cards[schema.protected_index].tolist()) - 1
    if not printed and walks(evaluator, settings):
        return Range.exactly(int(schema.cases)), int(schema.size) + own
    most = settings.most
    if evaluator.remaining is not None and not search:
        most = min(most, evaluator.remaining // combos)
    if printed:  # both scores draw rows of their own, the group score for each group
        most *= 2
    return Range(at_least=min(settings.least, most), at_most=most), most * combos + own


# -- the record: estimates, findings with their verdicts, and the files of its folder -------------------------


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
