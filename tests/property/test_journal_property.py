from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.types import Case, Check, Edit, Variant
from auditor.store.disk import CASE, case_line
from auditor.store.integrity import verify
from auditor.store.journal import Journal, genesis, read, records

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


names = st.sampled_from(["gender", "race", "body"])
wheres = st.tuples(st.integers(0, 9), st.integers(9, 20)) | st.sampled_from(["column a", "column b"])
edits = st.builds(
    Edit,
    attribute=names,
    kind=st.sampled_from(["swap", "marking", "insertion", "agreement", "placebo"]),
    source_group=texts,
    target_group=texts,
    source=texts,
    target=texts,
    where=wheres,
)
inputs = texts | st.dictionaries(texts, scalars, max_size=3)
groups = st.dictionaries(names, texts, max_size=2)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_cases_and_checks_come_back_as_they_were(data: st.DataObject) -> None:
    variants = tuple(
        Variant(
            id=f"c.v{n}",
            input=data.draw(inputs),
            groups=data.draw(groups),
            edits=tuple(data.draw(st.lists(edits, max_size=3))),
        )
        for n in range(data.draw(st.integers(0, 3)))
    )
    case = Case(
        id="c",
        suite="s.v1",
        original=Variant(id="c.o", input=data.draw(inputs), groups=data.draw(groups)),
        variants=variants,
        sampling=data.draw(st.sampled_from(["iid", "directed"])),
        label=data.draw(st.none() | texts),
    )
    statuses = st.sampled_from(["valid", "invalid", "unknown", None])
    checks = {
        v.id: Check(variant_id=v.id, check="k.v1", status=status, reason=data.draw(texts))
        for v in variants
        if (status := data.draw(statuses)) is not None
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        with Journal(path, START) as journal:
            journal.append(case_line(case, checks))
        back = next(records(path, CASE))
    assert back.case() == case
    assert back.checks() == checks
