"""The rules of ``--fail-on``: slips are told with their place, and before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Capture
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.cli.main import run as command
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan

ASKED = "the model was asked"


def never(text: str) -> str:
    raise AssertionError(ASKED)


SLIPS = {
    "": (0, "write shown, shown(ATTRIBUTE), net(ATTRIBUTE) > 2%, excess(ATTRIBUTE) > 2%, failed > 5%, hidden > 0"),
    "shwon": (0, "did you mean shown?"),
    "shown,": (6, "write shown"),
    "shown net(gender) > 2%": (6, "expected a comma or the end"),
    "shown && x": (6, "expected a comma"),
    "shown > 2": (0, "write shown or shown(ATTRIBUTE)"),
    "shown()": (0, "write shown or shown(ATTRIBUTE)"),
    "shown(gender+)": (0, "write shown or shown(ATTRIBUTE)"),
    "net > 2%": (0, "write net(ATTRIBUTE) > 2%"),
    "net(gender)": (0, "write net(ATTRIBUTE) > 2%"),
    "shown, net(gender) > x": (7, "write net(ATTRIBUTE) > 2%"),
    "net(gender) > 200%": (14, "no share lies above 100%"),
    "excess(gender) > 2": (0, "write excess(ATTRIBUTE) > 2%"),
    "failed > 5": (0, "write failed > 5%"),
    "hidden": (0, "write hidden > 0"),
    "hidden > 5%": (0, "write hidden > 0"),
    # of version 0.2
    "lower(gender) > 2%": (0, "lower is gone: write excess(ATTRIBUTE) > 2%"),
    "hidden > 0 or failed > 5%": (11, "or is gone: write a comma between the parts"),
    "not shown": (0, "not is gone"),
    "partial": (0, "an incomplete run ends with 3"),
}


@pytest.mark.parametrize("rule", SLIPS)
def test_slips_show_their_place(rule: str, capsys: Capture) -> None:
    at, what = SLIPS[rule]
    assert command(["run", "--model", "python:tests.unit.test_rules:never", "--fail-on", rule]) == 2
    *told, quoted, mark = capsys.readouterr().err.splitlines()
    said = " ".join(line.strip() for line in told)
    assert said.startswith("audit: --fail-on: ")
    assert what in said
    assert quoted == f"    {rule}"
    assert mark == f"    {' ' * at}^"


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["--fail-on", "net(gendr) > 2%"], "'gendr': no such attribute in this run. Did you mean 'gender' "),
        (["--fail-on", "shown, excess(x) > 2%"], "There are: 'age', "),
        (["--fail-on", "net(age) > 2%", "--attributes", "gender"], "'age': no such attribute in this run."),
        (["--fail-on", "hidden > 0", "--order", "1"], "takes attributes that are changed together: --order 2"),
        (["--fail-on", "shown(gender+race)", "--order", "1"], "takes attributes that are changed together: --order 2"),
    ],
)
def test_what_the_run_does_not_have_is_told_before_the_model_is_asked(
    argv: list[str], what: str, place: Path, capsys: Capture
) -> None:
    assert command(["run", "--task", "sentiment", "--model", "python:tests.unit.test_rules:never", *argv]) == 2
    err = capsys.readouterr().err
    assert what in " ".join(err.split())
    assert ASKED not in err


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from(list('shownet()>%0.5,+" ')) | st.characters(), max_size=25))
def test_any_text_is_a_rule_or_a_clear_error(text: str) -> None:
    told = ""
    try:
        Plan(fail_on=text)
    except ConfigError as error:
        told = str(error)
    assert not told or told.startswith("--fail-on")


ROWS = ["text,gender,answer"] + [
    f"Note {n} on the {gender}.,{gender},{'yes' if (gender == 'man') or n % 3 == 0 else 'no'}"
    for n in range(60)
    for gender in ("man", "woman")
]


@pytest.mark.parametrize(
    ("rule", "code", "said"),
    [
        ("net(gender) > 2%", 1, "holds: net(gender) > 2%: 95 % "),
        ("shown", 1, "holds: shown (F00"),
        ("net(gender) > 95%", 0, "does not hold: net(gender) > 95%"),
        ("excess(gender) > 2%", 3, "cannot be judged: gender was not tested"),
        ("hidden > 0", 3, "cannot be judged: no attributes were changed together"),
        ("failed > 5%", 0, "does not hold: failed > 5%: 0 of 120 calls"),
        ("net(gendr) > 2%", 2, "Did you mean 'gender'?"),
        ("net(gender) > 2", 2, "write net(gender) > 2%"),
    ],
)
def test_rules_on_a_recorded_table_without_words(rule: str, code: int, said: str, place: Path, capsys: Capture) -> None:
    (place / "import.toml").write_text(
        'kind = "label"\nfavourable = ["yes"]\n[columns]\ntext = "id"\nanswer = "answer"\ngroups.gender = "gender"\n'
    )
    rows = [line.split(" on")[0] + "," + ",".join(line.split(",")[1:]) for line in ROWS[1:]]
    Path("t.csv").write_text("\n".join(["id,gender,answer", *rows]) + "\n")
    assert command(["import", "t.csv", "--favourable", "yes", "--fail-on", rule]) == code
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("answers", "said"),
    [("yes,yes", "all its answers are the same"), ("?,no,yes,?", "too many of its answers could not be read")],
)
def test_recorded_answers_that_say_nothing_cannot_be_judged(
    answers: str, said: str, place: Path, capsys: Capture
) -> None:
    some = answers.split(",")
    rows = [f"n{n},{g},{some[n % len(some)]}" for n in range(60) for g in ("man", "woman")]
    Path("t.csv").write_text("\n".join(["id,gender,answer", *rows]) + "\n")
    argv = ["import", "t.csv", "--labels", "yes,no", "--favourable", "yes", "--fail-on", "net(gender) > 2%"]
    assert command(argv) == 3
    told = capsys.readouterr()
    assert f"--fail-on: cannot be judged: recorded: {said}" in " ".join(told.err.split())
    assert "cannot be judged: " in " ".join(told.out.split()).lower()
