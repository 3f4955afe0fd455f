"""``hf:`` on tiny models that are made, and one that is trained, here."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from commands import Capture, both

from auditor import models
from auditor.core.errors import BadRequest, ConfigError
from auditor.core.protocols import Reply
from auditor.core.types import Message, Prompt, Request
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.tasks import kinds, load
from tests.asking import ask, bare, chat

torch = pytest.importorskip("torch", reason="the extra local is not installed")
library = pytest.importorskip("transformers", reason="the extra local is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own
torch.set_num_threads(1)  # tiny models: more threads only wait for each other

TEXT = (
    "the nurse doctor clerk pilot lost found his her keys book a great dull film was it answer positive negative "
    "user : . is good bad you are to and"
)
WORDS = TEXT.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
SIZES = SMALL | {"vocab_size": len(SPECIAL) + len(WORDS), "max_position_embeddings": 24}
GPT2 = {"vocab_size": SIZES["vocab_size"], "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 24}
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} [SEP] {% endfor %}"
    "{% if add_generation_prompt %}answer : {% endif %}"
)
ENDS = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}


def tokenizer(folder: Path, words: list[str] = WORDS, length: int = 24, **more: Any) -> Any:
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers import models as kinds

    inner = Tokenizer(kinds.WordLevel({w: i for i, w in enumerate(SPECIAL + words)}, unk_token="[UNK]"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    made = library.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=length, **names)
    for name, value in more.items():
        setattr(made, name, value)
    made.save_pretrained(folder)
    return made


def classifier(folder: Path, labels: list[str], multi: bool = False) -> Any:
    torch.manual_seed(3)
    kind = {"id2label": dict(enumerate(labels)), "problem_type": "multi_label_classification" if multi else None}
    config = library.BertConfig(**SIZES, **kind, initializer_range=0.5)  # else every text gets nearly the same logits
    model = library.BertForSequenceClassification(config).eval()
    model.save_pretrained(folder)
    tokenizer(folder)
    return model


def speaks(folder: Path, **more: Any) -> Any:
    return tokenizer(folder, chat_template=TEMPLATE, eos_token="[SEP]", padding_side="left", **more)


def make(folder: Path, task: Any = None, spec: str = "hf:", **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return models.make(f"{spec}{folder}", task=task, **options)


def labels_of(*labels: str, **more: Any) -> Any:
    return SimpleNamespace(labels=labels, kind=kinds.of("classification"), turns=(), **more)


@pytest.mark.parametrize("multi", [False, True])
def test_a_classifier_answers_as_the_library_does_whatever_the_batch(tmp_path: Path, multi: bool) -> None:
    names = list("abcdef") if multi else ["negative", "positive"]
    own, texts = classifier(tmp_path, names, multi), ["a great film .", "the nurse lost his keys .", "it"]
    adapter, tokens = make(tmp_path, None if multi else load("sentiment")), tokenizer(tmp_path)
    assert adapter.style == "text"
    for text, reply in zip(texts, ask(adapter, *map(bare, texts)), strict=True):
        with torch.inference_mode():
            logits = own(**tokens(text, return_tensors="pt")).logits[0]
        shares = (logits.sigmoid() if multi else logits.softmax(-1)).tolist()
        assert reply.scores == pytest.approx(dict(zip(names, shares, strict=True)), abs=1e-5)
        several = [name for name, x in zip(names, logits.tolist(), strict=True) if x >= 0]
        assert reply.text == (", ".join(several) if multi else names[int(logits.argmax())])
        assert 0 < len(several) < 6  # else this test says nothing


def test_labels_lengths_and_weights_of_a_classifier(tmp_path: Path) -> None:
    classifier(tmp_path, ["LABEL_0", "LABEL_1"])
    task, adapter = load("sentiment"), make(tmp_path)
    (generic,), (named,) = ask(adapter, bare("a great film .")), ask(make(tmp_path, task), bare("a great film ."))
    assert (set(generic.scores), set(named.scores)) == ({"LABEL_0", "LABEL_1"}, set(task.labels))
    same, longer, other = ask(adapter, bare("a " * 22), bare("a " * 22 + "dull " * 50), bare("dull " + "a " * 60))
    assert same.scores == pytest.approx(longer.scores, abs=1e-6)
    assert same.scores != pytest.approx(other.scores, abs=1e-6)
    assert make(tmp_path).fingerprint == adapter.fingerprint
    classifier(tmp_path, ["x", "z"])
    assert make(tmp_path).fingerprint != adapter.fingerprint
    with pytest.raises(ConfigError, match="this model is not one"):
        make(tmp_path, spec="hf:labels:")


def test_what_cannot_be_loaded_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="could not be loaded"):
        make(tmp_path / "nothing")
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}', encoding="utf-8")
    with pytest.raises(ConfigError, match="names BertModel"):
        make(tmp_path)


def test_a_masked_model_gives_the_chance_of_each_word_and_says_what_it_cannot_be_asked(tmp_path: Path) -> None:
    tokens, words = tokenizer(tmp_path), ("his", "her", "great", "dull")
    torch.manual_seed(5)
    own = library.BertForMaskedLM(library.BertConfig(**SIZES, initializer_range=0.5)).eval()
    own.save_pretrained(tmp_path)
    adapter = make(tmp_path, labels_of(*words))
    texts = ["The nurse lost [MASK] keys.", "It was a [MASK] film.", "You are [MASK]"]
    replies = ask(adapter, *map(bare, texts))
    for text, reply in zip(texts, replies, strict=True):
        batch = tokens(text, return_tensors="pt")
        with torch.inference_mode():
            chances = own(**batch).logits[batch["input_ids"] == tokens.mask_token_id][0].softmax(-1)
        expected = {word: float(chances[tokens.convert_tokens_to_ids(word)]) for word in words}
        assert reply.scores == pytest.approx(expected, rel=1e-3)
        assert reply.text == max(expected, key=expected.__getitem__)
    assert len({reply.text for reply in replies}) > 1  # else this test says little
    asked = ("No mask.", "[MASK] [MASK]", "a " * 40 + "[MASK]", "the nurse lost [MASK] keys .")
    assert [type(r) for r in ask(adapter, *map(bare, asked))] == [BadRequest, BadRequest, BadRequest, Reply]
    for task, told in ((None, "this task has none"), (labels_of("their own"), "not one word")):
        with pytest.raises(ConfigError, match=told):
            make(tmp_path, task)


def test_the_shipped_fill_mask_task_from_end_to_end(tmp_path: Path, capsys: Capture) -> None:
    suite = GrammarSuite(grammar="fill-mask", generation="rand", cases=300, per_case=1, order=1)
    texts = [str(case.original.input).lower().replace("[mask]", "") for case in suite.ask(300, Random(0))]
    words = sorted({"his", "her", *(word for text in texts for word in re.findall(r"\w+|[^\w\s]", text))})
    tokenizer(tmp_path / "model", words, 32)
    torch.manual_seed(5)
    sizes = SMALL | {"vocab_size": len(words) + len(SPECIAL), "max_position_embeddings": 32}
    model = library.BertForMaskedLM(library.BertConfig(**sizes, initializer_range=0.4))
    with torch.no_grad():  # it says one of the two words, and which one follows from the others
        model.get_output_embeddings().bias[[len(SPECIAL) + words.index(word) for word in ("his", "her")]] += 20
    model.save_pretrained(tmp_path / "model")
    argv = f"--task fill-mask --suite grammar --suite-option generation=rand --model hf:{tmp_path / 'model'} --limit 12"
    argv += f" --order 1 --oracle probability --tolerance 0.1,0.2,0.5 --format json --out {tmp_path} --no-cache"
    code, out, _ = both(capsys, argv)
    assert code == 0
    rows = json.loads(out)["probability"]["rows"]
    rates = [row["rate"]["value"] for row in sorted(rows, key=lambda row: row["epsilon"])]
    assert 1 >= rates[0] >= rates[1] >= rates[2]
    assert rates[0] > 0


def shares(own: Any, tokens: Any, start: list[int], labels: Any) -> Any:
    """What the library says of each label as the continuation of ``start``."""
    sums = []
    for label in labels:
        end = tokens(label, add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            logs = own(input_ids=torch.tensor([start + end])).logits[0].log_softmax(-1)
        sums.append(sum(float(logs[len(start) + j - 1, t]) for j, t in enumerate(end)))
    return pytest.approx(dict(zip(labels, torch.tensor(sums).softmax(-1).tolist(), strict=True)), abs=1e-4)


def test_a_causal_model_scores_labels_as_continuations(tmp_path: Path) -> None:
    torch.manual_seed(2)
    tokens, task = tokenizer(tmp_path), load("sentiment")
    own = library.GPT2LMHeadModel(library.GPT2Config(**GPT2)).eval()
    own.save_pretrained(tmp_path)
    adapter = make(tmp_path, task)
    assert (adapter.style, adapter.max_tokens("plain")) == ("chat", 0)
    prompts = ["a great film .", "the film was dull and it was bad ."]
    asked = [chat(p, form=task.default_format) for p in prompts]
    for prompt, reply in zip(prompts, ask(adapter, *asked), strict=True):
        assert reply.scores == shares(own, tokens, tokens(prompt + "\n")["input_ids"], task.labels)
        assert task.read(reply.text, "chat").value == max(reply.scores, key=reply.scores.get)
    with pytest.raises(ConfigError, match=r"no chat template.*hf:labels:ID"):
        make(tmp_path, SimpleNamespace(labels=(), kind=kinds.of("score")))


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal model that learned to answer "great" with positive and "dull" with negative; seconds on one core."""
    folder = tmp_path_factory.mktemp("speaker")
    tokens = speaks(folder)
    torch.manual_seed(4)
    model = library.GPT2LMHeadModel(library.GPT2Config(**GPT2, **ENDS))
    rows = [
        f"user : {start} {word} film {end} [SEP] answer : {said} [SEP]"
        for start in ("a", "the", "it was a", "the clerk found a", "a")
        for end in (".", "and it was good .", "and it was bad .")
        for word, said in (("great", "positive"), ("dull", "negative"))
    ]
    batch = tokens(rows, return_tensors="pt", padding=True, add_special_tokens=False)
    labels = torch.full_like(batch["input_ids"], -100)
    labels[:, -2:] = batch["input_ids"][:, -2:]
    places = (batch["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(120):
        model(**batch, labels=labels, position_ids=places).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    model.save_pretrained(folder)
    return folder


CHATS = ("a great film .", "the clerk found a dull film and it was good .", "it was a great film and it was bad .")
ASKED = tuple(map(chat, CHATS))


def same(some: list[Any], others: list[Any]) -> bool:
    scores = [(one.scores, other.scores) for one, other in zip(some, others, strict=True)]
    assert all(one == pytest.approx(other, abs=1e-4) for one, other in scores)
    return [(r.text, r.usage) for r in some] == [(r.text, r.usage) for r in others]


def test_a_chat_model_writes_its_answer_whatever_else_is_in_the_batch(speaker: Path) -> None:
    adapter = make(speaker, load("sentiment"))
    together = ask(adapter, *ASKED)
    assert adapter.style == "chat"
    assert [r.text for r in together] == ["positive", "negative", "positive"]
    assert together[0].usage.tokens_out == 2  # the word and the end
    assert same(together, [ask(adapter, one)[0] for one in ASKED])
    long, fine = ask(adapter, chat("a " * 30), ASKED[0])
    assert isinstance(long, BadRequest)
    assert "the model takes 24" in str(long)
    assert fine.text == "positive"


def test_an_answer_ends_at_the_limit_of_the_task(speaker: Path) -> None:
    def limited(most: int) -> Any:
        task = {"formats": ("plain",), "max_tokens": lambda _: most, "read": load("sentiment").read}
        return make(speaker, labels_of("positive", "negative", **task))

    one = limited(1)
    assert [r.usage.tokens_out for r in ask(one, *ASKED)] == [1, 1, 1]
    assert one.max_tokens("plain") == 1
    assert one.fingerprint != limited(2).fingerprint


def test_short_answers_have_the_scores_of_the_labels_and_long_ones_are_those_of_the_library(
    speaker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = load("sentiment")
    adapter, plain, chosen = make(speaker, task), make(speaker, task, logprobs=False), make(speaker, task, "hf:labels:")
    own = library.AutoModelForCausalLM.from_pretrained(speaker).eval()
    tokens = library.AutoTokenizer.from_pretrained(speaker)
    replies, without, labels = (ask(one, *ASKED) for one in (adapter, plain, chosen))
    for request, reply, label in zip(ASKED, replies, labels, strict=True):
        assert reply.scores == shares(own, tokens, adapter._prompt_ids(request.prompt), task.labels) == label.scores
    assert [(r.text, r.scores) for r in without] == [(r.text, None) for r in replies]
    assert plain.fingerprint != adapter.fingerprint
    monkeypatch.setattr("auditor.models.transformers.SHORT", 0)
    assert same(ask(make(speaker, task), *ASKED), without)


def test_a_pass_that_is_cut_off_leaves_no_trace_in_the_next_answer(
    speaker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter, expected = make(speaker, load("sentiment")), ask(make(speaker, load("sentiment")), *ASKED)
    first, forward = ask(adapter, ASKED[0]), adapter._model.transformer.forward

    def cut_off(*args: Any, **options: Any) -> Any:
        forward(*args, **options)
        raise MemoryError

    monkeypatch.setattr(adapter._model.transformer, "forward", cut_off)
    with pytest.raises(MemoryError):
        ask(adapter, ASKED[1])
    monkeypatch.undo()
    assert same([*first, *ask(adapter, *ASKED)], [expected[0], *expected])


def test_a_model_whose_cache_cannot_be_shortened_answers_in_batches(tmp_path: Path) -> None:
    tokens, task = speaks(tmp_path), load("sentiment")
    torch.manual_seed(1)
    config = library.MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=6, **ENDS)
    own = library.MistralForCausalLM(config).eval()
    own.save_pretrained(tmp_path)
    adapter, scored = make(tmp_path, task), make(tmp_path, task, "hf:labels:")
    assert not adapter._reader.shortens
    for request, reply in zip(ASKED, ask(adapter, *ASKED), strict=True):
        ids = adapter._prompt_ids(request.prompt)
        with torch.inference_mode():
            whole = own.generate(torch.tensor([ids]), max_new_tokens=min(16, 24 - len(ids)), do_sample=False)
        new = whole[0, len(ids) :].tolist()
        kept = new[: new.index(3)] if 3 in new else new
        assert (reply.text, reply.scores) == (tokens.decode(kept, skip_special_tokens=True).strip(), None)
    (reply,) = ask(scored, ASKED[0])
    assert reply.scores == shares(own, tokens, scored._prompt_ids(ASKED[0].prompt), task.labels)


def test_a_template_that_knows_no_system_gets_it_in_front_of_the_first_message(speaker: Path, tmp_path: Path) -> None:
    shutil.copytree(speaker, tmp_path / "strict")
    refusal = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    tokenizer(tmp_path / "strict", chat_template=refusal + TEMPLATE, eos_token="[SEP]")
    adapter = make(tmp_path / "strict", load("sentiment"))
    with_system, without = chat("dull film .", ("system", "a")), chat("a\n\ndull film .")
    assert adapter._prompt_ids(with_system.prompt) == adapter._prompt_ids(without.prompt)
    alone = Prompt(format="plain", messages=(Message(role="system", content="a"),))
    (reply,) = ask(adapter, Request(prompt=alone, replicate=0, variant_id="v"))
    assert isinstance(reply, BadRequest)
    assert "System role not supported" in str(reply)
