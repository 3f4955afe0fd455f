"""The client against `transformers serve`, a server that nobody here wrote, with a model made on the spot."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import auditor.models as models
from auditor.errors import CallError
from auditor.models.budget import Budget
from auditor.models.cache import Cache
from auditor.models.client import Client
from auditor.types import Message, Prompt, Request, Response

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NEEDED = ("torch", "transformers", "fastapi", "uvicorn")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
START_S = 120

# Two layers of random weights over single bytes: it says nothing of sense, in the full protocol.
BUILD = """
import sys
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

torch.manual_seed(7)
special = ["<s>", "</s>", "<pad>"]
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(special + letters)}, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
)
fast.chat_template = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
config = LlamaConfig(
    vocab_size=len(special) + len(letters), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=512,
    bos_token_id=0, eos_token_id=1, pad_token_id=2,
)
LlamaForCausalLM(config).save_pretrained(sys.argv[1])
fast.save_pretrained(sys.argv[1])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Base URL and model folder of a running server."""
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)} (the extra e2e brings them)")
    folder = tmp_path_factory.mktemp("served") / "tiny"
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], check=True, env=offline, timeout=300)
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
    return [
        Request(
            prompt=Prompt(format="f", messages=(Message(role="user", content=text),)),
            replicate=replicate,
            variant_id=f"v{i}",
        )
        for i, text in enumerate(texts)
        for replicate in range(replicates)
    ]


def ask(
    server: tuple[str, Path], asked: list[Request], cache: Cache | None = None, name: str | None = None
) -> tuple[Client, list[Response]]:
    url, folder = server

    async def go() -> tuple[Client, list[Response]]:
        model = models.make(f"openai:{name or folder}", base_url=url, max_tokens=5, timeout_s=120)
        client = Client(model, cache=cache, budget=Budget(max_calls=60), concurrency=4)
        try:
            async with asyncio.timeout(300):
                return client, await client.ask(asked)
        finally:
            await client.aclose()

    return asyncio.run(go())


def test_a_real_server_answers_counts_and_repeats_itself(server: tuple[str, Path], tmp_path: Path) -> None:
    texts = ["The man was kind.", "The woman was kind.", "Ein Satz mit Umlauten: äöü."]
    asked = requests(texts, replicates=2)
    with Cache(tmp_path / "c.sqlite") as cache:
        client, responses = ask(server, asked, cache)
        assert client.stopped is None
        assert [r.error for r in responses] == [None] * 6
        for response, request in zip(responses, asked, strict=True):
            assert response.usage is not None
            assert 1 <= response.usage.tokens_out <= 5
            assert response.usage.tokens_in > 0
            assert response.usage.tokens_in <= client.tokens.bound(request.prompt)
            assert response.model_reported
        first, second = responses[0::2], responses[1::2]
        assert [r.output for r in first] == [r.output for r in second]  # temperature 0
        again, repeated = ask(server, asked, cache)
    assert again.counts.calls == 0
    assert [(r.output, r.cached) for r in repeated] == [(r.output, True) for r in responses]


def test_a_real_server_refuses_a_model_it_does_not_have(server: tuple[str, Path]) -> None:
    client, responses = ask(server, requests(["a", "b"]), name="no/such-model")
    assert all(r.output is None for r in responses)
    assert client.stopped is None or isinstance(client.stopped, CallError)
    assert client.counts.calls <= 10
