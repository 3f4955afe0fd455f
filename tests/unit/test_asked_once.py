"""Within one process equal prompts are asked once, whoever asks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.errors import CallError, ServerFault
from auditor.core.protocols import Model, Reply
from auditor.core.types import Prompt, Request
from auditor.models.attempts import RetryPolicy
from auditor.models.budget import Budget
from auditor.models.client import Client
from auditor.models.reply_cache import Cache


class Server(Model):
    """Counts what it is asked, and fails some texts at first."""

    costs = "nothing"
    style, deterministic, cacheable, name, fingerprint = "text", True, True, "remote", "remote"

    def __init__(self, faults: dict[str, int] | None = None, *, max_batch: int = 1, seed: int = 0) -> None:
        self.asked: Counter[tuple[str, int]] = Counter()
        self.answered: Counter[tuple[str, int]] = Counter()
        self.faults, self.max_batch, self.random = faults or {}, max_batch, Random(seed)

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        await asyncio.sleep(self.random.random() / 500)
        return [self.reply(request) for request in batch]

    def reply(self, request: Request) -> Reply | CallError:
        text = request.prompt.text or ""
        key = (text, request.replicate)
        self.asked[key] += 1
        if self.asked[key] <= self.faults.get(text, 0):
            return ServerFault("broken")
        self.answered[key] += 1
        return Reply(f"{text}!")


def ask_for(texts: Sequence[str], replicates: int = 1) -> list[Request]:
    return [
        Request(prompt=Prompt(format="plain", text=t), replicate=r, variant_id=f"{t}{r}")
        for t in texts
        for r in range(replicates)
    ]


def client_of(model: Model, cache: Cache | None, concurrency: int = 4) -> Client:
    retry = RetryPolicy(base_s=0.001, attempts=4)
    return Client(model, cache=cache, budget=Budget(), retry=retry, concurrency=concurrency)


texts = st.lists(st.sampled_from("abcdefghij"), max_size=12)
parties = st.lists(st.tuples(texts, st.integers(1, 3)), min_size=2, max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    parties, st.dictionaries(st.sampled_from("abcdefghij"), st.integers(0, 2)), st.integers(1, 4), st.integers(1, 3),
    st.integers(0, 99),
)  # fmt: skip
def test_each_prompt_is_answered_once_whoever_asks(
    parties: list[tuple[list[str], int]], faults: dict[str, int], size: int, concurrency: int, seed: int
) -> None:
    """For any texts, repeats, batches, calls in flight and passing faults."""

    async def go() -> None:
        server = Server(faults, max_batch=size, seed=seed)
        client = client_of(server, None, concurrency)
        wanted = [ask_for(some, times) for some, times in parties]
        for requests, responses in zip(wanted, await asyncio.gather(*map(client.ask, wanted)), strict=True):
            assert [r.output for r in responses] == [f"{r.prompt.text}!" for r in requests]
            assert [r.variant_id for r in responses] == [r.variant_id for r in requests]
        everything = {(r.prompt.text, r.replicate) for w in wanted for r in w}
        assert server.answered == Counter(dict.fromkeys(everything, 1))
        assert client.counts.calls == client.budget.calls == sum(server.asked.values())

    asyncio.run(go())


def test_a_later_client_asks_nothing_again(tmp_path: Path) -> None:
    server = Server()

    async def go() -> None:
        for asked, cached in ((2, 0), (1, 2)):
            with Cache(tmp_path / "c") as cache:
                client = client_of(server, cache)
                await client.ask(ask_for("ab" if asked == 2 else "abc"))
                assert (client.counts.calls, client.counts.cached) == (asked, cached)

    asyncio.run(go())
    assert server.answered == Counter({("a", 0): 1, ("b", 0): 1, ("c", 0): 1})
