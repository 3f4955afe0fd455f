"""The adapters that run on this machine: vader, python:, exec:, recorded:."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from auditor.core.errors import BadResponse, CallTimeout, ConfigError, DataFileError, RateLimited, ServerFault
from auditor.core.protocols import Reply
from auditor.core.types import Usage, digest
from auditor.models.exec import Exec, ProcessGone
from auditor.models.offline import Vader
from auditor.models.python import PythonFunction
from auditor.models.recorded import Recorded
from tests.asking import ask, bare, chat


def texts(replies: Any) -> list[str]:
    return [reply.text if isinstance(reply, Reply) else f"!{reply.code}" for reply in replies]


def test_vader_labels_by_the_sign_of_compound_or_as_the_package_does_with_three_labels() -> None:
    asked = [bare(text) for text in ("A great film.", "A horrible film.", "A film.", "")]
    neutral = Vader(task=SimpleNamespace(labels=("neutral",)))
    replies, three = ask(Vader(), *asked), ask(neutral, *asked)
    assert texts(replies) == ["positive", "negative", "positive", "positive"]
    assert replies[0].scores["positive"] > 0.5 > replies[1].scores["positive"]
    assert replies[2].scores == {"positive": 0.5, "negative": 0.5}
    assert texts(three) == ["positive", "negative", "neutral", "neutral"]
    assert {reply.scores for reply in three} == {None}
    assert neutral.fingerprint != Vader().fingerprint


# -- python: --------------------------------------------------------------------------------------------


class Classifier:
    deterministic = True

    def __call__(self, text: str) -> dict[str, float]:
        return {"negative": 0.25, "positive": 0.75}


def test_kinds_of_functions() -> None:
    def by_length(text: str) -> str:
        return "positive" if len(text) > 3 else "negative"

    async def later(text: str) -> str:
        await asyncio.sleep(0)
        return by_length(text)

    def many(batch: list[str]) -> list[str]:
        return [by_length(text) for text in batch]

    def declared(batch):  # type: ignore[no-untyped-def]
        return many(batch)

    plain = PythonFunction(declared)
    assert texts(ask(plain, bare("abc"))) == ["!bad-response"]  # nothing says that it takes a list
    batches = PythonFunction(declared, batch=True)
    declared.auditor_batch = True  # type: ignore[attr-defined]
    for model in (batches, *map(PythonFunction, (by_length, later, many, declared))):
        assert texts(ask(model, bare("long text"), bare("abc"))) == ["positive", "negative"]
        assert (model.deterministic, model.cacheable) == (False, False)
    reader = PythonFunction(lambda messages: messages[-1]["content"], style="chat")
    assert texts(ask(reader, chat("hello"), bare("x"))) == ["hello", "!bad-request"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Classifier(), Reply("positive", scores={"negative": 0.25, "positive": 0.75})),
        (lambda t: ("no", {"no": 0.9}), Reply("no", scores={"no": 0.9})),
        (lambda t: {"b": 0.5, "a": 0.5}, Reply("a", scores={"b": 0.5, "a": 0.5})),
        (lambda t: ("b", "a", "c"), Reply('["b", "a", "c"]')),
        (lambda t: {"b", "a"}, Reply('["a", "b"]')),
        (lambda t: [], Reply("[]")),
    ],
)
def test_what_answers_may_be(function: Any, expected: Reply) -> None:
    model = PythonFunction(function)
    assert model.deterministic is isinstance(function, Classifier)
    assert ask(model, bare("x")) == [expected]


@pytest.mark.parametrize(
    "value", [None, True, ["a", 1], [["a"]], b"a", {}, {"a": 2.0}, {"a": float("nan")}, {1: 0.5}, ("a", 0.5)], ids=repr
)
def test_wrong_return_values(value: object) -> None:
    (reply,) = ask(PythonFunction(lambda text: value, name="mine"), bare("x"))
    assert isinstance(reply, BadResponse)
    assert "mine" in str(reply)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RateLimited("slow"), RateLimited), (TimeoutError(), CallTimeout), (ConnectionError(), ServerFault),
        (SystemExit(1), ServerFault), (StopIteration(), ServerFault), (ValueError("cannot read it"), ServerFault),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_async", [False, True])
def test_an_exception_fails_one_call(error: BaseException, kind: type, is_async: bool) -> None:
    def picky(text: str) -> str:
        if text == "bad":
            raise error
        return "positive"

    async def picky_later(text: str) -> str:
        return picky(text)

    asked = [bare(t) for t in ("good", "bad", "fine")]
    replies = ask(PythonFunction(picky_later if is_async else picky), *asked)
    assert [type(reply) for reply in replies] == [Reply, kind, Reply]
    assert str(error) in str(replies[1])
    if isinstance(error, ValueError):
        assert texts(ask(PythonFunction(picky, deterministic=True), *asked))[1] == "!bad-request"


def test_a_function_of_the_current_folder_has_its_source_in_the_fingerprint_and_slips_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_review_model.py").write_text(
        "def predict(text):\n    return 'positive'\npredict.deterministic = True\nLIMIT = 3\nclass Thing:\n    pass\n"
    )
    (tmp_path / "needs_more.py").write_text("import a_package_nobody_has\n")
    (tmp_path / "broken_model.py").write_text("raise RuntimeError('no weights')\n")
    for target, message in (
        ("my_review_modle:predict", "Did you mean my_review_model"),
        ("my_review_model:predcit", "Did you mean predict"),
        ("my_review_model", "expected python:MODULE:FUNCTION"),
        (":predict", "expected python:MODULE:FUNCTION"),
        ("my_review_model:LIMIT", "cannot be called"),
        ("my_review_model:Thing", "is a class"),
        ("needs_more:predict", "needs a_package_nobody_has"),
        ("broken_model:predict", "RuntimeError: no weights"),
        ("my_review_model.inner:predict", "no module my_review_model.inner"),
        (".relative:predict", "importing .relative failed"),
    ):
        with pytest.raises(ConfigError, match=message):
            PythonFunction(target)
    model = PythonFunction("my_review_model:predict")
    assert (model.name, model.deterministic) == ("python:my_review_model:predict", True)
    assert texts(ask(model, bare("x"))) == ["positive"]
    del sys.modules["my_review_model"]
    (tmp_path / "my_review_model.py").write_text("def predict(text):\n    return 'negative, always'\n")
    assert PythonFunction("my_review_model:predict").fingerprint != model.fingerprint
    del sys.modules["my_review_model"]


# -- exec: ----------------------------------------------------------------------------------------------

PROGRAM = """
import json, os, signal, sys, time
def say(value):
    print(value if isinstance(value, str) else json.dumps(value), flush=True)
held = []
for line in sys.stdin:
    r = json.loads(line)
    t = r["input"]
    told = {
        "broken": '{"id": %d, "output": pos}' % r["id"],
        "noise": "positive",
        "array": [1],
        "none": {"id": r["id"], "output": None},
        "error": {"id": r["id"], "error": "overloaded"},
        "unknown": {"id": 999, "output": "a"},
        "scores": {"id": str(r["id"]), "output": "a", "scores": {"a": 0.75}, "usage": {"tokens_in": 3, "tokens_out": 1}},
        "uncounted": {"id": r["id"], "output": "a", "usage": {}},
        "badscores": {"id": r["id"], "output": "a", "scores": {"a": "high"}},
        "long": {"id": r["id"], "output": "x" * 200000},
        "pid": {"id": r["id"], "output": str(os.getpid())},
    }
    if t == "die":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    elif t == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say({"id": r["id"], "output": "a"})
        time.sleep(600)
    elif t == "first":
        held.append(r)
    elif t in told:
        say(told[t])
    elif t != "hang":
        say({"id": r["id"], "output": t.upper() + str(r["replicate"])})
        for h in held:
            say({"id": h["id"], "output": "late"})
        held.clear()
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "model.py").write_text(PROGRAM)
    return f"{sys.executable} {tmp_path / 'model.py'}"


def test_a_program_answers_in_any_order(program: str) -> None:
    replies = ask(Exec(program), bare("first"), bare("caf\u00e9", replicate=2), bare("scores"), bare("uncounted"))
    assert texts(replies) == ["late", "CAF\u00c92", "a", "a"]
    assert replies[2:] == [Reply("a", scores={"a": 0.75}, usage=Usage(tokens_in=3, tokens_out=1)), Reply("a")]


def test_many_batches_share_one_process(program: str) -> None:
    async def run() -> set[str]:
        model = Exec(program)
        batches = await asyncio.gather(*(model.generate([bare("pid")] * 20) for _ in range(10)))
        await model.aclose()
        return {text for batch in batches for text in texts(batch)}

    assert len(asyncio.run(run())) == 1


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("broken", "bad-response", "not a JSON object"), ("none", "bad-response", "expected the field output"),
        ("badscores", "bad-response", "not a number"), ("noise", "bad-response", "standard error"),
        ("array", "bad-response", "standard error"), ("unknown", "bad-response", "standard error"),
        ("error", "server-fault", "overloaded"),
    ],
)  # fmt: skip
def test_a_bad_answer_fails_one_request(program: str, text: str, error: str, told: str) -> None:
    replies = ask(Exec(program), bare("a"), bare(text), bare("b"))
    assert texts(replies) == ["A0", f"!{error}", "B0"]
    assert told in str(replies[1])


def test_no_answer_in_time_and_one_that_is_too_long(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert texts(ask(Exec(program, timeout_s=0.2), bare("hang"))) == ["!timeout"]
    monkeypatch.setattr("auditor.models.exec.LINE_LIMIT", 1000)
    (reply,) = ask(Exec(program), bare("long"))
    assert "more than 1000 bytes" in str(reply)


def test_death_fails_open_requests_then_restarts(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> list[Any]:
        model = Exec(program)
        asked = (["hang", "die"], ["again"], ["die"], ["x"])
        replies = [await model.generate([bare(text) for text in batch]) for batch in asked]
        await model.aclose()
        return replies

    monkeypatch.setattr("auditor.models.exec.RESTARTS", 1)
    first, again, _, (gone,) = asyncio.run(run())
    assert [type(reply) for reply in first] == [ServerFault] * 2
    assert all(told in str(first[0]) for told in ("exit status 3", "out of memory"))
    assert texts(again) == ["AGAIN0"]
    assert (type(gone), gone.transient, "out of memory" in str(gone)) == (ProcessGone, False, True)


def test_closing_ends_a_stubborn_program(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.models.exec.GRACE_S", 0.1)

    async def run() -> int | None:
        model = Exec(program)
        assert texts(await model.generate([bare("stubborn")])) == ["a"]
        running = model._program
        await model.aclose()
        assert running is not None
        return running._process.returncode

    assert asyncio.run(run()) == -9


def test_the_command_is_checked_and_its_script_is_part_of_the_fingerprint(program: str, tmp_path: Path) -> None:
    for command, message in (("", "no command"), ("no-such-program-here x", "no program"), ("python 'x", "be split")):
        with pytest.raises(ConfigError, match=message):
            Exec(command)
    before = Exec(program).fingerprint
    assert Exec(program).fingerprint == before
    (tmp_path / "model.py").write_text(PROGRAM + "# changed\n")
    assert Exec(program).fingerprint != before


# -- recorded: ------------------------------------------------------------------------------------------


def recorded(folder: Path, *entries: object) -> Recorded:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in entries) + "\n", encoding="utf-8")
    return Recorded(path)


def test_a_line_is_found_by_prompt_variant_or_input(tmp_path: Path) -> None:
    request = bare("by sha")
    first = {"prompt_sha256": request.prompt.sha256, "output": "a", "scores": {"a": 0.5}}
    model = recorded(tmp_path, first, {"variant_id": "v7", "output": "b"}, {"input": "by text", "output": "c"})
    replies = ask(model, request, bare("x", variant="v7"), bare("by text"), bare("missing"))
    assert texts(replies) == ["a", "b", "c", "!not-recorded"]
    assert replies[0].scores == {"a": 0.5}
    assert model.style == "text"


def test_no_answer_is_that_of_another_repeat_or_prompt(tmp_path: Path) -> None:
    model = recorded(tmp_path, {"input": "x", "output": "a"}, {"input": "x", "output": "b", "replicate": 1})
    assert texts(ask(model, *(bare("x", replicate=r) for r in range(3)))) == ["a", "b", "!not-recorded"]
    line = {"prompt_sha256": digest({"input": "x"}), "variant_id": "v"}
    others = recorded(tmp_path, line | {"output": "a"}, {"variant_id": "w", "input": "another", "output": "b"})
    assert texts(ask(others, bare("this"), bare("this", variant="w"))) == ["!not-recorded"] * 2
    with pytest.raises(DataFileError, match="line 2: a second, different answer"):
        recorded(tmp_path, line | {"output": "a"}, line | {"output": "b"})
    recorded(tmp_path, line | {"output": "a"}, line | {"output": "b", "replicate": 1})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not an answer"),
        ("[" * 100_000, "line 2: not an answer"),
        ('{"input": "x"}', "line 2: expected exactly one of the fields output and error"),
        ('{"input": "x", "output": "a", "error": "b"}', "line 2: expected exactly one"),
        ('{"output": "a"}', "line 2: needs one of the fields"),
        ('{"input": "x", "output": "a", "replicate": -1}', r"line 2: not an answer .*`\$\.replicate`"),
        ('{"input": "x", "output": "a", "scores": {"a": 7}}', "line 2: scores"),
        ('{"input": "known", "output": "another"}', "line 2: a second, different answer .* line 1"),
        (b'{"input": "caf\xe9", "output": "a"}', "line 2: not UTF-8"),
    ],
)
def test_files_and_lines_that_cannot_be_read(tmp_path: Path, line: str | bytes, message: str) -> None:
    path = tmp_path / "answers.jsonl"
    with pytest.raises(DataFileError, match="could not be read"):
        Recorded(path)
    with pytest.raises(DataFileError, match="holds no recorded answers"):
        recorded(tmp_path)
    path.write_bytes(b'{"input": "known", "output": "a"}\n' + (line if isinstance(line, bytes) else line.encode()))
    with pytest.raises(DataFileError, match=message):
        Recorded(path)
