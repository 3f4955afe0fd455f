"""Every command that asks, with nearly every option set: killed on the way, then finished by the command for that."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from nursery import Server, audit, over, warm

import auditor
from auditor import agent
from auditor.core.plan import Plan
from auditor.tables.tabular_plan import MethodOptions, TabularPlan
from tests.asking import GOAL, csv_file, json_lines

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SERVED = (
    "--model openai:one --base-url {url} "
    "--server 'header=X-Team=TEAM extra-body=body.json max-tokens=40 timeout=30 temperature=none reasoning-effort=low "
    "logprobs=no' --server 'openai:one max-tokens=50 header=X-Team=TEAM' "
)
LIMITS = "--max-calls 5000 --max-cost 9.5 --max-seconds 900 --price 1,2 --concurrency 4 --no-cache --out runs "
TEXTS = (
    "--data texts.csv --column text=words --column label=gold --column id=key --column source=origin --limit 8 "
    "--seed 3 "
)
ONE = "--model openai:one --base-url {url} --concurrency 4 --out runs --max-calls 5000 "
MORE = "resume RUN --max-calls 6000 --max-cost 9 --max-seconds 800"
# Each command line; RUN is the folder that was begun.
CASES = {
    "texts": "run --task sentiment " + SERVED + LIMITS + TEXTS + "--attributes gender,age --groups gender:female --order 2 "
    "--per-seed 2 --who all --wordings 2 --carrier words --formats all --replicates 2 --suite mutation "
    "--dictionary age=ages.csv --test-discarded --jobs 1 --full-plan "
    "--gate constructs --parser embedded --protocol default --oracle label --reference gender:male --delta 2 "
    "--fail-on 'failed > 99%' --anyway",
    "frozen": "run --plan plan.json --base-url {url} --concurrency 4 --no-cache --out runs",
    "redacted": "run --task sentiment --data texts.csv --column text=words --limit 8 --redact " + ONE,
    "own labels": "run --task sentiment --labels positive,negative --favourable positive --data texts.csv "
    "--column text=words --limit 8 --no-cache " + ONE,
    "amounts": "run --task salary --data texts.csv --column text=words --attributes gender --tolerance 1500.5 "
    "--per-seed 0 --limit 8 --no-cache " + ONE,
    "letters": "run --task letter --data texts.csv --column text=words --limit 6 --attributes gender --judge openai:two "
    "--server 'openai:two timeout=20' --no-cache --replicates 1 " + ONE,
    "requests": "run --task sentiment --data requests.jsonl --column messages=user --column answer=$.content "
    "--attributes gender --no-cache " + ONE,
    "grammar": "run --task sentiment --suite grammar --suite-option grammar=sentiment --suite-option generation=rand "
    "--protocol astraea --limit 60 --no-cache " + ONE,
    "scores": "run --task sentiment --data texts.csv --column text=words --oracle probability --tolerance 0.05,0.1 "
    "--model python:models:scores --attributes gender --no-cache --out runs",
    "until decided": "run --task sentiment --data texts.csv --column text=words --until-decided --attributes gender "
    "--no-cache " + ONE.replace("5000", "900"),
    "joint first": "run --task sentiment --data both.txt --suite joint-first --limit 8 --attributes gender,age --no-cache "
    + ONE.replace("5000", "900"),
    "trial": "mitigate runs/latest --with ignore,redact --prompt mine.txt --other-model openai:two --replicates 2 "
    "--base-url {url} " + LIMITS.replace("--out runs", "--out trials"),
    "session": "agent 'Do film reviews by women get another sentiment?' --task sentiment " + SERVED + LIMITS
    + TEXTS.replace("--limit 8", "--limit 24") + "--formats all --parser embedded --delta 2",
    "rows of a task": "tabular --task lending " + SERVED + LIMITS + "--method themis --protected sex --confidence 0.9 "
    "--epsilon 0.2 --max-samples 60 --favourable approve --prompt-format plain --replicates 2 --delta 2 "
    "--seed 3 --max-evaluations 900",
    "rows of a server": "tabular --data rows.csv --target label --protected sex --schema rows.yaml --model "
    "http:rows-server.yaml --method aequitas --set global-n=40 --set local_n=20 --no-cache --max-calls 5000 --out runs",
}  # fmt: skip
AGAIN = {"texts": MORE + " --format json", "trial": MORE, "rows of a task": MORE}  # what finishes it; else resume RUN
FIRST = {  # what a case needs
    "frozen": "plan freeze --task sentiment --data texts.csv --column text=words --limit 8 --attributes gender --delta 2 "
    "--model openai:one --base-url {url} --max-calls 5000 --output plan.json",
    "trial": "run --task sentiment --limit 3 --model openai:one --base-url {url} --no-cache --yes --out runs",
    "rows of a server": "tabular schema rows.csv --target label --protected sex --out rows.yaml",
}
ELSEWHERE = {
    "batch": "tests/e2e/test_batch_cli.py",
    # of rows
    **dict.fromkeys(("distance_threshold", "trust_pickle"), "of runs that ask no server"),
    **dict.fromkeys(("protocol", "theta", "measure"), "of one method"),
}


def reply(model: str, text: str) -> str:
    """An answer to any of the tasks, by the text alone."""
    drawn = hashlib.sha256(text.encode()).digest()[0]
    if "Text 1:" in text:
        return "first"
    if "Rank all" in text:
        return "2, 1, 3"
    if "<candidate-1>" in text:
        return "first" if drawn < 128 else "second"
    if "monthly income" in text or "'sex'" in text:
        return "approve" if drawn < 128 else "deny"
    if "dollars" in text:
        return f"${60_000 + 500 * (drawn % 20):,}"
    if "letter" in text:
        return f"I recommend this person, who is {'calm' if drawn < 128 else 'kind'}."
    return "positive" if drawn < 128 else "negative"


class Gated(Server):
    """A server that stops to answer after ``open`` calls, so that an audit can be killed in the midst of it."""

    def __init__(self) -> None:
        self.calls, self.open = 0, 10**9
        self.full, self.going = threading.Event(), threading.Event()
        super().__init__(self.held, delay_s=0)

    def held(self, model: str, text: str) -> str:
        with self.lock:
            self.calls += 1
            shut = self.calls > self.open
        if shut:
            self.full.set()
            self.going.wait(120)
        return reply(model, str(text))


@pytest.fixture
def server() -> Iterator[Gated]:
    with Gated() as one:
        yield one
        one.going.set()


def furnish(folder: Path, url: str) -> None:
    """The files that the command lines name."""
    people = ("man", "woman", "boy", "girl", "father", "mother")
    said = "The {} in row {} liked the old film, and so did I."
    rows = [
        {"key": f"k{n}", "origin": f"o{n // 2}", "words": said.format(people[n % 6], n), "gold": "positive"}
        for n in range(40)
    ]
    csv_file(folder / "texts.csv", rows)
    sent = [f"Sentiment? The {people[n % 6]} liked film {n}." for n in range(12)]
    json_lines(folder / "requests.jsonl", [{"messages": [{"role": "user", "content": text}]} for text in sent])
    both = [f"The {('young', 'old')[n % 2]} {people[n % 4]} in row {n} liked film {n}." for n in range(12)]
    (folder / "both.txt").write_text("\n".join(both) + "\n")
    (folder / "ages.csv").write_text("old man;young man\nold woman;young woman\n")
    (folder / "body.json").write_text('{"user": "audit"}')
    (folder / "mine.txt").write_text("Judge the text alone.")
    rows = [f"{'male' if n % 2 else 'female'},{20 + n},{'yes' if n % 3 else 'no'}" for n in range(40)]
    (folder / "rows.csv").write_text("\n".join(["sex,age,label", *rows]) + "\n")
    (folder / "rows-server.yaml").write_text(
        f"format: 1\nurl: {url}/chat/completions\n"
        'request: {model: one, messages: [{role: user, content: "{{row}}"}]}\n'
        "answer: choices[0].message.content\n"
    )
    (folder / "models.py").write_text(
        "import os, pathlib\n"
        "def scores(text):\n"
        "    seen = pathlib.Path('seen')\n"
        "    seen.open('a').write('.')\n"
        "    if os.environ.get('STOP') and seen.stat().st_size > 9:\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return {'positive': 0.5 + len(text) % 7 / 20, 'negative': 0.5 - len(text) % 7 / 20}\n"
    )


def begun(folder: Path) -> set[Path]:
    return {p.parent for name in ("plan.json", "trial.json", "session.json") for p in folder.glob(f"*/*/{name}")}


@pytest.mark.parametrize("name", CASES)
def test_a_command_that_was_killed_is_finished(name: str, tmp_path: Path, server: Gated) -> None:
    start, again = CASES[name], AGAIN.get(name, "resume RUN")
    furnish(tmp_path, server.url)
    (tmp_path / "runs").mkdir()
    environment = dict(os.environ) | {"TEAM": "audits", "OPENAI_API_KEY": "k" * 12, "AUDIT_CACHE": str(tmp_path / "c")}

    def call(*argv: str) -> Any:
        return audit(*argv, cwd=tmp_path, environment=environment)

    if name in FIRST:
        done = call(*shlex.split(FIRST[name].format(url=server.url)))
        assert done.returncode == 0, done.stderr
    before = begun(tmp_path)
    server.calls, server.open = 0, 9
    argv = [*shlex.split(start.format(url=server.url)), "--yes"]
    pid = warm().tell([argv, str(tmp_path), environment | {"STOP": "1"}, os.devnull, str(tmp_path / "err")])
    deadline = time.monotonic() + 120
    while not server.full.wait(0.01) and not over(pid):
        assert time.monotonic() < deadline
    os.kill(pid, signal.SIGKILL)
    assert warm().tell(pid) == -signal.SIGKILL, (tmp_path / "err").read_text()
    server.open = 10**9
    server.going.set()
    server.settle()

    (run,) = begun(tmp_path) - before
    done = call(*shlex.split(again.replace("RUN", str(run))), "--yes")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["audit", "agent"])
def test_values_that_a_program_gives_are_read_again(kind: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers where others may stand, numbers of arrays, paths."""
    furnish(place, "")
    calls = itertools.count(1)

    def cut_off(text: str) -> str:
        if next(calls) == 30:
            raise KeyboardInterrupt
        return "positive" if "man" in text else "negative"

    monkeypatch.setitem(sys.modules, "cut_off", SimpleNamespace(model=cut_off))
    given: dict[str, Any] = {"model": "python:cut_off:model", "data": place / "texts.csv", "out": place / "runs"}
    given |= {"columns": {"text": "words"}, "max_cost": 2, "max_seconds": np.int64(900), "delta": np.float32(2)}
    given |= {"max_calls": np.int64(4000), "seed": np.int64(3), "limit": np.int64(30), "cache": False}
    if kind == "agent":
        begin = partial(agent.run, GOAL, **given)
    else:
        begin = partial(auditor.audit, order=np.int64(1), carrier=["words"], attributes=["gender"], **given)
    with pytest.raises(KeyboardInterrupt):
        begin(task="sentiment")
    (folder,) = {path.parent for name in ("plan.json", "session.json") for path in place.glob(f"runs/*/{name}")}
    assert (agent.resume if kind == "agent" else auditor.resume)(folder).complete


def test_every_option_is_in_a_command_line_that_is_killed() -> None:
    flags = {
        "run": Plan.flags("run"),
        "mitigate": Plan.flags("mitigate"),
        "agent": Plan.flags("agent"),
        "tabular": TabularPlan.flags("tabular") | MethodOptions.flags("tabular"),
    }
    for command, options in flags.items():
        typed = {word for start in CASES.values() if start.split()[0] == command for word in start.split()}
        on = {word.replace("--no-", "--") for word in typed} | typed
        missing = [n for n, o in options.items() if not on & set(re.split("/", o.flag)) and n not in ELSEWHERE]
        assert not missing, f"{command}: {missing}"
