"""Files that users name are bounded in time and memory, and refused with a message."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.contrib.imports.answer_files import read as read_table
from auditor.contrib.imports.mapping import load as load_roles
from auditor.contrib.ll144.categories import load as load_categories
from auditor.core import reading
from auditor.core.errors import DataFileError
from auditor.core.plan import Plan
from auditor.core.reading import from_json, read_data, read_text
from auditor.core.waivers import load as load_waivers
from auditor.models.http import read as read_http
from auditor.models.openai import json_object
from auditor.models.recorded import Recorded
from auditor.perturb.grammar.reader import parse
from auditor.report.legal.fill import load as load_fill
from auditor.run.freeze import load as load_plan
from auditor.run.mitigate import from_file
from auditor.tables.row_schema import load_schema
from auditor.tasks import load as load_task
from auditor.tasks.load import control_texts as read_controls
from auditor.tasks.seeds import read as read_seeds

BOMB = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
)
LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
Read = Callable[[Path], Any]
READERS: list[tuple[str, Read]] = [
    ("x.yaml", read)
    for read in (load_schema, lambda path: read_http(str(path)), load_task, load_categories, reading.load_yaml)
]
OTHERS: list[tuple[str, Read]] = [
    ("x.csv", read_data), ("x.jsonl", read_seeds), ("x.jsonl", Recorded), ("x.toml", Plan.read_toml),
    ("x.toml", load_plan), ("x.toml", load_waivers), ("x.csv", read_text), ("x.yaml", parse),
    ("x.toml", lambda path: load_fill(path, {})), ("x.toml", load_roles),
    ("x.txt", lambda path: from_file(path, load_task("sentiment"))),
    ("x.yaml", lambda path: from_file(path, load_task("sentiment"))),
    ("x.json", lambda path: json_object(path, "--extra-body")),
    *((f"x.{kind}", lambda path: read_table([path])) for kind in ("csv", "csv.gz", "json", "zip", "parquet")),
]  # fmt: skip
DEEP: list[tuple[str, Read]] = [
    ("x.toml", Plan.read_toml), ("x.toml", load_plan), ("x.json", load_plan), ("x.toml", load_waivers),
    ("x.toml", lambda path: load_fill(path, {})), ("x.toml", load_roles), ("x.jsonl", read_seeds),
    ("x.jsonl", read_controls), ("x.jsonl", Recorded), ("x.jsonl", lambda path: read_table([path])),
    ("x.json", lambda path: json_object(path, "--extra-body")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "read"), READERS)
@pytest.mark.parametrize("text", [BOMB, LAUGHS])
def test_yaml_bombs_are_counted_before_they_are_built(name: str, read: Read, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataFileError, match=r"x\.yaml, line \d+: more than 200,000 fields"):
        read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [*a]", "line 1: this field holds itself"), ("[" * 100 + "]" * 100, "fields inside each other"),
        ("[" * 100_000, "inside each other"),
        ("a: " + ":".join(["1"] * 100_000), "a number of more than 400 characters"),
        ("a: " + "9" * 5000, "a number of more than 400 characters"), ("a: [", "not valid YAML"),
        ("!!python/object:os.system {}", "not valid YAML"), ("a: 2020-99-99", "cannot be read"),
    ],
)  # fmt: skip
def test_hostile_yaml_is_refused_with_a_message(text: str, message: str) -> None:
    with pytest.raises(DataFileError, match=f"x.yaml.*{message}"):
        reading.load_yaml("x.yaml", text)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
@pytest.mark.parametrize(("name", "read"), READERS + OTHERS)
def test_pipes_and_endless_devices_are_refused_before_they_are_opened(name: str, read: Read, tmp_path: Path) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises(DataFileError, match="this is a pipe, not a regular file; write what it gives into"):
        read(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(DataFileError, match="this is a device, not a regular file"):
        read(path)


@pytest.mark.parametrize(("name", "read"), DEEP)
def test_lists_without_end_inside_each_other_are_an_error_of_the_file(name: str, read: Read, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(("a = " if path.suffix == ".toml" else "") + "[" * 100_000 + "]" * 100_000)
    with pytest.raises(DataFileError, match=f"{name}.*fields too deep inside each other"):
        read(path)


def test_sizes_and_the_depth_of_json_are_bounded_while_reading(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x" * 11)
    assert reading.content(path, largest=11) == b"x" * 11
    with pytest.raises(DataFileError, match="larger than 10 bytes"):
        reading.content(path, largest=10)
    with pytest.raises(IsADirectoryError):
        reading.content(tmp_path)
    assert from_json("[[1, {}]]", deepest=3) == [[1, {}]]
    for text, message in (("[[1, {}]]", "too deep"), ("9" * 5000, "Exceeds the limit")):
        with pytest.raises(json.JSONDecodeError, match=message):
            from_json(text, deepest=2)
