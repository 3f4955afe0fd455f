"""The library's front door: run an audit, get a `Result`.

Examples
--------
>>> from auditor import audit
>>> result = audit("sentiment", model="vader", limit=5, out=None)
>>> result.complete, {finding.rate.value for finding in result.findings}
(True, {0.0})
"""

from __future__ import annotations

import asyncio
import dataclasses
import html
import inspect
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from auditor.core.errors import BudgetExceeded, ConfigError, MissingDependency, RunFolderError, UserError, WrongType
from auditor.core.options import instead, keywords, near
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer
from auditor.core.record import RunRecord
from auditor.core.shown import plural, verb
from auditor.core.types import Finding, Progress, SourceText, names
from auditor.core.verdict import Verdict, verdict
from auditor.models.limits import BOOK
from auditor.run import again
from auditor.run.again import confirm
from auditor.run.dryrun import planned
from auditor.run.freeze import plain
from auditor.run.loop import Loop
from auditor.run.preparation import FEW, Parts, prepare, tell_proxies
from auditor.run.state import NOTHING, Answered, silent
from auditor.store.folder import REPORT, RunFolder

if TYPE_CHECKING:
    import pandas as pd

    from auditor.run.answer_table import Answers

R = TypeVar("R")
TEXTS = "texts.jsonl"  # in the folder of a run whose texts stood in no file
OTHERWISE = frozenset({"models"})  # fields of a plan that `audit` takes by another name


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
            said = instead(name) or f"audit() has no option {name!r}.{near(name, sorted(taken))}"
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
    from auditor.run.own_data import FIRST, MESSAGES, SECOND, WITHIN, is_request
    from auditor.tasks.seeds import fields_of, rows_of

    names = set(fields_of(data))
    if not ({FIRST, SECOND} <= names or names & {MESSAGES, *WITHIN}):
        return None
    rows = list(rows_of(data))
    if not ({FIRST, SECOND} <= names or (rows and is_request(rows[0]))):
        return None
    try:
        lines = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]
    except TypeError as error:
        raise WrongType(f"data: a row holds what cannot be written as JSON: {error}") from None
    path = folder / f"data-{sha256(b''.join(lines)).hexdigest()[:12]}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


class Result:
    """One finished audit: the typed record ``run``, its folder if one was written, access by id, verdicts."""

    def __init__(
        self, run: RunRecord, *, path: Path | None, evidence: Any, verdicts: Callable[[], Iterable[Any]]
    ) -> None:
        self.run, self.path, self.evidence = run, path, evidence
        self._verdicts = verdicts

    @property
    def record(self) -> dict[str, Any]:
        """The run record as plain data: what ``run.json`` holds."""
        return self.run.raw

    @cached_property
    def verdicts(self) -> tuple[Any, ...]:
        """Every judgement, as `auditor.core.types.Verdict`."""
        return tuple(self._verdicts())

    @property
    def complete(self) -> bool:
        """Whether everything planned was asked and no call failed for good."""
        return self.run.status == "complete"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the audit saw, each with a verdict about how far it is supported."""
        return self.run.findings

    @property
    def estimates(self) -> tuple[Mapping[str, Any], ...]:
        """Rates with intervals, as plain records."""
        return tuple(self.record["estimates"])

    def judge(self, rule: str = "shown") -> Verdict:
        """Apply ``rule`` (`auditor.core.fail_on`): return its state, the reason, and the exit code of ``--fail-on``."""
        return verdict(self.run, rule)

    def to_json(self) -> str:
        """Return ``run.json`` as text."""
        return json.dumps(self.record, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)

    def to_text(
        self, *, width: int | None = None, encoding: str | None = None, color: bool = False, full: bool = False
    ) -> str:
        """Return the terminal report: the answer on one screen, with ``full`` all figures.

        Lines of 100 columns in UTF-8, where ``width`` and ``encoding`` say nothing else; ``color`` is ANSI styles.
        """
        options = {"color": color, "full": full, "width": width, "encoding": encoding}
        return self._rendered("terminal", **{name: value for name, value in options.items() if value is not None})

    def to_html(self) -> str:
        """Return the self-contained HTML report."""
        return self._rendered("html")

    def _rendered(self, format: str, **options: object) -> str:
        from auditor.core.protocols import RENDERERS

        return str(RENDERERS.create(format, **options).render(self.run, self.evidence))

    def answers(self) -> Answers:
        """Return every answer with its prompt and its outcome, row by row; a `ConfigError` without texts."""
        from auditor.run.answer_table import Answers

        return Answers(self.run, self.evidence, self.verdicts)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per answer, with texts, words, groups, arm, outcome (`auditor.run.answer_table.AnswerRow`)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependency("to_pandas()", "pandas", "pandas") from error

        from auditor.run.answer_table import COLUMNS

        return pd.DataFrame([dataclasses.asdict(row) for row in self.answers()], columns=list(COLUMNS))

    def _repr_html_(self) -> str:
        return (
            '<iframe style="width:100%;height:640px;border:1px solid #ccc" sandbox '
            f'srcdoc="{html.escape(self.to_html(), quote=True)}"></iframe>'
        )

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        counts = self.run.counts
        return (
            f"<Result {self.run.id}: {self.run.status}, {plural(counts.cases or 0, 'case')}, "
            f"{plural(counts.valid or 0, 'valid variant')}, {plural(len(self.findings), 'finding')}>"
        )


# -- plans run to their results: from the start, from a folder, from recorded answers ----------------------------------


async def run_plan(
    plan: Plan, *, models: Sequence[Model] | None, seeds: Iterable[SourceText] | None, observe: Observer, write: bool
) -> Result:
    """Run ``plan`` to its result, in a new folder or, with ``write`` off, in memory."""
    from auditor.store.journal import write_texts

    parts = planned(plan, models=models, seeds=seeds, observe=observe).parts
    if not write:
        memory = RunFolder.in_memory(plan_record(parts))
        await run_audit(parts, memory, observe=observe)
        return _held(memory)
    with RunFolder.create(Path(plan.out), plan_record(parts)) as folder:
        if seeds is not None and not plan.redact:
            write_texts(folder.path / TEXTS, parts.texts)
        return await _run(folder, parts, observe)


async def _run(folder: RunFolder, parts: Parts, observe: Observer, answered: Answered = NOTHING) -> Result:
    await run_audit(parts, folder, observe=observe, answered=answered)
    return settle(folder)


def in_folder(
    parts: Parts,
    *,
    observe: Observer,
    further: Mapping[str, object] = MappingProxyType({}),
    begun: Callable[[Path], None] = lambda path: None,
) -> Result:
    """Run ``parts`` in a new run folder: ``further`` goes into its plan, ``begun`` gets it before anything is asked."""
    with RunFolder.create(Path(parts.plan.out), plan_record(parts) | dict(further)) as folder:
        begun(folder.path)
        return run_sync(lambda: _run(folder, parts, observe))


def go_on(folder: RunFolder, parts: Parts, observe: Observer) -> Result:
    """Finish the run of ``folder``; earlier answers are used, and nothing is asked again."""
    require_same_inputs(folder.plan, plan_record(parts))
    return run_sync(lambda: _run(folder, parts, observe, recalled(folder, parts)))


def settle(folder: RunFolder) -> Result:
    """Write ``report.html`` into ``folder`` and return the result."""
    result = _held(folder)
    folder.write_text(REPORT, result.to_html())
    return result


def generate(plan: Plan, *, observe: Observer = silent) -> Path:
    """Write ``cases.jsonl`` and ``prompts.jsonl`` of ``plan`` to a new run folder; no model is called."""
    parts = prepare(plan, need_models=False)
    with RunFolder.create(Path(plan.out), plan_record(parts)) as folder:
        run_sync(lambda: Loop(parts, folder, observe=observe).run())
        return folder.path


def resume(path: Path, *, observe: Observer = silent, limits: Mapping[str, Any] | None = None) -> Result:
    """Finish the run in ``path``; earlier answers are used, and nothing is asked again."""
    from auditor.store.journal import read_texts

    with RunFolder.open(path, write=True) as folder:
        stored, inputs = folder.plan["plan"], folder.plan["inputs"]
        changed = {name: value for name, value in (limits or {}).items() if value is not None}
        if fixed := sorted(set(changed) - set(Plan.flags("resume"))):
            raise ConfigError(f"{Plan.flag(fixed[0])} cannot change when a run goes on.")
        plan = Plan.from_dict(stored | changed)
        for name in ("max_calls", "max_cost") if plan.until_decided else ():
            if getattr(plan, name) != stored.get(name):
                raise ConfigError(
                    f"This run looks at its answers at shares of its budget (--until-decided), so {Plan.flag(name)} "
                    "cannot change. A run that continues until something is shown shows too much. Leave the option "
                    "out, or start a new run."
                )
        if not plan.models:
            raise ConfigError(
                f"{path} was generated without a model. Judge answers with: audit import --generated {path} FILE"
            )
        texts = path / TEXTS
        parts = prepare(plan, seeds=read_texts(texts) if texts.is_file() else None)
        if texts.is_file():  # rows that were left out stand in no file
            parts.facts["seeds"] = {**inputs.get("seeds", {}), **parts.facts["seeds"]}
        if FEW in inputs:
            parts.facts[FEW] = inputs[FEW]
        return go_on(folder, parts, observe)


def score(path: Path, responses: Path, *, observe: Observer = silent) -> Result:
    """Judge recorded answers to the prompts that `generate` wrote in ``path``, there or in a new folder."""
    from auditor import models

    stored = RunFolder.open(path)
    stored.require_texts("judging recorded answers")
    plan = Plan.from_dict(stored.plan["plan"]).but(models=(f"recorded:{responses}",), cache=False)
    parts = prepare(plan, models=[models.make(plan.models[0], task=None)], cases=stored.cases())
    fingerprints = plan_record(parts)["fingerprints"]
    if not stored.has_record() and next(stored.responses(), None) is None:
        folder = RunFolder.open(path, write=True)
    else:
        about = {**stored.plan, "plan": plan.as_dict(), "fingerprints": fingerprints, "scored_from": path.name}
        folder = RunFolder.create(path.resolve().parent, about)
    with folder:
        return run_sync(lambda: _run(folder, parts, observe))


def load(path: Path) -> Result:
    """Read the result of a finished run folder; nothing is asked."""
    return _held(RunFolder.open(path))


def _held(folder: RunFolder) -> Result:
    path = None if folder.temporary else folder.path
    return Result(folder.run(), path=path, evidence=folder.evidence(), verdicts=folder.verdicts)


def replay(path: Path, finding: str, *, replicates: int = 5) -> dict[str, Any]:
    """Ask the prompts of one finding (or variant) of a run again.

    Returns
    -------
    dict
        ``{"finding", "model", "cells": [{"variant_id", "role", "before": {label: n}, "now": {label: n}}]}``.
    """
    return run_sync(lambda: again.replay(RunFolder.open(path), finding, replicates))


# -- one run, from its plan to its record ------------------------------------------------------------------------------


async def run_audit(
    parts: Parts, folder: RunFolder, *, observe: Observer = silent, answered: Answered = NOTHING
) -> None:
    """Run an audit to its record."""
    tell_proxies([*parts.models, parts.judge], observe)
    if parts.plan.batch:
        parts = in_batches(parts, folder)
    if not folder.temporary:
        parts.budget.keep(folder.path / BOOK)
    try:
        await to_record(Loop(parts, folder, observe=observe, answered=answered))
    finally:
        parts.budget.close()


def recalled(folder: RunFolder, parts: Parts) -> Answered:
    """Return what the models of ``parts`` answered in an earlier try of the run; it counts for the limits."""
    from auditor.models.client import definitive
    from auditor.store.redact import readable

    for response in folder.recall(lambda r: definitive(r) and readable(r)):
        if not response.cached:
            parts.budget.charge(calls=1, usd=response.cost_usd or 0.0)
    answered: Any = {model.name: folder.answers(model.name) for model in parts.models}
    return answered  # type: ignore[no-any-return]


async def to_record(loop: Loop, *, alone: bool = True) -> None:
    """Run ``loop`` to its record and write that; one of several (``alone`` off) confirms nothing."""
    from auditor.run.run_record import build

    started, clock = datetime.now(UTC), time.monotonic()
    confirmed: dict[tuple[str, str, str], dict[str, object]] = {}

    def write() -> None:
        record = build(loop, confirmed, started=started, seconds=time.monotonic() - clock)
        loop.folder.write_verdicts(loop.observed.verdicts(t.model.name for t in loop.tallies))
        loop.folder.write_run(record)

    try:
        await loop.run()
        if alone and any(tally.hidden and not tally.model.deterministic for tally in loop.tallies):
            confirmed = await confirm(loop)
    except asyncio.CancelledError:
        loop.status_reason = "Interrupted."
        write()
        raise
    finally:
        for model in (*loop.parts.models, *filter(None, [loop.parts.judge])):
            await model.aclose()
    if not alone:
        write()
        return
    _refuse_if_nothing_was_answered(loop)
    loop.observe(Progress(phase="report", done=0, planned=1))
    write()
    loop.observe(Progress(phase="report", done=1, planned=1))


def in_batches(parts: Parts, folder: RunFolder) -> Parts:
    """Put the models of ``parts`` behind the Batch API; what was submitted is written down in the run folder."""
    from auditor.models.batch import Batched
    from auditor.models.openai import OpenAIChat

    if folder.temporary:
        raise ConfigError("--batch needs a run folder, since a batch outlives the process: give out=FOLDER.")
    models: list[Model] = []
    for number, model in enumerate(parts.models, start=1):
        if not isinstance(model, OpenAIChat):
            raise ConfigError(f"--batch: {model.name} has no Batch API; only openai: models have.")
        journal = folder.path / f"batches-{number}.jsonl"
        models.append(Batched(model, journal=journal, left_s=parts.budget.remaining_s))
    return dataclasses.replace(parts, models=models)


def _refuse_if_nothing_was_answered(loop: Loop) -> None:
    plan, parts = loop.plan, loop.parts
    if not loop.counts["cases"] and not loop.status_reason:
        names = ", ".join(plan.attributes or ()) or "an attribute of the dictionaries"
        names = f"two of these together: {names}" if plan.suite == "joint-first" else names
        texts, spoken = plural(parts.seeds or 0, "text"), parts.facts.get("seeds", {}).get("languages", {})
        said = [f"None of the {texts} names people by {names}, so there is nothing to change."]
        if (whose := parts.task.subject) and not plan.who:
            said.append(
                f"Only what they say about {whose} would be changed; --who all changes what they say about anybody."
            )
        if others := sum(spoken.values()) - spoken.get("en", 0):
            said.append(
                f"{others} of them {verb(others, 'does', 'do')} not look like English, and words are changed in "
                "English alone. Use a task with a subject, such as hiring:de, or your own pairs."
            )
        further = "Give texts about people (--data), other attributes (--attributes) or your own terms (--dictionary)."
        raise UserError(" ".join((*said, further)))
    for tally in loop.tallies:
        stopped = tally.client.stopped
        if stopped is None or isinstance(stopped, BudgetExceeded):
            continue
        if len(tally.seen) == tally.counts["failed"]:
            raise UserError(f"{tally.model.name} answered nothing: {loop.why(stopped)}")


def run_sync(make: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Run a coroutine to its end, also from inside a running event loop."""
    return outside_loop(lambda: asyncio.run(make()))


def outside_loop(work: Callable[[], R]) -> R:
    """Return what ``work`` gives, from a thread of its own where an event loop is running (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


# -- what a run that is gone on with must have in common with its plan -------------------------------------------------


def plan_record(parts: Parts) -> dict[str, object]:
    """Return what ``plan.json`` holds: plan, resolved models, and hashes of everything that shapes the cases."""
    return {
        "plan": parts.plan.as_dict() | {"models": [m.name for m in parts.models]},
        "fingerprints": {m.name: m.fingerprint for m in parts.models}
        | ({} if parts.judge is None else {f"{parts.judge.name} as judge": parts.judge.fingerprint}),
        "inputs": parts.facts | {"suite": parts.suite.describe()},
    }


def require_same_inputs(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise an error on resuming when texts, task, dictionaries, parser or model are no longer what the plan says."""
    for part in ("task_sha256", "seeds", "parser", "suite"):
        old, new = (plain(v["inputs"].get(part)) for v in (before, now))
        if old != new:
            raise RunFolderError(
                f"The {part.removesuffix('_sha256')} changed since this run began, so its answers would be "
                "judged against other questions. Start a new run, or put the old files back."
            )
    require_same_models(before["fingerprints"], now["fingerprints"])


def require_same_models(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise an error on resuming where fingerprints of models are not those of the plan, or the plan has none."""
    for name in {**before, **now}:
        if before.get(name) is None:
            raise RunFolderError(f"The plan of this run names no fingerprint of the model {name}. Start a new run.")
        if before[name] != now.get(name):
            raise RunFolderError(f"The model {name} or its parameters changed since this run began. Start a new run.")
