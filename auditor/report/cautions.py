"""What must be known of a model's answers before any figure: that it cannot be judged, or gave nothing to judge."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.core import counting
from auditor.core.record import Caution, RunRecord
from auditor.core.record.parts import Unread
from auditor.report import words


def banners(record: RunRecord) -> list[str]:
    """One sentence or two for each caution of a run; what its status tells already is left out."""
    found = [_sentence(record, told) for told in record.cautions]
    return [text for text in found if text]


def _sentence(record: RunRecord, told: Caution) -> str:
    model, n, of = told.model, words.count(told.n), words.count(told.of)
    who = f"{model}, {told.format}" if told.format else model
    label = f"“{words.visible(told.label, newlines=False)}”" if told.label else "the same"
    if told.code == "constant_answers":
        return (
            f"{who} cannot be judged: all {of} answers that could be read are {label}. It may answer so whatever it is "
            "asked, and then an answer that does not change says nothing about groups."
        )
    if told.code == "one_label":
        return (
            f"{who} can hardly be judged: {n} of {of} answers that could be read are {label}. On these texts its "
            "answer hardly changes with anything, so few changes with a group say little."
        )
    if told.code == "control_not_seen":
        return (
            f"{who} cannot be judged: the positive control was not seen. It answered {n} of "
            f"{words.plural(told.of, 'pair')} of texts differently that must get different answers."
        )
    if told.code == "model_changed":
        return (
            f"The server of {who} named {n} models for its {of} answers: {label}. They are counted as one model here; "
            "a difference between answers may be one between models. Name a fixed version, or run again."
        )
    lost = record.models[model].unread if model in record.models else None
    if lost is None or lost.judged_nothing:
        return ""  # the status says so
    return (
        f"{who} can hardly be judged: {n} of {of} answers could not be read ({losses(lost)}). Its figures rest "
        "on the others, "
        "which may not be like them."
    )


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
