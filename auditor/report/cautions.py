"""The sentences for what must be known of a model's answers; `auditor.measure.cautions` decides which there are."""

from __future__ import annotations

from auditor.core.record import Caution, RunRecord
from auditor.report import unread, words


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
        f"{who} can hardly be judged: {n} of {of} answers could not be read ({unread.losses(lost)}). Its figures rest "
        "on the others, "
        "which may not be like them."
    )
