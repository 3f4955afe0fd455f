"""An LLM that compares two answers: asked twice with the order swapped, and measured on pairs with known answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from auditor.protocols import Model
from auditor.types import Request

TRUSTED = 0.75  # share of control pairs that the judge must get right
FIRST, SECOND, EQUAL = "first", "second", "equal"


@dataclass(slots=True)
class Tallied:
    """How the judge's pairs of answers came out.

    ``first_named`` and ``named`` count single answers: those for the text that stood first, and those for either.
    """

    pairs: int = 0
    preferred: int = 0
    ties: int = 0
    inconsistent: int = 0
    unreadable: int = 0
    first_named: int = 0
    named: int = 0


@dataclass(slots=True)
class Calibration:
    """The judge's own error: pairs in which one text is worse by construction."""

    n: int = 0
    right: int = 0
    wrong: int = 0
    undecided: int = 0  # ties, and answers that moved with the order
    unreadable: int = 0


class PairJudge:
    """Asks a model which of two texts is better.

    Each pair is asked in both orders. A preference counts only where both answers name the same text; an
    answer that moves with the order is a tie, and is counted. Equal texts are not asked.

    Parameters
    ----------
    model : Model
        The judge.
    task : Task
        How it is asked and read: labels ``first``, ``second`` and ``equal``; its control texts are the pairs
        with known answers, the better text first, and the same with the order swapped.
    client : Client
        Around ``model``.
    """

    def __init__(self, model: Model, task: Any, client: Any) -> None:
        self.model, self.task, self.client = model, task, client
        self.tallied, self.calibration = Tallied(), Calibration()
        self.calls = 0
        self._calibrated = False

    async def prefer(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Preference for each (original, variant): 1 for the variant, -1 for the original, 0 a tie, None unread."""
        asked = [(a, b) for a, b in pairs if a != b]
        told = iter(await self._both([(both(a, b), both(b, a)) for a, b in asked], self.tallied))
        return [0.0 if a == b else next(told) for a, b in pairs]

    async def calibrate(self) -> Calibration:
        """Ask the control pairs once; later calls return what was found."""
        if self._calibrated:
            return self.calibration
        self._calibrated = True
        # The better text stands first, so a right answer prefers the "original".
        for value in await self._both(list(self.task.controls), Tallied()):
            found = self.calibration
            found.n += 1
            found.unreadable += value is None
            found.right += value == -1.0
            found.wrong += value == 1.0
            found.undecided += value == 0.0
        return self.calibration

    @property
    def trusted(self) -> bool:
        """Whether it got at least three in four of the control pairs right."""
        return self.calibration.n > 0 and self.calibration.right >= TRUSTED * self.calibration.n

    def as_record(self) -> dict[str, Any]:
        """Plain data for ``run.json``."""
        return {
            "model": self.model.name,
            "fingerprint": self.model.fingerprint,
            "calls": self.calls,
            "trusted": self.trusted,
            "controls": asdict(self.calibration),
            "pairs": asdict(self.tallied),
        }

    async def _both(self, inputs: Sequence[tuple[str, str]], tallied: Tallied) -> list[float | None]:
        """For each pair of inputs, the second with the order swapped: 1, -1, 0 or None."""
        requests = []
        for number, texts in enumerate(inputs):
            for place, text in zip("ab", texts, strict=True):
                prompt = self.task.bare(text) if self.model.style == "text" else self.task.render(text)
                requests.append(Request(prompt=prompt, replicate=0, variant_id=f"judge.{number}{place}"))
        answers: list[str | None] = []
        for response in await self.client.ask(requests):
            self.calls += not response.cached
            read = None if response.error else self.task.read(response.output or "", self.model.style)
            answers.append(str(read.value) if read is not None and read.status == "ok" else None)
        return [
            count(plain, swapped, tallied) for plain, swapped in zip(answers[::2], answers[1::2], strict=True)
        ]


def both(first: str, second: str) -> str:
    """The input of the judge's task."""
    return f"Text 1:\n{first.strip()}\n\nText 2:\n{second.strip()}"


def count(plain: str | None, swapped: str | None, tallied: Tallied) -> float | None:
    """Put the answers for both orders together and count them.

    Examples
    --------
    >>> count("second", "first", Tallied()), count("first", "first", Tallied()), count("first", None, Tallied())
    (1.0, 0.0, None)
    """
    tallied.pairs += 1
    tallied.first_named += (plain, swapped).count(FIRST)
    tallied.named += sum(label in (FIRST, SECOND) for label in (plain, swapped))
    if plain is None or swapped is None:
        tallied.unreadable += 1
        return None
    value = {(SECOND, FIRST): 1.0, (FIRST, SECOND): -1.0}.get((plain, swapped), 0.0)
    tallied.preferred += value != 0.0
    tallied.ties += plain == swapped == EQUAL
    tallied.inconsistent += value == 0.0 and not plain == swapped == EQUAL
    return value


@dataclass(slots=True)
class Embedder:
    """Unit vectors of texts from a transformers encoder: the mean of the last hidden states of its tokens.

    The model is loaded when the first text comes. Texts that were seen are kept, up to ``kept``.

    Parameters
    ----------
    name : str
        Of the model, as transformers knows it, or its folder.
    """

    name: str
    kept: int = 4096
    _parts: Any = None
    _seen: dict[str, Any] = field(default_factory=dict)

    def __call__(self, texts: Sequence[str]) -> list[Any]:
        """One unit vector for each text."""
        missing = sorted({t for t in texts if t not in self._seen})
        if missing:
            if len(self._seen) + len(missing) > self.kept:
                self._seen.clear()
                missing = sorted(set(texts))
            self._seen |= zip(missing, self._embed(missing), strict=True)
        return [self._seen[t] for t in texts]

    def _embed(self, texts: Sequence[str]) -> list[Any]:
        import torch

        tokenizer, model = self._load()
        batch = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**batch).last_hidden_state
        weight = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)
        vectors = mean.double().numpy()
        return [v / max(math.sqrt(float(v @ v)), 1e-12) for v in vectors]

    def _load(self) -> Any:
        if self._parts is None:
            from auditor.errors import ConfigError, MissingDependency

            try:
                from transformers import AutoModel, AutoTokenizer
            except ImportError:
                raise MissingDependency("--embedding", "transformers", "local") from None
            try:
                model = AutoModel.from_pretrained(self.name)
                self._parts = AutoTokenizer.from_pretrained(self.name), model.eval()
            except (OSError, ValueError) as error:
                raise ConfigError(
                    f"--embedding hf:{self.name} cannot be loaded: {str(error).splitlines()[0]} Give the name of an "
                    "encoder that transformers can find, or its folder."
                ) from None
        return self._parts


def embedder(spec: str) -> Embedder:
    """The embedder that ``--embedding`` names.

    Raises
    ------
    ConfigError
        It is no ``hf:NAME``.
    """
    from auditor.errors import ConfigError

    kind, _, name = spec.partition(":")
    if kind != "hf" or not name:
        raise ConfigError(f"--embedding takes hf:NAME, an encoder of transformers; got {spec!r}.")
    return Embedder(name)
