"""A tabular run from plan to report: what it will ask, its resumption, and plans that were frozen beforehand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import numpy as np

from auditor import models
from auditor.core.errors import BudgetExceeded, ConfigError, DataFileError, RunFolderError, UnknownValue, UserError
from auditor.core.protocols import Model, Observer
from auditor.core.record import read
from auditor.core.record.rows import METHODS, ExpectedRows, Range
from auditor.core.types import Progress
from auditor.models.http import HttpTemplate
from auditor.models.row_models import load_table_model
from auditor.run import freeze
from auditor.run.audit import Result, outside_loop, require_same_models
from auditor.run.freeze import Frozen
from auditor.run.preparation import require_server, tell_proxies
from auditor.run.state import silent
from auditor.store.folder import REPORT, RunFolder
from auditor.tables.columns import Codes
from auditor.tables.columns import name as spelled
from auditor.tables.evaluate import NOT_JUDGED, Distance, Evaluator
from auditor.tables.finds import TabularResult, with_examples
from auditor.tables.method_options import OPTIONS, AequitasOptions, SgOptions, ThemisOptions, walks
from auditor.tables.row_client import RowClient
from auditor.tables.row_data import load_rows, load_task
from auditor.tables.row_noise import measure
from auditor.tables.row_schema import Schema, dump_schema, uniform
from auditor.tables.tabular_plan import REMOVED, TabularPlan, read_settings
from auditor.tables.tabular_record import Opened, findings_of, plan_record, record_of

KEPT = 1_000_000  # a limit up to which answers are kept, so that finds need not be asked again
LOOKED_AT = 2_000  # rows that a function is asked about, to see which labels it gives


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


def outlook(plan: TabularPlan, observe: Observer | None = None) -> tuple[Mapping[str, object], ExpectedRows]:
    """Return the record of a plan, as `auditor.run.freeze` takes it, and what will be asked. Nothing is asked yet."""

    def look() -> tuple[Mapping[str, object], ExpectedRows]:
        opened = open_plan(plan, None, observe or silent)
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
            stored = {"schema_text": dump_schema(schema)} | _before(opened, frozen, tell)
            folder = stack.enter_context(RunFolder.create(Path(plan.out), plan.as_dict() | stored))
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


def _before(opened: Opened, frozen: Frozen | None, tell: Observer) -> dict[str, object]:
    """What ``plan.json`` has besides the settings, before anything is asked: hashes, fingerprint, frozen plan."""
    record = plan_record(opened)
    about = {name: record[name] for name in ("inputs", "fingerprints")}
    if frozen is None:
        return about
    reference = freeze.reference(frozen, record)
    for row in reference["deviations"]:
        tell(Progress(phase="deviation from the frozen plan", done=0, message=str(row["what"])))
    return about | {"frozen": reference}


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
