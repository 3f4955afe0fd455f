"""The result of one benchmark: computed, laid out, and kept in a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from auditor import __version__
from auditor.contrib.benchmarks.items import Item
from auditor.contrib.benchmarks.scores import ALL, Contrast, Score, contrasts, scores
from auditor.core import reading
from auditor.core.shown import plural
from auditor.report import document as doc
from auditor.report import html, words
from auditor.store.journal import new_folder, write_bytes

FORMAT = "benchmark.v1"
RESULT, ANSWERS, PAGE = "benchmark.json", "answers.jsonl", "report.html"


class About(msgspec.Struct, frozen=True):
    """What is known of a benchmark (embedded/benchmarks/facts.yaml)."""

    title: str
    source: str
    asked: str
    questions: str
    unit: str
    follows: str
    against: str
    known: tuple[str, ...]


class Benchmarked(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of one model or file of answers."""

    format: str = FORMAT
    tool_version: str = __version__
    benchmark: str
    model: str  # that was asked, or the field of recorded answers
    recorded: bool  # whether answers were read from the files
    files: tuple[dict[str, str], ...]  # that were read, with their SHA-256
    items: int
    answered: int  # items with an answer that names an option
    answers: dict[str, int] = {}  # statuses, of a model that was asked
    reason: str | None = None  # why not every question was asked
    delta: float | None = None
    scores: tuple[Score, ...]
    contrasts: tuple[Contrast, ...]

    def to_json(self) -> str:
        """Return the result as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"

    def document(self) -> doc.Document:
        """Lay the result out as a report."""
        raw = reading.load_yaml(reading.shipped("embedded", "benchmarks", "facts.yaml"))
        about = msgspec.convert(raw, dict[str, About])[self.benchmark]
        return doc.Document(
            title=f"{about.title}: {self.model}",
            sections=(
                doc.section("result", "Result", list(_finding(self, about))),
                doc.section("scores", f"Scores as published, with 95 % intervals by {about.unit}", _scores(self)),
                doc.section("know", "What to know", doc.Items((*_read(self, about), *about.known)), about.source),
            ),
            inert=True,
        )


def compute(
    benchmark: str,
    items: Sequence[Item],
    sources: Sequence[dict[str, str]],
    model: str,
    *,
    recorded: bool,
    answers: Counter[str] | None = None,
    reason: str | None = None,
    delta: float | None = None,
) -> Benchmarked:
    """Compute the scores of a benchmark."""
    return Benchmarked(
        benchmark=benchmark,
        model=model,
        recorded=recorded,
        files=tuple(sources),
        items=len(items),
        answered=sum(item.chosen is not None for item in items),
        answers=dict(answers or {}),
        reason=reason,
        delta=delta,
        scores=tuple(scores(benchmark, items)),
        contrasts=tuple(contrasts(benchmark, items, delta)),
    )


def write(made: Benchmarked, items: Sequence[Item], root: Path) -> Path:
    """Write the result, each answer and the page to a new folder below ``root``; returns the folder."""
    folder = new_folder(root, f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{made.benchmark}")
    lines = ({"id": item.id, "condition": item.condition, "chosen": item.chosen} for item in items)
    write_bytes(folder / RESULT, made.to_json().encode())
    write_bytes(folder / ANSWERS, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    write_bytes(folder / PAGE, html.write(made.document()).encode())
    return folder


def _finding(made: Benchmarked, about: About) -> Iterator[doc.Block]:
    if not made.contrasts:
        yield doc.Text("– No answer could be counted.", "lead")
        return
    shown = [one for one in made.contrasts if one.verdict == "shown"]
    whole = next((one for one in made.contrasts if one.category == ALL), made.contrasts[0])
    rest = [one for one in made.contrasts if one is not whole]
    yield doc.Text(_sentence(whole, made, about), "lead")
    yield doc.Items(tuple(_sentence(one, made, about) for one in rest))
    if not shown:
        yield doc.Text("No difference between the two kinds of answer was shown.")


def _sentence(one: Contrast, made: Benchmarked, about: About) -> str:
    """Say a contrast in frequencies: how often, how sure."""
    name = "All categories" if one.category == ALL else one.category.replace("_", " ")
    said = (
        f"{words.SYMBOLS[one.verdict]} {name}: in {one.follows:,} of {one.items:,} {about.questions}, the answer "
        f"{about.follows}; in {one.against:,} it {about.against}."
    )
    if one.low is None or one.high is None:
        why = (
            f"One {about.unit} gives" if one.templates < 2 else f"Answers to every {about.unit} are alike, which gives"
        )
        return f"{said} {why} no interval."
    p = words.p_value(one.p_adjusted)
    sure = f"p {p}" if p.startswith("<") else f"p = {p}"
    adjusted = "" if one.category == ALL else ", adjusted for the categories"
    return (
        f"{said} Difference {100 * one.difference:+.1f} points (95 %: {100 * one.low:+.1f} to {100 * one.high:+.1f}; "
        f"{sure}{adjusted}; {plural(one.templates, about.unit)})."
    )


def _scores(made: Benchmarked) -> doc.Table:
    lines = (
        (
            "all" if one.category == ALL else one.category.replace("_", " "),
            one.name,
            f"{one.value:.2f}",
            "–" if one.low is None else f"{one.low:.2f} to {one.high:.2f}",
            f"{one.n:,}",
            f"{one.templates:,}",
        )
        for one in made.scores
    )
    return doc.table("Scores, in %", "Category | Score | #Value | 95 % | #Answers | #Units", lines)


def _read(made: Benchmarked, about: About) -> Iterator[str]:
    how = "Recorded answers were read from the files." if made.recorded else about.asked
    left = "" if made.answered == made.items else "; the others are left out"
    yield f"{how} {made.answered:,} of {plural(made.items, 'answer')} name an option{left}."
    if made.reason:
        yield f"Not every question was asked: {made.reason}"
    if lost := {k: n for k, n in made.answers.items() if k != "ok"}:
        yield "Answers that do not count: " + ", ".join(f"{n:,} {k}" for k, n in sorted(lost.items())) + "."
