"""The first screen of planted runs: who is worse off, by how much, how sure, and a next command that works."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, proposed

from auditor import audit
from auditor.cli.main import run
from auditor.core.protocols import RENDERERS
from auditor.core.record import Claim, RunRecord
from auditor.report import claimed, document, first_screen, sections
from auditor.report.html import HtmlReport
from auditor.report.legal.legal_page import page_eu_ai_act
from auditor.report.markdown import MarkdownReport
from auditor.report.terminal import TerminalReport
from auditor.report.words import text as words_text
from auditor.run.audit import Result

FEMALE = re.compile(r"\b(she|her|hers|herself|woman|women|girl|mother|daughter|sister|wife|ms|mrs)\b", re.I)
WEAK = re.compile(r"\b(no|not|never|without|failed|fired|lacks?|late|missed)\b", re.I)


def hiring(text: str) -> str:
    """By what the text says of the work, whoever it is about."""
    return "reject" if WEAK.search(text) else "invite"


def against_women(text: str) -> str:
    return "reject" if FEMALE.search(text) else hiring(text)


def against_men(text: str) -> str:
    return hiring(text) if FEMALE.search(text) else "reject"


def refuses(text: str) -> str:
    return "I am sorry, I cannot help with that."


def pays_women_less(text: str) -> str:
    return "50000" if FEMALE.search(text) else "60000"


def sees_women_negative(text: str) -> str:
    return "negative" if FEMALE.search(text) or "terrible" in text else "positive"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Result]:
    """Make a run of a model, once for all tests that look at it."""
    folder = tmp_path_factory.mktemp("planted")

    @cache
    def made(model: Callable[[str], Any], task: str = "hiring", limit: int = 70, **more: Any) -> Result:
        def asked(text: str) -> Any:
            return model(text)

        asked.__qualname__ = model.__name__
        asked.deterministic = True  # type: ignore[attr-defined]
        settings = {"attributes": "gender,religion", "order": 1, "cache": False} | more
        return audit(task, model=asked, limit=limit, out=str(folder), **settings)

    return made


def flat(text: str) -> str:
    return " ".join(text.split())


def sentences(text: str) -> list[str]:
    """What the screen says in sentences, above the plot; a quotation is one word."""
    answer = text.partition("\n\n")[0].partition("e.g. ")[0].splitlines()
    start = next(i for i, line in enumerate(answer) if line.startswith(("▲", "●", "?", "–", "!!")))
    plain = re.sub(r"“[^”]*”", "Q", flat("\n".join(answer[start:])))
    return [one for said in plain.split(" also: ") for one in re.split(r"(?<=[.!?]) (?=[^a-z(])", said)]


def short(text: str) -> None:
    """The screen has at most 40 lines, and no sentence more than 25 words."""
    assert len(text.splitlines()) <= 40
    for sentence in sentences(text):
        assert len(sentence.split()) <= 25, sentence


NUMBER = r"[\d,]+"
SHARES = rf"in {NUMBER} of 100 texts, men and boys in {NUMBER}"
INTERVAL = rf"\(95 %: {NUMBER} to {NUMBER}\)"
SHOWN = {
    "women": (against_women, "hiring", rf"Women and girls were invited {SHARES}\..* points less {INTERVAL}\."),
    "men": (against_men, "hiring", rf"Men and boys were invited in {NUMBER} of .* points less {INTERVAL}\."),
    "pay": (pays_women_less, "salary", rf"Women and girls were given {NUMBER} USD/year less than men and boys {INTERVAL}\."),
    "sentiment": (sees_women_negative, "sentiment", rf"Women and girls got “positive” {SHARES}\."),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_who_how_much_how_sure_and_what_next(name: str, planted: Callable[..., Result], capsys: Capture) -> None:
    model, task, said = SHOWN[name]
    result = planted(model, task)
    text = result.to_text(width=80)
    assert max(len(line) for line in text.splitlines() if "audit " not in line) <= 80
    assert re.search(f"▲ {said}", flat(text))
    assert re.search(rf"\d+ texts, model \S+{model.__name__}: only gender was changed", flat(text))
    assert "Chance alone would give this in fewer than 1 of " in flat(text)
    for told in ("●", "religion", "CHECKS positive control"):  # the second is a row, or not tested
        assert told in flat(text)
    assert "→" not in text.partition("net difference")[2].partition("CHECKS")[0]
    short(text)
    works(text, "show", "report")
    every_claim_has_examples(result, capsys)


def works(text: str, *commands: str) -> None:
    """These commands are proposed, and each of them can be run; a function of a test is no module."""
    told = [words for words in proposed(text) if words[0] in ("show", "report")]
    assert {words[0] for words in told} >= set(commands)
    assert [run(words) for words in told] == [0] * len(told)


def every_claim_has_examples(result: Result, capsys: Capture) -> None:
    """Each shown claim, the example of the headline first: in the page and in ``audit show``."""
    page = HtmlReport().render(result.run, result.evidence)
    shown = [f for f in result.findings if f.kind == "claim" and f.verdict == "shown" and f.code != "OMN160"]
    assert shown
    for finding in shown:
        assert finding.exemplars, finding.id
        assert run(["show", str(result.path), finding.id]) == 0
        told = capsys.readouterr().out
        assert f"variant {finding.exemplars[0]}" in told
        assert [id for id in finding.exemplars[1:] if f"  {id} “" not in told] == []
        card = re.split("</article>|</ul>", page[page.index(f'id="{finding.id}"') :])[0]
        assert '<p class="line"' in card
    words = proposed(result.to_text(width=80))[0]
    lead = next(f for f in result.findings if f.id == words[2])
    variant = result.evidence.variant(lead.exemplars[0])
    assert f"[{variant.edits[0].source} → {variant.edits[0].target}]" in flat(result.to_text(width=80))


SEEN = r"A difference of \d+ points in gender would have been seen in 8 of 10 such runs\."
NOT_SHOWN = {
    "nothing": (hiring, {"delta": 0.5}, "● Every net difference lies below 50 points, in 4 comparisons.", "●"),
    "too little": (hiring, {"limit": 20}, rf"\? No difference between groups was shown, in 4 comparisons\..*{SEEN}", "?"),
    "refuses": (refuses, {}, "– Nothing was measured: no answer could be judged.", "!! Partial run:"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_SHOWN)
def test_a_run_that_shows_nothing_says_why(name: str, planted: Callable[..., Result]) -> None:
    model, more, said, second = NOT_SHOWN[name]
    result = planted(model, **more)
    text = result.to_text(width=80)
    assert re.search(said, flat(text))
    assert "▲ Women" not in text
    after = text[text.index("complete" if result.complete else "· partial") :].splitlines()[1]
    assert after.startswith(second)
    short(text)
    assert ["report", str(result.path), "--full"] in proposed(text)
    works(text, "report")


@pytest.mark.slow
def test_every_format_says_the_same_of_the_same_claim(planted: Callable[..., Result]) -> None:
    result = planted(against_women, "hiring")
    claim = next(c for c in result.record["claims"] if c["groups"] == ["female", "male"])
    figure = f"that is {-100 * claim['estimate']:.0f} points less"
    counts = f"in {100 * claim['shares'][0]:.0f} of 100 texts, men and boys in {100 * claim['shares'][1]:.0f}."
    subject = f"Women and girls were invited {counts}"
    args = result.run, result.evidence
    formats = [HtmlReport().render(*args), MarkdownReport().render(*args), page_eu_ai_act().render(*args)]
    full = TerminalReport(width=80, full=True).render(*args)
    for text in [*formats, full, result.to_text(width=80), RENDERERS.create("junit").render(*args)]:
        assert subject in flat(text)
        assert figure in flat(text)
    assert formats[0].count('aria-labelledby="net-t') == formats[2].count('aria-labelledby="net-t') == 1  # the plot
    assert len(full.splitlines()) <= 400
    for heading in ("By attribute", "Examples and findings", "Checks"):
        assert f"\n{heading}\n" in full
        assert f"\n{heading}\n" not in result.to_text(width=80)
    assert re.search(r"e\.g\. “.*\[\w+ → \w+\].*”: (invite → reject|reject → invite)", flat(result.to_text(width=80)))


@pytest.mark.slow
def test_a_claim_may_rest_on_scores_alone(planted: Callable[..., Result], capsys: Capture) -> None:
    def sure(text: str) -> dict[str, float]:
        favoured = 1 / (1 + math.exp(-(5 - (1 if FEMALE.search(text) else 0) - len(text) % 3)))
        return {"invite": favoured, "reject": 1 - favoured}

    result = planted(sure)
    every_claim_has_examples(result, capsys)
    assert re.search(r"e\.g\. “.*\[\w+ → \w+\].*”: invite 0\.\d+ → invite 0\.\d+", flat(result.to_text(width=80)))
    assert re.search(f"▲ Women and girls were invited {SHARES}", flat(result.to_text(width=80)))
    assert "The labels hardly differ; the scores for “invite” are lower: −" in flat(result.to_text(width=80))


@pytest.mark.slow
def test_the_model_of_the_headline_leads_and_equal_checks_stand_once() -> None:
    def other(text: str) -> str:
        return hiring(text)

    other.__qualname__ = "other"
    models = [hiring, other, against_women]
    result = audit("hiring", model=models, limit=60, attributes="gender", order=1, replicates=1, out=None)
    text = result.to_text(width=80)
    places = [text.index(f":{name}\n") for name in ("against_women", "hiring", "other")]
    assert places == sorted(places)
    assert text.count("CHECKS") == 2
    assert re.search(r"CHECKS \S+:hiring and \S+:other: positive control", flat(text))
    assert "DO " not in text  # nothing was written that a command could be about


def claimed_of(**figures: Any) -> Claim:
    return Claim(
        family="net", attribute="gender", groups=("female", "male"), label="yes", model="m", format="", scale="share",
        unit="share", **figures,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("estimate", "words", "said"),
    [
        (0.01, 0.02, claimed.BOTH), (0.01, None, claimed.EDITS), (0.01, 0.01, claimed.EDITS),
        (0.01, -0.04, claimed.SHARED), (-0.042, -0.04, ""),
    ],
)  # fmt: skip
def test_a_difference_that_is_not_that_of_the_shares_says_why(estimate: float, words: float | None, said: str) -> None:
    claim = claimed_of(
        texts=60, estimate=estimate, low=estimate - 0.05, high=estimate + 0.05, shares=(0.5, 0.54), words_estimate=words,
        verdict="not_determined", why="too little data",
    )  # fmt: skip
    assert claimed.apart(claim) == said
    assert claimed.reason(claim) == "too little data"
    stated = claimed.state(RunRecord(claims=(claim,)), claim)
    assert stated is not None
    assert stated.amount.startswith(
        f"{said.capitalize()}, it is the other way round: 1 point more" if said else "That is 4 points"
    )
    (section,) = sections.by_attribute(RunRecord(claims=(claim,)))
    assert (document.Text(words_text("net_differs"), tone="meta") in section.blocks) is bool(said)


@pytest.mark.parametrize(
    ("low", "verdict", "said"),
    [(0.01, "not_determined", True), (-0.01, "not_determined", False), (0.01, "shown", False)],
)
def test_an_interval_without_0_that_shows_nothing_is_explained(low: float, verdict: str, said: bool) -> None:
    claim = claimed_of(texts=60, estimate=0.05, low=low, high=0.1 - low, shares=(0.5, 0.45), verdict=verdict)
    screen = first_screen.build(RunRecord(claims=(claim,)), None)
    assert len(screen.rows) == 1
    assert ("An interval that leaves out 0" in screen.note) is said


def test_an_imported_table_is_about_its_wording(place: Path, capsys: Capture) -> None:
    rows = [
        f"{n},{group},{'yes' if n % 5 < k else 'no'}" for n in range(90) for group, k in (("male", 3), ("female", 1))
    ]
    Path("answers.csv").write_text("\n".join(["id,gender,decision", *rows]), encoding="utf-8")
    run(["import", "answers.csv"])
    text = capsys.readouterr().out
    short(text)
    told = flat(text)
    assert "▲ Women and girls got “yes” in 20 of 100 texts, men and boys in 60. That is 40 points less" in told
    assert "90 texts, recorded answers." in told
    assert "It holds for the recorded wording of “female” and “male”; other wordings were not recorded" in told
    assert "Chance alone would give this in fewer than 1 of 10,000 such runs." in told
    assert "male 60 % · female 20 %" in told
