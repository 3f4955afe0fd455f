"""The task file, format 1, as pydantic models: only the edge of the program imports this module.

`prompts/README.md` describes every field for people.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from auditor.core.errors import UserError
from auditor.tasks import kinds
from auditor.tasks.answers import FORMER, PARSER, normalise

FORMAT = 1
TALK = frozenset({"turns", "tools", "outcome", "ends", "state"})  # fields of a conversation alone
NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
Name = Annotated[StrictStr, Field(pattern=NAME)]
Text = Annotated[StrictStr, Field(min_length=1)]
Number = StrictInt | StrictFloat


class Part(BaseModel):
    """Base of the parts of a task file: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class LabelPart(Part):
    """One label, verbatim as in the data set, and the other names it goes by."""

    name: Text
    aliases: tuple[Text, ...] = ()


class InputPart(Part):
    """How the text stands in the prompt: between ``<tag>`` and ``</tag>``, or as it is (null)."""

    tag: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] | None = "text"


class TruncationPart(Part):
    """How much of a text is kept, from its start, up to a word boundary; both given: the shorter."""

    characters: Annotated[StrictInt, Field(ge=1)] | None = None
    words: Annotated[StrictInt, Field(ge=1)] | None = None


class AnswerPart(Part):
    """Where the answer stands in an output: JSON keys, and words that start the decisive line."""

    keys: tuple[Text, ...] = ()
    markers: tuple[Text, ...] = ()
    none: tuple[Text, ...] = ("none",)


class ScalePart(Part):
    """The lowest and the highest score, what they count, and which difference is no difference."""

    low: Number
    high: Number
    unit: StrictStr = ""
    tolerance: Annotated[Number, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low < self.high:
            raise ValueError("low must be below high")
        return self


class Format(Part):
    """One way to ask.

    ``answer`` is the form of an answer, with ``{label}`` (verbatim), ``{json}`` (as JSON) and ``{reason}``;
    worked examples are written with it. ``max_tokens`` bounds the output. The answer in a ``graded`` format is a number
    from 0 to 100, for how much speaks for the favourable label, or with ``{score}`` such a number beside the label; it
    is asked without worked examples, whose figures would be an anchor.
    """

    instruction: StrictStr = ""
    answer: Text = "{label}"
    max_tokens: Annotated[StrictInt, Field(ge=1, le=100_000)] = 16
    graded: StrictBool = False

    @property
    def scored(self) -> bool:
        """Whether an answer holds a number beside its label."""
        return "{score}" in self.answer

    @model_validator(mode="after")
    def _number_is_graded(self) -> Self:
        if self.scored and not self.graded:
            raise ValueError("an answer with {score} is graded: add `graded: true`")
        return self

    @field_validator("answer")
    @classmethod
    def _has_label(cls, value: str) -> str:
        if "{label}" not in value and "{json}" not in value:
            raise ValueError("must hold {label} or {json}, where the answer goes")
        return value


class ExamplePart(Part):
    """One worked example. ``label`` is a label, a list of labels, a number or a text, by kind."""

    text: Text
    label: StrictStr | Number | tuple[StrictStr, ...]
    reason: StrictStr = ""


class TurnPart(Part):
    """One message of a conversation, of one of three roles."""

    system: Text | None = None
    user: Text | None = None
    assistant: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.message) != 1:
            raise ValueError("a turn is one of system, user and assistant")
        return self

    @property
    def message(self) -> dict[str, str]:
        """The text by its role."""
        return self.model_dump(exclude_none=True)


class ToolPart(Part):
    """A tool that may be called and never acts: what it takes, what it answers, and what it makes of the state."""

    name: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: StrictStr = ""
    parameters: dict[StrictStr, object] = {"type": "object", "properties": {}}
    result: Text | Annotated[tuple[Text, ...], Field(min_length=1)] = "ok"
    sets: dict[StrictStr, StrictStr] = {}


class Outcome(Part):
    """Where the answer of a conversation stands.

    ``read``: "last" and "turn": in what the model said last, or last in the turn of the ``turn``-th message of a user;
    "turns": how many turns it took; "tool": which tool was called last, of those that labels name; "argument": in that
    of the last call of ``tool``; "state": in the final state, under ``key``. ``otherwise`` is the answer where nothing
    of this was called or set. ``number`` is "tool.argument" of a number from 0 to 100 beside the label, 0 where it was
    not called.
    """

    read: Literal["last", "turn", "turns", "tool", "argument", "state"] = "last"
    turn: Annotated[StrictInt, Field(ge=1)] | None = None
    tool: StrictStr = ""
    argument: StrictStr = ""
    key: StrictStr = ""
    otherwise: StrictStr | Number | None = None
    number: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_-]+\.\w+$")] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needs = {"turn": ("turn",), "argument": ("tool", "argument"), "state": ("key",)}.get(self.read, ())
        for name in ("turn", "tool", "argument", "key"):
            if (name in needs) != bool(getattr(self, name)):
                raise ValueError(f"read: {self.read} {'needs' if name in needs else 'has no'} {name}")
        return self


class TalkPart(Part):
    """What ends a conversation, and how often a model is asked within one turn."""

    tools: tuple[Text, ...] = ()
    says: tuple[Text, ...] = ()
    steps: Annotated[StrictInt, Field(ge=1, le=50)] = 5


class ControlPair(Part):
    """Two texts that need different answers."""

    text: Text
    changed: Text

    @field_validator("text", "changed")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is blank")
        return value

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.text == self.changed:
            raise ValueError("both texts are equal, so no answer can tell them apart")
        return self


class Against(BaseModel):
    """A text that others are judged against; ``labels`` by the id of the other, ``label`` for all not named there."""

    id: StrictStr
    text: Text
    label: StrictStr | None = None
    labels: dict[str, StrictStr] = {}


class TaskFile(Part):
    """A whole task file."""

    format: StrictInt
    name: Name
    kind: StrictStr
    description: StrictStr = ""
    labels: tuple[LabelPart, ...] = ()
    favourable: StrictStr | None = None
    scale: ScalePart | None = None
    system: StrictStr = ""
    question: StrictStr = ""
    turns: tuple[TurnPart, ...] = ()
    tools: tuple[ToolPart, ...] = ()
    outcome: Outcome = Outcome()
    ends: TalkPart = TalkPart()
    state: dict[StrictStr, StrictStr] = {}
    input: InputPart = InputPart()
    truncation: TruncationPart | None = None
    examples: tuple[ExamplePart, ...] = ()
    answer: AnswerPart = AnswerPart()
    parser: StrictStr = PARSER
    formats: Annotated[dict[Name, Format], Field(min_length=1)]
    default_format: StrictStr | None = None
    temperature: Annotated[Number, Field(ge=0, le=2)] = 0
    subject: StrictStr = ""
    seeds: StrictStr | None = None
    against: Text | None = None
    irrelevant: dict[Name, tuple[Annotated[tuple[Text, ...], Field(min_length=2)], ...]] = {}
    controls: Text | None = None

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: int) -> int:
        if value != FORMAT:
            raise ValueError(f"this version reads format {FORMAT}, the file says {value}")
        return value

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, value: str) -> str:
        try:
            return kinds.of(value).name
        except UserError:
            raise ValueError(f"{value!r} is not one of {', '.join(kinds.KINDS.names())}") from None

    @field_validator("labels", mode="before")
    @classmethod
    def _plain_labels(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        return [item if isinstance(item, dict) else {"name": item} for item in value]

    @field_validator("parser")
    @classmethod
    def _known_parser(cls, value: str) -> str:
        if value not in (PARSER, *FORMER):
            raise ValueError(f"the only parser is {PARSER}")
        return PARSER

    @field_validator("question")
    @classmethod
    def _one_input(cls, value: str) -> str:
        if value.count("{input}") > 1:
            raise ValueError("{input} may be there only once")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [label.name for label in self.labels]
        kind = kinds.of(self.kind)
        if kind.labelled and len(names) < 2:
            raise ValueError(f"labels: a task of kind {kind} needs at least two labels")
        if not kind.labelled and names:
            raise ValueError(f"labels: a task of kind {kind} has none")
        if kind.number != (self.scale is not None):
            raise ValueError("scale: {low, high} goes with answers that are numbers (kind score), and with no others")
        if self.favourable is not None and self.favourable not in names:
            raise ValueError(f"favourable: {self.favourable!r} is not one of the labels ({', '.join(names)})")
        if self.default_format is not None and self.default_format not in self.formats:
            raise ValueError(f"default_format: {self.default_format!r} is not one of {', '.join(self.formats)}")
        alone = any(form.graded and not form.scored for form in self.formats.values())
        if alone and (len(names) != 2 or self.favourable is None):
            raise ValueError("formats: graded answers need two labels, one of them favourable")
        self._check_names()
        self._check_turns()
        return self

    def _check_turns(self) -> None:
        if not self.turns:
            if not self.question:
                raise ValueError("question: this field is missing")
            if extra := sorted(TALK & self.model_fields_set):
                raise ValueError(f"{extra[0]}: belongs to a conversation, and there are no turns")
            return
        for name in ("question", "examples", "input"):
            if name in self.model_fields_set:
                raise ValueError(f"{name}: a conversation has turns instead")
        users = sum("user" in turn.message for turn in self.turns)
        texts = [self.system, *(text for turn in self.turns for text in turn.message.values())]
        if not users or "user" not in self.turns[-1].message:
            raise ValueError("turns: the last turn is a user's")
        if not any("{text}" in text for text in texts):
            raise ValueError("turns: {text} is missing from all turns and from system")
        self._check_outcome(users)

    def _check_outcome(self, users: int) -> None:
        outcome, tools = self.outcome, {tool.name for tool in self.tools}
        if outcome.turn is not None and outcome.turn > users:
            raise ValueError(f"outcome: there is no turn {outcome.turn} of a user")
        named = {outcome.tool, (outcome.number or "").partition(".")[0], *self.ends.tools} - {""}
        if unknown := sorted(named - tools):
            raise ValueError(f"outcome: there is no tool {unknown[0]!r}")
        if outcome.read == "turns" and (self.scale is None or not self.scale.low <= 1 <= users < self.scale.high):
            raise ValueError(f"outcome: turns are counted on a scale from 1 to {users + 1} or more (kind score)")
        if outcome.read == "tool" and not self.labels:
            raise ValueError("outcome: read: tool needs labels that name tools")
        if (outcome.number is not None) != any(f.scored for f in self.formats.values()):
            raise ValueError("outcome: a number with the label needs formats whose answer has {score}")

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        if len({label.name for label in self.labels}) != len(self.labels):
            raise ValueError("labels: a label is listed twice")
        for label in self.labels:
            for name in (label.name, *label.aliases):
                plain = normalise(name)
                if not plain:
                    raise ValueError(f"labels: {name!r} of {label.name!r} holds no letter, digit or sign")
                other = seen.setdefault(plain, label.name)
                if other != label.name:
                    raise ValueError(
                        f"labels: {name!r} names both {other!r} and {label.name!r}; "
                        "labels compare without regard to case"
                    )
