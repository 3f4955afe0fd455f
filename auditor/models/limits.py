"""Limits: on calls, cost and time, shared by all models of a run; and on the calls in flight to one model.

The latter are learnt from answers, time-outs, refusals and headers. Here are list prices, too, and token counts without
a tokenizer. Prices age: every entry of ``auditor/embedded/prices.yaml`` has a date, and ``--price`` overrides it.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from io import FileIO
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from auditor.core import reading
from auditor.core.errors import BudgetExceeded, ConfigError, UserError
from auditor.core.protocols import Model
from auditor.core.protocols import Price as Price
from auditor.core.shown import plural
from auditor.core.talk import calls_of
from auditor.core.types import Prompt

BOOK = "spent.json"  # in a run folder
CHARS_PER_TOKEN = 3.5  # English prose has about 4; lower, so that plans err on the dear side
OVERHEAD_PER_MESSAGE = 16  # tokens that chat templates add around one message, generously
DIGITS = 9  # of US dollars, where they are written down
_WIDTH = 160  # bytes of a book: each state overwrites the one before in one write, which no kill can cut in two

# Of calls in flight: what headers say, how their number begins and grows, and how refusals lower it.
MAX_CLOSED_S = 120.0  # a reset further away is a daily limit: let the 429 that follows end the run
UNTOLD_S = 1.0  # how long a statement about what is left holds, where the server does not say
_COUNT = re.compile(r"[0-9]{1,12}")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}

START = 2  # calls in flight at first
HOLDS, BRIEF_S = 3.0, 0.05  # a latency holds up to so many times the lowest, and up to so many seconds more
EVEN = 1.2  # a latency of so many times the lowest tells that calls do not share the server's work
SLOWER = 1.02  # by how much the lowest latency is raised where it does not hold: the server may be slower for good
ROOM = 0.7  # of the time-out: the most that a mean latency may take after the next step

GROUP = 16  # calls after which refusals are judged
FEW, FEW_S = 4, 2.0  # or so many calls and seconds, without a refusal
CROWD = 8  # refusals after which they are judged at once, where three in four are refused
STRAY = 0.05  # share of refusals that is let be
BELOW = 0.9  # of the calls that were accepted: the next size
STEEPEST = 8.0  # the most that one group may divide the size by
STEPS = 9  # groups without trouble that make growth steeper, from 2 % to 50 %
FLOOR = 1 / 40  # of one call at a time
MOSTLY = 0.6  # share of refusals from which on a smaller group says nothing about chance: it was far too large
MORE_THAN_CHANCE = 0.3  # by how much the share of refusals must exceed one that a smaller size did not change


class Spent(NamedTuple):
    """Use of a run: ``usd`` includes ``reserved_usd``, the most that calls without a stated cost can have cost."""

    calls: int = 0
    usd: float = 0.0
    reserved_usd: float = 0.0


class _Row(msgspec.Struct):
    """The one line of a book, always as long; held is the most that calls in flight can cost."""

    calls: Annotated[int, msgspec.Meta(ge=0)] = 0
    spent_usd: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    reserved_usd: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    held_usd: Annotated[float, msgspec.Meta(ge=0)] = 0.0


def spent_in(path: Path) -> Spent:
    """Return the use that a book names, with calls that were in flight at a kill."""
    try:
        row = msgspec.json.decode(path.read_bytes() or b"{}", type=_Row)
        spent = Spent(row.calls, row.spent_usd + row.held_usd, row.reserved_usd + row.held_usd)
        if not (math.isfinite(spent.usd) and spent.reserved_usd <= spent.usd + 1e-6):
            raise ValueError
    except FileNotFoundError:
        return Spent()
    except ValueError as error:
        raise UserError(
            f"{path} does not say what this run used so far, so its limits cannot be kept. Put it back as it "
            "was, or start a new run"
        ) from error
    return spent


class Budget:
    """Limits that are checked before a call and cannot be overrun; costs are in US dollars.

    Every attempt that reaches an adapter counts as one call. The most a priced call can cost is set aside before it and
    corrected afterwards. With `keep` this is on disk before a call leaves, so that the limits hold however often a run
    is cut off. Time counts from the first reservation of this process; calls in flight at its end are still awaited.

    >>> budget = Budget(max_calls=1)
    >>> asyncio.run(budget.reserve([0.0, 0.0]))
    1
    """

    def __init__(
        self,
        *,
        max_calls: int | None = None,
        max_cost: float | None = None,
        max_seconds: float | None = None,
        price_in: float | None = None,
        price_out: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_calls, self.max_cost, self.max_seconds = max_calls, max_cost, max_seconds
        self.price: Price | None = None
        if price_in is not None and price_out is not None:
            self.price = Price(input_usd=float(price_in), output_usd=float(price_out))
        self.calls = 0
        self.spent_usd = 0.0
        self.reserved_usd = 0.0  # of these: the most that calls without a stated cost can have cost
        self._in_flight = 0
        self.held_usd = 0.0
        self._stopped = ""
        self._clock = clock
        self._started_at: float | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._book: FileIO | None = None
        self._whole: Budget | None = None  # whose limits hold

    def part(self) -> Budget:
        """Return a ledger for one of several runs that share these limits: its calls count in both."""
        own = Budget()
        own.price, own._whole = self.price, self
        return own

    @property
    def spent(self) -> Spent:
        """Return the use so far."""
        return Spent(self.calls, round(self.spent_usd, DIGITS), round(self.reserved_usd, DIGITS))

    def as_record(self, models: Iterable[Model]) -> dict[str, object]:
        """Return the use for run records; no cost where the price of one of ``models`` is unknown."""
        calls, usd, reserved = self.spent
        known = all(map(self.priced, models))
        return {"calls": calls, "cost_usd": usd if known else None, "reserved_usd": reserved}

    def start(self) -> None:
        """Start the clock, once."""
        if self._started_at is None:
            self._started_at = self._clock()

    def stop(self, reason: str) -> None:
        """Grant no further call, for ``reason``; safe from other threads."""
        (self._whole or self)._stopped = reason

    def charge(self, *, calls: int = 0, usd: float = 0.0) -> None:
        """Count the use of an earlier part of the run; for resuming."""
        self.calls += calls
        self.spent_usd += usd

    def keep(self, path: Path) -> None:
        """Note in ``path`` what is used before it is used, and count what is noted there."""
        before = spent_in(path)
        try:
            self._book = FileIO(path, "r+" if path.exists() else "w+")
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror or error}.") from error
        self.calls = max(self.calls, before.calls)
        self.spent_usd = max(self.spent_usd, before.usd)
        self.reserved_usd = max(self.reserved_usd, before.reserved_usd)
        self._write()

    def close(self) -> None:
        """Close what `keep` opened."""
        if self._book is not None:
            self._write()
            self._book.close()
            self._book = None

    def _write(self) -> None:
        """Replace the line of the book; it outlasts the end of the process."""
        if self._book is None:
            return
        usd = (round(value, DIGITS) for value in (self.spent_usd, self.reserved_usd, self.held_usd))
        try:
            self._book.seek(0)
            self._book.write(msgspec.json.encode(_Row(self.calls, *usd)).ljust(_WIDTH - 1) + b"\n")
        except OSError as error:
            raise UserError(f"cannot write {self._book.name}: {error.strerror or error}.") from error

    def price_of(self, model: Model) -> Price | None:
        """Return the price of the user, else of the adapter; None where there is neither, or tokens cost nothing."""
        return (self.price or model.price) if model.costs == "tokens" else None

    def priced(self, model: Model) -> bool:
        """Return whether the cost of asking ``model`` is known."""
        return model.costs != "tokens" or self.price_of(model) is not None

    def require_price(self, model: Model) -> None:
        """Raise where ``max_cost`` is set and the price of ``model`` is unknown."""
        if self.max_cost is not None and not self.priced(model):
            raise ConfigError(
                f"--max-cost is set, but the price of {model.name} is not known. Give it in USD per million "
                "tokens: --price IN,OUT (0,0 for a server of your own), or limit with --max-calls"
            )

    def remaining_s(self) -> float | None:
        """Return the seconds left, or None without a limit on time."""
        if self._whole is not None:
            return self._whole.remaining_s()
        if self.max_seconds is None:
            return None
        self.start()
        assert self._started_at is not None
        return self.max_seconds - (self._clock() - self._started_at)

    def out_of_time(self) -> BudgetExceeded:
        """Return the error for the limit on time."""
        if self._whole is not None:
            return self._whole.out_of_time()
        message = f"the limit of {self.max_seconds:g} seconds (--max-seconds) is reached"
        return BudgetExceeded(message, limit="max_seconds")

    async def reserve(self, bounds_usd: Sequence[float], *, left_before: Sequence[bool] = ()) -> int:
        """Set aside the longest prefix of calls that the limits allow, each at most so dear; return how many.

        ``left_before`` marks calls that were counted when they left, in a provider's batch. Where only calls in flight
        leave no room for the first one, it waits for them. Raises `BudgetExceeded` where the first one does not fit.
        """
        if self._whole is not None:
            granted = await self._whole.reserve(bounds_usd, left_before=left_before)
            self._grant(bounds_usd[:granted], left_before)
            self._write()
            return granted
        while True:
            if self._stopped:
                raise BudgetExceeded(self._stopped)
            left = self.remaining_s()
            if left is not None and left <= 0:
                raise self.out_of_time()
            granted = self._grant(bounds_usd, left_before)
            if granted:
                self._write()
                return granted
            if self._out_of_calls:
                raise BudgetExceeded(
                    f"the limit of {plural(self.max_calls or 0, 'call')} (--max-calls) is reached", limit="max_calls"
                )
            if not self._in_flight or self._over(bounds_usd[0], held=0.0):
                raise BudgetExceeded(
                    f"the limit of {self.max_cost} USD (--max-cost) is reached: {self.spent_usd:.4f} USD are "
                    f"spent and the next call may cost up to {bounds_usd[0]:.4f} USD",
                    limit="max_cost",
                )
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def settle(self, bound_usd: float, cost_usd: float | None) -> None:
        """Replace what was set aside for one call by its cost; with None it stays reserved."""
        if self._whole is not None:
            self._whole.settle(bound_usd, cost_usd)
        self._in_flight -= 1
        self.held_usd = self.held_usd - bound_usd if self._in_flight else 0.0
        self.spent_usd += bound_usd if cost_usd is None else cost_usd
        self.reserved_usd += bound_usd if cost_usd is None else 0.0
        if bound_usd or cost_usd:
            self._write()
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _grant(self, bounds_usd: Sequence[float], left_before: Sequence[bool]) -> int:
        granted = 0
        for bound, counted in zip_longest(bounds_usd, left_before[: len(bounds_usd)], fillvalue=0.0):
            if counted:
                self.spent_usd = max(0.0, self.spent_usd - bound)
                self.reserved_usd = max(0.0, self.reserved_usd - bound)
            elif self._out_of_calls or self._over(bound, held=self.held_usd):
                break
            else:
                self.calls += 1
            self._in_flight += 1
            self.held_usd += bound
            granted += 1
        return granted

    @property
    def open_calls(self) -> int | None:
        """Return how many calls may still be answered, with those in flight; None without a limit."""
        whole = self._whole or self
        return None if whole.max_calls is None else max(0, whole.max_calls - whole.calls) + whole._in_flight

    @property
    def _out_of_calls(self) -> bool:
        return self.max_calls is not None and self.calls >= self.max_calls

    def _over(self, bound: float, *, held: float) -> bool:
        # A free call fits into any budget, also one that is used up to the last cent.
        return self.max_cost is not None and bound > 0 and self.spent_usd + held + bound > self.max_cost


@lru_cache(maxsize=1)
def table() -> dict[tuple[str, str], Price]:
    """Return ``(host, model name)`` → price, from the embedded file."""
    file: Any = reading.load_yaml(reading.shipped("embedded", "prices.yaml"))
    return {
        (one["host"], one["model"]): Price(
            input_usd=one["input_usd"], output_usd=one["output_usd"], as_of=str(one["as_of"]), source=file["note"]
        )
        for one in file["prices"]
    }


def lookup(name: str, host: str = "api.openai.com") -> Price | None:
    """Return the list price of exactly this name at ``host``: a dated snapshot, or another server, may cost more."""
    return table().get((host, name))


def estimated_tokens(prompt: Prompt) -> int:
    """Estimate the tokens of ``prompt`` from its characters."""
    return math.ceil(sum(map(len, _texts(prompt))) / CHARS_PER_TOKEN)


def most_tokens(prompt: Prompt) -> int:
    """Return an upper bound of the tokens of ``prompt``: one for each byte, and those of a chat template."""
    texts = _texts(prompt)
    return sum(len(t.encode("utf-8", "surrogatepass")) + OVERHEAD_PER_MESSAGE for t in texts) + OVERHEAD_PER_MESSAGE


def _texts(prompt: Prompt) -> list[str]:
    if prompt.messages is None:
        return [prompt.text or ""]
    calls = [c.name + c.arguments for c in calls_of(prompt.messages)]
    return [*(m.content for m in prompt.messages), *calls, *(json.dumps(t.plain()) for t in prompt.tools)]


# -- calls in flight --------------------------------------------------------------------------------------------------


def duration_s(text: str) -> float | None:
    """Return the seconds of a duration as servers write it; None for anything else.

    >>> [duration_s(t) for t in ("6m0s", "120ms", "20", "soon", "")]
    [360.0, 0.12, 20.0, None, None]
    """
    text = text.strip().lower()
    if not text or _PART.sub("", text):
        return None
    return sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(text))


class Limiter:
    """How many calls may be in flight: one number that follows the server, between 1/40 and ``concurrency``.

    It starts at 2. Until the first trouble it doubles, and quadruples where more calls took no longer. Afterwards it
    grows slowly, while latency holds and leaves room below a time-out that was seen. A time-out halves it. So does a
    refusal that names a time, or that comes before the first answer. Calls that were under way together halve it once.

    Refusals that name no time are judged in groups of calls: the size becomes the part that was accepted, and calls are
    spread evenly over time. A size below 1 is a pace, which meets a limit on calls a second. A server that refuses at
    random accepts the same share of fewer calls; after two smaller groups that were refused no less, it is ignored.

    Where the server says how much is left (`headers`), no more calls are in flight than that.
    """

    def __init__(self, concurrency: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.concurrency = concurrency
        self.size = float(min(START, concurrency))
        self.in_flight = 0
        self._clock = clock
        self._closed_until = self._next_at = float("-inf")
        self._queue: deque[asyncio.Future[None]] = deque()

        self._paced = False  # calls are spread evenly, because refusals without a time were seen
        self._troubled = False  # trouble began near this size, so it grows slowly
        self._halved_at = float("-inf")
        self._clean = 0  # groups in a row without trouble
        self._latency_s: float | None = None  # mean of the last answers; None until the first
        self._best_s = float("inf")  # the lowest mean latency of a group
        self._timeout_s = float("inf")  # after how many seconds a call was given up
        self._refused_before: float | None = None  # share that was refused when the size was last lowered
        self._lowered_from = self.size  # before it was lowered, several times where that did not help
        self._no_better = 0  # times in a row that a smaller size was refused no less
        self._chance = 0.0  # share that is refused at any size
        self._since = self._last_sent = clock()  # the beginning of a group of calls that are sent at one size
        self._sent = self._answered = self._refused = 0
        self._seconds = 0.0  # of its answers together

        self._left, self._left_until = concurrency, float("-inf")
        self._tokens_per_call = 0.0

    @property
    def room(self) -> int:
        """Return how many calls may be in flight now."""
        left = self._left if self._clock() < self._left_until else self.concurrency
        return max(1, min(self._calls(self.size), left))

    def _calls(self, size: float) -> int:
        """Return how many calls may be in flight at a size."""
        return math.ceil(size) if self._paced else max(1, int(size))

    def wait_s(self) -> float:
        """Return the seconds until calls may be sent again; 0 if now."""
        return max(0.0, self._closed_until - self._clock(), self._next_at - self._clock())

    def close_for(self, seconds: float) -> None:
        """Send nothing for ``seconds``."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    def sent(self, calls: int = 1) -> None:
        """Count calls that are sent now."""
        now = self._clock()
        if not self._sent:
            self._since = now
        self._sent, self._last_sent = self._sent + calls, now
        if self._paced and self._latency_s is not None:
            self._next_at = max(self._next_at, now) + calls * self._latency_s / self.size

    def answered(self, *, sent_at: float, tokens: int = 0) -> None:
        """Count an answer to a call sent at ``sent_at``, and its tokens in and out."""
        if tokens:
            last = self._tokens_per_call or tokens
            self._tokens_per_call = last + 0.1 * (tokens - last)
        seconds = max(self._clock() - sent_at, 1e-6)
        self._latency_s = seconds if self._latency_s is None else self._latency_s + 0.1 * (seconds - self._latency_s)
        if sent_at >= self._since:
            self._answered, self._seconds = self._answered + 1, self._seconds + seconds
            self._judge()

    def refused(self, *, sent_at: float, timed: bool = True) -> None:
        """Count a rate limit of a call sent at ``sent_at``; ``timed``: the server said for how long."""
        if timed or self._latency_s is None:
            self._halve(sent_at)
        elif sent_at >= self._since:
            self._refused += 1
            self._judge()

    def timed_out(self, *, sent_at: float) -> None:
        """Count a call sent at ``sent_at`` that got no whole answer in time."""
        if (seconds := self._clock() - sent_at) > self._best_s or self._latency_s is None:
            self._timeout_s = seconds
        self._halve(sent_at)

    def _halve(self, sent_at: float) -> None:
        if sent_at >= self._halved_at:  # else it was under way when the size was halved
            self._halved_at = self._clock()
            self._troubled, self._clean = True, 0
            self._resize(self.size / 2, least=min(1.0, self.size))

    def _judge(self) -> None:
        """Change the size once enough calls that were sent at this size have ended."""
        done = self._answered + self._refused
        crowd = self._refused >= CROWD and 4 * self._refused >= 3 * done and not self._chance
        late = not self._refused and done >= FEW and self._clock() - self._since >= FEW_S
        judged_together = GROUP if self._paced or self._chance or self._refused else int(self.size)
        if not (crowd or late or done >= judged_together):
            return
        share = self._refused / done
        if share <= max(STRAY, self._chance and self._chance + MORE_THAN_CHANCE):
            self._grow(share)
        else:
            self._lower(share)

    def _grow(self, share: float) -> None:
        """Grow, where the mean latency of the group holds and would with more calls that share the server's work."""
        self._clean = min(self._clean + 1, STEPS)
        if self._clean > 1 or self._answered >= GROUP // 2:  # a few answers say little about chance
            self._refused_before, self._no_better = None, 0
        self._chance += (share - self._chance) / 4
        self._chance *= self._chance > STRAY
        mean_s = self._seconds / max(1, self._answered)
        self._best_s = min(self._best_s, mean_s)
        early = 4.0 if self._clean > 1 and mean_s <= EVEN * self._best_s + BRIEF_S else 2.0
        larger = self.size * (1.0 + min(0.5, 0.02 * 1.5 ** (self._clean - 1)) if self._troubled else early)
        then_s = mean_s * self._calls(larger) / self._calls(self.size)
        holds = mean_s <= HOLDS * self._best_s + BRIEF_S and then_s <= ROOM * self._timeout_s
        if not holds:
            self._best_s *= SLOWER
        self._resize(larger if holds else self.size)
        self._paced = self._paced and self.size < self.concurrency

    def _lower(self, share: float) -> None:
        """Let fewer calls in, unless fewer were refused as much before."""
        assert self._latency_s is not None
        before, self._refused_before = self._refused_before, share
        self._no_better = self._no_better + 1 if before is not None and before / 2 <= share < MOSTLY else 0
        if not self._no_better:
            self._lowered_from = self.size
        if self._no_better == 2:
            self._chance, self._refused_before, self._no_better = max(before or 0.0, share), None, 0
            self._paced = self._troubled = False
            self._next_at = float("-inf")
            self._resize(self._lowered_from)
            return
        # Workers that wait before they ask again leave room unused.
        used = self._sent * self._latency_s / max(self._last_sent - self._since, 1e-3)
        size = min(self.size, used)
        accepted = BELOW * size * (1.0 - share)
        self._paced, self._clean = True, 0
        self._troubled = accepted > 0.0 and not self._chance
        self._resize(max(accepted, size / STEEPEST))
        self._next_at = self._clock() + self._latency_s / self.size

    def _resize(self, size: float, *, least: float = FLOOR) -> None:
        """Begin a group of calls at another size."""
        self.size = max(least, min(self.concurrency, size))
        self._since = self._last_sent = self._clock()
        self._sent = self._answered = self._refused = 0
        self._seconds = 0.0
        self._wake()

    def headers(self, values: Mapping[str, str]) -> None:
        """Follow ``x-ratelimit-remaining-…`` and ``x-ratelimit-reset-…``: with none left wait, with few ask few."""
        for what, per_call in (("requests", 1.0), ("tokens", self._tokens_per_call)):
            stated = values.get(f"x-ratelimit-remaining-{what}", "").strip()
            if not _COUNT.fullmatch(stated):
                continue
            left = int(stated)
            seconds = duration_s(values.get(f"x-ratelimit-reset-{what}", ""))
            if left == 0 and seconds:
                self.close_for(min(seconds, MAX_CLOSED_S))
            if per_call:
                room, now = int(left / per_call), self._clock()
                # Of two answers the one that says less is the later one: more is left only after the reset.
                if room <= self._left or now >= self._left_until:
                    lasts = UNTOLD_S if seconds is None else min(seconds, MAX_CLOSED_S)
                    self._left, self._left_until = room, now + lasts

    async def __aenter__(self) -> None:
        while self.in_flight >= self.room:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                # The turn may have been given in the same moment; hand it on.
                self._wake()
                raise
        self.in_flight += 1

    async def __aexit__(self, *_: object) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = self.room - self.in_flight
        while free > 0 and self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
