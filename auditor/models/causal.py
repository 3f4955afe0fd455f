"""Reading and writing with a causal language model: what prompts have in common is read once."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from auditor.models.logprobs import Token

ALTERNATIVES = 20  # tokens whose log-probability is kept at each place, as servers give them
PLAIN = "DynamicLayer"  # a cache of keys and values from which the last tokens can be taken off again


class Reader:
    """A causal model with the keys and values of the last prompt: the next one reads only the tokens that differ.

    ``shortens`` says whether the last tokens can be taken off the cache. If not (state spaces, sliding windows), each
    prompt is read whole.
    """

    def __init__(self, library: Any, torch: Any, model: Any) -> None:
        self._library, self._torch, self._model = library, torch, model
        self._ids: list[int] = []
        self._cache: Any = None
        parameters = inspect.signature(model.forward).parameters
        self._last_only = "logits_to_keep" in parameters
        with torch.inference_mode():
            made = model(input_ids=torch.tensor([[0]], device=model.device), use_cache=True)
        layers = getattr(getattr(made, "past_key_values", None), "layers", ())
        self.shortens = bool(layers) and all(type(layer).__name__ == PLAIN for layer in layers)

    def _begin(self, ids: Sequence[int], last: int) -> tuple[dict[str, Any], int]:
        """Return the cache, cut to what ``ids`` without the ``last`` tokens has of it, and its number of tokens."""
        before, cache = self._ids, self._cache
        self._ids, self._cache = [], None  # a pass that is cut off leaves the cache half written
        kept = min(_common(before, ids), len(ids) - last)
        if cache is not None and kept < len(before):
            cache.crop(kept - len(before))
        return ({"past_key_values": cache, "use_cache": True} if self.shortens else {}), kept

    def _end(self, ids: Sequence[int], made: Any) -> None:
        if self.shortens:
            self._ids, self._cache = list(ids), made.past_key_values

    def after(self, ids: Sequence[int], last: int = 1) -> Any:
        """Return what may follow each of the ``last`` tokens of ``ids``: log-probabilities (last, vocabulary)."""
        options, kept = self._begin(ids, last)
        if self._last_only:
            options["logits_to_keep"] = last
        made = self._model(input_ids=self._torch.tensor([list(ids[kept:])], device=self._model.device), **options)
        self._end(ids, made)
        return made.logits[0, -last:].float().log_softmax(-1)

    def write(
        self, rows: Sequence[Sequence[int]], limit: int, ends: Collection[int], fill: int, *, scored: bool = False
    ) -> tuple[list[list[int]], Sequence[Any]]:
        """Write greedily after each of ``rows``, at most ``limit`` tokens; one row goes on from the cache.

        Returns the tokens of each row, and with ``scored`` the logits (rows, vocabulary) at each of their places.
        """
        config = self._library.GenerationConfig(
            do_sample=False,
            num_beams=1,
            repetition_penalty=1.0,  # a model's own default for sampling would change greedy answers too
            max_new_tokens=limit,
            pad_token_id=fill,
            eos_token_id=sorted(ends) or None,
            return_dict_in_generate=True,
            output_logits=scored,
        )
        width = max(map(len, rows))
        # Padded on the left, so that all answers begin at the same place.
        ids = [[fill] * (width - len(row)) + list(row) for row in rows]
        mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
        options = self._begin(rows[0], 1)[0] if len(rows) == 1 else {}
        tensors = (self._torch.tensor(numbers, device=self._model.device) for numbers in (ids, mask))
        made = self._model.generate(
            **dict(zip(("input_ids", "attention_mask"), tensors, strict=True)), generation_config=config, **options
        )
        if len(rows) == 1:
            self._end(made.sequences[0].tolist()[:-1], made)
        return made.sequences[:, width:].tolist(), made.logits or ()

    def endings(self, ids: Sequence[int], endings: Mapping[str, Sequence[int]]) -> dict[str, float]:
        """Return the log-probability of each ending after ``ids``."""
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


def tokens_of(tokenizer: Any, written: Sequence[int], logits: Sequence[Any]) -> list[Token]:
    """Return written tokens with their most likely alternatives, as a chat server gives them."""
    out = []
    for token, chosen_by in zip(written, logits, strict=True):
        logs = chosen_by.float().log_softmax(-1)
        top = logs.topk(min(ALTERNATIVES, logs.shape[-1]))
        pairs = {
            tokenizer.decode([number]): chance
            for number, chance in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        }
        text = tokenizer.decode([token])
        out.append(Token(text=text, alternatives=tuple({**pairs, text: float(logs[token])}.items())))
    return out
