"""What holds for every file under version control."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MERGE = re.compile(rb"^(<{7}|>{7}|\|{7})( |\r?$)", re.MULTILINE)


def test_no_file_holds_the_marks_of_a_merge() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout of git")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert len(paths) > 500
    assert [p for p in paths if p.is_file() and MERGE.search(p.read_bytes())] == []


@pytest.mark.parametrize("mark", ["<" * 7 + " HEAD", ">" * 7 + " 1a2b3c4 (a change)", "|" * 7])
def test_the_marks_of_a_merge_are_seen(mark: str) -> None:
    assert MERGE.search(f"one\n{mark}\ntwo\n".encode())
    assert not MERGE.search(f"one\n  {mark}\ntwo {mark}\n".encode())
