"""From a plan to the stages of a run, each built by its registry or module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from auditor.core.errors import ConfigError
from auditor.core.plan import CONFIRM_REPLICATES, DEFAULT_REPLICATES, Plan, of_package
from auditor.core.protocols import Gate, Model, Oracle, PlaceboMaker, Suite
from auditor.core.shared_plan import SharedPlan
from auditor.core.types import Case, Check, SourceText
from auditor.run import cluster, pairs, plugins, traffic
from auditor.run.controls import CANARIES, CANARY_REPLICATES, control_pairs, outcomes
from auditor.run.stages import dictionaries_of, shuffled, source_texts, stages
from auditor.tasks.task import Task

BARE = "bare"  # the format name of an input that is sent as it is


@dataclass(kw_only=True)
class Parts:
    """The stages of one run, built from a plan by `prepare`."""

    plan: Plan
    task: Task
    suite: Suite
    gate: Gate | None  # batch validity; None where the checks come with the cases
    agreement: Any
    oracle: Oracle
    models: list[Model]
    budget: Any
    cache: Any | None
    seeds: int | None  # how many are given, where that is known
    dictionaries: Sequence[Any] = ()  # whose groups are compared
    texts: Sequence[SourceText] = ()  # the seeds, where they can be spread over workers
    judge: Model | None = None  # compares answers of free text in pairs
    placebos: PlaceboMaker | None = None  # makes placebo variants; None where the cases bring theirs, or have none
    facts: dict[str, Any] = field(default_factory=dict)  # for the provenance


def prepare(
    plan: Plan,
    *,
    models: Sequence[Model] | None = None,
    seeds: Iterable[SourceText] | None = None,
    cases: Iterable[tuple[Case, Mapping[str, Check]]] | None = None,
    need_models: bool = True,
    task: Task | None = None,
) -> Parts:
    """Build the stages of ``plan``.

    Parameters
    ----------
    plan : Plan
        What to run.
    models : sequence of Model, optional
        Adapters to use instead of those that ``plan.models`` names.
    seeds : iterable of SourceText, optional
        Texts to use instead of ``plan.data`` or the task's embedded ones.
    cases : iterable of (Case, checks), optional
        Stored cases to use instead of a suite.
    need_models : bool, default True
        False builds no adapter (``audit generate``).
    task : Task, optional
        A task to use instead of the one that ``plan.task`` names.

    Raises
    ------
    UserError
        Anything in the plan that cannot be done; nothing has been asked then.
    """
    from auditor import tasks
    from auditor.models.budget import Budget
    from auditor.models.cache import Cache

    task = tasks.load(plan.task) if task is None else task
    _require_one_process(plan)
    if seeds is None and traffic.is_traffic(plan.data):
        task, seeds = traffic.read(plan, task)
    elif plan.messages or plan.answer_path is not None:
        raise ConfigError(
            "--messages and --answer-path are for whole requests: --data requests.jsonl, lines with messages."
        )
    if plan.redact and task.kind.text:
        raise ConfigError(
            f"--redact keeps the label of an answer, and the answers to task {task.name!r} are texts. "
            "Leave --redact out."
        )
    _require_adaptive(plan, task)
    for name in plan.formats:
        if name != "all" and name not in task.formats:
            raise ConfigError(
                f"task {task.name!r} has no prompt format {name!r}; formats: {', '.join(task.formats)}, all."
            )
    facts: dict[str, Any] = {"task_sha256": task.sha256}
    gate, agreement, n_seeds, placebos = None, None, None, None
    suite: Suite
    texts: list[SourceText] = []
    brought = pairs.suite_of(plan) if cases is None and seeds is None else None
    if cases is not None:
        suite = StoredCases(cases)
    elif brought is not None:
        suite, n_seeds = brought, brought.texts
        gate, agreement = _doubts(plan, brought, facts)
    else:
        if not plugins.is_own(plan):
            plugins.require(plan)
        if plugins.reads_texts(plan):
            texts = source_texts(plan, task, seeds, facts)
        ordered = shuffled(texts, plan.seed) if plan.until_decided else texts
        suite, gate, agreement, n_seeds, placebos = stages(plan, task, ordered, facts)
    if cases is None:
        _require_claims(plan, task, n_seeds)
    if models is None:
        models = _models(plan, task) if need_models else []
    traffic.require_models(task, models)
    _require_talks(plan, task, models)
    oracle = _oracle(plan, task)
    if suite.listens:
        _leave_calls(plan, task, suite, models)
    budget = Budget(
        max_calls=plan.max_calls,
        max_cost=plan.max_cost,
        max_seconds=plan.max_seconds,
        price_in=plan.price_in,
        price_out=plan.price_out,
    )
    judge = _judge(plan, task) if need_models else None
    if plan.max_cost is not None:
        for model in (*models, *filter(None, [judge])):
            budget.require_price(model)
    return Parts(
        plan=plan,
        task=task,
        suite=suite,
        gate=gate,
        agreement=agreement,
        oracle=oracle,
        models=list(models),
        budget=budget,
        cache=Cache() if plan.cache and not plan.redact and any(m.cacheable for m in models) else None,
        seeds=n_seeds,
        dictionaries=() if plan.protocol == "hinter" else dictionaries_of(plan),
        texts=texts,
        judge=judge,
        placebos=placebos,
        facts=facts,
    )


def _doubts(plan: Plan, suite: pairs.Pairs, facts: dict[str, object]) -> tuple[Gate, Any]:
    """The checks of pairs that are brought, which leave nothing out."""
    from auditor.core.registry import CHECKS
    from auditor.text.parse import Parser

    parser = Parser(plan.parser)
    facts["parser"] = {"name": parser.name, "sha256": parser.fingerprint}
    facts["seeds"] = {"source": plan.data, "n": suite.texts, "skipped": suite.skipped.total(), "sha256": suite.sha256}
    gate = plugins.create(CHECKS, plan.checked_by, {"parser": parser})
    return pairs.Doubts(gate, suite), CHECKS.create("agreement")


def _require_claims(plan: Plan, task: Task, n_seeds: int | None) -> None:
    """Refuse to stop early where nothing is claimed, or nobody knows where the end is."""
    if not plan.until_decided:
        return
    if task.kind.text:
        raise ConfigError(
            f"--until-decided looks at claims about labels or numbers; the answers to task {task.name!r} are texts. "
            "Leave --until-decided out."
        )
    if n_seeds is None and not plan.max_calls and not plan.max_cost:
        raise ConfigError(
            "--until-decided looks at the answers at shares of a budget, and here nobody knows how many texts there "
            "are. Set one: --max-calls N, or --max-cost USD."
        )


def _require_one_process(plan: Plan) -> None:
    if plan.strategy == "adaptive" and (plan.jobs > 1 or plan.engine != "local"):
        raise ConfigError(
            "--strategy adaptive decides each round by the answers to the one before, in one process; "
            "leave --jobs and --engine out."
        )


def _require_talks(plan: Plan, task: Task, models: Sequence[Model]) -> None:
    """Refuse models that cannot hold a conversation."""
    if not task.turns:
        return
    if plan.batch:
        raise ConfigError("--batch: each turn of a conversation waits for the one before. Leave --batch out.")
    for model in models:
        if model.style == "text" or (task.tools and not model.calls_tools):
            raise ConfigError(
                f"{model.name} cannot hold the conversation of task {task.name!r}: openai: and langchain: models can, "
                "and python: functions with a parameter `tools` (they get messages and tools)."
            )


def _require_adaptive(plan: Plan, task: Task) -> None:
    if plan.strategy != "adaptive":
        return
    if task.kind.by_degrees:
        raise ConfigError(
            f"--strategy adaptive goes where labels change; the answers to task {task.name!r} are "
            f"{task.kind.noun}, which differ by degrees. Leave --strategy out."
        )
    if plan.batch:
        raise ConfigError(
            "--strategy adaptive decides each round by the answers to the one before, and a batch may take a day; "
            "leave --batch out."
        )
    if plan.suite != "mutation":
        raise ConfigError(
            f"--strategy adaptive searches texts that are given; --suite {plan.suite} generates its own. "
            "Leave --suite out, or leave --strategy out."
        )
    if plan.protocol != "default":
        raise ConfigError(
            f"--protocol {plan.protocol} says itself what is asked; --strategy adaptive belongs to the default one."
        )


def _oracle(plan: Plan, task: Task) -> Oracle:
    """Chosen by the plan, or else by the kind of the task."""
    from auditor.core.registry import ORACLES

    if of_package(plan.oracle):
        return plugins.create(ORACLES, plan.oracle, {"task": task})
    if plan.oracle != "probability":
        options: dict[str, object] = {}
        if "tolerance" in task.kind.options:
            options["tolerance"] = task.tolerance if plan.tolerance is None else plan.tolerance
        if "embedding" in task.kind.options:
            options |= _embedding(plan)
        return ORACLES.create(task.kind.oracle, **options)
    label = next(iter((*outcomes(task, {}), *task.labels)), None)
    if label is None:
        raise ConfigError(f"--oracle probability needs a task with labels; {task.name!r} is of kind {task.kind}.")
    return ORACLES.create(
        "probability",
        label=label,
        reference="shares" if plan.reference == "bls" else "equal",
        shares=_shares(plan, task, label) if plan.reference == "bls" else None,
        **({"epsilons": plan.epsilon} if plan.epsilon else {}),
    )


def _embedding(plan: Plan) -> dict[str, object]:
    if plan.embedding is None:
        return {}
    from auditor.models.judge import embedder

    return {"embed": embedder(plan.embedding)}


def _judge(plan: Plan, task: Task) -> Model | None:
    """The model that compares texts; only free text has any."""
    for name, given, kind in (
        ("judge", plan.judge, "generation"),
        ("embedding", plan.embedding, "generation"),
        ("tolerance", plan.tolerance, "score"),
    ):
        if given is not None and name not in task.kind.options:
            raise ConfigError(f"--{name} belongs to tasks of kind {kind}; {task.name!r} is of kind {task.kind}.")
    if plan.judge is None:
        return None
    from auditor import models, tasks

    reach = {k: v for k, v in plan.server(plan.judge).items() if k in ("headers", "timeout_s")}  # of the same server
    return models.make(plan.judge, base_url=plan.base_url, task=tasks.load("judge"), server=reach)


def _shares(plan: Plan, task: Task, label: str) -> dict[str, float]:
    """Share of the people in each occupation whom the possessive ``label`` stands for, as the grammar says."""
    from auditor.perturb import grammar
    from auditor.tasks.oracles.probability import shares_of

    loaded = grammar.load(plan.grammar or task.name)
    if label not in ("his", "her"):
        raise ConfigError(
            f"--reference bls needs a task whose first label is his or her; that of {task.name!r} is {label!r}."
        )
    found = shares_of(loaded, women=label == "her")
    if not found:
        raise ConfigError(
            f"--reference bls: the grammar {loaded.full_name} has no occupations with women_percent. "
            "Use --grammar fill-mask, or add the figures to yours (see: audit grammar format)."
        )
    return found


def _leave_calls(plan: Plan, task: Task, suite: Any, models: Sequence[Model]) -> None:
    """A search takes all calls there are; as many are kept as it takes to ask its candidates again."""
    unsure = [m for m in models if not m.deterministic]
    if plan.max_calls is None or not unsure:
        return
    # The first prompts are asked again in the middle and at the end, and pairs that must get different answers.
    pairs = 2 * len(control_pairs(task)) * (plan.replicates or DEFAULT_REPLICATES)
    times = sum(len(formats_for(plan, task, model)) for model in models)
    left = plan.max_calls / times
    controls = pairs + 2 * CANARIES * CANARY_REPLICATES
    suite.keep(max(left - controls, 0.5 * left), CONFIRM_REPLICATES)


def _models(plan: Plan, task: Task) -> list[Model]:
    from auditor import models

    specs = plan.models or models.defaults(task)
    scores = True if plan.oracle == "probability" else plan.logprobs
    if scores is None and plan.batch:
        scores = False  # a refusal would cost the whole batch
    made = [
        models.make(spec, base_url=plan.base_url, task=task, logprobs=scores, server=plan.server(spec))
        for spec in specs
    ]
    require_server(plan, specs)
    if plan.engine == "ray":
        made = cluster.remote(made, specs, plan)
    return made


def require_server(plan: SharedPlan, specs: Sequence[str]) -> None:
    """Refuse options of servers that no model can use.

    Raises
    ------
    ConfigError
        The option, and the models.
    """
    from auditor import models
    from auditor.core.registry import MODELS

    taken = {spec: MODELS.options(models.parts_of(spec)[0]) for spec in specs}
    asked = {name: set[str]().union(*taken.values()) for name in plan.given()}
    for spec in specs:
        asked |= {name: set(taken[spec]) for name in plan.per_model.get(spec, {})}
    for name, known in asked.items():
        if name not in known:
            raise ConfigError(f"{plan.flag(name)} is for models behind a server; {', '.join(specs)} cannot use it.")


class StoredCases(Suite):
    """A suite that hands out cases which were generated before."""

    name = "stored.v1"

    def __init__(self, cases: Iterable[tuple[Case, Mapping[str, Check]]]) -> None:
        self._cases = iter(cases)
        self.checks: dict[str, Check] = {}

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """The next ``n`` stored cases; their checks are put beside them."""
        taken: list[Case] = []
        for case, checks in self._cases:
            taken.append(case)
            self.checks.update(checks)
            if len(taken) == n:
                break
        return taken


def formats_for(plan: Plan, task: Task, model: Model | None) -> tuple[str, ...]:
    """The prompt formats that ``model`` is asked in; a classifier gets the bare input."""
    if model is not None and model.style == "text":
        return (BARE,)
    if not plan.formats:
        return (task.default_format,)
    return tuple(task.formats) if "all" in plan.formats else plan.formats
