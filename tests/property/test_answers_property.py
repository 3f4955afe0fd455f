"""The parser is total, linear, and never gives a label that the output does not name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from auditor.tasks.answers import Reader, normalise
from auditor.tasks.kinds import LabelSetReader, NumberReader, TextReader

NAMES = {"negative": "negative", "neg": "negative", "positive": "positive", "pos": "positive", "0": "negative"}
KINDS = [
    Reader(names=NAMES),
    Reader(names={"hire": "hire", "not hire": "not hire", "no": "not hire"}),
    LabelSetReader(names={"article 1": "Article 1", "article 11": "Article 11"}),
    NumberReader(scale=(0.0, 10.0)),
    TextReader(),
]
LABELS = st.sampled_from(["positive", "negative"])
PIECES = [
    *("positive", "negative", "Answer:", "Label", "not ", "n't", "hire", "article 1", "none", "I'm sorry"),
    *('{"label":', '"positive"', "}", "[", "]", "{", '"', "\\", "```json\n", "```", "<think>", "</think>"),
    *("\n", " ", ".", ",", ":", "**", "_", "#", "1", "7", "/10", "1,000", "e9"),
    *("\ufeff", "\u00a0", "\u0301", "\ud800", "ﬀ", "İ", "ß"),
]
soup = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join)
EXTRAS = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
anything = st.text(alphabet=st.characters(), max_size=300) | soup


@pytest.mark.parametrize("reader", KINDS, ids=["one label", "a decision", "labels", "a number", "a text"])
@settings(max_examples=150, deadline=None)
@given(output=anything, style=st.sampled_from(["chat", "text"]))
def test_never_raises(reader: Reader, output: str, style: str) -> None:
    answer = reader.read(output, style)
    assert answer.status in ("ok", "unparsed", "refused")
    if answer.status != "ok":
        assert answer.reason
    elif isinstance(reader, NumberReader):
        assert isinstance(answer.value, float)
        assert 0 <= answer.value <= 10
    elif isinstance(reader, LabelSetReader):
        assert isinstance(answer.value, tuple)
        assert list(answer.value) == sorted(set(answer.value))


@settings(max_examples=300, deadline=None)
@given(output=anything)
def test_a_label_is_named_in_the_output(output: str) -> None:
    value = KINDS[0].read(output).value
    if value is not None and "\\u" not in output:  # JSON may spell a letter as \\u0070
        named = [name for name, label in NAMES.items() if label == value]
        assert any(name in normalise(output) for name in named)


@settings(max_examples=200, deadline=None)
@given(
    label=LABELS,
    reasoning=st.text(alphabet="abc positive negative not.,\n'", max_size=200),
    marker=st.sampled_from(["Answer: {}", "**Answer:** {}.", "Final answer: *{}*", "The answer is {}"]),
)
def test_the_last_line_decides(label: str, reasoning: str, marker: str) -> None:
    assert KINDS[0].read(f"{reasoning}\n{marker.format(label.title())}").value == label


@settings(max_examples=200, deadline=None)
@given(
    label=LABELS,
    extra=st.dictionaries(st.text(max_size=8), EXTRAS, max_size=4),
    ascii_only=st.booleans(),
    indent=st.none() | st.integers(0, 3),
    before=st.text(alphabet="ab c.\n{", max_size=30),
)
def test_json_round_trip(label: str, extra: dict, ascii_only: bool, indent: int | None, before: str) -> None:
    extra = {k: v for k, v in extra.items() if normalise(k) not in ("label", "answer")}
    body = json.dumps({**extra, "label": label}, ensure_ascii=ascii_only, indent=indent)
    assume("<" not in body)  # a tag that opens reasoning and never closes it is read as reasoning, in a string too
    assert KINDS[0].read(f"{before} {body}").value == label


OPENERS = ["", "Sure! ", "Certainly. ", "Of course! Let me look. ", "I've read the review. ", "Here is my answer: "]
BEFORE = ["", "It opens slowly. ", "The cast is large.\n\n", "The reviewer saw it twice; "]
STATED = [
    "The sentiment of this review is {}.", "The overall opinion of the film is {}.",
    "Overall, the reviewer's opinion is {}.", "I would classify the sentiment as {}.", "I'd label this review as {}.",
    "Based on what is said, the tone of the review is clearly {}.", "My verdict is {}.", "This review is {}!",
]  # fmt: skip
AFTER = ["", " The cast is large.", "\n\nThe reviewer saw it twice.", " It ends well; it opens slowly."]
CLOSERS = [
    "", " Let me know if you have questions!", " Let me know whether you see it as {other}.",
    " I hope this helps. Feel free to ask.", "\n\nIs there anything else you need?",
    " If you need more, just ask. Thank you!",
]  # fmt: skip
MARKS = ["{}", "**{}**", "*{}*", '"{}"', "`{}`", "__{}__", "'{}'"]


@settings(max_examples=400, deadline=None)
@given(
    label=LABELS,
    around=st.tuples(*map(st.sampled_from, (OPENERS, BEFORE, STATED, AFTER, CLOSERS))),
    mark=st.sampled_from(MARKS),
    case=st.sampled_from([str.lower, str.title, str.upper]),
)
def test_one_label_that_is_said_to_be_the_answer_is_read(
    label: str, around: tuple[str, ...], mark: str, case: Callable[[str], str]
) -> None:
    other = "negative" if label == "positive" else "positive"
    opener, before, stated, after, closer = around
    output = f"{opener}{before}{stated.format(mark.format(case(label)))}{after}{closer.format(other=other)}"
    assert KINDS[0].read(output).value == label, output
    # Negated, or beside the other label, it is none; whatever stands around it.
    denied = f"{opener}{before}{stated.format('not ' + mark.format(case(label)))}{after}{closer.format(other=other)}"
    assert KINDS[0].read(denied).status == "unparsed", denied
    both = f"{opener}{before}{stated.format(mark.format(case(label)))} In part it is {other}.{after}"
    assert KINDS[0].read(both).status == "unparsed", both


THOUGHT = [
    "<think>{}</think>", "<THINKING>{}</THINKING>\n", "{}</think>\n\n", "[THINK]{}[/THINK]", "◁think▷{}◁/think▷",
    "<reasoning>{}</reasoning>\n", "<thought>\n{}\n</thought>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
]  # fmt: skip
ANSWERED = [
    "{}", "**{}**", "Answer: {}", "## Classification\n\n{}\n\n### Why\nIt opens slowly.\nThe cast is large.",
    "Here is the classification:\n\n- **{}**\n\nExplanation: it ends well.",
    '{{"label": "{}"}}',
    '{{"result": {{"label": ["{}"], "why": "it ends well"}}}}', '```json\n{{"answer": {{"label": "{}"}}}}\n```',
    "\\boxed{{{}}}", "The reviewer liked the cast. The answer is: {}.",
]  # fmt: skip
PAIRS = [  # labels, and their reader: one is a part of the other's name, or of other words
    ("positive", "negative", KINDS[0]),
    ("hire", "not hire", KINDS[1]),
    ("not hire", "hire", KINDS[1]),
    ("invite", "reject", Reader(names={"invite": "invite", "reject": "reject"})),
]


@settings(max_examples=300, deadline=None)
@given(
    pair=st.sampled_from(PAIRS),
    thought=st.sampled_from(THOUGHT),
    musing=st.sampled_from(["{one}? No, {other}.", "{other}", "Answer: {other}", "Not {one}, so {other}?\n\n{other}"]),
    answered=st.sampled_from(ANSWERED),
    case=st.sampled_from([str.lower, str.capitalize, str.upper]),
)
def test_what_was_thought_before_is_no_answer(
    pair: tuple[str, str, Reader], thought: str, musing: str, answered: str, case: Callable[[str], str]
) -> None:
    one, other, reader = pair
    thinks = thought.format(musing.format(one=one, other=other))
    output = thinks + answered.format(case(one))
    assert reader.read(output).value == one, output
    # Cut off within the reasoning, nothing is an answer, whatever label it names last.
    for end in ("</think>", "</thinking>", "[/think]", "◁/think▷", "</reasoning>", "</thought>", "<|end|>"):
        inside = re.split(re.escape(end), thinks, maxsplit=1, flags=re.IGNORECASE)
        if len(inside) == 2 and not thought.startswith("{}"):
            assert reader.read(inside[0]).status == "unparsed", inside[0]


@settings(max_examples=200, deadline=None)
@given(
    word=st.sampled_from(["{}ly", "un{}", "{}ness", "non-{}", "{}-minded", "re{}", "{}_x", "x_{}"]),
    label=LABELS,
    around=st.sampled_from(["{}", "It is {}.", "Answer: {}", '{{"label": "{}"}}', "**{}**", "1. {}"]),
)
def test_a_label_within_another_word_is_none(word: str, label: str, around: str) -> None:
    assert KINDS[0].read(around.format(word.format(label))).status == "unparsed"


@settings(max_examples=200, deadline=None)
@given(
    label=LABELS,
    passing=st.sampled_from(["The {} reviews that I know are long", "Its {} tone tires", "A {} start of a series"]),
    lines=st.booleans(),
)
def test_a_label_in_passing_is_none(label: str, passing: str, lines: bool) -> None:
    """Neither in the first nor in the last sentence, nor on a line of its own, nor said to be the answer."""
    between = "\n" if lines else " "
    output = between.join(["The cast is large.", passing.format(label) + ".", "It ends well."])
    assert KINDS[0].read(output).status == "unparsed", output


@settings(max_examples=100, deadline=None)
@given(
    label=LABELS,
    negation=st.sampled_from(["not", "never", "isn't", "hardly", "no", "nothing", "without being", "cannot be"]),
    between=st.lists(st.sampled_from(["very", "really", "at all", "in my view", "a", ","]), max_size=4),
)
def test_a_negated_label_is_never_read(label: str, negation: str, between: list[str]) -> None:
    assert KINDS[0].read(" ".join([negation, *between, label])).status == "unparsed"


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200))
def test_normal_form_is_stable_under_case_and_space(text: str) -> None:
    assert normalise(f" \u00a0{text}\ufeff\n") == normalise(text)
    assert "\r" not in normalise(text)


# At this size a parser that is quadratic takes minutes, a linear one well under a second.
N = 40_000
ADVERSARIAL = {
    "braces": "{" * N,
    "objects": '{"' * (N // 2),
    "nested": '{"a":' * (N // 5),
    "lists": "[" * N,
    "keys": '{"label": "x"} ' * (N // 15),
    "negations": "not " * (N // 4) + "positive",
    "labels": "positive " * (N // 9),
    "markers": "answer: " * (N // 8),
    "empty markers": "answer:\n" * (N // 8),
    "digits": "9" * N,
    "figures": "1,000," * (N // 6),
    "points": "1." * (N // 2),
    "spaces": " " * N + "x",
    "breaks": "\n" * N + "x",
    "stars": "*" * N,
    "underscores": "a" + "_" * N + "b",
    "marks": "a" + "\u0301\u0316" * (N // 2),
    "fences": "```" * (N // 3),
    "asides": "<thought>" * (N // 9) + "</reasoning>" * (N // 12),
    "channels": "<|channel|>final " * (N // 17),
    "nested lists": '{"label": ' + "[" * (N // 2),
    "lines": "positive x\n" * (N // 11),
    "think": "<think>" * (N // 7) + "</think>" * (N // 8),
    "quotes": '"' * N,
    "backslashes": '{"label": "' + "\\" * N,
    "decline": "i must have to will would " * (N // 26),
    "cannot": "i cannot a a " * (N // 13),
    "hashes": "# > " * (N // 4),
    "commas": "article 1," * (N // 10) + "x",
    "ands": " and" * (N // 4),
    "ligature": "\ufdfa" * (N // 18),
}


@pytest.mark.parametrize("name", sorted(ADVERSARIAL))
def test_long_adversarial_outputs_end(name: str) -> None:
    for reader in KINDS:
        assert reader.read(ADVERSARIAL[name]).status in ("ok", "unparsed", "refused")
