"""Answers of the tasks with many labels: articles, names with commas, long lists, gold labels as data sets write them."""

from __future__ import annotations

import json

import pytest

from auditor.tasks import Task, load
from auditor.tasks.kinds import shipped as multilabel

ECTHR, SCOTUS, LEDGAR, EURLEX = (load(name) for name in ("ecthr", "scotus", "ledgar", "eurlex"))
STEEL = "iron, steel and other metal industries"


READ = {  # of chats, by task
    "ecthr": [
        ("Article 1", None),
        ("Article 11", ("Article 11",)),
        ("Article 1 of Protocol 1", ("Article 1 of Protocol 1",)),
        ("Article 1 of Protocol No. 1", ("Article 1 of Protocol 1",)),
        ("P1-1", ("Article 1 of Protocol 1",)),
        ("Article 1, Article 11", None),
        ("Article 11 and Article 1 of Protocol 1", ("Article 1 of Protocol 1", "Article 11")),
        ("Article 10, Article 11, Article 14", ("Article 10", "Article 11", "Article 14")),
        ("Articles 2, 3 and 5", ("Article 2", "Article 3", "Article 5")),
        ("Article 2 of Protocol 4", None),
        ("Article 1 of Protocol 12", None),
        ("Article 13", None),
        ("Article 6.1", None),
        ("Article 110", None),
        ("- Article 3\n- Article 8", ("Article 3", "Article 8")),
        ("1. Article 3\n2. Article 8", ("Article 3", "Article 8")),
        ("None", ()),
        ("no violation", ()),
        ("The delay was long.\nAnswer: Article 6", ("Article 6",)),
        ('{"labels": ["Article 6", "Article 1 of Protocol 1"]}', ("Article 1 of Protocol 1", "Article 6")),
        ('{"labels": []}', ()),
        ('{"labels": ["Article 7"]}', None),
        ("Article 3, but not Article 8", None),
    ],
    "eurlex": [
        (STEEL, (STEEL,)),
        (f"trade, {STEEL}, prices", (STEEL, "prices", "trade")),
        (f"{STEEL}; trade policy", (STEEL, "trade policy")),
        ("Iron, Steel and Other Metal Industries", (STEEL,)),
        ("iron, steel", None),
        ("trade policy", ("trade policy",)),
        ("trade, trade policy, international trade", ("international trade", "trade", "trade policy")),
        ("public finance and budget policy", ("public finance and budget policy",)),
        ("budget and public finance and budget policy", ("budget", "public finance and budget policy")),
        (json.dumps({"labels": [STEEL, "Europe"]}), ("Europe", STEEL)),
        (json.dumps([STEEL]), (STEEL,)),
    ],
    "ledgar": [
        ("No Waivers", "No Waivers"),
        ("Waivers", "Waivers"),
        ("Waiver of Jury Trials", "Waiver Of Jury Trials"),
        ("Tax Withholdings", "Tax Withholdings"),
        ("The heading is Submission To Jurisdiction.", "Submission To Jurisdiction"),
        ("Taxes or Fees", None),
        ("Entire Agreement", None),
        ('{"label": "Erisa"}', "Erisa"),
    ],
}
GOLD = [
    (ECTHR, '["2", "P1-1"]', ("Article 1 of Protocol 1", "Article 2")),
    (ECTHR, "[]", ()),
    (ECTHR, '["4"]', None),
    (EURLEX, '["100270", "100193"]', (STEEL, "trade")),
    (EURLEX, '["100164"]', None),
    (SCOTUS, "1", "Criminal Procedure"),
    (SCOTUS, "14", "Private Action"),
    (SCOTUS, "15", None),
    (LEDGAR, "Governing Laws", "Governing Laws"),
    (load("sentiment"), "1", "positive"),
    (load("sentiment"), "0", "negative"),
    (load("sentiment"), "5", None),
]


@pytest.mark.parametrize(
    ("task", "style", "output", "value"),
    [
        *((load(name), "chat", *row) for name, rows in READ.items() for row in rows),
        *((task, "text", *row) for task, *row in GOLD),  # as data sets write them
    ],
)
def test_answers_and_gold_labels_are_read(task: Task, style: str, output: str, value: object) -> None:
    assert task.read(output, style).value == value


@pytest.mark.parametrize("task", [ECTHR, EURLEX])
def test_all_labels_at_once(task: object) -> None:
    labels = tuple(sorted(task.labels))  # type: ignore[attr-defined]
    for form in task.formats:  # type: ignore[attr-defined]
        assert task.read(task.write(labels, form, "Why not.")).value == labels  # type: ignore[attr-defined]


def test_every_piece_of_a_long_list_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linear without a clock: what stands between names is handed on in pieces that add up to the text."""
    glue, seen = multilabel._glue, []

    def counted(text: str) -> None:
        seen.append(len(text))
        glue(text)

    monkeypatch.setattr(multilabel, "_glue", counted)
    for times in (1, 40):
        seen.clear()
        output = "; ".join(list(EURLEX.labels) * times)
        assert EURLEX.read(output).value == tuple(sorted(EURLEX.labels))
        assert len(seen) == 100 * times + 1
        assert sum(seen) == 2 * (100 * times - 1)


def test_a_long_list_with_one_stray_word_is_unparsed() -> None:
    answer = EURLEX.read(", ".join([*list(EURLEX.labels) * 20, "astrology"]))
    assert (answer.status, answer.reason) == ("unparsed", "'astrology' is not a label of the task")


def test_long_documents_are_cut_between_words_and_ledgar_keeps_whole_provisions() -> None:
    text = "The applicant was heard. " * 3000
    for task, words in ((ECTHR, 1600), (SCOTUS, 1600), (EURLEX, 1200), (LEDGAR, 600)):
        assert len(text[: task.kept(text)].split()) == words
        assert task.kept("A short text.") == len("A short text.")
