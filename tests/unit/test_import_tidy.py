"""Tables as others publish them: the planted difference is found, from what was inferred or a mapping alone."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from random import Random

import pytest

from auditor.contrib.imports import answer_files, inference
from auditor.contrib.imports.mapping import Roles
from auditor.contrib.imports.observe import observe
from auditor.measure.families import claims


def differences(files: list[Path], roles: Roles | None = None) -> dict[tuple[str, str], float]:
    """Net difference of female and male answers (or of black and white), by model and attribute."""
    table = answer_files.read(files)
    seen = observe(table, roles or inference.infer(table))
    return {
        (c.model, c.attribute): c.estimate * (1 if c.groups[0].lower() in ("female", "black") else -1)
        for c in claims(seen.table, seen.question)
        if c.family == "net" and c.estimate is not None
    }


def scored(effect: float = -6.0, *, seed: int = 1, texts: int = 40) -> list[tuple[str, str, float]]:
    rng = Random(seed)
    return [
        (f"t{n}", gender, round(base + (effect if gender == "female" else 0), 1))
        for n in range(texts)
        for base in [round(rng.uniform(40, 60), 1)]
        for gender in ("male", "female")
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_semicolons_decimal_commas_marks_and_spellings(tmp_path: Path, encoding: str) -> None:
    rows = ["item;gender;score"]
    for n, (text, gender, value) in enumerate(scored()):
        spelling = (gender, gender.title(), f"{gender} ")[n % 3]
        rows.append(f"{text};{spelling};{value}".replace(".", ","))
    rows += ["t1;NaN;12,5", "t2;female;N/A"]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(rows), encoding=encoding)
    table = answer_files.read([file])
    seen = observe(table, inference.infer(table))
    assert (seen.counted.no_group, seen.counted.empty) == (1, 1)
    assert seen.counted.respelled == 53
    assert differences([file]) == pytest.approx({("recorded", "gender"): -6.0}, abs=0.02)


def test_spellings_of_a_label_are_one(tmp_path: Path) -> None:
    rng, rows = Random(2), ["case_id,gender,decision"]
    for n in range(60):
        rows.append(f"{n},male,{rng.choice(['yes', 'Yes.', 'YES', '**Yes**'])}")
        said = rng.choice(["yes", "Yes.", "YES"]) if n % 2 else rng.choice(["No.", "no", "NO"])
        rows.append(f"{n},female,{said}")
    (file := tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    assert differences([file]) == pytest.approx({("recorded", "gender"): -0.5})


def test_each_file_of_a_zip_is_a_model(tmp_path: Path) -> None:
    with zipfile.ZipFile(file := tmp_path / "all.zip", "w") as archive:
        for model, effect in (("one", -6.0), ("two", 2.0)):
            rows = [f"{t},{g},{v}" for t, g, v in scored(effect)]
            archive.writestr(f"out/{model}.csv", "\n".join(["item,gender,score", *rows]))
        archive.writestr("__MACOSX/out/._one.csv", "\x00")
    expected = {("one", "gender"): -6.0, ("two", "gender"): 2.0}
    assert differences([file]) == pytest.approx(expected, abs=0.02)


def test_one_answer_a_file_and_conversations(tmp_path: Path) -> None:
    lines = []
    for text, gender, value in scored():
        talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": f"Score: {value}/100"}]
        row = {"meta": {"vignette_id": text, "who": {"gender": gender}}, "messages": talk}
        lines.append(json.dumps(row))
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / f"{text}_{gender}.json").write_text(lines[-1], encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for file in (tmp_path / "folder", tmp_path / "a.jsonl"):
        assert differences([file]) == pytest.approx({("recorded", "gender"): -6.0}, abs=0.02)


def test_a_column_for_each_identity(tmp_path: Path) -> None:
    rng, rows = Random(3), ["item,black woman,black man,white woman,white man"]
    for n in range(40):
        base = rng.uniform(-1, 1)
        rows.append(f"{n},{base - 5},{base - 5},{base},{base}")
    (file := tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    wide = {
        f"{race} {noun}": {"race": race, "gender": gender}
        for race in ("black", "white")
        for noun, gender in (("woman", "female"), ("man", "male"))
    }
    found = differences([file], Roles(text=("item",), answer="score", kind="number", wide=wide))
    assert found == pytest.approx({("recorded", "race"): -5.0, ("recorded", "gender"): 0.0}, abs=1e-6)


def test_log_probabilities_of_two_labels(tmp_path: Path) -> None:
    rows = [f"{t},{g},{-1 - n % 7},{-2 - n % 7 + (g == 'female')}" for n, (t, g, _) in enumerate(scored())]
    (file := tmp_path / "a.csv").write_text("\n".join(["item,gender,yes,no", *rows]), encoding="utf-8")
    gender = {"gender": "gender"}
    roles = Roles(text=("item",), answer="yes", minus="no", kind="number", groups=gender)
    assert differences([file], roles) == pytest.approx({("recorded", "gender"): -1.0})


def test_an_id_of_each_row_is_no_text(tmp_path: Path) -> None:
    rows = [f'{n},"Hire the {g}?",{g},{t},{v}' for n, (t, g, v) in enumerate(scored())]
    (file := tmp_path / "a.csv").write_text("\n".join(["id,prompt,gender,job,score", *rows]), encoding="utf-8")
    roles = inference.infer(answer_files.read([file]))
    assert (roles.text, roles.format) == (("job",), ())
