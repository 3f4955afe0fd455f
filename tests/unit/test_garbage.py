"""The search for garbage is as before once no run is under way, however runs end and overlap."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from auditor import audit
from auditor.core.errors import UserError
from auditor.run.garbage import ALLOCATIONS, rare_searches


@pytest.fixture(autouse=True)
def usual() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    yield 701, 11, 12
    gc.set_threshold(*before)


def test_as_before_after_an_error(usual: tuple[int, int, int]) -> None:
    def fails() -> None:
        with rare_searches():
            assert gc.get_threshold() == (ALLOCATIONS, 11, 12)
            raise UserError("no")

    with pytest.raises(UserError):
        fails()
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("first_out", [0, 1])
def test_as_before_after_runs_that_overlap(usual: tuple[int, int, int], first_out: int) -> None:
    runs = ExitStack(), ExitStack()
    for run in runs:
        run.enter_context(rare_searches())
    runs[first_out].close()
    assert gc.get_threshold() == (ALLOCATIONS, 11, 12)
    runs[1 - first_out].close()
    assert gc.get_threshold() == usual


def test_as_before_after_a_run_that_was_cut_off(usual: tuple[int, int, int]) -> None:
    async def work() -> None:
        with rare_searches():
            await asyncio.sleep(60)

    async def cut() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        assert gc.get_threshold()[0] == ALLOCATIONS
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cut())
    assert gc.get_threshold() == usual


def test_off_stays_off() -> None:
    gc.set_threshold(0, 11, 12)
    with rare_searches():
        assert gc.get_threshold() == (0, 11, 12)
    assert gc.get_threshold() == (0, 11, 12)


def test_a_run_searches_rarely_and_leaves_all_as_it_was(usual: tuple[int, int, int]) -> None:
    seen = set()

    def model(text: str) -> str:
        seen.add(gc.get_threshold()[0])
        return "positive"

    audit("sentiment", model=model, data=["My mother left."], attributes=("gender",), per_seed=1, cache=False)
    assert seen == {ALLOCATIONS}
    assert gc.get_threshold() == usual
