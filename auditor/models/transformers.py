"""``hf:ID-or-path``: a Hugging Face model on this machine.

Three kinds, told apart by the class that the model's configuration names:

- sequence classification reads the bare text; one label by the highest logit, or, for a multi-label
  head or task, every label with a logit of 0 or more;
- masked language models read the bare text with ``[MASK]`` in it and choose between the task's labels for that
  place; ``scores`` are the model's probabilities of these words, which need not add up to 1;
- causal language models read the rendered prompt; each label's log-probability as its continuation
  is taken from the logits, and ``scores`` are these, normalised over the labels. Nothing is sampled.

Texts longer than the model takes are cut by its tokenizer: classifiers and masked models at the end, causal ones at
the beginning.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from auditor.errors import BadRequest, CallError, ConfigError, MissingDependency
from auditor.models.local import bare_text, best_label
from auditor.protocols import Reply
from auditor.types import Request, digest

KINDS = {
    "ForSequenceClassification": ("classify", "AutoModelForSequenceClassification"),
    "ForMaskedLM": ("mask", "AutoModelForMaskedLM"),
    "ForCausalLM": ("causal", "AutoModelForCausalLM"),
    "LMHeadModel": ("causal", "AutoModelForCausalLM"),
}
MASK = "[MASK]"  # how texts mark the place, whatever the tokenizer calls it
MAX_LENGTH = 100_000  # what tokenizers without a limit claim is far above this


class Transformers:
    """A local Hugging Face model as an adapter.

    Parameters
    ----------
    name : str
        An ID of the hub, or the folder of a saved model.
    task : Task, optional
        Gives the labels: needed by masked and causal models. A classifier whose labels are ``LABEL_0``,
        ``LABEL_1``, … takes the task's labels by position, if there are as many.
    device : str
        Where the model runs, as torch names it.

    Raises
    ------
    MissingDependency
        The extra ``local`` is not installed.
    ConfigError
        The model cannot be loaded, is of no kind above, or its labels cannot be asked for.
    """

    deterministic = True
    cacheable = True
    max_batch = 16

    def __init__(self, name: str, *, task: Any = None, device: str = "cpu") -> None:
        self._torch, library = _libraries()
        self.name = f"hf:{name}"
        self._device, self._task = device, task
        self.kind, self._tokenizer, self._model = _load(library, name)
        self._model.to(device).eval()
        config = self._model.config
        self._multi = getattr(config, "problem_type", None) == "multi_label_classification" or (
            getattr(task, "kind", None) == "multilabel"
        )
        self._limit = _limit(self._tokenizer, config)
        self.style: Literal["text", "chat"] = "chat" if self.kind == "causal" else "text"
        self._labels = self._read_labels(config)
        if self.kind == "mask":
            self._ids = {label: _one_token(self._tokenizer, label) for label in self._labels}
        self._lock = threading.Lock()
        self.fingerprint = "hf:" + digest(
            {
                "adapter": "transformers.v1",
                "library": library.__version__,
                "weights": _weights(name, config),
                "kind": self.kind,
                "multi": self._multi,
                "labels": list(self._labels),
                "limit": self._limit,
            },
            size=16,
        )

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Answer ``batch`` in one pass of the model; see `auditor.protocols.Model`."""
        return await asyncio.to_thread(self._work, batch)

    async def aclose(self) -> None:
        """Nothing to release."""

    def _work(self, batch: Sequence[Request]) -> list[Reply | CallError]:
        read: Callable[[Request], Any] = self._prompt_ids if self.kind == "causal" else bare_text
        inputs = [read(request) for request in batch]
        if self.kind == "mask":
            inputs = [self._masked(text) for text in inputs]
        good = [i for i, value in enumerate(inputs) if not isinstance(value, CallError)]
        replies: list[Reply | CallError] = list(inputs)
        kinds: dict[str, Callable[..., Sequence[Reply | CallError]]] = {
            "classify": self._classify,
            "mask": self._fill,
            "causal": self._continue,
        }
        if good:
            # A model is not safe in two threads at once, and two would not be faster.
            with self._lock, self._torch.inference_mode():
                made = kinds[self.kind]([inputs[i] for i in good], [batch[i] for i in good])
            for i, reply in zip(good, made, strict=True):
                replies[i] = reply
        return replies

    # -- sequence classification -----------------------------------------

    def _classify(self, texts: Sequence[str], batch: Sequence[Request]) -> list[Reply]:
        logits = self._model(**self._encode(texts)).logits.float()
        if self._multi:
            rows = logits.sigmoid().tolist()
            chosen = [[self._labels[j] for j, x in enumerate(row) if x >= 0] for row in logits.tolist()]
            return [
                Reply(text=", ".join(labels) or "none", scores=self._scores(row))
                for labels, row in zip(chosen, rows, strict=True)
            ]
        return [
            Reply(text=self._labels[max(range(len(row)), key=row.__getitem__)], scores=self._scores(row))
            for row in logits.softmax(-1).tolist()
        ]

    def _scores(self, row: Sequence[float]) -> Mapping[str, float]:
        return dict(zip(self._labels, map(float, row), strict=True))

    # -- masked language models ------------------------------------------

    def _masked(self, text: Any) -> Any:
        if isinstance(text, CallError):
            return text
        if text.count(MASK) != 1:
            return BadRequest(f"a masked model needs one {MASK} in the text, got {text.count(MASK)}")
        return text.replace(MASK, self._tokenizer.mask_token)

    def _fill(self, texts: Sequence[str], batch: Sequence[Request]) -> list[Reply | CallError]:
        encoded = self._encode(texts)
        places = encoded["input_ids"] == self._tokenizer.mask_token_id
        chances = self._model(**encoded).logits.float().softmax(-1)
        replies: list[Reply | CallError] = []
        for row, place in zip(chances, places, strict=True):
            if not bool(place.any()):
                replies.append(BadRequest(f"the text is longer than the model takes, and {MASK} was cut off"))
                continue
            here = row[place][0]
            scores = {label: float(here[number]) for label, number in self._ids.items()}
            replies.append(Reply(text=best_label(scores), scores=scores))
        return replies

    # -- causal language models ------------------------------------------

    def _prompt_ids(self, request: Request) -> Any:
        messages = request.prompt.messages
        if messages is None:
            return list(self._tokenizer(request.prompt.text or "")["input_ids"])
        if getattr(self._tokenizer, "chat_template", None):
            told = [{"role": m.role, "content": m.content} for m in messages]
            text = self._tokenizer.apply_chat_template(told, tokenize=False, add_generation_prompt=True)
            return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        return list(self._tokenizer("\n\n".join(m.content for m in messages) + "\n")["input_ids"])

    def _continue(self, prompts: Sequence[list[int]], batch: Sequence[Request]) -> list[Reply]:
        endings = [self._tokenizer(label, add_special_tokens=False)["input_ids"] for label in self._labels]
        replies = []
        for ids, request in zip(prompts, batch, strict=True):
            rows = [[*ids[-(self._limit - len(end)) :], *end] for end in endings]
            width = max(map(len, rows))
            fill = self._tokenizer.pad_token_id or 0
            tensor = self._torch.tensor(
                [row + [fill] * (width - len(row)) for row in rows], device=self._device
            )
            mask = self._torch.tensor(
                [[1] * len(row) + [0] * (width - len(row)) for row in rows], device=self._device
            )
            logs = self._model(input_ids=tensor, attention_mask=mask).logits.float().log_softmax(-1)
            sums = []
            for i, (row, end) in enumerate(zip(rows, endings, strict=True)):
                first = len(row) - len(end)
                sums.append(sum(float(logs[i, first + j - 1, token]) for j, token in enumerate(end)))
            share = self._torch.tensor(sums).softmax(-1).tolist()
            scores = dict(zip(self._labels, share, strict=True))
            # The answer in the form the prompt asks for, so that the task reads it as any other model's.
            replies.append(Reply(text=self._write(best_label(scores), request), scores=scores))
        return replies

    def _write(self, label: str, request: Request) -> str:
        if request.prompt.messages is None or self._task is None:
            return label
        return str(self._task.write(label, request.prompt.format))

    # -- reading the model ------------------------------------------------

    def _encode(self, texts: Sequence[str]) -> Any:
        return self._tokenizer(
            list(texts), return_tensors="pt", padding=True, truncation=True, max_length=self._limit
        ).to(self._device)

    def _read_labels(self, config: Any) -> tuple[str, ...]:
        wanted = tuple(map(str, getattr(self._task, "labels", None) or ()))
        if self.kind != "classify":
            if self._multi or not wanted:
                raise ConfigError(
                    f"model {self.name!r} chooses between the labels of a task, and this task has none. "
                    "Use a task with labels, or serve the model and ask openai:NAME with --base-url."
                )
            return wanted
        own = tuple(str(config.id2label[i]) for i in range(config.num_labels))
        generic = all(label == f"LABEL_{i}" for i, label in enumerate(own))
        return wanted if generic and len(wanted) == len(own) else own


def _libraries() -> tuple[Any, Any]:
    found = []
    for package in ("torch", "transformers"):
        try:
            found.append(importlib.import_module(package))
        except ImportError as error:
            raise MissingDependency("A model on this machine (hf:)", package, extra="local") from error
    return found[0], found[1]


def _load(library: Any, name: str) -> tuple[str, Any, Any]:
    """Kind, tokenizer and model."""
    try:
        config = library.AutoConfig.from_pretrained(name)
        classes = list(config.architectures or ())
        found = next((KINDS[end] for c in classes for end in KINDS if c.endswith(end)), None)
        if found is None:
            raise ConfigError(
                f"model 'hf:{name}': its configuration names {', '.join(classes) or 'no class'}; only "
                f"{', '.join(KINDS)} can be asked."
            )
        kind, auto = found
        tokenizer = library.AutoTokenizer.from_pretrained(name)
        model = getattr(library, auto).from_pretrained(name)
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"model 'hf:{name}' could not be loaded: {first} Give the ID of a model on the hub, or the folder of a "
            "saved one with its tokenizer."
        ) from error
    if tokenizer.pad_token is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.truncation_side = tokenizer.padding_side = "right"
    return kind, tokenizer, model


def _limit(tokenizer: Any, config: Any) -> int:
    """Tokens that the model takes."""
    known = [tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
    known += [getattr(config, "n_positions", None)]
    return min((int(n) for n in known if n and n < MAX_LENGTH), default=512)


def _one_token(tokenizer: Any, label: str) -> int:
    """The token of a word inside a sentence.

    Raises
    ------
    ConfigError
        The word is more than one token, so that one mask cannot stand for it.
    """
    for text in (f" {label}", label):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
            return int(ids[0])
    raise ConfigError(f"the label {label!r} is not one word to this model, so one {MASK} cannot stand for it")


def _weights(name: str, config: Any) -> str:
    """What identifies the weights: the hub's commit, or a digest of the files."""
    commit = getattr(config, "_commit_hash", None)
    folder = Path(name)
    if commit and not folder.is_dir():
        return f"{name}@{commit}"
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.glob("*") if p.suffix in (".safetensors", ".bin", ".json", ".txt")):
        whole.update(path.name.encode())
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()
