from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.store.integrity import verify
from auditor.store.journal import Journal, genesis, read

START = genesis("x.jsonl", "")
texts = st.text(max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=8)
rows_of = st.dictionaries(texts.filter(lambda k: k not in ("seq", "prev", "hash")), values, max_size=5)


@settings(max_examples=60, deadline=None)
@given(st.lists(rows_of, max_size=8), st.data())
def test_any_records_survive_and_any_changed_byte_is_seen(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        split = data.draw(st.integers(0, len(rows)))
        with Journal(path, START) as journal:
            journal.extend(rows[:split])
        with Journal(path, START) as journal:
            for row in rows[split:]:
                journal.append(row)
            head = journal.head
        assert list(read(path)) == rows
        assert verify(path, START, head) == []
        if rows:
            raw = bytearray(path.read_bytes())
            at = data.draw(st.integers(0, len(raw) - 1))
            raw[at] = data.draw(st.integers(0, 255).filter(lambda b: b != raw[at]))
            path.write_bytes(raw)
            assert verify(path, START, head)


@settings(max_examples=60, deadline=None)
@given(st.lists(rows_of, min_size=1, max_size=5), st.data())
def test_whatever_is_cut_off_at_the_end_the_whole_lines_before_it_stay(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        with Journal(path, START) as journal:
            journal.extend(rows)
        raw = path.read_bytes()
        kept = raw[: data.draw(st.integers(0, len(raw)))]
        path.write_bytes(kept)
        whole = kept.count(b"\n")
        with Journal(path, START) as journal:
            journal.append({"last": 1})
        assert list(read(path)) == [*rows[:whole], {"last": 1}]
        assert verify(path, START) == []
