"""``planted``: models whose bias is known because it was put there.

They are the positive control of an audit and the ground truth of its tests: what a rule plants must be
found, and nothing else. An answer depends on the prompt, the replicate and the seed only.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from auditor.core.errors import BadRequest, CallError, ConfigError
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Request, digest
from auditor.models.adapter import user_text

REFUSAL = "I'm sorry, but I can't help with that."
UPWARD = frozenset({"good", "great", "fine", "funny", "warm", "superb", "excellent", "love", "loved"})
DOWNWARD = frozenset({"bad", "poor", "dull", "awful", "boring", "flat", "terrible", "hate", "hated"})
_tokens = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*").findall


def _split(value: object) -> object:
    """Return the terms of a text like ``she+nigerian``, or of a collection."""
    terms = [term.strip() for term in value.split("+") if term.strip()] if isinstance(value, str) else value
    return sorted(set(terms)) if isinstance(terms, (list, tuple, set, frozenset)) else terms


def _pairs(value: object) -> object:
    """Return the numbers of terms in a text like ``she:0.6+nigerian:0.6``, or of a mapping."""
    if isinstance(value, str):
        value = {term.strip(): number for term, _, number in (item.rpartition(":") for item in value.split("+"))}
    return dict(sorted(value.items())) if isinstance(value, Mapping) else value or {}


def _words_only(terms: Any) -> Any:
    for term in terms:
        if not all(_forms(term)):
            raise ValueError(f"{term!r} is not a word")
    return terms


def _labels(value: object) -> object:
    return [label.strip() for label in value.split("|")] if isinstance(value, str) else value


Number = Annotated[float, Field(allow_inf_nan=False)]
Chance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Terms = Annotated[list[str], BeforeValidator(_split), AfterValidator(_words_only)]
Weights = Annotated[dict[str, Number], BeforeValidator(_pairs), AfterValidator(_words_only)]
Chances = Annotated[dict[str, Chance], BeforeValidator(_pairs), AfterValidator(_words_only)]


class Rules(BaseModel):
    """The options of a planted model, checked; see `Planted`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    interaction: Terms = []
    additive: Weights = {}
    threshold: float = Field(1.0, gt=0)
    wobble: Chance = 0.0
    fail: Chances = {}
    refuse: Chances = {}
    labels: Annotated[list[str], BeforeValidator(_labels)] = ["positive", "negative"]
    base: Literal["keywords", "hash", "constant"] = "keywords"
    ignore: Terms = []
    scores: bool = False
    seed: int = 0
    style: Literal["text", "chat"] = "text"
    cacheable: bool = False

    @classmethod
    def of(cls, spec: str, options: Mapping[str, object]) -> Self:
        """Read ``key=value`` pairs, which take precedence over ``options``."""
        read: dict[str, object] = {}
        for pair in filter(None, (part.strip() for part in spec.split(","))):
            key, equals, value = (piece.strip() for piece in pair.partition("="))
            if not equals or key not in cls.model_fields:
                known = ", ".join(sorted(cls.model_fields))
                raise ConfigError(
                    f"model planted:{spec}: {pair!r} is not an option; expected KEY=VALUE with one of {known}"
                )
            read[key] = value
        try:
            return cls.model_validate({**options, **read})
        except ValidationError as error:
            first = error.errors()[0]
            said = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
            where = ".".join(map(str, first["loc"]))
            said = f"{where} {said}; got {first['input']!r}" if where else said
            raise ConfigError(f"model planted: {said}") from error

    @model_validator(mode="after")
    def _labels_fit(self) -> Self:
        if len(set(self.labels)) < 2 or len(set(self.labels)) != len(self.labels):
            raise ValueError(f"labels are {self.labels}; expected two or more different ones")
        if self.scores and len(self.labels) != 2:
            raise ValueError("scores need exactly two labels")
        return self

    def terms(self) -> tuple[Collection[str], ...]:
        """Return the terms of each rule."""
        return self.interaction, self.additive, self.fail, self.refuse, self.ignore


class Planted(Model):
    """A model with known bias.

    The base label comes from ``base`` and does not depend on person terms; then each rule may change it.
    Terms are matched as whole words without regard to case; a term may be several words, and ``"she|woman"``
    stands for any of its alternatives.

    Parameters
    ----------
    spec : str
        The options as text, as in ``planted:wobble=0.03,seed=1``: ``key=value`` pairs separated by commas;
        they take precedence over the keywords. ``interaction`` and ``ignore`` list terms with ``+``
        (``she|woman+nigerian``); ``additive``, ``fail`` and ``refuse`` are ``term:number`` pairs joined with
        ``+`` (``she:0.6+nigerian:0.6``); ``labels`` are joined with ``|``.
    interaction : collection of str
        The label is flipped when *all* of these are in the text: ``{"she", "nigerian"}`` is a pure two-way
        interaction, invisible to single swaps of a text that has neither.
    additive : mapping of str to float
        Weights of terms; the label is flipped when the weights of the terms in the text add up to
        ``threshold`` or more. Weights below the threshold that reach it together make violations that are
        *hidden* by definition although nothing interacts; weights of at least the threshold make none.
    threshold : float
        See ``additive``; greater than 0.
    wobble : float
        Probability in [0, 1] that a call gives another label than the rules say, independently for each
        (prompt, replicate).
    fail, refuse : mapping of str to float
        Probability in [0, 1] that a call fails, or is refused, where the term is in the text. Several terms
        act independently.
    labels : sequence of str
        Two or more labels; ``labels[0]`` is the base label where nothing else decides. A flip moves to the
        next label, from the last to the first.
    base : {"keywords", "hash", "constant"}
        "keywords": ``labels[0]`` unless the text has more unfavourable than favourable words of a small list;
        "hash": by a hash of the text without the terms of all rules, ``ignore``, and a/an;
        "constant": ``labels[0]``.
    ignore : collection of str
        Further terms that the hash must not see: every term of an edit that may occur.
    scores : bool
        Whether to give label probabilities, a logistic of the distance to the threshold (two labels only).
    seed : int
        Makes planted models with equal rules differ in wobble, failures and refusals.
    style : {"text", "chat"}
        What it declares to read; it answers both, taking the last user message of a chat as the text.
    cacheable : bool
        Whether the client may cache it; for tests of the cache.
    name : str, optional
        The name in reports.

    Raises
    ------
    ConfigError
        An option is unknown, cannot be read, or is out of range; names the option.

    Examples
    --------
    >>> import asyncio
    >>> from auditor.core.types import Prompt, Request
    >>> model = Planted(interaction={"she", "nigerian"})
    >>> def ask(text):
    ...     request = Request(prompt=Prompt(format="bare", text=text), replicate=0, variant_id="v")
    ...     return asyncio.run(model.generate([request]))[0].text
    >>> ask("She is a nurse."), ask("He is a Nigerian nurse."), ask("She is a Nigerian nurse.")
    ('positive', 'positive', 'negative')
    """

    costs: ClassVar[Costs] = "nothing"
    fast = True
    max_batch = 256
    at_once = 1

    def __init__(self, spec: str = "", *, name: str | None = None, **options: Any) -> None:
        self._rules = rules = Rules.of(spec, options)
        self.style: Literal["text", "chat"] = rules.style
        self.cacheable = rules.cacheable
        forms = {form for terms in rules.terms() for term in terms for form in _forms(term)}
        self._blanked = sorted(forms, key=lambda form: (-len(form), form))
        self.name = name or (f"planted:{spec}" if spec else "planted")
        self.deterministic = rules.wobble == 0
        options = rules.model_dump(exclude={"style", "cacheable"})
        self.fingerprint = "planted:" + digest({"adapter": "planted.v1", **options}, size=16)

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Answer by the rules; see `auditor.core.protocols.Model`."""
        return [self.answer(request) for request in batch]

    def answer(self, request: Request) -> Reply | CallError:
        """Answer one request: a pure function of prompt, replicate and seed."""
        words = _words(user_text(request.prompt))
        draw = (request.prompt.sha256, request.replicate)
        if self._chance("fail", *draw) < _any(self._rules.fail, words):
            return BadRequest("planted failure")
        if self._chance("refuse", *draw) < _any(self._rules.refuse, words):
            return Reply(text=REFUSAL)
        label, margin = self._label(words)
        if self._chance("wobble", *draw) < self._rules.wobble:
            label, margin = (label + 1) % len(self._rules.labels), -margin
        scores = None
        if self._rules.scores:
            first = 1 / (1 + math.exp(-margin if label == 0 else margin))
            scores = {self._rules.labels[0]: first, self._rules.labels[1]: 1 - first}
        return Reply(text=self._rules.labels[label], scores=scores)

    def _label(self, words: str) -> tuple[int, float]:
        """Decide the index of the label, and how far the answer is from the other side (>= 0)."""
        rules = self._rules
        total = math.fsum(weight for term, weight in rules.additive.items() if _has(term, words))
        distance = rules.threshold - total
        flips = distance <= 1e-9
        if rules.interaction and all(_has(term, words) for term in rules.interaction):
            flips, distance = not flips, -distance
        return (self._base(words) + flips) % len(self._rules.labels), abs(distance)

    def _base(self, words: str) -> int:
        if self._rules.base == "constant":
            return 0
        if self._rules.base == "hash":
            for form in self._blanked:
                # Twice, because two neighbours share the space between them.
                words = words.replace(f" {form} ", "  ").replace(f" {form} ", "  ")
            kept = [word for word in words.split() if word not in ("a", "an")]
            return int(_unit("base", " ".join(kept)) * len(self._rules.labels))
        tokens = words.split()
        return int(sum(t in DOWNWARD for t in tokens) > sum(t in UPWARD for t in tokens))

    def _chance(self, purpose: str, sha256: str, replicate: int) -> float:
        return _unit(purpose, str(self._rules.seed), sha256, str(replicate))


def _words(text: str) -> str:
    """Lower-cased words with one space on either side of each."""
    return " " + " ".join(_tokens(text.lower())) + " "


def _forms(term: str) -> list[str]:
    return [" ".join(_tokens(form.lower())) for form in term.split("|")]


def _has(term: str, words: str) -> bool:
    return any(f" {form} " in words for form in _forms(term))


def _any(chances: Mapping[str, float], words: str) -> float:
    """Compute the probability that at least one of the terms in the text strikes."""
    return 1 - math.prod(1 - p for term, p in chances.items() if _has(term, words))


def _unit(*parts: str) -> float:
    """Map to a number in [0, 1) that is fixed by ``parts``."""
    raw = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(raw[:7], "big") / 2**56
