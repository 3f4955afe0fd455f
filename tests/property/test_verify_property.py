"""Whatever line of a run folder is changed, taken out, moved or repeated: `audit verify` says so."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged import edit

from auditor.core.errors import RunFolderError
from auditor.core.types import Case, Check, Prompt, Response, Variant, Verdict
from auditor.store.folder import JOURNALS, PLAN, RUN, RunFolder
from auditor.store.integrity import verify_folder
from auditor.store.journal import REGISTER as FILE

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def fill(root: Path) -> Path:
    """A finished run with four lines in each journal."""
    with RunFolder.create(root, {"task": "sentiment", "plan": {"seed": 7}}) as folder:
        for n in range(4):
            original = Variant(id=f"c{n}.o", input=f"a man {n}")
            variant = Variant(id=f"c{n}.v0", input=f"a woman {n}", edits=(edit("man", "woman", at=2),))
            check = Check(variant_id=variant.id, check="dependency.v1", status="valid")
            case = Case(id=f"c{n}", suite="mutation.v1", original=original, variants=(variant,))
            folder.add_cases([(case, {variant.id: check}, None)])
            prompt = Prompt(format="bare", text=str(variant.input))
            folder.add_prompts([(variant.id, prompt)])
            asked = {"variant_id": variant.id, "prompt_sha256": prompt.sha256, "format": "bare", "model": "m"}
            folder.add_responses([Response(**asked, replicate=0, output="positive")])
        folder.write_verdicts(
            Verdict(case_id=f"c{n}", variant_id=f"c{n}.v0", order=1, attributes=("gender",), outcome="pass", model="m")
            for n in range(4)
        )
        folder.write_run({"id": folder.id, "format_version": 1, "status": "complete", "status_reason": ""})
        return folder.path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("finished"))


@contextmanager
def copied(path: Path) -> Iterator[Path]:
    """The run with its register, in a folder of its own."""
    with tempfile.TemporaryDirectory() as root:
        whole = Path(root) / "runs"
        shutil.copytree(path.parent, whole)
        yield whole / path.name


def target(path: Path, name: str) -> Path:
    return path.parent / FILE if name == FILE else path / name


def seen(path: Path, name: str) -> bool:
    return any(problem.file == name for problem in verify_folder(path))


def test_a_run_as_written_has_no_problem(finished: Path) -> None:
    assert verify_folder(finished) == []
    for name in JOURNALS:
        assert len((finished / name).read_bytes().splitlines()) == 4


def byte_changed(raw: bytes, data: st.DataObject) -> bytes:
    at = data.draw(st.integers(0, len(raw) - 1))
    return raw[:at] + bytes([data.draw(st.integers(0, 255).filter(lambda b: b != raw[at]))]) + raw[at + 1 :]


def lines_moved(raw: bytes, data: st.DataObject) -> bytes:
    lines = raw.splitlines(keepends=True)
    return b"".join(data.draw(st.permutations(lines).filter(lambda order: order != lines)))


def line_added(raw: bytes, data: st.DataObject) -> bytes:
    """A line that was there already, or a foreign one."""
    lines = raw.splitlines(keepends=True)
    others = [b"{}\n", b"\n", b'{"id":"x"}\n', *lines]
    lines.insert(data.draw(st.integers(0, len(lines))), data.draw(st.sampled_from(others)))
    return b"".join(lines)


def lines_taken_out(raw: bytes, data: st.DataObject) -> bytes:
    lines = raw.splitlines(keepends=True)
    gone = data.draw(st.sets(st.integers(0, len(lines) - 1), min_size=1))
    return b"".join(line for i, line in enumerate(lines) if i not in gone)


CHANGES = [(change, name) for change in (byte_changed, lines_moved) for name in (*JOURNALS, FILE)]
CHANGES += [(change, name) for change in (line_added, lines_taken_out) for name in JOURNALS]


@pytest.mark.parametrize(("change", "name"), CHANGES, ids=[f"{change.__name__} {name}" for change, name in CHANGES])
@QUICK
@given(data=st.data())
def test_any_change(finished: Path, change: Callable[..., bytes], name: str, data: st.DataObject) -> None:
    with copied(finished) as path:
        file = target(path, name)
        file.write_bytes(change(file.read_bytes(), data))
        problems = [p for p in verify_folder(path) if p.file == name]
        assert problems
        assert change is not lines_taken_out or any(p.kind == "missing" for p in problems)


@pytest.mark.parametrize("name", [*JOURNALS, PLAN, RUN])
def test_a_file_put_in_the_place_of_another(finished: Path, name: str, tmp_path: Path) -> None:
    other = fill(tmp_path)
    assert json.loads((other / PLAN).read_bytes())["run_id"]
    assert verify_folder(other) == []
    with copied(finished) as path:
        (path / name).write_bytes((other / name).read_bytes())
        if (path / name).read_bytes() != (finished / name).read_bytes():
            assert verify_folder(path)


@pytest.mark.parametrize("name", [*JOURNALS, RUN])
def test_a_whole_file_that_is_gone(finished: Path, name: str) -> None:
    with copied(finished) as path:
        (path / name).unlink()
        assert seen(path, name)


def test_the_end_of_a_run_taken_out_of_the_register(finished: Path) -> None:
    with copied(finished) as path:
        register = target(path, FILE)
        lines = register.read_bytes().splitlines(keepends=True)
        assert len(lines) == 2
        register.write_bytes(lines[0])
        assert seen(path, FILE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("provenance", "elsewhere"), ("provenance", {"files": ["report.csv"]}), ("journal", []),
        ("journal", {"cases.jsonl": 4}),
    ],
)  # fmt: skip
def test_a_record_of_another_shape_is_told(finished: Path, name: str, value: object) -> None:
    with copied(finished) as path:
        record = json.loads((path / RUN).read_text("utf-8"))
        (path / RUN).write_text(json.dumps(record | {name: value}), "utf-8")
        try:
            told = " ".join(map(str, verify_folder(path)))
        except RunFolderError as error:
            told = str(error)
    assert RUN in told
    assert "was changed" in told
