"""Answers in which no label could be read: why a run that judged nothing is not complete, and what to do then."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.core import counting
from auditor.core.record import RunRecord
from auditor.core.record.parts import Unread
from auditor.report import words

LOST = ("unparsed", "refused", "filtered", "failed")
LABELS = 8  # labels that a report lists
EXAMPLE = 60  # characters of an answer that a report quotes


def quoted(output: str) -> str:
    r"""The beginning of an answer in one line, in quotation marks; nothing in it acts or looks like a command.

    Examples
    --------
    >>> quoted("purple\nmonkey")
    '“purple ⏎ monkey”'
    """
    line = words.visible(output.strip(), newlines=False)
    if not line:
        return "an empty answer"
    short = line if len(line) <= EXAMPLE else line[: EXAMPLE - 1].rstrip() + "…"
    # A message to the terminal puts "Run: …" on a line of its own; not what a model said.
    return f"“{short}”".replace(": ", ":\u00a0")


def listed(labels: Sequence[str]) -> str:
    """The labels that were expected, the first of them where they are many."""
    left = len(labels) - LABELS
    return ", ".join(labels) if left <= 1 else f"{', '.join(labels[:LABELS])} and {left:,} further labels"


def losses(told: Unread) -> str:
    """What became of the answers that could not be read, with an example and what was expected."""
    parts = [f"{words.count(told.lost[key])} {key}" for key in LOST if told.lost.get(key)]
    example = f"; for example {told.example}" if told.example else ""
    cut_off = counting.cut_off(told.cut_off)
    return f"{', '.join(parts)}{example}; expected: {told.expected}{cut_off}"


def reason(model: str, told: Unread) -> str:
    """Why a run in which ``model`` gave nothing to judge, or too little to ask on, is not complete."""
    if sum(told.lost.values()) == told.answers:
        what = f"none of its {words.count(told.answers)} answers could be read"
    elif stopped := told.stopped:
        what = f"{stopped[0]} of its first {stopped[1]} answers could not be read"
    else:
        what = f"too few of its {words.count(told.answers)} answers could be read to judge any variant"
    further = ", so it was asked nothing more" if told.stopped else ""
    return f"{model}: {what} ({losses(told)}){further}."


def nothing(record: RunRecord, model: str) -> Unread | None:
    """What is known of the answers of ``model``, where they were such that nothing could be judged."""
    told = record.models[model].unread if model in record.models else None
    return told if told is not None and told.judged_nothing else None


def variant(record: RunRecord) -> str:
    """A variant whose answers show why a model was not asked further, or nothing could be judged; else empty."""
    every = (model.unread for model in record.models.values() if model.unread is not None)
    return next((told.variant for told in every if told.judged_nothing or told.stopped), "")
