"""The adapters that run on this machine: vader, python:, exec:, recorded:."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from auditor.core.errors import (
    BadResponse,
    CallError,
    CallTimeout,
    ConfigError,
    DataFileError,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import LocalClassifier, Model, Reply
from auditor.core.types import Message, Prompt, Request, digest
from auditor.models.exec import Exec, ProcessGone
from auditor.models.python import PythonFunction
from auditor.models.recorded import NotRecorded, Recorded
from auditor.models.sentiment import Vader


def text_request(text: str, *, replicate: int = 0, variant: str = "v", format_: str = "bare") -> Request:
    return Request(prompt=Prompt(format=format_, text=text), replicate=replicate, variant_id=variant)


def chat_request(text: str, *, variant: str = "v") -> Request:
    messages = (Message(role="system", content="Label it."), Message(role="user", content=text))
    return Request(prompt=Prompt(format="plain", messages=messages), replicate=0, variant_id=variant)


def ask(model: Model, *requests: Request) -> list[Reply | CallError]:
    async def run() -> Sequence[Reply | CallError]:
        try:
            return await model.generate(requests)
        finally:
            await model.aclose()

    return list(asyncio.run(run()))


def texts(replies: Sequence[Reply | CallError]) -> list[str]:
    return [reply.text if isinstance(reply, Reply) else f"!{reply.code}" for reply in replies]


class TestVader:
    def test_labels_by_the_sign_of_compound(self) -> None:
        replies = ask(Vader(), *map(text_request, ["A great film.", "A horrible film.", "A film.", ""]))
        assert texts(replies) == ["positive", "negative", "positive", "positive"]
        good, bad, none, _ = (reply.scores for reply in replies if isinstance(reply, Reply))
        assert good is not None
        assert bad is not None
        assert good["positive"] > 0.5 > bad["positive"]
        assert good["positive"] + good["negative"] == pytest.approx(1)
        assert none == {"positive": 0.5, "negative": 0.5}

    def test_three_labels_follow_the_package(self) -> None:
        model = Vader(neutral=True)
        replies = ask(model, *map(text_request, ["A great film.", "A horrible film.", "A film."]))
        assert texts(replies) == ["positive", "negative", "neutral"]
        assert all(isinstance(r, Reply) and r.scores is None for r in replies)
        assert model.fingerprint != Vader().fingerprint


def test_cancelling_stops_a_quick_classifier() -> None:
    seen: list[str] = []
    started, release = threading.Event(), threading.Event()

    class Slow(LocalClassifier):
        def answer(self, text: str) -> Reply:
            seen.append(text)
            started.set()
            release.wait(10)
            return Reply(text="positive")

    async def run() -> None:
        task = asyncio.ensure_future(Slow().generate([text_request(str(i)) for i in range(5)]))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()

    asyncio.run(run())  # joins the worker thread
    assert seen == ["0"]


def by_length(text: str) -> str:
    return "positive" if len(text) > 3 else "negative"


async def async_by_length(text: str) -> str:
    await asyncio.sleep(0)
    return by_length(text)


def many(batch: list[str]) -> list[str]:
    return [by_length(text) for text in batch]


class Classifier:
    deterministic = True

    def __call__(self, text: str) -> dict[str, float]:
        return {"negative": 0.25, "positive": 0.75}


class TestPythonFunction:
    @pytest.mark.parametrize("function", [by_length, async_by_length, many])
    def test_kinds_of_functions(self, function: Callable[..., Any]) -> None:
        model = PythonFunction(function)
        assert texts(ask(model, text_request("long text"), text_request("abc"))) == ["positive", "negative"]
        assert model.deterministic is False
        assert model.cacheable is False

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
    def test_what_answers_may_be(self, function: Any, expected: Reply) -> None:
        model = PythonFunction(function)
        assert model.deterministic is isinstance(function, Classifier)
        assert ask(model, text_request("x")) == [expected]

    def test_batch_is_declared_annotated_or_an_option(self) -> None:
        def declared(batch):  # type: ignore[no-untyped-def]
            return ["positive"] * len(batch)

        declared.auditor_batch = True  # type: ignore[attr-defined]
        assert texts(ask(PythonFunction(declared), text_request("a"), text_request("b"))) == ["positive"] * 2

        def plain(batch):  # type: ignore[no-untyped-def]
            return ["positive"] * len(batch)

        assert texts(ask(PythonFunction(plain, batch=True), text_request("abc"))) == ["positive"]
        assert texts(ask(PythonFunction(plain), text_request("abc"))) == ["!bad-response"]

    def test_an_exception_fails_one_call(self) -> None:
        def picky(text: str) -> str:
            if text == "bad":
                raise ValueError("cannot read it")
            return "positive"

        requests = [text_request(t) for t in ("good", "bad", "fine")]
        replies = ask(PythonFunction(picky), *requests)
        assert texts(replies) == ["positive", "!server-fault", "positive"]
        assert "ValueError: cannot read it" in str(replies[1])
        assert texts(ask(PythonFunction(picky, deterministic=True), *requests))[1] == "!bad-request"

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (RateLimited("slow"), RateLimited),
            (TimeoutError(), CallTimeout),
            (ConnectionError(), ServerFault),
            (SystemExit(1), ServerFault),
            (StopIteration(), ServerFault),
        ],
    )
    @pytest.mark.parametrize("is_async", [False, True])
    def test_what_exceptions_become(self, error: BaseException, kind: type, is_async: bool) -> None:
        def fails(text: str) -> str:
            raise error

        async def fails_later(text: str) -> str:
            raise error

        (reply,) = ask(PythonFunction(fails_later if is_async else fails), text_request("x"))
        assert type(reply) is kind

    @pytest.mark.parametrize(
        "value",
        [
            None,
            True,
            ["positive", 1],
            [["positive"]],
            b"positive",
            {},
            {"a": 2.0},
            {"a": float("nan")},
            {1: 0.5},
            ("a", 0.5),
        ],
    )
    def test_wrong_return_values(self, value: object) -> None:
        (reply,) = ask(PythonFunction(lambda text: value, name="mine"), text_request("x"))
        assert isinstance(reply, BadResponse)
        assert "mine" in str(reply)

    def test_chat_style_reads_messages(self) -> None:
        model = PythonFunction(lambda messages: messages[-1]["content"], style="chat")
        assert texts(ask(model, chat_request("hello"), text_request("x"))) == ["hello", "!bad-request"]


class TestPythonImport:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))
        (tmp_path / "my_review_model.py").write_text(
            "def predict(text):\n    return 'positive'\npredict.deterministic = True\nLIMIT = 3\n"
            "class Thing:\n    pass\n"
        )
        (tmp_path / "needs_more.py").write_text("import a_package_nobody_has\n")
        (tmp_path / "broken_model.py").write_text("raise RuntimeError('no weights')\n")
        yield tmp_path  # type: ignore[misc]
        for name in ("my_review_model", "needs_more", "broken_model"):
            sys.modules.pop(name, None)

    def test_from_the_current_folder(self) -> None:
        model = PythonFunction("my_review_model:predict")
        assert model.name == "python:my_review_model:predict"
        assert model.deterministic is True
        assert texts(ask(model, text_request("x"))) == ["positive"]

    def test_source_is_part_of_the_fingerprint(self, tmp_path: Path) -> None:
        before = PythonFunction("my_review_model:predict").fingerprint
        del sys.modules["my_review_model"]
        (tmp_path / "my_review_model.py").write_text("def predict(text):\n    return 'negative, always'\n")
        assert PythonFunction("my_review_model:predict").fingerprint != before

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            ("my_review_modle:predict", "Did you mean my_review_model"),
            ("my_review_model:predcit", "Did you mean predict"),
            ("my_review_model", "expected python:MODULE:FUNCTION"),
            (":predict", "expected python:MODULE:FUNCTION"),
            ("my_review_model:", "expected python:MODULE:FUNCTION"),
            ("my_review_model:LIMIT", "cannot be called"),
            ("my_review_model:Thing", "is a class"),
            ("needs_more:predict", "needs a_package_nobody_has"),
            ("broken_model:predict", "RuntimeError: no weights"),
            ("my_review_model.inner:predict", "no module my_review_model.inner"),
            (".relative:predict", "importing .relative failed"),
        ],
    )
    def test_what_is_wrong_is_said(self, target: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            PythonFunction(target)


PROGRAM = """
import json, os, sys, time
def say(value):
    print(value if isinstance(value, str) else json.dumps(value), flush=True)
held = []
for line in sys.stdin:
    r = json.loads(line)
    t = r.get("input") or r["messages"][-1]["content"]
    if t == "die":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    elif t == "broken":
        say('{"id": %d, "output": pos}' % r["id"])
    elif t == "noise":
        say("positive")
    elif t == "array":
        say([1])
    elif t == "none":
        say({"id": r["id"], "output": None})
    elif t == "error":
        say({"id": r["id"], "error": "overloaded"})
    elif t == "hang":
        pass
    elif t == "unknown":
        say({"id": 999, "output": "a"})
    elif t == "banner":
        say("Loading the model")
        held.append(r)
    elif t == "both":  # one write, so that both answers arrive together
        say("\\n".join(json.dumps({"id": h["id"], "output": "ok"}) for h in [*held, r]))
        held.clear()
    elif t == "slow":
        time.sleep(0.2)
        say({"id": r["id"], "output": "slow"})
    elif t == "first":
        held.append(r)
    elif t == "scores":
        usage = {"tokens_in": 3, "tokens_out": 1}
        say({"id": str(r["id"]), "output": "a", "scores": {"a": 0.75}, "usage": usage})
    elif t == "badscores":
        say({"id": r["id"], "output": "a", "scores": {"a": "high"}})
    elif t == "long":
        say({"id": r["id"], "output": "x" * 200000})
    else:
        say({"id": r["id"], "output": t.upper() + str(r["replicate"])})
        for h in held:
            say({"id": h["id"], "output": "late"})
        held.clear()
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(PROGRAM)
    return f"{sys.executable} {path}"


class TestExec:
    def test_answers_in_any_order(self, program: str) -> None:
        model = Exec(program)
        replies = ask(model, text_request("first"), text_request("caf\u00e9", replicate=2), text_request("scores"))
        assert texts(replies) == ["late", "CAF\u00c92", "a"]
        last = replies[2]
        assert isinstance(last, Reply)
        assert last.scores == {"a": 0.75}
        assert last.usage is not None
        assert last.usage.tokens_in == 3

    def test_many_batches_share_one_process(self, tmp_path: Path) -> None:
        path = tmp_path / "pid.py"
        path.write_text(
            "import json, os, sys\nfor l in sys.stdin:\n"
            "    print(json.dumps({'id': json.loads(l)['id'], 'output': str(os.getpid())}), flush=True)\n"
        )

        async def run() -> set[str]:
            model = Exec(f"{sys.executable} {path}")
            batches = await asyncio.gather(*(model.generate([text_request(str(i))] * 20) for i in range(10)))
            await model.aclose()
            return {text for batch in batches for text in texts(batch)}

        assert len(asyncio.run(run())) == 1

    @pytest.mark.parametrize(
        ("text", "error", "told"),
        [
            ("broken", BadResponse, "not a JSON object"),
            ("none", BadResponse, "expected the field output"),
            ("badscores", BadResponse, "not a number"),
            ("noise", BadResponse, "standard error"),
            ("array", BadResponse, "standard error"),
            ("unknown", BadResponse, "standard error"),
            ("error", ServerFault, "overloaded"),
        ],
    )
    def test_a_bad_answer_fails_one_request(self, program: str, text: str, error: type, told: str) -> None:
        replies = ask(Exec(program), text_request("a"), text_request(text), text_request("b"))
        assert texts(replies) == ["A0", f"!{error.code}", "B0"]  # type: ignore[attr-defined]
        assert told in str(replies[1])

    def test_no_answer_in_time(self, program: str) -> None:
        (reply,) = ask(Exec(program, timeout_s=0.2), text_request("hang"))
        assert isinstance(reply, CallTimeout)

    def test_death_fails_open_requests_then_restarts(self, program: str) -> None:
        async def run() -> None:
            model = Exec(program, max_restarts=1)
            first = await model.generate([text_request("hang"), text_request("die")])
            assert [type(reply) for reply in first] == [ServerFault] * 2
            assert "exit status 3" in str(first[0])
            assert "out of memory" in str(first[0])
            assert texts(await model.generate([text_request("again")])) == ["AGAIN0"]
            await model.generate([text_request("die")])
            (gone,) = await model.generate([text_request("x")])
            assert isinstance(gone, ProcessGone)
            assert not gone.transient
            assert "out of memory" in str(gone)
            await model.aclose()

        asyncio.run(run())

    def test_a_line_that_is_too_long(self, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("auditor.models.exec.LINE_LIMIT", 1000)
        (reply,) = ask(Exec(program), text_request("long"))
        assert "more than 1000 bytes" in str(reply)

    def test_closing_ends_a_stubborn_program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("auditor.models.exec.GRACE_S", 0.1)
        path = tmp_path / "stubborn.py"
        path.write_text(
            "import json, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "print(json.dumps({'id': json.loads(sys.stdin.readline())['id'], 'output': 'a'}), flush=True)\n"
            "while True:\n    time.sleep(0.1)\n"
        )

        async def run() -> int | None:
            model = Exec(f"{sys.executable} {path}")
            assert texts(await model.generate([text_request("x")])) == ["a"]
            program = model._program
            await model.aclose()
            assert program is not None
            return program._process.returncode

        assert asyncio.run(run()) == -9

    @pytest.mark.parametrize(
        ("command", "message"),
        [("", "no command"), ("no-such-program-here x", "no program"), ("python 'x", "cannot be split")],
    )
    def test_what_is_wrong_is_said(self, command: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            Exec(command)

    def test_the_script_is_part_of_the_fingerprint(self, program: str, tmp_path: Path) -> None:
        before = Exec(program).fingerprint
        assert Exec(program).fingerprint == before
        (tmp_path / "model.py").write_text(PROGRAM + "# changed\n")
        assert Exec(program).fingerprint != before


def recorded(folder: Path, *entries: object, **options: Any) -> Recorded:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in entries) + "\n", encoding="utf-8")
    return Recorded(path, **options)


class TestRecorded:
    def test_by_prompt_variant_and_input(self, tmp_path: Path) -> None:
        request = text_request("by sha")
        model = recorded(
            tmp_path,
            {"prompt_sha256": request.prompt.sha256, "output": "a", "scores": {"a": 0.5}},
            {"variant_id": "v7", "output": "b"},
            {"input": "by text", "output": "c"},
            {"input": "never asked", "output": "d"},
        )
        replies = ask(model, request, text_request("x", variant="v7"), text_request("by text"), text_request("missing"))
        assert texts(replies) == ["a", "b", "c", "!not-recorded"]
        assert replies[0] == Reply(text="a", scores={"a": 0.5})
        assert isinstance(replies[3], NotRecorded)
        assert model.unused == (4,)
        assert model.style == "text"

    def test_a_replicate_is_never_replaced_by_another(self, tmp_path: Path) -> None:
        model = recorded(tmp_path, {"input": "x", "output": "a"}, {"input": "x", "output": "b", "replicate": 1})
        requests = [text_request("x", replicate=r) for r in range(3)]
        assert texts(ask(model, *requests)) == ["a", "b", "!not-recorded"]

    def test_a_line_of_another_prompt_is_not_used_for_the_variant(self, tmp_path: Path) -> None:
        other = digest({"input": "another text"})
        model = recorded(
            tmp_path,
            {"prompt_sha256": other, "variant_id": "v", "output": "a"},
            {"variant_id": "w", "input": "another text", "output": "b"},
        )
        replies = ask(model, text_request("this text"), text_request("this text", variant="w"))
        assert texts(replies) == ["!not-recorded"] * 2

    def test_two_answers_of_one_variant_need_replicates(self, tmp_path: Path) -> None:
        line = {"prompt_sha256": digest({"input": "x"}), "variant_id": "v"}
        with pytest.raises(DataFileError, match="line 2: a second, different answer"):
            recorded(tmp_path, {**line, "output": "a"}, {**line, "output": "b"})
        assert recorded(tmp_path, {**line, "output": "a"}, {**line, "output": "b", "replicate": 1}).size == 2

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("{", "line 2: not an answer"),
            ("[" * 100_000, "line 2: not an answer"),
            ("[]", "line 2: not an answer .Expected `object`, got `array`"),
            ('{"input": "x"}', "line 2: expected exactly one of the fields output and error"),
            ('{"input": "x", "output": "a", "error": "b"}', "line 2: expected exactly one"),
            ('{"input": "x", "output": 1}', r"line 2: not an answer .*`\$\.output`"),
            ('{"output": "a"}', "line 2: needs one of the fields"),
            ('{"input": "x", "output": "a", "replicate": -1}', r"line 2: not an answer .*`\$\.replicate`"),
            ('{"input": "x", "output": "a", "replicate": true}', r"line 2: not an answer .*`\$\.replicate`"),
            ('{"input": "x", "output": "a", "scores": {"a": 7}}', "line 2: scores"),
            ('{"messages": "x", "output": "a"}', r"line 2: not an answer .*`\$\.messages`"),
            ('{"input": "known", "output": "another"}', "line 2: a second, different answer .* line 1"),
        ],
    )
    def test_bad_lines(self, tmp_path: Path, line: str, message: str) -> None:
        path = tmp_path / "answers.jsonl"
        path.write_text('{"input": "known", "output": "a"}\n' + line + "\n")
        with pytest.raises(DataFileError, match=message):
            Recorded(path)

    def test_bad_files(self, tmp_path: Path) -> None:
        path = tmp_path / "answers.jsonl"
        with pytest.raises(DataFileError, match="could not be read"):
            Recorded(path)
        path.write_text("\n\n")
        with pytest.raises(DataFileError, match="holds no recorded answers"):
            Recorded(path)
        path.write_bytes(b'\n{"input": "caf\xe9", "output": "a"}\n')
        with pytest.raises(DataFileError, match="line 2: not UTF-8"):
            Recorded(path)
