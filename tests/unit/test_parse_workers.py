"""Worker processes say what one process says, and their end is an error that names the way out."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from auditor.core.errors import ConfigError, PluginError
from auditor.core.types import Case, Variant
from auditor.perturb.gate import dependency as module
from auditor.perturb.gate.dependency import DependencyInvariant
from auditor.perturb.gate.workers import share
from auditor.text.parse import Parser

TEXTS = [
    "The man sold his car to him. She was there, but the men did not see her. He left.",
    "A woman met two British men at the bank. They were old; he was not.<br />His wife came later.",
    "My boss told the girl that she was late. The American guy laughed at her. What a man!",
    "The nurse said her brother\ud800 was fine. The women and the boy waited. Dr. Lee, a man of 50, came.",
]
SWAPS = [("man", "men"), ("his", "him"), ("woman", "man"), ("girl", "boy. A girl"), ("British", "Nigerian")]


def cases() -> list[Case]:
    found = []
    for number, text in enumerate(TEXTS):
        variants = [text.replace(old, new) for old, new in SWAPS] + [text]
        found.append(
            Case(
                id=f"c{number}",
                suite="test",
                original=Variant(id=f"c{number}.o", input=text),
                variants=tuple(Variant(id=f"c{number}.v{i}", input=t) for i, t in enumerate(variants)),
            )
        )
    row = Variant(id="r.o", input={"sex": "m"})
    found.append(Case(id="r", suite="test", original=row, variants=(Variant(id="r.v", input={"sex": "f"}),)))
    return found


@pytest.fixture(scope="module")
def together() -> Iterator[DependencyInvariant]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SHARED_FROM", 1)
        check = DependencyInvariant(parser=Parser(), workers=3)
        yield check
        check.close()


def test_any_number_of_workers_says_the_same(together: DependencyInvariant) -> None:
    alone = DependencyInvariant(parser=Parser())
    expected = alone.check_many(cases())
    assert together.check_many(cases()) == expected
    assert {one.status for row in expected for one in row} == {"valid", "invalid", "unknown"}
    assert len(together.pids) == 2
    assert together.compared == alone.compared
    assert together.parser.parsed == alone.parser.parsed
    assert together.check_many(cases()[::-1]) == expected[::-1]


def test_a_worker_that_ends_is_an_error_and_is_started_again(together: DependencyInvariant) -> None:
    expected = together.check_many(cases())
    first, second = together.pids
    os.kill(first, signal.SIGKILL)
    with pytest.raises(PluginError, match=r"worker process ended with status -9 .* Run with one worker"):
        together.check_many(cases())
    assert together.pids == []  # the other's answer must not be taken for that of the next question
    assert together.check_many(cases()) == expected
    assert second not in together.pids


def test_a_worker_that_cannot_parse_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARED_FROM", 1)
    check = DependencyInvariant(parser=Parser(), workers=2)
    check._workers[0]._hello["parser"] = "embeded"
    with pytest.raises(PluginError, match=r"could not check its variants: .*'embeded'"):
        check.check_many(cases())
    check.close()


def test_few_variants_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARED_FROM", 64)
    check = DependencyInvariant(parser=Parser(), workers=2)
    check.check_many(cases())
    assert check.pids == []


def test_at_least_one() -> None:
    with pytest.raises(ConfigError, match="workers must be 1 or more; got 0"):
        DependencyInvariant(parser=Parser(), workers=0)


def test_shards_are_of_like_cost_and_hold_every_task_once() -> None:
    costs = [7, 1, 1, 1, 4, 0, 9, 3]
    dealt = share(costs, 3)
    assert sorted(task for shard in dealt for task in shard) == list(range(8))
    loads = [sum(costs[task] for task in shard) for shard in dealt]
    assert max(loads) - min(loads) <= 1
    assert share(costs, 3) == dealt
    assert share([], 2) == [[], []]
