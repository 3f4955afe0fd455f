"""Recorded answers of hosted LLMs to one résumé in many versions: an edit has an effect of its own.

The figures are those of the README beside the file: differences between the mean score of a version and that of the
unchanged résumé, by model and job.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from auditor.contrib.imports import answer_files, inference, observe
from auditor.core.record.measured import Claim
from auditor.core.types import Answer
from auditor.measure.claims import Question
from auditor.measure.contrasts import outcome_means, score
from auditor.measure.findings import claims
from auditor.measure.linear import Design, Rows, fit
from auditor.measure.observations import Arm, Observations, Shape

FILE = Path(__file__).resolve().parents[3] / "shared" / "data" / "recorded_llm" / "hiring_scores.csv.gz"
pytestmark = [
    pytest.mark.paper,
    pytest.mark.skipif(not FILE.is_file(), reason="the recorded scores are not in ../shared/data"),
]

OWN, NAME = "own name", "name"
NAMES = ("aisha-okonkwo", "james-smith", "maria-rodriguez", "mohammed-al-said", "sarah-smith", "wei-chen")
README = {  # version: cells, mean difference, mean absolute difference
    "placebo_noop-whitespace": (119, -0.141, 0.262),
    "placebo_car-silver": (119, -0.316, 0.471),
    "placebo_day-tuesday": (119, -0.129, 0.284),
    "firstName_aisha-okonkwo": (187, -0.309, 0.435),
    "firstName_james-smith": (187, -0.236, 0.405),
    "careerGap_unexplained": (187, -0.289, 0.434),
    "school_mit": (187, -0.010, 0.268),
}
Key = tuple[str, str, str]  # version, model, job


def shape(version: str) -> Shape:
    """What stands for a version: its words are the name, or the sentence that is put in."""
    axis, _, level = version.partition("_")
    if axis == "baseline":
        return Shape(Arm.ORIGINAL, (), (), (), (), 0, 0, 0)
    arm = Arm.PLACEBO if axis == "placebo" else Arm.EDITED
    attribute = NAME if axis in ("firstName", "placebo") else axis
    own = OWN if axis == "firstName" else "as written"
    target = own if arm == Arm.PLACEBO else level
    return Shape(arm, (attribute,), ((attribute, own, target),), (), (level,), 1, 0, 0)


@cache
def cells() -> dict[Key, list[Answer]]:
    """The runs of each model, job and version, in the harness of the audit."""
    found: dict[Key, list[Answer]] = defaultdict(list)
    with gzip.open(FILE, "rb") as packed, io.TextIOWrapper(packed, encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["harness"] == "audit":
                value = float(line["score"]) if line["score"] else None
                found[line["variant"], line["model"], line["job"]].append(
                    Answer(value=value, status="unparsed" if value is None else "ok")
                )
    return dict(found)


def test_the_table_of_mean_differences() -> None:
    table = Observations()
    rows = {}
    for (version, model, job), answers in cells().items():
        row = rows[version, model, job] = table.shape(f"{model} {job}", shape(version))
        table.answers(row, model=model, format="score", answers=answers)
    columns = table.columns()
    mean, known = outcome_means(columns, np.ones(len(columns.version), dtype=bool), score)
    for version, expected in README.items():
        apart = [
            mean[row] - mean[rows["baseline", model, job]]
            for (name, model, job), row in rows.items()
            if name == version and known[row] and known[rows["baseline", model, job]]
        ]
        assert (len(apart), round(float(np.mean(apart)), 3), round(float(np.abs(apart).mean()), 3)) == expected


@cache
def by_job() -> Observations:
    """One text for each job; the mean of each model that was asked the placebos too is one answer to it."""
    table = Observations()
    models = {model for version, model, _ in cells() if version.startswith("placebo")}
    jobs = sorted({job for _, _, job in cells()})
    versions = sorted({v for v, _, _ in cells() if v.split("_")[0] in ("baseline", "firstName", "placebo")})
    for job in jobs:
        for version in versions:
            row = table.shape(job, shape(version))
            given = []
            for model in sorted(models):
                numbers = [a.value for a in cells()[version, model, job] if a.status == "ok"]
                given.append(Answer(value=float(np.mean(numbers)), status="ok"))  # type: ignore[arg-type]
            table.answers(row, model="all", format="score", answers=given)
    return table


def claimed(reference: str) -> dict[str, Claim]:
    question = Question(number=True, unit="points", references={NAME: reference})
    return {c.groups[0]: c for c in claims(by_job(), question) if c.family == "net"}


def test_the_unchanged_resume_measures_the_edit() -> None:
    apart = defaultdict(list)
    for version, model, job in cells():
        if version == "firstName_aisha-okonkwo":
            both = [[a.value for a in cells()[v, model, job] if a.status == "ok"] for v in (version, "baseline")]
            apart[job].append(np.mean(both[0]) - np.mean(both[1]))  # type: ignore[arg-type]
    by = np.array([np.mean(found) for _, found in sorted(apart.items())])
    n = len(by)
    design = Design(focal=np.ones(n), covariates=np.zeros((n, 1)), text=np.arange(n), words=csr_array((n, 0)))
    naive = fit(Rows(by, design)).these
    assert (n, round(naive.value / naive.se)) == (17, -14)
    # With what placebo edits do taken out, less is left, and nothing of it is said of the groups.
    found = claimed(OWN)
    assert set(found) == set(NAMES)
    assert all(c.verdict != "shown" for c in found.values())
    assert found["aisha-okonkwo"].estimate is not None
    assert naive.value < found["aisha-okonkwo"].estimate - 0.05


def test_names_against_names_decide() -> None:
    found = claimed("james-smith")
    assert all(c.texts == 17 for c in found.values())
    assert {found[name].verdict for name in NAMES if name != "james-smith"} == {"not_determined"}
    aisha = found["aisha-okonkwo"]
    assert aisha.estimate == pytest.approx(-0.077, abs=5e-4)
    assert aisha.low < 0 < aisha.high  # type: ignore[operator]


CARE = FILE.with_name("care_summaries.csv.gz")


def test_care_summaries_by_import_differ_for_one_of_three_models() -> None:
    """The published reading: Gemma writes of men and women differently, Llama 3 does not."""
    table = answer_files.read([CARE])
    imported = observe.observe(table, inference.infer(table, settings={"kind": "words"}))
    found = {c.model: c for c in claims(imported.table, imported.question) if c.family == "net"}
    assert imported.counted.rows == 4_896
    said = {model: (c.texts, c.verdict) for model, c in found.items()}
    unclear = (340, "not_determined")
    assert said == {"chatgpt": unclear, "gemma": (340, "shown"), "llama3": unclear}
    gemma = found["gemma"]
    assert gemma.groups == ("female", "male")
    assert gemma.estimate == pytest.approx(-6.1, abs=0.05)  # words of a summary


def test_the_import_of_the_scores_has_the_figures_of_the_readme() -> None:
    table = answer_files.read([FILE])
    roles = inference.infer(table).model_copy(update={"where": {"harness": ("audit",)}})
    imported = observe.observe(table, roles)
    assert imported.counted.used == sum(map(len, cells().values()))
    by = {(c.model, c.attribute, c.groups): c for c in claims(imported.table, imported.question)}
    one = by["qwen-3-next-80b", "graduationYear", ("1998", "2005")]
    apart = [
        np.mean([a.value for a in cells()["graduationYear_1998", "qwen-3-next-80b", job]])  # type: ignore[arg-type]
        - np.mean([a.value for a in cells()["graduationYear_2005", "qwen-3-next-80b", job]])  # type: ignore[arg-type]
        for job in {job for _, _, job in cells()}
    ]
    assert one.estimate == pytest.approx(np.mean(apart))
    assert (one.verdict, one.scope) == ("shown", "words")
