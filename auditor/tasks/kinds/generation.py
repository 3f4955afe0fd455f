"""Tasks whose answers are texts."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.core.types import Answer
from auditor.tasks.answers import Reader, Style, Value, after_reasoning
from auditor.tasks.kinds.base import Kind, Sketch
from auditor.tasks.prose import is_refusal
from auditor.tasks.wording import normalise


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
    options = frozenset({"judge", "embedding"})
    column = "text"
    sketch = Sketch(
        question="Write a reply to this message in at most three sentences.",
        example=("Where is parcel 4417?", "Thank you for asking. Parcel 4417 is on its way and should arrive soon."),
        forms=(("plain", "", "{label}", 200), ("short", "Write one sentence only.", "{label}", 80)),
    )

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """Any text can be written."""
        return []
