"""The kinds whose answers are labels, sets of labels, or texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditor.core.types import Answer
from auditor.tasks.answers import Reader, Style, Unclear, Value, after_reasoning, decode, kind_of, short
from auditor.tasks.kinds import Kind
from auditor.tasks.phrases import bare, is_refusal, name_pattern, normalise

_BULLET = re.compile(r"^ ?(?:[-\u2022\u00b7+]|\d{1,3}[.)]) +", re.MULTILINE)
_GLUE = re.compile(r"(?:[\s,;|&/.\"'()\[\]{}\u2022]|\band\b)*")


class Classification(Kind):
    """A text is put into one of several classes."""

    name = "classification"


class Decision(Kind):
    """Something is decided about the person whom a text is about."""

    name = "decision"


class Coreference(Kind):
    """Whom a pronoun means."""

    name = "coreference"
    grammar = True


class FillMask(Kind):
    """Which of several words stands in a blank."""

    name = "fill-mask"
    grammar = True


class LabelSetReader(Reader):
    """Reads sets of labels: lists of names and nothing else."""

    lists = True

    def value(self, value: object) -> tuple[str, ...]:
        """Read one JSON value; strict about types."""
        if isinstance(value, str):
            return self._list(normalise(value))
        if not isinstance(value, list):
            raise Unclear(f"the labels in the JSON answer are {kind_of(value)}")
        if len(value) == 1 and isinstance(value[0], str) and normalise(value[0]) not in self.names:
            return self._list(normalise(value[0]))
        return tuple(sorted({self.label(item) for item in value}))

    def content(self, content: str) -> tuple[str, ...]:
        """Read the words after a marker."""
        return self._list(content)

    def lines(self, plain: str) -> list[Value]:
        """No line of a list decides by itself."""
        return []

    def prose(self, plain: str) -> tuple[str, ...]:
        """Read running text."""
        return self._list(plain)

    def exactly(self, output: str) -> tuple[str, ...]:
        """Read a classifier's output: a list, in JSON or in words."""
        decoded = decode(output.strip())
        return self.value(decoded) if isinstance(decoded, list) else self._list(normalise(output))

    def _list(self, plain: str) -> tuple[str, ...]:
        """Labels of a list: nothing but names and what stands between them."""
        plain = _BULLET.sub("", plain)
        if bare(plain) in self.none and bare(plain) not in self.names:
            return ()
        labels: set[str] = set()
        at = 0
        for match in name_pattern(tuple(self.names)).finditer(plain):
            _glue(plain[at : match.start()])
            labels.add(self.names[match.group()])
            at = match.end()
        _glue(plain[at:])
        if not labels:
            raise Unclear("names no label of the task")
        return tuple(sorted(labels))


def _glue(text: str) -> None:
    if not _GLUE.fullmatch(text):
        raise Unclear(f"{short(bare(text))} is not a label of the task")


class Multilabel(Kind):
    """Any number of labels apply to a text."""

    name = "multilabel"
    reader = LabelSetReader
    oracle = "labelset"
    several = True
    keys = ("labels", "label", "answer")
    markers = ("answer", "label", "labels")
    column = "labels"

    def value(self, label: str | float | tuple[str, ...]) -> tuple[str, ...]:
        """The labels of a worked example, sorted; one may stand there without a list."""
        return tuple(sorted((label,) if isinstance(label, str) else label if isinstance(label, tuple) else ()))

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """No label, each alone, and all."""
        return [(), *((label,) for label in labels), tuple(sorted(labels))]


class TextReader(Reader):
    """Takes an answer as it is."""

    def understood(self, output: str, style: Style) -> Answer:
        """The text after its reasoning."""
        text = after_reasoning(output) if style == "chat" else output
        if not text.strip():
            return Answer(status="unparsed", reason="empty answer")
        # A refusal opens the answer; the same words further down belong to the text that was asked for.
        if style == "chat" and is_refusal(normalise(text[:300])):
            return Answer(status="refused", reason="declines to answer")
        return Answer(status="ok", value=text.strip())


class Generation(Kind):
    """A text is written."""

    name = "generation"
    reader = TextReader
    oracle = "generation"
    labelled = False
    text = True
    answered_with = "a text"
    noun = "texts"
    options = frozenset({"judge"})
    column = "text"

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """Any text can be written."""
        return []
