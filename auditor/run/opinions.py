"""What the judge of texts was asked about one pair, and what it said, read back from a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.core.types import Prompt, Response
from auditor.report.finding import Opinion, Question
from auditor.run.free import about
from auditor.tasks.task import Task

ORDERS = (("original", "variant"), ("variant", "original"))


def opinion(record: Mapping[str, Any], evidence: Any, variant_id: str, model: str, format: str) -> Opinion | None:
    """What the judge said of the answers of ``model`` to a variant and its original; None where there was no judge.

    A pair has no questions where its answers are equal, one of them is no text, or a limit came first. Of a redacted
    run the labels are handed out and not the words around them.
    """
    from auditor.models.judge import Tallied, count
    from auditor.tasks import load

    judge = record.get("generation_pairs", {}).get("judge", {}).get("model")
    if judge is None:
        return None
    # A run that was gone on with may have asked about an earlier answer too: the last two count.
    asked = list(evidence.judged(about(variant_id, model, format)).items())[-2:]
    task, questions, labels = load("judge"), [], []
    # Texts that differ in the white space around them are one question.
    for texts, (name, prompt) in zip(ORDERS, asked if len(asked) == 2 else 2 * asked, strict=False):
        came = next((r for r in evidence.responses(name) if r.model == judge), None)
        label = _label(task, prompt, came)
        labels.append(label)
        questions.append(
            Question(
                texts=texts,
                prompt=prompt,
                answer=_words(came, label, redacted=bool(record["spec"].get("redact"))),
                chosen={"first": texts[0], "second": texts[1], "equal": "equal"}.get(label or ""),
            )
        )
    return Opinion(
        judge=judge,
        questions=tuple(questions),
        preference=count(labels[0], labels[1], Tallied()) if questions else None,
    )


def _label(task: Task, prompt: Prompt, came: Response | None) -> str | None:
    if came is None or came.output is None:
        return None
    read = task.read(came.output, "chat" if prompt.text is None else "text")
    return str(read.value) if read.status == "ok" else None


def _words(came: Response | None, label: str | None, *, redacted: bool) -> str:
    """What is shown of an answer."""
    if came is None:
        return "not answered"
    if came.output is None:
        return f"failed ({came.error})" + ("" if redacted else f": {came.detail}")
    return (label or "(redacted)") if redacted else came.output
