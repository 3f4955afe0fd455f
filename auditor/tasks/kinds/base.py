"""What a kind of task is: how answers are read, compared and spoken of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from auditor.tasks.answers import Reader, Value

Form = tuple[str, str, str, int]  # name, instruction, answer, max_tokens


def two_forms(plain: str, key: str = "label", asked: str = "the word", tokens: int = 16) -> tuple[Form, ...]:
    """A plain format and one in JSON, for a new task file."""
    instruction = f'Answer with a JSON object and nothing else: its key is "{key}", its value {asked}.'
    return ("plain", plain, "{label}", tokens), ("json", instruction, f'{{"{key}": {{json}}}}', 64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sketch:
    """What `auditor.tasks.template` writes for one kind: an example that loads as it is."""

    labels: str = ""  # YAML of labels or scale
    question: str
    forms: tuple[Form, ...]
    example: tuple[str, str] | None = None
    tag: str = "message"
    system: str = "You work through messages that customers send to a shop."
    grammar: bool = False  # its texts come from a grammar that has the name of the kind


class Kind:
    """Base of the kinds of tasks; the defaults are those of one label per answer.

    A kind is one class, offered as an entry point of the group ``auditor.kinds``; task files choose it by its name
    without the version.

    Attributes
    ----------
    name : str
        As task files write it.
    reader : type of Reader
        Reads answers.
    oracle : str
        The oracle that compares answers, unless a plan names another.
    labelled : bool
        Whether a task file lists labels, two or more.
    several : bool
        Whether an answer may hold any number of labels.
    number : bool
        Whether answers are amounts; the task file then has a ``scale``.
    text : bool
        Whether answers are texts, of which only figures are kept, and nobody expects one to come again word for word.
    keys, markers : tuple of str
        JSON keys and words that start the line of the answer, beside those of the task file.
    answered_with : str
        What an answer is, in words, where there are no labels.
    noun : str
        What answers are, in the plural.
    column : {"label", "labels", "number", "words"}
        What a column of answers holds, as ``audit import`` takes it.
    options : frozenset of str
        Options of the plan that belong to this kind and not to every other.
    sketch : Sketch
        For ``audit tasks new``.
    """

    name: ClassVar[str]
    reader: ClassVar[type[Reader]] = Reader
    oracle: ClassVar[str] = "label"
    labelled: ClassVar[bool] = True
    several: ClassVar[bool] = False
    number: ClassVar[bool] = False
    text: ClassVar[bool] = False
    keys: ClassVar[tuple[str, ...]] = ("label", "answer")
    markers: ClassVar[tuple[str, ...]] = ("answer", "label")
    answered_with: ClassVar[str] = "an answer"
    noun: ClassVar[str] = "labels"
    column: ClassVar[Literal["label", "labels", "number", "text"]] = "label"
    options: ClassVar[frozenset[str]] = frozenset()
    sketch: ClassVar[Sketch]

    def __str__(self) -> str:
        return self.name

    @property
    def one_label(self) -> bool:
        """Whether an answer is one of the task's labels."""
        return self.labelled and not self.several

    @property
    def by_degrees(self) -> bool:
        """Whether answers differ by degrees and are compared as such."""
        return self.number or self.text

    def value(self, label: str | float | tuple[str, ...]) -> Value:
        """The value of a worked example, as `Answer.value` holds it."""
        return label

    def wrong(self, value: Value, labels: Collection[str]) -> bool:
        """Whether ``value`` cannot be the answer of a worked example."""
        return self.one_label and value not in labels

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """Answers that every format has to be able to write and read back."""
        return list(labels)
