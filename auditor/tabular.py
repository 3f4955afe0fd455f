"""Joins the stages for tables: data and schema, a model of rows, a method, the record, the reports.

Beside `auditor.pipeline`: tabular search asks the model about millions of coded rows through one batch call,
so cases do not go through the journal one by one; only counts, scores and exemplars are kept.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor._version import __version__
from auditor.errors import BudgetExceeded, ConfigError
from auditor.types import FORMAT_VERSION, Finding, Progress, digest

if TYPE_CHECKING:
    from auditor.models.tables import TableModel
    from auditor.protocols import Observer
    from auditor.suites.tabular.result import TabularResult
    from auditor.suites.tabular.schema import Schema

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
        CSV file with the rows; also what a schema is inferred from.
    model : str
        ``sklearn:FILE``, ``python:MODULE:FUNCTION`` or ``exec:COMMAND``.
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
    out : str
        Folder of the run folders; empty: nothing is written.
    """

    data: str
    model: str
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
    out: str = "reports"

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return values | {"protected": list(self.protected), "options": dict(self.options), "kind": "tabular"}


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
    import numpy as np

    from auditor.models.tables import load_table_model
    from auditor.suites.tabular.distance import Distance
    from auditor.suites.tabular.evaluate import Evaluator, Limit

    tell = observe or _silent
    started = datetime.now(UTC)
    tell(Progress(phase="tabular", done=0, message=f"reading {plan.data}"))
    schema, codes = _load(plan)
    run = _method(plan.method)
    kind: Any = plan.distance
    distance = Distance(kind=kind, threshold=plan.distance_threshold, scale=plan.distance_scale)
    model = load_table_model(plan.model, schema.names, trust_pickle=plan.trust_pickle)
    try:
        evaluator = Evaluator(
            model.predict,
            schema,
            cache=model.slow,
            budget=Limit(evaluations=plan.max_evaluations, seconds=plan.max_seconds),
            frame=model.frame,
            distance=distance,
        )
        _try(evaluator, codes, model)
        tell(Progress(phase="tabular", done=0, message=f"{METHODS[plan.method][1]} on {plan.model}"))
        options: dict[str, Any] = {"data": codes, **plan.options}
        if plan.profile is not None:
            from auditor.suites.tabular.profile import load_profile

            options["profile"] = load_profile(plan.profile, schema)
        result = run(evaluator, schema, options, np.random.default_rng(plan.seed))
    finally:
        model.close()
    return _write(plan, schema, model, result, started)


def _silent(event: Progress) -> None:
    """Nobody watches."""


def _load(plan: TabularPlan) -> tuple[Schema, Any]:
    from auditor.suites.tabular.schemafile import check_realisable, infer, load, read_table

    table = read_table(plan.data)
    if plan.schema is not None:
        schema = load(plan.schema)
        if plan.target and plan.target != schema.target:
            columns = tuple(c for c in schema.columns if c.name != plan.target)
            schema = dataclasses.replace(schema, target=plan.target, columns=columns)
    elif plan.target is None:
        raise ConfigError(
            "--target is missing: name the column of --data that holds the label, or give --schema"
        )
    else:
        schema = infer(
            table, plan.target, plan.protected, name=Path(plan.data).name.split(".")[0], where=plan.data
        )
    if plan.target is not None and plan.target not in table:
        from auditor.errors import DataFileError

        raise DataFileError(f"{plan.data} has no target column {plan.target!r}; columns: {', '.join(table)}")
    if plan.protected:
        schema = schema.protecting(plan.protected)
    if plan.favourable is not None:
        schema = dataclasses.replace(schema, favourable=_value(plan.favourable))
    if not schema.protected and not plan.options.get("columns"):
        raise ConfigError(
            f"no column is protected: give --protected NAME[,NAME]. Columns: {', '.join(schema.names)}"
        )
    check_realisable(schema)
    return schema, schema.encode(table, where=plan.data)


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
    except (BudgetExceeded, ConfigError):
        raise
    except (ValueError, TypeError, IndexError, KeyError) as error:
        columns = evaluator.schema.names
        raise ConfigError(
            f"model {model.name} cannot read a row of {len(columns)} columns ({', '.join(columns)}): "
            f"{type(error).__name__}: {error}. Does the schema have the columns it was trained on?"
        ) from error


def _write(
    plan: TabularPlan, schema: Schema, model: TableModel, result: TabularResult, started: datetime
) -> TabularRun:
    from auditor.suites.tabular.schemafile import dump

    section = result.to_record()
    described = {
        "name": schema.name,
        "columns": schema.d,
        "protected": list(schema.protected),
        "rows_in_domain": str(schema.size),
        "cases_in_domain": str(schema.cases),
        "constraints": [c.text for c in schema.constraints],
        "sha256": digest(dump(schema)),
    }
    record: dict[str, Any] = {
        "id": "in-memory",
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        "status": result.status,
        "status_reason": result.status_reason,
        "spec": plan.as_dict(),
        "provenance": _provenance(started, model),
        "counts": dict(section["counts"]),
        "estimates": [_estimate(plan, score) for score in (*section["scores"], *section["minimal_sets"])],
        "controls": {},
        "findings": [_finding(plan, schema, result, i, s) for i, s in enumerate(_claims(result), 1)],
        "diagnoses": [],
        "models": {
            plan.model: {"fingerprint": model.fingerprint, "counts": {"calls": result.counts["evaluations"]}}
        },
        "tabular": section | {"schema": described},
    }
    if not plan.out:
        return TabularRun(record=record, result=result)
    from auditor.render.tabular import html
    from auditor.store.folder import RunFolder

    with RunFolder.create(Path(plan.out), plan.as_dict() | {"schema_text": dump(schema)}) as folder:
        record["id"] = folder.id
        folder.write_text("schema.yaml", dump(schema))
        folder.write_text("finds.csv", _finds(schema, result))
        folder.write_run(record)
        folder.write_text("report.html", html(record))
    return TabularRun(record=record, result=result, path=folder.path)


def _estimate(plan: TabularPlan, score: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": score["name"],
        "model": plan.model,
        "format": "",
        "attributes": list(score["columns"]),
        "directions": None,
        "kind": None,
        "estimate": score["estimate"],
        "population": score["population"],
    }


def _claims(result: TabularResult) -> list[Any]:
    """What findings are made of: every score, and None for the finds of a directed search, which have no rate."""
    claims: list[Any] = [*result.scores, *result.minimal_sets]
    return claims if result.sampling == "iid" else [*claims, None]


def _finding(
    plan: TabularPlan, schema: Schema, result: TabularResult, number: int, score: Any
) -> dict[str, Any]:
    """One claim with its verdict: shown, bounded below δ, or not determined."""
    found = result.counts["discriminatory"]
    if score is None:
        finding = Finding(
            id=f"T{number}",
            kind="claim",
            code="tabular-finds",
            model=plan.model,
            attributes=schema.protected,
            verdict="shown" if found else "not_determined",
            text=f"{found:,} distinct cases were found whose label changes with {', '.join(schema.protected)}",
            notes=("searched for, not sampled: the number says nothing about how often this happens",),
        )
    else:
        rate = score.estimate
        shown = rate.low > 0 and not rate.note.startswith("not valid")
        bounded = plan.delta is not None and rate.high < plan.delta
        finding = Finding(
            id=f"T{number}",
            kind="claim",
            code=f"tabular-{score.name.replace('_', '-')}",
            model=plan.model,
            attributes=score.columns,
            verdict="bounded" if bounded else "shown" if shown else "not_determined",
            rate=rate,
            text=f"{score.name} score of {', '.join(score.columns)}, {score.population}",
        )
    from auditor.suites.tabular.result import plain

    return dict(plain(finding))


def _finds(schema: Schema, result: TabularResult) -> str:
    """The distinct discriminatory cases as CSV, without the protected columns."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    free = [schema.columns[i] for i in schema.free_index.tolist()]
    writer.writerow([c.name for c in free])
    if result.found is not None:
        for row in result.found[:, schema.free_index].tolist():
            writer.writerow([c.raw(code) for c, code in zip(free, row, strict=True)])
    return file.getvalue()


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
