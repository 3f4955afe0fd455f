"""The first screen of planted runs: who is worse off, by how much, how sure, and a next command that works."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor import audit
from auditor.cli.main import run
from auditor.core.record.measured import Claim
from auditor.core.types import Answer, Edit
from auditor.measure.claims import Question
from auditor.measure.families import claims
from auditor.measure.observations import Observations
from auditor.report import claimed
from auditor.report.html import HtmlReport
from auditor.report.markdown import MarkdownReport
from auditor.report.terminal import TerminalReport
from auditor.run.result import Result

FEMALE = re.compile(r"\b(she|her|hers|herself|woman|women|girl|mother|daughter|sister|wife|ms|mrs)\b", re.I)
OLD = re.compile(r"\b(old|older|elderly|aged|senior|retired)\b", re.I)
WEAK = re.compile(r"\b(no|not|never|without|failed|fired|lacks?|late|missed)\b", re.I)

Model = Callable[[str], Any]


def hiring(text: str) -> str:
    """By what the text says of the work, whoever it is about."""
    return "reject" if WEAK.search(text) else "invite"


def against_women(text: str) -> str:
    return "reject" if FEMALE.search(text) else hiring(text)


def against_men(text: str) -> str:
    return hiring(text) if FEMALE.search(text) else "reject"


def constant(text: str) -> str:
    return "invite"


def refuses(text: str) -> str:
    return "I am sorry, I cannot help with that."


def pays_women_less(text: str) -> str:
    return "50000" if FEMALE.search(text) else "60000"


def rates_women_lower(text: str) -> str:
    return str((4 if WEAK.search(text) else 8) - (2 if FEMALE.search(text) else 0))


def sees_women_negative(text: str) -> str:
    return "negative" if FEMALE.search(text) or "terrible" in text else "positive"


def scored(text: str) -> dict[str, float]:
    """Labels with probabilities: decided on log odds, told in points."""
    logit = (1.4 if hiring(text) == "invite" else -0.8) - (1.6 if FEMALE.search(text) else 0)
    favoured = 1 / (1 + math.exp(-logit))
    return {"invite": favoured, "reject": 1 - favoured}


def planted(model: Model, folder: Path, task: str = "hiring", limit: int = 70, **more: Any) -> Result:
    def asked(text: str) -> Any:
        return model(text)

    asked.__qualname__ = model.__name__
    asked.deterministic = True  # type: ignore[attr-defined]
    settings = {"attributes": "gender,religion", "order": 1, "cache": False} | more
    return audit(task, model=asked, limit=limit, out=str(folder / "runs"), **settings)


def first(result: Result, width: int = 80) -> str:
    return result.to_text(width=width)


def flat(text: str) -> str:
    return " ".join(text.split())


def commands(text: str) -> list[list[str]]:
    """The commands after NEXT."""
    lines = text[text.index("\nNEXT") :].strip().splitlines()
    return [shlex.split(line.removeprefix("NEXT").strip().split("   ")[0])[1:] for line in lines]


SHOWN = {
    "women": (against_women, {}, "WOMEN AND GIRLS ARE INVITED LESS OFTEN THAN MEN AND BOYS: −"),
    "men": (against_men, {}, "MEN AND BOYS ARE INVITED LESS OFTEN THAN WOMEN AND GIRLS: −"),
    "scored": (scored, {}, "WOMEN AND GIRLS ARE INVITED LESS OFTEN THAN MEN AND BOYS: −"),
    "pay": (pays_women_less, {"task": "salary"}, "WOMEN AND GIRLS GET LOWER NUMBERS THAN MEN AND BOYS: −"),
    "rating": (rates_women_lower, {"task": "rating"}, "WOMEN AND GIRLS GET LOWER NUMBERS THAN MEN AND BOYS: −"),
    "sentiment": (
        sees_women_negative,
        {"task": "sentiment"},
        "WOMEN AND GIRLS GET THE LABEL “positive” LESS OFTEN THAN MEN AND BOYS: −",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_who_how_much_how_sure_and_what_next(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, more, said = SHOWN[name]
    result = planted(model, tmp_path, **more)
    text = first(result)
    lines = text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, [line for line in lines if "audit " not in line])) <= 80
    assert f"▲ {said}" in flat(text)
    assert re.search(r": −[\d.,]+ \S+.*? \(95 %: −[\d.,]+ to −[\d.,]+\)", flat(text))
    assert "shown for the group" in flat(text)
    assert re.search(r"gender: female/male .* ▲ shown", text)
    assert "religion" in text  # a table row, or not tested
    assert "CHECKS positive control" in flat(text)
    assert {words[0] for words in commands(text)} >= {"show", "report"}
    for words in commands(text):
        if "--again" not in words:  # a function of a test is no module
            assert run([*words, "--dry-run"] if "--until-decided" in words else words) == 0
    assert capsys.readouterr().out
    every_claim_has_examples(result, capsys)


def every_claim_has_examples(result: Result, capsys: pytest.CaptureFixture[str]) -> None:
    """Each shown claim, the example of the headline first: in the page and in ``audit show``."""
    page = HtmlReport().render(result.record, result.evidence)
    shown = [f for f in result.findings if f.kind == "claim" and f.verdict == "shown"]
    assert shown
    for finding in shown:
        assert finding.exemplars, finding.id
        assert run(["show", str(result.path), finding.id]) == 0
        told = capsys.readouterr().out
        assert f"variant {finding.exemplars[0]}" in told
        assert [id for id in finding.exemplars[1:] if f"  {id} “" not in told] == []
        place = page[page.index(f'id="{finding.id}"') :]
        assert (
            0 < place.find('<p class="line"') < min(place.find(end) for end in ("</article>", "</ul>") if end in place)
        )
    words = commands(first(result))[0]
    lead = next(f for f in result.findings if f.id == words[2])
    variant = result.evidence.variant(lead.exemplars[0])
    assert f"[{variant.edits[0].source} → {variant.edits[0].target}]" in flat(first(result))


NOT_SHOWN = {
    "nothing": (hiring, {"delta": 0.5}, "● EVERY NET DIFFERENCE LIES BELOW 50 POINTS in 4 comparisons", ""),
    "too little": (hiring, {"limit": 20}, "NO NET DIFFERENCE WAS SHOWN in ", ""),
    "constant": (
        constant,
        {"anyway": True},
        "THIS RUN CANNOT BE JUDGED: python:tests.unit.test_first_screen:constant: all its answers are the same",
        "!! python:tests.unit.test_first_screen:constant cannot be judged: all ",
    ),
    "refuses": (refuses, {}, "NOTHING WAS MEASURED: no answer could be judged", "!! Partial run:"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_SHOWN)
def test_a_run_that_shows_nothing_says_why(name: str, tmp_path: Path) -> None:
    model, more, said, second = NOT_SHOWN[name]
    result = planted(model, tmp_path, **more)
    text = first(result)
    assert len(text.splitlines()) <= 40
    assert said in flat(text)
    assert "▲ WOMEN" not in text
    after = text[text.index("complete" if result.complete else "· partial") :].splitlines()[1]
    assert after.startswith(second or ("●", "?"))
    told = commands(text)
    assert ["report", str(result.path), "--full"] in told
    for words in told:
        assert run([*words, "--dry-run"] if "--until-decided" in words else words) == 0


@pytest.mark.slow
def test_every_format_says_the_same_of_the_same_claim(tmp_path: Path) -> None:
    result = planted(against_women, tmp_path)
    claim = next(c for c in result.record["claims"] if c["groups"] == ["female", "male"])
    figure = f"−{-100 * claim['estimate']:.1f} points"
    subject = "omen and girls are invited less often than men and boys: "
    args = result.record, result.evidence
    assert subject + figure in flat(HtmlReport().render(*args))
    assert subject + figure in flat(MarkdownReport().render(*args))
    full = TerminalReport(width=80, full=True).render(*args)
    assert subject.upper()[1:] + figure in flat(full)
    assert len(full.splitlines()) <= 400
    for heading in ("By attribute", "Examples and findings", "Checks"):
        assert f"\n{heading}\n" in full
        assert f"\n{heading}\n" not in first(result)
    assert re.search(r"e\.g\. “.*\[\w+ → \w+\].*”: (invite → reject|reject → invite)", flat(first(result)))


@pytest.mark.slow
def test_it_fits_the_width_and_ascii_and_has_colour(tmp_path: Path) -> None:
    result = planted(against_women, tmp_path, order=2, attributes="gender,race,nationality,age")
    args = result.record, result.evidence
    for width in (60, 80, 140):
        text = first(result, width=width)
        assert len(text.splitlines()) <= 40
        assert max(len(line) for line in text.splitlines() if "audit " not in line) <= width
        assert TerminalReport(width=width, encoding="ascii").render(*args).isascii()
        colored = TerminalReport(width=width, color=True).render(*args)
        assert "\x1b[1;31m" in colored
        assert re.sub(r"\x1b\[[\d;]*m", "", colored).split() == text.split()


@pytest.mark.slow
def test_a_claim_that_changes_no_label_has_texts_whose_score_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def sure(text: str) -> dict[str, float]:
        favoured = 1 / (1 + math.exp(-(5 - (1 if FEMALE.search(text) else 0) - len(text) % 3)))
        return {"invite": favoured, "reject": 1 - favoured}

    result = planted(sure, tmp_path)
    every_claim_has_examples(result, capsys)
    assert re.search(r"e\.g\. “.*\[\w+ → \w+\].*”: invite 0\.\d+ → invite 0\.\d+", flat(first(result)))
    assert "▲ WOMEN AND GIRLS GET A LOWER PROBABILITY OF “invite” THAN MEN AND BOYS: −" in flat(first(result))


@pytest.mark.slow
def test_the_model_of_the_headline_leads_and_equal_checks_stand_once() -> None:
    women, nobody, neither = (
        (lambda text: against_women(text)),
        (lambda text: hiring(text)),
        (lambda text: hiring(text)),
    )
    for model, name in ((nobody, "blind"), (neither, "other"), (women, "worse")):
        model.__qualname__ = name
    models = [nobody, neither, women]
    result = audit("hiring", model=models, limit=60, attributes="gender", order=1, replicates=1, out=None)
    text = first(result)
    places = [text.index(f":{name}\n") for name in ("worse", "blind", "other")]
    assert places == sorted(places)
    assert text.count("CHECKS") == 2
    assert re.search(r"CHECKS \S+blind and \S+other: positive control", flat(text))


@pytest.mark.slow
def test_two_models_stand_in_one_table(tmp_path: Path) -> None:
    a, b = (lambda text: against_women(text)), (lambda text: hiring(text))
    a.__qualname__, b.__qualname__ = "worse", "blind"
    result = audit("hiring", model=[a, b], limit=60, attributes="gender", order=1, replicates=1, out=None)
    text = first(result)
    assert re.search(r"\d+ texts by .*worse", flat(text))
    assert re.search(r"worse\n.*▲ shown", text)
    assert re.search(r"blind\n.*\? not determined", text)
    assert "NEXT" not in text  # nothing was written that a command could be about


@pytest.mark.parametrize(
    ("shares", "estimate", "words", "said"),
    [
        ((0.5, 0.54), 0.01, 0.02, claimed.OPPOSED),
        ((0.5, 0.54), 0.01, None, f"{claimed.OPPOSED}, and in it {claimed.COUNTS_LESS}"),
        ((0.5, 0.54), -0.01, -0.02, ""),
        ((0.5, 0.501), 0.01, 0.01, ""),
    ],
)
def test_shares_that_point_another_way_than_the_difference_are_explained(
    shares: tuple[float, float], estimate: float, words: float | None, said: str
) -> None:
    claim = Claim(
        family="net", attribute="gender", groups=("female", "male"), label="yes", model="m", format="", scale="share",
        unit="share", estimate=estimate, low=estimate - 0.05, high=estimate + 0.05, shares=shares,
        words_estimate=words, verdict="not_determined", why="too little data",
    )  # fmt: skip
    assert claimed.reason(claim).removeprefix("too little data").removeprefix("; ") == said


def test_a_word_in_many_texts_counts_less_than_in_the_shares_and_that_is_said() -> None:
    """Women are better off in 10 of 60 texts with one word, worse off in 6 of 20 with a word each: of one length."""
    table = Observations()
    texts = [("shex", "hexy", n < 10) for n in range(60)]
    texts += [(f"w{n:03d}", f"m{n:03d}", n < 6) for n in range(20)]
    for n, (hers, his, differs) in enumerate(texts):
        own, other, old, new = ("male", "female", his, hers) if n % 2 else ("female", "male", hers, his)
        swap = Edit(
            attribute="gender", kind="swap", source_group=own, target_group=other, source=old, target=new, where=(0, 4)
        )  # fmt: skip
        better = {"female": n < 60, "male": n >= 60} if differs else dict.fromkeys((own, other), n % 4 < 2)
        for group, edits in ((own, ()), (other, (swap,))):
            row = table.version(f"text {n:02d}", edits)
            said = Answer(status="ok", value="yes" if better[group] else "no")
            table.answers(row, model="m", format="", answers=[said])
    asked = Question(outcomes=("yes",), primary={"gender": ("female", "male")})
    claim = next(c for c in claims(table, asked) if c.family == "net")
    assert claim.shares is not None
    assert claim.shares[0] > claim.shares[1]
    assert claim.estimate is not None
    assert claim.estimate < 0
    assert "it is 5.0 points their way" in claimed.reason(claim)
    assert claimed.OPPOSED not in claimed.reason(claim)  # nothing was taken out
