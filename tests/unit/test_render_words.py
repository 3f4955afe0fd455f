from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from auditor.core.record import Counts, RunRecord, read
from auditor.core.record.base import PositiveControl, Unread
from auditor.core.record.measured import Bounds, Gold, Probability
from auditor.core.types import Edit, Estimate, Finding, Response, Variant
from auditor.report import cards, claimed, document, first_screen, markdown, outcome_report, run_checks, terminal, words
from auditor.report.legal import legal_page


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.0, 0.0, 0.2646, "0 % (0–26 %)"),
        (0.041, 0.024, 0.069, "4.1 % (2.4–6.9 %)"),
        (0.31, 0.248, 0.38, "31.0 % (24.8–38.0 %)"),
        (1.0, 0.74, 1.0, "100 % (74–100 %)"),
        (0.0004, 0.0001, 0.002, "0.04 % (0.01–0.20 %)"),
        (0.004, 0.0, 0.3, "0.4 % (0–30 %)"),  # never rounds to 0
        (0.06, 0.00003, 0.48, "6 % (<1–48 %)"),
        (0.9, 0.6, 0.9999, "90 % (60–>99 %)"),
        (0.998, 0.5, 1.0, "99.8 % (50–100 %)"),  # never rounds to 100
    ],
)
def test_interval_digits(value: float, low: float, high: float, text: str) -> None:
    assert words.interval(Bounds(value=value, low=low, high=high)) == text


def test_every_verdict_has_symbol_word_and_meaning() -> None:
    assert set(words.SYMBOLS) == set(words.VERDICTS) == set(words.named("verdicts"))


def test_claim_sentence_carries_figures_and_noise() -> None:
    rate = Estimate(value=0.041, low=0.024, high=0.069, n=1, level=0.95, n_skipped=0, method="")
    finding = Finding(
        id="F1", kind="claim", code="MUT101", model="m", attributes=("race",), verdict="shown", rate=rate, noise=rate
    )
    text = claimed.sentence(RunRecord(), finding)
    assert "4.1 % (95 %: 2.4–6.9 %) of the variants of 1 text when race changed" in text
    assert text.endswith("the same prompt asked again: 4.1 % (2.4–6.9 %).")
    assert claimed.sentence(RunRecord(), replace(finding, rate=None)) == "No rate was measured for race on m."


SAID: list[tuple[object, object]] = [
    (tuple(map(words.verdict, ("shown", "not_tested"))), ("▲ shown", "– not tested")),
    (words.percent(0.041), "4.1 %"),
    (words.percent(0.0), "0 %"),
    (words.figure(2_000_000), "2,000,000"),
    (words.figure(62.5), "62.5"),
    (words.cost(Counts(calls=9, cost_usd=1.25)), "USD 1.25"),
    (words.cost(Counts(calls=9, cost_usd=0.0269, reserved_usd=0.0266)), "USD 0.03 (0.0003 measured, 0.0266 reserved)"),
    (words.whose(read({"provenance": {"people": {"who": "subject", "subject": "the applicant"}}})), "the applicant"),
    (words.run_name(read({"id": "r1", "spec": {"out": "my runs"}})), "'my runs/r1'"),
    (claimed.signed(-5.12), "−5.1"),
    (claimed.signed(0.0), "0"),
    (claimed.signed(1234.5, 0), "+1,234"),
    (claimed.Effect(value=0.0012, low=0.0004, high=0.002, unit="log odds").text, "+0.0012 (+0.0004 to +0.0020)"),
    (claimed.Effect(value=0.0, low=-0.3, high=0.3, unit="points", scale=100).size("more"), "0 points (95 %: −30 to 30)"),
    (claimed.chance(0.003), "Chance alone would give this in fewer than 1 of 100 such runs."),
    (claimed.frequency(0.432, 0.6), ("43", "60", "100")),
    (claimed.frequency(0.0, 0.004), ("0", "4", "1,000")),
    (list(document.flat({"a": {"b": 1}, "c": None})), [("a.b", "1"), ("c", "not given")]),
    (legal_page.period("2026-05-01T09:00:41+00:00", "2026-05-01T09:12:00+00:00"), "2026-05-01 09:00:41 to 09:12:00 UTC"),
    (markdown.escape("[x](https://e.org) <b>|"), "\\[x\\](https<!-- -->://e.org) &lt;b&gt;\\|"),
    (tuple(map(markdown.block, ("- x", "1. x", "    x"))), ("\\- x", "1\\. x", "x")),
    (outcome_report.people("Black or African American / Female"), "Black women"),
    (outcome_report.people("Two or More Races"), "people of two or more races"),
    (tuple(map(outcome_report.limit, (0.4449, 0.7964, 0.80003))), ("0.44", "0.796", "0.80003")),
    (terminal.widths([["Category", "Rate"], ["Two or More Races", "45.1 (96/213)"]], 27), [12, 12]),
    (run_checks.compared(Probability(label="his")), "probability of 'his'"),
    (first_screen.raised(read({"stopped_by": "max_calls", "spec": {"max_calls": 500}})), " --max-calls 1000"),
    (run_checks.quoted("purple\nmonkey"), "“purple ⏎ monkey”"),
    (run_checks.dropped(3, 1), "3 rows without a text, 1 row with the text of an earlier one"),
    (run_checks.lost(Counts(refused=0, unparsed=2, failed=0, asked=3, cached=861)),
     "refused 0, unparsed 2, failed 0 of 864 (3 asked, 861 from the cache)"),
    (run_checks.golds(Gold(given=60, mapped=20, unmapped=40, examples=("5 - great",))),
     "20 of 60 gold labels name a label of the task; “5 - great” does not. The accuracy leaves them out."),
    (run_checks.offer(Unread(labels=("1 - bad", "5 - great"))),
     ' If these are its labels, name them all: --labels "1 - bad,5 - great" (and --favourable LABEL).'),
    (run_checks.pairs_said(PositiveControl(seen=True, differ=0, pairs=8, scale="log_odds", mean=1.2, low=0.4, high=2.0)),
     "+1.20 log odds within pairs (95 %: +0.40 to +2.00), 0 of 8 pairs answered differently"),
    (run_checks.to_try(["json", "graded"], ["graded"]),
     "Try another prompt format (--formats json), the graded scale (--formats graded) or a larger model."),
]  # fmt: skip


def test_figures_and_phrases() -> None:
    assert [said for said, _ in SAID] == [expected for _, expected in SAID]


def edit(old: str, new: str, at: int, kind: Any = "swap") -> Edit:
    return Edit(
        attribute="gender", kind=kind, source_group="a", target_group="b", source=old, target=new, where=(at, at + len(old))
    )  # fmt: skip


def changed(before: str, after: str, *edits: Edit) -> Any:
    """Both sides of a comparison, which hold the texts whole."""
    left, right = cards.compare(Variant(id="o", input=before), Variant(id="v", input=after, edits=edits))
    assert ("".join(s.text for s in left), "".join(s.text for s in right)) == (before, after)
    return left, right


def test_diff_marks_both_sides_and_repairs_or_words_where_edits_do_not_give_the_variant() -> None:
    left, right = changed("A man ran.", "An old man ran.", edit("A", "An", 0, "agreement"), edit("", " old", 1))
    assert [(s.text, s.attribute) for s in right if s.changed] == [("An", "repair"), (" old", "gender")]
    left, right = changed("The man, a man.", "The woman, a woman.", edit("man", "woman", 4))
    assert [s.text for s in left if s.changed] == ["man", "man"]
    assert [(s.text, s.attribute) for s in right if s.changed] == [("woman", ""), ("woman", "")]


def test_excerpt_keeps_every_change_and_says_what_is_left_out() -> None:
    filler = "word " * 400
    text = f"{filler}man {filler}he {filler}"
    _, right = changed(text, text.replace("man", "woman"), edit("man", "woman", text.index("man")))
    short = "".join(s.text for s in cards.excerpt(right))
    assert "woman" in short
    assert (short[0], short[-1]) == ("…", "…")
    assert len(short) < 400


def test_long_answers_are_compared_in_full_but_shown_short() -> None:
    two = [
        Response(variant_id="v", prompt_sha256="0", format="bare", replicate=n, output=f"because {n}\nyes")
        for n in range(2)
    ]
    tally = cards.tally(two)
    assert (tally.majority, tally.text) == (None, "… yes 2/2")
    assert cards.tally([]).text == "not asked"
