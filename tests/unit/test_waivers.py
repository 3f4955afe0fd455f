"""``waivers.toml``."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from auditor.core import waivers
from auditor.core.errors import DataFileError
from auditor.core.record import read

DAY = datetime.date(2026, 5, 1)
GOOD = """
[[waiver]]
finding = "MUT101/m/*/gender"
reason = "Known; ticket 812."
owner = "A. Person"
expires = 2026-05-01

[[waiver]]
finding = "F2"
run = "run-1"
reason = "looked at"
owner = "B"
expires = "2026-04-30"

[[waiver]]
finding = "REF120/*"
reason = "none yet"
owner = "B"
expires = 2027-01-01
"""
RECORD: dict[str, Any] = {
    "id": "run-1",
    "findings": [
        {
            "id": "F1", "kind": "claim", "code": "MUT101", "model": "m", "format": "bare", "attributes": ["gender"],
            "verdict": "shown",
        },
        {
            "id": "F2", "kind": "claim", "code": "MUT101", "model": "m", "format": "bare", "attributes": ["race"],
            "verdict": "shown",
        },
    ],
}  # fmt: skip


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "waivers.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_reading_and_states(tmp_path: Path) -> None:
    record = waivers.apply(read(RECORD), waivers.load(write(tmp_path, GOOD)), DAY)
    assert [(w.status, list(w.findings), w.line) for w in record.waivers.items] == [
        ("active", ["F1"], 2),  # holds on its last day
        ("expired", ["F2"], 8),
        ("unmatched", [], 15),
    ]
    assert list(record.waived) == ["F1"]
    lines = waivers.lines(record)
    assert "Waived: F1" in lines[0]
    assert "A. Person" in lines[0]
    assert "2026-05-01" in lines[0]
    assert lines[1].startswith("Expired waiver, without effect: F2")
    assert lines[2].startswith("Waiver that matches no finding of this run: REF120/*")
    assert record.raw["findings"] == RECORD["findings"]
    assert "waivers" not in RECORD


def test_an_id_holds_in_its_run_only(tmp_path: Path) -> None:
    loaded = waivers.load(write(tmp_path, GOOD))
    other = waivers.apply(read({**RECORD, "id": "run-2"}), loaded, DAY)
    assert [w.status for w in other.waivers.items] == ["active", "unmatched", "unmatched"]


def entry(**changes: str) -> str:
    values = {"finding": '"a/b/c/d"', "reason": '"r"', "owner": '"o"', "expires": "2026-05-01", **changes}
    return "[[waiver]]\n" + "\n".join(f"{k} = {v}" for k, v in values.items() if v) + "\n"


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
    with pytest.raises(DataFileError, match="UTF-8"):
        waivers.load(write(tmp_path, b"\xff\xfe"))
    with pytest.raises(DataFileError, match="no such file"):
        waivers.load(tmp_path / "none.toml")
