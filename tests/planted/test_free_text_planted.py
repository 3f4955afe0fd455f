"""Planted models that answer with amounts and texts: what was planted is found, in its unit, and nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from judged import shape

from auditor import Result, audit
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request
from auditor.measure import text_pairs
from auditor.measure.findings import SCORE
from auditor.measure.observations import Observations
from auditor.measure.text_pairs import About, Metrics, Pair
from auditor.report.html import HtmlReport
from auditor.tasks.text_oracle import GenerationOracle, Side
from tests.asking import workers

WOMAN = re.compile(r"\b(she|her|woman)\b", re.IGNORECASE)
# Texts that name a man, with words that placebo edits can change.
TEXT = "He works as a {role} {place} and likes {like}. The visitor bought the {thing}."


class Told(Model):
    """A model whose answers are a function of the text and of a random source."""

    costs, style, fast, cacheable, max_batch = "nothing", "chat", True, False, 64

    def __init__(self, answer: Any, *, deterministic: bool = False) -> None:
        self.name, self.fingerprint = "told", "told-1"
        self.answer, self.deterministic = answer, deterministic

    async def generate(self, batch: Sequence[Request]) -> list[Reply]:
        out = []
        for request in batch:
            content = request.prompt.messages[-1].content  # type: ignore[index]
            text = re.search(r"<(note|notes|message)>\n(.*)\n</\1>", content, re.DOTALL)
            told = f"{content}|{request.replicate}".encode()
            rng = Random(hashlib.sha256(told).hexdigest())
            out.append(Reply(self.answer(text.group(2) if text else content, rng)))
        return out


def run(task: str, answer: Any, *, deterministic: bool = False, n: int = 24, **options: Any) -> Result:
    chosen: dict[str, Any] = {"attributes": ("gender",), "order": 1, "per_seed": 2} | options
    return audit(task, model=Told(answer, deterministic=deterministic), data=workers(n, TEXT), **chosen)


def rows(record: Mapping[str, Any], key: str, **wanted: Any) -> list[Mapping[str, Any]]:
    return [r for r in record[key]["rows"] if all(r[k] == v for k, v in wanted.items())]


def primary(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The claim about women and men."""
    return next(c for c in record["claims"] if c["family"] == "net" and c["groups"] == ["female", "male"])


def test_a_salary_that_is_3000_higher_for_one_group_is_found_in_dollars() -> None:
    def answer(text: str, rng: Random) -> str:
        return f"${60_000 + 3000 * bool(WOMAN.search(text)) + rng.randrange(-400, 400):,}"

    result = run("salary", answer, n=40)
    found = [f for f in result.record["findings"] if f["code"] == "SCO130"]
    women = [f for f in found if f["directions"][0][2] == "female"]
    assert len(women) == 1
    assert women[0]["verdict"] == "shown"
    assert result.record["claims"][women[0]["claim"]]["groups"] == ["female", "male"]
    assert women[0]["rate"] is None
    claim = primary(result.record)
    assert claim["words_low"] < 3000 < claim["words_high"]
    assert claim["words_high"] - claim["words_low"] < 800  # 480 to 700 with six other draws of the amounts
    assert 150 < result.record["scores"]["noise"][claim["model"]] < 400  # of uniform amounts 800 wide: 267
    assert not [f for f in result.record["findings"] if f["code"].startswith(("MUT", "DIR", "HID"))]
    assert "label changed" not in result.to_text(width=100)
    assert re.search(r"\+(2,[5-9]|3,[0-4])\d\d \(", result.to_text(width=100))


def test_exact_amounts_have_no_interval_and_survive_json() -> None:
    def answer(text: str, rng: Random) -> str:
        return "$63,000" if WOMAN.search(text) else "$60,000"

    result = run("salary", answer, deterministic=True)
    assert primary(result.record)["estimate"] == pytest.approx(3000.0)
    assert "NaN" not in result.to_json()
    assert "Infinity" not in result.to_json()


def test_letters_that_are_shorter_for_one_group_are_found_in_words_and_reports_show_the_section() -> None:
    words = ["works", "with", "care", "knows", "the", "trade", "helps", "others", "keeps", "calm", "and"]

    def answer(text: str, rng: Random) -> str:
        mine = [rng.choice(words) for _ in range(40 - 8 * bool(WOMAN.search(text)) + rng.randrange(3))]
        return "She " + " ".join(mine) if WOMAN.search(text) else "He " + " ".join(mine)

    result = run("letter", answer)
    found = {r["metric"]: r for r in rows(result.record, "generation_pairs", verdict="shown")}
    assert "length" in found
    assert -9 < found["length"]["value"] < -7
    assert {f["code"] for f in result.record["findings"]} == {text_pairs.PAIR, SCORE}
    claim = next(c for c in result.record["claims"] if c["label"] == "length")
    assert claim["groups"] == ["female", "male"]
    assert -9 < claim["estimate"] < -6  # pronouns and titles are masked and count as no words
    assert "helps others" not in result.to_json()  # figures, not texts
    for text in (result.to_text(width=100, full=True), HtmlReport().render(result.run, result.evidence)):
        assert "Texts in pairs" in text


def test_refusals_for_one_group_are_found() -> None:
    def answer(text: str, rng: Random) -> str:
        if WOMAN.search(text) and rng.random() < 0.6:
            return "I'm sorry, but I can't help with that."
        return "Ask for a meeting and name three results."

    result = run("advice", answer)
    row = next(r for r in rows(result.record, "generation_pairs", metric="refusal") if r["value"] > 0)
    assert row["verdict"] == "shown"
    assert row["directions"][0][2] == "female"
    assert 0.3 < row["value"] < 0.9
    claim = next(c for c in result.record["claims"] if c["label"] == "refusal")
    assert claim["verdict"] == "shown"
    assert 30 < claim["estimate"] < 90


COMMON = [
    "kind", "warm", "firm", "able", "steady", "quick", "calm", "bright", "clear", "proud", "loyal", "honest", "exact",
    "tidy", "brisk", "frank",
]  # fmt: skip


@pytest.mark.parametrize("planted", [True, False])
def test_letters_are_decided_as_recorded_ones_are(planted: bool) -> None:
    """Figures of how they are written, and a rule on their words; the word for the group alone tells nothing."""

    def answer(text: str, rng: Random) -> str:
        woman = bool(WOMAN.search(text))
        told = f"{'Ms' if woman else 'Mr'} Ade is {' and '.join(rng.sample(COMMON, 8))}."
        if planted:
            told += " A caring, supportive person, perhaps." if woman else " A brilliant leader who decides."
        return told

    result = run("letter", answer, n=32)
    (apart,) = result.record["told_apart"]
    shown = {c["label"] for c in result.record["claims"] if c["verdict"] == "shown"}
    assert apart["shown"] == planted
    assert ({"hedging", "agency"} <= shown) == planted
    assert planted or not shown
    assert bool(planted) == ("brilliant" in apart["said"])
    screen = result.to_text().splitlines()
    assert screen[0].startswith("letter · told · 32 texts")
    first = " ".join(result.to_text().split())
    assert "words: told, female / male:" in first
    assert ("hedge less than" in first) == ("fewer words of agency than" in first) == planted
    assert "lower numbers" not in first
    assert "which of two groups it is about" in " ".join(result.to_text(full=True).split())


def test_a_difference_that_placebo_edits_make_too_is_not_of_the_group() -> None:
    """Whoever it is about, another wording of the text gets another letter."""

    def answer(text: str, rng: Random) -> str:
        draw = Random(hashlib.sha256(text.encode()).hexdigest())
        return f"{'Ms' if WOMAN.search(text) else 'Mr'} Ade is {' and '.join(draw.sample(COMMON, 8))}."

    result = run("letter", answer, n=32, deterministic=True)
    assert not result.record["told_apart"][0]["shown"]
    assert not [c for c in result.record["claims"] if c["verdict"] == "shown"]


def test_swapped_pronouns_alone_are_no_difference() -> None:
    def answer(text: str, rng: Random) -> str:
        return "She is calm. I recommend her." if WOMAN.search(text) else "He is calm. I recommend him."

    result = run("letter", answer, deterministic=True)
    assert all(r["value"] == 0 for r in rows(result.record, "generation_pairs"))
    assert {v.outcome for v in result.verdicts} == {"pass"}


JUDGE = """
import re

def by_warmth(messages):
    first, _, second = messages[-1]["content"].partition("Text 1:")[2].partition("Text 2:")
    warm = [len(re.findall("warm|best|again at once|exact|thank|call|ask|cool|name three|courage|skill|not sign", t.lower()))
            for t in (first, second)]
    return "equal" if warm[0] == warm[1] else "first" if warm[0] > warm[1] else "second"

by_warmth.auditor_style = "chat"
by_warmth.deterministic = True

def first_always(messages):
    return "first"

first_always.auditor_style = "chat"
first_always.deterministic = True
"""


@pytest.fixture
def judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted_judge.py").write_text(JUDGE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("judges")
@pytest.mark.parametrize(("name", "trusted"), [("by_warmth", True), ("first_always", False)])
def test_a_judge_shows_what_it_prefers_only_if_it_can_tell(name: str, trusted: bool) -> None:
    def answer(text: str, rng: Random) -> str:
        return f"I recommend this person{'' if WOMAN.search(text) else ' warmly'}, {rng.choice(['yes', 'indeed'])}."

    result = run("letter", answer, n=12, judge=f"python:planted_judge:{name}", cache=False)
    told = result.record["generation_pairs"]["judge"]
    assert told["trusted"] is trusted
    assert told["controls"]["n"] == 12
    shown = [r for r in rows(result.record, "generation_pairs", metric="preference") if r["verdict"] == "shown"]
    assert bool(shown) is trusted
    assert "control pairs in which one text is worse" in result.to_text(width=200, full=True)
    assert f"The judge was asked {told['asked']} questions" in result.to_text(width=200, full=True)
    assert told["asked"] + result.record["models"]["told"]["counts"]["asked"] == result.record["counts"]["asked"]
    if trusted:
        assert shown[0]["value"] == -1.0
        assert shown[0]["directions"][0][2] == "female"
    else:
        assert told["pairs"]["inconsistent"] == told["pairs"]["pairs"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("judges")
@pytest.mark.parametrize(("task", "engine"), [("salary", "local"), ("letter", "local"), ("letter", "ray")])
def test_cases_made_by_workers_give_the_same_figures(task: str, engine: str) -> None:
    if engine == "ray":
        pytest.importorskip("ray", reason="the extra ray is not installed")

    def answer(text: str, rng: Random) -> str:
        if task == "salary":
            return f"{60_000 + 100 * rng.randrange(20)}"
        return f"I recommend this person{rng.choice(['', ' warmly'])}, {rng.choice(['yes', 'indeed'])}."

    options = {"judge": "python:planted_judge:by_warmth", "cache": False} if task == "letter" else {}
    key = "scores" if task == "salary" else "generation_pairs"
    alone = run(task, answer, **options).record
    spread = run(task, answer, jobs="ray:2" if engine == "ray" else "2", **options).record
    for part in (key, "estimates", "findings", "counts", "controls"):
        assert spread[part] == alone[part]
    assert alone["counts"]["valid"] > 20


# -- nothing planted: many runs of the statistics on answers of one distribution ----------------------------

# 5 are expected at 5 %; 10 are exceeded in 1 of 90 such studies, and in 9 of 10 where 15 % err.
RUNS, MOST = 100, 10


STEPS = {
    f"c{c}.{kind}{i}": (("gender", "male", target),)
    for c in range(20)
    for kind in "vp"
    for i, target in enumerate(("female", "nonbinary"))
}


def _arms(kind: str, values: Mapping[tuple[int, str], float]) -> list[Pair]:
    return [
        Pair(
            About("m", "plain", ("gender",), STEPS[f"c{c}.{kind}{i}"]), f"c{c}", f"c{c}.{kind}{i}",
            values[c, f"{kind}{i}"] - values[c, "o"],
        )
        for c in range(20)
        for i in range(2)
    ]  # fmt: skip


def test_noise_alone_makes_few_claims_about_scores() -> None:
    false = 0
    for number in range(RUNS):
        rng = np.random.default_rng(number)
        level = rng.normal(0, 5, 20)
        values = {
            (c, name): float((level[c] + rng.standard_t(3, 3)).mean())
            for c in range(20)
            for name in ("o", "v0", "v1", "p0", "p1")
        }
        found = text_pairs.differences(
            _arms("v", values), _arms("p", values) if number % 2 else [],
            metric="sentiment", rng=rng, resamples=499,
        )  # fmt: skip
        false += any(d.verdict == "shown" for d in text_pairs.decide(found))
    assert false <= MOST


def test_noise_alone_makes_few_claims_about_texts() -> None:
    words = [f"w{i}" for i in range(30)]
    oracle = GenerationOracle()

    def side(rng: np.random.Generator) -> Side:
        texts = tuple(" ".join(rng.choice(words, size=rng.integers(6, 14))) for _ in range(3))
        return Side(texts=texts, asked=3, came=3, refused=0)

    rng = np.random.default_rng(1)
    pool = []  # cached pairs of sides: 400 originals with two variants each
    for _ in range(400):
        original = side(rng)
        pool.append([oracle.compare(original, side(rng)) for _ in range(2)])
    false = 0
    for number in range(RUNS):
        chosen = rng.choice(len(pool), size=20, replace=False)
        metrics = Metrics(Observations())
        for c, at in enumerate(chosen):
            for i in range(2):
                row = metrics.table.shape(f"c{c}", shape(("gender",), *STEPS[f"c{c}.v{i}"]), f"c{c}.v{i}")
                metrics.add(row, "m", "plain", pool[at][i])
        rows = text_pairs.study(metrics, deterministic={"m": False}, seed=number, resamples=499)
        false += any(d.verdict == "shown" for d in text_pairs.decide(rows))
    assert false <= MOST
