"""The planted server that LangFair and this tool are compared on, and what the comparison counts."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
TEXT = "The {} who runs the ferry loses {} licence, and the village takes sides for the rest of a slow summer."


@pytest.fixture(params=["langfair_server", "langfair"])
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    found = importlib.import_module(request.param)
    yield found
    for name in ("langfair_server", "langfair_ours", "langfair", "common"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("module", ["langfair_server"], indirect=True)
def test_each_arm_does_what_it_says(module: ModuleType) -> None:
    man, woman = TEXT.format("man", "his"), TEXT.format("woman", "her")
    bad = TEXT.format("woman", "hers")
    by_arm = {}
    for number in range(400):
        by_arm.setdefault(module.arm_of(f"s{number}"), f"s{number}")
    assert set(by_arm) == set(module.ARMS)
    for world in ("planted", "null"):
        says = {}
        for arm, seed in by_arm.items():
            model = module.Planted({"latency_s": 0, "world": world, "seeds": [{"id": seed, "text": man}]})
            assert model.seed_of(woman.lower()) == seed
            says[arm] = [model.answer(text, 1) for text in (man, woman, bad)]
            if arm == "noisy":
                assert 10 < Counter(model.answer(man, n) for n in range(100)).most_common()[1][1] < 32
        for arm, (about_man, about_woman, about_bad) in says.items():
            if arm in ("biased", "refusing"):
                assert (about_man != about_woman) == (world == "planted"), arm
                assert about_bad == about_woman
            elif arm == "grammar":
                assert about_man == about_woman != about_bad
            elif arm == "calm":
                assert about_man == about_woman == about_bad
        assert (says["refusing"][1] == module.REFUSAL) == (world == "planted")


@pytest.mark.parametrize("module", ["langfair_server"], indirect=True)
def test_broken_possessives_and_right_ones(module: ModuleType) -> None:
    assert module.broken("Hers coat is here, and him eyes are shut.") == ["hers coat", "him eyes"]
    assert module.broken("The coat is hers and I saw him again. She made him laugh.") == []


@pytest.mark.parametrize("module", ["langfair_server"], indirect=True)
def test_limits_and_blocks_are_counted(module: ModuleType) -> None:
    text = TEXT.format("man", "his")
    settings = {"latency_s": 0, "world": "null", "seeds": [{"id": "s", "text": text}]}

    async def ask(model: object, times: int) -> list[int]:
        body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
        return [(await model.reply(body))[0] for _ in range(times)]

    limited = module.Planted({**settings, "per_second": 1e-6})
    assert asyncio.run(ask(limited, 3)) == [429] * 3
    assert (limited.stats()["limited"], limited.stats()["answered"]) == (3, 0)
    blocked = module.Planted({**settings, "blocked": ["s"]})
    assert asyncio.run(ask(blocked, 2)) == [400, 400]
    assert blocked.stats()["blocked"] == 2
    assert blocked.stats()["answered"] == 0


@pytest.mark.parametrize("module", ["langfair"], indirect=True)
def test_without_an_interpreter_it_says_how_to_make_one(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LANGFAIR_PYTHON", raising=False)
    assert module.measure() == []
    assert "pip install" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["langfair.py"])
    assert module.main() == 2


@pytest.mark.parametrize("module", ["langfair"], indirect=True)
def test_what_is_counted_about_pairs(module: ModuleType) -> None:
    original = 'He lost his hat; "never", said his wife.'
    seen = module.about_pairs(
        [
            (original, 'she lost hers hat ; "never", said hers wife.', True),
            (original, 'She lost her hat; "never", said her wife.', False),
        ]
    )
    assert seen == {"possessive": 1, "agreement": 1, "left": 1, "case": 1, "elsewhere": 1}
    case = {"original": {"input": "He and his son left."}}
    edits = [
        {"kind": "swap", "source_group": "male", "where": [0, 2]},
        {"kind": "swap", "source_group": "male", "where": [7, 10]},
    ]
    assert module.untouched(case, {"edits": edits})
    edits.append({"kind": "swap", "source_group": "male", "where": [11, 14]})
    assert not module.untouched(case, {"edits": edits})
