"""What the judge of texts said of one pair, as plain text for a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.core.types import Prompt
from auditor.report.page import Page


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One order of a pair: which text stood first and second, and what the judge answered.

    ``chosen`` is "original", "variant", "equal", or None where no answer was read.
    """

    texts: tuple[str, str]
    prompt: Prompt
    answer: str
    chosen: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """Both orders of a pair; ``preference`` is 1 for the variant, -1 for the original, 0 for neither, None unread."""

    judge: str
    questions: tuple[Question, ...]
    preference: float | None


def opinion(page: Page, shown: Opinion) -> None:
    """The questions of both orders with their answers, and what they come to."""
    page.line()
    page.line(f"judge {shown.judge}: {_meaning(shown)}", "bold")
    for question in shown.questions:
        first, second = question.texts
        page.line()
        page.line(
            f"to the judge, text 1 is the answer to the {first} and text 2 that to the {second}:", "bold"
        )
        prompt(page, question.prompt)
        named = {None: "not read", "equal": "neither"}.get(question.chosen, f"the {question.chosen}")
        page.line(f"its answer ({named}):", "bold")
        page.line(question.answer)


def prompt(page: Page, asked: Prompt) -> None:
    """One prompt in full, with its digest."""
    for message in asked.messages or ():
        page.line(f"{message.role}:", "bold")
        page.line(message.content)
    if asked.text is not None:
        page.line("input:", "bold")
        page.line(asked.text)
    page.line(f"prompt {asked.sha256[:16]} · format {asked.format}", "dim")


def _meaning(shown: Opinion) -> str:
    if not shown.questions:
        return "not asked (the answers are equal with the changed words masked, one is no text, or a limit came first)"
    if shown.preference is None:
        return "an answer could not be read, so the pair does not count"
    if shown.preference:
        return f"prefers the answer to the {'variant' if shown.preference > 0 else 'original'} in both orders"
    if all(q.chosen == "equal" for q in shown.questions):
        return "prefers neither"
    return "prefers neither: its choice moved with the order"
