"""Limits on calls, cost and time, shared by all models of a run; list prices; token counts without a tokenizer.

Prices age: every entry of ``auditor/embedded/prices.yaml`` has a date, and ``--price`` overrides it.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
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
