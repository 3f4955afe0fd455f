"""``audit run --batch`` killed at every step of a batch, then ``audit resume``: nothing is submitted or paid twice."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import batch_server
import pytest
from nursery import Nursery, finished, over

pytestmark = pytest.mark.e2e


def said(text: str, n: int) -> dict[str, Any] | None:
    """The answer hangs on the text alone; the first request of some texts goes wrong inside its batch."""
    wrong: dict[int, dict[str, Any] | None] = {
        0: batch_server.refused(500),
        1: batch_server.refused(429),
        2: {"response": None, "error": {"code": "batch_expired", "message": "too late"}},
        3: None,  # neither in the output nor among the errors
    }
    number = hashlib.sha256(text.encode()).digest()
    if n == 1 and number[1] % 16 in wrong:
        return wrong[number[1] % 16]
    label: dict[str, Any] = batch_server.answered("positive" if number[0] < 128 else "negative")
    return label


@pytest.fixture
def provider() -> Any:
    with batch_server.Provider(polls=1) as one:
        one.outcome = said
        yield one
        one.go.set()


TEXTS = [
    f"A {age} {person} at the {place} said that the film was {word}."
    for age, person in (("young", "woman"), ("young", "man"), ("elderly", "woman"), ("elderly", "man"))
    for place, word in (("door", "long"), ("window", "short"), ("counter", "loud"), ("station", "slow"))
]


def arguments(provider: Any, folder: Path, *more: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    plan = "run --task sentiment --attributes age,gender --per-seed 2 --replicates 2 --no-cache --full-plan --yes"
    model = ["--model", "openai:served-model", "--base-url", provider.url]
    return [*plan.split(), *model, "--data", str(folder / "texts.txt"), "--out", str(folder), *more]


def figures(folder: Path) -> dict[str, Any]:
    """What must be alike with batches and without: all but what is asked at several times, and its calls."""
    record = finished(folder)
    del record["controls"]["canary"]
    apart = ("calls", "asked", "tokens_in", "tokens_out", "cost_usd")
    counts = {name: value for name, value in record["counts"].items() if name not in apart}
    return {key: record[key] for key in ("estimates", "findings", "diagnoses", "controls")} | counts


def lines(provider: Any, field: str) -> Counter[str]:
    """How often each request stands in the input, output or error files of all batches."""
    files = [batch[field] for batch in provider.batches.values() if batch.get(field)]
    return Counter(json.loads(line)["custom_id"] for f in files for line in provider.files[f].splitlines())


def require_once(provider: Any, run: Path) -> None:
    """Each batch was submitted once, each request answered once, and each answer is in the journal."""
    marks = Counter(batch["metadata"]["audit_mark"] for batch in provider.batches.values())
    assert set(marks.values()) == {1}
    # A batch was there to be repeated only for what the batch before did not answer.
    good = Counter(
        row["custom_id"]
        for batch in provider.batches.values()
        if batch.get("output_file_id")
        for row in map(json.loads, provider.files[batch["output_file_id"]].splitlines())
        if row["response"]["status_code"] == 200
    )
    assert set(good) == set(lines(provider, "input_file_id"))
    assert set(good.values()) == {1}
    rows = [json.loads(line) for line in (run / "responses.jsonl").read_text().splitlines()]
    journal = Counter(f"{r['prompt_sha256'][:48]}-{r['replicate']}" for r in rows if r.get("output"))
    assert journal == good


@pytest.fixture(scope="module")
def plain(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The figures without batches."""
    folder = tmp_path_factory.mktemp("plain")
    with batch_server.Provider() as one:
        one.outcome = said
        nursery.call(*arguments(one, folder))
        assert one.direct > 100
    return figures(folder)


def test_batches_give_the_figures_of_a_run_without(nursery: Nursery, provider: Any, plain: Any, tmp_path: Path) -> None:
    nursery.call(*arguments(provider, tmp_path, "--batch"))
    assert figures(tmp_path) == plain
    assert provider.direct == 0
    (run,) = tmp_path.glob("2*")
    require_once(provider, run)
    nursery.call("verify", str(run))
    # Some requests went wrong in each way, and went into a further batch.
    assert max(lines(provider, "input_file_id").values()) == 2
    assert lines(provider, "error_file_id")
    # One for the control texts, one for the first texts since the control was not seen, one for the cases, what these
    # left open, and one for all that looked hidden.
    assert len(provider.batches) == 7
    assert finished(tmp_path)["counts"]["hidden"]["2"] > 1


# The first batch holds the control; the second what the first left open; the last what looked hidden.
STEPS = [("upload", 0), ("create", 0), ("created", 0), ("look", 0), ("content", 0)]
STEPS += [("create", 1), ("created", 4), ("look", 4)]


@pytest.mark.parametrize(("point", "skip"), STEPS)
def test_killed_at_a_step_of_a_batch_then_resumed(
    nursery: Nursery, provider: Any, plain: Any, tmp_path: Path, point: str, skip: int
) -> None:
    provider.hold_at(point, skip=skip)
    pid = nursery.start(*arguments(provider, tmp_path, "--batch"))
    assert provider.held.wait(120)
    assert nursery.kill(pid)
    provider.go.set()
    there = len(provider.batches)
    assert there == skip + (point not in ("upload", "create")) or point == "content"
    (run,) = tmp_path.glob("2*")
    nursery.call("resume", str(run), "--yes")
    require_once(provider, run)
    nursery.call("verify", str(run))
    assert figures(tmp_path) == plain


def test_resume_waits_on_where_the_time_limit_came(nursery: Nursery, provider: Any, plain: Any, tmp_path: Path) -> None:
    provider.polls = 7  # for over a minute
    pid = nursery.start(*arguments(provider, tmp_path, "--batch", "--max-seconds", "3", "--format", "json"))
    assert nursery.wait(pid) == 3
    (run,) = tmp_path.glob("2*")
    record = json.loads((run / "run.json").read_text())
    assert record["status"] == "partial"
    assert "the limit of 3 seconds (--max-seconds) is reached" in record["status_reason"]
    assert "works on batch_0, and audit resume" in record["status_reason"]
    assert "batch_0" in (run / "batches-1.jsonl").read_text()
    assert record["counts"]["asked"] == 0
    assert list(provider.batches) == ["batch_0"]
    nursery.call("verify", str(run))
    # Time runs out again while the same batch is waited for; then it is done.
    assert nursery.wait(nursery.start("resume", str(run), "--yes")) == 3
    assert list(provider.batches) == ["batch_0"]
    provider.polls = provider.looks["batch_0"] + 1
    for name in range(1, 8):
        provider.looks[f"batch_{name}"] = provider.polls - 1
    nursery.call("resume", str(run), "--yes", "--max-seconds", "600")
    require_once(provider, run)
    nursery.call("verify", str(run))
    assert figures(tmp_path) == plain
    assert len(provider.batches) == 7  # as without a limit


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("SOAK"), reason="takes minutes; make soak runs it")
def test_kills_at_random_steps_of_batches(nursery: Nursery, plain: Any, tmp_path: Path) -> None:
    rng, hits, number = Random(7), 0, 0
    while hits < 13:
        number += 1
        assert number <= 39, "runs end before they can be killed"
        folder = tmp_path / f"killed-{number}"
        with batch_server.Provider(polls=1) as one:
            one.outcome = said
            argv = arguments(one, folder, "--batch")
            for _ in range(rng.randint(1, 2)):
                one.hold_at(rng.choice(["upload", "create", "created", "look", "content"]), skip=rng.randrange(4))
                pid = nursery.start(*argv)
                while not one.held.wait(0.05) and not over(pid):
                    pass
                hits += nursery.kill(pid)
                one.hold = ""
                one.go.set()
                (run,) = folder.glob("2*")
                argv = ["resume", str(run), "--yes"]
            nursery.call(*argv)
            require_once(one, run)
            nursery.call("verify", str(run))
            assert figures(folder) == plain
