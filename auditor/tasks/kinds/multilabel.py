"""Tasks with any number of labels per answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditor.tasks.answers import Reader, Unclear, Value, decode, kind_of, short
from auditor.tasks.kinds.base import Kind, Sketch, two_forms
from auditor.tasks.prose import name_pattern
from auditor.tasks.wording import bare, normalise

_BULLET = re.compile(r"^ ?(?:[-\u2022\u00b7+]|\d{1,3}[.)]) +", re.MULTILINE)
_GLUE = re.compile(r"(?:[\s,;|&/.\"'()\[\]{}\u2022]|\band\b)*")


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
        raise Unclear(f"{short(bare(text))} is no label of the task")


class Multilabel(Kind):
    """Any number of labels apply to a text."""

    name = "multilabel"
    reader = LabelSetReader
    oracle = "labelset"
    several = True
    keys = ("labels", "label", "answer")
    markers = ("answer", "label", "labels")
    column = "labels"
    sketch = Sketch(
        labels="""
labels:                      # as the data set writes them; any number of them may apply
  - name: delivery
    aliases: []
  - name: price
    aliases: [pricing]
  - name: service
    aliases: []
favourable: null
""",
        question="Which of these does the message speak about: delivery, price, service? None may apply.",
        example=("Cheap, but it took three weeks to arrive.", "[delivery, price]"),
        forms=two_forms(
            "Answer with the words that apply, separated by commas, or with none.",
            "labels",
            "the list of the words that apply",
            48,
        ),
    )

    def value(self, label: str | float | tuple[str, ...]) -> tuple[str, ...]:
        """The labels of a worked example, sorted; one may stand there without a list."""
        return tuple(sorted((label,) if isinstance(label, str) else label if isinstance(label, tuple) else ()))

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """No label, each alone, and all."""
        return [(), *((label,) for label in labels), tuple(sorted(labels))]
