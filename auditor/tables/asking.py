"""The model of a tabular run: opened, wrapped, tried on one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from auditor.core.errors import BudgetExceeded, ConfigError, ModelFailed
from auditor.core.protocols import Observer
from auditor.core.types import Case, Progress, Prompt, Response, Sampling, Variant
from auditor.run.parts import require_server
from auditor.store.folder import RunFolder
from auditor.tables.data import load_task
from auditor.tables.distance import read_distance
from auditor.tables.evaluate import Evaluator, Limit
from auditor.tables.given import Given, Rows, binned
from auditor.tables.noise import Book
from auditor.tables.plan import TabularPlan
from auditor.tables.schema import Schema, uniform
from auditor.tables.slices import Slices, slices

Spell = Callable[[Sequence[str], Sequence[object]], str]  # columns and a row → the text that is sent

if TYPE_CHECKING:
    from auditor.core.protocols import Model
    from auditor.models.tables import TableModel
    from auditor.tables.rows import RowClient, RowDecision
    from auditor.tasks.task import Task

GIVEN = 500  # given rows from which on slices are about them
SLICE_CASES = 20_000
SLICE_ROWS = 4_000_000  # that slices may cost
KEPT = 1_000_000  # a limit up to which answers are kept, so that finds need not be asked again


def open_model(
    plan: TabularPlan, schema: Schema, folder: RunFolder | None, tell: Observer, book: Book | None = None
) -> tuple[TableModel, RowClient | None]:
    """The model of rows, and the client behind it where a task or a server is asked.

    ``book`` takes note of rows and answers, those of an earlier, cut-off try included.
    """
    book = book or Book()
    from auditor.models.tables import load_table_model

    if not plan.served:
        for name in (*plan.given(), *(("per_model",) if plan.per_model else ())):
            raise ConfigError(f"{plan.flag(name)} is for models behind a server; {plan.model} cannot use it.")
        try:
            model = load_table_model(
                plan.model, schema.names, trust_pickle=plan.trust_pickle, max_seconds=plan.max_seconds
            )
            return model, None
        except ConfigError as error:
            hidden = [c for c in schema.columns if c.kind == "derived" and f"{c.source!r}" in str(error)]
            if not hidden:
                raise
            one = hidden[0]
            others = [name for name in schema.protected if name != one.name]
            raise ConfigError(
                f"model {plan.model} reads the column {one.source!r}, in whose place the schema has {one.name!r}, "
                f"derived from it. Protect the column that the model reads: --protected "
                f"{','.join([str(one.source), *others])}; or give a model that was trained on {one.name!r}"
            ) from error
    from auditor.models.budget import BOOK, Budget
    from auditor.models.cache import Cache
    from auditor.models.client import definitive
    from auditor.tables.rows import RowClient, predict_from_client

    task, adapter, spell = _adapter(plan)
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
            book.response(response)

    def progress(client: RowClient) -> None:
        counts = client.client.counts
        tell(
            Progress(
                phase="ask",
                model=plan.model,
                done=counts.answered + counts.cached + counts.replayed + counts.failed,
                cached=counts.cached,
                failed=client.rows["failed"],
                cost_usd=counts.cost_usd or None,
            )
        )

    def keep(row: Variant, prompt: Prompt) -> None:
        book.row(row, prompt)
        if folder is None:
            return
        sampling: Sampling = "iid" if plan.method == "themis" else "directed"
        name = row.id.partition(".")[0]
        case = Case(id=name, suite=f"tabular.{plan.method}", original=row, variants=(), sampling=sampling)
        folder.add_case(case, {})
        folder.add_prompt(row.id, prompt)

    def heard(response: Response) -> None:
        book.response(response)
        if folder is not None:
            folder.add_response(response)
        progress(asked)

    cache = Cache() if plan.cache and adapter.cacheable else None
    if cache is not None:
        cache.tell(lambda said: tell(Progress(phase="cache", done=0, message=said)))
    asked = RowClient(
        adapter,
        task,
        schema.names,
        budget=budget,
        book=None if folder is None else folder.path / BOOK,
        first_limit=None if folder is None else folder.plan.get("max_calls"),
        per_case=len(schema.combos),
        cache=cache,
        format=plan.prompt_format,
        replicates=plan.replicates,
        concurrency=plan.concurrency,
        answered=known,
        on_row=keep,
        on_response=heard,
        spell=spell,
    )
    return predict_from_client(asked), asked


def _adapter(plan: TabularPlan) -> tuple[Task | RowDecision, Model, Spell | None]:
    """Task, adapter and how a row is spelled; None for the default."""
    require_server(plan, [plan.model])
    if plan.task is None:
        from auditor.models.http import HttpTemplate
        from auditor.tables.rows import RowDecision, row_json

        return RowDecision(), HttpTemplate(plan.model.partition(":")[2], rows=True), row_json
    from auditor import models

    task = load_task(plan.task)
    return (task, models.make(plan.model, base_url=plan.base_url, task=task, server=plan.server(plan.model)), None)


def evaluator_of(
    plan: TabularPlan, schema: Schema, model: TableModel, asked: RowClient | None, tell: Observer
) -> Evaluator:
    """What asks the model, with the limits and the distance of the plan."""

    def watch(rows: int) -> None:
        if asked is None:  # a client tells of its calls itself
            tell(Progress(phase="rows asked", model=plan.model, done=rows, planned=plan.max_evaluations))

    return Evaluator(
        model.predict,
        schema,
        cache=model.slow,
        keep=plan.max_evaluations is not None and plan.max_evaluations <= KEPT,
        budget=Limit(evaluations=plan.max_evaluations, seconds=plan.max_seconds),
        frame=model.frame,
        distance=read_distance(plan.distance, plan.distance_threshold, plan.distance_scale),
        left=None if asked is None else asked.left,
        watch=watch,
    )


def try_one(evaluator: Evaluator, given: Given, model: TableModel) -> None:
    """Ask about one row, and one that lacks a value, so that a model that cannot read them is named at once."""
    if not len(given):
        return
    lacking = [
        given.bins[:, j] == column.codes - 1 for j, column in enumerate(evaluator.schema.columns) if column.may_lack
    ]
    # Slow and limited models meet such rows in the search: what may be asked belongs to it.
    ask = [0] if evaluator.slow or evaluator.remaining is not None else [0, *(int(r.argmax()) for r in lacking)]
    try:
        for row in dict.fromkeys(ask):
            evaluator.labels(given[row : row + 1])
    except BudgetExceeded:
        return  # the method meets the limit itself and reports a partial result
    except ModelFailed as error:
        if not isinstance(error.__cause__, ValueError | TypeError | IndexError | KeyError):
            raise
        columns = evaluator.schema.names
        raise ConfigError(
            f"model {model.name} cannot read a row of {len(columns)} columns ({', '.join(columns)}): "
            f"{error}. Does the schema have the columns it was trained on?"
        ) from error


def slices_of(plan: TabularPlan, evaluator: Evaluator, rows: Given) -> Slices | None:
    """Subgroups with high rates, over given rows where there are enough, else over uniform ones.

    Not for slow or limited models: what may be asked belongs to the search.
    """
    schema = evaluator.schema
    few = len(schema.protected_index) == 0 or len(schema.combos) > SLICE_ROWS // SLICE_CASES
    if plan.slices < 1 or evaluator.slow or evaluator.remaining is not None or few:
        return None
    rng = np.random.default_rng([plan.seed, 1])
    given = len(rows) >= GIVEN
    cases: Rows = rows[rng.permutation(len(rows))[:SLICE_CASES]] if given else uniform(schema, SLICE_CASES, rng)
    before = evaluator.evaluations
    judged = evaluator.judge(cases)
    clear = ~judged.undecided
    return slices(
        schema,
        binned(cases)[clear],
        judged.discriminatory[clear],
        population="given rows" if given else "domain (uniform)",
        show=plan.slices,
        evaluations=evaluator.evaluations - before,
    )
