"""Files of recorded answers that were made to exhaust this machine, to crash what reads them, or to write elsewhere."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest

from auditor.contrib.imports import answer_files
from auditor.core import reading
from auditor.core.errors import DataFileError

ROWS = b"text_id,answer\n" + b"a,1\n" * 1000


def packed(**members: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return made.getvalue()


def parquet(rows: int, text: str) -> bytes:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column = arrow.array([text] * rows).dictionary_encode()
    made = io.BytesIO()
    parquet.write_table(arrow.table({"answer": column}), made)
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", ROWS), ("x.csv.gz", gzip.compress(ROWS)), ("x.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 1000)),
        ("x.zip", packed(x_csv=ROWS)), ("x.zip", packed(x_csv=ROWS[:899], y_csv=ROWS[:899])), ("x.parquet", None),
    ],
    ids=["plain", "gzip", "lines", "zip", "many members", "parquet"],
)  # fmt: skip
def test_what_a_file_unpacks_to_is_bounded(
    name: str, content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_bytes(content if content is not None else parquet(200, "x" * 100))
    rows = len(answer_files.read([path]))
    assert rows >= 200
    monkeypatch.setattr(reading, "LARGEST", 1500)
    with pytest.raises(DataFileError, match=r"x\.\w+.*: larger than 1,500 bytes"):
        answer_files.read([path])


def test_a_json_document_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(json.dumps([{"a": 1}] * 100).encode()))
    assert len(answer_files.read([path])) == 100
    monkeypatch.setattr(answer_files, "DOCUMENT", 500)
    with pytest.raises(DataFileError, match="larger than 500 bytes"):
        answer_files.read([path])


@pytest.mark.parametrize(
    "content",
    [
        ",".join(f"c{n}" for n in range(101)) + "\n" + ",".join("1" * 101) + "\n",
        json.dumps([[{"a": list(range(101))}]]),
        "".join(json.dumps({f"c{n}": 1}) + "\n" for n in range(101)),
    ],
)
def test_columns_are_bounded(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = {"c": "x.csv", "[": "x.json", "{": "x.jsonl"}[content[0]]
    (tmp_path / name).write_text(content)
    assert len(answer_files.read([tmp_path / name]).columns) == 101
    monkeypatch.setattr(answer_files, "COLUMNS", 100)
    with pytest.raises(DataFileError, match="more than 100 columns"):
        answer_files.read([tmp_path / name])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.parquet", b"PAR1junkPAR1"), ("x.parquet", b""), ("x.zip", b"PK\x03\x04junk"),
        ("x.csv.gz", b"\x1f\x8b\x08junk"), ("x.json", b"[" * 100_000), ("x.jsonl", b'{"a":' * 100_000),
        ("x.json", b'[{"a": ' + b"9" * 5000 + b"}]"), ("x.csv", b"a,b\n\xff,1\n"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_an_error_that_names_it(name: str, content: bytes, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFileError, match=name):
        answer_files.read([tmp_path / name])


def test_names_in_a_zip_file_lead_nowhere(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in ("../../escaped.csv", str(tmp_path / "absolute.csv")):
            archive.writestr(name, ROWS)
    (inside / "x.zip").write_bytes(made.getvalue())
    assert len(answer_files.read([inside / "x.zip"])) == 2000
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inside", "x.zip"]
