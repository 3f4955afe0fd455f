"""Candidates next to each other: versions of one text, shown in both orders or in rotated ones."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from auditor.core.errors import ConfigError
from auditor.core.types import Answer, Case, Check, Message, Prompt, Variant
from auditor.run.rounds import is_placebo
from auditor.tasks import Reader, Task, load
from auditor.tasks.answers import Alone, Style, after_reasoning
from auditor.tasks.phrases import normalise
from auditor.tasks.schema import Format
from auditor.text.languages import ENGLISH, choose_in_english
from auditor.text.languages import load as load_language

CHOICE, RANKING = "choice", "ranking"
FIRST, SECOND, TIE = "first", "second", "tie"
MOST = 10  # candidates of a ranking


class Panel(NamedTuple):
    """Candidates in the order in which they are shown, the number of the repeat, and what the prompt goes by."""

    id: str
    case: Case
    shown: tuple[Variant, ...]
    replicate: int
    prompt: Prompt


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SideBySide(Task):
    """A task about several candidates at once: an answer is `FIRST`, `SECOND`, `TIE`, or rankings that it may be."""

    def read(self, output: str, style: Style = "chat", format: str | None = None) -> Answer:
        """Which candidate is named, or all of them, the best first."""
        answer = self.reader.read(output)
        if self.default_format == CHOICE:
            return answer
        if orders := rankings(output):
            return Answer(status="ok", value=orders)
        return Answer(status="refused" if answer.status == "refused" else "unparsed", reason=answer.reason)


def task_of(name: str, candidates: int) -> Task:
    """The task ``name``, asked about several candidates at once."""
    task = load(name)
    if not task.subject or task.kind.text or not (task.favourable or task.kind.number):
        raise ConfigError(
            f"the task {task.name!r} does not say who is judged (subject) or which answer is good to get (favourable, "
            "or a number): nobody can be chosen. Tasks that can: hiring, resume, lending, triage, salary, rating."
        )
    if not 2 <= candidates <= MOST:
        raise ConfigError(f"--candidates takes 2 (a choice) to {MOST} (a ranking); got {candidates}.")
    kind = CHOICE if candidates == 2 else RANKING
    english = choose_in_english()
    said = english if task.language == ENGLISH else load_language(task.language).prompt.choose
    instruction = said.two if kind == CHOICE else said.rank
    form = Format(instruction=instruction, answer="{label}", max_tokens=16 + 4 * candidates)
    wish = said.number if task.kind.number else said.good.replace("{good}", str(task.favourable))
    answers = {label: (*getattr(said, label), *getattr(english, label)) for label in (FIRST, SECOND, TIE)}
    names = {normalise(alias): label for label, aliases in answers.items() for alias in aliases}
    own: dict[str, Any] = {f.name: getattr(task, f.name) for f in dataclasses.fields(Task)}
    own |= {
        "labels": tuple(answers),
        "favourable": None,
        "examples": (),
        "controls": (),
        "formats": MappingProxyType({_order(kind, at): form for at in range(candidates)}),
        "default_format": kind,
        "reader": (Reader if task.language == ENGLISH else Alone)(names=MappingProxyType(names)),
        "question": said.question.replace("{wish}", wish),
    }
    return SideBySide(**own)


def _order(kind: str, at: int) -> str:
    """What an order of candidates goes by among the formats of a run."""
    return f"{kind}-{at + 1}" if at else kind


def asked(task: Task, format: str, shown: Sequence[Variant]) -> Prompt:
    """The prompt that shows candidates in their order."""
    texts = [str(version.input) for version in shown]
    tag = "candidate"
    while any(f"<{tag}-" in text or f"</{tag}-" in text for text in texts):
        tag += "-x"
    shown_texts = "\n\n".join(f"<{tag}-{n}>\n{text}\n</{tag}-{n}>" for n, text in enumerate(texts, 1))
    content = f"{task.question}\n\n{shown_texts}\n\n{task.formats[format].instruction}"
    system = [Message(role="system", content=task.system)] if task.system else []
    return Prompt(format=format, messages=(*system, Message(role="user", content=content)))


def rankings(output: str) -> tuple[str, ...]:
    """The numbers of ``output``, and those of its last line, where they are each number from 1 on once."""
    lines = [line for line in after_reasoning(output).splitlines() if line.strip()]
    numbers = [list(map(int, re.findall(r"\d{1,3}", text))) for text in (" ".join(lines), *lines[-1:])]
    return tuple(" ".join(map(str, own)) for own in numbers if own and sorted(own) == list(range(1, len(own) + 1)))


def panels(
    task: Task, kind: str, case: Case, checks: Mapping[str, Check], candidates: int, repeats: int
) -> list[Panel]:
    """What is asked about one case: pairs in both orders, or one ranking in rotated orders."""
    fine = [v for v in case.variants if checks[v.id].status != "invalid" and v.order == 1]
    if kind == CHOICE:
        both = [(v.id, at, (v, case.original)[:: -1 if at else 1]) for v in fine for at in (0, 1)]
        prompts = [(name, shown, asked(task, _order(kind, at), shown)) for name, at, shown in both]
        return [Panel(name, case, shown, k, prompt) for name, shown, prompt in prompts for k in range(repeats)]
    by_group: dict[str, dict[str, Variant]] = {}
    for v in fine:
        (attribute,) = v.attributes
        if not is_placebo(v) and attribute in v.groups:
            by_group.setdefault(attribute, {}).setdefault(v.groups[attribute], v)
    if not by_group:
        return []
    attribute = max(by_group, key=lambda a: (len(by_group[a]), a))
    others = [v for g, v in by_group[attribute].items() if g != case.original.groups.get(attribute)]
    line = [case.original, *others][:candidates]
    if len(line) < 2:
        return []
    Random(case.id).shuffle(line)
    out = []
    for k in range(max(repeats, len(line))):
        at = k % len(line)
        shown = (*line[at:], *line[:at])
        prompt = asked(task, _order(kind, at), shown)
        out.append(Panel(case.original.id, case, shown, k // len(line), prompt))
    return out


def order_in(answer: Answer, candidates: int) -> tuple[int, ...] | None:
    """The places that an answer names, the best first; all of them for a tie; None where it names not all."""
    if isinstance(answer.value, tuple):
        orders = (tuple(int(number) - 1 for number in one.split()) for one in answer.value)
        return next((order for order in orders if len(order) == candidates), None)
    return {FIRST: (0,), SECOND: (1,), TIE: (0, 1)}.get(str(answer.value))
