"""Limits, reservations, prices and token counts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.core.errors import BudgetExceeded, UserError
from auditor.core.types import Message, Prompt
from auditor.models import limits as prices
from auditor.models.limits import BOOK, Budget, most_tokens, spent_in


def reserve(budget: Budget, *bounds: float, **more: list[bool]) -> int:
    return asyncio.run(asyncio.wait_for(budget.reserve(list(bounds), **more), 10))


def test_the_longest_prefix_that_fits_is_granted_until_a_limit_is_reached() -> None:
    assert reserve(Budget(max_calls=3), *[0.0] * 5) == 3
    assert reserve(Budget(max_cost=1.0), 0.4, 0.4, 0.4) == 2
    now = SimpleNamespace(s=100.0)
    calls, seconds = Budget(max_calls=1), Budget(max_seconds=5, clock=lambda: now.s)
    assert (reserve(calls, 0.0), seconds.remaining_s(), Budget().remaining_s()) == (1, 5, None)
    now.s = 104.0
    assert reserve(seconds, 0.0) == 1
    now.s = 105.0
    for budget, bound, told in (
        (calls, 0.0, r"1 call \(--max-calls\)"),
        (Budget(max_cost=1.0), 1.5, "--max-cost"),
        (seconds, 0.0, "5 seconds"),
    ):
        with pytest.raises(BudgetExceeded, match=told):
            reserve(budget, bound)


def test_what_leaves_is_on_disk_before_it_leaves_and_counts_in_the_next_process(tmp_path: Path) -> None:
    book = tmp_path / BOOK
    killed = Budget(max_calls=5, max_cost=1.0)
    killed.keep(book)
    reserve(killed, 0.2, 0.2)
    killed.settle(0.2, 0.05)  # one was answered; the other is in flight, and the process is killed here
    assert spent_in(book) == (2, pytest.approx(0.25), pytest.approx(0.2))
    later = Budget(max_calls=5, max_cost=1.0)
    later.charge(calls=1, usd=0.05)  # what the journal holds is part of what the book says
    later.keep(book)
    assert (later.calls, later.spent_usd) == (2, pytest.approx(0.25))
    assert reserve(later, *[0.2] * 9) == 3
    with pytest.raises(BudgetExceeded, match="max-calls"):
        reserve(later, 0.0)
    killed.close()
    later.close()


def test_a_call_in_a_batch_that_left_before_is_counted_once(tmp_path: Path) -> None:
    killed = Budget(max_calls=2, max_cost=1.0)
    killed.keep(tmp_path / BOOK)
    reserve(killed, 0.4, 0.4)
    later = Budget(max_calls=2, max_cost=1.0)
    later.keep(tmp_path / BOOK)
    assert reserve(later, 0.4, 0.4, 0.4, left_before=[True, True, False]) == 2
    later.settle(0.4, 0.1)
    later.settle(0.4, 0.1)
    assert (later.calls, later.spent_usd, later.held_usd) == (2, pytest.approx(0.2), 0.0)
    killed.close()
    later.close()


@pytest.mark.parametrize("text", ["no", "[]", '{"calls": -1}', '{"calls": 1.5}', '{"calls": 1, "spent_usd": NaN}'])
def test_a_book_that_says_nothing_keeps_no_limit(tmp_path: Path, text: str) -> None:
    (tmp_path / BOOK).write_text(text)
    with pytest.raises(UserError, match="start a new run"):
        Budget().keep(tmp_path / BOOK)


def test_a_call_waits_for_what_is_set_aside_by_others_unless_it_can_never_fit() -> None:
    async def go() -> list[str]:
        budget, order = Budget(max_cost=1.0), []

        async def late() -> None:
            await budget.reserve([0.8])
            order.append("granted")

        await budget.reserve([0.8])
        with pytest.raises(BudgetExceeded):
            await budget.reserve([1.1])
        task = asyncio.create_task(late())
        for _ in range(2):
            await asyncio.sleep(0)
        order.append("settled")
        budget.settle(0.8, 0.1)
        await task
        return order

    assert asyncio.run(asyncio.wait_for(go(), 10)) == ["settled", "granted"]


def test_the_price_table_is_dated_and_exact() -> None:
    table = prices.table()
    assert table
    assert all(host and name for host, name in table)
    for price in table.values():
        assert len(price.as_of) == 10
        assert "may have changed" in price.source
        assert price.output_usd >= price.input_usd > 0
    assert prices.lookup("gpt-4o-mini") is not None
    assert prices.lookup("gpt-4o-mini-2024-07-18") is None  # a snapshot may cost more
    assert prices.lookup("gpt-4o-mini", "127.0.0.1") is None


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_the_bound_covers_one_token_per_byte(texts: list[str]) -> None:
    prompt = Prompt(format="f", messages=tuple(Message(role="user", content=t) for t in texts))
    assert most_tokens(prompt) > sum(len(t.encode("utf-8", "surrogatepass")) for t in texts)
