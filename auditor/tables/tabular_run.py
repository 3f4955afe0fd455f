"""A tabular run from plan to report: what it will ask, its resumption, and plans that were frozen beforehand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Set
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import structs

from auditor import models
from auditor.core.errors import (
    BudgetExceeded,
    ConfigError,
    DataFileError,
    ModelFailed,
    RunFolderError,
    UnknownValue,
    UserError,
)
from auditor.core.protocols import Model, Observer
from auditor.core.record import read
from auditor.core.record.rows import METHODS, ExpectedRows, Range, SeenEffect
from auditor.core.types import Progress
from auditor.models.http import HttpTemplate
from auditor.models.row_models import TableModel, load_table_model
from auditor.run import freeze
from auditor.run.audit import outside_loop, require_same_models
from auditor.run.freeze import Frozen
from auditor.run.preparation import require_server, tell_proxies
from auditor.run.result import Result
from auditor.store.folder import RunFolder
from auditor.tables.columns import Codes
from auditor.tables.columns import name as spelled
from auditor.tables.evaluate import NOT_JUDGED, Distance, Evaluator, Limit
from auditor.tables.finds import TabularResult, answers_of, with_examples
from auditor.tables.method_options import OPTIONS, AequitasOptions, SgOptions, ThemisOptions, walks
from auditor.tables.row_client import RowClient, silent
from auditor.tables.row_data import load_rows, load_task
from auditor.tables.row_noise import against_noise, columns_of, measure
from auditor.tables.row_schema import Schema, dump_schema, uniform
from auditor.tables.tabular_plan import REMOVED, TabularPlan, read_settings
from auditor.tables.tabular_record import Opened, Outcome, findings_of, plan_record, record_of, write

LOOKED_AT = 2_000  # rows that a quick model is asked about, to see which labels it gives
KEPT = 1_000_000  # a limit up to which answers are kept, so that finds need not be asked again
POWER = 0.8
WALKS = "how many rows a walk asks about hangs on what it finds"
ASKED_ONCE = (
    "each row is asked once, and the model is not declared deterministic, so nothing will be called shown "
    "(--replicates 3 tests against its noise)"
)
NOISY = "labels are tested against the noise of repeated answers, and how large it is only the run tells"
TREES = "how many rows its neighbourhoods ask about hangs on the paths that it takes"
WALKED = "every possible row is asked about: the scores are exact"


class TabularRun(Result):
    """A finished search; ``result`` holds its scores, pairs and finds as they are."""

    def __init__(self, record: dict[str, object], result: TabularResult, path: Path | None) -> None:
        super().__init__(read(record), path=path, evidence=None, verdicts=())
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


class Outlook(NamedTuple):
    """A plan as far as it can be worked out without asking; ``record`` is as `auditor.run.freeze` takes it."""

    record: Mapping[str, object]
    expected: ExpectedRows


def outlook(plan: TabularPlan, observe: Observer | None = None) -> Outlook:
    """Read data and schema, open the model, and say what will be asked. The model is asked nothing."""

    def look() -> Outlook:
        opened = open_plan(plan, None, observe or silent)
        with closing(opened.model):
            return Outlook(plan_record(opened), expected(opened))

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
    schema, rows, labels = load_rows(plan)
    options = OPTIONS[plan.method].of(plan.options)
    if folder is not None and folder.plan.get("schema_text") != dump_schema(schema):
        raise RunFolderError(
            f"the schema is not what it was when {folder.path} began: undo the change, or start a new run"
        )
    asked = _served(plan, schema, folder, tell) if plan.served else None
    model = _opened(plan, schema) if asked is None else asked.table_model()

    def watch(rows: int) -> None:
        if asked is None:  # a client tells of its calls itself
            tell(Progress(phase="rows asked", model=plan.model, done=rows, planned=plan.max_evaluations))

    evaluator = Evaluator(
        model.predict,
        schema,
        cache=model.slow,
        keep=plan.max_evaluations is not None and plan.max_evaluations <= KEPT,
        budget=Limit(evaluations=plan.max_evaluations, seconds=plan.max_seconds),
        frame=model.frame,
        distance=Distance(plan.distance_threshold),
        left=None if asked is None else asked.left,
        watch=watch,
    )
    opened = Opened(plan, rows, labels, options, model, asked, evaluator)
    try:
        require_favourable(opened)
    except UserError:
        model.close()
        raise
    return opened


def _audit(plan: TabularPlan, tell: Observer, folder: RunFolder | None, frozen: Frozen | None) -> TabularRun:
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
        try_one(opened)
        say(f"{METHODS[plan.method]} on {plan.model}")
        # Scores are about the rows as they are; a search starts from the codes that represent them.
        rows = opened.rows if plan.method == "themis" else schema.binned(opened.rows)
        method = import_module(f"auditor.tables.{plan.method}")
        result: TabularResult = method.run(evaluator, opened.options, np.random.default_rng(plan.seed), rows)
        answers = answers_of(evaluator, result.finds)
        result = with_examples(evaluator, result, answers)
        result = dataclasses.replace(result, notes=(*schema.notes, *result.notes))
        findings = findings_of(opened, result)
        noise = None
        if asked is not None and not asked.model.deterministic:
            sets = [columns_of(finding, schema.protected) for finding in findings]
            read = asked.repeated() if plan.replicates > 1 else []
            noise = measure(read, schema, sets, plan.seed, complete=result.whole_cases)
            findings = against_noise(findings, noise, plan.replicates, schema.protected)
        record = record_of(Outcome(opened, result, answers, findings, noise), started, folder)
        if folder is not None:
            write(folder, record)
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


def _opened(plan: TabularPlan, schema: Schema) -> TableModel:
    if plan.server:
        raise ConfigError(f"--server is for models behind a server; {plan.model} cannot use it.")
    return load_table_model(plan.model, schema.names, trust_pickle=plan.trust_pickle, max_seconds=plan.max_seconds)


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


def try_one(opened: Opened) -> None:
    """Ask about one row, and one that lacks a value; a quick model about more until it gives the favourable label."""
    evaluator, rows, schema = opened.evaluator, opened.rows, opened.schema
    columns = schema.columns
    # Slow and limited models meet rows that lack values in the search: what may be asked belongs to it.
    spared = evaluator.slow or evaluator.remaining is not None
    lacking = [] if spared else [rows[:, j] == column.codes - 1 for j, column in enumerate(columns) if column.may_lack]
    seen: set[str] = set()

    def look(rows: Codes) -> None:
        seen.update(evaluator.label_name(code) for code in set(evaluator.labels(rows).tolist()) - {NOT_JUDGED})

    try:
        for row in dict.fromkeys([0, *(int(r.argmax()) for r in lacking)] if len(rows) else ()):
            look(rows[row : row + 1])
        if not spared and favourable(opened, seen)[0] is not None:
            look(rows[:LOOKED_AT] if len(rows) else uniform(schema, LOOKED_AT, np.random.default_rng(opened.plan.seed)))
    except BudgetExceeded:
        return  # the method meets the limit itself and reports a partial result
    except ModelFailed as error:
        if not isinstance(error.__cause__, ValueError | TypeError | IndexError | KeyError):
            raise
        raise ConfigError(
            f"model {opened.model.name} cannot read a row of {len(columns)} columns ({', '.join(schema.names)}): "
            f"{error}. Does the schema have the columns it was trained on?"
        ) from error
    require_favourable(opened, seen)


def favourable(opened: Opened, seen: Set[str]) -> tuple[UnknownValue | None, bool]:
    """Return an error where the favourable label is not known to be one, and whether all labels are known.

    A classifier and a task say which labels they have. Other models have those in ``seen``, and those of the data if
    they have one in common.
    """
    wanted, asked = opened.schema.favourable, opened.asked
    if wanted is None or opened.evaluator.distance.numeric:
        return None, True
    of_data = {} if opened.labels is None else {spelled(v): str(v) for v in dict.fromkeys(opened.labels.tolist())}
    task = None if asked is None else asked.task
    own = getattr(opened.model.estimator, "classes_", None) if task is None else task.labels
    shared = not seen.isdisjoint(of_data)
    if own is not None and np.ndim(own) == 1:
        known, certain = {spelled(v): spelled(v) for v in own}, True
    else:
        known = {label: label for label in sorted(seen)} | (of_data if shared or not seen else {})
        certain = shared or len(seen) > 1
    if spelled(wanted) in known:
        return None, certain
    quote = " (in YAML, yes and no are quoted)" if isinstance(wanted, bool) else ""
    return UnknownValue("--favourable", str(wanted), "label" + quote, known.values()), certain


def require_favourable(opened: Opened, seen: Set[str] = frozenset()) -> None:
    """Refuse a favourable label that the model does not have, as far as that is known."""
    strange, certain = favourable(opened, seen)
    if strange is not None and certain:
        raise strange


def expected(opened: Opened) -> ExpectedRows:
    """Return cases, questions, and the smallest share of changes that a plan can show where a model repeats itself."""
    plan, evaluator, options, rows = opened.plan, opened.evaluator, opened.options, len(opened.rows)
    combos, cases, left = len(evaluator.schema.combos), int(evaluator.schema.cases), evaluator.remaining
    if isinstance(options, ThemisOptions):
        made = _themis(evaluator, rows, options, combos)
    elif isinstance(options, AequitasOptions):
        trials, size = options.estimate(evaluator.schema, left)
        drawn = min(trials * size, cases)
        most = min(options.generated or cases, cases, options.global_n * (1 + options.local_n))
        exact = drawn == cases
        made = ExpectedRows(
            cases=Range(at_least=1, at_most=most),
            evaluations=Range(at_most=(most + drawn) * combos, reason=WALKS if options.local_n else ""),
            effect=None if exact else effect(drawn or options.global_n),
            effect_reason="the share is taken over every case there is, so it is exact" if exact else "",
        )
    else:
        assert isinstance(options, SgOptions)
        made = ExpectedRows(
            cases=Range(at_least=1, at_most=min(options.limit, cases)),
            evaluations=Range(at_least=combos, reason=TREES),
            effect_reason="the cases are searched for: they have no rate",
        )
    if opened.asked is not None and not opened.asked.model.deterministic:
        made = structs.replace(made, effect=None, effect_reason=NOISY if plan.replicates > 1 else ASKED_ONCE)
    asked = made.evaluations
    if rows:  # one row is tried first
        least, most_rows = (None if n is None else n + 1 for n in (asked.at_least, asked.at_most))
        asked = structs.replace(asked, at_least=least, at_most=most_rows)
    if left is not None and (asked.at_most is None or asked.at_most > left):
        asked = structs.replace(asked, at_most=left, reason="the limit")
    limits = {name: getattr(plan, name) for name in ("max_evaluations", "max_calls", "max_cost", "max_seconds")}
    return structs.replace(
        made,
        combinations=combos,
        given_rows=rows,
        evaluations=asked,
        limits={name: value for name, value in limits.items() if value is not None},
        calls_at_most=asked.at_most * plan.replicates if plan.served and asked.at_most is not None else None,
    )


def effect(n: int) -> SeenEffect:
    """Return the share of changes of which ``n`` independent cases show one with a probability of 80 %."""
    return SeenEffect(n=n, power=POWER, share=1 - (1 - POWER) ** (1 / n))


def _themis(evaluator: Evaluator, rows: int, settings: ThemisOptions, combos: int) -> ExpectedRows:
    schema, search, printed = evaluator.schema, settings.theta is not None, settings.protocol == "themis"
    own = 0 if search or printed else rows * combos
    if not printed and walks(evaluator, settings):
        every = Range.exactly(int(schema.size) + own)
        return ExpectedRows(cases=Range.exactly(int(schema.cases)), evaluations=every, effect_reason=WALKED)
    left, most = evaluator.remaining, settings.most
    if search:  # each set of columns has as many combinations as the product of its values
        combos = math.prod(1 + card for card in schema.cards[schema.protected_index].tolist()) - 1
    elif left is not None:
        most = min(most, left // combos)
    least = min(settings.least, most)
    reason = ""
    if printed:  # both scores draw rows of their own, the group score for each group
        most, reason = 2 * settings.most, "the paper's stopping rule has no interval that holds after stopping"
    elif not most:
        reason = "the limit leaves no case"
    return ExpectedRows(
        cases=Range(at_least=least, at_most=most),
        evaluations=Range(at_least=None if search else least * combos, at_most=most * combos + own),
        effect=None if reason else effect(least),  # sampling may stop there: no more is certain beforehand
        effect_reason=reason,
    )
