"""What makes the cases of a run and checks them: texts, dictionaries, suite, gate, placebos."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from auditor.core.errors import ConfigError, UnknownValue
from auditor.core.fail_on import parse
from auditor.core.plan import SUITES as OWN
from auditor.core.plan import Plan
from auditor.core.protocols import CHECKS, SUITES, Gate, PlaceboMaker, Registry, Suite
from auditor.core.types import Case, Check, SourceText, id_of
from auditor.perturb.dictionaries import Dictionary
from auditor.tasks.task import Task

if TYPE_CHECKING:
    from auditor.text.parse import Parser

P = TypeVar("P")
WORKER_MEMORY = 20_000  # parses of sentences that one of several workers remembers
# What a suite of another package is given, where its signature names it.
OFFERED = ("seeds", "dictionaries", "attributes", "order", "per_seed", "parser", "limit_chars", "seed", "task")


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
    from auditor.run.own_pairs import Pairs

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
