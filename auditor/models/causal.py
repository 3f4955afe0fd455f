"""Reading and writing with a causal language model: what prompts have in common is read once."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from auditor.models.logprobs import Token

ALTERNATIVES = 20  # tokens whose log-probability is kept at each place, as servers give them
PLAIN = "DynamicLayer"  # a cache of keys and values from which the last tokens can be taken off again


class Reader:
    """A causal model with the keys and values of the last prompt, of which the next one needs only its own tokens.

    Variants of one text begin alike, and prompts of one task begin with the same instructions.

    Parameters
    ----------
    torch : module
    model : transformers.PreTrainedModel
        A causal language model in evaluation mode.

    Attributes
    ----------
    shortens : bool
        Whether the last tokens can be taken off the cache. If not (state spaces, sliding windows), each prompt is read
        whole.
    """

    def __init__(self, torch: Any, model: Any) -> None:
        self._torch, self._model = torch, model
        self._ids: list[int] = []
        self._cache: Any = None
        parameters = inspect.signature(model.forward).parameters
        self._last_only = "logits_to_keep" in parameters
        with torch.inference_mode():
            made = model(input_ids=torch.tensor([[0]], device=model.device), use_cache=True)
        layers = getattr(getattr(made, "past_key_values", None), "layers", ())
        self.shortens = bool(layers) and all(type(layer).__name__ == PLAIN for layer in layers)

    def after(self, ids: Sequence[int], last: int = 1) -> Any:
        """Return what may follow each of the ``last`` tokens of ``ids``: log-probabilities (last, vocabulary)."""
        before, cache = self._ids, self._cache
        self._ids, self._cache = [], None  # a pass that is cut off leaves the cache half written
        kept = min(_common(before, ids), len(ids) - last)
        options: dict[str, Any] = {"logits_to_keep": last} if self._last_only else {}
        if self.shortens:
            if cache is not None and kept < len(before):
                cache.crop(kept - len(before))
            options |= {"past_key_values": cache, "use_cache": True}
        rest = self._torch.tensor([list(ids[kept:])], device=self._model.device)
        made = self._model(input_ids=rest, **options)
        if self.shortens:
            self._ids, self._cache = list(ids), made.past_key_values
        return made.logits[0, -last:].float().log_softmax(-1)

    def write(self, ids: Sequence[int], limit: int, ends: Collection[int]) -> tuple[list[int], list[Any]]:
        """Write greedily after ``ids``, at most ``limit`` tokens; the last one is in ``ends`` if the answer is whole.

        Returns the tokens, and the log-probabilities that each was chosen by.
        """
        written: list[int] = []
        chosen_by = []
        while len(written) < limit and not (written and written[-1] in ends):
            logs = self.after([*ids, *written])[0]
            chosen_by.append(logs)
            written.append(int(logs.argmax()))
        return written, chosen_by

    def endings(self, ids: Sequence[int], endings: Mapping[str, Sequence[int]]) -> dict[str, float]:
        """Return the log-probability of each ending after ``ids``; an ending of one token needs no pass of its own."""
        first = self.after(ids)[0]
        out = {}
        for name, end in endings.items():
            total = float(first[end[0]])
            if len(end) > 1:
                logs = self.after([*ids, *end[:-1]], last=len(end) - 1)
                total += sum(float(logs[n, token]) for n, token in enumerate(end[1:]))
            out[name] = total
        return out


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens with which both begin."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def tokens_of(tokenizer: Any, written: Sequence[int], chosen_by: Sequence[Any]) -> list[Token]:
    """Return written tokens with their most likely alternatives, as a chat server gives them."""
    out = []
    for token, logs in zip(written, chosen_by, strict=True):
        top = logs.topk(min(ALTERNATIVES, logs.shape[-1]))
        pairs = {
            tokenizer.decode([number]): chance
            for number, chance in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        }
        text = tokenizer.decode([token])
        out.append(Token(text=text, alternatives=tuple({**pairs, text: float(logs[token])}.items())))
    return out
