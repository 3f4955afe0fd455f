"""Recorded answers: values that a user names, answers as models write them, patterns, control arms, wide tables."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, both, only, tells

from tests.asking import json_lines

pytestmark = pytest.mark.usefixtures("place")

TEXTS = 24
PEOPLE = ("female", "male")
YES = {"female": 10, "male": 18}  # texts of 24 with the answer "yes"


def table(name: str, header: str, rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    with open(name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header.split(), *rows])


def answers(write: Callable[[bool], str] = lambda good: "yes" if good else "no") -> list[tuple[str, str, str]]:
    """Question, gender, answer: 10 of 24 women and 18 of 24 men get a yes."""
    return [(f"q{n}", g, write(n < YES[g])) for n in range(TEXTS) for g in PEOPLE]


def scores(write: Callable[[int], str] = str) -> list[tuple[str, str, str]]:
    """Question, gender, score: women get three points fewer."""
    return [(f"q{n}", g, write(20 + n % 9 - 3 * (g == "female"))) for n in range(TEXTS) for g in PEOPLE]


def imported(capsys: Capture, command: str) -> dict[str, Any]:
    """The record of an import, as ``--format json`` prints it."""
    code, out, err = both(capsys, f"import {command} --format json")
    assert code == 0, err
    record: dict[str, Any] = json.loads(out)
    return record


def net(record: dict[str, Any]) -> float:
    """The one net difference of women and men."""
    (claim,) = (c for c in record["claims"] if c["family"] == "net")
    assert [group.lower() for group in claim["groups"]] == ["female", "male"]
    return float(claim["estimate"])


def mapping(capsys: Capture, files: str) -> dict[str, Any]:
    """What ``--write-map`` proposes."""
    tells(capsys, f"import {files} --write-map proposed.toml")
    return tomllib.loads(Path("proposed.toml").read_text(encoding="utf-8"))


# -- values that a user names ------------------------------------------------------------------------------

MAP = 'text = "question"\nanswer = "answer"\nfavourable = "yes"\n[groups]\ngender = "gender"\n'


@pytest.mark.parametrize(
    ("options", "more", "told"),
    [
        ("--favourable yse", None, ("'yse'", "Did you mean 'yes'", "There are: 'yes', 'no'")),
        ("--favourable yes --favourable nope", None, ("'nope'", "Did you mean 'no'")),
        ("--answer answer --favourable yse", None, ("'yse'", "Did you mean 'yes'")),
        ("--answer anwser", None, ("'anwser'", "Did you mean 'answer'")),
        ("--reference gender:mael", None, ("'mael'", "Did you mean 'male'", "'female'")),
        ("--reference gendr:male", None, ("'gendr'", "Did you mean 'gender'")),
        ("--labels yse,no --favourable no", None, ("'yse'", "Did you mean 'yes'")),
        ("--labels yes,no --favourable maybe", None, ("'maybe'", "There are: 'yes', 'no'")),
        ("--kind lable", None, ("'lable'", "Did you mean 'label'")),
        ("--kind number --favourable yes", None, ("'yes'", "no such answer")),
        ("--reference gender:mael", "", ("'mael'", "Did you mean 'male'")),
        ("--favourable yse", "", ("'yse'", "Did you mean 'yes'")),
        ("--kind number", "", ("yes is a label", "kind = 'number'")),
        ("--kind words --labels yes,no", "", ("is a label", "kind = 'words'")),
        ("", '[references]\ngender = "mael"\n', ("'mael'", "Did you mean 'male'")),
        ("", '[references]\ngendr = "male"\n', ("'gendr'", "Did you mean 'gender'")),
        ("", '[where]\ngender = ["female", "mael"]\n', ("where.gender", "'mael'", "Did you mean 'male'")),
        ("", '[where]\nmodle = "x"\n', ("'modle'", "no such column")),
        ("", '[arm]\ncolumn = "gender"\noriginal = "mael"\n', ("arm.original", "Did you mean 'male'")),
        ("", '[arm]\ncolumn = "gendr"\noriginal = "male"\n', ("'gendr'", "Did you mean 'gender'")),
        ("", '[unmarked]\ngender = "mael"\n', ("unmarked.gender", "Did you mean 'male'")),
        ("", '[split.gender.mael]\nsex = "male"\n', ("split.gender", "Did you mean 'male'")),
        ("", '[parts]\nquestoin = "(?P<n>[0-9]+)"\n', ("'questoin'", "Did you mean 'question'")),
        ("", ('answer = "answer"', 'answer = "anwser"'), ("Did you mean 'answer'",)),
        ("", ('favourable = "yes"', 'favourable = "yse"'), ("Did you mean 'yes'",)),
        ("", ('favourable = "yes"', 'favorable = "yes"'), ("did you mean favourable? Roles are",)),
        ("", ('gender = "gender"', 'gender = "gendr"'), ("Did you mean 'gender'",)),
    ],
)
def test_a_value_that_the_table_lacks_is_refused_and_what_exists_is_named(
    options: str, more: str | tuple[str, str] | None, told: tuple[str, ...], capsys: Capture
) -> None:
    """``more`` is put behind a mapping, or changes it."""
    table("yn.csv", "question gender answer", answers())
    if more is not None:
        text = MAP.replace(*more) if isinstance(more, tuple) else MAP + more
        Path("map.toml").write_text(text, encoding="utf-8")
        options += " --map map.toml"
    tells(capsys, f"import yn.csv {options}", *told, code=2)
    assert not Path("reports").exists()


def test_values_that_are_there_count_however_they_are_spelled(capsys: Capture) -> None:
    table("yn.csv", "question gender answer", answers())
    for options in ("--favourable yes", "--favourable YES", "--labels Yes,No --favourable yes"):
        assert net(imported(capsys, f"yn.csv {options} --reference gender:Male")) == pytest.approx(-8 / 24)


def test_values_for_a_table_that_a_run_was_written_to_are_checked(capsys: Capture) -> None:
    tells(capsys, "run --task sentiment --model vader --limit 8 --attributes gender --out runs")
    tells(capsys, "report runs/latest --format answers")
    file = only("runs/2*/report.answers.csv")
    for option, told in (("--reference gender:mael", "'male'"), ("--favourable negativ", "'negative'")):
        tells(capsys, f"import {file} {option}", f"Did you mean {told}", code=2)
    tells(capsys, f"import {file} --reference gender:male")
    record = imported(capsys, f"{file} --favourable NEGATIVE")
    assert record["vocabulary"]["favourable"] == "negative"


# -- empty cells -------------------------------------------------------------------------------------------


def test_rows_that_do_not_count_are_counted_and_told(capsys: Capture) -> None:
    rows = [list(row) for row in answers()]
    rows[0][2] = rows[3][2] = ""  # no answer
    rows[4][1] = ""  # no group
    rows[6][0] = rows[8][0] = rows[11][0] = ""  # no text
    rows[12][2] = "It depends on who is asked, so there is no telling."
    table("yn.csv", "question gender answer", rows)
    told = "2 of 48 rows have no answer (empty cells)", "3 of 48 rows have no text (empty cells)"
    told += (
        "1 of 48 rows names no group",
        "1 of 48 rows has an answer that cannot be read",
        "It depends on who is asked",
    )
    tells(capsys, "import yn.csv", *told)


# -- answers as models write them --------------------------------------------------------------------------

WORDS = {True: "Invite", False: "Reject"}
WRITTEN: dict[str, Callable[[bool], str]] = {
    "plain": lambda good: WORDS[good],
    "reasoning": lambda good: f"<think>Invite or reject? Let me see.</think>**{WORDS[good]}**",
    "fenced": lambda good: f'```json\n{{"decision": "{WORDS[good].lower()}", "confidence": 0.9}}\n```',
    "json": lambda good: json.dumps({"reason": f"Because of {good} and much more to say.", "decision": WORDS[good]}),
    "one field": lambda good: json.dumps({"outcome": WORDS[good]}),
    "nested": lambda good: json.dumps({"result": {"verdict": WORDS[good]}, "note": "none"}),
    "marked line": lambda good: f"The résumé is short, and the role is senior.\nAnswer: {WORDS[good]}",
    "first line": lambda good: f"**{WORDS[good]}**\n\nThe résumé has gaps that need some explanation from her.",
    "booleans": lambda good: json.dumps({"invite": good, "why": "The résumé has gaps that need explaining."}),
    "python": lambda good: f"{WORDS[good]}.",
}


@pytest.mark.parametrize("form", WRITTEN)
def test_labels_are_read_as_live_answers_are(form: str, capsys: Capture) -> None:
    table("a.csv", "question gender answer", answers(WRITTEN[form]))
    record = imported(capsys, "a.csv")
    assert net(record) == pytest.approx(-8 / 24)
    assert sorted(record["models"]["recorded"]["answers"].values()) == [20, 28]


@pytest.mark.parametrize(
    "write",
    [
        lambda n: json.dumps({"score": n, "reason": "Has 3 years of experience."}),
        lambda n: f'```json\n{{"score": {n}}}\n```',
        lambda n: f"<think>Is it 5 or 6?</think>\n**{n}**",
        lambda n: f"Score: {n}/100. A solid résumé.",
        lambda n: json.dumps({"points": n, "why": f"It has {n + 1} good lines."}),
        lambda n: f"${n},000",
    ],
)
def test_numbers_are_read_as_live_answers_are(write: Callable[[int], str], capsys: Capture) -> None:
    table("a.csv", "question gender answer", scores(write))
    record = imported(capsys, "a.csv")
    (claim,) = (c for c in record["claims"] if c["family"] == "net")
    assert (claim["scale"], claim["unit"]) == ("number", "points")
    assert net(record) in (pytest.approx(-3), pytest.approx(-3000))


def test_an_answer_in_running_text_is_read_and_a_refusal_is_a_refusal(capsys: Capture) -> None:
    rows = [list(row) for row in answers(WRITTEN["plain"])]
    rows[0][2] = "I would invite this applicant to an interview."
    rows[1][2] = "I'm sorry, but I can't help with that."
    table("a.csv", "question gender answer", rows)
    record = imported(capsys, "a.csv")
    assert record["models"]["recorded"]["answers"] == {"Invite": 27, "Reject": 20}
    assert record["counts"]["refused"] == 1


@pytest.mark.parametrize("as_object", [False, True])
def test_answers_in_results_of_promptfoo_are_unwrapped(as_object: bool, capsys: Capture) -> None:
    results = [
        {
            "vars": {"question": text, "gender": gender}, "provider": {"id": "openai:some-model"},
            "response": {"output": json.loads(said) if as_object else f"```json\n{said}\n```", "cached": False},
            "success": True, "score": 1,
        }
        for text, gender, said in answers(WRITTEN["json"])
    ]  # fmt: skip
    tests = [{"vars": one["vars"]} for one in results]
    document = {"results": {"version": 3, "results": results}, "config": {"tests": tests}}
    Path("results.json").write_text(json.dumps(document), encoding="utf-8")
    record = imported(capsys, "results.json")
    assert net(record) == pytest.approx(-8 / 24)
    assert list(record["models"]) == ["openai:some-model"]


def test_words_are_counted_only_when_asked(capsys: Capture) -> None:
    rows = [(f"q{n}", g, " ".join([f"word{n}"] * (30 + n + 5 * (g == "male")))) for n in range(TEXTS) for g in PEOPLE]
    table("a.csv", "question gender summary", rows)
    told = ("neither numbers nor labels", "--labels", "--kind words", "--kind text", "word0 word0")
    tells(capsys, "import a.csv", *told, code=2)
    assert net(imported(capsys, "a.csv --kind words")) == pytest.approx(-5)


def test_several_keys_that_may_hold_the_answer_are_named(capsys: Capture) -> None:
    table("a.csv", "question gender answer", scores(lambda n: json.dumps({"skill": n, "culture": n + 1})))
    tells(capsys, "import a.csv", "skill, culture", 'field = "KEY"', code=2)
    Path("map.toml").write_text(
        'text = "question"\nanswer = "answer"\nkind = "number"\nfield = "culture"\ngroups = { gender = "gender" }\n'
    )
    assert net(imported(capsys, "a.csv --map map.toml")) == pytest.approx(-3)


# -- patterns ----------------------------------------------------------------------------------------------


def parts(pattern: str, name: str = "said") -> str:
    """A mapping in which a pattern takes the score out of a column."""
    return (
        f"text = 'question'\nanswer = 'score'\nkind = 'number'\nparts = {{ {name} = '{pattern}' }}\n"
        "groups = { gender = 'gender' }\n"
    )


def test_a_pattern_is_searched_for(capsys: Capture) -> None:
    table("a.csv", "question gender said", scores(lambda n: f'Well. {{"score": {n}, "why": "none"}} Bye.'))
    Path("map.toml").write_text(parts('"score": (?P<score>[0-9]+)'))
    assert net(imported(capsys, "a.csv --map map.toml")) == pytest.approx(-3)


@pytest.mark.parametrize(
    ("pattern", "name", "told"),
    [
        ('"scores": (?P<score>[0-9]+)', "said", ["matches no cell", '{"score": 17']),
        ('"score": ([0-9]+)', "said", ["names no group", "(?P<NAME>"]),
        ("(?P<score>[0-9+)", "said", ["is not a pattern"]),
        ("(?P<score>[0-9]+)", "file", ["'file' only where rows come from several files"]),
    ],
)
def test_a_pattern_that_reads_nothing_is_refused(pattern: str, name: str, told: list[str], capsys: Capture) -> None:
    table("a.csv", "question gender said", scores(lambda n: f'{{"score": {n}}}'))
    Path("map.toml").write_text(parts(pattern, name))
    tells(capsys, "import a.csv --map map.toml", *told, code=2)


# -- lists of labels ---------------------------------------------------------------------------------------

LISTS: dict[str, Callable[[list[str]], str]] = {
    "json": json.dumps,
    "python": repr,
    "fenced": lambda labels: f"```json\n{json.dumps(labels)}\n```",
    "field": lambda labels: json.dumps({"labels": labels}),
}


@pytest.mark.parametrize("form", LISTS)
def test_lists_of_labels(form: str, capsys: Capture) -> None:
    rows = [
        (f"q{n}", g, LISTS[form]([*(["toxicity"] if n < YES[g] else []), *(["insult"] if n % 2 else [])]))
        for n in range(TEXTS)
        for g in PEOPLE
    ]
    table("a.csv", "question gender labels", rows)
    assert mapping(capsys, "a.csv")["kind"] == "labels"
    assert by_label(imported(capsys, "a.csv")) == {"insult": 0, "toxicity": pytest.approx(-8 / 24)}


def by_label(record: dict[str, Any]) -> dict[str, float]:
    return {c["label"]: c["estimate"] for c in record["claims"] if c["family"] == "net"}


def test_lists_in_lines_of_json(capsys: Capture) -> None:
    lists = [(n, g, ["toxicity", "insult"] if n < YES[g] else []) for n in range(TEXTS) for g in PEOPLE]
    json_lines(Path("a.jsonl"), [{"question": f"q{n}", "gender": g, "labels": labels} for n, g, labels in lists])
    assert by_label(imported(capsys, "a.jsonl")) == dict.fromkeys(("insult", "toxicity"), pytest.approx(-8 / 24))


# -- control arms ------------------------------------------------------------------------------------------

RACES = ("anglo", "latino")


@pytest.mark.parametrize(
    "control", ["none", "None-control", "control", "baseline", "unmarked", "N/A", "no_name", "neutral", "unspecified"]
)
def test_a_control_arm_is_the_unchanged_version_and_no_headline(control: str, capsys: Capture) -> None:
    """Two groups differ by one point; the control arm differs from both by ten."""
    points = {control: -10, "latino": -1, "anglo": 0}
    rows = [(f"s{n}", who, 50 + n % 7 + points[who]) for n in range(TEXTS) for who in (control, *RACES)]
    table("a.csv", "scenario race score", rows)
    assert mapping(capsys, "a.csv")["unmarked"] == {"race": control}
    record = imported(capsys, "a.csv")
    (claim,) = (c for c in record["claims"] if c["family"] == "net")
    assert (sorted(claim["groups"]), abs(claim["estimate"])) == (sorted(RACES), pytest.approx(1))
    assert control.upper() not in tells(capsys, f"report {Path('reports').resolve() / record['id']}")
    assert record["import"]["rows"]["without_original"] == 0


def test_a_control_level_of_a_long_table(capsys: Capture) -> None:
    cells = [("race", who) for who in ("none", *RACES)] + [("gender", who) for who in ("none", *PEOPLE)]
    rows = [(f"s{n}", axis, who, 50 + n % 7 - 10 * (who == "none")) for n in range(TEXTS) for axis, who in cells]
    table("a.csv", "scenario axis level score", rows)
    assert mapping(capsys, "a.csv")["unmarked"] == {"race": "none", "gender": "none"}
    claims = [c for c in imported(capsys, "a.csv")["claims"] if c["family"] == "net"]
    none = pytest.approx(0, abs=1e-9)
    assert {tuple(sorted(c["groups"])): c["estimate"] for c in claims} == {RACES: none, PEOPLE: none}


def test_a_control_arm_beside_rows_about_two_attributes(capsys: Capture) -> None:
    less = {"latino": 2, "female": 3}
    cells = [(race, gender, 50 - less.get(race, 0) - less.get(gender, 0)) for race in RACES for gender in PEOPLE]
    rows = [(f"s{n}", race, gender, score + n % 7) for n in range(TEXTS) for race, gender, score in cells]
    rows += [(f"s{n}", "none", "none", 20) for n in range(TEXTS)]
    table("a.csv", "scenario race gender score", rows)
    claims = [c for c in imported(capsys, "a.csv")["claims"] if c["family"] == "net"]
    assert {tuple(c["groups"]): c["estimate"] for c in claims} == {RACES: pytest.approx(2), PEOPLE: pytest.approx(-3)}


# -- wide tables, names of columns, folders ----------------------------------------------------------------

WIDE = (
    "application_id activity_year lender state county loan_type purpose loan_amount income dti derived_race "
    "applicant_sex credit_score llm_decision"
)


def wide(rows: int = 24) -> list[tuple[object, ...]]:
    """Applications, each about one person: nothing names a text that several of them share."""
    return [
        (n, 2023, "bank", "NY", n % 5, n % 2, n % 3, n * 1000, 40 + n, n / 10, ("Black", "White")[n % 2],
         ("Female", "Male")[n % 3 % 2], 600 + n, ("approve", "deny")[n % 2])
        for n in range(rows)
    ]  # fmt: skip


def test_the_best_guess_for_every_role_is_printed_with_what_is_missing(capsys: Capture) -> None:
    table("a.csv", WIDE, wide())
    told = ['answer = "llm_decision"', 'race = "derived_race"', '# text = "COLUMN" # missing', "--map"]
    printed = tells(capsys, "import a.csv", *told, "which column names the text", code=2)
    assert re.search('(gender|sex) = "applicant_sex"', printed)
    tells(capsys, "import a.csv --write-map map.toml", code=2)
    assert tomllib.loads(Path("map.toml").read_text())["answer"] == "llm_decision"


@pytest.mark.parametrize(
    ("header", "roles"),
    [
        ("scenario derived_race llm_decision", {"groups": {"race": "derived_race"}, "answer": "llm_decision"}),
        ("Prompt Gender Answer", {"text": "Prompt", "groups": {"gender": "Gender"}, "answer": "Answer"}),
        ("prompt applicantGender llmDecision", {"text": "prompt", "groups": {"gender": "applicantGender"}}),
        ("case-id race_group model_answer", {"text": "case-id", "groups": {"race": "race_group"}}),
        ("scenario applicant_gender gpt4_output", {"answer": "gpt4_output"}),
    ],
)
def test_names_of_columns_are_recognized(header: str, roles: dict[str, Any], capsys: Capture) -> None:
    table("a.csv", header, answers())
    found = mapping(capsys, "a.csv")
    assert {role: found[role] for role in roles} == roles


def test_files_of_one_name_in_several_folders_have_a_column_of_paths(capsys: Capture) -> None:
    for n in range(1, 4):
        table(f"data/Run {n}/scores.csv", "question gender score", scores())
    assert mapping(capsys, "data")["replicate"] == "file"
    Path("map.toml").write_text(
        'text = "question"\nanswer = "score"\nkind = "number"\ngroups = { gender = "gender" }\nreplicate = "n"\n'
        'parts = { file = "Run (?P<n>[0-9]+)/scores" }\n'
    )
    record = imported(capsys, "data --map map.toml")
    assert record["import"]["rows"]["used"] == 3 * 2 * TEXTS
    assert record["import"]["rows"]["repeated"] == 0
