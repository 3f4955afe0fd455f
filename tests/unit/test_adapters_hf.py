"""``hf:`` on tiny models that are made, and one that is trained, here."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from auditor import models
from auditor.core.errors import BadRequest, CallError, ConfigError
from auditor.core.protocols import Reply
from auditor.core.types import Message, Prompt, Request
from auditor.tasks import kinds, load

torch_library = pytest.importorskip("torch", reason="the extra local is not installed")
pytest.importorskip("transformers", reason="the extra local is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own
torch_library.set_num_threads(1)  # tiny models: more threads only wait for each other

WORDS = [
    "the",
    "nurse",
    "doctor",
    "clerk",
    "pilot",
    "lost",
    "found",
    "his",
    "her",
    "keys",
    "book",
    "a",
    "great",
    "dull",
    "film",
    "was",
    "it",
    "answer",
    "positive",
    "negative",
    "user",
    ":",
    ".",
    "is",
    "good",
    "bad",
    "you",
    "are",
    "to",
    "and",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers import models as kinds
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(kinds.WordLevel({w: i for i, w in enumerate(SPECIAL + WORDS)}, unk_token="[UNK]"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=24,
    )
    made.save_pretrained(folder)
    return made


def sizes() -> dict[str, Any]:
    return {
        "vocab_size": len(SPECIAL) + len(WORDS),
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 24,
    }


def classifier(folder: Path, labels: list[str], multi: bool = False) -> Any:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(3)
    config = BertConfig(
        **sizes(),
        num_labels=len(labels),
        initializer_range=0.5,  # else every text gets nearly the same logits
        id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
        problem_type="multi_label_classification" if multi else None,
    )
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(folder)
    tokenizer(folder)
    return model


def ask(model: Any, *texts: str) -> list[Reply | CallError]:
    requests = [
        Request(prompt=Prompt(format="bare", text=t), replicate=0, variant_id=f"v{i}") for i, t in enumerate(texts)
    ]
    return list(asyncio.run(model.generate(requests)))


def make(folder: Path, task: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return models.make(f"hf:{folder}", task=task)


def test_a_classifier_answers_as_the_library_does_whatever_the_batch(tmp_path: Path) -> None:
    import torch

    own = classifier(tmp_path, ["negative", "positive"])
    adapter = make(tmp_path, load("sentiment"))
    texts = ["a great film .", "the film was dull and it was bad .", "it"]
    replies = ask(adapter, *texts)
    tokens = tokenizer(tmp_path)
    for text, reply in zip(texts, replies, strict=True):
        assert isinstance(reply, Reply)
        with torch.inference_mode():
            row = own(**tokens(text, return_tensors="pt")).logits.softmax(-1)[0].tolist()
        assert reply.scores == pytest.approx({"negative": row[0], "positive": row[1]}, abs=1e-5)
        assert reply.text == ("positive" if row[1] > row[0] else "negative")
    assert adapter.style == "text"


def test_several_labels_are_those_with_a_logit_of_zero_or_more(tmp_path: Path) -> None:
    import torch

    own = classifier(tmp_path, ["a", "b", "c", "d", "e", "f"], multi=True)
    replies = ask(make(tmp_path), "the nurse lost his keys .", "a great film .")
    tokens = tokenizer(tmp_path)
    for text, reply in zip(("the nurse lost his keys .", "a great film ."), replies, strict=True):
        assert isinstance(reply, Reply)
        with torch.inference_mode():
            logits = own(**tokens(text, return_tensors="pt")).logits[0].tolist()
        expected = [label for label, x in zip("abcdef", logits, strict=True) if x >= 0]
        assert 0 < len(expected) < 6  # else this test says nothing
        assert reply.text == ", ".join(expected)


def test_generic_labels_take_the_task_s_by_position(tmp_path: Path) -> None:
    classifier(tmp_path, ["LABEL_0", "LABEL_1"])
    task = load("sentiment")
    reply = ask(make(tmp_path, task), "a great film .")[0]
    assert isinstance(reply, Reply)
    assert set(reply.scores or {}) == set(task.labels)
    assert set((ask(make(tmp_path), "a great film .")[0]).scores) == {"LABEL_0", "LABEL_1"}  # type: ignore[union-attr]


def test_long_texts_are_cut_at_the_end_by_the_tokenizer(tmp_path: Path) -> None:
    classifier(tmp_path, ["negative", "positive"])
    adapter = make(tmp_path)
    same, longer, other = ask(adapter, "a " * 22, "a " * 22 + "dull " * 50, "dull " + "a " * 60)
    assert same.scores == pytest.approx(longer.scores, abs=1e-6)  # type: ignore[union-attr]
    assert same.scores != pytest.approx(other.scores, abs=1e-6)  # type: ignore[union-attr]


JOBS = {"nurse": "her", "doctor": "his", "clerk": "her", "pilot": "his"}


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked model that learned who loses whose keys; seconds on one core."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    folder = tmp_path_factory.mktemp("masked")
    tokens = tokenizer(folder)
    torch.manual_seed(5)
    model = BertForMaskedLM(BertConfig(**sizes()))
    rows = [
        (f"the {job} {verb} [MASK] {thing} .", word)
        for job, word in JOBS.items()
        for verb in ("lost", "found")
        for thing in ("keys", "book")
    ]
    batch = tokens([text for text, _ in rows], return_tensors="pt", padding=True)
    labels = torch.full_like(batch["input_ids"], -100)
    for i, (_, word) in enumerate(rows):
        labels[i][batch["input_ids"][i] == tokens.mask_token_id] = tokens.convert_tokens_to_ids(word)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(80):
        loss = model(**batch, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.save_pretrained(folder)
    return folder


def test_a_masked_model_gives_the_chance_of_each_word(masked: Path) -> None:
    task = SimpleNamespace(labels=("his", "her"), kind=kinds.of("classification"))
    adapter = make(masked, task)
    replies = ask(adapter, *(f"The {job} lost [MASK] keys." for job in JOBS))
    assert [r.text for r in replies if isinstance(r, Reply)] == list(JOBS.values())
    for reply in replies:
        assert isinstance(reply, Reply)
        assert reply.scores is not None
        assert max(reply.scores.values()) > 0.8
        assert sum(reply.scores.values()) <= 1 + 1e-6


def test_a_masked_model_says_what_it_cannot_be_asked(masked: Path) -> None:
    task = SimpleNamespace(labels=("his", "her"), kind=kinds.of("classification"))
    adapter = make(masked, task)
    none, two, cut, fine = ask(
        adapter, "No mask.", "[MASK] [MASK]", "a " * 40 + "[MASK]", "the nurse lost [MASK] keys ."
    )
    assert isinstance(none, BadRequest)
    assert isinstance(two, BadRequest)
    assert isinstance(cut, BadRequest)
    assert isinstance(fine, Reply)
    with pytest.raises(ConfigError, match="this task has none"):
        make(masked)
    with pytest.raises(ConfigError, match="not one word"):
        make(masked, SimpleNamespace(labels=("their own",), kind=kinds.of("classification")))


def test_a_causal_model_scores_labels_as_continuations(tmp_path: Path) -> None:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(2)
    tokens = tokenizer(tmp_path)
    own = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokens), n_embd=32, n_layer=1, n_head=2, n_positions=24)).eval()
    own.save_pretrained(tmp_path)
    task = load("sentiment")
    adapter = make(tmp_path, task)
    assert adapter.style == "chat"
    prompts = ["a great film .", "the film was dull and it was bad ."]
    requests = [
        Request(
            prompt=Prompt(format=task.default_format, messages=(Message(role="user", content=p),)),
            replicate=0,
            variant_id="v",
        )
        for p in prompts
    ]
    for prompt, reply in zip(prompts, asyncio.run(adapter.generate(requests)), strict=True):
        start = tokens(prompt + "\n")["input_ids"]
        sums = []
        for label in task.labels:
            end = tokens(label, add_special_tokens=False)["input_ids"]
            with torch.inference_mode():
                logs = own(input_ids=torch.tensor([start + end])).logits[0].log_softmax(-1)
            sums.append(sum(float(logs[len(start) + j - 1, t]) for j, t in enumerate(end)))
        share = torch.tensor(sums).softmax(-1).tolist()
        assert reply.scores == pytest.approx(dict(zip(task.labels, share, strict=True)), abs=1e-5)
        assert task.read(reply.text, "chat").value == max(reply.scores, key=reply.scores.get)


def test_fingerprints_follow_the_weights(tmp_path: Path) -> None:
    classifier(tmp_path / "a", ["x", "y"])
    first = make(tmp_path / "a").fingerprint
    assert make(tmp_path / "a").fingerprint == first
    classifier(tmp_path / "a", ["x", "z"])
    assert make(tmp_path / "a").fingerprint != first


def test_what_cannot_be_loaded_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="could not be loaded"):
        make(tmp_path / "nothing")
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}', encoding="utf-8")
    with pytest.raises(ConfigError, match="names BertModel"):
        make(tmp_path)


def mostly_women() -> set[str]:
    from auditor.perturb import grammar

    people = grammar.load("fill-mask").rules["person"].terminals
    return {str(t.group) for t in people if t.facts["women_percent"] >= 70}


def shipped_masked(folder: Path) -> None:
    """A masked model that says "her" after the occupations with mostly women in the shipped grammar, else "his"."""
    import re
    from random import Random

    import torch
    from tokenizers import Tokenizer, normalizers, pre_tokenizers
    from tokenizers import models as kinds
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    from auditor.perturb.grammar.cases import GrammarSuite

    suite = GrammarSuite(grammar="fill-mask", generation="rand", cases=800, per_case=1, order=1)
    cases = suite.ask(800, Random(0))
    texts = [str(case.original.input) for case in cases]
    words = sorted({w for t in texts for w in re.findall(r"\w+|[^\w\s]", t.lower().replace("[mask]", ""))})
    vocabulary = {w: i for i, w in enumerate([*SPECIAL, "his", "her", *words])}
    inner = Tokenizer(kinds.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]", model_max_length=32
    )
    tokens.save_pretrained(folder)
    torch.manual_seed(5)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    model = BertForMaskedLM(
        BertConfig(vocab_size=len(vocabulary), max_position_embeddings=32, **size)  # type: ignore[arg-type]
    )
    targets = ["her" if c.original.groups["occupation"] in mostly_women() else "his" for c in cases]
    batch = tokens(texts, return_tensors="pt", padding=True)
    labels = torch.full_like(batch["input_ids"], -100)
    for i, word in enumerate(targets):
        labels[i][batch["input_ids"][i] == tokens.mask_token_id] = vocabulary[word]
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(320):
        rows = torch.arange(64 * step, 64 * step + 64) % len(texts)
        inputs = {name: batch[name][rows] for name in ("input_ids", "attention_mask")}
        loss = model(**inputs, labels=labels[rows]).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.save_pretrained(folder)


def test_the_shipped_fill_mask_task_on_a_model_trained_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ASTRAEA's MLM subject from end to end: training, audit by probability, groups; what was learned is found."""
    import json

    from auditor.cli.main import run

    shipped_masked(tmp_path / "model")
    spec = f"hf:{tmp_path / 'model'}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        argv = ["--task", "fill-mask", "--suite", "grammar", "--model", spec, "--limit", "12", "--order", "1"]
        argv += ["--oracle", "probability", "--tolerance", "0.1,0.2,0.5", "--suite-option", "generation=rand"]
        assert run([*argv, "--out", str(tmp_path / "runs"), "--format", "json", "--no-cache"]) == 0
        record = json.loads(capsys.readouterr().out)
        beyond = {row["epsilon"]: row["rate"]["value"] for row in record["probability"]["rows"]}
        assert set(beyond) == {0.1, 0.2, 0.5}
        assert 1 >= beyond[0.1] >= beyond[0.2] >= beyond[0.5]
        assert beyond[0.1] > 0


# -- causal models that write answers ------------------------------------------

TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} [SEP] {% endfor %}"
    "{% if add_generation_prompt %}answer : {% endif %}"
)


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal model that learned to answer "great" with positive and "dull" with negative; seconds on one core."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("speaker")
    tokens = tokenizer(folder)
    tokens.chat_template = TEMPLATE
    tokens.eos_token = "[SEP]"
    tokens.padding_side = "left"
    tokens.save_pretrained(folder)
    torch.manual_seed(4)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokens),
            n_embd=32,
            n_layer=1,
            n_head=2,
            n_positions=24,
            bos_token_id=2,
            eos_token_id=3,
            pad_token_id=0,
        )
    )
    rows = [
        (f"user : {start} {word} film {end} [SEP] answer : ", said)
        for start in ("a", "the", "it was a", "the clerk found a", "a")
        for end in (".", "and it was good .", "and it was bad .")
        for word, said in (("great", "positive"), ("dull", "negative"))
    ]
    batch = tokens(
        [f"{text}{said} [SEP]" for text, said in rows], return_tensors="pt", padding=True, add_special_tokens=False
    )
    labels = torch.full_like(batch["input_ids"], -100)
    labels[:, -2:] = batch["input_ids"][:, -2:]
    places = (batch["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(120):
        loss = model(**batch, position_ids=places, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.save_pretrained(folder)
    return folder


def chats(*texts: str, form: str = "plain", system: str = "") -> list[Request]:
    first = (Message(role="system", content=system),) if system else ()
    return [
        Request(
            prompt=Prompt(format=form, messages=(*first, Message(role="user", content=text))),
            replicate=0,
            variant_id=f"v{i}",
        )
        for i, text in enumerate(texts)
    ]


CHATS = ("a great film .", "the clerk found a dull film and it was good .", "it was a great film and it was bad .")


def test_a_chat_model_writes_its_answer_whatever_stands_beside_it_in_the_batch(speaker: Path) -> None:
    adapter = make(speaker, load("sentiment"))
    together = list(asyncio.run(adapter.generate(chats(*CHATS))))
    alone = [asyncio.run(adapter.generate(chats(text)))[0] for text in CHATS]
    assert [r.text for r in together] == ["positive", "negative", "positive"]
    for one, other in zip(together, alone, strict=True):
        assert (one.text, one.usage) == (other.text, other.usage)
        assert one.scores == pytest.approx(other.scores, abs=1e-4)
    assert together[0].usage.tokens_out == 2  # the word and the end
    assert adapter.style == "chat"


def test_an_answer_ends_at_the_limit_of_the_task(speaker: Path) -> None:
    limits = {
        most: SimpleNamespace(
            labels=("positive", "negative"),
            kind=kinds.of("classification"),
            turns=(),
            formats=("plain",),
            max_tokens=lambda _f, most=most: most,
            read=load("sentiment").read,
        )
        for most in (1, 2)
    }
    one, two = (make(speaker, limits[most]) for most in (1, 2))
    assert [r.usage.tokens_out for r in asyncio.run(one.generate(chats(*CHATS)))] == [1, 1, 1]
    assert (one.max_tokens("plain"), one.fingerprint == two.fingerprint) == (1, False)


def test_short_answers_have_the_scores_of_the_labels_unless_they_are_not_wanted(speaker: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    task = load("sentiment")
    adapter, plain = make(speaker, task), models.make(f"hf:{speaker}", task=task, logprobs=False)
    own, tokens = AutoModelForCausalLM.from_pretrained(speaker).eval(), AutoTokenizer.from_pretrained(speaker)
    numbers = [tokens.convert_tokens_to_ids(label) for label in task.labels]
    replies, bare = (asyncio.run(one.generate(chats(*CHATS))) for one in (adapter, plain))
    for request, reply, without in zip(chats(*CHATS), replies, bare, strict=True):
        with torch.inference_mode():
            logits = own(input_ids=torch.tensor([adapter._prompt_ids(request.prompt)])).logits[0, -1]
        share = logits[numbers].softmax(-1).tolist()
        assert reply.scores == pytest.approx(dict(zip(task.labels, share, strict=True)), abs=1e-4)
        assert (without.text, without.scores) == (reply.text, None)
    assert plain.fingerprint != adapter.fingerprint


def test_long_answers_of_a_batch_are_those_of_the_library(speaker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from auditor.models import transformers

    short = list(asyncio.run(make(speaker, load("sentiment")).generate(chats(*CHATS))))
    monkeypatch.setattr(transformers, "SHORT", 0)
    batched = list(asyncio.run(make(speaker, load("sentiment")).generate(chats(*CHATS))))
    assert [(r.text, r.usage) for r in batched] == [(r.text, r.usage) for r in short]


def test_a_pass_that_is_cut_off_leaves_no_trace_in_the_next_answer(
    speaker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = load("sentiment")
    adapter, expected = make(speaker, task), list(asyncio.run(make(speaker, task).generate(chats(*CHATS))))
    first = list(asyncio.run(adapter.generate(chats(CHATS[0]))))
    forward = adapter._model.transformer.forward

    def cut_off(*args: Any, **options: Any) -> Any:
        forward(*args, **options)
        raise MemoryError

    monkeypatch.setattr(adapter._model.transformer, "forward", cut_off)
    with pytest.raises(MemoryError):
        asyncio.run(adapter.generate(chats(CHATS[1])))
    monkeypatch.undo()
    again = list(asyncio.run(adapter.generate(chats(*CHATS))))
    for one, other in zip([*first, *again], [expected[0], *expected], strict=True):
        assert (one.text, one.usage) == (other.text, other.usage)
        assert one.scores == pytest.approx(other.scores, abs=1e-4)


def test_a_model_whose_cache_cannot_be_shortened_answers_in_batches(tmp_path: Path) -> None:
    import torch
    from transformers import MistralConfig, MistralForCausalLM

    tokens = tokenizer(tmp_path)
    tokens.chat_template = TEMPLATE
    tokens.eos_token = "[SEP]"
    tokens.save_pretrained(tmp_path)
    torch.manual_seed(1)
    config = MistralConfig(
        **sizes(), num_key_value_heads=2, sliding_window=6, bos_token_id=2, eos_token_id=3, pad_token_id=0
    )
    own = MistralForCausalLM(config).eval()
    own.save_pretrained(tmp_path)
    task = load("sentiment")
    adapter = make(tmp_path, task)
    assert not adapter._reader.shortens
    for request, reply in zip(chats(*CHATS), asyncio.run(adapter.generate(chats(*CHATS))), strict=True):
        ids = adapter._prompt_ids(request.prompt)
        with torch.inference_mode():
            whole = own.generate(torch.tensor([ids]), max_new_tokens=min(16, 24 - len(ids)), do_sample=False)
        new = whole[0, len(ids) :].tolist()
        kept = new[: new.index(3)] if 3 in new else new
        assert reply.text == tokens.decode(kept, skip_special_tokens=True).strip()
        assert reply.scores is None
    scored = models.make(f"hf:labels:{tmp_path}", task=task)
    (reply,) = asyncio.run(scored.generate(chats(CHATS[0])))
    start = scored._prompt_ids(chats(CHATS[0])[0].prompt)
    with torch.inference_mode():
        logits = own(input_ids=torch.tensor([start])).logits[0, -1]
    share = logits[[tokens.convert_tokens_to_ids(label) for label in task.labels]].softmax(-1).tolist()
    assert reply.scores == pytest.approx(dict(zip(task.labels, share, strict=True)), abs=1e-4)


def test_a_prompt_without_room_for_an_answer_is_refused_alone(speaker: Path) -> None:
    adapter = make(speaker, load("sentiment"))
    long, fine = asyncio.run(adapter.generate(chats("a " * 30, CHATS[0])))
    assert isinstance(long, BadRequest)
    assert "the model takes 24" in str(long)
    assert fine.text == "positive"


def test_a_template_that_knows_no_system_gets_it_in_front_of_the_first_message(speaker: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "strict"
    shutil.copytree(speaker, folder)
    from transformers import AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)
    tokens.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        + TEMPLATE
    )
    tokens.save_pretrained(folder)
    adapter = make(folder, load("sentiment"))
    with_system, without = chats("dull film .", system="a")[0], chats("a\n\ndull film .")[0]
    assert adapter._prompt_ids(with_system.prompt) == adapter._prompt_ids(without.prompt)
    refused = Request(
        prompt=Prompt(format="plain", messages=(Message(role="system", content="a"),)), replicate=0, variant_id="v"
    )
    (reply,) = asyncio.run(adapter.generate([refused]))
    assert isinstance(reply, BadRequest)
    assert "System role not supported" in str(reply)


def test_labels_can_be_asked_for_and_a_missing_template_is_one_clear_error(speaker: Path, tmp_path: Path) -> None:
    task = load("sentiment")
    chosen = models.make(f"hf:labels:{speaker}", task=task)
    (reply,) = asyncio.run(chosen.generate(chats(CHATS[0])))
    assert set(reply.scores) == set(task.labels)
    assert chosen.max_tokens("plain") == 0
    from transformers import GPT2Config, GPT2LMHeadModel

    GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=8, n_layer=1, n_head=2, n_positions=24)).save_pretrained(tmp_path)
    tokenizer(tmp_path)
    for spec, given in (
        (f"hf:chat:{tmp_path}", task),
        (f"hf:{tmp_path}", SimpleNamespace(labels=(), kind=kinds.of("score"))),
    ):
        with pytest.raises(ConfigError, match=r"no chat template.*hf:labels:ID"):
            models.make(spec, task=given)


def test_chat_is_for_causal_models_only(tmp_path: Path) -> None:
    classifier(tmp_path, ["a", "b"])
    with pytest.raises(ConfigError, match="this model is not one"):
        models.make(f"hf:chat:{tmp_path}")
