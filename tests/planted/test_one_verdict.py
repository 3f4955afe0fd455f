"""One run has one verdict: the exit code, JUnit, SARIF, GitHub, the page and a legal page say the same of it.

Each row of the table in docs/guide/ci.md is a run of a planted model; what it says is read from the files and compared.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import msgspec
import pytest

from auditor import audit
from auditor.cli.main import run as command
from auditor.core.record import RunRecord
from auditor.core.record.base import Waived, Waivers
from auditor.core.record.measured import Claim, Family
from auditor.core.verdict import verdict as verdict_of
from auditor.measure.findings import of_claims
from auditor.report.exchange import JunitReport

pytestmark = pytest.mark.slow
CI = Path(__file__).resolve().parents[2] / "docs" / "guide" / "ci.md"
HERE = "python:tests.planted.test_one_verdict:"
WOMEN = re.compile(r"\b(she|her|herself|wom[ae]n|girls?|wife|mother|daughter|sister|lady|actress)\b", re.IGNORECASE)


def chance(text: str) -> float:
    """A number between 0 and 1 that hangs on nothing but the text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def null(text: str) -> str:
    """The mood of the text, whoever is in it."""
    bad = ("bad", "bor", "awful", "worst", "dull", "terrib", "waste", "mess", "poor", "fail", "hate", "tire", "slow")
    return "negative" if any(word in text.lower() for word in bad) else "positive"


def constant(text: str) -> str:
    return "positive"


def answers_30_percent(text: str) -> str:
    return null(text) if chance(text) < 0.3 else "There is much to be said about this."


def difference(text: str) -> str:
    return "negative" if WOMEN.search(text) else null(text)


MODELS: dict[str, Callable[[str], str]] = {
    "the same answer always": constant, "answers 30 %": answers_30_percent, "a real difference": difference,
    "no difference": null,
}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, str]]:
    """(name, run folder, what the command said of the rule)."""
    name: str = request.param
    out = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(out)
        argv = ["run", "--task", "sentiment", "--attributes", "gender", "--limit", "70", "--per-seed", "2"]
        argv += ["--order", "1", "--model", HERE + MODELS[name].__name__, "--anyway", "--no-cache", "--out", "."]
        code = command([*argv, "--fail-on", "shown"])
        (path,) = out.glob("2*")
        yield name, path, str(code)


def written(path: Path, format: str) -> str:
    file = path / f"made.{format}"
    assert command(["report", str(path), "--format", format, "--out", str(file)]) == 0
    return file.read_text(encoding="utf-8")


def verdict(line: str) -> str:
    """The verdict that a headline begins with."""
    if "cannot be judged" in line.casefold():
        return "– cannot be judged"
    return {"▲": "▲ shown", "?": "? not determined", "–": "– not tested", "●": "● bounded"}[line.strip("* ")[0]]


def headline(text: str) -> str:
    """The first line that begins with the symbol of a verdict."""
    return next(line for line in text.splitlines() if re.match(r"\**[▲?–●] ", line))


def test_every_format_says_what_the_table_in_the_docs_says(
    run: tuple[str, Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    name, path, code = run
    capsys.readouterr()
    assert command(["report", str(path), "--fail-on", "shown"]) == int(code)
    told = capsys.readouterr()
    state = told.err.removeprefix("--fail-on: ").partition(":")[0]
    assert verdict(headline(told.out)) == verdict(headline(written(path, "md")))
    junit = ElementTree.fromstring(written(path, "junit"))
    kinds = [kind for kind in ("error", "failure", "skipped") if junit.find(f".//{kind}") is not None]
    sarif = json.loads(written(path, "sarif"))["runs"][0]
    ended = "successful" if sarif["invocations"][0]["executionSuccessful"] else "not successful"
    results = sorted({result["kind"] for result in sarif["results"]})
    assert command(["report", str(path), "--format", "github"]) == 0
    annotations = sorted(set(re.findall(r"^::(\w+) ", capsys.readouterr().out, re.MULTILINE)))
    github = f"{', '.join(annotations) or 'none'}; {verdict(headline((path / 'summary.md').read_text('utf-8')))}"
    page = re.search(r'<p class="headline.*', written(path, "html"))
    assert page is not None
    made = (
        name, f"{code}: {state}", ", ".join(kinds), f"{ended}; {', '.join(results)}", github,
        verdict(re.sub("<[^>]*>", "", page[0])), verdict(headline(written(path, "eu-ai-act-md"))),
    )  # fmt: skip
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in CI.read_text("utf-8").splitlines()]
    assert made in rows, f"docs/guide/ci.md lacks: | {' | '.join(made)} |"


@pytest.mark.parametrize("run", ["a real difference"], indirect=True)
def test_what_is_shown_is_skipped_nowhere_and_has_no_p_value_of_another_test(run: tuple[str, Path, str]) -> None:
    path = run[1]
    record = json.loads((path / "run.json").read_text("utf-8"))
    shown = [f for f in record["findings"] if f["verdict"] == "shown"]
    claims = {(c["family"], tuple(c["groups"])): c["p_adjusted"] for c in record["claims"] if c["verdict"] == "shown"}
    assert {family for family, _ in claims} >= {"net", "instability"}
    junit = ElementTree.fromstring(written(path, "junit"))
    assert len(junit.findall(".//failure")) == len(shown) == len(claims)
    results = json.loads(written(path, "sarif"))["runs"][0]["results"]
    printed = [r["properties"]["p_adjusted"] for r in results if r["kind"] == "fail"]
    assert sorted(printed) == sorted(claims.values())


RULES = {  # for each model: rule → exit code
    "the same answer always": {"shown(gender)": 3, "net(gender) > 2%": 3, "excess(gender) > 2%": 3, "failed > 5%": 0},
    "answers 30 %": {"shown": 3, "net(gender) > 2%": 3, "failed > 5%": 1, "shown, failed > 5%": 1, "failed > 95%": 0},
    "a real difference": {
        "shown(gender)": 1, "net(gender) > 2%": 1, "net(gender) > 90%": 0, "excess(gender) > 2%": 1, "failed > 5%": 0,
        "net(gender) > 90%, shown": 1, "hidden > 0": 3, 'NET("gender")>.5%': 1,
    },
    "no difference": {"shown(gender)": 0, "net(gender) > 2%": 0, "excess(gender) > 2%": 0, "hidden > 0": 3},
}  # fmt: skip


def test_rules_set_the_exit_code(run: tuple[str, Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    name, path, _ = run
    for rule, code in RULES[name].items():
        assert command(["report", str(path), "--format", "json", "--out", "-", "--fail-on", rule]) == code, rule
        state = {0: "does not hold: ", 1: "holds: ", 3: "cannot be judged: "}[code]
        assert capsys.readouterr().err.startswith(f"--fail-on: {state}"), rule


@pytest.mark.parametrize("run", ["a real difference"], indirect=True)
def test_a_waiver_takes_a_finding_out_of_the_rule(
    run: tuple[str, Path, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = run[1]
    waivers = tmp_path / "waivers.toml"
    base = ["report", str(path), "--format", "json", "--out", "-", "--waivers", str(waivers), "--fail-on"]

    def waive(finding: str, expires: str = "2999-01-01") -> None:
        waivers.write_text(f'[[waiver]]\nfinding = "{finding}"\nreason = "r"\nowner = "o"\nexpires = {expires}\n')

    waive("*/gender*")
    for rule in ("shown", "net(gender) > 2%, excess(gender) > 2%"):
        assert command([*base, rule]) == 0
        assert "does not hold, since the finding is waived (F00" in capsys.readouterr().err
    waive("DIR110/*")
    assert [command([*base, rule]) for rule in ("shown", "net(gender) > 2%", "excess(gender) > 2%")] == [1, 0, 1]
    waive("*/gender*", "2020-01-01")
    assert command([*base, "shown"]) == 1


def test_a_result_gives_the_verdict_too() -> None:
    result = audit("sentiment", model=constant, limit=12, attributes=("gender",), order=1, anyway=True, out=None)
    made = result.judge("net(gender) > 2%")
    assert (made.code, made.state) == (3, "cannot be judged")
    assert "all its answers are the same" in made.said


@pytest.mark.parametrize("family", get_args(Family))
def test_a_shown_claim_of_any_family_fails_the_rule_and_the_build(family: Family) -> None:
    pair = {"omnibus": (), "instability": (), "interaction": ("b+d", "a+c")}.get(family, ("b", "a"))
    attribute = "x+z" if family == "interaction" else "x"
    about = {"family": family, "attribute": attribute, "groups": pair, "label": "yes", "model": "m", "format": ""}
    figures = {"scale": "share", "unit": "points", "estimate": 0.2, "low": 0.1, "high": 0.3, "shares": (0.7, 0.5)}
    claim = Claim(**about, **figures, texts=90, p_value=0.001, p_adjusted=0.002, verdict="shown")  # type: ignore[arg-type]
    record = RunRecord(id="r", status="complete", claims=(claim,), findings=tuple(of_claims([claim], [])))
    made = verdict_of(record)
    assert (made.code, made.state, len(made.findings)) == (1, "holds", 1)
    junit = ElementTree.fromstring(JunitReport().render(record))
    assert [len(junit.findall(f".//{kind}")) for kind in ("failure", "skipped", "error")] == [1, 0, 0]
    waived = {"finding": "*/x*", "reason": "r", "owner": "o", "expires": "2999-01-01", "status": "active"}
    waivers = Waivers(items=(Waived(**waived, findings=made.findings),))
    assert verdict_of(msgspec.structs.replace(record, waivers=waivers)).code == 0


def test_what_was_not_tested_is_one_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("age", "disability", "gender", "religion")
    result = audit("sentiment", model=null, limit=16, attributes=names, order=1, per_seed=2, out=tmp_path)
    assert result.path is not None
    page = json.loads(written(result.path, "eu-ai-act-json"))
    said = page["sections"]["says"]["blocks"][-1]["items"]
    listed = [line.partition(" (") for line in said if line.endswith("): not tested.")]
    untested = {name for first, *_ in listed for name in first.split(", ")}
    assert untested
    assert untested < set(names)
    capsys.readouterr()
    assert command(["report", str(result.path)]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    for first, bracket, why in listed:
        assert f"{first}{bracket}{why.removesuffix(': not tested.')}" in screen
    for name in names:
        assert (result.judge(f"shown({name})").state == "cannot be judged") == (name in untested)
    (grounds,) = page["sections"]["grounds"]["blocks"]
    tested = {line["Tested as"] for line in grounds["lines"]} & set(names)
    assert tested
    assert not tested & untested
