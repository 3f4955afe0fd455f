from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from auditor.core.errors import RunFolderError, UserError
from auditor.store import journal as module
from auditor.store.integrity import verify
from auditor.store.journal import PLAIN, Head, Journal, genesis, read, scan

START = genesis("cases.jsonl", "p" * 64)


def write(path: Path, n: int = 5) -> Head:
    with Journal(path, START) as journal:
        journal.extend({"id": f"c{i}", "text": "naïve “text”\n"} for i in range(n))
        return journal.head


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def kinds(path: Path, head: Head | None = None) -> list[tuple[int | None, str]]:
    return [(p.line, p.kind) for p in verify(path, START, head)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cases.jsonl"


def test_what_is_written_is_read_without_the_chain(path: Path) -> None:
    head = write(path)
    assert [r["id"] for r in read(path)] == ["c0", "c1", "c2", "c3", "c4"]
    assert next(read(path)) == {"id": "c0", "text": "naïve “text”\n"}
    assert verify(path, START, head) == []
    assert head.records == 5


def test_the_hash_is_what_the_documentation_says(path: Path) -> None:
    import hashlib

    write(path, 2)
    first, second = lines(path)
    own = json.loads(first)["hash"]
    body = first.decode().removesuffix(f',"hash":"{own}"}}\n') + "}"
    assert own == hashlib.sha256((START + body).encode()).hexdigest()
    assert [json.loads(first)["prev"], json.loads(second)["prev"]] == [START, own]
    assert json.loads(second)["seq"] == 1


def test_a_journal_of_format_1_is_intact_and_goes_on(path: Path) -> None:
    import hashlib

    prev, old = START, []
    for seq in range(3):
        record = {"cost_usd": 2.5e-05, "id": f"c{seq}", "prev": prev, "seq": seq, "text": "é"}
        body = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        prev = hashlib.sha256((prev + body).encode()).hexdigest()
        old.append(f'{body[:-1]},"hash":"{prev}"}}\n')
    path.write_text("".join(old), encoding="utf-8")
    assert kinds(path, Head(records=3, hash=prev)) == []
    with Journal(path, START) as journal:
        journal.append({"id": "new"})
    assert [record["id"] for record in read(path)] == ["c0", "c1", "c2", "new"]
    assert kinds(path) == []
    path.write_text("".join(old).replace("2.5e-05", "2.6e-05", 1), encoding="utf-8")
    assert kinds(path) == [(1, "changed")]


@pytest.mark.parametrize("cut", [1, 5, 40, 120])
def test_a_torn_last_line_is_seen_left_out_and_cut_off(path: Path, cut: int) -> None:
    write(path)
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(list(read(path))) == 4
    assert kinds(path) == [(5, "torn")]
    with Journal(path, START) as journal:
        assert journal.head.records == 4
        journal.append({"id": "again"})
    assert [r["id"] for r in read(path)] == ["c0", "c1", "c2", "c3", "again"]
    assert kinds(path) == []


def test_a_line_longer_than_a_read_block_is_found_again(path: Path) -> None:
    with Journal(path, START) as journal:
        journal.append({"id": "a", "text": "x" * 300_000})
        journal.append({"id": "b", "text": "y" * 300_000})
    with Journal(path, START) as journal:
        assert journal.head.records == 2
        journal.append({"id": "c"})
    assert kinds(path) == []


def test_lines_missing_at_the_end_are_seen_with_the_head(path: Path) -> None:
    head = write(path)
    path.write_bytes(b"".join(lines(path)[:3]))
    assert kinds(path) == []
    assert kinds(path, head) == [(None, "missing")]


def test_a_chain_made_anew_is_seen_with_the_head(path: Path) -> None:
    head = write(path)
    path.unlink()
    with Journal(path, START) as journal:
        journal.extend({"id": f"forged{i}"} for i in range(5))
    assert kinds(path) == []
    assert kinds(path, head) == [(None, "changed")]


def test_lines_added_later_are_seen_with_the_head(path: Path) -> None:
    head = write(path)
    with Journal(path, START) as journal:
        journal.append({"id": "late"})
    assert kinds(path, head) == [(None, "changed")]


def test_another_plan_is_seen(path: Path) -> None:
    write(path)
    other = genesis("cases.jsonl", "q" * 64)
    assert [p.kind for p in verify(path, other)] == ["other-plan"]
    path.write_bytes(lines(path)[0])
    with pytest.raises(RunFolderError, match="another plan"):
        Journal(path, other)


def test_a_journal_does_not_go_on_after_a_changed_line(path: Path) -> None:
    write(path)
    path.write_bytes(path.read_bytes().replace(b'"c4"', b'"cX"'))
    with pytest.raises(RunFolderError, match="audit verify"):
        Journal(path, START)


def test_a_full_disk_is_a_clear_error_and_leaves_whole_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, 2)
    real = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) < 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, bytes(data)[: len(data) // 2])

    with Journal(path, START) as journal:
        monkeypatch.setattr(module.os, "write", full)
        with pytest.raises(UserError, match=r"disk .* is full.*audit resume"):
            journal.append({"id": "c2", "text": "t" * 500})
        monkeypatch.setattr(module.os, "write", real)
        journal.append({"id": "c2"})
    assert [r["id"] for r in read(path)] == ["c0", "c1", "c2"]
    assert kinds(path) == []


def test_nan_and_chain_fields_are_refused_and_nothing_is_written(path: Path) -> None:
    with Journal(path, START) as journal:
        with pytest.raises(ValueError, match="not JSON compliant"):
            journal.append({"x": float("nan")})
        with pytest.raises(ValueError, match="must not hold"):
            journal.append({"seq": 1})
        journal.append({"x": 1.0})
    assert list(read(path)) == [{"x": 1.0}]


@pytest.mark.parametrize("value", ["c.v0", 'a "quoted" one', "back\\slash", "é", '","variant_id":"no'])
def test_records_are_scanned_with_their_places(path: Path, value: str) -> None:
    with Journal(path, START) as journal:
        journal.extend({"id": value, "text": f'"id":"{n}"', "last": {"n": n}} for n in range(3))
    whole = path.read_bytes()
    told = [
        (whole[offset:].startswith(b'{"seq":%d,' % n), record["id"])
        for n, (offset, record) in enumerate(scan(path, PLAIN))
    ]
    assert told == [(True, value)] * 3


def test_a_line_that_is_no_record_is_named(path: Path) -> None:
    path.write_bytes(b"not json\n")
    with pytest.raises(RunFolderError, match="line 1"):
        list(scan(path, PLAIN))


def test_two_surrogates_that_are_one_character_leave_a_whole_chain(path: Path) -> None:
    texts = ["\ud83d\ude00", "\ud83d\ude00 \ud800", "\ude00\ud83d"]
    with Journal(path, START) as journal:
        for text in texts:
            journal.append({"text": text})
        head = journal.head
    assert verify(path, START, head) == []
    assert [record["text"] for record in read(path)] == ["\U0001f600", "\U0001f600 \ud800", "\ude00\ud83d"]
    with Journal(path, START) as journal:  # its last line is as it was written
        assert journal.head == head
