"""``planted``: models whose bias is known because it was put there.

They are the positive control of an audit and the ground truth of its tests: what a rule plants must be
found, and nothing else. An answer depends on the prompt, the replicate and the seed only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from auditor.core.errors import BadRequest, CallError, ConfigError
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Request, digest
from auditor.models.adapter import user_text

REFUSAL = "I'm sorry, but I can't help with that."
UPWARD = frozenset({"good", "great", "fine", "funny", "warm", "superb", "excellent", "love", "loved"})
DOWNWARD = frozenset({"bad", "poor", "dull", "awful", "boring", "flat", "terrible", "hate", "hated"})
_tokens = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*").findall


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

    max_batch = 256
    at_once = 1

    def __init__(
        self,
        spec: str = "",
        *,
        style: Literal["text", "chat"] = "text",
        cacheable: bool = False,
        name: str | None = None,
        **options: Any,
    ) -> None:
        chosen = {**options, "style": style, "cacheable": cacheable} | _parse(spec)
        self.style: Literal["text", "chat"] = chosen.pop("style")
        self.cacheable = bool(chosen.pop("cacheable"))
        self._rules = _Rules(**{key: _canonical(key, value) for key, value in chosen.items()})
        _check(self._rules, self.style)
        self._labels: tuple[str, ...] = tuple(self._rules.labels)
        forms = (form for _, terms in self._rules.terms() for term in terms for form in _forms(term))
        self._blanked = sorted(forms, key=lambda form: (-len(form), form))
        self.name = name or (f"planted:{spec}" if spec else "planted")
        self.deterministic = self._rules.wobble == 0
        self.fingerprint = "planted:" + digest({"adapter": "planted.v1", **dataclasses.asdict(self._rules)}, size=16)

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
            label, margin = (label + 1) % len(self._labels), -margin
        scores = None
        if self._rules.scores:
            first = 1 / (1 + math.exp(-margin if label == 0 else margin))
            scores = {self._labels[0]: first, self._labels[1]: 1 - first}
        return Reply(text=self._labels[label], scores=scores)

    def _label(self, words: str) -> tuple[int, float]:
        """Decide the index of the label, and how far the answer is from the other side (>= 0)."""
        rules = self._rules
        total = math.fsum(weight for term, weight in rules.additive.items() if _has(term, words))
        distance = rules.threshold - total
        flips = distance <= 1e-9
        if rules.interaction and all(_has(term, words) for term in rules.interaction):
            flips, distance = not flips, -distance
        return (self._base(words) + flips) % len(self._labels), abs(distance)

    def _base(self, words: str) -> int:
        if self._rules.base == "constant":
            return 0
        if self._rules.base == "hash":
            for form in self._blanked:
                # Twice, because two neighbours share the space between them.
                words = words.replace(f" {form} ", "  ").replace(f" {form} ", "  ")
            kept = [word for word in words.split() if word not in ("a", "an")]
            return int(_unit("base", " ".join(kept)) * len(self._labels))
        tokens = words.split()
        return int(sum(t in DOWNWARD for t in tokens) > sum(t in UPWARD for t in tokens))

    def _chance(self, purpose: str, sha256: str, replicate: int) -> float:
        return _unit(purpose, str(self._rules.seed), sha256, str(replicate))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rules:
    """What a planted model goes by, as it is compared and fingerprinted."""

    interaction: list[str] = field(default_factory=list)
    additive: dict[str, float] = field(default_factory=dict)
    threshold: float = 1.0
    wobble: float = 0.0
    fail: dict[str, float] = field(default_factory=dict)
    refuse: dict[str, float] = field(default_factory=dict)
    labels: list[str] = field(default_factory=lambda: ["positive", "negative"])
    base: str = "keywords"
    ignore: list[str] = field(default_factory=list)
    scores: bool = False
    seed: int = 0

    def terms(self) -> tuple[tuple[str, Collection[str]], ...]:
        """The terms that rules name, by the option that names them."""
        named = ("interaction", "additive", "fail", "refuse", "ignore")
        return tuple((name, getattr(self, name)) for name in named)


def _parse(spec: str) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for pair in filter(None, (part.strip() for part in spec.split(","))):
        key, equals, value = (piece.strip() for piece in pair.partition("="))
        if not equals or key not in _READERS:
            raise ConfigError(
                f"model planted:{spec}: {pair!r} is not an option; expected KEY=VALUE with one of"
                f" {', '.join(sorted(_READERS))}"
            )
        try:
            read[key] = _READERS[key](value)
        except ValueError as error:
            raise ConfigError(f"model planted:{spec}: {pair!r} cannot be read ({error})") from error
    return read


def _canonical(key: str, value: Any) -> Any:
    """Bring an option into the form that is compared and fingerprinted."""
    if key in ("interaction", "ignore"):
        return sorted(set(value))
    if key in ("additive", "fail", "refuse"):
        return dict(sorted((value or {}).items()))
    return list(value) if key == "labels" else value


def _check(rules: _Rules, style: str) -> None:
    chances = {"wobble": rules.wobble}
    for group, terms in (("fail", rules.fail), ("refuse", rules.refuse)):
        chances |= {f"{group} {term!r}": chance for term, chance in terms.items()}
    for what, chance in chances.items():
        if not 0 <= chance <= 1:
            raise ConfigError(f"model planted: {what} is {chance}; expected a probability from 0 to 1")
    if not rules.threshold > 0:
        raise ConfigError(f"model planted: threshold is {rules.threshold}; expected more than 0")
    if len(set(rules.labels)) < 2 or len(set(rules.labels)) != len(rules.labels):
        raise ConfigError(f"model planted: labels are {rules.labels}; expected two or more different ones")
    if rules.scores and len(rules.labels) != 2:
        raise ConfigError("model planted: scores need exactly two labels")
    if rules.base not in ("keywords", "hash", "constant"):
        raise ConfigError(f"model planted: base is {rules.base!r}; expected keywords, hash or constant")
    if style not in ("text", "chat"):
        raise ConfigError(f"model planted: style is {style!r}; expected text or chat")
    for group, named in rules.terms():
        for term in named:
            if not all(_forms(term)):
                raise ConfigError(f"model planted: {group} holds {term!r}, which is not a word")


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


def _terms(text: str) -> list[str]:
    return [term.strip() for term in text.split("+") if term.strip()]


def _weights(text: str) -> dict[str, float]:
    pairs = (item.rpartition(":") for item in _terms(text))
    return {term.strip(): float(number) for term, _, number in pairs}


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


_READERS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("interaction", "ignore"), _terms),
    **dict.fromkeys(("additive", "fail", "refuse"), _weights),
    **dict.fromkeys(("threshold", "wobble"), float),
    **dict.fromkeys(("base", "style"), str),
    **dict.fromkeys(("scores", "cacheable"), _flag),
    "seed": int,
    "labels": lambda text: tuple(label.strip() for label in text.split("|")),
}
