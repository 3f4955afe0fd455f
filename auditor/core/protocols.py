"""The places to extend: one base class for each kind of plug-in, and the names by which plug-ins are found.

What has a default need not be written. A package offers its classes as entry points, one group for each kind:
``auditor.suites``, ``auditor.checks``, ``auditor.models``, ``auditor.oracles``, ``auditor.renderers``. The plug-ins of
this project are entry points too.
"""

from __future__ import annotations

import inspect
import math
import operator
import threading
import tomllib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import EntryPoint, distribution, entry_points
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

from auditor.core import reading
from auditor.core.errors import BadRequest, CallError, ConfigError, PluginError, UnknownPlugin
from auditor.core.types import Answer, Case, Check, Progress, Prompt, Request, Usage, Variant, Verdict

if TYPE_CHECKING:
    from auditor.core.record import RunRecord

Costs = Literal["nothing", "unseen", "tokens"]
Observer = Callable[[Progress], None]  # gets progress events; must return at once


class Reply(NamedTuple):
    """What an adapter hands back for one request that was answered; ``cut_off`` at the limit on tokens."""

    text: str
    scores: Mapping[str, float] | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    model_reported: str | None = None
    cut_off: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What tokens cost: US dollars per million, finite and not negative.

    ``as_of`` is the ISO date of the figures, empty when the user gave them; ``source`` says where they come from.

    Examples
    --------
    >>> Price(input_usd=2.0, output_usd=8.0).usd(Usage(tokens_in=1_000_000, tokens_out=500_000))
    6.0
    """

    input_usd: float
    output_usd: float
    as_of: str = ""
    source: str = "given by the user"

    def __post_init__(self) -> None:
        for value in (self.input_usd, self.output_usd):
            if not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"--price holds {value!r}; it takes numbers of USD per million tokens, 0 or more")

    def usd(self, usage: Usage) -> float:
        """Return the cost of one call, in US dollars."""
        return (usage.tokens_in * self.input_usd + usage.tokens_out * self.output_usd) / 1e6


class Figure(NamedTuple):
    """A measure of its own that a suite brings: a mean over cases, each of which counts once."""

    name: str
    what: str  # one sentence, for reports


class Suite(ABC):
    """Makes cases. ``tell`` is the only edge that runs backwards.

    Attributes
    ----------
    name : str
        Stands in the records of its cases.
    checks : mapping of str to Check, or None
        The suite's own check of each of its variants, by id; None leaves them to the gate of the plan.
    brings_placebos : bool
        Whether `placebos` makes any.
    figures : sequence of Figure
        Measures of its own, which `measure` computes for a case.
    skipped, passed_over : Counter of str
        Texts that made no case, and groups that were left out, by reason.
    """

    name: str
    checks: Mapping[str, Check] | None = None
    brings_placebos: ClassVar[bool] = False
    figures: Sequence[Figure] = ()
    skipped: Counter[str]
    passed_over: Counter[str]

    def __new__(cls, *_: object, **__: object) -> Self:
        """Counters of its own, also where a suite does not call the constructor of this class."""
        self = super().__new__(cls)
        self.skipped, self.passed_over = Counter(), Counter()
        return self

    @abstractmethod
    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """Return up to ``n`` further cases; an empty answer means that the suite is exhausted."""

    def tell(self, verdicts: Sequence[Verdict]) -> None:  # noqa: B027 - most suites learn nothing
        """Learn from the verdicts of one round, sorted by case and variant id."""

    def describe(self) -> Mapping[str, object]:
        """Return the settings of its cases, as plain data; a resumed run must find the same."""
        return {"name": self.name}

    def placebos(self, case: Case, n: int | None, rng: Random) -> Sequence[Variant]:
        """Make variants of ``case`` that change no group, at most ``n`` for each attribute."""
        return ()

    def measure(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> Mapping[str, float | None]:
        """Sum up the answers of one model to one case, by the names of ``figures``; None is left out."""
        return {}

    def record(self) -> Mapping[str, object]:
        """Return its own sections of the run record, by name."""
        return {}


class PlaceboMaker(Protocol):
    """Makes placebo variants: a suite itself, or what knows the words of its texts."""

    def placebos(self, case: Case, n: int | None, rng: Random) -> Sequence[Variant]:
        """Make variants of ``case`` that change no group, at most ``n`` for each attribute."""
        ...


class Gate(ABC):
    """Says whether a variant is a text that its original could have been."""

    name: str

    @abstractmethod
    def check(self, original: Variant, variants: Sequence[Variant]) -> Sequence[Check]:
        """Return one check for each variant of one original, in their order."""

    def check_many(self, cases: Iterable[Case]) -> Sequence[Sequence[Check]]:
        """Return the checks of the variants of each case; a gate that is quicker with many overrides this."""
        return [self.check(case.original, case.variants) for case in cases]


class Model(ABC):
    """An adapter. No cache, budget, retry or limiter: the client wraps those around it.

    Attributes
    ----------
    fingerprint : str
        Identifies the model and the parameters that shape its answers; it is part of the cache key.
    style : {"text", "chat"}
        What it reads: the bare input (classifiers), or the rendered prompt.
    deterministic, cacheable : bool
        Declared, never inferred; not cacheable where asking again is cheaper than the cache.
    costs : {"tokens", "unseen", "nothing"}
        "nothing" runs on this machine. All others are asked about before they are used without a limit: those that
        charge for tokens, at ``price`` (None: not known), and those that may cost something which nobody counts here.
    fast : bool
        Whether asking it costs neither money nor much time: embedded models, recorded answers, and plain functions of a
        text. All others are asked little where nothing else is said (`auditor.core.plan.Plan.settled`).
    max_batch, at_once : int, int or None
        Requests of one call of `generate`; batches that it works on at a time: others would be counted while they wait.
    patience_s : float or None
        How long one request may be tried again and again, where that is not the usual time.
    on_headers : callable or None
        Set by the client; gets the headers of answers, names in lower case, and slows down by what they say is left.
    recorded : bool
        Whether its answers were recorded before: asking costs nothing, and no others will come.
    proxy : str
        The proxy of the environment through which its server is asked; it is told before anything is asked.
    server, changed, rate_headers : str, mapping, mapping
        For `audit doctor`: who answers, parameters that the server did not take (and how it is asked instead), and what
        it last said of its limits.
    under_way : sequence of str
        Ids of work that the provider still does when the run stops.
    """

    name: str
    fingerprint: str
    style: Literal["text", "chat"] = "text"
    deterministic: bool = False
    cacheable: bool = True
    costs: ClassVar[Costs] = "tokens"
    fast: bool = False
    price: Price | None = None
    max_batch: int = 1
    calls_tools: bool = False
    at_once: int | None = None
    patience_s: float | None = None
    on_headers: Callable[[Mapping[str, str]], None] | None = None
    recorded: ClassVar[bool] = False
    proxy: str = ""
    server: str = ""
    changed: Mapping[str, str] = {}
    rate_headers: Mapping[str, str] = {}
    under_way: Sequence[str] = ()

    @abstractmethod
    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Return one reply or error for each request, in order; at most ``max_batch`` requests."""

    async def aclose(self) -> None:
        """Release connections and processes."""
        return None

    def max_tokens(self, format: str) -> int:
        """Return the most tokens of an answer in ``format``, which bounds the cost of a call."""
        return 0

    def left_before(self, request: Request) -> bool:
        """Return whether ``request`` was submitted before, and counted then."""
        return False


def bare_text(prompt: Prompt) -> str | BadRequest:
    """Give the bare input, or the error for a prompt that was rendered as messages."""
    if prompt.text is not None:
        return prompt.text
    return BadRequest("this model reads the bare text; it was sent chat messages")


class LocalClassifier(Model):
    """A quick function of the bare text; a batch is answered in a worker thread."""

    costs: ClassVar[Costs] = "nothing"
    fast = True
    deterministic = True
    cacheable = False
    max_batch = 256
    at_once = 1

    @abstractmethod
    def answer(self, text: str) -> Reply | CallError:
        """Return the label of one text."""

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Label every text; an interrupt does not wait for the rest of the batch."""
        import asyncio  # commands that ask no model load this module too

        stop = threading.Event()

        def work() -> list[Reply | CallError]:
            replies: list[Reply | CallError] = []
            for request in batch:
                if stop.is_set():
                    break
                text = bare_text(request.prompt)
                replies.append(text if isinstance(text, BadRequest) else self.answer(text))
            return replies

        try:
            return await asyncio.to_thread(work)
        finally:
            stop.set()


class Oracle(ABC):
    """Judges variants against their original.

    Attributes
    ----------
    label, epsilons : str, tuple of float
        The label whose scores are compared (empty where no model has to give any), and tolerated differences of them.
    tolerance : float or None
        Difference of numbers that counts as none, where one was given.
    """

    name: str
    label: str = ""
    epsilons: tuple[float, ...] = ()
    tolerance: float | None = None

    @abstractmethod
    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> Sequence[Verdict]:
        """Return verdicts for the variants of ``case`` that ``answers`` (variant id → replicates) holds."""

    @abstractmethod
    def answer(self, answers: Sequence[Answer]) -> Any:
        """Return one answer for all replicates of one input; None where there is none."""

    def differs(self, one: Any, other: Any) -> bool:
        """Return whether two results of `answer` differ by the rule of the verdicts."""
        return bool(operator.ne(one, other))

    def measure(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> Mapping[str, Any]:
        """Return the figures of each variant that the statistics of texts need; labels need none."""
        return {}


class Renderer(ABC):
    """Writes a run as a report of one format."""

    name: str
    suffix: str  # file ending, e.g. ".html"

    @abstractmethod
    def render(self, record: RunRecord, evidence: Any = None) -> str | bytes:
        """Write ``record``, whose ``raw`` is run.json; ``evidence`` reads cases, prompts, answers by id."""


# -- names to plug-ins: entry points, those of this project among them -------------------------------------------------


PACKAGE = "llm-bias-auditor"
P = TypeVar("P")


class Offer(NamedTuple):
    """One plug-in that a package offers; ``package`` is empty for this project's own."""

    entry: EntryPoint
    package: str = ""
    version: str = ""


class Registry(Generic[P]):
    """Plug-ins of one kind: classes that take their options as keywords and derive from ``base``.

    What this project offers keeps its name: a plug-in of another package that has it too, or one that two packages
    offer, is reached by ``package:name`` alone. The entry-point group is ``auditor.{kind}s``.
    """

    def __init__(self, kind: str, base: type[P]) -> None:
        self.kind, self.base, self.group = kind, base, f"auditor.{kind}s"

    def names(self) -> list[str]:
        """Return all names by which a plug-in can be reached, sorted."""
        return sorted(self._all)

    def resolve(self, name: str) -> str:
        """Return ``name``, where it reaches one plug-in.

        Raises `UnknownPlugin` with near misses, or `ConfigError` where several packages offer it.
        """
        if name in self._all:
            return name
        if others := sorted(key for key, offer in self._all.items() if offer.entry.name == name):
            raise ConfigError(f"{self.kind} {name!r} is not this project's alone; give one of {', '.join(others)}.")
        raise UnknownPlugin(self.kind, name, self._all, "See: audit list plugins")

    def load(self, name: str) -> Callable[..., P]:
        """Load the plug-in itself; `PluginError` where it could not be imported, or is no plug-in of this kind."""
        entry = self._offer(name).entry
        try:
            plugin: Callable[..., P] = entry.load()
        except (ImportError, AttributeError) as error:
            raise PluginError(f"{self.kind} {name!r} ({entry.value}) did not load: {error}") from error
        if not (isinstance(plugin, type) and issubclass(plugin, self.base)):
            raise PluginError(f"{self.kind} {name!r} ({entry.value}) does not derive from auditor.{self.base.__name__}")
        return plugin

    def create(self, name: str, **options: object) -> P:
        """Build plug-in ``name`` with ``options``; `ConfigError` where one is not the plug-in's."""
        allowed = self.options(name)
        for option in options:
            if option not in allowed:
                raise ConfigError(
                    f"{self.kind} {name!r} has no option {option!r}; options: {', '.join(sorted(allowed))}"
                )
        return self.load(name)(**options)

    def options(self, name: str) -> frozenset[str]:
        """Return the keywords that plug-in ``name`` takes."""
        return frozenset(inspect.signature(self.load(name)).parameters)

    def is_own(self, name: str) -> bool:
        """Return whether ``name`` is one of this project's."""
        return name in self._all and not self._all[name].package

    def origin(self, name: str) -> str:
        """Return package and version that ``name`` comes from; "built in" for this project's own."""
        offer = self._offer(name)
        return f"{offer.package} {offer.version}" if offer.package else "built in"

    def where(self, name: str) -> str:
        """Return ``module:attribute`` of plug-in ``name``; nothing is imported."""
        return self._offer(name).entry.value

    def packages(self) -> frozenset[str]:
        """Return the other packages that offer plug-ins of this kind."""
        return frozenset(offer.package for offer in self._all.values()) - {""}

    def _offer(self, name: str) -> Offer:
        return self._all[self.resolve(name)]

    @cached_property
    def _all(self) -> Mapping[str, Offer]:
        """By the name that reaches it: what this project offers, then other packages."""
        every = {entry.name: Offer(entry) for entry in _declared() if entry.group == self.group}
        others = [
            Offer(entry, entry.dist.name, entry.dist.version)
            for entry in entry_points(group=self.group)
            if entry.dist is not None and entry.dist.name != PACKAGE
        ]
        owners: dict[str, set[str]] = defaultdict(set)
        for offer in (*every.values(), *others):
            owners[offer.entry.name].add(offer.package)
        for offer in others:
            free = len(owners[offer.entry.name]) == 1
            every[offer.entry.name if free else f"{offer.package}:{offer.entry.name}"] = offer
        return every


@cache
def _declared() -> tuple[EntryPoint, ...]:
    """The entry points of this project: as installed, or as ``pyproject.toml`` of the source tree has them."""
    source = Path(__file__).parents[2] / "pyproject.toml"
    if source.is_file():
        project = tomllib.loads(source.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == PACKAGE:
            return tuple(
                EntryPoint(name, value, group)
                for group, entries in project["entry-points"].items()
                for name, value in entries.items()
            )
    return tuple(distribution(PACKAGE).entry_points)


SUITES = Registry("suite", Suite)
CHECKS = Registry("check", Gate)
ORACLES = Registry("oracle", Oracle)
MODELS = Registry("model", Model)
RENDERERS = Registry("renderer", Renderer)
KINDS = (SUITES, CHECKS, ORACLES, MODELS, RENDERERS)
PAGES = tuple(sorted(path.stem for path in reading.shipped("embedded", "frameworks").glob("*.yaml")))
