"""Journals: chains, torn lines, full disks; and the index of prompts and answers."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from auditor.core.errors import UserError
from auditor.core.record.base import Head
from auditor.store import journal as module
from auditor.store.index import Index
from auditor.store.integrity import verify
from auditor.store.journal import Journal, genesis, read

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


def test_the_hash_is_what_the_documentation_says(path: Path) -> None:
    write(path, 2)
    first, second = lines(path)
    own = json.loads(first)["hash"]
    body = first.decode().removesuffix(f',"hash":"{own}"}}\n') + "}"
    assert own == hashlib.sha256((START + body).encode()).hexdigest()
    assert [json.loads(first)["prev"], json.loads(second)["prev"]] == [START, own]
    assert json.loads(second)["seq"] == 1


def test_a_journal_of_format_1_is_intact_and_goes_on(path: Path) -> None:
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


def test_a_line_longer_than_a_read_block_is_found_again(path: Path) -> None:
    with Journal(path, START) as journal:
        journal.append({"id": "a", "text": "x" * 300_000})
        journal.append({"id": "b", "text": "y" * 300_000})
    with Journal(path, START) as journal:
        assert journal.head.records == 2
        journal.append({"id": "c"})
    assert kinds(path) == []


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


def test_an_index_is_a_dictionary_of_lists() -> None:
    index, rng, plain = Index(), Random(3), defaultdict[int, list[int]](list)
    # 0 marks a free slot, others share the slot that they begin at, and some have several values.
    keys = [0, *(n << 40 for n in range(1, 500)), *(rng.getrandbits(64) | 2 for _ in range(20_000)), *[4] * 7, 5, 5]
    for value, key in enumerate(keys):
        index.add(key, value)
        plain[key].append(value)
    assert {key: index.get(key) for key in plain} == plain
    assert index.get(6) == []
    assert (index.claim(5, 9), index.claim(6, 9), index.get(6)) == (plain[5][0], None, [9])
