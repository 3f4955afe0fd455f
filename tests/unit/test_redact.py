"""Redacted runs: no text in any file, and what can be done with them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from auditor.core.errors import AuthFailed, ConfigError, RunFolderError, UserError
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Reply
from auditor.core.types import SourceText
from auditor.run.audit import run_sync
from auditor.run.result import load, replay, resume, run_plan, score
from auditor.run.state import silent
from auditor.store.folder import RunFolder

TEXTS = (
    "The woman walked home after the long dull film. She found it boring.",
    "My brother praised the wonderful plot. A German actor played the thief.",
    "The old man and his wife enjoyed the awful music. It was a bad evening.",
)


def audit_plan(plan: Plan, seeds: Any = None, models: Any = None) -> Any:
    return run_sync(lambda: run_plan(plan, models=models, seeds=seeds, observe=silent, write=True))


def _run(root: Path, texts: tuple[str, ...] = TEXTS, **options: Any) -> Any:
    seeds = [SourceText(id=f"s{n}", text=text) for n, text in enumerate(texts)]
    plan = Plan(models=("reviews",), out=str(root), attributes=("gender",), **{"redact": True, **options})
    return audit_plan(plan, seeds=seeds)


def test_the_figures_are_those_of_a_plain_run(tmp_path: Path) -> None:
    plain, bare = (_run(tmp_path / str(flag), redact=flag, cache=False).record for flag in (False, True))
    for part in ("counts", "estimates", "findings", "controls"):
        assert bare[part] == plain[part]


def test_what_needs_the_texts_says_so(tmp_path: Path) -> None:
    result = _run(tmp_path)
    variant = result.verdicts[0].variant_id
    with pytest.raises(RunFolderError, match="--redact: asking its prompts again needs the texts"):
        replay(result.path, variant)
    with pytest.raises(RunFolderError, match="--redact: judging recorded answers needs the texts"):
        score(result.path, tmp_path / "answers.jsonl")
    assert load(result.path).record["id"] == result.path.name
    with pytest.raises(ConfigError, match="Leave --redact out"):
        audit_plan(Plan(task="advice", models=("python:x:y",), redact=True, out=str(tmp_path)))


# -- the command line: everything that can be printed or written of a redacted run --------------------------

RARE = ("zephyrine", "quillwort", "marzipan", "crimson", "harbour")  # of texts and answers, and of nothing else
PLANTED = """
from auditor.core.errors import BadRequest

def answer(messages):
    text = messages[-1]["content"].lower()
    if "quillwort" in text and "brother" in text:
        return "I'm sorry, but I can't assist with the crimson harbour."
    if "quillwort" in text and "niece" in text:
        return "The crimson harbour, perhaps?"
    if "marzipan" in text and "aunt" in text:
        raise ValueError("no crimson harbour in: " + text)
    if "marzipan" in text and "gentleman" in text:
        raise BadRequest("no crimson harbour in: " + text)
    she = any(word in text for word in (" woman", " she ", " lady", " girl", " aunt", " niece"))
    return "It reminds me of the crimson harbour.\\nAnswer: " + ("negative" if she else "positive")

answer.auditor_style = "chat"
"""
PEOPLE = ("man", "woman", "boy", "girl", "brother", "aunt", "gentleman", "lady", "uncle", "niece")
FORMATS = "terminal,html,json,markdown,csv,junit,eu-ai-act,nist-ai-rmf,ai-verify,github"


def _readable(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


@pytest.fixture
def command(at_once: None, place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    from auditor.cli.main import run

    (place / "planted_redact.py").write_text(PLANTED, encoding="utf-8")
    monkeypatch.syspath_prepend(place)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    lines = [f"The {who} saw the {odd} by the road." for who in PEOPLE for odd in RARE[:3]]
    (place / "texts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def call(*argv: str) -> tuple[int, str]:
        code = run(list(argv))
        told = capfd.readouterr()
        return code, told.out + told.err

    return call


def _start(out: str, *more: str) -> list[str]:
    args = ["run", "--task", "sentiment", "--formats", "reasoned", "--model", "python:planted_redact:answer"]
    args += [*shlex.split("--data texts.txt --attributes gender --order 1 --replicates 2 --full-plan --out"), out]
    return [*args, *more]


def test_no_text_and_no_answer_is_in_any_output(command: Any, tmp_path: Path) -> None:
    code, told = command(*_start("bare", "--redact", "--format", "json"))
    assert code == 3, told[-2000:]  # some calls failed
    record = next((tmp_path / "bare").glob("2*/run.json"))
    run, found = record.parent, json.loads(record.read_text())
    assert found["findings"]
    assert min(found["counts"][name] for name in ("refused", "unparsed", "failed")) > 0
    command(*_start("again", "--redact", "--seed", "8"))
    (other,) = (tmp_path / "again").glob("2*")
    ids = [found["findings"][0]["id"], *{v.variant_id: 0 for v in RunFolder.open(run).verdicts()}]
    for argv in (
        ["report", str(run), "--format", FORMATS],
        *(["show", str(run), name] for name in ids[:6]),
        *(["compare", str(run), str(other), "--format", form] for form in ("terminal", "json", "markdown")),
        ["verify", str(run)],
        ["resume", str(run), "--yes"],
    ):
        code, said = command(*argv)
        assert code != 2, said
        assert "Traceback" not in said
        told += said
    for argv in (["show", str(run), ids[1], "--again"], ["augment", str(run), "--out", "x.jsonl"]):
        code, said = command(*argv)
        assert code == 2
        told += said
    files = [p for folder in ("bare", "again") for p in (tmp_path / folder).rglob("*") if p.is_file()]
    assert len(files) > 20
    told += "\n".join(map(_readable, files))
    assert "(redacted" in told
    assert [word for word in RARE if word in told.lower()] == []


@pytest.mark.parametrize("after", [0, 20])
def test_an_error_that_quotes_a_text_ends_a_redacted_run_without_quoting_it(tmp_path: Path, after: int) -> None:
    class Quotes(Model):
        costs = "nothing"
        name = fingerprint = "quotes"
        style, deterministic, cacheable, max_batch = "text", True, False, 1
        asked = 0

        async def generate(self, batch: Any) -> list[Any]:
            self.asked += 1
            text = batch[0].prompt.text
            return [AuthFailed(f"no credit for {text}") if self.asked > after else Reply("positive")]

    seeds = [SourceText(id=f"s{n}", text=f"The {who} saw the zephyrine.") for n, who in enumerate(PEOPLE)]
    plan = Plan(models=("quotes",), out=str(tmp_path), attributes=("gender",), redact=True, concurrency=1)
    if after:
        told = audit_plan(plan, seeds=seeds, models=[Quotes()]).record["status_reason"]
    else:
        with pytest.raises(UserError) as caught:
            audit_plan(plan, seeds=seeds, models=[Quotes()])
        told = str(caught.value)
    assert "auth-failed" in told
    told += "\n".join(map(_readable, (p for p in tmp_path.rglob("*") if p.is_file())))
    assert "zephyrine" not in told


def test_a_cut_off_run_goes_on_with_the_labels_it_has(tmp_path: Path) -> None:
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    plan = Plan(models=("reviews",), out=str(tmp_path / "runs"), attributes=("gender",), redact=True, data=str(data))
    whole = audit_plan(plan)
    path = whole.path
    assert path is not None
    lines = (path / "responses.jsonl").read_bytes().splitlines(keepends=True)
    (path / "responses.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    for name in ("run.json", "verdicts.jsonl"):
        (path / name).unlink()
    again = resume(path)
    assert again.record["estimates"] == whole.record["estimates"]
    assert again.record["counts"]["violations"] == whole.record["counts"]["violations"]
    assert len((path / "responses.jsonl").read_bytes().splitlines()) == len(lines)
