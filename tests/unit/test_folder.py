"""Run folders and their journals: what is refused, chains, torn lines, full disks; the index of prompts and answers."""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from judged import swap

from auditor.core.errors import RunFolderError, UserError
from auditor.core.record.base import Head
from auditor.core.types import Case, Check, Prompt, Response, Variant, Verdict
from auditor.store import journal as module
from auditor.store.folder import RunFolder
from auditor.store.integrity import verify, verify_folder
from auditor.store.journal import Index, Journal, genesis, read

RECORD = {"format_version": 1, "status": "complete", "status_reason": "", "estimates": []}


def make_case(name: str = "c1", text: str = "x and x") -> Case:
    one, two = swap("gender", "y", 0), swap("race", "z", 6)
    made = (("y and x", (one,)), ("x and z", (two,)), ("y and z", (one, two)))
    variants = [Variant(id=f"{name}.v{n}", input=text, edits=edits) for n, (text, edits) in enumerate(made)]
    return Case(id=name, suite="mutation.v1", original=Variant(id=f"{name}.o", input=text), variants=tuple(variants))


def checks_of(case: Case) -> dict[str, Check]:
    return {v.id: Check(variant_id=v.id, check="dependency.v1", status="valid") for v in case.variants}


def answer(variant: str, prompt: Prompt, output: str | None = "positive", **more: Any) -> Response:
    told = {"replicate": 0, "model": "m", "prompt_sha256": prompt.sha256, "format": prompt.format} | more
    return Response(variant_id=variant, output=output, **told)


VERDICT = Verdict(case_id="c1", variant_id="c1.v0", order=1, attributes=("gender",), outcome="pass", model="m")


def fill(folder: RunFolder) -> None:
    case = make_case()
    folder.add_cases([(case, checks_of(case), None)])
    for variant in (case.original, *case.variants[:1]):
        prompt = Prompt(format="label", text=str(variant.input))
        folder.add_prompts([(variant.id, prompt)])
        folder.add_responses([answer(variant.id, prompt)])
    folder.write_verdicts([VERDICT])
    folder.write_run(RECORD)


def test_a_case_or_prompt_that_changed_stops_the_resume(tmp_path: Path) -> None:
    case = make_case()
    with RunFolder.create(tmp_path, {}) as folder:
        folder.add_cases([(case, checks_of(case), None)])
        folder.add_prompts([("c1.o", Prompt(format="label", text="x"))])
    with pytest.raises(RunFolderError, match=r"the run did not end.*audit resume"):
        folder.record()
    with RunFolder.open(folder.path, write=True) as again:
        with pytest.raises(RunFolderError, match=r"case c1 is not what .*cases\.jsonl holds"):
            again.add_cases([(make_case(text="something else"), checks_of(case), None)])
        with pytest.raises(RunFolderError, match=r"prompt of c1\.o"):
            again.add_prompts([("c1.o", Prompt(format="label", text="y"))])


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (None, r"not a run folder: it holds no plan\.json"),
        ("{", r"plan\.json is not JSON"),
        ("[]", "does not hold a JSON object"),
        ("{}", "format_version"),
        ('{"format_version": 99, "tool_version": "9.1"}',
         r"run format 99, written by version 9\.1 .*reads up to format 2.*Install version 9\.1 or newer"),
    ],
)  # fmt: skip
def test_what_is_no_run_folder_is_said(tmp_path: Path, plan: str | None, message: str) -> None:
    if plan is not None:
        (tmp_path / "plan.json").write_text(plan)
    with pytest.raises(RunFolderError, match=message):
        RunFolder.open(tmp_path)
    with pytest.raises(RunFolderError, match="there is no run folder"):
        RunFolder.open(tmp_path / "gone")


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from auditor.store.folder import RunFolder\n"
        "f = RunFolder.create(Path(sys.argv[1]), {}); print(f.path, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
        path = Path(child.stdout.readline().strip())
        with pytest.raises(RunFolderError, match="another process"):
            RunFolder.open(path, write=True)
        child.send_signal(signal.SIGKILL)
    with RunFolder.open(path, write=True) as folder:
        assert folder.id == path.name


def test_verify_finds_answers_that_nothing_asked_for(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, {}) as folder:
        fill(folder)
        folder.add_responses([answer("c1.o", Prompt(format="label", text="never asked"))])
        folder.write_run(RECORD)
    assert [(p.file, p.line) for p in verify_folder(folder.path)] == [("responses.jsonl", 3)]


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_evidence_shares_answers_of_equal_prompts_and_takes_the_later_one(where: str, tmp_path: Path) -> None:
    """Three cases; c1.v0 and c1.v1 share a prompt, which was first asked for c1.v0."""
    folder = RunFolder.in_memory() if where == "memory" else RunFolder.create(tmp_path, {})
    cases = [make_case(f"c{n}") for n in range(3)]
    folder.add_cases([(case, checks_of(case), None) for case in cases])
    shared = Prompt(format="label", text="shared")
    other = Prompt(format="json", text="other")
    for variant, prompt in (("c1.v0", shared), ("c1.v1", shared), ("c1.v0", other)):
        folder.add_prompts([(variant, prompt)])
    folder.add_responses([answer("c1.v0", shared, replicate=1)])
    folder.add_responses([answer("c1.v0", shared, None, error="timeout")])
    folder.add_responses([answer("c1.v0", shared, "negative")])
    folder.add_responses([answer("c1.v0", other)])
    folder.write_verdicts([VERDICT])
    folder.close()
    evidence = folder.evidence()
    first = [(r.format, r.replicate, r.output) for r in evidence.responses("c1.v0")]
    assert first == [("json", 0, "positive"), ("label", 0, "negative"), ("label", 1, "positive")]
    second = evidence.responses("c1.v1")
    assert [(r.variant_id, r.output) for r in second] == [("c1.v1", "negative"), ("c1.v1", "positive")]
    assert evidence.responses("c1.v2") == []


def test_a_folder_in_memory_goes_with_its_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    latest = RunFolder.latest
    folder = RunFolder.in_memory()
    fill(folder)
    found = folder.evidence()
    assert (folder.id, RunFolder.latest) == ("in-memory", latest)
    del folder
    gc.collect()
    assert [r.output for r in found.responses("c1.v0")] == ["positive"]
    del found
    gc.collect()
    assert not list(tmp_path.iterdir())


START = genesis("cases.jsonl", "p" * 64)


def write_two(path: Path) -> None:
    with Journal(path, START) as journal:
        journal.extend({"id": f"c{i}", "text": "naïve “text”\n"} for i in range(2))


def kinds(path: Path, head: Head | None = None) -> list[tuple[int | None, str]]:
    return [(p.line, p.kind) for p in verify(path, START, head)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cases.jsonl"


def test_the_hash_is_what_the_documentation_says(path: Path) -> None:
    write_two(path)
    first, second = path.read_bytes().splitlines(keepends=True)
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
        journal.extend({"id": name, "text": name * 300_000} for name in "ab")
    with Journal(path, START) as journal:
        assert journal.head.records == 2
        journal.append({"id": "c"})
    assert kinds(path) == []


def test_a_full_disk_is_a_clear_error_and_leaves_whole_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_two(path)
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
        journal.extend({"text": text} for text in texts)
        head = journal.head
    assert kinds(path, head) == []
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
