"""Tasks that are asked in a conversation: turns, tools, and where the outcome stands.

A text of such a task stands where ``{text}`` stands in a turn. Where there is ``{profile}`` too, that is what comes
before the last blank line of the text (a line that names a person, for one), and ``{text}`` the rest.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from auditor.core import talk
from auditor.core.talk import Call, Message, Talk
from auditor.core.types import Answer, Prompt
from auditor.tasks.answers import Style, Unclear, normalise
from auditor.tasks.kinds import NumberReader
from auditor.tasks.task import GRADES, Task

if TYPE_CHECKING:
    from auditor.tasks.schema import Outcome

_PLACE = re.compile(r"\{(text|profile)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation(Task):
    """A task with turns: what is said, in order; the model speaks after each message of a user that no answer follows.

    ``talk`` says when it ends, ``outcome`` where the answer stands, ``state`` what the state is before anything was
    called.
    """

    talk: Talk = field(default_factory=Talk)
    outcome: Outcome
    state: tuple[tuple[str, str], ...] = ()

    def render(self, text: str, format: str | None = None) -> Prompt:
        """The turns with ``text`` in its places; the instruction of the format ends the turn that is read."""
        name = self.default_format if format is None else format
        form = self._format(name)
        messages = tuple(self._filled(text[: self.kept(text)], form.instruction))
        return Prompt(format=name, messages=messages, tools=self.tools, talk=self.talk)

    def _filled(self, text: str, instruction: str) -> Iterator[Message]:
        profile, body = "", text
        turns = (Message(role="system", content=self.system), *self.turns) if self.system else self.turns
        if any("{profile}" in turn.content for turn in turns):
            profile, _, body = text.rpartition("\n\n")
        places = {"text": body, "profile": profile}
        users = [n for n, turn in enumerate(turns) if turn.role == "user"]
        last = users[(self.outcome.turn or 0) - 1]
        for n, turn in enumerate(turns):
            if turn.role == "system" and not profile and "{profile}" in turn.content:
                continue
            content = _PLACE.sub(lambda match: places[match.group(1)], turn.content)
            if n == last and instruction:
                content = f"{content}\n\n{instruction}"
            yield dataclasses.replace(turn, content=content)

    def read(self, output: str, style: Style = "chat", format: str | None = None) -> Answer:
        """What a conversation came to; an answer that is written as in a format is read as such."""
        messages = talk.messages_of(output)
        if messages is None:
            return Task.read(self, output, style, format)
        wanted = self.outcome
        calls = talk.calls_of(messages)
        if wanted.read in ("last", "turn"):
            asked = None if wanted.number else format
            return self._numbered(Task.read(self, _said(messages, wanted.turn or 0), "chat", asked), calls)
        if wanted.read == "turns":
            return Answer(status="ok", value=float(self._length(messages)))
        outcome: object = None
        if wanted.read == "tool":
            outcome = next((c.name for c in reversed(calls) if normalise(c.name) in self.names), None)
        elif wanted.read == "argument":
            outcome = _argument(calls, wanted.tool, wanted.argument)
        else:
            outcome = self._state(calls).get(wanted.key)
        outcome = wanted.otherwise if outcome is None else outcome
        if outcome is None:
            plain = Task.read(self, _said(messages, 0), "chat", None)
            refused = plain.status == "refused"
            return plain if refused else Answer(status="unparsed", reason=f"no {wanted.read} to read")
        try:
            return self._numbered(Answer(status="ok", value=self.reader.value(outcome)), calls)
        except Unclear as error:
            return Answer(status="unparsed", reason=str(error))

    @property
    def calls(self) -> int:
        """Questions to the model in one conversation: one a turn, and one more where tools are called and go on."""
        following = (*self.turns[1:], None)
        turns = sum(
            turn.role == "user" and (after is None or after.role != "assistant")
            for turn, after in zip(self.turns, following, strict=True)
        )
        return turns + any(tool.name not in self.talk.ends for tool in self.tools)

    def _numbered(self, answer: Answer, calls: Sequence[Call]) -> Answer:
        """``answer`` with the number beside its label."""
        if self.outcome.number is None or answer.status != "ok":
            return answer
        value = _argument(calls, *self.outcome.number.split("."))
        try:
            number = 0.0 if value is None else NumberReader(scale=GRADES).value(value)
        except Unclear as error:
            return Answer(status="unparsed", reason=f"{self.outcome.number}: {error}")
        return dataclasses.replace(answer, number=number)

    def _length(self, messages: Sequence[Message]) -> int:
        """How many turns it took; one more than there are where nothing ended it."""
        ended = any(self.talk.over(m) for m in messages if m.role == "assistant")
        return sum(m.role == "user" for m in messages) + (not ended)

    def _state(self, calls: Sequence[Call]) -> dict[str, object]:
        tools = {tool.name: tool for tool in self.tools}
        state: dict[str, object] = dict(self.state)
        for call in calls:
            values = call.values()
            if call.name in tools and values is not None:
                for key, value in tools[call.name].sets.items():
                    whole = re.fullmatch(r"\{(\w+)\}", value)
                    state[key] = values.get(whole[1]) if whole else value
        return state


def _argument(calls: Sequence[Call], tool: str, name: str) -> object:
    """An argument of the last call of ``tool`` that has it."""
    values = [(c.values() or {}).get(name) for c in calls if c.name == tool]
    return next((value for value in reversed(values) if value is not None), None)


def _said(messages: Sequence[Message], turn: int) -> str:
    """What the model said last, or last in one turn."""
    users, said = 0, ""
    for message in messages:
        users += message.role == "user"
        if message.role == "assistant" and message.content and turn in (0, users):
            said = message.content
    return said
