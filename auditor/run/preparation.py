"""From a plan to the parts of a run, each built by its registry or module."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from auditor.core.errors import ConfigError
from auditor.core.plan import SUITES as OWN
from auditor.core.plan import Plan, of_package
from auditor.core.protocols import MODELS, ORACLES, Gate, Model, Observer, Oracle, PlaceboMaker, Suite
from auditor.core.shared_plan import EVERY, ServerSettings, SharedPlan
from auditor.core.types import Case, Check, Progress, Prompt, SourceText
from auditor.measure.answer_quality import gold_summary
from auditor.measure.claims import texts_needed
from auditor.models.budget import Budget
from auditor.models.reply_cache import Cache
from auditor.perturb.dictionaries import Dictionary
from auditor.report import run_checks, words
from auditor.run import own_pairs, traffic
from auditor.run.observed import outcomes
from auditor.run.stages import (
    Stages,
    StoredCases,
    create,
    dictionaries_of,
    reads_texts,
    require,
    require_names,
    shuffled,
    source_texts,
    stages,
)
from auditor.tasks.task import Task

if TYPE_CHECKING:
    from auditor.text.parse import Parser

BARE = "bare"  # the format name of an input that is sent as it is
CANARIES = 8  # prompts that are asked again in the middle and at the end
CANARY_REPLICATES = 3
FEW = "too_few_texts"  # in the inputs of a plan: attributes that are left out for want of texts


@dataclass(kw_only=True)
class Parts:
    """What one run is made of, built from a plan by `prepare`."""

    plan: Plan
    task: Task
    suite: Suite
    gate: Gate | None  # None where the checks come with the cases
    oracle: Oracle
    models: list[Model]
    budget: Budget
    cache: Cache | None
    seeds: int | None  # how many texts there are, where that is known
    dictionaries: Sequence[Dictionary] = ()  # whose groups are compared
    texts: Sequence[SourceText] = ()  # the seeds, where they can be spread over workers
    judge: Model | None = None  # compares answers of free text in pairs
    placebos: PlaceboMaker | None = None  # makes placebo variants; None where the cases bring theirs, or have none
    open: Plan | None = None  # as it was given, where little is asked since a model costs money or time
    facts: dict[str, Any] = field(default_factory=dict)  # for the provenance
    parser: Parser | None = None  # of suite and gate


def prepare(
    plan: Plan,
    *,
    models: Sequence[Model] | None = None,
    seeds: Iterable[SourceText] | None = None,
    cases: Iterable[tuple[Case, Mapping[str, Check]]] | None = None,
    need_models: bool = True,
    task: Task | None = None,
) -> Parts:
    """Build the stages of ``plan``, which is settled here."""
    from auditor import tasks

    task = tasks.of_plan(plan) if task is None else task
    brings = seeds is None and plan.data is not None  # a file, which may hold requests or pairs
    if brings and traffic.is_traffic(str(plan.data)):
        task, seeds = traffic.read(plan, task)
    elif plan.columns.keys() & {"messages", "answer"}:
        raise ConfigError(
            "--column messages and answer are for whole requests: --data requests.jsonl, lines with messages."
        )
    _require_sense(plan, task)
    facts: dict[str, Any] = {"task_sha256": task.sha256}
    texts: list[SourceText] = []
    brought = own_pairs.suite_of(plan) if brings and cases is None and seeds is None else None
    if models is None:
        models = _models(plan, task) if need_models else []
    typed, slow = plan, not all(model.fast for model in models)
    plan = typed.settled(slow=slow, looks=not task.kind.text and brought is None)
    if cases is not None:
        made = Stages(StoredCases(cases), None, None, None)
    elif brought is not None:
        made = _brought(plan, brought, facts)
    else:
        if plan.suite not in OWN:
            require(plan)
        if reads_texts(plan):
            texts = source_texts(plan, task, seeds, facts)
        made = stages(plan, task, shuffled(texts, plan.seed) if plan.until_decided else texts, facts)
    if cases is None:
        _require_claims(plan, task, made.seeds)
    chosen = dictionaries_of(plan)
    require_names(plan, made.suite, chosen)
    if isinstance(task, traffic.Traffic):
        traffic.require_models(models)
    if task.turns:
        _require_talks(plan, task, models)
    oracle = oracle_of(plan, task)
    judge = _judge(plan, task) if need_models else None
    budget = Budget(**plan.limits)
    if plan.max_cost is not None:
        for model in (*models, *filter(None, [judge])):
            budget.require_price(model)
    return Parts(
        plan=plan,
        task=task,
        **made._asdict(),
        oracle=oracle,
        models=list(models),
        budget=budget,
        cache=Cache() if plan.cache and not plan.redact and any(m.cacheable for m in models) else None,
        dictionaries=() if plan.protocol == "hinter" else chosen,
        texts=texts,
        judge=judge,
        open=typed if slow and not typed.full_plan and plan.as_dict() != typed.as_dict() else None,
        facts=facts,
    )


def remade(parts: Parts, *, plan: Plan | None = None, texts: Sequence[SourceText] | None = None) -> Parts:
    """Return ``parts`` with a fresh suite and gate for another plan or other texts; all else is shared."""
    plan, facts = plan or parts.plan, dict(parts.facts)
    chosen = parts.texts if texts is None else texts
    if isinstance(parts.suite, own_pairs.Pairs):
        made = _brought(plan, own_pairs.Pairs(str(plan.data), limit=plan.limit), facts)
    else:
        ordered = shuffled(chosen, plan.seed) if plan.until_decided else chosen
        made = stages(plan, parts.task, ordered, facts, parts.parser)
    return dataclasses.replace(parts, plan=plan, texts=chosen, facts=facts, **made._asdict())


def left_out(parts: Parts) -> list[str]:
    """What a plan leaves out, and that it has too few texts to decide anything, in sentences."""
    plan, few = parts.plan, parts.facts.get(FEW, {})
    said = [*filter(None, [cheap_said(parts)])]
    if few:
        named = words.listing([f"{name} ({one['texts']} of {one['needed']})" for name, one in few.items()])
        said.append(
            f"Left out, since they have too few texts to decide anything: {named}. --attributes asks about them."
        )
    seeds = parts.facts.get("seeds", {})
    if gone := run_checks.dropped(seeds.get("skipped"), seeds.get("repeated")):
        said.append(f"Left out of {seeds['source']}: {gone}.")
    if parts.task.labels:
        gold = gold_summary((t.label for t in parts.texts), lambda label: parts.task.read(label, "text").status == "ok")
        said += filter(None, [run_checks.golds(gold, parts.task.labels)])
    if plan.labels and any(model.style == "chat" for model in parts.models):
        said.append(
            "A plain prompt asks for your labels. A task file asks in your own words: audit list tasks new NAME."
        )
    needed, texts = texts_needed(), parts.seeds
    plain = (plan.suite, plan.protocol) == ("mutation", "default")
    if plain and parts.task.labels and texts is not None and texts * (plan.wordings or 1) < needed:
        said.append(
            f"This plan can decide little: with {words.plural(texts, 'text')} even a difference of 30 points between "
            f"labels goes unnoticed. Use at least {needed}."
        )
    return said


def cheap_said(parts: Parts) -> str:
    """Say what is asked by default where a model costs money or time; "" where the plan sets the limit of calls."""
    plan = parts.plan
    if parts.open is None or plan.max_calls == parts.open.max_calls:
        return ""
    stops = " and stops when every claim is decided" if plan.until_decided else ""
    return f"Asks at most {plan.max_calls:,} calls{stops}; --full-plan asks everything."


def tell_left_out(parts: Parts, observe: Observer) -> None:
    """Tell what a plan leaves out, and that it can decide little."""
    for line in left_out(parts):
        observe(Progress(phase="plan", done=0, message=line))


def tell_proxies(models: Iterable[Model | None], observe: Observer) -> None:
    """Say which models are asked through a proxy of the environment."""
    for model in models:
        if model is not None and model.proxy:
            said = f"{model.name} is asked through the proxy {model.proxy} of the environment; NO_PROXY leaves it out"
            observe(Progress(phase="plan", done=0, message=said))


def _brought(plan: Plan, suite: own_pairs.Pairs, facts: dict[str, Any]) -> Stages:
    facts["seeds"] = {"source": plan.data, "n": suite.texts, "skipped": suite.skipped.total(), "sha256": suite.sha256}
    return Stages(suite, None, suite.texts, None)


def _require_sense(plan: Plan, task: Task) -> None:
    """Refuse what a plan asks for that cannot be done with its task, or not together."""
    if plan.redact and task.kind.text:
        raise ConfigError(
            f"--redact keeps the label of an answer, and the answers to task {task.name!r} are texts. "
            "Leave --redact out."
        )
    for name in plan.formats:
        if name != "all" and name not in task.formats:
            raise ConfigError(
                f"task {task.name!r} has no prompt format {name!r}; formats: {', '.join(task.formats)}, all."
            )
    if plan.suite == "joint-first" and task.kind.by_degrees:
        raise ConfigError(
            f"--suite joint-first compares labels; the answers to task {task.name!r} are {task.kind.noun}, which "
            "differ by degrees. Leave --suite out."
        )


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
            "--until-decided looks at the answers at shares of a budget, and the number of texts is unknown. Set a "
            "budget: --max-calls N, or --max-cost USD."
        )


def _require_talks(plan: Plan, task: Task, models: Sequence[Model]) -> None:
    if plan.batch:
        raise ConfigError("--batch: each turn of a conversation waits for the one before. Leave --batch out.")
    for model in models:
        if model.style == "text" or (task.tools and not model.calls_tools):
            raise ConfigError(
                f"{model.name} cannot hold the conversation of task {task.name!r}: openai: and langchain: models can, "
                "and python: functions with a parameter `tools` (they get messages and tools)."
            )


def oracle_of(plan: Plan, task: Task) -> Oracle:
    """Chosen by the plan, or else by the kind of the task."""
    if of_package(plan.oracle):
        return create(ORACLES, plan.oracle, {"task": task})
    if plan.oracle != "probability":
        from auditor.models.pair_judge import embedder

        options: dict[str, object] = {}
        if "tolerance" in task.kind.options:
            options["tolerance"] = plan.tolerance[0] if plan.tolerance else task.tolerance
        if "judge" in task.kind.options:
            options |= {} if plan.encoder is None else {"embed": embedder(plan.encoder)}
        return ORACLES.create(task.kind.oracle, **options)
    label = next(iter((*outcomes(task, {}), *task.labels)), None)
    if label is None:
        raise ConfigError(f"--oracle probability needs a task with labels; {task.name!r} is of kind {task.kind}.")
    return ORACLES.create(
        "probability",
        label=label,
        shares=_shares(plan, task, label) if plan.reference == "bls" else None,
        **({"epsilons": plan.tolerance} if plan.tolerance else {}),
    )


def _judge(plan: Plan, task: Task) -> Model | None:
    """The model that compares texts; only free text has any."""
    tolerance = () if plan.oracle == "probability" else plan.tolerance
    for name, value, kind in (("judge", plan.judge, "generation"), ("tolerance", tolerance, "score")):
        if value and name not in task.kind.options:
            raise ConfigError(f"--{name} belongs to tasks of kind {kind}; {task.name!r} is of kind {task.kind}.")
    if plan.judged_by is None:
        return None
    from auditor import models, tasks

    reach = {
        k: v for k, v in plan.settings_for(plan.judged_by).items() if k in ("headers", "timeout_s")
    }  # of the same server
    return models.make(plan.judged_by, base_url=plan.base_url, task=tasks.load("judge"), server=reach)


def _shares(plan: Plan, task: Task, label: str) -> dict[str, float]:
    """Share of the people in each occupation whom the possessive ``label`` stands for, as the grammar says."""
    from auditor.perturb import grammar
    from auditor.tasks.oracles import shares_of

    loaded = grammar.load(plan.of_suite.get("grammar") or task.name)
    if label not in ("his", "her"):
        raise ConfigError(
            f"--reference bls needs a task whose first label is his or her; that of {task.name!r} is {label!r}."
        )
    shares = shares_of(loaded, women=label == "her")
    if not shares:
        raise ConfigError(
            f"--reference bls: the grammar {loaded.full_name} has no occupations with women_percent. "
            "Use --suite-option grammar=fill-mask, or add the figures to yours (see: audit list grammars format)."
        )
    return shares


def _models(plan: Plan, task: Task) -> list[Model]:
    from auditor import models

    specs = plan.models or models.defaults(task)
    scores = {"logprobs": False} if plan.batch else {}  # a refusal would cost the whole batch
    insisted = {"logprobs": True} if plan.oracle == "probability" else {}
    made = [
        models.make(spec, base_url=plan.base_url, task=task, server=scores | plan.settings_for(spec) | insisted)
        for spec in specs
    ]
    require_server(plan, specs)
    return made


def require_server(plan: SharedPlan, specs: Sequence[str]) -> None:
    """Refuse options of servers that no model can use."""
    from auditor import models

    taken = {spec: MODELS.options(models.parts_of(spec)[0]) for spec in specs}
    asked = {name: set[str]().union(*taken.values()) for name in plan.server.get(EVERY, {})}
    for spec in specs:
        asked |= {name: set(taken[spec]) for name in plan.server.get(spec, {})}
    for name, known in asked.items():
        if name not in known and name != "logprobs":  # a model that gives none does without
            alias = ServerSettings.model_fields[name].alias or name
            raise ConfigError(f"--server {alias} is for models behind a server; {', '.join(specs)} cannot use it.")


def formats_for(plan: Plan, task: Task, model: Model | None) -> tuple[str, ...]:
    """The prompt formats that ``model`` is asked in; a classifier gets the bare input."""
    if model is not None and model.style == "text":
        return (BARE,)
    if not plan.formats:
        return (task.default_format,)
    return tuple(task.formats) if "all" in plan.formats else plan.formats


def prompt_of(task: Task, text: object, style: str, format: str | None = None) -> Prompt:
    """How a model of ``style`` is asked about ``text``: with the bare text, or in a format of the task."""
    return task.bare(str(text)) if style == "text" else task.render(str(text), format)


def plan_of(spec: Mapping[str, object]) -> Plan:
    """The plan in the ``spec`` of a run record, as far as this version knows its settings."""
    return Plan.from_dict({name: spec[name] for name in Plan.settings() if name in spec and name != "fail_on"})
