"""From a plan to the parts of a run, each built by its registry or module.

Among them is what makes the cases and checks them: texts, dictionaries, suite, gate, placebos.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from auditor.core.errors import ConfigError, UnknownValue
from auditor.core.fail_on import parse
from auditor.core.options import EVERY, ServerSettings, SharedPlan
from auditor.core.plan import SUITES as OWN
from auditor.core.plan import Plan, of_package
from auditor.core.protocols import (
    CHECKS,
    MODELS,
    ORACLES,
    SUITES,
    Gate,
    Model,
    Observer,
    Oracle,
    PlaceboMaker,
    Registry,
    Suite,
)
from auditor.core.types import Case, Check, Progress, Prompt, SourceText, id_of
from auditor.models.limits import Budget
from auditor.models.reply_cache import Cache
from auditor.perturb.dictionaries import Dictionary
from auditor.run.own_data import Pairs, Traffic, is_traffic, read_requests, require_models, suite_of
from auditor.tasks.task import Task

if TYPE_CHECKING:
    from auditor.text.parse import Parser

BARE = "bare"  # the format name of an input that is sent as it is
CANARIES = 8  # prompts that are asked again in the middle and at the end
CANARY_REPLICATES = 3
FEW = "too_few_texts"  # in the inputs of a plan: attributes that are left out for want of texts
WORKER_MEMORY = 20_000  # parses of sentences that one of several workers remembers
# What a suite of another package is given, where its signature names it.
OFFERED = ("seeds", "dictionaries", "attributes", "order", "per_seed", "parser", "limit_chars", "seed", "task")
P = TypeVar("P")


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


class Stages(NamedTuple):
    """What makes cases and checks them."""

    suite: Suite
    gate: Gate | None  # None where the checks come with the cases
    seeds: int | None  # how many texts there are, where that is known
    placebos: PlaceboMaker | None  # None where the cases bring theirs, or have none
    parser: Parser | None = None


class StoredCases(Suite):
    """A suite that hands out cases which were generated before, with their checks."""

    name = "stored.v1"

    def __init__(self, cases: Iterable[tuple[Case, Mapping[str, Check]]]) -> None:
        self._cases = iter(cases)
        self.checks: dict[str, Check] = {}

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """The next ``n`` stored cases; their checks are put beside them."""
        taken = list(islice(self._cases, n))
        for _, checks in taken:
            self.checks.update(checks)
        return [case for case, _ in taken]


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
    if brings and is_traffic(str(plan.data)):
        task, seeds = read_requests(plan, task)
    elif plan.columns.keys() & {"messages", "answer"}:
        raise ConfigError(
            "--column messages and answer are for whole requests: --data requests.jsonl, lines with messages."
        )
    _require_sense(plan, task)
    facts: dict[str, Any] = {"task_sha256": task.sha256}
    texts: list[SourceText] = []
    brought = suite_of(plan) if brings and cases is None and seeds is None else None
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
    if isinstance(task, Traffic):
        require_models(models)
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
    if isinstance(parts.suite, Pairs):
        made = _brought(plan, Pairs(str(plan.data), limit=plan.limit), facts)
    else:
        ordered = shuffled(chosen, plan.seed) if plan.until_decided else chosen
        made = stages(plan, parts.task, ordered, facts, parts.parser)
    return dataclasses.replace(parts, plan=plan, texts=chosen, facts=facts, **made._asdict())


def tell_proxies(models: Iterable[Model | None], observe: Observer) -> None:
    """Say which models are asked through a proxy of the environment."""
    for model in models:
        if model is not None and model.proxy:
            said = f"{model.name} is asked through the proxy {model.proxy} of the environment; NO_PROXY leaves it out"
            observe(Progress(phase="plan", done=0, message=said))


def _brought(plan: Plan, suite: Pairs, facts: dict[str, Any]) -> Stages:
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
    label = next(iter((*task.outcomes({}), *task.labels)), None)
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


# -- what makes the cases and checks them -----------------------------------------------------------------


def shuffled(texts: Iterable[SourceText], seed: int) -> list[SourceText]:
    """``texts`` in random order: the same ones come in the same order, in whatever order they are given."""
    return sorted(texts, key=lambda text: id_of("s", [seed, text.id, text.text]))


def stages(
    plan: Plan,
    task: Task,
    texts: Sequence[SourceText] | Iterator[SourceText],
    facts: dict[str, Any],
    parser: Parser | None = None,
) -> Stages:
    """Build what makes the cases of ``plan``; plug-in suites get what they name of `OFFERED`."""
    from auditor.text.parse import Parser

    if plan.suite == "grammar":
        return _grammar(plan, task, facts)
    # A worker sees a part of the texts, and there are several: each remembers less.
    number = len(texts) if isinstance(texts, Sequence) else None
    if parser is None:
        parser = Parser(plan.parser) if number is not None else Parser(plan.parser, max_sentences=WORKER_MEMORY)
    dictionaries = dictionaries_of(plan)
    offered: dict[str, object] = {
        "seeds": texts,
        "dictionaries": dictionaries,
        "attributes": plan.attributes,
        "order": min(plan.order, 2) if plan.protocol == "hinter" else plan.order,
        "per_seed": plan.per_seed,
        "parser": parser,
        "limit_chars": task.kept,
        "seed": plan.seed,
        "task": task,
    }
    name, own = plan.suite, plan.suite in OWN
    suite: Suite
    placebos: PlaceboMaker | None = None
    if not own:
        name = require(plan)
        suite = create(SUITES, name, offered | _own_options(plan, name))
        facts["plugin"] = {"suite": name, "from": SUITES.origin(name)}
        if "seeds" not in SUITES.options(name):
            facts["seeds"] = {"source": f"made by the suite {name}", "n": None, "skipped": {}, "sha256": None}
            number = None
        placebos = suite if suite.brings_placebos else None
        if suite.checks is not None:
            return Stages(suite, None, number, placebos, parser)
    gate = create(CHECKS, plan.checked_by, {"parser": parser})
    facts["parser"] = {"name": parser.name, "sha256": parser.fingerprint}
    if not own:
        return Stages(suite, gate, number, placebos, parser)
    if plan.protocol == "hinter":
        return Stages(create(SUITES, "hinter", offered), gate, number, None, parser)
    who = plan.who or ("subject" if task.subject else "all-one-way")
    facts["people"] = {"who": who, "subject": task.subject}
    groups: dict[str, list[str]] = {}
    for attribute, _, group in (one.partition(":") for one in plan.groups):
        groups.setdefault(attribute, []).append(group)
    offered |= {"who": who, "subject": task.subject, "groups": groups}
    suite = _with_lines(plan, task, name, offered) or create(SUITES, name, offered)
    return Stages(suite, gate, number, _placebos(suite, dictionaries, task), parser)


def require_names(plan: Plan, suite: Suite, dictionaries: Sequence[Dictionary]) -> None:
    """Refuse a ``--reference`` or a rule of ``--fail-on`` that no claim of this run could be about."""
    from auditor.perturb.grammar.cases import GrammarSuite

    known: dict[str, Collection[str]] = {d.attribute: d.groups for d in dictionaries}
    changed = set(plan.attributes or (d.attribute for d in dictionaries if d.default))
    changed |= {group.partition(":")[0] for group in plan.groups}
    if isinstance(suite, Pairs):
        known = {attribute: sorted(groups) for attribute, groups in sorted(suite.groups.items())}
        changed = set(known)
    elif isinstance(suite, GrammarSuite):
        known = {
            name: [group for rule in suite.grammar.rules.values() if rule.attribute == name for group in rule.groups]
            for name in suite.grammar.attributes
        }
        changed = set(known)
    elif plan.suite not in OWN or isinstance(suite, StoredCases):
        return  # its cases say which groups there are
    for attribute, group in plan.references.items():
        if attribute not in known:
            raise UnknownValue("--reference", attribute, "attribute", known)
        if group not in known[attribute]:
            raise UnknownValue("--reference", group, f"group of {attribute}", known[attribute])
    for part in parse(plan.fail_on) if plan.fail_on else ():
        if unknown := [name for name in part.about if name not in changed]:
            raise UnknownValue(f"--fail-on {part.text}:", unknown[0], "attribute in this run", sorted(changed))
        if plan.order < 2 and (part.word == "hidden" or len(part.about) > 1):
            raise ConfigError(f"--fail-on {part.text}: takes attributes that are changed together: --order 2.")


def create(registry: Registry[P], name: str, offered: Mapping[str, object]) -> P:
    """Plug-in ``name`` with those of ``offered`` that its signature names."""
    taken = registry.options(name)
    return registry.create(name, **{option: value for option, value in offered.items() if option in taken})


def _with_lines(plan: Plan, task: Task, name: str, offered: dict[str, Any]) -> Suite | None:
    """The suite that also puts lines in front of texts, where the plan or the task asks for it."""
    from auditor.perturb.name_lines import NAME, WORDS, Lines

    carriers = plan.carrier or ((WORDS, NAME) if task.subject and plan.lines else (WORDS,))
    if set(carriers) == {WORDS}:
        return None
    if not task.subject:
        raise ConfigError(
            f"--carrier {','.join(carriers)}: the task {task.name!r} does not say what it calls the person whom its "
            "texts are about. Add `subject: the applicant` to the task file."
        )
    shared = {key: offered[key] for key in ("seeds", "dictionaries", "attributes", "per_seed", "limit_chars", "seed")}
    words: Any = create(SUITES, name, offered | {"seeds": ()})
    return Lines(
        words, **shared, carriers=carriers, subject=task.subject, irrelevant=task.irrelevant, language=task.language
    )


def _placebos(suite: Suite, dictionaries: Sequence[Dictionary], task: Task) -> PlaceboMaker | None:
    """The suite's own placebos, or for the suite of this project those made from its dictionaries."""
    if suite.brings_placebos:
        return suite
    if not suite.name.startswith(("mutation.", "lines.")):
        return None
    from auditor.perturb.placebo import Placebos

    return Placebos(
        dictionaries=dictionaries, limit_chars=task.kept, irrelevant=task.irrelevant, passed_over=suite.passed_over
    )


def _grammar(plan: Plan, task: Task, facts: dict[str, Any]) -> Stages:
    from auditor.perturb import grammar
    from auditor.perturb.grammar.cases import GrammarSuite

    name = plan.of_suite.get("grammar") or task.name
    if "grammar" not in plan.of_suite and name not in grammar.available():
        raise ConfigError(
            f"There is no grammar for the task {name!r}. Give one: --suite-option grammar=FILE. "
            f"Shipped: {', '.join(grammar.available())}."
        )
    literal = plan.protocol == "astraea"
    suite = GrammarSuite(
        grammar=name,
        generation=plan.of_suite.get("generation", "prob"),
        attributes=plan.attributes,
        order=1 if literal else plan.order,
        per_case=plan.per_seed,
        pairs=literal,
        power=1.0 if literal else 2.0,
        seed=plan.seed,
        **({} if plan.limit is None else {"cases": plan.limit}),
    )
    facts["grammar"] = suite.describe()
    source, sha256 = f"generated by the grammar {suite.grammar.full_name}", suite.grammar.sha256
    facts["seeds"] = {"source": source, "n": suite.total, "skipped": {}, "sha256": sha256}
    return Stages(suite, None, suite.total, suite)


def require(plan: Plan) -> str:
    """The name of a suite of another package."""
    name = SUITES.resolve(plan.suite)
    if name == "hinter":
        raise ConfigError("--suite hinter is chosen by --protocol hinter.")
    if plan.protocol != "default":
        raise ConfigError(f"--protocol {plan.protocol} brings its own cases; leave --suite {plan.suite} out.")
    if plan.jobs != "1":
        raise ConfigError(f"--suite {plan.suite} makes its cases in one process; leave --jobs out.")
    if plan.data is not None and not reads_texts(plan):
        raise ConfigError(f"--suite {plan.suite} makes its own texts; leave --data out.")
    return name


def reads_texts(plan: Plan) -> bool:
    """Whether the suite of ``plan`` is given seed texts."""
    return plan.suite != "grammar" if plan.suite in OWN else "seeds" in SUITES.options(plan.suite)


def _own_options(plan: Plan, name: str) -> dict[str, object]:
    import pydantic

    parameters = inspect.signature(SUITES.load(name), eval_str=True).parameters
    own = sorted(set(parameters) - set(OFFERED))
    options: dict[str, object] = {}
    for one in plan.suite_options:
        option, equals, value = one.partition("=")
        if not equals or option not in own:
            raise ConfigError(
                f"--suite-option takes NAME=VALUE, and suite {name!r} has {', '.join(own) or 'no option of its own'}; "
                f"got {one!r}."
            )
        hint = parameters[option].annotation
        adapter = pydantic.TypeAdapter[object](str if hint is inspect.Parameter.empty else hint)
        try:
            options[option] = adapter.validate_python(value)
        except pydantic.ValidationError as error:
            raise ConfigError(f"--suite-option {one}: {error.errors()[0]['msg']}.") from None
    return options


def source_texts(plan: Plan, task: Task, seeds: Iterable[SourceText] | None, facts: dict[str, Any]) -> list[SourceText]:
    """The texts that are given or named by the plan or task, as many as it draws; ``facts`` says what they are."""
    from auditor import tasks
    from auditor.tasks.seeds import SOURCE
    from auditor.text.languages import ENGLISH, language_of

    limit, sha256 = None, ""
    if seeds is None:
        named = plan.data or task.seeds_path
        if named is None:
            raise ConfigError(f"task {task.name!r} has no embedded texts. Give texts with --data FILE.")
        limit = plan.limit
        seeds = file = tasks.read_seeds(named, columns=plan.columns, limit=None if task.against_path else limit)
        source = plan.data or f"embedded texts of task {task.name}"
        sha256 = "" if task.against_path else file.sha256
    else:
        source = plan.data or SOURCE
    texts = tasks.seeds.crossed(list(seeds), task.against_path, limit)
    facts["seeds"] = {"source": source, "n": len(texts), "sha256": sha256 or tasks.seeds.digest_of(texts)}
    if isinstance(seeds, tasks.SeedFile):
        facts["seeds"] |= {"skipped": seeds.skipped, "repeated": seeds.repeated}
    spoken = Counter(language_of(seed.text, task.language) or "other" for seed in texts)
    if others := len(texts) - spoken[ENGLISH]:
        facts["seeds"]["languages"] = dict(sorted(spoken.items()))
        if any(one.raw for one in dictionaries_of(plan)):
            facts["seeds"]["not_english"] = others  # a warning: pairs of the user change their words
    return texts


def dictionaries_of(plan: Plan) -> list[Any]:
    """The built-in dictionaries, replaced or joined by those that the plan names."""
    from auditor.perturb import dictionaries

    if plan.protocol == "hinter" and not plan.dictionaries:
        # The paper's three attributes are unions of ours.
        names = plan.attributes or tuple(dictionaries.VIEWS)
        return [dictionaries.view(n) if n in dictionaries.VIEWS else dictionaries.load(n) for n in sorted(names)]
    chosen = {name: dictionaries.load(name) for name in dictionaries.builtin()}
    if plan.dictionaries:
        own = dictionaries.load_options(plan.dictionaries)
        chosen = {d.attribute: d for d in own}
        for name in plan.attributes or ():
            if name not in chosen and name in dictionaries.builtin():
                chosen[name] = dictionaries.load(name)
    return [chosen[name] for name in sorted(chosen)]
