"""Settings from ``audit.toml`` and flags, resolved into one frozen `Plan`.

This is an edge: what comes in is untrusted and is validated here, once. A flag beats ``audit.toml``, which
beats the default.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.core import userfile
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.secrets import hidden
from auditor.core.types import names

SCOPES = ("text", "term", "occurrence")
GATES = ("constructs", "dependency")
PROTOCOLS = ("default", "hinter", "astraea")
SUITES = ("mutation", "grammar")  # beside them those of other packages: `auditor.run.plugins`
GENERATIONS = ("prob", "rand", "uniform", "bandit")
ORACLES = ("label", "probability")
REFERENCES = ("equal", "bls")
WHO = ("subject", "subject-or-all", "each", "all-one-way", "all")
UNTIL_WORDINGS = 5  # of both sides of a text, where a run looks at its claims on the way
STRATEGIES = ("exhaustive", "adaptive")
ENGINES = ("local", "ray")
CARRIERS = ("words", "name", "statement")
SERVER = ("max_tokens", "temperature", "timeout_s", "reasoning_effort", "extra_body", "headers")
NO_TEMPERATURE = "none"
DEFAULT_REPLICATES = 3
CONFIRM_REPLICATES = 5
LARGEST = 10**12  # of any option that is a number


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Everything that shapes a run, resolved. Written to ``plan.json`` before the first call.

    ``replicates`` None means 3, or 1 for an adapter that declares itself deterministic. ``per_seed`` None
    means every variant there is. ``wordings`` says in how many wordings both sides of a text are asked; one is given.
    ``carrier`` says what states an attribute of the person who is judged: of `CARRIERS`, for each text the first that
    fits; empty means words, then names where the task says what that person is called.
    ``gate`` empty means constructs, and dependency under the protocol hinter, which is made of it.
    ``attributes`` None means those that the seeds name. ``groups`` are written
    ``attribute:group``; changes of such an attribute lead to one of its groups here, or from one; of
    ``attribute:group/group`` they are between the two. ``who`` says whose words an edit changes; empty means
    ``subject`` where the task names the person who is judged, else ``all-one-way``. ``oracle`` empty means labels
    (sets of them for multi-label tasks). ``epsilon`` are the tolerances of the probability oracle, the one that
    decides first; empty
    means ``EPSILONS`` of `auditor.tasks.oracles.probability`.
    ``tolerance`` is the difference of scores that counts as none, in the
    unit of the task; None means that of the task, or else what two answers to one prompt differ by.
    ``max_tokens``, ``temperature`` ("none": the server's own), ``timeout_s``, ``reasoning_effort``, ``extra_body`` and
    ``headers`` say how a server is asked (`SERVER`); None means the task's, or the adapter's default.
    ``until_decided`` stops asking about an attribute when it is decided (`auditor.run.until`): then
    order is 1 and wordings are 5, unless they are given.
    ``judge`` is the spec of a model that compares texts in pairs, ``embedding`` that of an encoder (``hf:NAME``).
    """

    task: str = "sentiment"
    models: tuple[str, ...] = ()
    base_url: str | None = None
    data: str | None = None
    text_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None
    limit: int | None = None
    attributes: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    order: int = 2
    suite: str = "mutation"
    grammar: str | None = None
    generation: str = "prob"
    oracle: str = ""
    epsilon: tuple[float, ...] = ()
    reference: str = "equal"
    dictionaries: tuple[str, ...] = ()
    scope: str = "text"
    who: str = ""
    per_seed: int | None = 8
    wordings: int = 1
    carrier: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    protocol: str = "default"
    replicates: int | None = None
    delta: float | None = None
    until_decided: bool = False
    tolerance: float | None = None
    judge: str | None = None
    embedding: str | None = None
    seed: int = 7
    max_calls: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    max_tokens: int | None = None
    temperature: float | str | None = None
    timeout_s: float | None = None
    reasoning_effort: str | None = None
    extra_body: str | None = None
    headers: tuple[str, ...] = ()
    concurrency: int = 16
    insertions: bool = False
    test_discarded: bool = False
    strategy: str = "exhaustive"
    engine: str = "local"
    jobs: int = 1
    logprobs: bool | None = None  # None: where the server gives them
    batch: bool = False
    gate: str = ""
    parser: str = "embedded"
    cache: bool = True
    redact: bool = False
    out: str = "reports"
    fail_on: str | None = None

    def __post_init__(self) -> None:
        for name in _NAMES:
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, names(given))
        if isinstance(self.temperature, str) and self.temperature != NO_TEMPERATURE:
            object.__setattr__(self, "temperature", _temperature(self.temperature))
        object.__setattr__(self, "delta", as_share(self.delta))
        _check(self)

    @property
    def references(self) -> dict[str, str]:
        """By attribute the group that the others are compared with; empty where each is compared with the others."""
        pairs = [one.strip().partition(":") for one in self.reference.split(",") if ":" in self.reference]
        return {attribute: group for attribute, _, group in pairs}

    @property
    def lines(self) -> bool:
        """Whether a line may be put in front of texts."""
        return (self.suite, self.protocol, self.strategy) == ("mutation", "default", "exhaustive")

    @property
    def checked_by(self) -> str:
        """What decides whether a variant is valid: one of `GATES`."""
        return self.gate or ("dependency" if self.protocol == "hinter" else "constructs")

    def server(self) -> dict[str, Any]:
        """How servers are asked: what the plan says, by the names of adapters' parameters."""
        said = {name: value for name in SERVER if (value := getattr(self, name)) not in (None, ())}
        if said.get("temperature") == NO_TEMPERATURE:
            said["temperature"] = "server"
        return said

    def as_dict(self) -> dict[str, Any]:
        """Plain data, tuples as lists; the address of a server without what is secret in it."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}
        return plain | {"base_url": hidden(self.base_url)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Plan:
        """The plan that `as_dict` wrote, or of the settings that were given: what is done first decides the order."""
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        if unknown := sorted(set(given) - set(FIELDS) - {"journal"}):  # journal: an option that there was
            raise ConfigError(f"the plan has settings that this version does not know: {', '.join(unknown)}.")
        given.pop("journal", None)
        if "redact" in given:  # a whole plan, perhaps of a version that had one gate
            given.setdefault("gate", "dependency")
        if given.get("until_decided"):
            given.setdefault("order", 1)
            if (given.get("suite") or "mutation", given.get("protocol") or "default") == (
                "mutation",
                "default",
            ):
                given.setdefault("wordings", UNTIL_WORDINGS)
        return cls(**given)


def require_at_least(name: str, value: float | None, low: float, more: str = "") -> None:
    """Refuse an option ``--name`` below ``low``; NaN is below everything."""
    if value is not None and not value >= low:
        raise ConfigError(f"--{name} must be at least {low:g}{more}; got {value:g}.")


def require_sane(options: Mapping[str, Any]) -> None:
    """Refuse numbers that no option means: infinite ones, NaN, and what is far beyond any count or amount."""
    for name, value in options.items():
        for number in value if isinstance(value, list | tuple) else (value,):
            if isinstance(number, int | float) and not abs(number) <= LARGEST:
                raise ConfigError(f"{flag(name)} must be a number of at most {LARGEST:,}; got {number:g}.")


def flag(name: str) -> str:
    """The option that sets the field ``name`` of a plan."""
    return "--" + _TOML_NAMES.get(name, name).replace("_", "-")


def _temperature(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ConfigError(
            f"--temperature takes a number, or {NO_TEMPERATURE} for the server's own; got {given!r}."
        ) from None


def as_share(delta: float | None) -> float | None:
    """``--delta`` as a share, of percentage points (from 1 on) or a share.

    Raises
    ------
    ConfigError
        It is neither.

    Examples
    --------
    >>> as_share(2), as_share(0.02)
    (0.02, 0.02)
    """
    share = delta / 100 if delta is not None and delta >= 1 else delta
    if share is not None and not 0 < share < 1:
        raise ConfigError(
            f"--delta is a number of percentage points (2), or a share (0.02 is the same); got {delta:g}."
        )
    return share


def _check(plan: Plan) -> None:
    def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
        if value not in allowed:
            near = difflib.get_close_matches(value, allowed, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"--{name} must be one of {', '.join(allowed)}; got {value!r}.{hint}")

    require_sane(plan.as_dict())
    at_least = require_at_least

    one_of("scope", plan.scope, SCOPES)
    if plan.who:
        one_of("who", plan.who, WHO)
    one_of("protocol", plan.protocol, PROTOCOLS)
    if plan.gate:
        one_of("gate", plan.gate, GATES)
    if plan.protocol == "hinter" and plan.checked_by != "dependency":
        raise ConfigError("--protocol hinter checks variants as published; leave --gate out.")
    one_of("generation", plan.generation, GENERATIONS)
    one_of("strategy", plan.strategy, STRATEGIES)
    one_of("engine", plan.engine, ENGINES)
    _check_oracle(plan, one_of)
    if plan.grammar is not None and plan.suite != "grammar":
        raise ConfigError("--grammar belongs to --suite grammar.")
    if plan.protocol == "astraea" and plan.suite != "grammar":
        raise ConfigError("--protocol astraea counts generated cases; it belongs to --suite grammar.")
    if plan.suite == "grammar" and plan.data is not None:
        raise ConfigError("--suite grammar generates its own texts; --data belongs to --suite mutation.")
    if plan.fail_on is not None:
        from auditor.core import rules

        rules.parse(plan.fail_on)
    _check_until(plan)
    at_least("seed", plan.seed, 0)
    at_least("order", plan.order, 1)
    at_least("limit", plan.limit, 1)
    at_least("per-seed", plan.per_seed, 1, " (or 0, for all)")
    at_least("wordings", plan.wordings, 1)
    at_least("replicates", plan.replicates, 1)
    at_least("concurrency", plan.concurrency, 1)
    at_least("jobs", plan.jobs, 1)
    _check_groups(plan)
    if plan.insertions and plan.suite != "mutation":
        raise ConfigError("--insertions puts words into given texts; it belongs to --suite mutation.")
    if plan.who not in ("", "all") and (plan.suite != "mutation" or plan.protocol != "default"):
        raise ConfigError("--who belongs to --suite mutation and the default protocol.")
    if plan.who == "each" and plan.strategy == "adaptive":
        raise ConfigError(
            "--strategy adaptive changes one set of words at a time in several attributes; leave --who out."
        )
    if plan.wordings > 1 and (plan.suite != "mutation" or plan.protocol != "default"):
        raise ConfigError("--wordings belongs to --suite mutation and the default protocol.")
    for carrier in plan.carrier:
        one_of("carrier", carrier, CARRIERS)
    if plan.carrier and not plan.lines and set(plan.carrier) != {"words"}:
        raise ConfigError(
            "--carrier name and statement belong to --suite mutation, the default protocol and --strategy exhaustive."
        )
    at_least("tolerance", plan.tolerance, 0)
    at_least("max-tokens", plan.max_tokens, 1)
    at_least("timeout", plan.timeout_s, 0.001)
    at_least("temperature", None if plan.temperature == NO_TEMPERATURE else plan.temperature, 0)  # type: ignore[arg-type]
    at_least("max-calls", plan.max_calls, 0)
    at_least("max-cost", plan.max_cost, 0)
    at_least("max-seconds", plan.max_seconds, 0)
    at_least("price-in", plan.price_in, 0)
    at_least("price-out", plan.price_out, 0)
    if plan.order > 4:
        raise ConfigError(f"--order must be between 1 and 4; got {plan.order}.")
    if (plan.price_in is None) != (plan.price_out is None):
        raise ConfigError("--price-in and --price-out belong together (USD per million tokens).")


def _check_until(plan: Plan) -> None:
    if not plan.until_decided:
        return
    for clashes, option, why in (
        (plan.protocol != "default", f"--protocol {plan.protocol}", "says itself what is asked"),
        (
            plan.strategy == "adaptive",
            "--strategy adaptive",
            "goes where answers change, which decides no claim",
        ),
        (plan.batch, "--batch", "may take a day, and each round of questions waits for the one before"),
        (plan.jobs > 1, "--jobs", "prepares texts that may never be asked about"),
        (plan.engine != "local", f"--engine {plan.engine}", "prepares texts that may never be asked about"),
    ):
        if clashes:
            raise ConfigError(
                f"--until-decided and {option} do not go together: the latter {why}. Leave one out."
            )


def _check_groups(plan: Plan) -> None:
    for one in plan.groups:
        attribute, _, group = one.partition(":")
        if not attribute or not all(group.split("/")):
            raise ConfigError(
                "--groups takes ATTRIBUTE:GROUP with commas between, as age:old,gender:female, or gender:female/male "
                f"for changes between two groups; got {one!r}. See: audit dictionary list"
            )
        if plan.attributes is not None and attribute not in plan.attributes:
            raise ConfigError(f"--groups names {attribute}, which is not among --attributes.")
    if plan.groups and (plan.suite != "mutation" or plan.protocol != "default"):
        raise ConfigError("--groups belongs to --suite mutation and the default protocol.")


def _check_oracle(plan: Plan, one_of: Callable[[str, str, tuple[str, ...]], None]) -> None:
    if plan.oracle:
        one_of("oracle", plan.oracle, ORACLES)
    if not all(map(all, plan.references.items())):
        raise ConfigError(
            "--reference takes ATTRIBUTE:GROUP with commas between, as race:white,gender:male; "
            f"got {plan.reference!r}."
        )
    shares = "equal" if plan.references else plan.reference
    one_of("reference", shares, REFERENCES)
    if plan.oracle != "probability":
        for name, given in (("epsilon", bool(plan.epsilon)), ("reference", shares != "equal")):
            if given:
                raise ConfigError(f"--{name} belongs to --oracle probability.")
    if not all(0 <= e <= 1 for e in plan.epsilon):
        told = ", ".join(f"{e:g}" for e in plan.epsilon)
        raise ConfigError(f"--epsilon holds differences of probabilities between 0 and 1; got {told}.")
    if plan.reference == "bls" and plan.suite != "grammar":
        raise ConfigError(
            "--reference bls takes the shares that a grammar's occupations carry; it belongs to --suite grammar."
        )


FIELDS = {field.name: field for field in dataclasses.fields(Plan)}
_NAMES = ("models", "attributes", "groups", "dictionaries", "carrier", "formats", "headers")
_LISTS = {*_NAMES, "epsilon"}
_TOML_NAMES = {"models": "model", "dictionaries": "dictionary", "timeout_s": "timeout", "headers": "header"}
_TOML_ALIASES = {flag: field for field, flag in _TOML_NAMES.items()} | {
    "format": "formats"
}  # as the flags are named


def read_toml(path: Path) -> dict[str, Any]:
    """Settings of one ``audit.toml``, with the names of `Plan`.

    The file holds ``format = 1`` and the flags' names with underscores (``max_calls = 500``); lists may be
    given as a list or as one comma-separated text.

    Raises
    ------
    DataFileError
        Not TOML, an unknown key, or a value of the wrong type; the message names file and key.
    """
    import pydantic

    try:
        raw = tomllib.loads(userfile.text(path))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file. Give an existing file with --config.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataFileError(f"{path}: not a TOML file: {error}") from None
    if raw.pop("format", 1) != 1:
        raise DataFileError(f"{path}: format must be 1; a newer version of this tool wrote this file.")
    values: dict[str, Any] = {}
    for key, value in raw.items():
        name = _TOML_ALIASES.get(key, key)
        if name not in FIELDS:
            known = [_TOML_NAMES.get(field, field) for field in FIELDS]
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Known keys: {', '.join(known)}."
            raise DataFileError(f"{path}: unknown key {key!r}.{hint}")
        if name in _LISTS and isinstance(value, str):
            value = list(names(value))
        if name == "epsilon" and isinstance(value, int | float):
            value = [value]
        adapter: Any = pydantic.TypeAdapter(_TYPES[name])
        try:
            values[name] = adapter.validate_python(value, strict=name not in _LISTS)
        except pydantic.ValidationError as error:
            detail = error.errors()[0]["msg"]
            raise DataFileError(f"{path}: {key!r}: {detail}; got {value!r}.") from None
    return values


_TYPES: dict[str, Any] = {
    name: {
        "str": str,
        "int": int,
        "bool": bool,
        "bool | None": bool | None,
        "str | None": str | None,
        "int | None": int | None,
        "float | None": float | int | None,
        "float | str | None": float | int | str | None,
        "tuple[str, ...]": tuple[str, ...],
        "tuple[float, ...]": tuple[float, ...],
        "tuple[str, ...] | None": tuple[str, ...] | None,
    }[str(field.type)]
    for name, field in FIELDS.items()
}


def resolve(flags: Mapping[str, Any], config: Path | None = None) -> Plan:
    """One plan from flags (None means not given), ``audit.toml`` and defaults.

    Parameters
    ----------
    flags : mapping
        Names of `Plan`; None and empty tuples mean that the flag was not given.
    config : Path or None
        The settings file; None takes ``audit.toml`` in the current folder where there is one.
    """
    values: dict[str, Any] = {}
    if config is not None:
        values = read_toml(config)
    elif Path("audit.toml").is_file():
        values = read_toml(Path("audit.toml"))
    values |= {k: v for k, v in flags.items() if v is not None and v != ()}
    if values.get("per_seed") == 0:
        values["per_seed"] = None
    return Plan.from_dict(values)
