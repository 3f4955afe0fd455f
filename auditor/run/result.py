"""The result of an audit, and plans run to it: from the start, from a folder, from recorded answers."""

from __future__ import annotations

import dataclasses
import html
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from auditor.core.errors import ConfigError, MissingDependency
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer
from auditor.core.record import RunRecord
from auditor.core.shown import plural
from auditor.core.types import Finding, SourceText
from auditor.core.verdict import Verdict, verdict
from auditor.run import again
from auditor.run.audit import plan_record, recalled, require_same_inputs, run_audit, run_sync
from auditor.run.dryrun import planned
from auditor.run.loop import Loop
from auditor.run.preparation import FEW, Parts, prepare
from auditor.run.state import Answered, silent
from auditor.store.folder import REPORT, RunFolder

if TYPE_CHECKING:
    import pandas as pd

    from auditor.run.answer_table import Answers

TEXTS = "texts.jsonl"  # in the folder of a run whose texts stood in no file


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


async def run_plan(
    plan: Plan, *, models: Sequence[Model] | None, seeds: Iterable[SourceText] | None, observe: Observer, write: bool
) -> Result:
    """Run ``plan`` to its result, in a new folder or, with ``write`` off, in memory."""
    from auditor.store.disk import write_texts

    parts = planned(plan, models=models, seeds=seeds, observe=observe).parts
    if not write:
        memory = RunFolder.in_memory(plan_record(parts))
        await run_audit(parts, memory, observe=observe)
        return _held(memory)
    with RunFolder.create(Path(plan.out), plan_record(parts)) as folder:
        if seeds is not None and not plan.redact:
            write_texts(folder.path / TEXTS, parts.texts)
        return await _run(folder, parts, observe)


async def _run(folder: RunFolder, parts: Parts, observe: Observer, answered: Answered | None = None) -> Result:
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


async def go_on(folder: RunFolder, parts: Parts, observe: Observer) -> Result:
    """Finish the run of ``folder``; earlier answers are used, and nothing is asked again."""
    require_same_inputs(folder.plan, plan_record(parts))
    return await _run(folder, parts, observe, recalled(folder, parts))


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
    from auditor.store.disk import read_texts

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
        return run_sync(lambda: go_on(folder, parts, observe))


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
