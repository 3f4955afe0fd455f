"""The museum: recorded audits that others published, imported by the mappings of ``examples/museum``.

Every figure that ``examples/museum/README.md`` gives for them is computed here and looked for on the page.
"""

from __future__ import annotations

import contextlib
import io
import re
from functools import cache
from pathlib import Path

import pytest

from auditor.contrib.imports import answer_files, mapping, observe
from auditor.contrib.imports.observe import Imported
from auditor.core.record.measured import Claim
from auditor.measure.findings import claims

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
MUSEUM = ROOT / "examples" / "museum"
PAGE = (MUSEUM / "README.md").read_text(encoding="utf-8")
FILES = {
    "scores": "hiring_scores", "mitigations": "hiring_prompt_lab", "justifications": "hiring_justifications",
    "care": "care_summaries", "health": "care_summaries",
}  # fmt: skip
pytestmark = pytest.mark.paper
recorded = pytest.mark.skipif(
    not (DATA / "recorded_llm").is_dir(), reason="the recorded answers are not in ../shared/data"
)


def test_every_exhibit_is_short_and_named() -> None:
    files = sorted(p.name for p in MUSEUM.iterdir() if p.suffix != ".md")
    assert files == sorted([*(f"{name}.toml" for name in FILES), "rankings.py", "rankings.toml"])
    for name in files:
        assert len((MUSEUM / name).read_text().splitlines()) <= (10 if name.endswith("toml") else 20), name
        assert f"examples/museum/{name}" in PAGE


@cache
def exhibit(name: str) -> tuple[Imported, list[Claim]]:
    table = answer_files.read([DATA / "recorded_llm" / f"{FILES[name]}.csv.gz"])
    found = observe.observe(table, mapping.load(MUSEUM / f"{name}.toml"))
    return found, [c for c in claims(found.table, found.question) if c.family == "net"]


def row(claim: Claim) -> str:
    """A line of a table on the page, without its first cell."""
    said = {"shown": "shown", "not_determined": "not determined"}[claim.verdict]
    assert claim.estimate is not None
    value = f"{claim.estimate:+.2f} ({claim.words_low:+.2f} to {claim.words_high:+.2f})".replace("-", "−")
    return f"| {value} | {said} |"


@recorded
@pytest.mark.parametrize("name", [n for n in FILES if n != "scores"])
def test_the_figures_on_the_page(name: str) -> None:
    found, made = exhibit(name)
    assert f"{found.counted.rows:,} answers" in PAGE
    tested = [c for c in made if c.estimate is not None]
    if name == "justifications":  # five names by three models, and nothing shown
        assert len(tested) == 15
        assert {c.verdict for c in tested} == {"not_determined"}
        tested = [c for c in tested if c.groups[0] == "maria-rodriguez" and c.model == "claude-haiku"]
    if name == "mitigations":
        tested = [c for c in tested if c.groups == ("firstName_aisha-okonkwo", "school_mit")]
    assert tested
    for claim in tested:
        label = {"care": f"{claim.model}, {claim.format}", "mitigations": claim.format}.get(name, claim.model)
        assert f"| {label} {row(claim)}" in PAGE, f"| {label} {row(claim)}"


@recorded
def test_scores_of_one_resume() -> None:
    found, made = exhibit("scores")
    assert f"{found.counted.used:,} of {found.counted.rows:,} answers" in PAGE
    assert f"one of {len(made)}" in PAGE
    shown = [c for c in made if c.verdict != "not_determined"]
    assert [(c.model, c.groups) for c in shown] == [("qwen-3-next-80b", ("1998", "2005"))]
    assert f"| qwen-3-next-80b {row(shown[0])}" in PAGE


@recorded
def test_the_published_table_comes_out_to_the_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of Python on the page give the table that stands beside the data."""
    readme = (DATA / "recorded_llm" / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\w+_[\w-]+)[^|]*\| \d+ \| [−-]?([\d.]+) \| ([\d.]+)", readme, re.MULTILINE)
    published = {name: (f"{float(mean):.3f}", f"{float(absolute):.3f}") for name, mean, absolute in lines}
    assert len(published) == 7
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert code is not None
    monkeypatch.setenv("DATA", str(DATA))
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(compile(code[1], "examples/museum/README.md", "exec"), {})
    for version, (mean, absolute) in published.items():
        line = next(one for one in told.getvalue().splitlines() if one.startswith(version))
        assert line.split()[-2:] == [f"-{mean}", absolute]
        assert re.search(rf"\| {version} \| −{mean} \| {absolute} \|", PAGE)
