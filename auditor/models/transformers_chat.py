"""Answers of a causal language model on this machine: chat template, left padding, greedy decoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.core.errors import BadRequest, CallError
from auditor.core.types import Message, Prompt, Usage

MAX_TOKENS = 256  # where the task does not say


def has_template(tokenizer: object) -> bool:
    """Whether ``tokenizer`` knows how its model is spoken to."""
    return bool(getattr(tokenizer, "chat_template", None))


def told(prompt: Prompt) -> list[dict[str, str]]:
    """The messages of ``prompt`` as templates take them; a bare text is one message of the user."""
    messages = prompt.messages or (Message(role="user", content=prompt.text or ""),)
    return [{"role": m.role, "content": m.content} for m in messages]


def joined(prompt: Prompt) -> str:
    r"""The fallback where there is no template: the messages' contents with blank lines between, and a line's end.

    Examples
    --------
    >>> joined(Prompt(format="f", messages=(Message(role="system", content="a"), Message(role="user", content="b"))))
    'a\n\nb\n'
    """
    return "\n\n".join(m["content"] for m in told(prompt)) + "\n"


def template_ids(tokenizer: Any, prompt: Prompt) -> list[int] | CallError:
    """The tokens of ``prompt`` as the model's template writes them, up to where the answer begins.

    A template that refuses the role "system" gets the system message in front of the first one of the user.
    """
    from jinja2 import TemplateError

    messages = told(prompt)
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except TemplateError as first:
        if messages[0]["role"] != "system" or len(messages) < 2:
            return BadRequest(f"the model's chat template refuses these messages: {first}")
        system, user, *rest = messages
        user = {**user, "content": f"{system['content']}\n\n{user['content']}"}
        try:
            text = tokenizer.apply_chat_template([user, *rest], tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            return BadRequest(f"the model's chat template refuses these messages: {error}")
    # The template writes the special tokens itself.
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def answers(
    torch: Any, library: Any, model: Any, tokenizer: Any, rows: Sequence[Sequence[int]], *, max_tokens: int, device: str
) -> list[tuple[str, Usage]]:
    """What the model writes after each of ``rows``, greedily, and the tokens read and written.

    Parameters
    ----------
    rows : sequence of sequence of int
        Token ids; shorter rows are padded on the left, so that all answers begin at the same place.
    max_tokens : int
        Most tokens of an answer.
    """
    ends = _ends(model, tokenizer)
    fill = tokenizer.pad_token_id
    if fill is None:
        fill = min(ends, default=0)
    width = max(map(len, rows))
    config = library.GenerationConfig(
        do_sample=False,
        num_beams=1,
        repetition_penalty=1.0,  # a model's own default for sampling would change greedy answers too
        max_new_tokens=max_tokens,
        pad_token_id=fill,
        eos_token_id=sorted(ends) or None,
    )
    made = model.generate(
        input_ids=torch.tensor([[fill] * (width - len(row)) + list(row) for row in rows], device=device),
        attention_mask=torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device),
        generation_config=config,
    )
    found = []
    for row, new in zip(rows, made[:, width:].tolist(), strict=True):
        stop = next((i for i, token in enumerate(new) if token in ends), None)
        kept = new if stop is None else new[:stop]
        text = tokenizer.decode(kept, skip_special_tokens=True).strip()
        spent = len(new) if stop is None else stop + 1
        found.append((text, Usage(tokens_in=len(row), tokens_out=spent)))
    return found


def label_scores(
    torch: Any,
    model: Any,
    ids: Sequence[int],
    endings: Mapping[str, Sequence[int]],
    *,
    limit: int,
    fill: int,
    device: str,
) -> dict[str, float]:
    """Each label's probability as the continuation of ``ids``, normalised over the labels."""
    rows = [[*ids[-(limit - len(end)) :], *end] for end in endings.values()]
    width = max(map(len, rows))
    tensor = torch.tensor([row + [fill] * (width - len(row)) for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
    logs = model(input_ids=tensor, attention_mask=mask).logits.float().log_softmax(-1)
    sums = []
    for i, (row, end) in enumerate(zip(rows, endings.values(), strict=True)):
        first = len(row) - len(end)
        sums.append(sum(float(logs[i, first + j - 1, token]) for j, token in enumerate(end)))
    return dict(zip(endings, torch.tensor(sums).softmax(-1).tolist(), strict=True))


def _ends(model: Any, tokenizer: Any) -> set[int]:
    """The tokens that end an answer: those of the model's generation settings, and of the tokenizer."""
    own = getattr(model.generation_config, "eos_token_id", None)
    ids = own if isinstance(own, list | tuple) else [own]
    return {int(i) for i in [*ids, tokenizer.eos_token_id] if i is not None}
