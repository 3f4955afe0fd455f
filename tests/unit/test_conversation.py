"""Tasks with turns and tools: how they are loaded, played, read, and what a conversation costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import auditor.models as models
from auditor import audit
from auditor.core import talk
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Response, Usage
from auditor.models.langchain import stub_tools
from auditor.models.limits import Budget
from auditor.models.talks import NO_JSON, NO_TOOL, Talks
from auditor.tasks import Task, load

SHOP = """
format: 1
name: shop
kind: decision
labels: [refund, decline]
favourable: refund
subject: the customer
system: You answer for a shop.
turns:
  - system: "From the file: {profile}"
  - user: "A ticket: {text}"
  - user: What do the rules say?
  - user: Decide now.
tools:
  - name: refund
    parameters: {type: object, properties: {percent: {type: number}}}
    result: ["paid", "paid again"]
  - {name: decline, description: No money.}
  - {name: rules, result: Two weeks.}
outcome: {read: tool, number: refund.percent}
formats:
  tools: {graded: true, answer: '{"label": {json}, "score": {score}}'}
"""


def task_of(tmp_path: Path, text: str = SHOP, **changes: str) -> Task:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "shop.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file)


def called(name: str, **arguments: object) -> str:
    return str(talk.written({"tool_calls": [{"name": name, "arguments": arguments}]}))


class Scripted(Model):
    """Answers by the last message; counts what it was asked."""

    name, fingerprint, style, calls_tools, cacheable = "scripted", "scripted-1", "chat", True, True

    def __init__(self, answer: Callable[[list[dict[str, Any]]], str]) -> None:
        self.answer = answer
        self.seen: list[list[dict[str, Any]]] = []

    async def generate(self, batch: Sequence[Request]) -> list[Reply]:
        return [self.reply(request.prompt.payload()["messages"]) for request in batch]

    def reply(self, messages: list[dict[str, Any]]) -> Reply:
        self.seen.append(messages)
        return Reply(self.answer(messages), usage=Usage(tokens_in=10, tokens_out=1))


def clerk(messages: list[dict[str, Any]]) -> str:
    said = {"What do the rules say?": called("rules"), "Decide now.": called("refund", percent=40)}
    last = messages[-1]["content"]
    return f"It said {last}" if messages[-1]["role"] == "tool" else said.get(last, "I see.")


def play(task: Task, model: Model, *texts: str) -> tuple[list[Response], Talks]:
    client = Talks(model, cache=None, budget=Budget())
    requests = [Request(prompt=task.render(t), replicate=0, variant_id=t) for t in texts or ("A lamp broke.",)]
    return asyncio.run(client.ask(requests)), client


def said(response: Response, role: str = "") -> list[str]:
    """The messages of a conversation, of one role or of all."""
    return [m.content for m in talk.messages_of(response.output or "") or () if role in ("", m.role)]


def test_turns_are_said_one_by_one_and_tools_give_their_results(tmp_path: Path) -> None:
    task, model = task_of(tmp_path), Scripted(clerk)
    (response,), client = play(task, model, "Customer: Ann\n\nA lamp broke.")
    assert said(response, "system") == ["You answer for a shop.", "From the file: Customer: Ann"]
    assert said(response)[2:] == [
        "A ticket: A lamp broke.", "I see.", "What do the rules say?", "", "Two weeks.", "It said Two weeks.",
        "Decide now.", "", "paid", "It said paid",
    ]  # fmt: skip
    assert said(response, "tool") == ["Two weeks.", "paid"]
    assert client.counts.calls == len(model.seen) == 5 == task.calls + 1
    assert response.usage == Usage(tokens_in=50, tokens_out=5)
    answer = task.read(response.output or "", "chat", "tools")
    assert (answer.value, answer.number) == ("refund", 40.0)
    assert "→ refund({" in talk.shown(response.output or "")
    assert talk.brief(response.output or "").endswith('refund({"percent": 40})')


def test_equal_beginnings_are_asked_once(tmp_path: Path) -> None:
    task = task_of(tmp_path, **{"A ticket: {text}": "A ticket.", "Decide now.": "Decide now, {text}"})
    found, client = play(task, Scripted(clerk), "one", "two", "one")
    assert [r.variant_id for r in found] == ["one", "two", "one"]
    assert client.counts.calls == 3 + 2  # two turns with a tool are the same for both
    assert sum(r.usage.tokens_in for r in found[:2] if r.usage) == 50


def test_a_loop_of_tools_ends_and_broken_calls_are_told_to_the_model(tmp_path: Path) -> None:
    task = task_of(tmp_path, **{"outcome:": "ends: {steps: 3}\noutcome:"})
    model = Scripted(lambda messages: called("rules"))
    (response,), _ = play(task, model)
    assert len(model.seen) == 9
    assert task.read(response.output or "").status == "unparsed"
    broken = {"tool_calls": [{"function": {"name": "refund", "arguments": "{"}}, {"name": "fly"}]}

    def answer(messages: list[dict[str, Any]]) -> str:
        return "Well." if messages[-1]["role"] == "tool" else str(talk.written(broken))

    (response,), _ = play(task_of(tmp_path), Scripted(answer))
    assert said(response, "tool")[:2] == [NO_JSON, NO_TOOL]


WORDS = """
format: 1
name: talk
kind: decision
labels: [refund, decline]
turns:
  - user: "A ticket: {text}"
  - user: Is it ours to pay?
formats:
  plain: {instruction: Answer in one word., answer: "{label}"}
"""


def conversation(*parts: tuple[str, str | dict[str, Any]]) -> str:
    messages: list[talk.Message] = []
    for role, content in parts:
        if isinstance(content, dict):
            messages += talk.heard(str(talk.written(content)), len(messages))
        else:
            messages.append(talk.Message(role=role, content=content))  # type: ignore[arg-type]
    return talk.whole(messages)


SAID = conversation(("user", "A ticket"), ("assistant", "Decline"), ("user", "Is it ours?"), ("assistant", "Refund."))


def test_the_last_answer_or_that_of_a_turn(tmp_path: Path) -> None:
    last = task_of(tmp_path, WORDS)
    assert last.read(SAID).value == "refund"
    first = task_of(tmp_path, WORDS + "outcome: {read: turn, turn: 1}\n")
    assert first.read(SAID).value == "decline"
    ends = [[m.content.endswith("Answer in one word.") for m in t.render("x").messages or ()] for t in (first, last)]
    assert ends == [[True, False], [False, True]]
    assert last.read("Refund").value == "refund"  # as in the format, not in a conversation


COUNTED = """
format: 1
name: turns
kind: score
scale: {low: 1, high: 4}
turns:
  - user: "{text}"
  - user: Please.
  - user: I insist.
tools: [{name: give}]
ends: {tools: [give], says: [here you are]}
outcome: {read: turns}
formats:
  plain: {answer: "{label}"}
"""


@pytest.mark.parametrize(("turn", "by"), [(1, called("give")), (3, called("give")), (2, "HERE you are!"), (4, "")])
def test_how_many_turns_it_took(tmp_path: Path, turn: int, by: str) -> None:
    def answer(messages: list[dict[str, Any]]) -> str:
        return by if sum(m["role"] == "user" for m in messages) == turn else "No."

    task, model = task_of(tmp_path, COUNTED), Scripted(answer)
    (response,), _ = play(task, model)
    assert (task.read(response.output or "").value, len(model.seen)) == (turn, min(turn, 3))


STATE = """
format: 1
name: state
kind: score
scale: {low: 0, high: 100}
turns: [{user: "{text}"}]
tools:
  - name: pay
    sets: {paid: "{usd}"}
  - name: cancel
    sets: {paid: "0"}
state: {paid: "1"}
outcome: {read: state, key: paid}
formats:
  plain: {answer: "{label}"}
"""


def test_the_final_state_or_an_argument_of_the_last_call(tmp_path: Path) -> None:
    def paid(*usd: int) -> dict[str, Any]:
        calls = [{"name": "pay", "arguments": {"usd": one}} if one else {"name": "cancel"} for one in usd]
        return {"tool_calls": calls}

    argument = "argument, tool: pay, argument: usd"
    for outcome, says, expected in (
        ("state, key: paid", "No.", 1.0), ("state, key: paid", paid(30), 30.0), ("state, key: paid", paid(30, 0), 0.0),
        ("state, key: paid", paid(300), "unparsed"), (f"{argument}, otherwise: 0", paid(3, 7), 7.0),
        (f"{argument}, otherwise: 0", "No money.", 0.0), (argument, "No money.", "unparsed"),
        (argument, "I'm sorry, but I can't help with that.", "refused"),
    ):  # fmt: skip
        answer = task_of(tmp_path, STATE, **{"state, key: paid": outcome}).read(conversation(("assistant", says)))
        assert expected in (answer.value, answer.status), (outcome, says)


@pytest.mark.parametrize(
    ("text", "old", "new", "told"),
    [
        (WORDS, "{text}", "text", "is missing from all turns"), (COUNTED, "high: 4", "high: 3", "a scale from 1 to 4"),
        (WORDS, "turns:", "question: Which?\nturns:", "question: a conversation has turns"),
        (WORDS, "  - user: Is it ours to pay?", "  - assistant: Well.", "the last turn is a user's"),
        (WORDS, "user: Is it ours", "{user: a, system: b}\n  - user: Is it ours", "one of system, user and assistant"),
        (WORDS, "formats:", "outcome: {read: turn, turn: 3}\nformats:", "there is no turn 3"),
        (WORDS, "formats:", "outcome: {read: argument, tool: pay}\nformats:", "needs argument"),
        (WORDS, "formats:", "ends: {tools: [pay]}\nformats:", "there is no tool 'pay'"),
        (WORDS, "formats:", "outcome: {read: turns}\nformats:", "turns are counted on a scale"),
        (WORDS, WORDS[WORDS.index("turns:") : WORDS.index("formats:")], "question: Which?\ntools: [{name: pay}]\n",
         "tools: belongs to a conversation"),
        (SHOP, ", number: refund.percent", "", "a number with the label"),
    ],
)  # fmt: skip
def test_what_a_file_cannot_say(tmp_path: Path, text: str, old: str, new: str, told: str) -> None:
    with pytest.raises(DataFileError, match=told):
        task_of(tmp_path, text, **{old: new})


def test_models_that_cannot_talk_are_refused(tmp_path: Path) -> None:
    task_of(tmp_path)
    data = [{"text": f"A man bought a lamp, number {n}."} for n in range(8)]
    with pytest.raises(ConfigError, match="cannot hold the conversation"):
        audit(str(tmp_path / "shop.yaml"), model=lambda text: "refund", data=data)


def agent(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
    assert [t["function"]["name"] for t in tools] == ["refund", "decline", "rules"]
    if messages[-1]["content"] == "Decide now.":
        return {"content": "So.", "tool_calls": [{"name": "decline"}]}
    if messages[-1]["content"] == "What do the rules say?":  # it runs its own tools
        return [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "rules"}]},
            {"role": "tool", "content": "Own.", "tool_call_id": "a"},
            {"role": "assistant", "content": "They say no."},
        ]
    return "I see."


def test_a_python_agent(tmp_path: Path) -> None:
    task = task_of(tmp_path)
    model = models.wrap(agent)
    assert (model.style, model.calls_tools) == ("chat", True)
    (response,), client = play(task, model)
    assert task.read(response.output or "").value == "decline"
    assert said(response, "tool") == ["Own.", "ok"]
    assert client.counts.calls == 4


def _scripted_chat() -> Any:
    """A LangChain chat model that knows which tools it was bound to."""
    pytest.importorskip("langchain_core")
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Chat(BaseChatModel):
        names: tuple[str, ...] = ()

        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            names = [t["function"]["name"] if isinstance(t, dict) else t.name for t in tools]
            return self.model_copy(update={"names": tuple(names)})

        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            last = messages[-1]
            message = AIMessage(content="I see." if last.type == "human" else f"It said {last.content}")
            if last.content == "Decide now.":
                assert self.names == ("refund", "decline", "rules")
                call = {"name": "refund", "args": {"percent": 25}, "id": f"c{len(messages)}"}
                usage = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
                message = AIMessage(content="So.", tool_calls=[call], usage_metadata=usage)
            return ChatResult(generations=[ChatGeneration(message=message)])

    return Chat()


@pytest.mark.parametrize(("graph", "calls"), [(False, 4), (True, 3)], ids=["model", "agent"])
def test_a_langchain_model_is_bound_to_the_tools_and_an_agent_of_langgraph_runs_stubs(
    tmp_path: Path, graph: bool, calls: int
) -> None:
    task, chat = task_of(tmp_path), _scripted_chat()
    if graph:  # one call a turn: what it does within is its own
        chat = pytest.importorskip("langchain.agents").create_agent(chat, stub_tools(task))
    model = models.wrap(chat, name="one")
    assert model.calls_tools
    (response,), client = play(task, model)
    answer = task.read(response.output or "")
    assert (answer.value, answer.number, client.counts.calls) == ("refund", 25.0, calls)
    assert said(response)[-3:] == ["So.", "paid", "It said paid"]
    assert response.usage == Usage(tokens_in=7, tokens_out=2)
