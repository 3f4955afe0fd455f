"""The library's front door: run an audit, get a `Result`.

Examples
--------
>>> from auditor import audit
>>> result = audit("sentiment", model="vader", limit=5, out=None)
>>> result.complete, {finding.rate.value for finding in result.findings}
(True, {0.0})
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from auditor.core import removed
from auditor.core.errors import ConfigError, WrongType
from auditor.core.options import keywords, near
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer
from auditor.core.types import names
from auditor.run.audit import run_sync
from auditor.run.result import Result, run_plan
from auditor.run.state import silent

OTHERWISE = frozenset({"models"})  # fields of a plan that `audit` takes by another name


def _as_models(model: Any, task: str, options: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Model] | None]:
    """Specs and adapters of what the caller calls a model: spec, callable, adapter, or several."""
    several = list(model) if isinstance(model, (list, tuple)) else [model]
    if all(isinstance(m, str) for m in several):
        return tuple(several), None
    from auditor import models, tasks

    def adapter(m: Any) -> Model:
        if isinstance(m, str):
            labels = names(options.get("labels") or ())
            own = tasks.load(task, labels=labels, favourable=options.get("favourable"))
            return models.make(m, task=own, base_url=options.get("base_url"))
        return models.wrap(m)

    adapters = list(map(adapter, several))
    return tuple(a.name for a in adapters), adapters


def _filed(data: Any, folder: Path) -> Path | None:
    """The file of pairs or of whole requests that is made of what the caller handed over; None of texts."""
    from auditor.run import own_pairs, traffic
    from auditor.tasks.seeds import fields_of, rows_of

    names = set(fields_of(data))
    if not ({own_pairs.FIRST, own_pairs.SECOND} <= names or names & {traffic.MESSAGES, *traffic.WITHIN}):
        return None
    rows = list(rows_of(data))
    if not ({own_pairs.FIRST, own_pairs.SECOND} <= names or (rows and traffic.is_request(rows[0]))):
        return None
    try:
        lines = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]
    except TypeError as error:
        raise WrongType(f"data: a row holds what cannot be written as JSON: {error}") from None
    path = folder / f"data-{sha256(b''.join(lines)).hexdigest()[:12]}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


@keywords(Plan, without=OTHERWISE)
async def aaudit(
    task: str = "sentiment",
    *,
    model: str | Callable[..., Any] | Model | Sequence[Any] = ("reviews", "vader"),
    data: Any = None,
    observe: Observer = silent,
    out: str | Path | None = None,
    **options: Any,
) -> Result:
    """Run an audit; see `audit`, of which this is the async form."""
    specs, adapters = _as_models(model, task, options)
    taken = inspect.signature(audit).parameters
    for name in options:
        if name not in taken:
            said = removed.instead(name) or f"audit() has no option {name!r}.{near(name, sorted(taken))}"
            raise ConfigError(said)
    file = str(data) if isinstance(data, (str, Path)) else None
    plan = Plan.of({"task": task, "models": specs, "data": file, "out": str(out or "reports"), **options})
    if data is None or file is not None:
        return await run_plan(plan, models=adapters, seeds=None, observe=observe, write=out is not None)
    from auditor import tasks

    with TemporaryDirectory() as passing:  # what is not written stays nowhere
        kept = out is not None and not plan.redact
        path = _filed(data, Path(plan.out if kept else passing))
        seeds = tasks.read_given(data, columns=plan.columns, limit=plan.limit) if path is None else None
        plan = plan if path is None else plan.model_copy(update={"data": str(path)})
        return await run_plan(plan, models=adapters, seeds=seeds, observe=observe, write=out is not None)


@keywords(Plan, without=OTHERWISE)
def audit(
    task: str = "sentiment",
    *,
    model: str | Callable[..., Any] | Model | Sequence[Any] = ("reviews", "vader"),
    data: Any = None,
    observe: Observer = silent,
    out: str | Path | None = None,
    **options: Any,
) -> Result:
    """Ask a model the same thing about different people and measure whether the answer changes.

    Parameters
    ----------
    task : str, default "sentiment"
        Task name or path of a task file.
    model : str, callable, Model or a sequence of them
        Model specs (``"vader"``, ``"openai:NAME"``), functions text → label (or list → list), adapters; LangChain
        runnables, classifiers of scikit-learn that read texts, pipelines of transformers.
        Several share one report.
    data : str, Path, list, data frame or data set, optional
        Source texts: a file, ``hf:…``; a list of texts, of dicts or of `SourceText`; a data frame (pandas, polars,
        Arrow); a ``datasets.Dataset``. ``columns={"text": …, "label": …, "id": …}`` names the columns
        (``text``; ``label`` and ``id`` where there are such); no other column is read, and only the text is
        sent to a model. Rows with ``text_a`` and ``text_b`` are pairs of your own, rows with ``messages`` are whole
        requests, as in files: they are kept beside the run folder as ``data-….jsonl``. None takes the task's
        embedded texts.
    observe : callable, optional
        Gets `auditor.core.types.Progress` events; the library prints nothing.
    out : str or Path, optional
        Folder for the run folder; None keeps the run in memory.
    **options
        Fields of `auditor.core.plan.Plan`: ``attributes``, ``order``, ``replicates``, ``max_calls``, …. Lists may be
        written as one text: ``attributes="gender,race"``.

    Returns
    -------
    Result
        Findings, estimates, verdicts, reports.

    Raises
    ------
    UserError
        Something in the call cannot be done; nothing was asked. Where ``data`` is of a kind that is not taken, it is a
        `TypeError` too.
    """
    return run_sync(lambda: aaudit(task, model=model, data=data, observe=observe, out=out, **options))
