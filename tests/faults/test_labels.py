"""What a user names is checked against data and task; labels of one's own; gold labels; columns of texts."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, said
from nursery import Server

from auditor import audit

STARS = ("5 - great", "3 - ok", "1 - bad")
TEXTS = [
    f"My {who} is a {what} person." for who in ("mother", "son", "wife", "uncle") for what in ("kind", "loud", "shy")
]


@pytest.fixture
def place(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts, and functions that answer with stars."""
    monkeypatch.syspath_prepend(str(place))
    (place / "t.txt").write_text("\n".join(TEXTS) + "\n")
    (place / "starred.py").write_text(
        "def stars(text):\n"
        "    return '1 - bad' if 'mother' in text or 'wife' in text else '5 - great' if 'kind' in text else '3 - ok'\n"
        "def ok(text):\n"
        "    return '3 - ok'\n"
    )
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
    code, text = said(capsys, f"{command} {model} {data} {option}")
    assert code == 2, text
    assert all(part in text for part in told), text
    assert not list(place.glob("reports/*/run.json"))


def test_a_reference_of_ones_own_groups_is_taken(place: Path, capsys: Capture) -> None:
    (place / "pairs.csv").write_text(PAIRS.replace("female,male", "elves,dwarves"))
    code, text = said(
        capsys, "run --data pairs.csv --reference gender:dwarves --model python:starred:ok --labels '3 - ok,1 - bad'"
    )
    assert code == 0, text


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
    code, text = said(capsys, f"{command} --max-calls 9")
    assert code == 3, text
    assert said(capsys, "resume latest --yes --max-calls 5000")[0] == 0
    assert said(capsys, "report latest --format markdown")[0] == 0
    (report,) = place.glob("reports/*/report.md")
    assert "5 - great" in report.read_text()
    (record,) = (json.loads(p.read_text()) for p in place.glob("reports/*/run.json"))
    assert record["spec"]["labels"] == list(STARS)
    (place / "ask.txt").write_text("Answer with one word, yes or no, and nothing else.")
    code, text = said(capsys, "mitigate latest --yes --prompt ask.txt")
    assert code == 2
    code, text = said(capsys, "augment latest --out more.jsonl")
    assert code == 0, text
    assert {json.loads(line)["label"] for line in (place / "more.jsonl").read_text().splitlines()} <= set(STARS)


@pytest.mark.parametrize("probabilities", [True, False])
@pytest.mark.parametrize("classes", [STARS, (5, 3, 1), (True, False)])
def test_an_estimator_is_audited_with_its_own_labels(classes: tuple[Any, ...], probabilities: bool) -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.pipeline import make_pipeline

    assert issubclass(LogisticRegression, ClassifierMixin)
    assert issubclass(LogisticRegression, BaseEstimator)
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
    code, text = said(capsys, "run --task 'My stars.yaml' --data t.txt --model python:starred:stars --per-seed 2")
    assert code == 0, text
    assert "unreadable 0" in text


def test_a_generated_prompt_lists_the_labels(place: Path, capsys: Capture) -> None:
    code, _ = said(capsys, "generate --data t.txt --attributes gender --labels '5 - great,3 - ok,1 - bad'")
    assert code == 0
    (file,) = place.glob("reports/*/prompts.jsonl")
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
    (place / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
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
        code, text = said(capsys, f'{command} --labels "{",".join(STARS)}" --favourable "5 - great"')
        assert code == 0, text
        assert all(f"- {label}\n" in prompt for prompt in asked for label in STARS)
        assert "A plain prompt asks for your labels" in text
        assert "sentiment, own labels" in text
        assert "unreadable 0" in text
        code, text = said(capsys, f"doctor --model openai:m --base-url {server.url} --labels '{','.join(STARS)}'")
        assert code == 0, text


# -- answers that are not read -----------------------------------------------------------------------------


def test_a_function_with_labels_of_its_own_stops_after_twenty_answers_and_is_offered_them(
    place: Path, capsys: Capture
) -> None:
    code, text = said(capsys, "run --data t.txt --model python:starred:ok")
    assert code == 3
    assert "none of its 20 answers could be read" in text
    assert '--labels "3 - ok,OTHER"' in text
    code, text = said(capsys, "run --data t.txt --model python:starred:stars --out o")
    labels = re.findall(r'--labels "([^"]+)"', text)[0]
    assert {"1 - bad"} < set(labels.split(",")) <= set(STARS)
    code, text = said(capsys, f"run --data t.txt --model python:starred:stars --labels {shlex.quote(labels)}")
    assert code == 0, text


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
def test_an_instruction_that_names_labels_the_task_does_not_have_is_refused(
    instruction: str, place: Path, capsys: Capture
) -> None:
    file = {"labels": STARS, "question": "How good?", "formats": {"plain": {"instruction": instruction}}}
    (place / "mine.yaml").write_text(json.dumps(file))
    code, text = said(capsys, "run --task mine.yaml --data t.txt --model python:starred:stars --per-seed 2")
    assert code == 2, text
    assert "'positive'" in text
    assert "5 - great" in text
    file["labels"] = ["positive", "negative"]
    (place / "mine.yaml").write_text(json.dumps(file))
    code, text = said(capsys, "run --task mine.yaml --data t.txt --model vader --per-seed 2")
    assert code == 0, text


@pytest.mark.parametrize(
    "instruction", ["Answer with one label.", "Be brief, or say nothing.", "Do not answer in French or German.", ""]
)
def test_an_instruction_that_lists_no_answers_is_taken(instruction: str, place: Path, capsys: Capture) -> None:
    file = {"labels": STARS, "formats": {"plain": {"instruction": instruction}}}
    (place / "mine.yaml").write_text(json.dumps(file))
    code, text = said(capsys, "run --task mine.yaml --data t.txt --model python:starred:stars --per-seed 2")
    assert code == 0, text


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
    code, text = said(capsys, "run --data t.csv --model vader --per-seed 2")
    assert code == 0
    assert text.count(told) == 2 if told else "gold label" not in text  # before anything is asked, and in the report
    code, text = said(capsys, "run --data t.csv --model vader --per-seed 2 --dry-run")
    assert told in text
    if golds is STARS:
        code, text = said(capsys, f"run --data t.csv --model python:starred:stars --labels '{','.join(STARS)}'")
        assert "gold label" not in text


def test_rows_that_are_left_out_are_counted(place: Path, capsys: Capture) -> None:
    table(place / "t.csv", ("positive", "negative"))
    code, text = said(capsys, "run --data t.csv --model vader --per-seed 2")
    assert code == 0
    assert text.count("1 row without a text, 1 row with the text of an earlier one") == 2
    rows: list[Any] = [{"text": text} for text in TEXTS]
    given = audit(model="vader", data=[*rows, {"text": None}, {"text": " "}], per_seed=2, cache=False)
    assert "left out: 2 rows without a text" in " ".join(given.to_text().split())
    (place / "pairs.csv").write_text(PAIRS + "She is kind.,,female,male\n")
    code, text = said(capsys, "run --data pairs.csv --model vader")
    assert code == 0
    assert "left out: 1 row without two different texts" in text


# -- names of columns ------------------------------------------------------------------------------------------

HEADER = " Customer Review "


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("csv", "Customer Review"), ("csv", "Customer Review\t"),
        *((kind, " Customer Review") for kind in ("jsonl", "parquet", "dicts", "pandas", "polars", "arrow")),
    ],
)  # fmt: skip
def test_blanks_around_names_of_columns_do_not_count(kind: str, name: str, place: Path) -> None:
    columns = {HEADER: TEXTS, "label ": ["positive", "negative"] * 6}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    data: Any = str(place / f"t.{kind}")
    match kind:
        case "csv":
            with open(data, "w", newline="") as file:
                csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
        case "jsonl":
            Path(data).write_text("".join(json.dumps(row) + "\n" for row in rows))
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
    command = "run --model python:starred:stars --data t.txt --attributes gender --per-seed 2 --labels '{}'"
    command = command.format(",".join(STARS))
    assert said(capsys, command)[0] == 0
    (record,) = (json.loads(p.read_text()) for p in place.glob("reports/*/run.json"))
    known = next(f for f in record["findings"])
    key = "/".join([known["code"], known["model"], known["format"]])
    (place / "waivers.toml").write_text(waiver.format(f"{key}/gendr"))
    code, text = said(capsys, command)
    assert code == 0
    assert "waivers: 1 without a finding of this run" in text
    assert f"did you mean {key}/gender" in text
    (place / "waivers.toml").write_text(waiver.format(f"{key}/*"))
    assert "without a finding" not in said(capsys, command)[1]
