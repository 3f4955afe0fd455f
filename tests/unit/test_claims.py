"""Several audits on one cache: what one asks for, the others wait for."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auditor.core.errors import BadRequest, CallError, ServerFault
from auditor.core.protocols import Model, Reply
from auditor.core.types import Prompt, Request, Response
from auditor.models import client as client_module
from auditor.models.attempts import BUDGET, RetryPolicy
from auditor.models.budget import Budget
from auditor.models.client import Client
from auditor.models.key_locks import Claims
from auditor.models.reply_cache import Cache

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "POLL_S", (0.001, 0.01))


class Server:
    """What all models of a test talk to: it counts, and fails some texts at first."""

    def __init__(self, faults: dict[str, int] | None = None, refused: Sequence[str] = ()) -> None:
        self.asked: Counter[tuple[str, int]] = Counter()
        self.answered: Counter[tuple[str, int]] = Counter()
        self.faults, self.refused = faults or {}, refused

    def reply(self, request: Request) -> Reply | CallError:
        text = request.prompt.text or ""
        key = (text, request.replicate)
        self.asked[key] += 1
        if text in self.refused:
            return BadRequest("no")
        if self.asked[key] <= self.faults.get(text, 0):
            return ServerFault("broken")
        self.answered[key] += 1
        return Reply(f"{text}!")


class Remote(Model):
    """One process's way to the server, with waits of its own."""

    costs = "nothing"
    style, deterministic, cacheable, name, fingerprint = "text", True, True, "remote", "remote"

    def __init__(self, server: Server, *, max_batch: int = 1, seed: int = 0) -> None:
        self.server, self.max_batch, self.random = server, max_batch, Random(seed)
        self.gate = asyncio.Event()
        self.gate.set()

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        await self.gate.wait()
        await asyncio.sleep(self.random.random() / 500)
        return [self.server.reply(request) for request in batch]

    async def aclose(self) -> None:
        pass


def ask_for(*texts: str, replicates: int = 1) -> list[Request]:
    return [
        Request(prompt=Prompt(format="plain", text=t), replicate=r, variant_id=f"{t}{r}")
        for t in texts
        for r in range(replicates)
    ]


def client_of(model: Any, path: Path, budget: Budget | None = None, **options: Any) -> Client:
    retry = RetryPolicy(base_s=0.001, attempts=4)
    return Client(model, cache=Cache(path), budget=budget or Budget(), retry=retry, **options)


def outputs(responses: Sequence[Response]) -> list[str | None]:
    return [r.output for r in responses]


texts = st.lists(st.sampled_from("abcdefghij"), max_size=12)
parties = st.lists(st.tuples(texts, st.integers(1, 3), st.integers(1, 4), st.integers(1, 3)), min_size=2, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parties, st.dictionaries(st.sampled_from("abcdefghij"), st.integers(0, 2)), st.integers(0, 99))
def test_each_prompt_is_answered_once_whoever_asks(
    parties: list[tuple[list[str], int, int, int]], faults: dict[str, int], seed: int
) -> None:
    """For any texts, repeats, batches, calls in flight and passing faults."""
    server = Server(faults)

    async def go(folder: str) -> None:
        clients = [
            client_of(Remote(server, max_batch=size, seed=seed + n), Path(folder) / "c", concurrency=concurrency)
            for n, (_, _, size, concurrency) in enumerate(parties)
        ]
        wanted = [ask_for(*some, replicates=times) for some, times, _, _ in parties]
        got = await asyncio.gather(*(c.ask(w) for c, w in zip(clients, wanted, strict=True)))
        for requests, responses in zip(wanted, got, strict=True):
            assert outputs(responses) == [f"{r.prompt.text}!" for r in requests]
            assert [r.variant_id for r in responses] == [r.variant_id for r in requests]
        everything = {(r.prompt.text, r.replicate) for w in wanted for r in w}
        assert server.answered == Counter(dict.fromkeys(everything, 1))
        assert sum(c.counts.calls for c in clients) == sum(server.asked.values())
        assert sum(c.budget.calls for c in clients) == sum(server.asked.values())

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(go(folder))


def test_an_answer_that_was_waited_for_is_no_call(tmp_path: Path) -> None:
    server = Server()
    kept: list[Response] = []

    async def go() -> None:
        first, second = Remote(server), Remote(server)
        first.gate.clear()
        one = client_of(first, tmp_path / "c")
        other = client_of(second, tmp_path / "c", Budget(max_calls=0), on_response=kept.append)
        asking = asyncio.create_task(one.ask(ask_for("a", "b")))
        await asyncio.sleep(0.01)
        waiting = asyncio.create_task(other.ask(ask_for("b", "a")))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        first.gate.set()
        assert outputs(await waiting) == ["b!", "a!"]
        await asking
        assert other.stopped is None
        assert (other.counts.calls, other.counts.cached, other.budget.calls) == (0, 2, 0)

    asyncio.run(go())
    assert {r.output for r in kept} == {"a!", "b!"}
    assert all(r.cached and r.cost_usd == 0.0 for r in kept)


@pytest.mark.parametrize("end", ["refused", "limit", "cancelled"])
def test_what_one_gives_up_another_asks(tmp_path: Path, end: str) -> None:
    server = Server(refused=["a"] if end == "refused" else [])

    async def go() -> list[Response]:
        first = Remote(server)
        first.gate.clear()
        one = client_of(first, tmp_path / "c", Budget(max_calls=1 if end == "limit" else None), concurrency=1)
        other = client_of(Remote(server), tmp_path / "c")
        asking = asyncio.create_task(one.ask(ask_for("z", "a") if end == "limit" else ask_for("a")))
        await asyncio.sleep(0.01)
        waiting = asyncio.create_task(other.ask(ask_for("a")))
        await asyncio.sleep(0.03)
        assert not waiting.done()
        if end == "cancelled":
            asking.cancel()
        first.gate.set()
        await asyncio.gather(asking, return_exceptions=True)
        return await asyncio.wait_for(waiting, 20)

    (response,) = asyncio.run(go())
    assert response.error == (BadRequest.code if end == "refused" else None)
    assert server.asked["a", 0] == (2 if end == "refused" else 1)


def test_waiting_ends_with_the_time_of_the_run(tmp_path: Path) -> None:
    held = Cache(tmp_path / "c")
    client = client_of(Remote(Server()), tmp_path / "c", Budget(max_seconds=0.2))
    held.claim([client._shelf.name((r.prompt.sha256, 0)) for r in ask_for("a")])
    (response,) = asyncio.run(client.ask(ask_for("a")))
    assert response.error == BUDGET
    assert client.counts.calls == 0
    held.close()


def test_a_process_that_hangs_is_not_waited_for_without_end(tmp_path: Path) -> None:
    now = [0.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds
        await asyncio.sleep(0)

    server, said = Server(), list[str]()
    held = Cache(tmp_path / "c")
    client = client_of(Remote(server), tmp_path / "c", clock=lambda: now[0], sleep=sleep)
    assert client._shelf.cache is not None
    client._shelf.cache.tell(said.append)
    held.claim([client._shelf.name((r.prompt.sha256, 0)) for r in ask_for("a", "b")])
    assert outputs(asyncio.run(client.ask(ask_for("a", "b", "c")))) == ["a!", "b!", "c!"]
    assert now[0] >= client_module.LONGEST_WAIT_S
    assert said == ["waiting for 2 answers that another audit asks for"]
    held.close()


HOLD = """
import sys, time
from pathlib import Path
from auditor.models.key_locks import Claims
claims = Claims(Path(sys.argv[1]))
print(len(claims.take(["aa", "bb"])), flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="claims hold within one process there")
def test_the_end_of_a_process_ends_its_claims(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "c")], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "2\n"
        claims = Claims(tmp_path / "c")
        assert claims.take(["aa", "cc"]) == {"cc"}
        # Descriptors that come and go in this process let go of nothing.
        Claims(tmp_path / "c").close()
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        assert claims.take(["aa"]) == {"aa"}
        claims.close()
        claims.close()


def test_descriptors_that_are_closed_keep_other_claims(tmp_path: Path) -> None:
    ask = "import sys; from pathlib import Path; from auditor.models.key_locks import Claims; "
    ask += "print(sorted(Claims(Path(sys.argv[1])).take(['aa', 'bb'])))"
    ours, theirs = Claims(tmp_path / "c"), Claims(tmp_path / "c")
    ours.take(["aa"])
    theirs.take(["bb"])
    theirs.close()
    done = subprocess.run([sys.executable, "-c", ask, str(tmp_path / "c")], capture_output=True, text=True, check=True)
    assert done.stdout == ("['bb']\n" if sys.platform != "win32" else "['aa', 'bb']\n")
    ours.close()


@pytest.mark.skipif(sys.platform == "win32", reason="claims hold within one process there")
def test_locks_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from auditor.models import key_locks as claims

    monkeypatch.setattr(claims, "MOST", 2)
    ours = Claims(tmp_path / "c")
    keys = ["aa", "bb", "cc", "dd"]
    assert ours.take(keys) == set(keys)
    assert not Claims(tmp_path / "c").take(keys)  # within one process all hold
    ask = "import sys; from pathlib import Path; from auditor.models.key_locks import Claims; "
    ask += "print(len(Claims(Path(sys.argv[1])).take(['aa', 'bb', 'cc', 'dd'])))"
    command = [sys.executable, "-c", ask, str(tmp_path / "c")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "2\n"
    ours.release(keys)
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "4\n"
    ours.close()


def test_without_locks_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "c-claims").mkdir()  # cannot be opened for writing
    assert Claims(tmp_path / "c").take(["aa"]) == {"aa"}


def test_a_rare_answer_is_on_disk_while_the_next_one_takes_long(tmp_path: Path) -> None:
    class Slow(Remote):
        async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
            if batch[0].prompt.text == "late":
                await self.gate.wait()
            return [self.server.reply(request) for request in batch]

    async def go() -> None:
        model = Slow(Server())
        model.gate.clear()
        client = client_of(model, tmp_path / "c", concurrency=1)
        asking = asyncio.create_task(client.ask(ask_for("soon", "late")))
        key = client._shelf.name((ask_for("soon")[0].prompt.sha256, 0))
        other = Cache(tmp_path / "c")
        async with asyncio.timeout(20):
            while other.get(key) is None:
                await asyncio.sleep(0.01)
            assert other.claim([key]) == {key}
        assert not asking.done()
        model.gate.set()
        await asking
        other.close()

    asyncio.run(go())


def test_an_answer_that_comes_between_the_look_and_the_claim_is_taken(tmp_path: Path) -> None:
    server = Server()
    client = client_of(Remote(server), tmp_path / "c")
    cache = client._shelf.cache
    assert cache is not None
    claim, other = cache.claim, Cache(tmp_path / "c")

    def late(keys: Any) -> set[str]:
        keys = list(keys)
        for key in keys:
            other.put(key, Reply("theirs"))
        other.flush()
        return claim(keys)

    cache.claim = late  # type: ignore[method-assign]
    assert outputs(asyncio.run(client.ask(ask_for("a", "b")))) == ["theirs", "theirs"]
    assert not server.asked
    assert client.counts.cached == 2
    assert len(Claims(tmp_path / "c").take(map(client._shelf.name, ((r.prompt.sha256, 0) for r in ask_for("a"))))) == 1


def test_a_cache_may_be_collected_while_another_claims(tmp_path: Path) -> None:
    ours, forgotten = Cache(tmp_path / "c"), [Cache(tmp_path / "c")]
    assert forgotten[0].claim(["aa"]) == {"aa"}
    taken: set[str] = set()

    def keys() -> Iterator[str]:
        yield "bb"
        forgotten.clear()
        yield "aa"

    thread = Thread(target=lambda: taken.update(ours.claim(keys())), daemon=True)
    thread.start()
    thread.join(20)
    assert taken == {"aa", "bb"}
