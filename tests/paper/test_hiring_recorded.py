"""The published figures of a study in which gpt-3.5-turbo ranked eight résumés that differ in the name only.

Published with the study: first places by race and sex in 1,000 rankings a job, selection rates, impact ratios.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from auditor.contrib.imports import answer_files, mapping, observe
from auditor.measure.findings import claims
from auditor.measure.impact import Count, table

ROOT = Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "examples" / "museum"
FOLDER = ROOT.parent / "shared" / "data" / "hiring_recorded"
FILE = FOLDER / "gpt-3.5-turbo-0613_rankings.jsonl.gz"
PAGE = (MUSEUM / "README.md").read_text(encoding="utf-8")
pytestmark = [
    pytest.mark.paper,
    pytest.mark.skipif(not FILE.is_file(), reason="the recorded rankings are not in ../shared/data"),
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the script of the museum writes."""
    out = tmp_path_factory.mktemp("rankings") / "rows.csv"
    with out.open("wb") as file:
        subprocess.run([sys.executable, str(MUSEUM / "rankings.py"), str(FILE)], stdout=file, check=True)
    return out


def test_all_published_figures(rows: Path) -> None:
    shown, first = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    with rows.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if "/oversampled/" not in row["ranking"]:
                shown[row["job"], row["group"]] += 1
                first[row["job"], row["group"]] += row["first"] == "yes"
    with (FOLDER / "published_figures.csv").open(encoding="utf-8", newline="") as file:
        published = list(csv.DictReader(file))
    assert len(published) == 24
    for job in {line["job"] for line in published}:
        counts = [Count(category=group, n=n, x=first[job, group]) for (at, group), n in shown.items() if at == job]
        ours = {row.count.category: row for row in table(counts).rows}
        for line in (line for line in published if line["job"] == job):
            row = ours[line["demo"]]
            assert (row.count.x, row.count.n) == (int(line["top"]), 1000)
            assert row.ratio is not None
            assert float(row.count.x / row.count.n) == pytest.approx(float(line["selection_rate"]), abs=1e-12)
            assert float(row.ratio) == pytest.approx(float(line["disparate_impact_ratio"]), abs=1e-12)


def test_the_import_says_who_comes_first_less_often(rows: Path) -> None:
    found = observe.observe(answer_files.read([rows]), mapping.load(MUSEUM / "rankings.toml"))
    (claim,) = [c for c in claims(found.table, found.question) if c.family == "net" and set(c.groups) == {"M", "W"}]
    assert claim.estimate is not None
    assert 100 * abs(claim.estimate) == pytest.approx(2.4, abs=0.05)
    assert "2.4 points less often" in PAGE
    assert "3,115 rankings" in PAGE
