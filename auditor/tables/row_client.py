"""A language model or a server that decides on table rows: row → prompt → client → label, and its noise."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded, ConfigError, UserError
from auditor.core.protocols import Model, Observer
from auditor.core.shown import plural
from auditor.core.types import (
    Answer,
    Case,
    Estimate,
    Finding,
    Progress,
    Prompt,
    Request,
    Response,
    Sampling,
    Variant,
    digest,
    id_of,
)
from auditor.measure.intervals import korn_graubard
from auditor.models.adapter import scalar
from auditor.models.client import Client, Key, definitive, unanswered
from auditor.models.limits import BOOK, Budget
from auditor.models.reply_cache import Cache
from auditor.models.row_models import TableModel
from auditor.run.preparation import BARE
from auditor.run.state import silent
from auditor.store.folder import RunFolder
from auditor.tables.row_schema import Schema
from auditor.tables.tabular_plan import TabularPlan
from auditor.tasks.task import Task

LEVEL = 0.05
CASES = 1_000  # that the test looks at
PERMUTATIONS = 999
ONCE = (
    "each row was asked once, and the model is not declared deterministic. A label may have changed by chance, so "
    "nothing is called shown. --replicates 3 asks each row three times and tests against that noise; the file of a "
    "deterministic server says deterministic: true"
)
INCOMPLETE = "no case had all its rows answered, so nothing was tested against the noise of repeated answers"
STOPPED = (
    "a search for sets asks about a row only until its label changes, so complete cases are cases without a change. "
    "Nothing was tested against the noise of repeated answers; without --theta all rows are asked"
)


class RowClient:
    """Asks a model about rows, one prompt each, through the client with its cache, budget and journal.

    A row's label is the answer of more than half of its replicates; ``rows`` counts rows by status. Without a task a
    server decides itself, and any label that it returns is one. The answers in ``folder`` are not asked again, and
    count towards the limits of the whole run.
    """

    def __init__(
        self,
        model: Model,
        task: Task | None,
        schema: Schema,
        plan: TabularPlan,
        *,
        folder: RunFolder | None = None,
        tell: Observer = silent,
    ) -> None:
        if task is not None and not task.kind.one_label:
            raise ConfigError(
                f"task {task.name!r} is of kind {task.kind}; rows need a task with one label per answer, "
                f"such as lending or income"
            )
        if task is not None and plan.prompt_format not in (None, *task.formats):
            raise ConfigError(
                f"task {task.name!r} has no prompt format {plan.prompt_format!r}; formats: {', '.join(task.formats)}"
            )
        self.model, self.task, self.schema, self.plan, self._tell = model, task, schema, plan, tell
        self.format = BARE if task is None or model.style == "text" else plan.prompt_format or task.default_format
        self.rows: Counter[str] = Counter()
        self.reported: set[str] = set()
        self.asked: dict[str, Mapping[str, object]] = {}
        known = [] if folder is None else [r for r in folder.responses() if definitive(r)]
        self.answers: dict[Key, Response] = {(r.prompt_sha256, r.replicate): r for r in known}
        self._known = {key for key, r in self.answers.items() if not r.cached}
        self._used = set[Key]()  # answers that were paid for and that the search has asked for
        self._first_limit = None if folder is None else folder.plan.get("max_calls")
        self.budget = Budget(**plan.limits)
        self.budget.charge(calls=len(self._known), usd=sum(self.answers[k].cost_usd or 0.0 for k in self._known))
        self.folder: RunFolder | None = None
        if folder is not None:
            self.journal(folder)
        self._cache = Cache() if plan.cache and model.cacheable else None
        if self._cache is not None:
            self._cache.tell(lambda said: tell(Progress(phase="cache", done=0, message=said)))
        self.client = Client(
            model,
            cache=self._cache,
            budget=self.budget,
            concurrency=plan.concurrency,
            answered=self.answers,
            on_response=self._heard,
            remember=False,
            keep=lambda text, format: self._read(text, format).status == "ok",
            give_up=task is not None,
        )
        self._runner = asyncio.Runner()

    def journal(self, folder: RunFolder) -> None:
        """Keep rows, answers and what is spent in the folder of a run."""
        self.folder = folder
        self.budget.keep(folder.path / BOOK)

    def _heard(self, response: Response) -> None:
        self.answers[response.prompt_sha256, response.replicate] = response
        if self.folder is not None:
            self.folder.add_responses([response])
        counts = self.client.counts
        self._tell(
            Progress(
                phase="ask",
                model=self.model.name,
                done=counts.answered + counts.cached + counts.replayed + counts.failed,
                cached=counts.cached,
                failed=self.rows["failed"],
                cost_usd=self.budget.spent_usd or None,
            )
        )

    def used(self) -> dict[str, int]:
        """Return tokens and cached answers of the whole run, also where an earlier process began it."""
        paid = [answer.usage for answer in self.answers.values() if answer.usage is not None and not answer.cached]
        return {
            "cached": sum(answer.cached for answer in self.answers.values()),
            "tokens_in": sum(usage.tokens_in for usage in paid),
            "tokens_out": sum(usage.tokens_out for usage in paid),
        }

    def left(self) -> int | None:
        """Return how many further rows the limit allows; a resumed search is told what it was told before."""
        limit, k, unused = self.plan.max_calls, self.plan.replicates, len(self._known - self._used)
        if limit is None:
            return None
        before = (self._first_limit - len(self._used)) // k if unused and self._first_limit is not None else 0
        if before >= len(self.schema.combos):
            return before
        return (max(0, limit - self.budget.calls) + unused) // k

    def predict(self, rows: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return labels of rows, shape (n,), dtype object; None where the model gave none."""
        cases, prompts = zip(*map(self._case, rows.tolist()), strict=True)
        if self.folder is not None:
            self.folder.add_cases((case, {}, None) for case in cases)
            self.folder.add_prompts((case.original.id, prompt) for case, prompt in zip(cases, prompts, strict=True))
        requests = [
            Request(prompt=prompt, replicate=k, variant_id=case.original.id)
            for case, prompt in zip(cases, prompts, strict=True)
            for k in range(self.plan.replicates)
        ]
        responses = self._runner.run(self.client.ask(requests))
        self._used |= {(r.prompt_sha256, r.replicate) for r in responses if not r.cached}
        stopped = self.client.stopped
        if stopped is not None and any(r.output is None for r in responses):
            counts = self.client.counts
            if not isinstance(stopped, BudgetExceeded) and not (counts.answered or counts.cached or counts.replayed):
                raise UserError(f"{self.model.name} answered nothing: {stopped}")
            raise BudgetExceeded(str(stopped))
        result = np.empty(len(rows), dtype=object)
        k = self.plan.replicates
        result[:] = [self._label(responses[i : i + k]) for i in range(0, len(responses), k)]
        return result

    def _case(self, row: Sequence[object]) -> tuple[Case, Prompt]:
        """A row as an input without edits, and its prompt."""
        values = {name: scalar(v) for name, v in zip(self.schema.names, row, strict=True)}
        if self.task is None:
            text = json.dumps(values, ensure_ascii=False)
            prompt = Prompt(format=BARE, text=text)
        else:
            said = {name: "not given" if value is None else value for name, value in values.items()}
            text = "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in said.items())
            prompt = self.task.bare(text) if self.format == BARE else self.task.render(text, self.format)
        self.asked[prompt.sha256] = values
        name = id_of("r", text)
        original = Variant(id=f"{name}.o", input=values)
        sampling: Sampling = "iid" if self.plan.method == "themis" else "directed"
        suite = f"tabular.{self.plan.method}"
        return Case(id=name, suite=suite, original=original, variants=(), sampling=sampling), prompt

    def _read(self, output: str, format: str) -> Answer:
        if self.task is not None:
            return self.task.read(output, self.model.style, format)
        return Answer(status="ok", value=output) if output.strip() else Answer(status="unparsed", reason="empty")

    def _answer(self, response: Response) -> Answer:
        if response.output is None:
            return unanswered(response.error or "")
        answer = self._read(response.output, response.format)
        one_label = answer.status != "ok" or isinstance(answer.value, str)
        return answer if one_label else Answer(status="unparsed", reason="several labels")

    def _label(self, responses: Sequence[Response]) -> str | None:
        """The answer of more than half of the replicates; None, counted by its reason, without one."""
        self.reported |= {r.model_reported for r in responses if r.model_reported}
        answers = [self._answer(r) for r in responses]
        for label, n in Counter(str(a.value) for a in answers if a.status == "ok").most_common(1):
            if 2 * n > len(responses):
                self.rows["ok"] += 1
                return label
        lost = Counter(a.status for a in answers if a.status != "ok")
        self.rows[lost.most_common(1)[0][0] if lost else "divided"] += 1
        return None

    def repeated(self) -> list[tuple[Mapping[str, object], list[str | None]]]:
        """Return every row that was asked with the label of each replicate; None where there is none."""

        def label(response: Response | None) -> str | None:
            answer = None if response is None else self._answer(response)
            return str(answer.value) if answer is not None and answer.status == "ok" else None

        times = range(self.plan.replicates)
        return [(row, [label(self.answers.get((sha, k))) for k in times]) for sha, row in self.asked.items()]

    def close(self) -> None:
        """Release adapter and cache; what is under way is cancelled."""
        try:
            self._runner.run(self._end())
        finally:
            self.budget.close()
            self._runner.close()

    async def _end(self) -> None:
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self.client.aclose()
        if self._cache is not None:
            self._cache.close()

    def table_model(self) -> TableModel:
        """Return the client as a model of rows. Labels of a server that are all numbers become numbers."""
        fingerprint, predict = self.model.fingerprint, self.predict
        if self.task is not None:
            fingerprint += f"; task {self.task.name} {digest(self.task.sha256, size=8)}"
        else:
            predict = self._decisions
        return TableModel(name=self.model.name, predict=predict, fingerprint=fingerprint, slow=True, close=self.close)

    def _decisions(self, rows: NDArray[np.generic]) -> NDArray[np.generic]:
        """Labels of rows, as numbers where all of them are."""
        labels = self.predict(rows)
        for kind in (int, float):
            with suppress(ValueError):
                numbers = [None if label is None else kind(label) for label in labels.tolist()]
                return np.array(numbers, dtype=object if None in numbers else None)
        return labels


# -- whether labels change by more than answers to one and the same row do ------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """What repeated answers say: how often those to one row differ, and whether those within a case differ more."""

    same_row: Estimate | None  # share of rows of which not all answers were the same; its interval is by case
    note: str  # how changes were tested, or why not
    p_value: float | None = None
    cases: int = 0

    def beside(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with the noise of repeats, by which one may no longer be shown."""
        drowned = self.p_value is None or self.p_value >= LEVEL
        return [
            dataclasses.replace(
                finding,
                noise=self.same_row,
                p_value=self.p_value,
                p_adjusted=self.p_value,
                notes=(*finding.notes, self.note),
                verdict="not_determined" if drowned and finding.verdict == "shown" else finding.verdict,
            )
            for finding in findings
        ]


def measure(
    read: Sequence[tuple[Mapping[str, object], Sequence[str | None]]],
    schema: Schema,
    seed: int,
    *,
    replicates: int,
    complete: bool = True,
) -> Noise:
    """Return the noise of repeated answers, and the test of changes with the protected columns against it.

    ``read`` are rows with the label of each replicate, which are dealt anew within each case all rows of which were
    asked. Nothing is tested unless the search was ``complete``: asked about all rows, whatever the answers were.
    """
    cases: dict[tuple[object, ...], list[Sequence[str | None]]] = defaultdict(list)
    for row, labels in read:
        cases[tuple(value for name, value in row.items() if name not in schema.protected)].append(labels)
    unlike = [[len(set(labels)) > 1 for labels in rows if None not in labels] for rows in cases.values()]
    known = [rows for rows in unlike if rows]
    same_row = korn_graubard([sum(rows) for rows in known], [len(rows) for rows in known]) if known else None
    size = len(schema.combos)
    whole = [rows for rows in cases.values() if len(rows) == size][:CASES]
    if replicates < 2 or not complete or not whole:
        return Noise(same_row=same_row, note=ONCE if replicates < 2 else INCOMPLETE if complete else STOPPED)
    names = sorted({label for _, labels in read for label in labels if label is not None})
    codes = {label: code for code, label in enumerate(names)} | {None: -1}
    answers = np.array([[codes[label] for labels in rows for label in labels] for rows in whole])
    p = permuted(answers, size, len(names), np.random.default_rng([seed, 2]))
    note = (
        f"tested against the noise of {plural(replicates, 'answer')} to each row, dealt anew within "
        f"{plural(len(whole), 'case')}: p = {p:.2g}"
    )
    return Noise(same_row=same_row, note=note, p_value=p, cases=len(whole))


def permuted(answers: NDArray[np.int_], combos: int, labels: int, rng: Generator) -> float:
    """P value of how much more alike the answers to one row are than those to the different rows of its case.

    ``answers`` are label codes, -1 for none, shape (cases, combos * replicates), row after row. The statistic is the
    sum of squared counts of each label in each row. Under the null hypothesis the answers of a case are exchangeable
    over its rows, so they are dealt anew within each case. (The number of changed majorities would not do: three
    answers against three change it however they are dealt.)
    """

    def alike(grid: NDArray[np.int_]) -> int:
        shaped = grid.reshape(len(grid), combos, -1)
        return sum(int(((shaped == label).sum(axis=2) ** 2).sum()) for label in range(labels))

    seen = alike(answers)
    at_least = sum(alike(rng.permuted(answers, axis=1)) >= seen for _ in range(PERMUTATIONS))
    return (1 + at_least) / (1 + PERMUTATIONS)
