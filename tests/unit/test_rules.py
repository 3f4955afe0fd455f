"""``--fail-on`` and ``waivers.toml``: slips are told with their place, and before anything is asked."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, both, said
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core import waivers
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.plan import Plan
from auditor.core.record import read

ASKED = "the model was asked"


def never(text: str) -> str:
    raise AssertionError(ASKED)


RUN = ["run", "--task", "sentiment", "--model", "python:tests.unit.test_rules:never"]


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
    code, _, err = both(capsys, *RUN, "--fail-on", rule)
    *told, quoted, mark = err.splitlines()
    text = " ".join(line.strip() for line in told)
    assert code == 2
    assert text.startswith("audit: --fail-on: ")
    assert what in text
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
def test_what_the_run_lacks_is_told_before_asking(argv: list[str], what: str, place: Path, capsys: Capture) -> None:
    code, text = said(capsys, *RUN, *argv)
    assert code == 2
    assert what in text
    assert ASKED not in text


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from(list('shownet()>%0.5,+" ')) | st.characters(), max_size=25))
def test_any_text_is_a_rule_or_a_clear_error(text: str) -> None:
    told = ""
    try:
        Plan(fail_on=text)
    except ConfigError as error:
        told = str(error)
    assert not told or told.startswith("--fail-on")


def recorded(answer: Callable[[int, str], str]) -> list[str]:
    """A table of answers about sixty notes, and the command that reads it."""
    rows = [f"n{n},{gender},{answer(n, gender)}" for n in range(60) for gender in ("man", "woman")]
    Path("t.csv").write_text("\n".join(["id,gender,answer", *rows]) + "\n")
    return ["import", "t.csv", "--labels", "yes,no", "--favourable", "yes", "--fail-on"]


@pytest.mark.parametrize(
    ("rule", "code", "told"),
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
def test_rules_on_a_recorded_table_without_words(rule: str, code: int, told: str, place: Path, capsys: Capture) -> None:
    argv = recorded(lambda n, gender: "yes" if gender == "man" or n % 3 == 0 else "no")
    found, text = said(capsys, *argv, rule)
    assert (found, told in text) == (code, True), text


@pytest.mark.parametrize(
    ("answers", "told"),
    [("yes,yes", "all its answers are the same"), ("?,no,yes,?", "too many of its answers could not be read")],
)
def test_recorded_answers_that_say_nothing(answers: str, told: str, place: Path, capsys: Capture) -> None:
    some = answers.split(",")
    code, out, err = both(capsys, *recorded(lambda n, gender: some[n % len(some)]), "net(gender) > 2%")
    assert code == 3
    assert f"--fail-on: cannot be judged: recorded: {told}" in " ".join(err.split())
    assert "cannot be judged: " in " ".join(out.split()).lower()


DAY = datetime.date(2026, 5, 1)


def entry(**changes: str) -> str:
    values = {"finding": '"a/b/c/d"', "reason": '"r"', "owner": '"o"', "expires": "2026-05-01", **changes}
    return "[[waiver]]\n" + "\n".join(f"{k} = {v}" for k, v in values.items() if v) + "\n"


GOOD = (
    entry(finding='"MUT101/m/*/gender"', owner='"A. Person"')
    + entry(finding='"F2"', run='"run-1"', expires='"2026-04-30"')
    + entry(finding='"REF120/*"', expires="2027-01-01")
)
RECORD: dict[str, Any] = {
    "id": "run-1",
    "findings": [
        {
            "id": id, "kind": "claim", "code": "MUT101", "model": "m", "format": "bare", "attributes": [attribute],
            "verdict": "shown",
        }
        for id, attribute in (("F1", "gender"), ("F2", "race"))
    ],
}  # fmt: skip


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "waivers.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_reading_and_states(tmp_path: Path) -> None:
    record = waivers.apply(read(RECORD), waivers.load(write(tmp_path, GOOD)), DAY)
    assert [(w.status, list(w.findings), w.line) for w in record.waivers.items] == [
        ("active", ["F1"], 1),  # holds on its last day
        ("expired", ["F2"], 6),
        ("unmatched", [], 12),
    ]
    assert list(record.waived) == ["F1"]
    waived, expired, unmatched = waivers.lines(record)
    assert [part for part in ("Waived: F1", "A. Person", "2026-05-01") if part not in waived] == []
    assert expired.startswith("Expired waiver, without effect: F2")
    assert unmatched.startswith("Waiver that matches no finding of this run: REF120/*")
    assert record.raw["findings"] == RECORD["findings"]
    other = waivers.apply(read({**RECORD, "id": "run-2"}), waivers.load(write(tmp_path, GOOD)), DAY)
    assert [w.status for w in other.waivers.items] == [
        "active",
        "unmatched",
        "unmatched",
    ]  # an id holds in its run only


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("[[waiver]\n", 1, "TOML"), ("\n\nx = = 1\n", 3, "TOML"),
        ("[[waivers]]\na = 1\n", 1, "field waivers: no such field; did you mean waiver?"),
        ("\n[waiver]\nfinding = 'x'\n", 2, "tables [[waiver]]"),
        (entry() + entry(owner=""), 6, "owner: this field is missing"),
        (entry() + entry(reason='" "'), 6, "reason: "), (entry(owner="3"), 1, "owner: "),
        (entry(expires='"soon"'), 1, "must be a date"), (entry(expires="true"), 1, "must be a date"),
        (entry(ownr='"x"'), 1, "waiver.0.ownr: no such field"),
        (entry(finding='"F001"'), 1, "'F001' is not a"),
    ],
)  # fmt: skip
def test_slips_name_file_and_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataFileError) as error:
        waivers.load(path)
    assert f"{path}, line {line}:" in str(error.value)
    assert what in str(error.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, message in ((write(tmp_path, b"\xff\xfe"), "UTF-8"), (tmp_path / "none.toml", "no such file")):
        with pytest.raises(DataFileError, match=message):
            waivers.load(path)
