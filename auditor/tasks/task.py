"""`Task`: from a text to a prompt or a conversation, from an output to an answer."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.talk import Call, Message, Talk, Tool, calls_of, messages_of
from auditor.core.types import Answer, Prompt, SourceText
from auditor.tasks.answers import Reader, Style, Unclear, Value, normalise
from auditor.tasks.kinds import Kind, NumberReader

if TYPE_CHECKING:
    from auditor.tasks.schema import ExamplePart, Format, Outcome

GRADES = (0.0, 100.0)  # of a graded answer
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    r"""What a model is asked, and how its answers are read. Made by `auditor.tasks.load`.

    Examples
    --------
    >>> from auditor.tasks import load
    >>> task = load("sentiment")
    >>> task.read("The pacing drags, the ending shines.\nAnswer: Positive", "chat").value
    'positive'
    >>> task.read("not positive", "chat").status
    'unparsed'
    """

    name: str
    kind: Kind
    description: str
    labels: tuple[str, ...]  # verbatim, in the file's order; empty for scores and free text
    favourable: str | None  # the label that is good for the person concerned
    system: str
    question: str
    tag: str | None
    examples: tuple[ExamplePart, ...]
    formats: Mapping[str, Format]
    default_format: str
    scale: tuple[float, float] | None  # lowest and highest score
    keep_characters: int | None
    keep_words: int | None
    temperature: float
    sha256: str  # of everything in the task file that shapes prompts and reading
    source: str  # where the task came from, for reports
    seeds_path: Path | None = field(default=None, compare=False)
    unit: str = ""  # of scores, as in ``USD/year``
    tolerance: float | None = None  # largest difference of two scores that counts as none; None: that of repeats
    subject: str = ""  # what the person is called whom a text is about and who is judged ("the applicant")
    # Pairs of texts that need different answers, for the positive control.
    controls: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    # Texts that each given text is judged against (posts, for résumés); see `auditor.tasks.seeds.crossed`.
    against_path: Path | None = field(default=None, compare=False)
    # What may be written for each other without a bearing on the answer; see `auditor.perturb.placebo`.
    irrelevant: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict, compare=False)
    language: str = "en"  # or the code or path of a language file (`auditor.text.languages`)
    turns: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    reader: Reader = field(compare=False, repr=False)

    @property
    def names(self) -> Mapping[str, str]:
        """Every name of a label, in normal form, and the label it stands for."""
        return self.reader.names

    @property
    def calls(self) -> int:
        """How often a model is asked for one answer, at least."""
        return 1

    def max_tokens(self, format: str) -> int:
        """Return the longest output, in tokens, that ``format`` asks for."""
        return self._format(format).max_tokens

    def kept(self, text: str) -> int:
        """Count the characters, from the start of ``text``, that stay after truncation.

        The cut falls between words; white space in front of it goes too. A single word longer than the limit is cut
        inside.
        """
        limit = len(text)
        if self.keep_characters is not None:
            limit = min(limit, self.keep_characters)
        if self.keep_words is not None:
            for count, word in enumerate(_WORD.finditer(text), start=1):
                if count == self.keep_words:
                    limit = min(limit, word.end())
                    break
        if limit == len(text):
            return limit
        cut = limit
        while cut and not text[cut].isspace() and not text[cut - 1].isspace():
            cut -= 1
        while cut and text[cut - 1].isspace():
            cut -= 1
        return cut or limit

    def about(self, original: object) -> None:
        """Take note that the texts which are asked next are versions of ``original``."""

    def bare(self, text: str) -> Prompt:
        """Return the input as classifiers get it: the kept part of ``text`` and nothing else."""
        return Prompt(format="bare", text=text[: self.kept(text)])

    def render(self, text: str, format: str | None = None) -> Prompt:
        """Return the messages for one text: system, worked examples, question; ``format`` None means the default.

        The kept part of ``text`` stands in the last message byte for byte, between tags whose name does not
        occur in it, so that a text cannot close its own frame. Raises `UnknownPlugin` where there is no such format.
        """
        name = self.default_format if format is None else format
        form = self._format(name)
        messages = [Message(role="system", content=self.system)] if self.system else []
        for example in () if form.graded else self.examples:
            answer = self.write(self.kind.value(example.label), name, example.reason.strip())
            messages.append(Message(role="user", content=self._ask(example.text.strip(), form)))
            messages.append(Message(role="assistant", content=answer))
        messages.append(Message(role="user", content=self._ask(text[: self.kept(text)], form)))
        return Prompt(format=name, messages=tuple(messages))

    @property
    def number_asked(self) -> str:
        """What a number is that answers the task, in words, with its range and unit."""
        if self.scale is None:
            return "a number"
        unit = f" ({self.unit})" if self.unit else ""
        return f"a number from {self.scale[0]:g} to {self.scale[1]:g}{unit}"

    def write(self, value: Value, format: str, reason: str = "", number: float | None = None) -> str:
        """Write ``value`` in the form that ``format`` asks for, with ``number`` where it wants one beside a label."""
        plain = ", ".join(value) or "none" if isinstance(value, tuple) else _plain(value)
        form = self._format(format)
        grade = _plain(GRADES[value == self.favourable] if number is None else number)
        if form.graded and not form.scored and isinstance(value, str):
            value, plain = float(grade), grade
        data = list(value) if isinstance(value, tuple) else value
        parts = {"{label}": plain, "{json}": json.dumps(data, ensure_ascii=False), "{reason}": reason, "{score}": grade}
        # One pass: what is filled in may itself hold a placeholder.
        return re.sub(r"\{(?:label|json|reason|score)\}", lambda match: parts[match.group()], form.answer).strip()

    def read(self, output: str, style: Style = "chat", format: str | None = None) -> Answer:
        """Say what ``output`` means; never raises on a string. See `auditor.tasks.answers`.

        ``style`` is how the model is asked: "chat" for generators, "text" for classifiers. In ``format``, a graded
        answer is the favourable label from 50 on; one with a label and a score is read if both can be.
        """
        if style == "text" or not self.graded(format):
            return self.reader.read(output, style)
        if self._format(str(format)).scored:
            grade = NumberReader(keys=("score",), markers=("score",), scale=GRADES).read(output)
            named = self.reader.read(output)
            if named.status != "ok":
                return named
            if not isinstance(grade.value, float):
                return Answer(status="unparsed", reason=f"the score: {grade.reason}")
            return dataclasses.replace(named, number=grade.value)
        grade = NumberReader(keys=self.reader.keys, markers=self.reader.markers, scale=GRADES).read(output)
        if not isinstance(grade.value, float):
            return grade
        (other,) = (label for label in self.labels if label != self.favourable)
        label = self.favourable if grade.value >= sum(GRADES) / 2 else other
        return Answer(status="ok", value=label, number=grade.value)

    def graded(self, format: str | None) -> bool:
        """Whether ``format`` asks for a number beside the labels."""
        return format in self.formats and self.formats[str(format)].graded

    def outcomes(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        """Return the labels that are compared: the favourable one, one of two, or the twelve that came most often."""
        if self.favourable is not None:
            return (self.favourable,)
        if 0 < len(self.labels) <= 2 and not self.kind.several:
            return ("positive",) if "positive" in self.labels else self.labels[:1]
        ranked = sorted(self.labels, key=lambda label: (-counts.get(label, 0), label))
        return tuple(sorted(label for label in ranked[:12] if counts.get(label)))

    @property
    def score_of(self) -> str | None:
        """The label whose log odds tell answers apart: one of two."""
        labels = self.outcomes({})
        return labels[0] if len(labels) == 1 else None

    def seeds(self) -> list[SourceText]:
        """Read the texts that come with the task; `ConfigError` where it brings none."""
        from auditor.tasks.seeds import crossed, read

        if self.seeds_path is None:
            raise ConfigError(
                f"the task {self.name!r} brings no texts of its own; name a file of texts with --data FILE"
            )
        return crossed(read(self.seeds_path), self.against_path)

    def _format(self, name: str) -> Format:
        if name not in self.formats:
            raise UnknownPlugin("format", name, self.formats, f"The task {self.name!r} has these formats.")
        return self.formats[name]

    def _ask(self, text: str, form: Format) -> str:
        head, tail = self._frame(_free_tag(self.tag, text), form)
        return head + text + tail

    def _frame(self, tag: str | None, form: Format) -> tuple[str, str]:
        """Return what stands before and behind the text in a user message."""
        question = self.question if "{input}" in self.question else self.question.rstrip() + "\n\n{input}"
        before, _, after = question.partition("{input}")
        if form.instruction:
            after = after.rstrip() + "\n\n" + form.instruction
        opening, closing = (f"<{tag}>\n", f"\n</{tag}>") if tag else ("", "")
        label = tag or "text"
        return before.replace("{tag}", label) + opening, closing + after.rstrip().replace("{tag}", label)


def _free_tag(tag: str | None, text: str) -> str | None:
    """Return ``tag``, numbered until no tag of that name, however spaced or spelled, stands in ``text``."""
    if tag is None or (text.isascii() and ">" not in text):
        return tag
    squeezed = "".join(normalise(text).split())
    names = itertools.chain([tag], (f"{tag}-{n}" for n in itertools.count(2)))
    return next(name for name in names if f"{name}>" not in squeezed)


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"


# -- tasks that are asked in a conversation: turns, tools, and where the outcome stands --------------------------------


_PLACE = re.compile(r"\{(text|profile)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation(Task):
    """A task with turns: what is said, in order; the model speaks after each message of a user that no answer follows.

    ``talk`` says when it ends, ``outcome`` where the answer stands, ``state`` what the state is before anything was
    called. A text stands where ``{text}`` stands in a turn. Where there is ``{profile}`` too, that is what comes before
    the last blank line of the text (a line that names a person, for one), and ``{text}`` the rest.
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
        messages = messages_of(output)
        if messages is None:
            return Task.read(self, output, style, format)
        wanted = self.outcome
        calls = calls_of(messages)
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
