"""The response cache: what it keeps, and damage; several processes are in tests/e2e/test_kill_resume.py."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from auditor import audit
from auditor.core.errors import ConfigError
from auditor.core.protocols import Reply
from auditor.core.types import Usage
from auditor.models.python import PythonFunction
from auditor.models.reply_cache import Cache

FULL = Reply("yes", {"yes": 0.75, "no": 0.25}, Usage(tokens_in=3, tokens_out=1), None, "tiny-2")


def got(path: Path, *keys: str) -> dict[str, Reply]:
    with closing(Cache(path)) as cache:
        return cache.get_many(keys)


def test_what_goes_in_comes_out_but_for_the_cost_also_when_the_process_dies(tmp_path: Path) -> None:
    path, half = tmp_path / "deep" / "c.sqlite", Reply("\ud800 half")
    cache = Cache(path)  # never closed
    cache.put("k", FULL._replace(cost_usd=2.0))
    cache.put("half", half)
    assert got(path, "k", "half", "other") == {"k": FULL, "half": half}


@pytest.mark.parametrize(
    "content", [b"this is no database, it is a note" * 200, b"SQLite format 3\x00" + b"\xff" * 999]
)
def test_a_broken_file_is_moved_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(content)
    warnings: list[str] = []
    with closing(Cache(path)) as cache:
        cache.put("k", FULL)
        assert cache.get_many(["k"]) == {}  # off for this run
        cache.tell(warnings.append)
    with closing(Cache(path)) as cache:
        cache.put("k", FULL)
    assert got(path, "k") == {"k": FULL}
    assert len(warnings) == 1
    assert "damaged" in warnings[0]
    (aside,) = tmp_path.glob("c.sqlite.broken-*")
    assert aside.read_bytes() == content


def test_a_row_that_is_not_a_reply_is_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with closing(Cache(path)) as cache:
        cache.put("k", FULL)
    with sqlite3.connect(path) as other:
        for i, value in enumerate(("[]", "{", '{"text": 5, "usage": null}', "null", '{"text": "a"}')):
            other.execute("INSERT INTO responses VALUES (?, ?, 0)", (f"bad{i}", value))
    other.close()
    assert set(got(path, "k", *(f"bad{i}" for i in range(5)))) == {"k"}


def test_a_chosen_path_that_cannot_be_used_is_the_users_to_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "c.sqlite", tmp_path):
        with pytest.raises(ConfigError, match="AUDIT_CACHE"):
            Cache(path)


def test_a_run_says_that_its_damaged_cache_was_moved_aside(place: Path) -> None:
    (place / "cache.sqlite").write_bytes(b"this is no database" * 100)
    model = PythonFunction(lambda text: "positive", deterministic=True, fingerprint="kept")
    said: list[str] = []
    data = ["My aunt sang.", "His son is kind.", "A woman left."]
    audit("sentiment", model=model, data=data, observe=lambda event: said.append(event.message))
    assert any("is damaged" in one and "it was moved to" in one for one in said)
