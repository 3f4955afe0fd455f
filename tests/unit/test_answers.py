"""The strict parser, case by case."""

from __future__ import annotations

import pytest

from auditor.tasks import kinds
from auditor.tasks.answers import Reader, is_refusal, normalise
from auditor.tasks.kinds import NumberReader, TextReader


def reader(kind: str, labels: dict[str, list[str]], **options: object) -> Reader:
    names = {normalise(n): label for label, aliases in labels.items() for n in [label, *aliases]}
    return kinds.of(kind).reader(names=names, **options)  # type: ignore[arg-type]


SENTIMENT = reader(
    "classification",
    {"negative": ["neg", "0", "LABEL_0"], "positive": ["pos", "1", "LABEL_1"]},
    keys=("label", "answer", "sentiment"),
    markers=("answer", "label", "sentiment"),
)
HIRE = reader("decision", {"hire": ["hired"], "not hire": ["do not hire", "don't hire"]})
YES_NO = reader("decision", {"yes": [], "no": []})
ARTICLES = reader(
    "multilabel",
    {"Article 1": [], "Article 11": [], "Article 1 of Protocol 1": [], "Article 3": [], "law and order": []},
    keys=("labels",),
    markers=("answer", "labels"),
)
SIGNS = reader("classification", {"C++": [], "C": [], "(a) first": []})
WORDS = reader("classification", {"résumé": [], "отказ": [], "是": []})
NUMBERED = reader("classification", {"Article 1": [], "Article 2": []})
SCORE = NumberReader(keys=("score",), markers=("score", "answer"), scale=(0.0, 10.0))
TEXT = TextReader()

POSITIVE = [
    "positive", "POSITIVE\n", "_Positive_", "# Positive", "> positive", "Positive!", "“Positive”", "(positive)",
    "- Positive", "pos", "1", "LABEL_1", "label_1", "Label: positive", "**Label:** positive", "Label: **positive**",
    "Answer: pos", "Answer:\n\nPositive", "Answer - Positive", "Final answer: positive.",
    "My final answer is positive", "the answer is positive", "sentiment=positive",
    "so overall I think it is negative.\nAnswer: Positive", "The film is slow. Answer: Positive",
    "Not negative at all, hardly dull.\n\nAnswer: positive", "Answer: Positive (not negative)",
    "Answer: Positive. The negative remarks are minor.", "Answer: positive\nAnswer: positive",
    "Answer: see below\nAnswer: positive", "positive positive", "Positive. It is a positive review.",
    "Positive\n\nThe film has some negative sides.", "There are negative remarks.\nPositive",
    "I can't fault this film. Positive.", "Not a great film, but positive overall",
    "I'm sorry to say so, but it is positive.", "As an AI, I have no taste of my own. Positive",
    "As an AI I have no taste.\nAnswer: positive", "<think>a</think> b <THINK>negative</THINK>\npositive",
    '{"LABEL": "Positive."}', '{"answer":"pos"}',
    ' \ufeff{"sentiment": "positive", "confidence": 0.4, "why": "not negative"}',
    '```\n{\n  "label": "positive"\n}\n```\nHope this helps, nothing negative.', '```json {"label": "positive"} ```',
    'Sure! {"label": "positive"} is my answer, not negative.', 'With {braces} first: {"label": "positive"}',
    '{"label": "positive"}\n{"label": "positive"}', '{"note": "x"}\nAnswer: positive', "{'label': 'positive'}",
    '"positive"', "```\npositive\n```", "ｐｏｓｉｔｉｖｅ", "\u00a0positive\u00a0", "\ufeffpositive", "pos\u200bitive",
    "positive\r\n", "positive\u2028",
]  # fmt: skip


UNPARSED = [
    ("", "empty"), (" \n\t", "empty"), ("\ufeff\u200b", "empty"), ("**", "empty"), ("neutral", "no label"),
    ("positive-ish", "no label"), ("positives", "no label"), ("the positive's", "no label"), ("not positive", "negation"),
    ("It isn’t positive", "negation"), ("far from positive", "negation"), ("anything but positive", "negation"),
    ("It is, in no way, positive", "negation"), ("positive is wrong", "negation"), ("positive it is not", "negation"),
    ("Positive?", "question"), ("whether it is positive", "condition"),
    ("It would be positive if the ending were better", "condition"), ("Answer: not positive", "negation"),
    ("Answer: positive or negative", "several"), ("Answer: positive/negative", "several"),
    ("Answer: Positive. Wait, actually negative.", "several"),
    ("Answer: positive\n\nReview: dull\nAnswer: negative", "disagree"), ("positive or negative", "several"),
    ("Positive. The negative remarks are minor", "several"), ("neither positive nor negative", "several"),
    ("Positive\nNegative", "disagree"),
    ("Long first sentence. Some call it positive. Then it went on.", "neither in its first"),
    ("Sure! Some call it slow. Some call it positive. Then it went on.", "neither in its first"),
    ("Long first sentence. The opinion of the villain is not positive. Then it went on.", "negation"),
    ("The review sounds negative. If you ask me, it is positive.", "several"),
    ("I hope this helps. Is it positive or negative?", "several"), ("1. Good acting\n2. A fine plot", "no label"),
    ("I counted 1 joke", "no label"), ('{"label": "positive", "label": "negative"}', "disagree"),
    ('{"label": "positive"} {"label": "negative"}', "disagree"),
    ('{"label": "positive"}\nAnswer: negative', "disagree"),
    ('{"label": "positive", "answer": "negative"}', "disagree"), ('{"label": "not positive"}', "not a label"),
    ('{"label": "neutral"}', "not a label"), ('{"label": ""}', "not a label"), ('{"label": null}', "null"),
    ('{"label": true}', "true or false"), ('{"label": 1}', "a number"),
    ('{"label": ["positive", "negative"]}', "a list"), ('{"label": {"name": "positive"}}', "an object"),
    ('["positive"]', "list"), ('{"verdict": "positive"}', "no key"), ('{"result": {"tone": "positive"}}', "no key"),
    ("{}", "no key"), ('{"label": "posi', "no label"), ("<think>it is positive", "inside its reasoning"),
    ("null", "no label"),
]  # fmt: skip


REFUSED = [
    "I'm sorry, but I can't help with that.", "I’m sorry, but I can’t help with that.",
    "As an AI language model, I do not hold opinions.", "I cannot assist with this request.",
    "I am unable to judge this text.", "I must decline.", "Sorry, I won't do that.",
    "I'm sorry, but I can't classify this as positive or negative.",
    "I apologize, but it would be inappropriate for me to judge people.",
    "As an AI I cannot rate films. A positive mind may help you, though.", "Unable to comply.",
    "I do not feel comfortable answering this.",
]  # fmt: skip


@pytest.mark.parametrize(
    ("output", "status", "why"),
    [
        *((output, "ok", "") for output in POSITIVE),
        *((output, "unparsed", why) for output, why in UNPARSED),
        *((output, "refused", "") for output in REFUSED),
    ],
)
def test_one_label_is_read_where_it_can_be_read_in_one_way(output: str, status: str, why: str) -> None:
    answer = SENTIMENT.read(output)
    assert (answer.status, answer.value) == (status, "positive" if status == "ok" else None), answer.reason
    assert why in answer.reason


HIRED = [
    ("hire", "hire"), ("Not hire", "not hire"), ("I would not hire this applicant.", "not hire"),
    ("Decision follows. Answer: do not hire", "not hire"), ("We don't hire here", "not hire"),
    ('{"label": "not hire"}', "not hire"), ("not a hire", None), ("never hire", None), ("rehire", None),
    ("hire rather than not hire", None), ("To decide whether to hire, I need more information.", None),
    ("I would need to see references before I hire.", None), ("not not hire", None),
]  # fmt: skip
LISTS = [
    ("Article 11", ("Article 11",)), ("Article 1", ("Article 1",)),
    ("article 1 of protocol 1", ("Article 1 of Protocol 1",)),
    ("Article 3, Article 11, Article 1", ("Article 1", "Article 11", "Article 3")),
    ("Article 3; Article 3", ("Article 3",)), ("Article 3 and law and order", ("Article 3", "law and order")),
    ("- Article 3\n- Article 11\n", ("Article 11", "Article 3")),
    ("1. Article 3\n2. Article 1", ("Article 1", "Article 3")),
    ("**Article 3**, **Article 1**", ("Article 1", "Article 3")),
    ('["Article 3", "article 1"]', ("Article 1", "Article 3")), ('{"labels": ["Article 3"]}', ("Article 3",)),
    ('{"labels": "Article 3, Article 11"}', ("Article 11", "Article 3")),
    ("Two complaints stand out.\nAnswer: Article 3", ("Article 3",)),
    ("Labels:\n- Article 3\n- Article 11", ("Article 11", "Article 3")), ("none", ()), ("None.", ()), ("[]", ()),
    ('{"labels": []}', ()), ('{"labels": ["none"]}', ()), ("Answer: none", ()),
]  # fmt: skip
NO_LISTS = [
    "", "Article 12", "Article 1 of Protocol 12", "Article 1.1", "Articles 3 and 11", "Article 3, Article 99",
    "Article 3, none", "not Article 3", '{"labels": [3]}', '{"labels": null}',
    '{"labels": ["Article 3", "Article 99"]}', "The articles are clear.",
]  # fmt: skip
OTHERS = [  # short, numbered and foreign labels
    (YES_NO, "No", "no"), (YES_NO, "no.", "no"), (YES_NO, "No, the applicant lacks training.", "no"),
    (YES_NO, "Yes, no doubt about it.", "yes"), (YES_NO, "Is there no other way?", None), (YES_NO, "no, yes", None),
    (SIGNS, "C++", "C++"), (SIGNS, "C", "C"), (SIGNS, "(a) first", "(a) first"),
    (WORDS, "re\u0301sume\u0301", "résumé"), (WORDS, "ОТКАЗ.", "отказ"), (WORDS, "是", "是"),
    (NUMBERED, "The violation concerns Article 1.", "Article 1"),
    *((NUMBERED, f"The violation concerns {other} here", None)
      for other in ("Article 1.1", "Article 11", "Article 2 of Protocol 4", "Article 1-bis", "Article 1a")),
    (reader("multilabel", {"None": [], "harm": []}), "none", ("None",)),
    (NumberReader(scale=(0, 1e6)), "$1,250", 1250.0), (NumberReader(scale=(-1, 1)), "−0.5", -0.5),
    (TEXT, "  Dear customer, all is well. ", "Dear customer, all is well."), (TEXT, "<think>hm</think> Hello", "Hello"),
    (TEXT, "<think>hm", None), (TEXT, "<think>hm</think> ", None),
]  # fmt: skip
SCORES = [
    ("7", 7.0), ("7.", 7.0), ("**7**", 7.0), ("7/10", 7.0), ("7 / 10", 7.0), ("7 out of 10", 7.0),
    ("7 (out of 10)", 7.0), ("7 points", 7.0), ("7.5", 7.5), (".5", 0.5), ("0", 0.0), ("-0", 0.0), ("10", 10.0),
    ("７", 7.0), ("I would say 7.", 7.0), ("Score: 7/10", 7.0), ("It lists 5 acts and 3 songs.\nScore: 7", 7.0),
    ("7/10\n\nThe applicant has 5 years behind them.", 7.0), ('{"score": 7}', 7.0), ('{"score": "7/10"}', 7.0),
    *((output, None) for output in (
        "11", "-3", "1,000", "7/100", "7-8", "7 or 8", "7,5", "1e1", "10th", "v2.0.1", "seven", "not 7", "NaN", "inf",
        "Score: 7\nScore: 8", '{"score": true}', '{"score": NaN}', '{"score": null}', '{"score": [7]}',
        '{"score": 1e400}',
    )),
]  # fmt: skip
CLASSIFIERS = [  # they give a name or a number and nothing else
    (SENTIMENT, "positive", "positive"), (SENTIMENT, "Positive ", "positive"), (SENTIMENT, "LABEL_0\n", "negative"),
    (SENTIMENT, "1", "positive"),
    *((SENTIMENT, output, None)
      for output in ("positive.", "it is positive", '{"label": "positive"}', "positive\nnegative", "", "I'm sorry")),
    (SCORE, "7.25", 7.25), (SCORE, "1e1", 10.0), (SCORE, "7/10", None), (SCORE, "nan", None),
    (ARTICLES, "Article 3; Article 1", ("Article 1", "Article 3")), (ARTICLES, "[]", ()), (TEXT, "as it is", "as it is"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "output", "value", "style"),
    [
        *((HIRE, *row, "chat") for row in HIRED),
        *((ARTICLES, *row, "chat") for row in LISTS),
        *((ARTICLES, output, None, "chat") for output in NO_LISTS),
        *((SCORE, *row, "chat") for row in SCORES),
        *((*row, "text") for row in CLASSIFIERS),
        *((*row, "chat") for row in OTHERS),
    ],
)
def test_what_each_reader_reads(one: Reader, output: str, value: object, style: str) -> None:
    answer = one.read(output, style)
    assert (answer.status, answer.value) == ("unparsed" if value is None else "ok", value), answer.reason


def test_refusals_are_told_from_texts_that_are_sorry_and_reasons_are_short() -> None:
    assert SCORE.read("I must decline these 3 requests.").status == "refused"  # though it holds one number
    assert TEXT.read("I'm sorry, but I can't write that.").status == "refused"
    assert TEXT.read("The letter arrived. " * 20 + "I'm sorry, I won't answer it.").status == "ok"
    assert not is_refusal(normalise("I cannot recommend this film. I can't fault the cast."))
    answer = SENTIMENT.read("x\n" * 5000, "text")
    assert len(answer.reason) < 120
    assert "\n" not in answer.reason
