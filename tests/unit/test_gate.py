"""The gate of constructs: the conformance suite, other inputs, and what ``audit generate`` keeps of sentences."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from judged import edit

from auditor.cli.main import run
from auditor.core.types import Variant
from auditor.perturb.edits import span_of
from auditor.perturb.gate import Constructs
from auditor.text.parse import MAX_CHARS, Parser
from tests.asking import json_lines
from tests.planted.edit_set import GATE_FIXTURES, UNMADE, GateFixture, misjudged
from tests.planted.gate_set import still_made

PARSER = Parser()


@pytest.mark.parametrize("one", GATE_FIXTURES, ids=lambda one: one.id)
def test_the_gate_meets_the_conformance_suite(one: GateFixture) -> None:
    assert misjudged(Constructs(parser=PARSER), [one]) == set()


def test_the_suite_tells_a_gate_that_keeps_all_and_one_that_keeps_nothing() -> None:
    none, every = (Mock(**{"check.return_value": [Mock(status=status)]}) for status in ("invalid", "valid"))
    good = {one.id for one in GATE_FIXTURES if one.good}
    assert misjudged(none) == good
    assert misjudged(every) == {one.id for one in GATE_FIXTURES} - good


def test_rows_and_long_sentences_are_unknown() -> None:
    gate = Constructs(parser=PARSER)
    row = gate.check(Variant(id="c.o", input={"a": 1}), [Variant(id="c.v0", input={"a": 2})])[0]
    assert row.status == "unknown"
    text = "he " * (MAX_CHARS // 3 + 10)
    long = Variant(id="c.v0", input="she" + text[2:], edits=(edit("he", "she"),))
    assert gate.check(Variant(id="c.o", input=text), [long])[0].status == "unknown"


@pytest.mark.parametrize("one", UNMADE, ids=lambda one: one.id)
def test_what_the_dictionaries_know_is_not_made(one: GateFixture) -> None:
    rows = [(*span_of(e), e.source, e.target, e.kind, e.attribute, e.source_group, e.target_group) for e in one.edits]
    assert not still_made({"edits": rows}, one.text)


class Sentence(msgspec.Struct, frozen=True):
    """One text, variants that a run must keep, and phrases that none may contain."""

    id: str
    text: str
    kept: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    subject: bool = False


SENTENCES = msgspec.yaml.decode(
    Path(__file__).with_name("generated_sentences.yaml").read_bytes(), type=tuple[Sentence, ...]
)


def problems(kept: Mapping[str, Sequence[str]], sentences: Iterable[Sentence]) -> list[tuple[str, str]]:
    """Return the sentences whose texts lack a good variant or include a bad one."""
    found = []
    for one in sentences:
        texts = kept.get(one.id, ())
        found += [(one.id, f"{text!r} is missing") for text in one.kept if text not in texts]
        for phrase in one.never:
            if re.search(rf"(?<!\w){re.escape(phrase)}", "\n".join(texts).lower()):
                found.append((one.id, f"contains {phrase!r}"))
    return found


def generated(folder: Path, task: str, *, subject: bool) -> dict[str, list[str]]:
    """What ``audit generate`` keeps of the sentences, by id."""
    chosen = [one for one in SENTENCES if one.subject == subject]
    data = json_lines(folder / "data.jsonl", [{"id": one.id, "text": one.text} for one in chosen])
    out = folder / "out"
    assert run(["generate", *shlex.split(f"--task {task} --data {data} --order 1 --per-seed 0 --out {out}")]) == 0
    kept: dict[str, list[str]] = {one.id: [] for one in chosen}
    by_text = {one.text: one.id for one in chosen}
    (file,) = out.glob("*/cases.jsonl")
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        name = by_text.get(case["original"]["input"])
        if name is not None:  # else a line with a name stands before the text
            kept[name] += [v["input"] for v in case["variants"] if v["valid"]]
    return kept


@pytest.mark.parametrize(("task", "subject"), [("sentiment", False), ("hiring", True)])
def test_a_run_asks_the_good_variants_and_none_that_is_wrong(task: str, subject: bool, tmp_path: Path) -> None:
    kept = generated(tmp_path, task, subject=subject)
    assert problems(kept, [one for one in SENTENCES if one.subject == subject]) == []


def test_missing_and_wrong_variants_are_seen() -> None:
    assert {name for name, _ in problems({}, SENTENCES)} == {one.id for one in SENTENCES if one.kept}
    never = [one for one in SENTENCES if one.never]
    found = problems({one.id: [*one.kept, f"So {one.never[0]}."] for one in never}, never)
    assert [name for name, _ in found] == [one.id for one in never]
