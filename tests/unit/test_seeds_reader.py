"""Files of texts: every type, every way they are broken."""

from __future__ import annotations

import hashlib
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from auditor.core.errors import ConfigError, DataFileError, MissingDependency
from auditor.core.types import SourceText
from auditor.store.journal import read_texts, write_texts
from auditor.tasks import read_given, read_seeds
from auditor.tasks.seeds import LONGEST, crossed, digest_of
from tests.asking import json_lines


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(path: Path, **options: Any) -> list[str]:
    return [seed.text for seed in read_seeds(path, **options)]


def test_json_lines_and_plain_lines(tmp_path: Path) -> None:
    lines = '{"id": "a", "text": "One.", "label": "x"}\n\n{"id": 7, "text": "Two\\nlines.", "label": true}\r\n'
    lines += '{"text": "Three.", "label": null}\n{"text": "  "}\n{"text": null}\n'
    path = write(tmp_path, "t.jsonl", lines)
    got = read_seeds(path)
    assert list(got) == [
        SourceText(id="a", text="One.", label="x"),
        SourceText(id="7", text="Two\nlines.", label="true"),
        SourceText(id="row-3", text="Three."),
    ]
    assert (got.rows, got.skipped) == (5, 2)
    assert got.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (len(got), got[0].id, [s.id for s in got[1:]]) == (3, "a", ["7", "row-3"])
    got = read_seeds(write(tmp_path, "t.txt", "\ufeffOne, two.\r\n\n  \nThree.\n"))
    assert [(s.id, s.text) for s in got] == [("row-1", "One, two."), ("row-4", "Three.")]
    assert texts(write(tmp_path, "old.txt", "a\rb\r")) == ["a", "b"]
    assert texts(write(tmp_path, "u.txt", "a\u2028b\x0cc\nd")) == ["a\u2028b\x0cc", "d"]  # no ends of lines


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_by_its_header(tmp_path: Path, delimiter: str) -> None:
    d = delimiter
    path = write(tmp_path, "t.csv", f'\ufefflabel{d} text \r\npos{d}"a{d} ""b""\nc"\r\nneg{d}x y|z\r\n')
    assert [(s.text, s.label) for s in read_seeds(path)] == [(f'a{d} "b"\nc', "pos"), ("x y|z", "neg")]
    assert texts(write(tmp_path, "u.tsv", "text\nOne, two.\n")) == ["One, two."]
    long = "word " * 60_000
    assert texts(write(tmp_path, "v.csv", f'review,text\n"{long}",x\n'), columns={"text": "review"}) == [long]


def test_what_texts_were_made_of_is_read_from_the_column_that_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "text,source,person\nGood.,web,a\nBad.,web,a\nFine.,web,\n")
    assert [s.source for s in read_seeds(path)] == [None, None, None]
    assert [s.source for s in read_seeds(path, columns={"source": "person"})] == ["a", "a", None]
    with pytest.raises(DataFileError, match=r"no column 'persn'.*'person'.*--column source="):
        read_seeds(path, columns={"source": "persn"})
    lines = write(tmp_path, "t.jsonl", '{"text": "Good."}\n')
    with pytest.raises(DataFileError, match="no text has a source in the column 'person'"):
        read_seeds(lines, columns={"source": "person"})


def test_a_text_and_an_id_count_once_and_a_limit_takes_the_first_rows(tmp_path: Path) -> None:
    rows = "".join(f"{i},t{n}\n" for n, i in enumerate(["a", "a", "a#2", "a", "", "row-5"]))
    got = read_seeds(write(tmp_path, "t.csv", "id,text\n" + rows))
    assert [s.id for s in got] == ["a", "a#2", "a#2#2", "a#3", "row-5", "row-5#2"]
    got = read_seeds(write(tmp_path, "t.csv", "id,text,label\n1,a,x\n2,b,y\n3,a,x\n1,b,z\n,,\n4,A,x\n"))
    assert [(s.id, s.text, s.label) for s in got] == [("1", "a", "x"), ("2", "b", "y"), ("4", "A", "x")]
    assert (got.rows, got.skipped, got.repeated) == (6, 1, 2)
    path = write(tmp_path, "t.jsonl", '{"text": "a"}\n{"text": ""}\n{"text": "c"}\nbroken\n')
    got = read_seeds(path, limit=3)
    assert [s.text for s in got] == ["a", "c"]
    assert (got.rows, got.skipped) == (3, 1)
    with pytest.raises(ConfigError, match="at least 1"):
        read_seeds(path, limit=0)


BROKEN: list[tuple[str, str | bytes, str]] = [
    ("t.txt", "", "file is empty"), ("t.csv", " \n\n", "file is empty"), ("t.csv", "text,label\n", "no rows"),
    ("t.jsonl", '{"text": ""}\n', "the column 'text' holds nothing but blanks (1 row)"),
    ("t.doc", "x", "unknown type of file"), ("t.json", "[]", "one object per line"),
    ("t.jsonl", '{"text": "a"}\n{"text": "b",}\n', "line 2: broken JSON at column"),
    ("t.jsonl", '[{"text": "a"}]', "line 1: expected an object"),
    ("t.jsonl", '[\n{"text": "a"}\n]', "one JSON array is no JSON lines"),
    ("t.jsonl", '{\n"text": "a"\n}', "must be on one line"),
    ("t.jsonl", '{"text": 5}\n', "line 1: the column 'text' holds a number (5)"),
    ("t.jsonl", '{"text": "a"}\n{"txt": "b"}\n', "line 2: no column 'text'; columns: txt. Did you mean 'txt'?"),
    ("t.jsonl", '{"text": "a", "label": {"x": 1}}', "the column 'label' holds an object"),
    ("t.jsonl", '{"text": "a\\ud800"}', "half a character"), ("t.jsonl", "[" * 200_000, "JSON"),
    ("t.csv", "Text,label\na,b\n", "no column 'text'; columns: Text, label. Did you mean 'Text'?"),
    ("t.csv", "a,b\n1,2\n", "columns: a, b. Name it with --column text="),
    ("t.csv", "text,text\na,b\n", "is there twice"),
    ("t.csv", "text,label\nOne, two,x\n", "line 2: 3 fields where the header has 2"),
    ("t.csv", 'text,label\na,b\n"c\nd\n,x\ne,f\n', "line 3: a quotation mark in the record"),
    ("t.csv", 'text,label\n"a" b,c\n', "line 2: malformed CSV"),
    ("t.csv", b"text,label\nok,x\ncaf\xe9,y\n", "line 3: byte 19 is not UTF-8 (0xe9, byte 4 of the line)"),
    ("t.csv", "text\na\n".encode("utf-16"), "iconv -f UTF-16"),
    ("t.csv", "text\na\n".encode("utf-16-le"), "zero byte"), ("t.parquet", "text\na\n", "no Parquet file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), BROKEN)
def test_broken_files(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = write(tmp_path, name, content)
    with pytest.raises(DataFileError) as caught:
        read_seeds(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"text": ["a", None, "c"], "label": [0, 1, 1], "v": [[1], [2], [3]]}), path)
    got = read_seeds(path)
    assert list(got) == [SourceText(id="row-1", text="a", label="0"), SourceText(id="row-3", text="c", label="1")]
    assert got.skipped == 1
    with pytest.raises(DataFileError, match="row 1: the column 'v' holds a list"):
        read_seeds(path, columns={"text": "v"})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataFileError, match="no Parquet file"):
        read_seeds(path)


class FakeTable(list[dict[str, object]]):
    """The part of ``datasets.Dataset`` that is used; ``names`` are those of its labels."""

    def __init__(self, rows: list[dict[str, object]], **names: object) -> None:
        super().__init__(rows)
        self.column_names = list(rows[0])
        self.features = {c: names.get(c, types.SimpleNamespace(names=None)) for c in rows[0]}


def fake_hub(monkeypatch: pytest.MonkeyPatch, **splits: FakeTable) -> list[tuple[object, ...]]:
    calls: list[tuple[object, ...]] = []

    def load_dataset(name: str, config: str | None, *, split: str | None) -> object:
        calls.append((name, config, split))
        if split is not None and split not in splits:
            raise ValueError(f"Unknown split {split!r}.")
        return splits if split is None else splits[split]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return calls


def test_data_sets_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    named = types.SimpleNamespace(names=["neg", "pos"])
    table = FakeTable([{"text": "a", "label": 1}, {"text": "b", "label": -1}], label=named)
    calls = fake_hub(monkeypatch, test=table, train=table)
    got = read_seeds("hf:org/name:config@test")
    assert calls == [("org/name", "config", "test")]
    assert [(s.id, s.label) for s in got] == [("row-1", "pos"), ("row-2", "-1")]
    assert len(got.sha256) == 64
    with pytest.raises(ConfigError, match="hf:org/name@test, hf:org/name@train"):
        read_seeds("hf:org/name")
    with pytest.raises(DataFileError, match="could not be loaded: Unknown split 'dev'"):
        read_seeds("hf:org/name@dev")
    for spec in ("hf:", "hf:@test", "hf:a@", "hf:a:", "hf:a:@b"):
        with pytest.raises(ConfigError, match="hf:DATASET"):
            read_seeds(spec)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependency, match=r"llm-bias-auditor\[datasets\]"):
        read_seeds("hf:name")


def test_lists_of_labels_and_of_paragraphs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The form of LexGLUE's ECtHR cases, and lists in files."""
    named = types.SimpleNamespace(feature=types.SimpleNamespace(names=["2", *"abcdefgh", "P1-1"]))
    rows: list[dict[str, object]] = [{"text": ["One.", "Two."], "labels": [0, 9]}, {"text": ["Three."], "labels": []}]
    fake_hub(monkeypatch, test=FakeTable(rows, labels=named))
    got = read_seeds("hf:lex_glue:ecthr_a@test", columns={"label": "labels"})
    assert [(s.text, s.label) for s in got] == [("One.\nTwo.", '["2", "P1-1"]'), ("Three.", "[]")]
    path = write(tmp_path, "t.jsonl", '{"text": "a", "label": ["x, y", "z"]}\n{"text": "b", "label": [2, null]}\n')
    assert [s.label for s in read_seeds(path)] == ['["x, y", "z"]', '["2"]']
    path = write(tmp_path, "u.jsonl", '{"text": "a", "label": [["x"]]}\n')
    with pytest.raises(DataFileError, match="line 1: the column 'label' holds a list"):
        read_seeds(path)


SUBJECT = "She is late. Her boss waits for the nurse."


def test_the_person_a_text_is_about_comes_with_it(tmp_path: Path) -> None:
    spans = [[0, 3], [13, 16], [36, 41]]
    expected = ((0, 3), (13, 16), (36, 41))
    subjects: list[tuple[object, object]] = [
        (spans, expected), ([], ()), (None, None), ("Re: [0, 3]", None), (["maths", "music"], None), (17, None),
    ]  # fmt: skip
    rows = [{"text": SUBJECT + " " * n, "subject": given} for n, (given, _) in enumerate(subjects)]
    lines = json_lines(tmp_path / "t.jsonl", [*rows, {"text": "Nor here."}])
    read = read_seeds(lines)
    assert [seed.subject for seed in read] == [*(subject for _, subject in subjects), None]
    assert [SUBJECT[a:b] for a, b in read[0].subject or ()] == ["She", "Her", "nurse"]
    table = write(
        tmp_path, "t.csv", f'text;subject\n{SUBJECT};"{spans}"\nNobody.;[]\nUnsaid.;\nA letter.;[urgent] Re: you\n'
    )
    assert [seed.subject for seed in read_seeds(table)] == [expected, (), None, None]
    bare = json_lines(tmp_path / "u.jsonl", [{"text": seed.text} for seed in read])
    assert digest_of(read) != digest_of(read_seeds(bare))
    kept = tmp_path / "kept.jsonl"
    write_texts(kept, read)
    assert read_texts(kept) == list(read) == list(read_seeds(kept))
    assert list(read_given(list(read))) == list(read)


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ([[0, 3], [2, 6]], r"line 2: \[2, 6\] .* begins before \[0, 3\] has ended"),
        ([[0, 99]], r"line 2: \[0, 99\] .* is not a part of the text, which has 42 characters"),
        ([[0, 3, 5]], r"line 2: .* takes a list of \[start, end\], got \[0, 3, 5\]"),
        ([[0, 3], "nurse"], "line 2: .* takes a list of .*, got 'nurse'"),
    ],
)
def test_a_subject_that_cannot_be_says_its_line(tmp_path: Path, subject: object, said: str) -> None:
    rows = [{"text": "Fine.", "subject": [[0, 4]]}, {"text": SUBJECT, "subject": subject}]
    path = json_lines(tmp_path / "t.jsonl", rows)
    with pytest.raises(DataFileError, match=said):
        read_seeds(path)


def test_a_text_without_end_is_refused_with_its_place(tmp_path: Path) -> None:
    assert len(read_seeds(write(tmp_path, "t.txt", "Short.\n" + "a" * LONGEST + "\n")).seeds) == 2
    with pytest.raises(DataFileError, match=r"t\.txt, line 2: a text of 1,000,001 characters"):
        read_seeds(write(tmp_path, "t.txt", "Short.\n" + "a" * (LONGEST + 1) + "\n"))
    with pytest.raises(DataFileError, match="Divide it"):
        read_given(["a" * (LONGEST + 1)])


def test_posts_of_ones_own(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "A post."}, {"id": "b", "text": "Another.", "label": "hold", "labels": {"2": "invite"}}]
    posts = json_lines(tmp_path / "posts.jsonl", rows)
    texts = [SourceText(id="1", text="One."), SourceText(id="2", text="Two.", subject=((0, 3),))]
    pairs = crossed(texts, posts)
    assert [(p.id, p.label) for p in pairs] == [("2.b", "invite"), ("1.a", None), ("1.b", "hold"), ("2.a", None)]
    assert (pairs[0].text, pairs[0].subject) == ("Two.\n\nAnother.", ((0, 3),))
    assert crossed(texts, posts, 1) == pairs[:1]
    json_lines(posts, [{"id": "a"}])
    with pytest.raises(DataFileError, match=r"posts.jsonl, line 1: field text"):
        crossed(texts, posts)
