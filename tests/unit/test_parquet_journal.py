"""The Parquet journal: the same run, the same readers, a chain over parts, and what a kill leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from auditor.config import Plan
from auditor.errors import RunFolderError
from auditor.result import audit_plan, load, resume
from auditor.store import parquet
from auditor.store.folder import RunFolder
from auditor.store.journal import Head, read
from auditor.store.parquet import ParquetJournal, parts_of, record_at, scan, verify
from auditor.store.verify import verify_folder

START = "0" * 64


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "responses.jsonl"


def _fill(path: Path, *sizes: int) -> Head:
    with ParquetJournal(path, START) as journal:
        n = 0
        for size in sizes:
            journal.extend({"variant_id": f"v{n + i}", "text": "é\ud800"} for i in range(size))
            n += size
            journal.sync()
        return journal.head


def test_what_is_written_is_read_and_verified(path: Path) -> None:
    head = _fill(path, 3, 2)
    assert head.records == 5
    assert len(parts_of(path)) == 2
    assert [record["variant_id"] for record in read(path)] == [f"v{n}" for n in range(5)]
    assert next(read(path))["text"] == "é\ud800"
    assert verify(path, START, head) == []
    places = [place for place, _ in scan(path)]
    assert record_at(path, places[4])["variant_id"] == "v4"


def test_records_are_read_on_from_a_place_and_never_from_another_part(path: Path) -> None:
    _fill(path, 3, 3, 3)
    places = [place for place, _ in scan(path)]
    whole = list(read(path))
    for number, place in enumerate(places):
        assert list(parquet.records_from(path, place)) == whole[number:]
        assert record_at(path, place) == whole[number]
    parts_of(path)[1].unlink()
    with pytest.raises(RunFolderError, match="cannot read"):
        record_at(path, places[4])


def test_a_second_writer_goes_on(path: Path) -> None:
    _fill(path, 3)
    (parquet.folder_of(path) / "part-00002.parquet.new").write_bytes(b"half a part")
    with ParquetJournal(path, START) as journal:
        journal.append({"variant_id": "more"})
        head = journal.head
    assert head.records == 4
    assert verify(path, START, head) == []
    assert [p.name for p in parquet.folder_of(path).iterdir()]
    assert len(parts_of(path)) == 2
    parts_of(path)[1].unlink()
    with pytest.raises(RunFolderError, match="belongs to another plan"):
        ParquetJournal(path, "1" * 64)


def _forge(part: Path, text: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(part)
    rows = [row.replace("v1", text) for row in table.column("record").to_pylist()]
    forged = table.set_column(2, "record", pa.array(rows, pa.string()))
    pq.write_table(forged.replace_schema_metadata(table.schema.metadata), part)


def test_each_change_is_seen(path: Path) -> None:
    head = _fill(path, 2, 2, 2)
    first, second, last = parts_of(path)
    whole = [part.read_bytes() for part in (first, second, last)]
    _forge(first, "w1")
    assert [p.kind for p in verify(path, START, head)] == ["changed"]
    first.write_bytes(whole[0])
    second.unlink()
    assert "missing" in [p.kind for p in verify(path, START, head)]
    second.write_bytes(whole[1])
    last.unlink()
    assert [p.kind for p in verify(path, START, head)] == ["missing"]
    last.write_bytes(whole[2][:40])
    assert "torn" in [p.kind for p in verify(path, START, head)]
    last.write_bytes(whole[2])
    assert verify(path, START, head) == []
    assert [p.kind for p in verify(path, "1" * 64, head)] == ["other-plan"]


def _plan(root: Path, data: Path, **options: Any) -> Plan:
    return Plan(
        models=("reviews",), out=str(root), attributes=("gender",), data=str(data), cache=False, **options
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "texts.txt"
    lines = (
        "The woman found the film dull.",
        "My brother praised the plot.",
        "A man and his wife came late.",
    )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_run_is_the_same_run(tmp_path: Path, data: Path) -> None:
    lines = audit_plan(_plan(tmp_path / "a", data))
    parts = audit_plan(_plan(tmp_path / "b", data, journal="parquet"))
    assert parts.path is not None
    assert not list(parts.path.glob("*.jsonl"))
    for name in ("counts", "estimates", "findings", "controls"):
        assert parts.record[name] == lines.record[name]
    assert set(parts.verdicts) == set(lines.verdicts)
    assert parts.to_html().count("<") == lines.to_html().count("<")
    assert verify_folder(parts.path) == []
    again = load(parts.path)
    variant = again.verdicts[0].variant_id
    assert again.evidence.variant(variant) == lines.evidence.variant(variant)
    assert [r.output for r in again.evidence.responses(variant)] == [
        r.output for r in lines.evidence.responses(variant)
    ]


def test_a_run_without_its_last_part_is_finished(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROWS", 5)
    whole = audit_plan(_plan(tmp_path / "runs", data, journal="parquet"))
    assert whole.path is not None
    path = whole.path
    parts = parts_of(path / "responses.jsonl")
    assert len(parts) > 2
    parts[-1].unlink()
    (path / "run.json").unlink()
    kept = sum(1 for _ in RunFolder.open(path).responses())
    again = resume(path)
    assert again.record["estimates"] == whole.record["estimates"]
    assert again.record["counts"]["violations"] == whole.record["counts"]["violations"]
    total = sum(1 for _ in RunFolder.open(path).responses())
    assert kept < total == sum(1 for _ in RunFolder.open(path).responses())
    assert verify_folder(path) == []


WRITER = """
import sys
from pathlib import Path
from auditor.store import parquet
parquet.ROWS = 50
with parquet.ParquetJournal(Path(sys.argv[1]), "0" * 64) as journal:
    n = 0
    while True:
        journal.append({"variant_id": f"v{n}", "text": "x" * 200})
        n += 1
        if n == 200:
            print("go", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_kill_leaves_whole_parts(path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"go\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    records = list(read(path))
    assert len(records) >= 200
    assert len(records) % 50 == 0
    assert [r["variant_id"] for r in records] == [f"v{n}" for n in range(len(records))]
    assert verify(path, START) == []
    with ParquetJournal(path, START) as journal:
        assert journal.head.records == len(records)
