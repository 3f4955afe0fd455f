"""What a user names is checked against data and task; labels of one's own; gold labels; columns of texts."""

from __future__ import annotations

import csv
import inspect
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, only, said, tells
from nursery import Server

from auditor import audit
from tests.asking import csv_file, json_lines

STARS = ("5 - great", "3 - ok", "1 - bad")
TEXTS = [
    f"My {who} is a {what} person." for who in ("mother", "son", "wife", "uncle") for what in ("kind", "loud", "shy")
]


@pytest.fixture
def place(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts, and functions that answer with stars."""
    monkeypatch.syspath_prepend(str(place))
    (place / "t.txt").write_text("\n".join(TEXTS) + "\n")
    ok = "def ok(text):\n    return '3 - ok'\n"
    (place / "starred.py").write_text(inspect.getsource(stars) + ok, encoding="utf-8")
    return place


def stars(text: str) -> str:
    """Answer with stars, fewer for women."""
    return "1 - bad" if "mother" in text or "wife" in text else "5 - great" if "kind" in text else "3 - ok"


# -- values that a user names ------------------------------------------------------------------------------

PAIRS = "text_a,text_b,gender_a,gender_b\nShe is kind.,He is kind.,female,male\n"


REFUSED = [
    ("--reference gender:mael", ("'mael'", "Did you mean 'male'", "'female'")),
    ("--reference gendr:male", ("'gendr'", "Did you mean 'gender'")),
    ("--reference race:white,gender:Male", ("'Male'", "Did you mean 'male'?")),
    ("--groups gender:femal", ("'femal'", "Did you mean female")),
    ("--groups gendr:female", ("'gendr'", "Did you mean gender")),
    ("--favourable postive", ("'postive'", "Did you mean 'positive'", "'negative'")),
    ('--labels "a,b" --favourable c', ("'c'", "There are: 'a', 'b'")),
    ('--labels "a"', ("--labels", "at least two")),
    ('--labels "a,A"', ("--labels", "'A' names both")),
    ("--data pairs.csv --reference gender:mael", ("'mael'", "Did you mean 'male'", "There are: 'female', 'male'.")),
    ("--suite grammar --task coreference --reference gender:mael", ("'mael'", "Did you mean 'male'")),
    ("--task letter --favourable good", ("--favourable", "has no labels")),
    ("--task support --labels a,b", ("--labels", "conversation")),
    ("--task own.yaml --labels a,b", ("--labels", "own", "write the labels there")),
]
COMMANDS = ("generate", "plan freeze --output frozen.json", "run --dry-run")


@pytest.mark.parametrize(
    ("command", "option", "told"),
    [
        *(("run", *row) for row in REFUSED),
        *((command, *row) for command in COMMANDS for row in (REFUSED[3], REFUSED[5], REFUSED[7])),
        *((command, *REFUSED[0]) for command in COMMANDS[1:]),  # the first compares nothing
    ],
)
def test_a_name_that_nothing_has_is_refused_and_what_exists_is_named(
    command: str, option: str, told: Sequence[str], place: Path, capsys: Capture
) -> None:
    (place / "pairs.csv").write_text(PAIRS)
    (place / "own.yaml").write_text("labels: [x, y]\n")
    model = "" if command == "generate" else "--model python:starred:ok"
    data = "" if "--data" in option or "grammar" in option else "--data t.txt"
    tells(capsys, f"{command} {model} {data} {option}", *told, code=2)
    assert not list(place.glob("reports/*/run.json"))


def test_a_reference_of_ones_own_groups_is_taken(place: Path, capsys: Capture) -> None:
    (place / "pairs.csv").write_text(PAIRS.replace("female,male", "elves,dwarves"))
    tells(capsys, "run --data pairs.csv --reference gender:dwarves --model python:starred:ok --labels '3 - ok,1 - bad'")


# -- labels of one's own -----------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["5 - great,3 - ok,1 - bad", STARS])
def test_a_function_is_audited_with_its_own_labels(given: Any) -> None:
    result = audit(
        model=stars, data=TEXTS, labels=given, favourable="5 - great", attributes="gender", replicates=1, cache=False
    )
    assert result.complete
    assert result.record["vocabulary"]["favourable"] == "5 - great"
    net = [c for c in result.record["claims"] if c["family"] == "net" and set(c["groups"]) == {"female", "male"}]
    assert {c["label"] for c in net} == {"5 - great"}
    (model,) = result.record["models"].values()
    assert set(model["answers"]) == set(STARS)
    assert model["counts"]["unparsed"] == 0


def test_labels_of_ones_own_at_the_command_line_and_again_from_the_folder(place: Path, capsys: Capture) -> None:
    labels = '--labels "5 - great,3 - ok,1 - bad" --favourable "5 - great"'
    command = f"run --model python:starred:stars --data t.txt --attributes gender --order 1 --per-seed 2 {labels}"
    tells(capsys, f"{command} --max-calls 9", code=3)
    tells(capsys, "resume latest --yes --max-calls 5000")
    tells(capsys, "report latest --format markdown")
    assert "5 - great" in only("reports/*/report.md").read_text()
    assert json.loads(only("reports/*/run.json").read_text())["spec"]["labels"] == list(STARS)
    (place / "ask.txt").write_text("Answer with one word, yes or no, and nothing else.")
    tells(capsys, "mitigate latest --yes --prompt ask.txt", code=2)
    tells(capsys, "augment latest --out more.jsonl")
    assert {json.loads(line)["label"] for line in (place / "more.jsonl").read_text().splitlines()} <= set(STARS)


@pytest.mark.parametrize("probabilities", [True, False])
@pytest.mark.parametrize("classes", [STARS, (5, 3, 1), (True, False)])
def test_an_estimator_is_audited_with_its_own_labels(classes: tuple[Any, ...], probabilities: bool) -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.pipeline import make_pipeline

    last = LogisticRegression() if probabilities else RidgeClassifier()
    model = make_pipeline(CountVectorizer(), last).fit(TEXTS, [classes[n % len(classes)] for n in range(len(TEXTS))])
    labels = [str(one) for one in classes]
    result = audit(
        model=model, data=TEXTS, labels=labels, favourable=labels[0], attributes="gender", replicates=1, cache=False
    )
    assert result.complete
    (asked,) = result.record["models"].values()
    assert asked["counts"]["unparsed"] == 0
    assert len(asked["answers"]) > 1


def test_a_task_file_may_have_labels_alone(place: Path, capsys: Capture) -> None:
    (place / "My stars.yaml").write_text(f"labels: {json.dumps(STARS)}\nfavourable: 5 - great\n")
    argv = "run --task 'My stars.yaml' --data t.txt --model python:starred:stars --per-seed 2"
    tells(capsys, argv, "unreadable 0")


def test_a_generated_prompt_lists_the_labels(place: Path, capsys: Capture) -> None:
    tells(capsys, "generate --data t.txt --attributes gender --labels '5 - great,3 - ok,1 - bad'")
    file = only("reports/*/prompts.jsonl")
    prompts = [json.loads(line) for line in file.read_text().splitlines()]
    for prompt in prompts:
        (message,) = prompt["messages"]
        assert all(f"- {label}\n" in message["content"] for label in STARS)
        assert "film" not in message["content"]
        assert "positive" not in message["content"]
    answers = [
        "5 - great", "**3 - OK**", '```json\n{"label": "1 - bad"}\n```', "<think>Hm.</think>\nAnswer: 3 - ok",
        "I would say 3 - ok.", "It lies between 3 - ok and 5 - great.", "neutral",
    ]  # fmt: skip
    lines = [
        {"prompt_sha256": sha, "replicate": n, "output": answers[i % len(answers)]}
        for i, sha in enumerate(dict.fromkeys(p["prompt_sha256"] for p in prompts))
        for n in range(3)
    ]
    json_lines(place / "a.jsonl", lines)
    code, text = said(capsys, f"import a.jsonl --generated {file.parent}")
    assert code in (0, 3), text
    record = json.loads((file.parent / "run.json").read_text())
    (model,) = record["models"].values()
    asked = sum(model["answers"].values()) + model["counts"]["unparsed"]
    assert set(model["answers"]) == set(STARS)
    assert model["counts"]["unparsed"] == pytest.approx(asked * 2 / len(answers), abs=6)
    assert set(model["unparsed"]) == {"neutral", "It lies between 3 - ok and 5 - great."}


@pytest.mark.slow
def test_a_hosted_model_is_asked_a_plain_prompt(place: Path, capsys: Capture) -> None:
    asked: list[str] = []

    def answer(model: str, prompt: str) -> str:
        asked.append(prompt)
        return "```json\n" + json.dumps({"label": stars(prompt)}) + "\n```"

    with Server(answer, delay_s=0) as server:
        command = f"run --model openai:m --base-url {server.url} --data t.txt --attributes gender --yes"
        told = "A plain prompt asks for your labels", "sentiment, own labels", "unreadable 0"
        tells(capsys, f'{command} --labels "{",".join(STARS)}" --favourable "5 - great"', *told)
        assert all(f"- {label}\n" in prompt for prompt in asked for label in STARS)
        tells(capsys, f"doctor --model openai:m --base-url {server.url} --labels '{','.join(STARS)}'")


# -- answers that are not read -----------------------------------------------------------------------------


def test_a_function_with_own_labels_stops_after_twenty_answers_and_is_offered_them(
    place: Path, capsys: Capture
) -> None:
    told = "none of its 20 answers could be read", '--labels "3 - ok,OTHER"'
    tells(capsys, "run --data t.txt --model python:starred:ok", *told, code=3)
    _, text = said(capsys, "run --data t.txt --model python:starred:stars --out o")
    labels = re.findall(r'--labels "([^"]+)"', text)[0]
    assert {"1 - bad"} < set(labels.split(",")) <= set(STARS)
    tells(capsys, f"run --data t.txt --model python:starred:stars --labels {shlex.quote(labels)}")


def test_answers_of_many_kinds_are_not_offered_as_labels() -> None:
    seen: list[str] = []

    def rambling(text: str) -> str:
        seen.append(text)
        return f"Well, {len(seen)} things come to mind."

    result = audit(model=rambling, data=TEXTS, cache=False)
    assert len(seen) < 40
    assert "--labels" not in result.record["status_reason"]
    assert "things come to mind" in result.record["status_reason"]


def test_the_answers_that_were_not_read_are_named(place: Path) -> None:
    def some(text: str) -> str:
        return "neutral" if "loud" in text else "positive" if "kind" in text else "negative"

    result = audit(model=some, data=TEXTS, attributes="gender", replicates=1, cache=False, out=place / "o")
    text = " ".join(result.to_text().split())
    assert "cannot be judged" in text
    assert "(“neutral”)" in text.partition("CHECKS")[2].partition("\nDO ")[0]
    assert '--labels "negative,neutral,positive"' in text


def test_answers_stay_unnamed_under_redact(place: Path) -> None:
    result = audit(model=lambda text: "3 - ok", data=TEXTS, redact=True, out=place / "o")
    assert "3 - ok" not in json.dumps(result.record)


# -- prompts that name other labels --------------------------------------------------------------------------

ASKED = [
    "Answer with one word, positive or negative, and nothing else.",
    "Answer with one of: positive, negative.",
    'Its only key is "label", its value "positive" or "negative".',
    "Answer positive or negative.",
    'First think. Then write "Answer:" and one word, positive or negative.',
]


@pytest.mark.parametrize("instruction", ASKED)
def test_an_instruction_that_names_labels_the_task_lacks_is_refused(
    instruction: str, place: Path, capsys: Capture
) -> None:
    file = {"labels": STARS, "question": "How good?", "formats": {"plain": {"instruction": instruction}}}
    (place / "mine.yaml").write_text(json.dumps(file))
    command = "run --task mine.yaml --data t.txt --per-seed 2 --model"
    tells(capsys, f"{command} python:starred:stars", "'positive'", "5 - great", code=2)
    (place / "mine.yaml").write_text(json.dumps(file | {"labels": ["positive", "negative"]}))
    tells(capsys, f"{command} vader")


@pytest.mark.parametrize(
    "instruction", ["Answer with one label.", "Be brief, or say nothing.", "Do not answer in French or German.", ""]
)
def test_an_instruction_that_lists_no_answers_is_taken(instruction: str, place: Path, capsys: Capture) -> None:
    file = {"labels": STARS, "formats": {"plain": {"instruction": instruction}}}
    (place / "mine.yaml").write_text(json.dumps(file))
    tells(capsys, "run --task mine.yaml --data t.txt --model python:starred:stars --per-seed 2")


# -- gold labels, and rows that are left out -----------------------------------------------------------------


def table(path: Path, golds: Sequence[str], header: str = "text") -> None:
    """Write texts with gold labels, one without a text, one twice."""
    rows = [[text, golds[n % len(golds)]] for n, text in enumerate(TEXTS)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[header, "label"], *rows, ["", golds[0]], rows[0]])


@pytest.mark.parametrize(
    ("golds", "told"),
    [
        (STARS, "None of 12 gold labels name a label of the task; “1 - bad”, “3 - ok” and “5 - great” do not"),
        (("positive", "3 - ok"), "6 of 12 gold labels name a label of the task; “3 - ok” does not"),
        (("positive", "neg"), ""),
    ],
)
def test_gold_labels_that_are_no_labels_of_the_task_are_counted_and_named(
    golds: Sequence[str], told: str, place: Path, capsys: Capture
) -> None:
    table(place / "t.csv", golds)
    text = tells(capsys, "run --data t.csv --model vader --per-seed 2")
    assert text.count(told) == 2 if told else "gold label" not in text  # before anything is asked, and in the report
    tells(capsys, "run --data t.csv --model vader --per-seed 2 --dry-run", told)
    if golds is STARS:
        _, text = said(capsys, f"run --data t.csv --model python:starred:stars --labels '{','.join(STARS)}'")
        assert "gold label" not in text


def test_rows_that_are_left_out_are_counted(place: Path, capsys: Capture) -> None:
    table(place / "t.csv", ("positive", "negative"))
    text = tells(capsys, "run --data t.csv --model vader --per-seed 2")
    assert text.count("1 row without a text, 1 row with the text of an earlier one") == 2
    rows: list[Any] = [{"text": text} for text in TEXTS]
    given = audit(model="vader", data=[*rows, {"text": None}, {"text": " "}], per_seed=2, cache=False)
    assert "left out: 2 rows without a text" in " ".join(given.to_text().split())
    (place / "pairs.csv").write_text(PAIRS + "She is kind.,,female,male\n")
    tells(capsys, "run --data pairs.csv --model vader", "left out: 1 row without two different texts")


# -- names of columns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("csv", "Customer Review"), ("csv", "Customer Review\t"),
        *((kind, " Customer Review") for kind in ("jsonl", "parquet", "dicts", "pandas", "polars", "arrow")),
    ],
)  # fmt: skip
def test_blanks_around_names_of_columns_do_not_count(kind: str, name: str, place: Path) -> None:
    columns = {" Customer Review ": TEXTS, "label ": ["positive", "negative"] * 6}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    data: Any = str(place / f"t.{kind}")
    match kind:
        case "csv":
            csv_file(Path(data), rows)
        case "jsonl":
            json_lines(Path(data), rows)
        case "parquet":
            arrow = pytest.importorskip("pyarrow")
            pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), data)
        case "dicts":
            data = rows
        case "pandas":
            data = pytest.importorskip("pandas").DataFrame(columns)
        case "polars":
            data = pytest.importorskip("polars").DataFrame(columns)
        case "arrow":
            data = pytest.importorskip("pyarrow").table(columns)
    result = audit(model="vader", data=data, columns={"text": name, "label": " label"}, per_seed=2, cache=False)
    assert result.record["counts"]["seeds"] == len(TEXTS)
    assert result.record["performance"]["gold"]["mapped"] == len(TEXTS)


# -- waivers -----------------------------------------------------------------------------------------------------


def test_a_waiver_that_no_finding_has_is_told(place: Path, capsys: Capture) -> None:
    waiver = '[[waiver]]\nfinding = "{}"\nreason = "r"\nowner = "o"\nexpires = 2199-01-01\n'
    command = "run --model python:starred:stars --data t.txt --attributes gender --per-seed 2 --labels"
    command = f"{command} '{','.join(STARS)}'"
    tells(capsys, command)
    known = json.loads(only("reports/*/run.json").read_text())["findings"][0]
    key = "/".join([known["code"], known["model"], known["format"]])
    (place / "waivers.toml").write_text(waiver.format(f"{key}/gendr"))
    tells(capsys, command, "waivers: 1 without a finding of this run", f"did you mean {key}/gender")
    (place / "waivers.toml").write_text(waiver.format(f"{key}/*"))
    assert "without a finding" not in said(capsys, command)[1]
