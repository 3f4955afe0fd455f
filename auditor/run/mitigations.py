"""Changed prompts: an instruction, blinding, files of the user, another model."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from auditor.core import reading
from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.types import Case, Input, Variant
from auditor.perturb.dictionaries import Dictionary
from auditor.perturb.matching import Matcher
from auditor.perturb.name_lines import END, line_end
from auditor.tasks import Task, load
from auditor.tasks.own_labels import foreign

BLANK = "[…]"
IGNORE = (
    "Decide on the matter itself. Who a person is (gender, race, ethnicity, nationality, religion, age, disability, "
    "orientation, or what a name may suggest of these) must not change your answer: give the answer that you would "
    "give if the same text were about anybody else."
)
BUILT_IN = ("ignore", "redact")
Redact = Callable[[Case], Case]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mitigation:
    """One way to ask otherwise."""

    name: str
    what: str  # in one line
    task: Task  # with the changed prompt
    redacts: bool = False  # whether words that name groups are left out of the texts
    model: str | None = None  # another one


def make(name: str, task: Task, style: str) -> Mitigation:
    """One of `BUILT_IN`."""
    if name not in BUILT_IN:
        raise UnknownPlugin("mitigation", name, BUILT_IN, "Your own prompt: --prompt FILE.")
    if name == "redact":
        return Mitigation(name=name, what="words that name groups are left out of the texts", task=task, redacts=True)
    if style == "text":
        raise ConfigError(
            f"{name}: a classifier gets the bare text and no prompt; redact and --other-model can be tried."
        )
    return Mitigation(name=name, what="instruction to ignore identity", task=_adding(task, IGNORE))


def from_file(path: Path, task: Task) -> Mitigation:
    """A prompt of the user: a task file with the same answers (``.yaml``), or the end of a system prompt."""
    if path.suffix in (".yaml", ".yml"):
        own = load(path)
        if (own.kind, own.labels, own.scale) != (task.kind, task.labels, task.scale):
            raise ConfigError(f"{path}: its answers (kind, labels, scale) are not those of the task {task.name!r}.")
        return Mitigation(name=path.stem, what=f"prompt of {path.name}", task=own)
    try:
        words = reading.text(path).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as a text ({error}).") from None
    if not words:
        raise ConfigError(f"{path}: the file is empty.")
    if task.labels and (word := foreign(words, task.names)) is not None:
        raise ConfigError(
            f"{path}: it asks for {word!r}, which is not one of the labels of the task {task.name!r} "
            f"({', '.join(task.labels[:12])})."
        )
    return Mitigation(name=path.stem, what=f"{path.name} at the end of the system prompt", task=_adding(task, words))


def _adding(task: Task, words: str) -> Task:
    return dataclasses.replace(task, system=f"{task.system}\n\n{words}".strip())


def redactor(dictionaries: Iterable[Dictionary]) -> Redact:
    """What leaves words that name groups, and lines that say who it is, out of the texts of a case."""
    matcher = Matcher([d for d in dictionaries if not d.raw])
    cover = re.compile(rf"(?:{re.escape(BLANK)}[ ]?)+(?={re.escape(BLANK)})")

    def blanked(whole: Input, line: bool, words: Iterable[str]) -> Input:
        if not isinstance(whole, str):
            return whole
        text = whole.partition(END)[2] if line else whole
        spans = {(hit.start, hit.end) for hit in matcher.scan(text).hits}
        for word in words:  # of the run's own dictionaries, in whatever form
            spans |= {m.span() for m in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text)}
        out, at = [], 0
        for start, end in sorted(spans):
            if start >= at:
                out += [text[at:start], BLANK]
            at = max(at, end)
        return cover.sub("", "".join((*out, text[at:])))

    def redact(case: Case) -> Case:
        line = line_end(case) > 0

        def of(variant: Variant) -> Variant:
            return dataclasses.replace(variant, input=blanked(variant.input, line, () if line else words))

        versions = (case.original, *case.variants)
        # What names a group in one version is left out of all: a word may be read as one beside some words only.
        words = {e.target for v in versions for e in v.edits if e.kind != "agreement" and e.target.strip()}
        words |= {hit.surface for v in versions if isinstance(v.input, str) for hit in matcher.scan(v.input).hits}
        return dataclasses.replace(case, original=of(case.original), variants=tuple(map(of, case.variants)))

    return redact
