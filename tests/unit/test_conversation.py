"""Tasks with turns and tools: how they are loaded, played, read, and what a conversation costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import auditor.models as models
from auditor.core import talk
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Response, Usage
from auditor.models.attempts import RetryPolicy
from auditor.models.budget import Budget
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

    def __init__(self, answer: Callable[[list[dict[str, Any]]], Any]) -> None:
        self.answer = answer
        self.seen: list[list[dict[str, Any]]] = []

    async def generate(self, batch: Any) -> list[Any]:
        return [self._one(request) for request in batch]

    def _one(self, request: Request) -> Any:
        messages = request.prompt.payload()["messages"]
        self.seen.append(messages)
        told = self.answer(messages)
        return told if isinstance(told, Exception) else Reply(told, usage=Usage(tokens_in=10, tokens_out=1))


def clerk(messages: list[dict[str, Any]]) -> str:
    last = messages[-1]
    if last["role"] == "tool":
        return f"It said {last['content']}"
    return {"What do the rules say?": called("rules"), "Decide now.": called("refund", percent=40)}.get(
        last["content"], "I see."
    )


def play(
    task: Task, model: Model, text: str = "A lamp broke.", replicates: int = 1, **layers: Any
) -> tuple[list[Response], Talks, list[Response]]:
    journal: list[Response] = []
    layers = {"cache": None, "budget": Budget()} | layers
    client = Talks(
        model, on_response=journal.append, retry=RetryPolicy(attempts=2, base_s=0.001, cap_s=0.002), **layers
    )
    requests = [Request(prompt=task.render(text), replicate=n, variant_id="c.o") for n in range(replicates)]
    return asyncio.run(client.ask(requests)), client, journal


def test_turns_are_said_one_by_one_and_tools_give_their_results(tmp_path: Path) -> None:
    task, model = task_of(tmp_path), Scripted(clerk)
    (response,), client, journal = play(task, model, "Customer: Ann\n\nA lamp broke.")
    messages = talk.messages_of(response.output or "")
    assert messages is not None
    assert [(m.role, m.content) for m in messages] == [
        ("system", "You answer for a shop."),
        ("system", "From the file: Customer: Ann"),
        ("user", "A ticket: A lamp broke."),
        ("assistant", "I see."),
        ("user", "What do the rules say?"),
        ("assistant", ""),
        ("tool", "Two weeks."),
        ("assistant", "It said Two weeks."),
        ("user", "Decide now."),
        ("assistant", ""),
        ("tool", "paid"),
        ("assistant", "It said paid"),
    ]
    assert journal == [response]
    assert client.counts.calls == len(model.seen) == 5 == task.calls + 1
    assert response.usage == Usage(tokens_in=50, tokens_out=5)
    answer = task.read(response.output or "", "chat", "tools")
    assert (answer.value, answer.number) == ("refund", 40.0)
    assert "→ refund({" in talk.shown(response.output or "")
    assert talk.brief(response.output or "").endswith('refund({"percent": 40})')


def test_equal_beginnings_are_asked_once(tmp_path: Path) -> None:
    task, model = (
        task_of(tmp_path, **{"A ticket: {text}": "A ticket.", "Decide now.": "Decide now, {text}"}),
        Scripted(clerk),
    )
    client = Talks(model, cache=None, budget=Budget())
    requests = [Request(prompt=task.render(t), replicate=0, variant_id=t) for t in ("one", "two", "one")]
    found = asyncio.run(client.ask(requests))
    assert [r.variant_id for r in found] == ["one", "two", "one"]
    assert client.counts.calls == 3 + 2  # two turns with a tool are the same for both
    assert sum(r.usage.tokens_in for r in found[:2] if r.usage) == 50


def test_a_loop_of_tools_ends_and_broken_calls_are_told_to_the_model(tmp_path: Path) -> None:
    task = task_of(tmp_path, **{"outcome:": "ends: {steps: 3}\noutcome:"})
    model = Scripted(lambda messages: called("rules"))
    (response,), *_ = play(task, model)
    assert len(model.seen) == 9
    assert task.read(response.output or "").status == "unparsed"
    broken = {"tool_calls": [{"function": {"name": "refund", "arguments": "{"}}, {"name": "fly"}]}

    def answer(messages: list[dict[str, Any]]) -> str:
        return "Well." if messages[-1]["role"] == "tool" else str(talk.written(broken))

    (response,), *_ = play(task_of(tmp_path), Scripted(answer))
    told = [m.content for m in talk.messages_of(response.output or "") or () if m.role == "tool"]
    assert told[:2] == [NO_JSON, NO_TOOL]


# -- where the outcome stands ------------------------------------------------------------------------------

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
        messages += (
            talk.heard(str(talk.written(content)), len(messages))
            if isinstance(content, dict)
            else [talk.Message(role=role, content=content)]  # type: ignore[arg-type]
        )
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


@pytest.mark.parametrize(
    ("gives", "by", "turns"), [(1, called("give"), 1), (3, called("give"), 3), (2, "HERE you are!", 2), (9, "", 4)]
)
def test_how_many_turns_it_took(tmp_path: Path, gives: int, by: str, turns: int) -> None:
    def answer(messages: list[dict[str, Any]]) -> str:
        return by if sum(m["role"] == "user" for m in messages) == gives else "No."

    task, model = task_of(tmp_path, COUNTED), Scripted(answer)
    (response,), *_ = play(task, model)
    assert task.read(response.output or "").value == turns
    assert len(model.seen) == min(gives, 3)


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
    task = task_of(tmp_path, STATE)
    calls = [{"name": "pay", "arguments": {"usd": 30}}]
    assert task.read(conversation(("user", "x"), ("assistant", "No."))).value == 1.0
    assert task.read(conversation(("assistant", {"tool_calls": calls}))).value == 30.0
    assert task.read(conversation(("assistant", {"tool_calls": [*calls, {"name": "cancel"}]}))).value == 0.0
    calls[0]["arguments"] = {"usd": 300}
    assert task.read(conversation(("assistant", {"tool_calls": calls}))).status == "unparsed"
    task = task_of(tmp_path, STATE, **{"state, key: paid": "argument, tool: pay, argument: usd, otherwise: 0"})
    calls = [{"name": "pay", "arguments": {"usd": n}} for n in (3, 7)]
    assert task.read(conversation(("assistant", {"tool_calls": calls}))).value == 7.0
    assert task.read(conversation(("assistant", "No money."))).value == 0.0
    strict = task_of(tmp_path, STATE, **{"state, key: paid": "argument, tool: pay, argument: usd"})
    assert strict.read(conversation(("assistant", "No money."))).status == "unparsed"
    assert strict.read(conversation(("assistant", "I'm sorry, but I can't help with that."))).status == "refused"


# -- files that make no sense ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "old", "new", "told"),
    [
        (WORDS, "{text}", "text", "is missing from all turns"),
        (WORDS, "turns:", "question: Which?\nturns:", "question: a conversation has turns"),
        (WORDS, "  - user: Is it ours to pay?", "  - assistant: Well.", "the last turn is a user's"),
        (WORDS, "user: Is it ours", "{user: a, system: b}\n  - user: Is it ours", "one of system, user and assistant"),
        (WORDS, "formats:", "outcome: {read: turn, turn: 3}\nformats:", "there is no turn 3"),
        (WORDS, "formats:", "outcome: {read: argument, tool: pay}\nformats:", "needs argument"),
        (WORDS, "formats:", "ends: {tools: [pay]}\nformats:", "there is no tool 'pay'"),
        (WORDS, "formats:", "outcome: {read: turns}\nformats:", "turns are counted on a scale"),
        (SHOP, ", number: refund.percent", "", "a number with the label"),
        (COUNTED, "high: 4", "high: 3", "a scale from 1 to 4"),
    ],
)
def test_what_a_file_cannot_say(tmp_path: Path, text: str, old: str, new: str, told: str) -> None:
    with pytest.raises(DataFileError, match=told):
        task_of(tmp_path, text, **{old: new})


def test_models_that_cannot_talk_are_refused_and_tools_need_turns(tmp_path: Path) -> None:
    from auditor import audit

    single = "format: 1\nname: x\nkind: decision\nlabels: [a, b]\nformats: {plain: {answer: '{label}'}}\n"
    with pytest.raises(DataFileError, match="tools: belongs to a conversation"):
        task_of(tmp_path, single + "question: Which?\ntools: [{name: pay}]\n")

    task_of(tmp_path)
    data = [{"text": f"A man bought a lamp, number {n}."} for n in range(8)]
    with pytest.raises(ConfigError, match="cannot hold the conversation"):
        audit(str(tmp_path / "shop.yaml"), model=lambda text: "refund", data=data)


# -- adapters ---------------------------------------------------------------------------------------------------


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
    (response,), client, _ = play(task, model)
    assert task.read(response.output or "").value == "decline"
    told = [m.content for m in talk.messages_of(response.output or "") or () if m.role == "tool"]
    assert told == ["Own.", "ok"]
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


def test_a_langchain_model_is_bound_to_the_tools(tmp_path: Path) -> None:
    task, model = task_of(tmp_path), models.wrap(_scripted_chat())
    assert model.calls_tools
    (response,), client, _ = play(task, model)
    answer = task.read(response.output or "")
    assert (answer.value, answer.number) == ("refund", 25.0)
    assert client.counts.calls == 4
    said = talk.messages_of(response.output or "") or []
    assert [m.content for m in said[-3:]] == ["So.", "paid", "It said paid"]


def test_an_agent_of_langgraph_runs_stubs(tmp_path: Path) -> None:
    from auditor.models.langchain import stub_tools

    chat = _scripted_chat()
    agents = pytest.importorskip("langchain.agents")
    task = task_of(tmp_path)
    tools = stub_tools(task)
    graph = agents.create_agent(chat, tools)
    (response,), client, _ = play(task, models.wrap(graph, name="agent"))
    answer = task.read(response.output or "")
    assert (answer.value, answer.number) == ("refund", 25.0)
    assert client.counts.calls == 3  # one a turn: what it does within is its own
    said = talk.messages_of(response.output or "") or []
    assert [m.content for m in said[-3:]] == ["So.", "paid", "It said paid"]
    assert response.usage == Usage(tokens_in=7, tokens_out=2)
