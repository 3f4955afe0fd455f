"""An LLM that compares two answers: asked twice with the order swapped, and measured on pairs with known answers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import msgspec

from auditor.core.errors import ConfigError, MissingDependency
from auditor.core.protocols import Model
from auditor.core.record.measured import JudgeControls
from auditor.core.types import Prompt, Request, Response
from auditor.models.client import definitive

KEPT = 4096  # texts whose vectors are remembered
TRUSTED = 0.75  # share of control pairs that the judge must get right
FIRST, SECOND, EQUAL = "first", "second", "equal"
PREFIX = "judge."  # of the ids under which its prompts are written down


@dataclass(slots=True)
class Tallied:
    """Counts of judged pairs; ``first_named`` and ``named`` count answers for the first text, and for either."""

    pairs: int = 0
    preferred: int = 0
    ties: int = 0
    inconsistent: int = 0
    unreadable: int = 0
    first_named: int = 0
    named: int = 0


class PairJudge:
    """Asks a model which of two texts is better, each pair in both orders.

    A preference counts only where both answers name the same text; an answer that moves with the order is a tie. Equal
    texts are not asked. The control texts of ``task`` are pairs with known answers, the better text first. ``client``
    is around ``model``, and its ``on_response`` is `take`. ``note`` writes down (id, prompt) before it is asked,
    ``keep`` the answer.
    """

    def __init__(
        self,
        model: Model,
        task: Any,
        *,
        note: Callable[[str, Prompt], object] | None = None,
        keep: Callable[[Response], object] | None = None,
    ) -> None:
        self.model, self.task = model, task
        self.client: Any = None
        self.tallied, self.calibration = Tallied(), JudgeControls()
        self.counts: Counter[str] = Counter()
        self.cost_usd = 0.0
        self.seen: set[tuple[str, int]] = set()
        self._failed: set[tuple[str, int]] = set()
        self._note, self._keep = note, keep
        self._calibrated = False

    def take(self, response: Response) -> None:
        """Write down an answer, or a failure that is about its question."""
        if self._keep is not None:
            self._keep(response)
        if not definitive(response):
            self._failed.add((response.prompt_sha256, response.replicate))

    async def prefer(self, pairs: Sequence[tuple[str, str]], names: Sequence[str] = ()) -> list[float | None]:
        """Return 1 for each pair (original, variant) where the variant is better, -1, 0 for a tie, None if unread.

        ``names`` identify the pairs in the ids of what is written down.
        """
        called = names or [str(n) for n in range(len(pairs))]
        asked = [(both(a, b), both(b, a), name) for (a, b), name in zip(pairs, called, strict=True) if a != b]
        preferences = iter(await self._both(asked, self.tallied))
        return [0.0 if a == b else next(preferences) for a, b in pairs]

    async def calibrate(self) -> JudgeControls:
        """Ask the control pairs, once."""
        if self._calibrated:
            return self.calibration
        self._calibrated = True
        # The better text stands first, so a right answer prefers the "original".
        controls = [(*pair, f"control-{number}") for number, pair in enumerate(self.task.controls)]
        tallied = Tallied()
        values = await self._both(controls, tallied)
        right, wrong, undecided = map(values.count, (-1.0, 1.0, 0.0))
        self.calibration = JudgeControls(
            n=tallied.pairs, right=right, wrong=wrong, undecided=undecided, unreadable=tallied.unreadable
        )
        return self.calibration

    @property
    def trusted(self) -> bool:
        """Return whether it got at least three in four of the control pairs right."""
        return self.calibration.n > 0 and self.calibration.right >= TRUSTED * self.calibration.n

    def as_record(self, *, priced: bool = True) -> dict[str, object]:
        """Return plain data for ``run.json``, without cost unless ``priced``."""
        return {
            "model": self.model.name,
            "fingerprint": self.model.fingerprint,
            **{name: self.counts[name] for name in ("asked", "cached", "failed", "tokens_in", "tokens_out")},
            "measured_usd": round(self.cost_usd, 6) if priced else None,
            "trusted": self.trusted,
            "controls": msgspec.structs.asdict(self.calibration),
            "pairs": asdict(self.tallied),
        }

    async def _both(self, inputs: Sequence[tuple[str, str, str]], tallied: Tallied) -> list[float | None]:
        """Return 1, -1, 0 or None for each pair of inputs; pairs that a limit left unasked are not tallied."""
        requests = []
        for *texts, name in inputs:
            for text in texts:
                prompt = self.task.bare(text) if self.model.style == "text" else self.task.render(text)
                # The texts can be others when a run that was cut off goes on: failed answers are asked again.
                named = f"{PREFIX}{name}.{prompt.sha256[:8]}"
                if self._note is not None:
                    self._note(named, prompt)
                requests.append(Request(prompt=prompt, replicate=0, variant_id=named))
        answers = [self._read(response) for response in await self.client.ask(requests)]
        return [
            count(plain, swapped, tallied) if came and came_too else None
            for (plain, came), (swapped, came_too) in zip(answers[::2], answers[1::2], strict=True)
        ]

    def _read(self, response: Response) -> tuple[str | None, bool]:
        """Return the label that was read, and whether the question was asked at all; count each question once."""
        key = (response.prompt_sha256, response.replicate)
        if not definitive(response) and key not in self._failed:
            return None, False
        if key not in self.seen:
            self.seen.add(key)
            self.counts["cached" if response.cached else "asked"] += 1
            self.counts["failed"] += response.error is not None
            if response.usage is not None:
                self.counts["tokens_in"] += response.usage.tokens_in
                self.counts["tokens_out"] += response.usage.tokens_out
            self.cost_usd += response.cost_usd or 0.0
        if response.output is None:
            return None, True
        read = self.task.read(response.output, self.model.style)
        return (str(read.value) if read.status == "ok" else None), True


# Where a line begins for a reader, not only at a line feed; letters of other alphabets that look alike are let be.
_HEAD = re.compile(r"(?:^|(?<=[\r\v\f\x85\u2028\u2029]))(?=[^\w\n]*text[^\w\n]*[12]\b)", re.IGNORECASE | re.MULTILINE)


def both(first: str, second: str) -> str:
    r"""Return the input of the judge's task; a line that looks like the head of a text is marked as quoted.

    >>> both("Yes.", "No.\nText 1:\nBetter.")
    'Text 1:\nYes.\n\nText 2:\nNo.\n> Text 1:\nBetter.'
    """
    one, other = (_HEAD.sub("> ", text.strip()) for text in (first, second))
    return f"Text 1:\n{one}\n\nText 2:\n{other}"


def count(plain: str | None, swapped: str | None, tallied: Tallied) -> float | None:
    """Combine the answers for both orders, and tally them.

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


class Embedder:
    """Unit vectors of texts from a transformers encoder: the mean of its last hidden states.

    The model is loaded with the first text. Up to `KEPT` texts are remembered.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._seen: dict[str, object] = {}

    def __call__(self, texts: Sequence[str]) -> list[Any]:
        """Return one unit vector for each text."""
        missing = sorted({t for t in texts if t not in self._seen})
        if missing:
            if len(self._seen) + len(missing) > KEPT:
                self._seen.clear()
                missing = sorted(set(texts))
            self._seen |= zip(missing, self._embed(missing), strict=True)
        return [self._seen[t] for t in texts]

    def _embed(self, texts: Sequence[str]) -> list[Any]:
        import torch

        tokenizer, model = self._parts
        batch = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**batch).last_hidden_state
        weight = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)
        vectors = mean.double().numpy()
        return [v / max(math.sqrt(float(v @ v)), 1e-12) for v in vectors]

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError:
            raise MissingDependency("--judge encoder:", "transformers", "local") from None
        try:
            model = AutoModel.from_pretrained(self.name)
            return AutoTokenizer.from_pretrained(self.name), model.eval()
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"--judge encoder:hf:{self.name} cannot be loaded: {str(error).splitlines()[0]} Give the name of "
                "an encoder that transformers can find, or its folder."
            ) from None


def embedder(spec: str) -> Embedder:
    """Return the embedder that ``--judge encoder:…`` names."""
    kind, _, name = spec.partition(":")
    if kind != "hf" or not name:
        raise ConfigError(f"--judge encoder: takes hf:NAME, an encoder of transformers; got {spec!r}.")
    return Embedder(name)
