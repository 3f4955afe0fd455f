"""Joins the stages for tables: data and schema, a model of rows, a method, the record, the reports.

Beside `auditor.pipeline`: tabular search asks the model about millions of coded rows through one batch call,
so cases do not go through the journal one by one; only counts, scores and exemplars are kept. A language model
that decides on rows (``task``) is asked through the client, and its answers are journaled like those of an audit.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor._version import __version__
from auditor.errors import BudgetExceeded, ConfigError, DataFileError, RunFolderError, UserError
from auditor.types import FORMAT_VERSION, Case, Progress, Prompt, Response, Sampling, Variant

if TYPE_CHECKING:
    from auditor.models.rows import RowClient
    from auditor.models.tables import TableModel
    from auditor.protocols import Observer
    from auditor.store.folder import RunFolder
    from auditor.suites.tabular.evaluate import Evaluator
    from auditor.suites.tabular.result import TabularResult
    from auditor.suites.tabular.schema import Schema

ROWS = Path(__file__).parent / "suites" / "tabular" / "rows"  # row tasks and their schemas
Method = Literal["themis", "aequitas", "sg"]
METHODS: Mapping[str, tuple[str, str]] = {
    "themis": ("auditor.suites.tabular.sampling", "Themis"),
    "aequitas": ("auditor.suites.tabular.directed", "Aequitas"),
    "sg": ("auditor.suites.tabular.symbolic", "SG"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TabularPlan:
    """Everything that shapes a tabular run.

    Parameters
    ----------
    data : str
        CSV file with the rows; also what a schema is inferred from. May be empty with a schema or a task.
    model : str
        ``sklearn:FILE``, ``python:MODULE:FUNCTION`` or ``exec:COMMAND``; with a task any model of text.
    task : str, optional
        A row-to-prompt task (``lending``, ``income``, or a task file with labels): the model reads each row as
        ``column: value`` lines within the task's prompt.
    target : str, optional
        The label column; needed without a schema that names it.
    schema : str, optional
        YAML file; inferred from the data without one.
    protected : tuple of str
        Columns that are varied; default: those that the schema protects.
    method : {"themis", "aequitas", "sg"}
        How cases are made.
    options : mapping
        The method's own options, by name.
    profile : str, optional
        Themis: a distribution of rows (YAML) or rows (CSV).
    favourable : str, optional
        The label that is good for the person concerned.
    distance, distance_threshold, distance_scale
        When two labels differ (Themis, Definition 3.3).
    delta : float, optional
        The largest score that counts as bounded; there is no default.
    seed : int
        Of every random choice.
    max_evaluations, max_seconds
        Limits.
    trust_pickle : bool
        Whether a pickled model may be opened.
    retrain : bool
        Aequitas on ``sklearn:`` models: fit again with portions of the finds (Algorithm 5).
    max_calls, max_cost, price_in, price_out, concurrency, cache, base_url
        With a task: as for an audit of texts.
    prompt_format : str, optional
        With a task: which of its prompt formats; default: its first.
    replicates : int
        With a task: times each row is asked; the label is the answer of more than half.
    out : str
        Folder of the run folders; empty: nothing is written.
    """

    data: str
    model: str
    task: str | None = None
    target: str | None = None
    schema: str | None = None
    protected: tuple[str, ...] = ()
    method: Method = "themis"
    options: Mapping[str, Any] = field(default_factory=dict)
    profile: str | None = None
    favourable: str | None = None
    distance: str = "exact"
    distance_threshold: float = 0.0
    distance_scale: float = 1.0
    delta: float | None = None
    seed: int = 7
    max_evaluations: int | None = None
    max_seconds: float | None = None
    trust_pickle: bool = False
    retrain: bool = False
    max_calls: int | None = None
    max_cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    concurrency: int = 16
    cache: bool = True
    base_url: str | None = None
    prompt_format: str | None = None
    replicates: int = 1
    out: str = "reports"

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return values | {"protected": list(self.protected), "options": dict(self.options), "kind": "tabular"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TabularPlan:
        """The plan that `as_dict` wrote; other entries are left out."""
        known = {f.name: values[f.name] for f in dataclasses.fields(cls) if f.name in values}
        return cls(**known | {"protected": tuple(known.get("protected", ()))})


@dataclass(frozen=True, kw_only=True, slots=True)
class TabularRun:
    """What a run hands back: the record as plain data, the result, and where it was written."""

    record: Mapping[str, Any]
    result: TabularResult
    path: Path | None = None

    @property
    def complete(self) -> bool:
        """Whether no limit ended the search early."""
        return self.result.status == "complete"

    def to_text(self, width: int | None = None) -> str:
        """The terminal report."""
        from auditor.render.tabular import text

        return text(self.record, width=width)


def infer_schema(data: str, target: str | None, protected: tuple[str, ...] = ()) -> str:
    """The schema of a table as YAML text, to be edited.

    Without a target the last column is taken.
    """
    from auditor.suites.tabular.schemafile import dump, infer, read_table

    table = read_table(data)
    return dump(
        infer(table, target or list(table)[-1], protected, name=Path(data).name.split(".")[0], where=data)
    )


def audit_table(plan: TabularPlan, *, observe: Observer | None = None) -> TabularRun:
    """Run one method on one model of rows.

    Raises
    ------
    UserError
        A file, option or model is wrong.
    """
    return _audit(plan, observe or _silent, None)


def resume_table(
    path: Path, *, observe: Observer | None = None, limits: Mapping[str, Any] | None = None
) -> TabularRun:
    """Finish a run with a task that was cut off: what was answered is not asked again.

    Parameters
    ----------
    path : Path
        The run folder.
    limits : mapping, optional
        New ``max_calls``, ``max_cost`` or ``max_seconds``; they are for the whole run.

    Raises
    ------
    RunFolderError
        It is no tabular run with a task, or its schema is no longer what it was.
    """
    from auditor.store.folder import RunFolder

    with RunFolder.open(path, write=True) as folder:
        if folder.plan.get("kind") != "tabular" or not folder.plan.get("task"):
            raise RunFolderError(
                f"{path} is no tabular run with a task; other tabular runs are just run again"
            )
        stored = folder.plan | {k: v for k, v in (limits or {}).items() if v is not None}
        return _audit(TabularPlan.from_dict(stored), observe or _silent, folder)


def _audit(plan: TabularPlan, tell: Observer, folder: RunFolder | None) -> TabularRun:
    import numpy as np

    from auditor.suites.tabular.schemafile import dump

    started = datetime.now(UTC)
    tell(Progress(phase="tabular", done=0, message=f"reading {plan.data or 'the schema'}"))
    schema, codes, labels = _load(plan)
    run = _method(plan.method)
    if plan.retrain and (plan.method != "aequitas" or not plan.model.startswith("sklearn:")):
        raise ConfigError("--retrain goes with --method aequitas and --model sklearn:FILE")
    if folder is not None and folder.plan.get("schema_text") != dump(schema):
        raise RunFolderError(
            f"the schema is not what it was when {folder.path} began: undo the change, or start a new run"
        )
    with ExitStack() as stack:
        if folder is None and plan.out and plan.task is not None:
            folder = stack.enter_context(_new_folder(plan, schema))
        model, asked = _open_model(plan, schema, folder, tell)
        stack.callback(model.close)
        evaluator = _evaluator(plan, schema, model, asked)
        _try(evaluator, codes, model)
        tell(Progress(phase="tabular", done=0, message=f"{METHODS[plan.method][1]} on {plan.model}"))
        options: dict[str, Any] = {"data": codes if len(codes) else None, **plan.options}
        if plan.profile is not None:
            from auditor.suites.tabular.profile import load_profile

            options["profile"] = load_profile(plan.profile, schema)
        result = run(evaluator, schema, options, np.random.default_rng(plan.seed))
        retrained = None
        if plan.retrain:
            tell(Progress(phase="tabular", done=0, message="retraining"))
            retrained = _retrain(plan, schema, codes, labels, model)
        record = _record(plan, schema, model, result, started)
        if retrained is not None:
            record["tabular"]["retraining"] = retrained.to_record()
        if asked is not None:
            _add_task(record, plan, asked, evaluator)
        if not plan.out:
            return TabularRun(record=record, result=result)
        if folder is None:
            folder = stack.enter_context(_new_folder(plan, schema))
        model.close()
        _write(folder, record, schema, result, retrained)
        return TabularRun(record=record, result=result, path=folder.path)


def _silent(event: Progress) -> None:
    """Nobody watches."""


def _new_folder(plan: TabularPlan, schema: Schema) -> RunFolder:
    from auditor.store.folder import RunFolder
    from auditor.suites.tabular.schemafile import dump

    return RunFolder.create(Path(plan.out), plan.as_dict() | {"schema_text": dump(schema)})


def _open_model(
    plan: TabularPlan, schema: Schema, folder: RunFolder | None, tell: Observer
) -> tuple[TableModel, RowClient | None]:
    """The model of rows, and the client behind it where a task is asked."""
    from auditor.models.tables import load_table_model, predict_from_client

    if plan.task is None:
        return load_table_model(plan.model, schema.names, trust_pickle=plan.trust_pickle), None
    from auditor import models
    from auditor.models.budget import Budget
    from auditor.models.cache import Cache
    from auditor.models.client import definitive
    from auditor.models.rows import RowClient

    task = load_task(plan.task)
    adapter = models.make(plan.model, base_url=plan.base_url, task=task)
    budget = Budget(
        max_calls=plan.max_calls,
        max_cost=plan.max_cost,
        max_seconds=plan.max_seconds,
        price_in=plan.price_in,
        price_out=plan.price_out,
    )
    known: dict[tuple[str, int], Response] = {}
    for response in folder.responses() if folder is not None else ():
        if definitive(response):
            known[response.prompt_sha256, response.replicate] = response

    def progress(client: RowClient) -> None:
        counts = client.client.counts
        tell(
            Progress(
                phase="ask",
                model=plan.model,
                done=sum(client.rows.values()),
                cached=counts.cached,
                failed=client.rows["failed"],
                cost_usd=counts.cost_usd or None,
            )
        )

    def keep(row: Variant, prompt: Prompt) -> None:
        assert folder is not None
        sampling: Sampling = "iid" if plan.method == "themis" else "directed"
        name = row.id.partition(".")[0]
        case = Case(id=name, suite=f"tabular.{plan.method}", original=row, variants=(), sampling=sampling)
        folder.add_case(case, {})
        folder.add_prompt(row.id, prompt)

    asked = RowClient(
        adapter,
        task,
        schema.names,
        budget=budget,
        first_limit=None if folder is None else folder.plan.get("max_calls"),
        per_case=len(schema.combos),
        cache=Cache() if plan.cache and adapter.cacheable else None,
        format=plan.prompt_format,
        replicates=plan.replicates,
        concurrency=plan.concurrency,
        answered=known,
        on_row=None if folder is None else keep,
        on_response=None if folder is None else folder.add_response,
        on_batch=progress,
    )
    return predict_from_client(asked), asked


def load_task(name: str) -> Any:
    """The task of this name: one for table rows only, or any other."""
    from auditor import tasks

    own = ROWS / f"{name}.yaml"
    return tasks.load(own if own.is_file() else name)


def _evaluator(plan: TabularPlan, schema: Schema, model: TableModel, asked: RowClient | None) -> Evaluator:
    from auditor.suites.tabular.distance import Distance
    from auditor.suites.tabular.evaluate import Evaluator, Limit

    kind: Any = plan.distance
    return Evaluator(
        model.predict,
        schema,
        cache=model.slow,
        budget=Limit(evaluations=plan.max_evaluations, seconds=plan.max_seconds),
        frame=model.frame,
        distance=Distance(kind=kind, threshold=plan.distance_threshold, scale=plan.distance_scale),
        left=None if asked is None else asked.left,
    )


def _retrain(plan: TabularPlan, schema: Schema, codes: Any, labels: Any, model: TableModel) -> Any:
    import numpy as np

    from auditor.suites.tabular.retrain import retrain

    if labels is None:
        raise ConfigError("--retrain needs --data with the target column (--target NAME)")
    return retrain(
        model.estimator, schema, codes, labels, np.random.default_rng(plan.seed), frame=model.frame
    )


def _load(plan: TabularPlan) -> tuple[Schema, Any, Any]:
    """Schema, codes of the given rows (none without data), and their labels where the data have them."""
    import numpy as np

    from auditor.suites.tabular.schemafile import Table, check_realisable, infer, load, read_table

    table: Table | None = read_table(plan.data) if plan.data else None
    favourable: Any = None if plan.favourable is None else _value(plan.favourable)
    if plan.task is not None:
        task = load_task(plan.task)
        favourable = plan.favourable if plan.favourable is not None else task.favourable
    if plan.schema is not None or table is None:
        schema = load(plan.schema or _shipped(plan))
        if plan.target and plan.target != schema.target:
            columns = tuple(c for c in schema.columns if c.name != plan.target)
            schema = dataclasses.replace(schema, target=plan.target, columns=columns)
    elif plan.target is None:
        raise ConfigError(
            "--target is missing: name the column of --data that holds the label, or give --schema"
        )
    else:
        name = Path(plan.data).name.split(".")[0]
        schema = infer(table, plan.target, plan.protected, name=name, where=plan.data)
    if table is not None and plan.target is not None and plan.target not in table:
        raise DataFileError(f"{plan.data} has no target column {plan.target!r}; columns: {', '.join(table)}")
    if plan.protected:
        schema = schema.protecting(plan.protected)
    if favourable is not None:
        schema = dataclasses.replace(schema, favourable=favourable)
    if not schema.protected and not plan.options.get("columns"):
        raise ConfigError(
            f"no column is protected: give --protected NAME[,NAME]. Columns: {', '.join(schema.names)}"
        )
    check_realisable(schema)
    if table is None:
        return schema, np.empty((0, schema.d), dtype=np.int32), None
    return schema, schema.encode(table, where=plan.data), table.get(schema.target)


def _shipped(plan: TabularPlan) -> Path:
    """The schema that comes with a row task."""
    if plan.task is not None and (path := ROWS / f"{plan.task}.schema.yaml").is_file():
        return path
    known = ", ".join(sorted(p.name.partition(".")[0] for p in ROWS.glob("*.schema.yaml")))
    raise ConfigError(
        f"which columns a row has is not known: give --data FILE or --schema FILE. Tasks with a schema of their "
        f"own: {known}"
    )


def _value(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _method(name: str) -> Callable[..., TabularResult]:
    import importlib

    if name not in METHODS:
        raise ConfigError(f"--method must be themis, aequitas or sg; got {name!r}")
    module = METHODS[name][0]
    try:
        run: Callable[..., TabularResult] = importlib.import_module(module).run
    except ModuleNotFoundError as error:
        if error.name == module:
            raise ConfigError(f"--method {name} is not part of this installation") from error
        raise
    return run


def _try(evaluator: Any, codes: Any, model: TableModel) -> None:
    """Ask about one row, so that a model of the wrong width is named before the search starts."""
    if not len(codes):
        return
    try:
        evaluator.labels(codes[:1])
    except BudgetExceeded:
        return  # the method meets the limit itself and reports a partial result
    except UserError:
        raise
    except (ValueError, TypeError, IndexError, KeyError) as error:
        columns = evaluator.schema.names
        raise ConfigError(
            f"model {model.name} cannot read a row of {len(columns)} columns ({', '.join(columns)}): "
            f"{type(error).__name__}: {error}. Does the schema have the columns it was trained on?"
        ) from error


def _record(
    plan: TabularPlan, schema: Schema, model: TableModel, result: TabularResult, started: datetime
) -> dict[str, Any]:
    from auditor.suites.tabular.record import sections

    return {
        "id": "in-memory",
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        "status": result.status,
        "status_reason": result.status_reason,
        "spec": plan.as_dict(),
        "provenance": _provenance(started, model),
        "controls": {},
        "diagnoses": [],
        "models": {
            plan.model: {"fingerprint": model.fingerprint, "counts": {"calls": result.counts["evaluations"]}}
        },
        **sections(schema, result, plan.model, plan.delta),
    }


def _add_task(record: dict[str, Any], plan: TabularPlan, asked: RowClient, evaluator: Evaluator) -> None:
    """What was asked of a language model: calls, rows without a label, and what one answer a row can say."""
    facts = asked.facts()
    record["models"][plan.model] |= {
        "counts": facts,
        "deterministic": asked.model.deterministic,
        "style": asked.model.style,
        "reported": sorted(asked.reported),
    }
    record["counts"] |= {"calls": facts["calls"], "not_judged": evaluator.not_judged}
    left = asked.left()
    if record["status"] == "partial" and left is not None and left < len(evaluator.schema.combos):
        record["status_reason"] = f"the limit of {plan.max_calls:,} calls (--max-calls) was reached"
    section = record["tabular"]
    section["answers"] = {
        "task": asked.task.name,
        "format": asked.format,
        "replicates": asked.replicates,
        "rows": facts["rows"],
        "calls": facts["calls"],
        "cached": facts["cached"],
    }
    if not asked.model.deterministic and asked.replicates == 1:
        section["notes"].append(
            "each row was asked once: where the model answers differently when asked again, a label may have "
            "changed for that reason alone (--replicates 3 asks each row three times and takes the majority)"
        )


def _write(
    folder: RunFolder, record: dict[str, Any], schema: Schema, result: TabularResult, retrained: Any
) -> None:
    from auditor.render.tabular import html
    from auditor.suites.tabular.record import finds_csv
    from auditor.suites.tabular.schemafile import dump

    record["id"] = folder.id
    folder.write_text("schema.yaml", dump(schema))
    folder.write_text("finds.csv", finds_csv(schema, result))
    if retrained is not None:
        import skops.io as sio  # type: ignore[import-untyped,unused-ignore]

        sio.dump(retrained.model, folder.path / "retrained.skops")
    folder.write_run(record)
    folder.write_text("report.html", html(record))


def _provenance(started: datetime, model: TableModel) -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    packages: dict[str, str | None] = {}
    for name in ("numpy", "scipy", "scikit-learn", "skops", "z3-solver", "lime"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    ended = datetime.now(UTC)
    return {
        "started": started.isoformat(timespec="seconds"),
        "ended": ended.isoformat(timespec="seconds"),
        "seconds": round((ended - started).total_seconds(), 3),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "model_fingerprint": model.fingerprint,
    }
