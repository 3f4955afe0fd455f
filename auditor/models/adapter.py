"""What adapters share: reading a request, limits of answers, what came back, and scores of labels.

Scores come from the log-probabilities of tokens. Where the answer's label begins, the alternatives are summed by the
label that they begin. A label that none of them begins gets what the least likely alternative has, so that answers of
which a model is sure keep a score. There is no score without a label, with too few alternatives, where alternatives
begin several labels, or where the labels together have less than half of the probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

from auditor.core.errors import BadResponse
from auditor.core.reading import from_json
from auditor.core.types import Prompt, Usage

MAX_TOKENS = 256  # of an answer, where the task does not say
MOST_TOKENS = 10**8  # of one call that are believed; more than any model takes
ALTERNATIVES = 20  # tokens at each place, with the one written; the most that the provider of OpenAI gives
LEAST_MASS = 0.5  # of the labels together; with less, the label is not decided at this token
AMBIGUOUS = 0.01  # share of the labels' mass that may begin several of them
ENOUGH = 5  # alternatives that bound how likely a token is that is none of them


def user_text(prompt: Prompt) -> str:
    """Return the text a prompt is about: its bare input, or its last user message, or ""."""
    if prompt.text is not None:
        return prompt.text
    return next((m.content for m in reversed(prompt.messages or ()) if m.role == "user"), "")


def read_scores(value: Mapping[Any, object], where: str) -> dict[str, float]:
    """Return labels with probabilities that came from outside, checked; else raise `BadResponse`."""
    scores: dict[str, float] = {}
    for label, number in value.items():
        if not isinstance(label, str):
            raise BadResponse(f"{where}: score label {label!r} is not text")
        if isinstance(number, bool) or not isinstance(number, Real):
            raise BadResponse(f"{where}: the score of {label!r} is {number!r}, not a number")
        probability = float(number)
        if not math.isfinite(probability) or not -1e-6 <= probability <= 1 + 1e-6:
            raise BadResponse(f"{where}: the score of {label!r} is {probability!r}, not in [0, 1]")
        scores[str(label)] = min(1.0, max(0.0, probability))
    if not scores:
        raise BadResponse(f"{where}: the mapping of scores is empty")
    return scores


def best_label(scores: Mapping[str, float]) -> str:
    """Return the label of the highest score; the first in the alphabet among equals."""
    return min(scores, key=lambda label: (-scores[label], label))


def usage(tokens_in: object, tokens_out: object) -> Usage | None:
    """Return the tokens that a server counted; None where it names none, or more than a call can use.

    >>> usage(12, 3), usage(12, None), usage(10**30, 3)
    (Usage(tokens_in=12, tokens_out=3), None, None)
    """
    whole = [n for n in (tokens_in, tokens_out) if type(n) is int and 0 <= n <= MOST_TOKENS]
    return Usage(tokens_in=whole[0], tokens_out=whole[1]) if len(whole) == 2 else None


def token_limits(task: Any, most: int | None = None) -> dict[str, int]:
    """Return the most tokens of an answer by prompt format; "" for any other."""
    if most is not None:
        return {"": most}
    formats = sorted(getattr(task, "formats", ()))
    limits = {form: int(task.max_tokens(form)) for form in formats}
    return {**limits, "": max(limits.values(), default=MAX_TOKENS)}


def scalar(value: object) -> Any:
    """Return one value of a row for JSON or a text: whole numbers without a decimal point; None for NaN.

    >>> scalar(31.0), scalar(0.5), scalar(True), scalar(float("nan"))
    (31, 0.5, True, None)
    """
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else int(value) if value.is_integer() else value


# -- scores of labels from the log-probabilities that a chat server gives with its tokens -----------------------------


class Token(NamedTuple):
    """One token of an answer; ``alternatives`` are (text, log-probability) pairs, the written token among them."""

    text: str
    alternatives: tuple[tuple[str, float], ...]


def read_tokens(body: bytes) -> list[Token]:
    """Return the tokens in the body of a chat completion; none where it is not in the protocol's form.

    >>> read_tokens(b'{"choices": [{"logprobs": {"content": [{"token": "yes", "logprob": -0.1}]}}]}')[0].alternatives
    (('yes', -0.1),)
    """
    try:
        content = from_json(body)["choices"][0]["logprobs"]["content"]
    except (ValueError, KeyError, IndexError, TypeError):
        return []
    tokens = []
    for entry in content if isinstance(content, list) else ():
        own = _pair(entry)
        if own is None:
            return []
        top = entry.get("top_logprobs")
        others = [_pair(other) for other in top] if isinstance(top, list) else []
        pairs = dict(p for p in others if p is not None)
        tokens.append(Token(text=own[0], alternatives=tuple((pairs | {own[0]: own[1]}).items())))
    return tokens


def _pair(entry: object) -> tuple[str, float] | None:
    if not isinstance(entry, dict):
        return None
    text, chance = entry.get("token"), entry.get("logprob")
    if not isinstance(text, str) or isinstance(chance, bool) or not isinstance(chance, int | float):
        return None
    return text, float(chance)


def can_score(task: Any) -> bool:
    """Return whether answers to ``task`` hold one of two or more labels, at one token."""
    return task is not None and task.kind.one_label and len(task.labels) > 1 and not task.turns


def scores(task: Any, tokens: Sequence[Token]) -> Mapping[str, float] | None:
    """Return every label's share, summing to 1, where the answer's label begins; None where it cannot be told."""
    if not can_score(task):
        return None
    labels = [str(label) for label in task.labels]
    text = "".join(token.text for token in tokens)
    answer = task.read(text, "chat")
    if not isinstance(answer.value, str):
        return None
    # The last mention decides: what stands before it is reasoning.
    begin = text.casefold().rfind(answer.value.casefold())
    token = _at(tokens, begin) if begin >= 0 else None
    return None if token is None else shares(labels, token.alternatives)


def _at(tokens: Sequence[Token], begin: int) -> Token | None:
    """Return the token at the character ``begin``, if only marks come before it there."""
    start = 0
    for token in tokens:
        end = start + len(token.text)
        if start <= begin < end:
            lead = token.text[: begin - start]
            return None if any(c.isalnum() for c in lead) else token
        start = end
    return None


def shares(labels: Sequence[str], alternatives: Sequence[tuple[str, float]]) -> Mapping[str, float] | None:
    """Return each label's share of the labels' probability at one token.

    A token counts for the one label that it begins, or that begins it; case, and marks around it, do not matter.
    ``alternatives`` are tokens with their natural log-probabilities. None: see the module.

    >>> shares(["yes", "no"], [("yes", math.log(0.6)), (" No", math.log(0.2)), ("?", math.log(0.2))])
    {'yes': 0.75, 'no': 0.25}
    >>> shares(["positive", "possible"], [("pos", 0.0)]) is None
    True
    """
    mass = dict.fromkeys(labels, 0.0)
    several = 0.0
    chances = [math.exp(min(0.0, one)) for _, one in alternatives if math.isfinite(one)]
    for text, logarithm in alternatives:
        piece = _bare(text)
        if not piece or not math.isfinite(logarithm):
            continue
        chance = math.exp(min(0.0, logarithm))
        begun = [label for label in labels if _begins(piece, label.casefold())]
        if len(begun) == 1:
            mass[begun[0]] += chance
        elif begun:
            several += chance
    if len(chances) >= ENOUGH:
        least = min((chance for chance in chances if chance > 0.0), default=0.0)
        mass = {label: chance or least for label, chance in mass.items()}
    total = sum(mass.values())
    if min(mass.values()) <= 0.0 or total < LEAST_MASS or several > AMBIGUOUS * total:
        return None
    return {label: float(f"{chance / total:.12g}") for label, chance in mass.items()}


def _bare(text: str) -> str:
    """Return ``text`` in lower case, without marks and spaces around it."""
    kept = [i for i, c in enumerate(text) if c.isalnum()]
    return text[kept[0] : kept[-1] + 1].casefold() if kept else ""


def _begins(piece: str, label: str) -> bool:
    if label.startswith(piece):
        return True
    return piece.startswith(label) and not piece[len(label)].isalnum()
