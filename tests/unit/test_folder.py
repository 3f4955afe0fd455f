from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from judged import swap

from auditor.core.errors import RunFolderError
from auditor.core.types import Case, Check, Prompt, Response, Variant, Verdict
from auditor.store.folder import RunFolder
from auditor.store.integrity import verify_folder

RECORD = {"format_version": 1, "status": "complete", "status_reason": "", "estimates": []}


def make_case(name: str = "c1", text: str = "x and x") -> Case:
    one, two = swap("gender", "y", 0), swap("race", "z", 6)
    return Case(
        id=name,
        suite="mutation.v1",
        original=Variant(id=f"{name}.o", input=text, groups={"gender": "a"}),
        variants=(
            Variant(id=f"{name}.v0", input="y and x", groups={"gender": "b"}, edits=(one,)),
            Variant(id=f"{name}.v1", input="x and z", edits=(two,)),
            Variant(id=f"{name}.v2", input="y and z", edits=(one, two)),
        ),
        label="positive",
    )


def checks_of(case: Case) -> dict[str, Check]:
    statuses = ("valid", "invalid", "unknown")
    return {
        v.id: Check(variant_id=v.id, check="dependency.v1", status=s, reason="" if s == "valid" else "why")
        for v, s in zip(case.variants, statuses, strict=True)
    }


def answer(
    variant: str, prompt: Prompt, replicate: int = 0, output: str | None = "positive", **more: object
) -> Response:
    return Response(
        variant_id=variant, prompt_sha256=prompt.sha256, format=prompt.format, replicate=replicate, output=output,
        model="m", **more,
    )  # fmt: skip


def verdict(variant: str = "c1.v0", **more: object) -> Verdict:
    return Verdict(case_id="c1", variant_id=variant, order=1, attributes=("gender",), outcome="pass", model="m", **more)


def fill(folder: RunFolder) -> None:
    case = make_case()
    folder.add_cases([(case, checks_of(case), None)])
    for variant in (case.original, *case.variants[:1]):
        prompt = Prompt(format="label", text=str(variant.input))
        folder.add_prompt(variant.id, prompt)
        folder.add_response(answer(variant.id, prompt))
    folder.write_verdicts([verdict()])
    folder.write_run(RECORD)


def test_a_case_or_prompt_that_changed_stops_the_resume(tmp_path: Path) -> None:
    case = make_case()
    with RunFolder.create(tmp_path, {}) as folder:
        folder.add_cases([(case, checks_of(case), None)])
        folder.add_prompt("c1.o", Prompt(format="label", text="x"))
    with RunFolder.open(folder.path, write=True) as again:
        with pytest.raises(RunFolderError, match=r"case c1 is not what .*cases\.jsonl holds"):
            again.add_cases([(make_case(text="something else"), checks_of(case), None)])
        with pytest.raises(RunFolderError, match=r"prompt of c1\.o"):
            again.add_prompt("c1.o", Prompt(format="label", text="y"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "there is no run folder"),
        (lambda p: p.mkdir(), r"not a run folder: it holds no plan\.json"),
        (lambda p: (p.mkdir(), (p / "plan.json").write_text("{")), r"plan\.json is not JSON"),
        (lambda p: (p.mkdir(), (p / "plan.json").write_text("[]")), "does not hold a JSON object"),
        (lambda p: (p.mkdir(), (p / "plan.json").write_text("{}")), "format_version"),
        (lambda p: (p.mkdir(), (p / "plan.json").write_text('{"format_version": 99, "tool_version": "9.1"}')),
         r"run format 99, written by version 9\.1 .*reads up to format 2.*Install version 9\.1 or newer"),
    ],
)  # fmt: skip
def test_what_is_no_run_folder_is_said(tmp_path: Path, make: object, message: str) -> None:
    make(tmp_path / "run")
    with pytest.raises(RunFolderError, match=message):
        RunFolder.open(tmp_path / "run")


def test_a_run_that_did_not_end_says_how_to_go_on(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, {}) as folder:
        pass
    with pytest.raises(RunFolderError, match="audit resume"):
        folder.record()


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
        folder.add_response(answer("c1.o", Prompt(format="label", text="never asked")))
        folder.write_run(RECORD)
    assert [(p.file, p.line) for p in verify_folder(folder.path)] == [("responses.jsonl", 3)]


@pytest.fixture(params=["disk", "memory"])
def evidence(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    """Three cases; c1.v0 and c1.v1 share a prompt, which was first asked for c1.v0."""
    folder = RunFolder.in_memory() if request.param == "memory" else RunFolder.create(tmp_path, {})
    for n in range(3):
        case = make_case(f"c{n}")
        folder.add_cases([(case, checks_of(case), None)])
    shared = Prompt(format="label", text="shared")
    other = Prompt(format="json", text="other")
    folder.add_prompt("c1.v0", shared)
    folder.add_prompt("c1.v1", shared)
    folder.add_prompt("c1.v0", other)
    folder.add_response(answer("c1.v0", shared, 1))
    folder.add_response(answer("c1.v0", shared, 0, None, error="timeout"))
    folder.add_response(answer("c1.v0", shared, 0, "negative"))
    folder.add_response(answer("c1.v0", other, 0, "positive"))
    folder.write_verdicts([verdict()])
    folder.close()
    return folder.evidence()


def test_evidence_shares_answers_of_equal_prompts_and_takes_the_later_one(evidence: object) -> None:
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
