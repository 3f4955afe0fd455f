"""The plan of an audit: every setting that shapes it, resolved, and each option written once.

This is an edge: what comes in is untrusted and is validated here, once. A flag beats ``audit.toml``, which
beats the default.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from auditor.core.errors import AuditError, ConfigError
from auditor.core.fail_on import parse
from auditor.core.options import (
    ASKED,
    CHANGED,
    CHOOSE,
    FILE,
    LABELLED,
    LARGEST,
    LIMITS,
    MAKE,
    MOST_AT_ONCE,
    RUN,
    TEXTS,
    Count,
    Listed,
    Names,
    Numbers,
    Option,
    PathText,
    SharedPlan,
    Times,
    about,
    near,
)

SUITES = ("mutation", "joint-first", "grammar")  # beside them those of other packages: `auditor.run.preparation`
REFERENCES = ("equal", "bls")
UNTIL_WORDINGS = 5  # of both sides of a text, where a run looks at its claims on the way
CHEAP_CALLS = 2000  # of models that cost money or time, where nothing else is said
CHEAP: Mapping[str, int] = {"order": 1, "per_seed": 2, "replicates": 1}
COLUMNS = ("text", "label", "id", "source", "messages", "answer")
GENERATIONS = ("prob", "rand")
ENCODER = "encoder:"
DEFAULT_REPLICATES = 3
CONFIRM_REPLICATES = 5


def _all(n: object) -> object:
    return None if n == 0 and n is not False else n


def _tolerated(tolerance: tuple[float, ...]) -> tuple[float, ...]:
    if not all(0 <= t <= LARGEST for t in tolerance):
        raise ValueError(f"holds numbers from 0 to {LARGEST:,}")
    return tolerance


def _columns(typed: object) -> object:
    """Read ``NAME=COLUMN`` texts, or a table, into columns by name."""
    if not isinstance(typed, Mapping):
        texts = typed if isinstance(typed, list | tuple) else [typed]
        pairs = [str(one).partition("=") for one in texts]
        if not all(column for _, _, column in pairs):
            raise ValueError("takes NAME=COLUMN, as text=review")
        typed = {name: column for name, _, column in pairs}
    for name in typed:
        if name not in COLUMNS:
            raise ValueError(f"takes NAME=COLUMN; {name!r} is not a name.{near(str(name), COLUMNS)}")
    return {name: ",".join(column) if isinstance(column, list | tuple) else column for name, column in typed.items()}


def _jobs(typed: object) -> object:
    """Read N, ray or ray:N."""
    engine, colon, n = str(typed).rpartition(":")
    if isinstance(typed, bool) or engine not in ("", "ray") or (colon and not engine):
        raise ValueError("takes a number, ray, or ray:NUMBER")
    if n == "ray":
        engine, n = "ray", "1"
    if not n.isdecimal() or int(n) < 1:
        raise ValueError("takes a number from 1 on, ray, or ray:NUMBER")
    if int(n) > MOST_AT_ONCE:
        raise ValueError(f"must be at most {MOST_AT_ONCE:,}")
    return f"{engine}{':' * bool(engine)}{int(n)}"


def _of_groups(groups: tuple[str, ...]) -> tuple[str, ...]:
    for one in groups:
        attribute, _, group = one.partition(":")
        if not attribute or not all(group.split("/")):
            raise ValueError(
                "takes ATTRIBUTE:GROUP with commas between, as age:old,gender:female, or gender:female/male for "
                "changes between two groups (audit list dictionaries)"
            )
    return groups


def _of_reference(reference: str) -> str:
    pairs = [one.strip().partition(":") for one in reference.split(",")]
    if reference not in REFERENCES and not all(attribute and group for attribute, _, group in pairs):
        raise ValueError("takes equal, bls, or ATTRIBUTE:GROUP with commas between, as race:white,gender:male")
    return reference


def of_rule(rule: str | None) -> str | None:
    """Return ``rule``; raise as `auditor.core.fail_on.parse` does where it is none."""
    if rule is not None:
        parse(rule)
    return rule


def of_package(name: str) -> bool:
    """Return whether ``name`` is a plug-in of another package: ``org/name`` or ``package:name``."""
    return "/" in name or ":" in name


def _one_of(flag: str, *words: str) -> AfterValidator:
    """A field that takes these words, or a plug-in of another package."""

    def check(name: str) -> str:
        if name and name not in words and not of_package(name):
            close = difflib.get_close_matches(name, words, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise ConfigError(
                f"{flag} must be one of {', '.join(words)}, or a plug-in as ORG/NAME; got {name!r}.{hint}"
            )
        return name

    return AfterValidator(check)


class Plan(SharedPlan):
    """Everything that shapes a run, resolved. Written to ``plan.json`` before the first call.

    Each field is an option: of the command line, of ``audit.toml``, and a keyword of `auditor.audit`. None and empty
    values mean what the option's help calls the default: ``replicates`` None is 3, or 1 for an adapter that declares
    itself deterministic; ``per_seed`` None is every variant there is; ``carrier`` empty is words, then names where the
    task says what the person is called; ``who`` empty is ``subject`` where the task names the person who is judged,
    else ``all-one-way``; ``gate`` empty is constructs, and dependency under the protocol hinter, which is made of it.
    ``until_decided`` stops asking about an attribute when it is decided (`auditor.run.until`); None is yes for models
    that cost money or time, which get at most `CHEAP_CALLS` calls where nothing else is said (`settled`).
    """

    # fmt: off
    task: Annotated[str, Option("--task", ASKED, TEXTS, "Task name, or a task file: audit list tasks.", first=True)
    ] = "sentiment"
    models: Annotated[Names, Option("--model", ASKED, RUN | {"agent", "choose"},
        "Model spec; several share one report. E.g. vader, reviews, openai:NAME, langchain:PROVIDER:NAME, "
        "http:FILE.yaml, hf:ID, python:MODULE:FUNCTION, exec:COMMAND, recorded:FILE. See: audit list models.",
        repeated=True, first=True)] = ()
    data: Annotated[PathText | None, Option("--data", ASKED, TEXTS,
        "Source texts: .jsonl .csv .parquet .txt, or hf:DATASET[:CONFIG][@SPLIT]; pairs of your own: columns text_a, "
        "text_b; whole requests: lines with messages. Default: the task's embedded texts.", first=True)] = None
    columns: Annotated[dict[str, str], BeforeValidator(_columns), Option("--column", ASKED, TEXTS,
        "NAME=COLUMN of --data. NAME is text, label (gold labels), id, or source (texts of one source count as one "
        "unit). Of whole requests: messages=ROLES or JSON paths in which people are changed (default user); "
        "answer=PATH of the answer in the reply.", repeated=True, first=True)
    ] = Field(default_factory=dict)
    labels: Annotated[Names, Option("--labels", ASKED, LABELLED,
        'Your own answer labels, comma-separated, e.g. "5 - great,3 - ok,1 - bad". A plain prompt asks for them '
        "instead of the task's.", first=True)] = ()
    limit: Annotated[Count | None, Option("--limit", ASKED, TEXTS, "Use the first N texts.", first=True)] = None
    formats: Annotated[Names, Option("--formats", ASKED, TEXTS,
        "Prompt formats, comma-separated, or all (default: the task's first).")] = ()
    judge: Annotated[Names, Option("--judge", ASKED, RUN,
        "Tasks of kind generation: a model spec that compares answers in pairs, in both orders; or encoder:hf:NAME, "
        "which compares meanings.", repeated=True)] = ()
    attributes: Annotated[Names | None, Option("--attributes", CHANGED, CHOOSE,
        "Comma-separated, e.g. gender,race. Default: those that the texts name.", first=True)] = None
    groups: Annotated[Names, AfterValidator(_of_groups), Option("--groups", CHANGED, CHOOSE,
        "ATTRIBUTE:GROUP, comma-separated, e.g. age:old,gender:female: only changes to these groups, or from them "
        "to any other; gender:female/male: between the two. Default: all groups.")] = ()
    order: Annotated[int, Field(ge=1, le=4), Option("--order", CHANGED, MAKE,
        "How many attributes are changed together, at most.", first=True)] = 2
    suite: Annotated[str, Option("--suite", CHANGED, MAKE,
        "How cases are made: mutation of texts (default), joint-first (parts are asked only after a joint change), "
        "grammar (generated), or a plug-in (audit list plugins).")] = "mutation"
    suite_options: Annotated[Names, Option("--suite-option", CHANGED, MAKE,
        "NAME=VALUE for the suite. With --suite grammar: grammar=NAME[:VIEW] or FILE (default: the task's name); "
        "generation=prob (default: half of the cases follow changed labels) or rand (none do). --limit sets the number "
        "of cases.",
        repeated=True)] = ()
    protocol: Annotated[Literal["default", "hinter", "astraea"], Option("--protocol", CHANGED, MAKE,
        "default, or hinter, astraea: the paper's own counting, without controls.")] = "default"
    dictionaries: Annotated[Names, Option("--dictionary", CHANGED, CHOOSE,
        "[ATTRIBUTE=]FILE: a dictionary, or a raw pair file source;target.", repeated=True)] = ()
    who: Annotated[Literal["", "subject", "subject-or-all", "each", "all-one-way", "all"], Option(
        "--who", CHANGED, CHOOSE,
        "Whose words are changed. subject: the person who is judged (default of tasks that name one). subject-or-all: "
        "everybody's where that is not clear. each: one person at a time. all-one-way: everybody's, but of a man and a "
        "woman one at a time (default of other tasks). all: everybody's.")] = ""
    carrier: Annotated[tuple[Literal["words", "name", "statement"], ...], Listed, Option("--carrier", CHANGED, CHOOSE,
        "How a text states an attribute of the person who is judged: words (of the text), name (a line with a name), "
        "statement (a sentence). With commas: the first that fits a text. Default: words,name where the task has a "
        "subject, else words.")] = ()
    per_seed: Annotated[Count | None, BeforeValidator(_all), Option("--per-seed", CHANGED, CHOOSE,
        "Variants per seed and attribute set (default 8, under --protocol hinter all; 0 = all).")] = 8
    wordings: Annotated[Count, Option("--wordings", CHANGED, MAKE,
        "Ask both sides of each text in this many neutral wordings.")] = 1
    gate: Annotated[str, _one_of("--gate", "constructs", "dependency"), Option("--gate", CHANGED, MAKE,
        "What a variant must pass: constructs (default), dependency, HInter's comparison of whole parses, or a plug-in."
    )] = ""
    test_discarded: Annotated[bool, Option("--test-discarded", CHANGED, RUN,
        "Ask also about variants that failed the validity check; reported separately.")] = False
    parser: Annotated[str, Option("--parser", CHANGED, TEXTS,
        "embedded (default), or an installed spaCy pipeline.")] = "embedded"
    oracle: Annotated[str, _one_of("--oracle", "label", "probability"), Option("--oracle", CHANGED, RUN,
        "label (default): another answer is a change; probability: another score of one label is; or a plug-in.")] = ""
    tolerance: Annotated[Numbers, AfterValidator(_tolerated), Option("--tolerance", CHANGED, RUN,
        "Largest difference that counts as no change. Tasks of kind score: in the task's unit (default: the task's, or "
        "else the difference of two answers to one prompt). With --oracle probability: several, comma-separated; the "
        "first decides (default 0.01,0.05,0.1,0.2).")] = ()
    reference: Annotated[str, AfterValidator(_of_reference), Option("--reference", CHANGED, RUN,
        "ATTRIBUTE:GROUP that the other groups are compared with, commas between. With --oracle probability: equal "
        "(default), or bls: the shares of women and men in the occupations.")] = "equal"
    replicates: Annotated[Times | None, Option("--replicates", CHANGED, RUN,
        f"Times each prompt is asked (default {DEFAULT_REPLICATES}; 1 for models declared deterministic, and with "
        "--until-decided).")] = None
    until_decided: Annotated[bool | None, Option("--until-decided", CHANGED, RUN,
        "Look at the answers several times during the run, and stop asking about attributes that are decided. All "
        "looks share one level. Sets --order 1 and --replicates 1 unless they are given. Default for models that cost "
        f"money or time, with at most {CHEAP_CALLS:,} calls.")] = None
    full_plan: Annotated[bool, Option("--full-plan", CHANGED, RUN,
        "Ask models that cost money or time as much as embedded ones: no --until-decided and no limit of "
        f"{CHEAP_CALLS:,} calls unless you set them.", first=True)] = False
    jobs: Annotated[str, BeforeValidator(_jobs), Option("--jobs", LIMITS, MAKE,
        "Processes that make and check cases. ray or ray:N: actors of a Ray cluster.",
        shapes=False)] = "1"
    batch: Annotated[bool, Option("--batch", LIMITS, RUN,
        "Ask openai: models through the Batch API: half the price, answers within a day.")] = False
    redact: Annotated[bool, Option("--redact", LIMITS, RUN,
        "Write digests and edits instead of texts, labels instead of answers; no response cache.")] = False
    anyway: Annotated[bool, Option("--anyway", CHANGED, RUN | {"resume"},
        "Continue although the positive control was not seen and all first answers are alike.", shapes=False)] = False
    fail_on: Annotated[str | None, AfterValidator(of_rule), Option("--fail-on", LIMITS, frozenset({"run"}),
        'Exit 1 where any of these holds: "shown, net(gender) > 2%, failed > 5%".',
        shapes=False, first=True)] = None
    # fmt: on

    @property
    def references(self) -> dict[str, str]:
        """By attribute the group that the others are compared with; empty where each is compared with the others."""
        pairs = [one.strip().partition(":") for one in self.reference.split(",") if ":" in self.reference]
        return {attribute: group for attribute, _, group in pairs}

    @property
    def judged_by(self) -> str | None:
        """The model that compares answers."""
        return next((one for one in self.judge if not one.startswith(ENCODER)), None)

    @property
    def encoder(self) -> str | None:
        """The encoder that compares the meanings of answers."""
        return next((one.removeprefix(ENCODER) for one in self.judge if one.startswith(ENCODER)), None)

    @property
    def of_suite(self) -> dict[str, str]:
        """The options of the suite by name."""
        return {name: value for name, _, value in (one.partition("=") for one in self.suite_options)}

    @property
    def lines(self) -> bool:
        """Whether a line may be put in front of texts."""
        return (self.suite, self.protocol) == ("mutation", "default")

    @property
    def checked_by(self) -> str:
        """What decides whether a variant is valid: constructs or dependency."""
        return self.gate or ("dependency" if self.protocol == "hinter" else "constructs")

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """Make a plan of the named settings; `settled` decides the others."""
        first: dict[str, object] = {"per_seed": None} if values.get("protocol") == "hinter" else {}  # all mutants
        return cls.model_validate({**first, **values})

    def settled(self, *, slow: bool, looks: bool) -> Self:
        """Return the plan with every open setting decided.

        ``slow`` says whether a model costs money or time, ``looks`` whether claims about single answers are made.
        """
        cheap = slow and not self.full_plan
        until = self.until_decided
        if until is None:
            until = cheap and looks and self.suite in ("mutation", "grammar") and not any(c for c, *_ in _waits(self))
        first: dict[str, object] = {"max_calls": CHEAP_CALLS} if cheap else {}
        if cheap and self.lines:
            first |= {name: n for name, n in CHEAP.items() if looks or name != "replicates"}
        if until:
            first |= {"order": 1, "replicates": 1}  # another text or wording says more than the same prompt again
            first |= {"wordings": UNTIL_WORDINGS} if self.lines else {}
        left = {name: value for name, value in first.items() if name not in self.model_fields_set}
        return self.but(**left, until_decided=until)

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> Self:
        """Read a plan that `as_dict` wrote; `ConfigError` where it has settings of another version."""
        if others := sorted(stored.keys() - cls.settings().keys() - {"journal"}):
            raise ConfigError(
                f"This plan is of another version; it has the settings {', '.join(others)[:200]}. Its run can be "
                "reported and verified. To go on, start a new one."
            )
        settings = {"gate": "dependency", "until_decided": False, **{n: v for n, v in stored.items() if n != "journal"}}
        plan = cls.model_validate(settings)
        return plan.model_copy(update={name: getattr(plan, name) for name in cls.settings()})  # nothing is left open

    def clashes(self) -> str | None:
        """Return the first clash between settings, as a sentence."""
        return next(_clashes(self), None)


def _clashes(plan: Plan) -> Iterator[str]:
    """What does not go together."""
    mutation = plan.suite in ("mutation", "joint-first") and plan.protocol == "default"
    if plan.suite == "joint-first":
        yield from _joint_first(plan)
    if plan.protocol == "hinter" and plan.checked_by != "dependency":
        yield "--protocol hinter checks variants as published; leave --gate out."
    if plan.suite_options and plan.suite in ("mutation", "joint-first"):
        yield "--suite-option belongs to --suite grammar, or to the suite of another package."
    if plan.suite == "grammar":
        yield from _grammar(plan)
    if plan.protocol == "astraea" and plan.suite != "grammar":
        yield "--protocol astraea counts generated cases; it belongs to --suite grammar."
    if plan.suite == "grammar" and plan.data is not None:
        yield "--suite grammar generates its own texts; --data belongs to --suite mutation."
    if plan.oracle != "probability":
        if len(plan.tolerance) > 1:
            yield "--tolerance takes several numbers with --oracle probability only."
        if plan.reference == "bls":
            yield "--reference belongs to --oracle probability."
    elif any(t > 1 for t in plan.tolerance):
        yield "--tolerance holds differences of probabilities between 0 and 1 with --oracle probability."
    if plan.reference == "bls" and plan.suite != "grammar":
        yield "--reference bls takes the shares that a grammar's occupations carry; it belongs to --suite grammar."
    yield from _until(plan)
    for spec in plan.server:
        if spec and plan.models and spec not in plan.models and plan.judged_by != spec:
            yield f"--server names {spec}, which is not among --model."
    if len(plan.judge) > 2 or len(plan.judge) != bool(plan.judged_by) + bool(plan.encoder):
        yield "--judge takes one model and one encoder."
    for one in plan.groups:
        attribute = one.partition(":")[0]
        if plan.attributes is not None and attribute not in plan.attributes:
            yield f"--groups names {attribute}, which is not among --attributes."
    for clashes, flag in (
        (plan.groups, "--groups"),
        (plan.who not in ("", "all"), "--who"),
        (plan.wordings > 1, "--wordings"),
    ):
        if clashes and not mutation:
            yield f"{flag} belongs to --suite mutation, and the default protocol."
    if plan.carrier and not plan.lines and set(plan.carrier) != {"words"}:
        yield "--carrier name and statement belong to --suite mutation, and the default protocol."


def _grammar(plan: Plan) -> Iterator[str]:
    for one in plan.suite_options:
        name, _, value = one.partition("=")
        if name not in ("grammar", "generation") or not value:
            yield f"--suite-option takes grammar=NAME or generation=prob|rand with --suite grammar; got {one!r}."
    if (generation := plan.of_suite.get("generation", "prob")) not in GENERATIONS:
        yield f"--suite-option generation must be one of {', '.join(GENERATIONS)}; got {generation!r}."


def _joint_first(plan: Plan) -> Iterator[str]:
    """Name what has no place where parts are asked only after a change, and no rate is measured."""
    if plan.order < 2:
        yield "--suite joint-first looks for changes of several attributes together: give --order 2 or more."
    for clashes, option in (
        (plan.protocol != "default", f"--protocol {plan.protocol}"),
        (plan.until_decided, "--until-decided"),
        (plan.wordings > 1, "--wordings"),
        (plan.who == "each", "--who each"),
        (plan.batch, "--batch"),
    ):
        if clashes:
            yield f"--suite joint-first asks parts only after a change and makes no claims; leave {option} out."


def _waits(plan: Plan) -> Iterator[tuple[bool, str, str]]:
    """What leaves no time for looks: whether it is so, the option, and why."""
    yield plan.protocol != "default", f"--protocol {plan.protocol}", "says itself what is asked"
    yield plan.batch, "--batch", "may take a day, and each round of questions waits for the one before"
    yield plan.jobs != "1", "--jobs", "prepares texts that may never be asked about"


def _until(plan: Plan) -> Iterator[str]:
    for clashes, option, why in _waits(plan):
        if plan.until_decided and clashes:
            yield f"--until-decided and {option} do not go together: the latter {why}. Leave one out."


def resolve(flags: Mapping[str, object], config: Path | None = None) -> Plan:
    """Make one plan from flags (None and empty ones: not given), ``audit.toml`` and defaults.

    ``config`` None takes ``audit.toml`` in the current folder where there is one.
    """
    file = config or (FILE if FILE.exists() else None)
    typed = {} if file is None else Plan.read_toml(file)
    values = {name: value for name, value in flags.items() if value is not None and value != () and value != []}
    try:
        return Plan.of({**typed, **values})
    except AuditError as error:
        raise about(error, file, map(Plan.flag, typed.keys() - values.keys())) from None
