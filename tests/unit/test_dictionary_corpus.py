"""Proposals from a corpus in the form of the public SBIC files; the rows are made up."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from auditor.core.errors import DataFileError
from auditor.perturb.dictionaries import builtin, check, corpus, load
from auditor.perturb.dictionaries.corpus import count, propose, slot_of, split_terms, to_yaml

ALL = [load(name) for name in builtin()]


def written(folder: Path, rows: list[tuple[object, object, object]], name: str = "SBIC.v2.agg.trn.csv") -> Path:
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as handle:
        out = csv.writer(handle)
        out.writerow(["", "post", "hasBiasedImplication", "targetMinority", "targetCategory", "targetStereotype"])
        for i, row in enumerate(rows):
            cells = [cell if isinstance(cell, str) else json.dumps(cell) for cell in row]
            out.writerow([i, f"post, with a comma\nand a line {i}", "0", *cells])
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(
        tmp_path,
        [
            (["older people"], ["body"], ["like tea"]),
            (["older people", "retirees"], ["body"], []),
            (["Older  people"], ["body", "social"], ["walk"]),
            (["welsh folks"], ["race"], []),
            (["welsh folks", "women"], ["race", "gender"], ["sing"]),
            (["women"], ["gender"], ["read"]),
            ([], [], []),
            ("", "", ""),
            ("not [json", "[1, 2]", "[broken"),
        ],
    )


def test_counts_and_threshold(path: Path) -> None:
    counts = count([path])
    assert counts.posts == 9
    assert counts.by_category["body"] == {"older people": 3, "retirees": 1}
    assert counts.unreadable == 2
    assert "2 cells" in counts.notes[0]
    rows = propose(counts, ALL, min_count=2)
    assert [(p.category, p.text, p.count, p.stereotypes) for p in rows] == [
        ("body", "older people", 3, 2),
        ("gender", "women", 2, 2),
        ("race", "welsh folks", 2, 1),
    ]
    assert [round(p.share, 2) for p in rows] == [1.0, 1.0, 1.0]
    assert [p.known for p in rows] == ["", "gender", ""]
    assert propose(counts, ALL, min_count=4) == []
    assert [p.text for p in propose(counts, ALL, min_count=1, category="race")] == ["welsh folks"]


def test_several_files_are_counted_together(path: Path, tmp_path: Path) -> None:
    other = written(tmp_path, [(["women"], ["gender"], [])], "SBIC.v2.agg.dev.csv")
    assert count([path, other]).by_category["gender"]["women"] == 3


def test_a_proposal_is_a_dictionary(path: Path, tmp_path: Path) -> None:
    counts = count([path])
    (text,) = to_yaml(propose(counts, ALL, min_count=1, category="body"), counts, "SBIC, test", 1).values()
    assert "3 posts, 100% of them body, 2 with a stereotype" in text
    file = tmp_path / "body.yaml"
    file.write_text(text, encoding="utf-8")
    one = load(file)
    assert one.attribute == "body"
    assert {(t.text, t.slot, t.pos, t.number) for t in one.terms} == {
        ("older people", "noun.pl", "NNS", "pl"),
        ("retirees", "noun.pl", "NNS", "pl"),
    }
    assert check([one]) == []
    every = to_yaml(propose(counts, ALL, min_count=1), counts, "SBIC, test", 1)
    assert list(every) == ["body", "gender", "race"]
    assert "2 posts, 100% of them race, 1 with a stereotype" in every["race"]


def test_hostile_terms_stay_text(tmp_path: Path) -> None:
    odd = ['x: {y}" # people', "été \u202e people", "a-b people", "a b people", "=cmd()|x people"]
    counts = count([written(tmp_path, [(odd, ["race: [x]\n#"], [])] * 3)])
    file = tmp_path / "out.yaml"
    (text,) = to_yaml(propose(counts, [], min_count=1), counts, 'a "source"', 1).values()
    file.write_text(text, encoding="utf-8")
    assert len(load(file).terms) >= 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"post,targetMinority\nx,[]\n", "no column 'targetCategory'"),
        (b"", "the file is empty"),
        (b"post,targetMinority,targetCategory,targetStereotype\n\xff,[],[],[]\n", "not UTF-8"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=message):
        count([path])
    with pytest.raises(DataFileError, match="no such file"):
        count([tmp_path / "none.csv"])


def test_memory_is_bounded_and_frequent_terms_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MAX_TERMS", 10)
    rows = [([f"group {i}", "women"], ["gender"], []) for i in range(50)]
    counts = count([written(tmp_path, [(["women"], ["gender"], []), *rows])])
    assert len(counts.by_term) <= 11
    assert counts.by_category["gender"]["women"] == 51
    assert counts.dropped >= 39
    assert "dropped" in counts.notes[0]


def test_terms_are_split_and_typed() -> None:
    assert split_terms("retirees, Older people/pensioners; 123") == ["retirees", "older people", "pensioners"]
    assert split_terms("a very long sentence that names nobody at all") == []
    assert slot_of("people with illness")[0] == "noun.pl"
    assert slot_of("a nun")[0] == "noun.sg"


def test_command(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from auditor.cli.main import run

    out = tmp_path / "proposed.yaml"
    body = ["dictionary", "build", "--corpus", str(path), "--category", "gender"]
    assert run([*body, "--out", str(out), "--min-count", "2"]) == 0
    assert "1 terms, 0 of them in no dictionary yet" in capsys.readouterr().out
    assert run(["dictionary", "build", "--corpus", str(path), "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err
    other = tmp_path / "other.yaml"
    assert run(["dictionary", "build", "--corpus", str(path), "--out", str(other)]) == 2
    assert "categories found: body, gender, race, social" in capsys.readouterr().err
    every = tmp_path / "all.yaml"
    assert run(["dictionary", "build", "--corpus", str(path), "--out", str(every), "--min-count", "1"]) == 0
    told = capsys.readouterr().out
    assert "'older people' is filed under body (3), and stands in social (1) too" in told
    files = [str(tmp_path / f"all-{name}.yaml") for name in ("body", "gender", "race")]
    assert told.endswith(f"Next: audit dictionary check {' '.join(files)}\n")
    assert not every.exists()
    assert "3 posts, 100% of them body, 2 with a stereotype; 1 of them social too" in Path(files[0]).read_text()
    for file in files:
        load(file)  # it can be read
    run(["dictionary", "check", *files])
    assert "not valid" not in capsys.readouterr().err
    assert run(["dictionary", "show", "race"]) == 0
    assert "attribute: race" in capsys.readouterr().out
    assert run(["dictionary", "show", "raze"]) == 2
    assert "race" in capsys.readouterr().err
    assert run(["dictionary", "list", "names"]) == 0
    assert "Lakisha" in capsys.readouterr().out
    assert run(["dictionary", "list", "--format", "json"]) == 0
    assert {row.get("view") for row in json.loads(capsys.readouterr().out)} >= {"race", "gender", "body"}
