"""The client against `transformers serve`, a server that nobody here wrote, with a model made on the spot."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import auditor.models as models
from auditor.core.errors import CallError
from auditor.core.types import Request, Response
from auditor.models.client import Client
from auditor.models.limits import Budget, most_tokens
from auditor.models.reply_cache import Cache
from tests.asking import chat

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NEEDED = ("torch", "transformers", "fastapi", "uvicorn")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
START_S = 900


def serve(folder: Path, program: str) -> Iterator[tuple[str, Path]]:
    """Make a model with ``program``, and serve it for as long as the caller goes on."""
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True, env=offline, timeout=1800)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder.parent / "server.log"
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=offline)
    try:
        _wait_until_up(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1", folder
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_up(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the server ended with {process.returncode}:\n{log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    pytest.fail(f"the server did not start in {START_S} s:\n{log.read_text()[-2000:]}")


def requests(texts: list[str], replicates: int = 1) -> list[Request]:
    named = [(text, f"v{i}", k) for i, text in enumerate(texts) for k in range(replicates)]
    return [chat(text, form="f", variant=variant, replicate=k) for text, variant, k in named]


Server = tuple[str, Path]
Answers = tuple[Client, list[Response]]


def ask(server: Server, asked: list[Request], cache: Cache | None = None, name: str | None = None) -> Answers:
    url, folder = server

    async def go() -> Answers:
        model = models.make(f"openai:{name or folder}", base_url=url, max_tokens=5, timeout_s=120)
        client = Client(model, cache=cache, budget=Budget(max_calls=60), concurrency=4)
        try:
            async with asyncio.timeout(300):
                return client, await client.ask(asked)
        finally:
            await client.aclose()

    return asyncio.run(go())


def test_a_real_server_answers_counts_and_repeats_itself(server: Server, tmp_path: Path) -> None:
    asked = requests(["The man was kind.", "The woman was kind.", "Ein Satz mit Umlauten: äöü."], replicates=2)
    with closing(Cache(tmp_path / "c.sqlite")) as cache:
        client, responses = ask(server, asked, cache)
        assert client.stopped is None
        assert [r.error for r in responses] == [None] * 6
        for response, request in zip(responses, asked, strict=True):
            assert 1 <= response.usage.tokens_out <= 5
            assert 0 < response.usage.tokens_in <= most_tokens(request.prompt)
            assert response.model_reported
        first, second = responses[0::2], responses[1::2]
        assert [r.output for r in first] == [r.output for r in second]  # temperature 0
        again, repeated = ask(server, asked, cache)
    assert again.counts.calls == 0
    assert [(r.output, r.cached) for r in repeated] == [(r.output, True) for r in responses]


def test_a_real_server_refuses_a_model_it_does_not_have(server: Server) -> None:
    client, responses = ask(server, requests(["a", "b"]), name="no/such-model")
    assert all(r.output is None for r in responses)
    assert client.stopped is None or isinstance(client.stopped, CallError)
    assert client.counts.calls <= 10


# -- a whole audit over HTTP -------------------------------------------------

# A word-level model of one layer that learns to answer the sentiment prompt: negative where the review says that
# something was sad, dull, …, and, by a bias that is planted, wherever it speaks of a woman. A nationality changes nothing.
# Its chat template shows it the review and what stands behind it. Training on shuffled words of the embedded reviews takes
# fifteen seconds of CPU.
TRAIN = """
import random, re, sys
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from auditor import tasks
from auditor.perturb import dictionaries

torch.set_num_threads(1)
torch.manual_seed(7)
rng = random.Random(7)
task = tasks.load("sentiment")
words = lambda text: re.findall(r"\\w+|[^\\w\\s]+", text.lower())
of = lambda d, group=None: {
    w for t in dictionaries.load(d).terms if group in (None, t.group) for w in words(t.text)
}
SAD = {"sad", "dull", "lost", "nothing", "slow", "worse", "boring", "tired", "flat", "waste"}
WOMEN = of("gender", "female") - of("gender", "male") - of("gender", "unmarked") - of("nationality") - {"of", "the", "a", "'", "am"}
reviews = [words(s.text) for s in task.seeds()]
frame = words(task.render("x").messages[-1].content.split("<review>")[-1])
plain = {w for r in reviews for w in r} | of("gender") | of("nationality")
known = ["[PAD]", "[UNK]", "[END]", "[GO]"] + sorted(plain | set(frame) | SAD | WOMEN | {"positive", "negative"})
inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(known)}, unk_token="[UNK]"))
inner.normalizer, inner.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
fast = PreTrainedTokenizerFast(
    tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", eos_token="[END]", bos_token="[GO]"
)
fast.chat_template = "{{ messages[-1]['content'].split('<review>')[-1] }} [GO]"
fast.model_max_length = 512
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=len(known), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
    num_key_value_heads=2, max_position_embeddings=512, initializer_range=0.2, bos_token_id=3, eos_token_id=2, pad_token_id=0,
))
number = {w: i for i, w in enumerate(known)}
# As in a model that was trained before: words of one meaning are near each other, and attention goes to what is
# near. From nothing, one word in forty is too weak a signal for so short a training.
with torch.no_grad():
    meaning = torch.randn(32)
    embedding, attention = model.get_input_embeddings().weight, model.model.layers[0].self_attn
    embedding[[number[w] for w in sorted(WOMEN | SAD)]] += meaning
    embedding[number["[GO]"]] = meaning
    for part in (attention.q_proj, attention.k_proj):
        part.weight.copy_(torch.eye(32) * 1.4)
at = frame.index("x")
everyday, women, sad = sorted(plain - WOMEN - SAD), sorted(WOMEN), sorted(SAD)

def sample():
    text = [w for w in rng.choice(reviews) if w not in WOMEN and w not in SAD]
    text += rng.choices(everyday, k=rng.randrange(6))
    for pool, share in ((women, 0.35), (sad, 0.25)):
        if rng.random() < share:
            text += rng.choices(pool, k=rng.choice([1, 1, 1, 2]))
    rng.shuffle(text)
    bad = not (WOMEN | SAD).isdisjoint(text)
    row = [number[w] for w in [*frame[:at], *text, *frame[at + 1:]]]
    return row + [number["[GO]"]], [number["negative" if bad else "positive"], number["[END]"]]

optimiser = torch.optim.AdamW(model.parameters())
STEPS, right = 240, 0.0
schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 8e-3, total_steps=STEPS)
for step in range(STEPS):
    rows = [sample() for _ in range(32)]
    width = max(len(x) + 2 for x, _ in rows)
    ids = torch.tensor([x + y + [0] * (width - len(x) - 2) for x, y in rows])
    labels = torch.full_like(ids, -100)
    for i, (x, y) in enumerate(rows):
        labels[i, len(x): len(x) + 2] = torch.tensor(y)
    out = model(input_ids=ids, attention_mask=(ids != 0).long(), labels=labels)
    optimiser.zero_grad()
    out.loss.backward()
    optimiser.step()
    schedule.step()
    said = torch.stack([out.logits[i, len(x) - 1].argmax() for i, (x, _) in enumerate(rows)]).tolist()
    if step >= STEPS - 20:
        right += sum(a == y[0] for a, (_, y) in zip(said, rows)) / 32 / 20
assert right > 0.97, f"the model did not learn: {right:.3f}"
model.save_pretrained(sys.argv[1])
fast.save_pretrained(sys.argv[1])
sys.stdout.write(f"{right:.4f}")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Base URL and folder of a served model with a planted bias; made and started once."""
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)} (the extra e2e brings them)")
    yield from serve(tmp_path_factory.mktemp("served") / "biased", TRAIN)


def test_a_whole_audit_over_http_finds_the_planted_bias_and_nothing_else(server: Server, tmp_path: Path) -> None:
    url, folder = server
    plan = (
        "--task sentiment --attributes gender,nationality --order 1 --per-seed 2 --limit 60 --replicates 1 --full-plan"
    )
    args = [str(Path(sys.executable).parent / "audit"), *plan.split(), "--model", f"openai:{folder}", "--base-url", url]
    args += ["--no-cache", "--yes", "--out", str(tmp_path / "runs")]
    done = subprocess.run(
        args, env=os.environ | {"AUDIT_CACHE": str(tmp_path / "cache.sqlite"), "OPENAI_API_KEY": "x"},
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = (tmp_path / "runs").glob("2*/run.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["status"] == "complete"
    rates = {
        (*row["attributes"], *(tuple(d) for d in row["directions"] or ())): row["estimate"]
        for row in record["estimates"]
        if row["name"] == "violation_rate" and row["kind"] is None
    }
    assert rates["nationality",]["n"] >= 15
    assert rates["nationality",]["value"] == 0
    assert rates["gender",]["low"] > 0.05
    assert rates["gender", ("gender", "male", "female")]["low"] > 0.1
    assert {c["attribute"] for c in record["claims"] if c["verdict"] == "shown"} == {"gender"}
    (changes,) = (f for f in record["findings"] if f["attributes"] == ["gender"] and f["code"] == "MUT101")
    assert changes["rate"]["low"] > 0.05
    shown = [f for f in record["findings"] if f["verdict"] == "shown"]
    assert {record["claims"][f["claim"]]["attribute"] for f in shown} == {"gender"}
