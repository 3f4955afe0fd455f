"""Messages, tools and whole conversations as values, and the JSON that they are written in.

An answer of a model that calls tools is a JSON object with ``tool_calls`` (as the OpenAI protocol has them), and with
``content`` beside; an agent that ran tools itself gives ``messages``. A conversation that is over is a JSON object
whose only key is ``conversation``: all its messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from auditor.core.reading import from_json

Role = Literal["system", "user", "assistant", "tool"]
_WHOLE = '{"conversation":'


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One chat message."""

    role: Role
    content: str

    def plain(self) -> dict[str, object]:
        """As chat servers take it."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call of a tool; ``arguments`` is the JSON that the model wrote."""

    id: str
    name: str
    arguments: str

    def values(self) -> dict[str, object] | None:
        """The arguments by name; None where they are no JSON object."""
        return _object(self.arguments or "{}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Said(Message):
    """A message of a conversation under way: with the ``calls`` of tools, or what one of them ``answers`` (its id)."""

    calls: tuple[Call, ...] = ()
    answers: str = ""

    def plain(self) -> dict[str, object]:
        """As chat servers take it."""
        made: dict[str, object] = {"role": self.role, "content": self.content}
        if self.calls:
            made["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self.calls
            ]
        return made | ({"tool_call_id": self.answers} if self.answers else {})


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A tool that a model may call. It never acts: it answers ``results`` one after the other, then the last again.

    ``sets`` says what a call makes of the state of a conversation; ``{NAME}`` alone stands for an argument.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    results: tuple[str, ...] = ("ok",)
    sets: Mapping[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, object]:
        """As chat servers take it."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True, kw_only=True, slots=True)
class Talk:
    """How the messages of a prompt are played: one after the other, the model speaks after each of a user.

    ``steps`` questions to the model within one turn, at most: each round of tool calls asks it again. The call of a
    tool in ``ends``, or words of the model in ``says``, whatever their case, end the conversation.
    """

    steps: int = 5
    ends: tuple[str, ...] = ()
    says: tuple[str, ...] = ()

    def over(self, said: Message) -> bool:
        """Whether a message of the model ends the conversation."""
        low = said.content.casefold()
        calls = said.calls if isinstance(said, Said) else ()
        return any(c.name in self.ends for c in calls) or any(w.casefold() in low for w in self.says)


def written(answer: object) -> str | None:
    """An answer with tool calls, or the messages of an agent, as JSON; None where ``answer`` is neither.

    Calls may be as in the OpenAI protocol, or flat: ``{"name": …, "arguments": {…}}``.

    Examples
    --------
    >>> written({"tool_calls": [{"name": "pay", "arguments": {"usd": 3}}]})
    '{"content": "", "tool_calls": [{"name": "pay", "arguments": {"usd": 3}}]}'
    """
    if isinstance(answer, Mapping) and isinstance(answer.get("messages"), Sequence):
        answer = answer["messages"]
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        if not answer or not all(isinstance(m, Mapping) and "role" in m for m in answer):
            return None
        return json.dumps({"messages": [dict(m) for m in answer]}, ensure_ascii=False)
    if not isinstance(answer, Mapping) or not ("tool_calls" in answer or "role" in answer):
        return None
    if not answer.get("tool_calls"):
        return str(answer.get("content") or "")
    calls = {"content": answer.get("content") or "", "tool_calls": list(answer["tool_calls"])}
    return json.dumps(calls, ensure_ascii=False)


def heard(text: str, turn: int = 0) -> list[Message]:
    """The messages in an answer of a model; ``turn`` keeps the ids of calls apart that have none.

    Examples
    --------
    >>> [m.content for m in heard("Good morning.")]
    ['Good morning.']
    """
    answer = (_object(text) if text.startswith('{"') else None) or {}
    if isinstance(messages := answer.get("messages"), list):
        return [_message(m, turn + n) for n, m in enumerate(messages) if isinstance(m, dict)]
    if isinstance(answer.get("tool_calls"), list):
        return [_message({**answer, "role": "assistant"}, turn)]
    return [Message(role="assistant", content=text)]


def whole(messages: Sequence[Message]) -> str:
    """A conversation that is over, as JSON."""
    return f"{_WHOLE} {json.dumps([m.plain() for m in messages], ensure_ascii=False)}}}"


def messages_of(output: str) -> list[Message] | None:
    """The messages of a conversation that `whole` wrote; None for any other text."""
    answer = _object(output) if output.startswith(_WHOLE) else None
    if answer is None or not isinstance(messages := answer["conversation"], list):
        return None
    return [_message(m, n) for n, m in enumerate(messages) if isinstance(m, dict)]


def calls_of(messages: Sequence[Message]) -> list[Call]:
    """All calls of tools, in order."""
    return [call for m in messages if isinstance(m, Said) for call in m.calls]


def brief(output: str) -> str:
    """A conversation in one line: the calls of tools in it, or what was said last; other texts as they are."""
    messages = messages_of(output)
    if messages is None:
        return output
    calls = [f"{c.name}({c.arguments})" for c in calls_of(messages)]
    return "; ".join(calls) or next((m.content for m in reversed(messages) if m.role == "assistant"), "")


def shown(output: str) -> str:
    """A conversation for readers, a paragraph a message; other texts as they are."""
    messages = messages_of(output)
    if messages is None:
        return output
    calls = ["".join(f"\n→ {c.name}({c.arguments})" for c in calls_of([m])) for m in messages]
    return "\n\n".join(f"{m.role}: {m.content}{made}" for m, made in zip(messages, calls, strict=True))


def _object(text: str) -> dict[str, object] | None:
    try:
        value = from_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _message(raw: Mapping[str, object], turn: int) -> Message:
    role = raw.get("role")
    known: Role = role if role in ("system", "user", "assistant", "tool") else "assistant"
    content = raw.get("content")
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content)
    made = raw.get("tool_calls")
    calls = [_call(c, f"call-{turn}-{n}") for n, c in enumerate(made if isinstance(made, list) else ())]
    answers = raw.get("tool_call_id")
    if not calls and not answers:
        return Message(role=known, content=text)
    return Said(role=known, content=text, calls=tuple(calls), answers=answers if isinstance(answers, str) else "")


def _call(raw: object, otherwise: str) -> Call:
    outer = raw if isinstance(raw, Mapping) else {}
    inner = outer.get("function")
    call = inner if isinstance(inner, Mapping) else outer
    arguments = call.get("arguments", call.get("args"))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return Call(id=str(outer.get("id") or otherwise), name=str(call.get("name") or ""), arguments=text)
