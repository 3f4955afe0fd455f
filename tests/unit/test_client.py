"""The client's layers, on a scripted model and a clock that only sleeps move."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    BudgetExceeded,
    CallError,
    CallTimeout,
    ConfigError,
    ContentFiltered,
    PluginError,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import Model, Reply
from auditor.core.types import Prompt, Request, Response, Usage
from auditor.models.attempts import RetryPolicy
from auditor.models.budget import Budget, Price
from auditor.models.client import Client
from auditor.models.limiter import FLOOR, Limiter
from auditor.models.reply_cache import Cache
from auditor.models.transport import retry_after


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class Scripted(Model):
    """Answers "<text>!"; ``faults`` maps a text to the errors that come first."""

    costs = "nothing"
    style = "text"
    deterministic = True
    cacheable = True

    def __init__(
        self,
        faults: dict[str, list[CallError]] | None = None,
        *,
        max_batch: int = 1,
        always: CallError | None = None,
        turns: int = 1,
        usage: Usage | None = None,
        name: str = "scripted",
    ) -> None:
        self.name, self.fingerprint, self.max_batch = name, name, max_batch
        self.faults = defaultdict(list, faults or {})
        self.always, self.turns, self.usage = always, turns, usage
        self.asked: list[tuple[str, int]] = []
        self.batches: list[int] = []
        self.in_flight = self.most_in_flight = 0
        self.closed = False
        self.hook: Callable[[], None] | None = None

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        self.batches.append(len(batch))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for _ in range(self.turns):
                await asyncio.sleep(0)
        finally:
            self.in_flight -= 1
        replies: list[Reply | CallError] = []
        for request in batch:
            text = str(request.prompt.text)
            self.asked.append((text, request.replicate))
            if self.always is not None:
                replies.append(self.always)
            elif self.faults[text]:
                replies.append(self.faults[text].pop(0))
            else:
                replies.append(Reply(f"{text}!", usage=self.usage))
        if self.hook is not None:
            self.hook()
        return replies

    async def aclose(self) -> None:
        self.closed = True


class Priced(Scripted):
    costs = "tokens"

    def __init__(self, *args: Any, price: Price | None, max_tokens: int = 10, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.price, self._limit = price, max_tokens

    def max_tokens(self, format: str) -> int:
        return self._limit


def ask_for(*texts: str, replicate: int = 0) -> list[Request]:
    return [
        Request(prompt=Prompt(format="plain", text=t), replicate=replicate, variant_id=f"v{i}")
        for i, t in enumerate(texts)
    ]


def client_of(model: Any, **options: Any) -> Client:
    clock = options.pop("fake_clock", None) or Clock()
    options.setdefault("cache", None)
    options.setdefault("budget", Budget(clock=clock))
    return Client(model, clock=clock, sleep=clock.sleep, **options)


def run(client: Client, *rounds: Sequence[Request]) -> list[list[Response]]:
    async def go() -> list[list[Response]]:
        async with asyncio.timeout(20):  # a watchdog: nothing here takes long
            return [await client.ask(r) for r in rounds]

    return asyncio.run(go())


# -- order, identity, deduplication ---------------------------------------------------------------------


def test_answers_come_in_the_order_of_the_requests() -> None:
    model = Scripted()
    (responses,) = run(client_of(model, concurrency=5), ask_for(*"gfedcba"))
    assert [r.output for r in responses] == [f"{c}!" for c in "gfedcba"]
    assert [r.variant_id for r in responses] == [f"v{i}" for i in range(7)]
    assert {r.model for r in responses} == {"scripted"}


def test_equal_prompts_are_asked_and_journaled_once_and_keep_their_variants() -> None:
    model, journal = Scripted(), []
    requests = ask_for("a", "b", "a", "a")
    other = Request(prompt=Prompt(format="other", text="a"), replicate=0, variant_id="w")
    (responses,) = run(client_of(model, on_response=journal.append), [*requests, other])
    assert sorted(model.asked) == [("a", 0), ("b", 0)]
    assert [r.variant_id for r in journal] == ["v0", "v1"]
    assert [r.variant_id for r in responses] == ["v0", "v1", "v2", "v3", "w"]
    assert responses[-1].format == "other"
    assert responses[-1].output == "a!"


def test_a_cancelled_round_leaves_its_questions_to_the_round_that_waits() -> None:
    model = Scripted(turns=50)

    async def go() -> list[Response]:
        client = client_of(model, concurrency=2)
        doomed = asyncio.create_task(client.ask(ask_for("a", "b")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting = asyncio.create_task(client.ask(ask_for("b", "c")))
        for _ in range(5):
            await asyncio.sleep(0)
        doomed.cancel()
        async with asyncio.timeout(20):
            with pytest.raises(asyncio.CancelledError):
                await doomed
            return await waiting

    assert [r.output for r in asyncio.run(go())] == ["b!", "c!"]


def test_at_most_concurrency_calls_in_flight() -> None:
    model = Scripted(turns=3)
    run(client_of(model, concurrency=4), ask_for(*map(str, range(40))))
    assert model.most_in_flight == 4


@settings(max_examples=40, deadline=None)
@given(
    rounds=st.lists(st.lists(st.integers(0, 12), max_size=12), min_size=1, max_size=4),
    faults=st.dictionaries(
        st.integers(0, 12), st.lists(st.sampled_from(["429", "500", "slow", "html"]), max_size=3), max_size=6
    ),
    max_batch=st.integers(1, 5),
    concurrency=st.integers(1, 4),
    together=st.booleans(),
)
def test_whatever_the_faults_each_question_is_answered_once(
    rounds: list[list[int]], faults: dict[int, list[str]], max_batch: int, concurrency: int, together: bool
) -> None:
    kinds = {"429": RateLimited, "500": ServerFault, "slow": CallTimeout, "html": BadResponse}
    model = Scripted({str(k): [kinds[c](c) for c in v] for k, v in faults.items()}, max_batch=max_batch)
    # One answer first: three faults in a row with nothing ever answered mean that there is no server.
    model.faults["first"] = []
    journal: list[Response] = []
    client = client_of(model, concurrency=concurrency, on_response=journal.append)

    async def go() -> list[list[Response]]:
        async with asyncio.timeout(20):
            await client.ask(ask_for("first"))
            calls = [client.ask(ask_for(*map(str, r))) for r in rounds]
            return await asyncio.gather(*calls) if together else [await c for c in calls]

    for texts, responses in zip(rounds, asyncio.run(go()), strict=True):
        assert [r.output for r in responses] == [f"{t}!" for t in texts]
    distinct = {t for r in rounds for t in r}
    assert len(journal) == len(distinct) + 1
    for text in distinct:
        assert model.asked.count((str(text), 0)) == 1 + len(faults.get(text, []))


# -- journal: answered, and answers on disk before use --------------------------------------------------


def test_a_journal_that_fails_ends_the_round_and_leaks_nothing() -> None:
    def full(response: Response) -> None:
        raise OSError(28, "No space left on device")

    model = Scripted(turns=2)
    client = client_of(model, on_response=full, concurrency=3)
    with pytest.raises(OSError, match="No space"):
        run(client, ask_for(*"abcdef"))
    assert client._in_flight == {}
    assert model.in_flight == 0


def test_killed_at_any_answer_the_next_run_asks_only_the_rest() -> None:
    texts = [str(i) for i in range(12)]
    for killed_at in range(1, 12):
        disk: list[Response] = []

        def journal(response: Response, disk: list[Response] = disk, last: int = killed_at) -> None:
            disk.append(response)
            if len(disk) == last:
                raise KeyboardInterrupt

        first = Scripted()
        with pytest.raises(KeyboardInterrupt):
            run(client_of(first, on_response=journal, concurrency=1), ask_for(*texts))
        second = Scripted()
        answered = {(r.prompt_sha256, r.replicate): r for r in disk}
        (responses,) = run(client_of(second, answered=answered), ask_for(*texts))
        assert [r.output for r in responses] == [f"{t}!" for t in texts]
        assert sorted(first.asked + second.asked) == sorted((t, 0) for t in texts)


# -- cache ----------------------------------------------------------------------------------------------


def test_the_cache_answers_and_costs_nothing(tmp_path: Any) -> None:
    price = Price(input_usd=1e6, output_usd=0)
    usage = Usage(tokens_in=2, tokens_out=1)
    with_cache = Cache(tmp_path / "c.sqlite")
    (fresh,) = run(client_of(Priced(price=price, usage=usage), cache=with_cache), ask_for("a"))
    assert (fresh[0].cached, fresh[0].cost_usd) == (False, 2.0)
    model, journal = Priced(price=price), []
    client = client_of(model, cache=with_cache, on_response=journal.append)
    (again,) = run(client, ask_for("a", "b"))
    assert model.asked == [("b", 0)]
    assert again[0].output == "a!"
    assert again[0].cached
    assert again[0].cost_usd == 0.0
    assert again[0].usage == usage
    assert again[0] in journal  # the run's own record is whole
    assert client.counts.cached == 1


def test_other_replicates_models_and_failures_are_not_cached(tmp_path: Any) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    faulty = Scripted({"a": [BadRequest("no")], "f": [ContentFiltered("no")]})
    run(client_of(faulty, cache=cache), ask_for("a", "f", "b"))
    model = Scripted()
    run(client_of(model, cache=cache), ask_for("a", "f", "b"), ask_for("b", replicate=1))
    assert sorted(model.asked) == [("a", 0), ("b", 1), ("f", 0)]
    other = Scripted(name="other")
    run(client_of(other, cache=cache), ask_for("b"))
    assert other.asked == [("b", 0)]


# -- retries --------------------------------------------------------------------------------------------


def test_transient_errors_are_retried_and_permanent_ones_are_not() -> None:
    model = Scripted({"a": [BadResponse("html")] * 4, "b": [BadRequest("too long")]})
    journal: list[Response] = []
    client = client_of(model, on_response=journal.append)
    (responses,) = run(client, ask_for("a", "b"))
    assert responses[0].output == "a!"
    assert (responses[1].error, responses[1].detail) == ("bad-request", "too long")
    assert model.asked.count(("a", 0)) == 5
    assert model.asked.count(("b", 0)) == 1
    assert client.counts.retries == 4
    assert len(journal) == 2


def test_a_reply_too_few_is_the_plugins_fault() -> None:
    class Short(Scripted):
        async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
            return (await super().generate(batch))[1:]

    budget = Budget(max_calls=10)
    with pytest.raises(PluginError, match="2 replies to 3"):
        run(client_of(Short(max_batch=3), budget=budget), ask_for(*"abc"))


def test_while_the_server_asks_to_wait_nothing_is_sent() -> None:
    clock = Clock()
    model = Scripted({"0": [RateLimited("later", retry_after_s=30.0)]})
    sent: list[float] = []
    plain = model.generate

    async def noted(batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        sent.append(clock.now)
        return await plain(batch)

    async def long_nap(seconds: float) -> None:
        for _ in range(300):  # time enough for the other worker to send, if it could
            await asyncio.sleep(0)
        clock.now += seconds

    model.generate = noted  # type: ignore[method-assign]
    clock.sleep = long_nap  # type: ignore[method-assign]
    run(client_of(model, fake_clock=clock, concurrency=2), ask_for(*map(str, range(20))))
    assert [t for t in sent if 0.0 < t < 30.0] == []
    assert sum(t == 0.0 for t in sent) <= 4
    assert sum(t >= 30.0 for t in sent) >= 17


@given(attempt=st.integers(1, 40), seed=st.integers(0, 99))
def test_the_wait_has_full_jitter_and_a_cap(attempt: int, seed: int) -> None:
    policy = RetryPolicy(attempts=99, base_s=0.5, cap_s=60)
    wait = policy.delay(attempt, ServerFault(), 0.0, Random(seed))
    assert wait is not None
    assert 0 <= wait <= min(60, 0.5 * 2 ** (attempt - 1))
    assert wait == policy.delay(attempt, ServerFault(), 0.0, Random(seed))
    assert policy.delay(attempt, ServerFault(), 300.1, Random(seed)) is None


# -- stopping -------------------------------------------------------------------------------------------


def test_a_wrong_key_stops_at_once_and_is_not_journaled() -> None:
    model, journal = Scripted(always=AuthFailed("HTTP 401")), []
    client = client_of(model, on_response=journal.append, concurrency=4)
    (responses,) = run(client, ask_for(*map(str, range(500))))
    assert len(model.asked) <= 4
    assert {r.error for r in responses} == {"auth-failed"}
    assert isinstance(client.stopped, AuthFailed)
    assert client.counts.answered == 0
    assert journal == []


@pytest.mark.parametrize("fault", [ServerFault, BadResponse])
def test_a_server_that_never_answers_stops_the_run_early(fault: type[CallError]) -> None:
    model, journal = Scripted(always=fault("connection refused")), []
    client = client_of(model, on_response=journal.append, concurrency=4)
    (responses,) = run(client, ask_for(*map(str, range(500))))
    assert len(model.asked) <= 12
    assert isinstance(client.stopped, fault)
    assert {(r.error, r.detail) for r in responses} == {(fault.code, "connection refused")}
    assert journal == []


def test_a_server_that_dies_later_stops_the_run_after_a_while() -> None:
    model, journal = Scripted(), []
    client = client_of(model, on_response=journal.append, concurrency=2, retry=RetryPolicy(attempts=2))

    async def go() -> list[Response]:
        async with asyncio.timeout(20):
            await client.ask(ask_for("a"))
            model.always = ServerFault("gone")
            return await client.ask(ask_for(*map(str, range(1000))))

    responses = asyncio.run(go())
    assert isinstance(client.stopped, ServerFault)
    assert len(model.asked) < 200
    assert {r.error for r in responses} == {"server-fault"}


def test_requests_that_are_all_refused_stop_the_run_unless_something_was_answered() -> None:
    model = Scripted(always=BadRequest("unknown parameter"))
    client = client_of(model, concurrency=4)
    run(client, ask_for(*map(str, range(1000))))
    assert isinstance(client.stopped, BadRequest)
    assert len(model.asked) < 100
    patient = Scripted({str(i): [BadRequest("too long")] for i in range(900)})
    client = client_of(patient, concurrency=4)
    run(client, ask_for("first", *map(str, range(1000))))
    assert client.stopped is None


# -- budget, as the client keeps it ---------------------------------------------------------------------


@pytest.mark.parametrize("max_batch", [1, 4])
def test_calls_are_a_hard_limit_with_retries_counted(max_batch: int) -> None:
    model, journal = Scripted({"0": [BadResponse("x")] * 2}, max_batch=max_batch), []
    client = client_of(model, budget=Budget(max_calls=7), on_response=journal.append)
    (responses,) = run(client, ask_for(*map(str, range(20))))
    assert len(model.asked) == 7
    assert isinstance(client.stopped, BudgetExceeded)
    answered = [r for r in responses if r.output is not None]
    assert len(journal) == len(answered)
    assert {r.error for r in responses if r.output is None} == {"budget"}
    assert "7 calls" in next(r.detail for r in responses if r.error)


@settings(max_examples=40, deadline=None)
@given(
    limit=st.floats(0.0, 60.0),
    tokens=st.lists(st.tuples(st.integers(0, 33), st.integers(0, 10)), min_size=1, max_size=30),
    concurrency=st.integers(1, 8),
    max_batch=st.integers(1, 4),
)
def test_cost_is_never_exceeded(limit: float, tokens: list[tuple[int, int]], concurrency: int, max_batch: int) -> None:
    price = Price(input_usd=0.1e6, output_usd=0.2e6)
    model = Priced(price=price, max_batch=max_batch)
    bills = iter(tokens * 40)
    plain = model.generate

    async def billed(batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        replies = await plain(batch)
        return [r._replace(usage=Usage(tokens_in=t[0], tokens_out=t[1])) for r, t in zip(replies, bills, strict=False)]

    model.generate = billed  # type: ignore[method-assign]
    budget = Budget(max_cost=limit)
    client = client_of(model, budget=budget, concurrency=concurrency)
    run(client, ask_for(*map(str, range(30))))
    assert budget.spent_usd <= limit + 1e-9
    assert budget.held_usd == pytest.approx(0.0, abs=1e-9)
    if limit > 30 * (33 + 16 + 16 + 20) * 0.2:
        assert client.stopped is None
    if client.stopped is not None:  # then the next call might really not have fitted
        assert budget.spent_usd + price.usd(Usage(tokens_in=34, tokens_out=10)) > limit


def test_calls_that_may_have_been_billed_are_paid_for_in_full() -> None:
    price = Price(input_usd=1e6, output_usd=1e6)
    for error, paid in ((CallTimeout(), True), (BadResponse(), True), (RateLimited(), False)):
        model = Priced({"a": [error]}, price=price, usage=Usage(tokens_in=1, tokens_out=1))
        budget = Budget(max_cost=1e9)
        run(client_of(model, budget=budget), ask_for("a"))
        assert (budget.spent_usd > 2.0) is paid


def test_time_is_checked_before_calls_and_waits() -> None:
    clock = Clock()
    model = Scripted({"b": [RateLimited("later", retry_after_s=50.0)]})
    client = client_of(model, fake_clock=clock, budget=Budget(max_seconds=20, clock=clock), concurrency=1)
    (responses,) = run(client, ask_for(*"abc"))
    assert [r.error for r in responses] == [None, "budget", "budget"]
    assert clock.now == 0.0  # a wait that cannot help is not begun


def test_an_unknown_price_refuses_to_start() -> None:
    with pytest.raises(ConfigError, match="--price IN,OUT"):
        client_of(Priced(price=None), budget=Budget(max_cost=1.0))
    client_of(Priced(price=None), budget=Budget(max_cost=1.0, price_in=0, price_out=0))
    client_of(Scripted(), budget=Budget(max_cost=1.0))  # runs on this machine


# -- limiter --------------------------------------------------------------------------------------------


def sizes(limiter: Limiter, clock: Clock, latencies: Sequence[float]) -> list[int]:
    """The size after as many answers as fit, each group of them with one of the latencies."""
    seen = []
    for latency in latencies:
        sent = clock.now
        clock.now += latency
        for _ in range(limiter.room):
            limiter.answered(sent_at=sent)
        seen.append(limiter.room)
    return seen


def test_the_limiter_starts_with_two_and_doubles_until_it_was_refused() -> None:
    clock = Clock()
    limiter = Limiter(16, clock=clock)
    assert sizes(limiter, clock, [1.0] * 4) == [4, 8, 16, 16]
    sent = clock.now
    clock.now += 1.0
    for _ in range(16):
        limiter.refused(sent_at=sent)  # all under way together
    assert limiter.size == 8
    assert sizes(limiter, clock, [1.0] * 9) == [8, 8, 8, 9, 10, 11, 14, 16, 16]


def test_the_limiter_grows_while_latency_holds_and_leaves_room_below_a_time_out() -> None:
    clock = Clock()
    limiter = Limiter(16, clock=clock)
    assert sizes(limiter, clock, [1.0, 2.0, 5.0, 5.0]) == [4, 8, 8, 8]
    clock.now += 20.0
    limiter.timed_out(sent_at=clock.now - 10.0)
    assert limiter.size == 4
    grown = sizes(limiter, clock, [3.0] * 20)
    assert grown == sorted(grown)
    assert grown[-1] == 16
    limiter.timed_out(sent_at=clock.now)  # HTTP 408 at once says nothing about how long an answer may take
    assert sizes(limiter, clock, [1.0] * 20)[-1] == 16
    one = Limiter(16, clock=clock)
    one.timed_out(sent_at=clock.now - 60.0)
    for _ in range(60):
        sizes(one, clock, [20.0 * one.room])  # calls share the server's work
        assert one.room <= 2  # three at once would take 60 seconds
    assert one.room == 2


@given(st.lists(st.integers(0, 3), max_size=200))
def test_the_limiter_stays_in_its_range(history: Iterable[int]) -> None:
    clock = Clock()
    limiter = Limiter(9, clock=clock)
    events: list[Callable[[float], None]] = [
        lambda at: limiter.answered(sent_at=at),
        lambda at: limiter.refused(sent_at=at),
        lambda at: limiter.refused(sent_at=at, timed=False),
        lambda at: limiter.timed_out(sent_at=at),
    ]
    for what in history:
        clock.now += 1.0
        limiter.sent()
        events[what](clock.now - 0.5)
        assert FLOOR <= limiter.size <= 9
        assert 1 <= limiter.room <= 9


class Metered(Scripted):
    """A server that lets in so many calls (or tokens) per window, says so in headers, and refuses the rest."""

    def __init__(
        self, clock: Clock, *, quota: int, window_s: float, cost: int = 0, told: bool = True, seed: int = 0
    ) -> None:
        super().__init__()
        self.clock, self.quota, self.window_s, self.cost, self.told = clock, quota, window_s, cost, told
        self.rng = Random(seed)
        self.on_headers: Callable[[dict[str, str]], None] | None = None
        self.used, self.ends, self.refused = 0, 0.0, 0

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        if self.clock.now >= self.ends:
            self.used, self.ends = 0, self.clock.now + self.window_s
        fits = self.used + (self.cost or 1) <= self.quota
        self.used += (self.cost or 1) * fits
        self.refused += not fits
        what = "tokens" if self.cost else "requests"
        headers = {
            f"x-ratelimit-remaining-{what}": str(self.quota - self.used),
            f"x-ratelimit-reset-{what}": f"{self.ends - self.clock.now:.3f}s",
        }
        for _ in range(self.rng.randint(1, 6)):  # answers come in another order than they were let in
            await asyncio.sleep(0)
        if self.told and self.on_headers is not None:
            self.on_headers(headers)
        (request,) = batch
        self.asked.append((str(request.prompt.text), 0))
        usage = Usage(tokens_in=self.cost, tokens_out=0) if self.cost else None
        return [Reply("yes", usage=usage) if fits else RateLimited("slow down")]


def metered(n: int = 60, concurrency: int = 8, **given: Any) -> tuple[Metered, Client, list[Response]]:
    clock = Clock()

    def sleep(seconds: float) -> Any:
        ends = clock.now + seconds  # of those that sleep together

        async def nap() -> None:
            clock.now = max(clock.now, ends)
            await asyncio.sleep(0)

        return nap()

    model = Metered(clock, **{"quota": 20, "window_s": 10.0} | given)
    client = Client(
        model, cache=None, budget=Budget(), concurrency=concurrency, clock=clock, sleep=sleep,
        retry=RetryPolicy(attempts=9),
    )  # fmt: skip
    return model, client, asyncio.run(client.ask(ask_for(*map(str, range(n)))))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("limit", [{}, {"quota": 600, "cost": 30}], ids=["requests", "tokens"])
def test_the_client_slows_down_before_it_is_refused(seed: int, limit: dict[str, int]) -> None:
    model, client, responses = metered(seed=seed, **limit)
    assert all(r.output for r in responses)
    assert model.refused == 0
    assert len(model.asked) == 60
    # Three windows hold 60 calls; what the third says is left at its end asks for no further wait.
    assert 20.0 <= model.clock.now <= 30.1
    assert client._limiter.size == 8


WRONG = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["", "²", "٣", "-1", "1e9", "NaN", "inf", "0x10", "9" * 400, "1,000", "12.5", "0", "7", "3m", "1h2m"]
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                f"x-ratelimit-{what}-{unit}"
                for what in ("remaining", "reset", "limit")
                for unit in ("requests", "tokens")
            ]
        ),
        WRONG,
    ),
    st.integers(0, 9),
)
def test_headers_that_make_no_sense_do_no_harm(told: dict[str, str], tokens: int) -> None:
    limiter = Limiter(8, clock=lambda: 0.0)
    limiter.answered(sent_at=0.0, tokens=tokens)
    limiter.headers(told)
    assert 1 <= limiter.room <= 8
    assert 0.0 <= limiter.wait_s() <= 120.0
    if limiter.wait_s():
        assert any(
            told.get(f"x-ratelimit-remaining-{unit}", "").strip().strip("0") == "" for unit in ("requests", "tokens")
        )


@settings(max_examples=150, deadline=None)
@given(st.one_of(WRONG, st.sampled_from(["Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 99 Oct 99999 07:28:00", "Mon"])))
def test_a_retry_after_that_makes_no_sense_is_none(value: str) -> None:
    wait = retry_after({"retry-after": value}, now=0.0)
    assert wait is None or 0.0 <= wait < 1e10
