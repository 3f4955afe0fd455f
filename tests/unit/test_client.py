"""The client's layers, on a scripted model and a clock that only sleeps move."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.errors import BadRequest, BadResponse, CallError, CallTimeout, PluginError, RateLimited, ServerFault
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Response, Usage
from auditor.models.client import Client, RetryPolicy
from auditor.models.limits import Budget, Price
from auditor.models.reply_cache import Cache
from tests.asking import bare


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


class Scripted(Model):
    """Answers "<text>!"; ``faults`` maps a text to the errors that come first."""

    costs = "nothing"
    deterministic = True

    def __init__(self, faults: dict[str, list[CallError]] | None = None, *, max_batch: int = 1) -> None:
        self.name = self.fingerprint = "scripted"
        self.max_batch, self.faults = max_batch, defaultdict(list, faults or {})
        self.always: CallError | None = None
        self.asked: list[tuple[str, int]] = []

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        await asyncio.sleep(0)
        return [self.reply(str(request.prompt.text), request.replicate) for request in batch]

    def reply(self, text: str, replicate: int) -> Reply | CallError:
        self.asked.append((text, replicate))
        if self.always is not None:
            return self.always
        return self.faults[text].pop(0) if self.faults[text] else Reply(f"{text}!")


class Billed(Scripted):
    costs = "tokens"

    def __init__(self, bills: Iterator[Usage], price: Price, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bills, self.price = bills, price

    def max_tokens(self, format: str) -> int:
        return 10

    def reply(self, text: str, replicate: int) -> Reply | CallError:
        self.asked.append((text, replicate))
        return Reply(text, usage=next(self.bills))


def ask_for(*texts: object, replicate: int = 0) -> list[Request]:
    return [bare(str(t), replicate=replicate, variant=f"v{i}", form="plain") for i, t in enumerate(texts)]


def client_of(model: Any, clock: Clock | None = None, **options: Any) -> Client:
    clock = clock or Clock()
    return Client(
        model, **{"cache": None, "budget": Budget(clock=clock), "clock": clock, "sleep": clock.sleep} | options
    )


def run(client: Client, *rounds: Sequence[Request]) -> list[list[Response]]:
    async def go() -> list[list[Response]]:
        return [await client.ask(r) for r in rounds]

    return asyncio.run(asyncio.wait_for(go(), 20))  # a watchdog: nothing here takes long


@settings(max_examples=40, deadline=None)
@given(
    rounds=st.lists(st.lists(st.integers(0, 12), max_size=12), min_size=1, max_size=4),
    faults=st.dictionaries(
        st.integers(0, 12), st.lists(st.sampled_from([RateLimited, ServerFault, CallTimeout, BadResponse]), max_size=3)
    ),
    max_batch=st.integers(1, 5),
    concurrency=st.integers(1, 4),
    together=st.booleans(),
)
def test_whatever_the_faults_each_question_is_answered_once(
    rounds: list[list[int]], faults: dict[int, list[Any]], max_batch: int, concurrency: int, together: bool
) -> None:
    model = Scripted({str(k): [kind() for kind in v] for k, v in faults.items()}, max_batch=max_batch)
    journal: list[Response] = []
    client = client_of(model, concurrency=concurrency, on_response=journal.append)

    async def go() -> list[list[Response]]:
        async with asyncio.timeout(20):
            # One answer first: three faults in a row with nothing ever answered mean that there is no server.
            await client.ask(ask_for("first"))
            calls = [client.ask(ask_for(*r)) for r in rounds]
            return await asyncio.gather(*calls) if together else [await c for c in calls]

    for texts, responses in zip(rounds, asyncio.run(go()), strict=True):
        assert [r.output for r in responses] == [f"{t}!" for t in texts]
    assert client.counts.calls == client.budget.calls == len(model.asked)
    distinct = {t for r in rounds for t in r}
    assert len(journal) == len(distinct) + 1
    for text in distinct:
        assert model.asked.count((str(text), 0)) == 1 + len(faults.get(text, []))


def test_what_the_cache_answers_costs_nothing(tmp_path: Path) -> None:
    bills = iter([Usage(tokens_in=2, tokens_out=1)])
    cache, model = Cache(tmp_path / "c.sqlite"), Billed(bills, Price(input_usd=1e6, output_usd=0))
    ((fresh,), (again,)) = (run(client_of(model, cache=cache), ask_for("a"))[0] for _ in range(2))
    assert (fresh.cached, fresh.cost_usd, again.cached, again.cost_usd) == (False, 2.0, True, 0.0)
    assert (model.asked, again.usage) == ([("a", 0)], fresh.usage)


def test_a_reply_too_few_is_the_plugins_fault() -> None:
    class Short(Scripted):
        async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
            return (await super().generate(batch))[1:]

    with pytest.raises(PluginError, match="2 replies to 3"):
        run(client_of(Short(max_batch=3)), ask_for(*"abc"))


def test_while_the_server_asks_to_wait_nothing_is_sent() -> None:
    clock, sent = Clock(), []

    class Noted(Scripted):
        async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
            sent.append(clock.now)
            return await super().generate(batch)

    async def long_nap(seconds: float) -> None:
        for _ in range(300):  # time enough for the other worker to send, if it could
            await asyncio.sleep(0)
        clock.now += seconds

    model = Noted({"0": [RateLimited("later", retry_after_s=30.0)]})
    run(client_of(model, clock, sleep=long_nap, concurrency=2), ask_for(*range(20)))
    assert [t for t in sent if 0.0 < t < 30.0] == []
    assert sum(t == 0.0 for t in sent) <= 4
    assert sum(t >= 30.0 for t in sent) >= 17


@pytest.mark.parametrize("attempt", [1, 2, 5, 8, 40])
def test_the_wait_grows_to_a_cap_with_full_jitter(attempt: int) -> None:
    policy = RetryPolicy(attempts=99, base_s=0.5, cap_s=60)
    waits = [policy.delay(attempt, ServerFault(), 0.0, Random(seed)) for seed in range(40)]
    most = min(60, 0.5 * 2 ** (attempt - 1))
    assert 0 <= min(w for w in waits if w is not None) < 0.2 * most
    assert 0.8 * most < max(w for w in waits if w is not None) <= most
    assert policy.delay(attempt, ServerFault(), 300.1, Random(0)) is None


def test_a_server_that_dies_later_stops_the_run_and_single_refusals_do_not() -> None:
    model = Scripted()
    client = client_of(model, concurrency=2, retry=RetryPolicy(attempts=2))
    run(client, ask_for("a"))
    model.always = ServerFault("gone")
    (responses,) = run(client, ask_for(*range(1000)))
    assert isinstance(client.stopped, ServerFault)
    assert len(model.asked) < 200
    assert {r.error for r in responses} == {"server-fault"}
    patient = client_of(Scripted({str(i): [BadRequest("too long")] for i in range(900)}), concurrency=4)
    run(patient, ask_for("first", *range(1000)))
    assert patient.stopped is None


@settings(max_examples=40, deadline=None)
@given(
    limit=st.floats(0.0, 60.0),
    tokens=st.lists(st.tuples(st.integers(0, 33), st.integers(0, 10)), min_size=1, max_size=30),
    concurrency=st.integers(1, 8),
    max_batch=st.integers(1, 4),
)
def test_cost_is_never_exceeded(limit: float, tokens: list[tuple[int, int]], concurrency: int, max_batch: int) -> None:
    price, budget = Price(input_usd=0.1e6, output_usd=0.2e6), Budget(max_cost=limit)
    bills = (Usage(tokens_in=one, tokens_out=other) for one, other in tokens * 40)
    client = client_of(Billed(bills, price, max_batch=max_batch), budget=budget, concurrency=concurrency)
    run(client, ask_for(*range(30)))
    assert budget.spent_usd <= limit + 1e-9
    assert budget.held_usd == pytest.approx(0.0, abs=1e-9)
    if limit > 30 * (33 + 16 + 16 + 20) * 0.2:
        assert client.stopped is None
    if client.stopped is not None:  # then the next call might really not have fitted
        assert budget.spent_usd + price.usd(Usage(tokens_in=34, tokens_out=10)) > limit


def test_time_is_checked_before_calls_and_waits() -> None:
    clock = Clock()
    model = Scripted({"b": [RateLimited("later", retry_after_s=50.0)]})
    client = client_of(model, clock, budget=Budget(max_seconds=20, clock=clock), concurrency=1)
    (responses,) = run(client, ask_for(*"abc"))
    assert [r.error for r in responses] == [None, "budget", "budget"]
    assert clock.now == 0.0  # a wait that cannot help is not begun
