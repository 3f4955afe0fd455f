"""Of a model that costs money or time little is asked, unless more is asked for; what is counted beforehand is asked."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from commands import Capture, said

from auditor import Result, audit
from auditor.core import plan as plan_module
from auditor.core.plan import CHEAP_CALLS, Plan, resolve
from auditor.core.types import Progress, SourceText
from auditor.models.limits import BOOK, spent_in
from auditor.run import dryrun
from auditor.run.audit import resume
from auditor.run.dryrun import Ahead
from auditor.run.preparation import prepare
from auditor.testing.planted import Planted

pytestmark = pytest.mark.usefixtures("place")
HOSTED = "openai:gpt-4o-mini"
SLOW = """
def ask(text):
    return "negative" if any(w in text for w in ("terrible", "worst", "hated", "dreadful", "garbage")) else "positive"

ask.fast = False
"""
TEXTS = [f"She said that film number {n} was kind." for n in range(40)]


def settled(**given: Any) -> Plan:
    """The plan that ``given`` leads to, on five texts."""
    plan = resolve({"task": "sentiment", "models": (HOSTED,), **given})
    return prepare(plan, seeds=[SourceText(id=str(n), text=text) for n, text in enumerate(TEXTS[:5])]).plan


@pytest.mark.parametrize(
    ("given", "until", "cheap", "sizes"),
    [
        ({}, True, True, (1, 2)), ({"models": ("reviews", HOSTED)}, True, True, (1, 2)),
        ({"models": ("reviews",)}, False, False, (2, 8)), ({"full_plan": True}, False, False, (2, 8)),
        ({"max_cost": 5.0, "price": (1.0, 1.0)}, True, True, (1, 2)), ({"order": 2, "per_seed": 4}, True, True, (2, 4)),
        ({"until_decided": False}, False, True, (1, 2)), ({"task": "letter"}, False, True, (1, 2)),
        ({"protocol": "hinter"}, False, True, (2, None)), ({"suite": "grammar", "limit": 5}, True, True, (1, 8)),
    ],
)  # fmt: skip
def test_what_is_asked_where_little_is_said(
    given: dict[str, Any], until: bool, cheap: bool, sizes: tuple[int, int | None]
) -> None:
    plan = settled(**given)
    assert (plan.until_decided, (plan.order, plan.per_seed)) == (until, sizes)
    assert plan.max_calls == (CHEAP_CALLS if cheap else None)
    assert Plan.from_dict(plan.as_dict()) == plan


def test_functions_of_a_text_are_fast_unless_they_say_otherwise() -> None:
    def plain(text: str) -> str:
        return "positive"

    async def waiting(text: str) -> str:
        return "positive"

    slow = partial(plain)
    slow.fast = False  # type: ignore[attr-defined]
    for function, cheap in ((plain, False), (waiting, True), (slow, True)):
        spec = audit("sentiment", model=function, data=TEXTS[:3], attributes=("gender",)).record["spec"]
        assert (spec["until_decided"], spec["max_calls"]) == ((True, CHEAP_CALLS) if cheap else (False, None))


def hosted(asked: list[str], **options: Any) -> Result:
    """An audit of a model that costs, and answers by chance."""

    def answer(messages: list[dict[str, str]]) -> str:
        asked.append(messages[-1]["content"])
        return "positive" if crc32(messages[-1]["content"].encode()) % 2 else "negative"

    answer.auditor_style = "chat"  # type: ignore[attr-defined]
    texts = [f"{how} said that film number {n} was kind." for n in range(120) for how in ("She", "He")]
    return audit("sentiment", model=answer, data=texts, **{"attributes": ("gender",), **options})


@pytest.mark.slow
def test_a_model_that_costs_is_never_asked_more_than_the_limit_unless_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap, few = 500, list[str]()
    monkeypatch.setattr(plan_module, "CHEAP_CALLS", cheap)
    result = hosted(few, out=tmp_path)
    assert 0.5 * cheap < len(few) <= cheap  # it may be decided before
    assert result.complete, "the plan has as many texts as its calls allow"
    assert result.path is not None
    assert spent_in(result.path / BOOK)[0] == len(few)
    many: list[str] = []
    hosted(many, full_plan=True, per_seed=2, limit=200)
    assert len(many) > cheap


def test_a_run_that_goes_on_keeps_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(event: Progress) -> None:
        if event.phase == "ask" and event.done >= 100:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"data": TEXTS, "attributes": ("gender",), "out": str(tmp_path), "cache": False}
    (tmp_path / "slow.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        audit("sentiment", model="python:slow:ask", observe=cut, **options)
    (path,) = (p.parent for p in tmp_path.glob("2*/plan.json"))
    assert json.loads((path / "plan.json").read_text())["plan"]["max_calls"] == CHEAP_CALLS
    assert resume(path).record["spec"]["max_calls"] == CHEAP_CALLS


def test_a_frozen_plan_holds_what_was_decided(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("\n".join(TEXTS))
    frozen = f"plan freeze --task sentiment --data t.txt --model {HOSTED} --attributes gender --output p.json"
    assert said(capsys, frozen)[0] == 0
    held = json.loads((tmp_path / "p.json").read_text())["plan"]
    assert (held["until_decided"], held["max_calls"], held["order"]) == (True, CHEAP_CALLS, 1)
    code, told = said(capsys, "run --plan p.json --full-plan --dry-run")
    assert (code, "--full-plan belongs to audit plan freeze" in told) == (2, True)


def test_the_default_is_said_before_anything_is_asked(capsys: Capture) -> None:
    asked = f"run --task sentiment --limit 6 --attributes gender --model {HOSTED}"
    code, told = said(capsys, f"{asked} --dry-run")
    assert code == 0
    assert "Asks at most 2,000 calls and stops when every claim is decided; --full-plan asks everything." in told
    code, told = said(capsys, asked)
    assert (code, "at most 2,000 calls" in told) == (2, True)
    code, told = said(capsys, f"{asked} --dry-run --full-plan")
    assert (code, "at most" in told) == (0, False)


def test_a_dry_run_counts_what_is_asked_where_nothing_is_decided() -> None:
    model = Planted(base="constant", wobble=0.1, name="openai:planted")
    model.fast = False
    result = audit("sentiment", model=model, data=TEXTS, attributes=("age", "gender"), cache=False)
    seeds = [SourceText(id=f"s{n}", text=text) for n, text in enumerate(TEXTS)]
    plan = Plan(task="sentiment", attributes=("age", "gender"), models=("openai:planted",))
    (told,) = Ahead(prepare(plan, models=[model], seeds=seeds)).expected().models.values()
    assert told.calls + told.calls_canary == pytest.approx(result.record["counts"]["calls"], rel=0.1)


@pytest.mark.slow
def test_what_a_sample_of_the_texts_tells_is_near_what_all_of_them_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = resolve({"task": "hiring", "models": (HOSTED,), "limit": 220})
    sampled = Ahead(prepare(plan)).narrowed.expected()
    monkeypatch.setattr(dryrun, "MOST", 10**6)
    whole = Ahead(prepare(plan)).narrowed.expected()
    assert 60 < sampled.sampled < 120 < sampled.seeds == whole.seeds
    assert whole.sampled == 0
    (near,), (exact,) = (one.models.values() for one in (sampled, whole))
    for name in ("prompts", "calls", "tokens_in", "cost_usd"):
        assert getattr(near, name) == pytest.approx(getattr(exact, name), rel=0.1), name
    gone, all_gone = (re.findall(r"\w+ \(\d+ of \d+\)", one.left_out) for one in (sampled, whole))
    assert [one.split()[0] for one in gone] == [one.split()[0] for one in all_gone] != []
    assert "age (4 of 24)" in gone, "texts that few name are all looked at"
