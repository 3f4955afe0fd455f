"""A run of choices or rankings: from a plan to claims about who is chosen.

Candidates are versions of one text, next to each other, in both orders or in rotated ones.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from auditor.core.errors import ConfigError
from auditor.core.options import EVERY
from auditor.core.plan import Plan
from auditor.core.protocols import Observer
from auditor.core.record import frame
from auditor.core.record.measured import Claim
from auditor.core.types import Answer, Case, Check, Message, Progress, Prompt, Request, Variant
from auditor.measure import findings, impact
from auditor.measure.findings import claims
from auditor.measure.observations import Observations, shape_of
from auditor.models.limits import BOOK
from auditor.run.audit import plan_record, recalled, require_same_inputs, run_sync
from auditor.run.preparation import Parts, prepare, tell_proxies
from auditor.run.rounds import is_placebo, source
from auditor.run.state import Answered, State, question, silent
from auditor.store.folder import RunFolder
from auditor.tasks import Reader, Task, load
from auditor.tasks.answers import Alone, Style, after_reasoning, normalise
from auditor.tasks.schema import Format
from auditor.text.languages import ENGLISH, choose_in_english
from auditor.text.languages import load as load_language

UNIT = "points"
CHOICE, RANKING = "choice", "ranking"
FIRST, SECOND, TIE = "first", "second", "tie"
MOST = 10  # candidates of a ranking


@dataclass(slots=True)
class Seen:
    """What came back of one model."""

    answers: Counter[str] = field(default_factory=Counter)  # by status
    chosen: Counter[str] = field(default_factory=Counter)  # first, second, tie; or the place of the best
    top: Counter[str] = field(default_factory=Counter)  # rankings that a group leads
    of: Counter[str] = field(default_factory=Counter)  # rankings that it stands in
    ranks: Counter[str] = field(default_factory=Counter)  # sum of its ranks
    not_asked: int = 0

    @property
    def position(self) -> float | None:
        """How much more often the first place is taken than the last, as a share of answers; None without answers."""
        places, total = [p for p in sorted(self.chosen) if p != TIE], self.chosen.total()
        return (self.chosen[places[0]] - self.chosen[places[-1]]) / total if total and len(places) > 1 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """What a run of panels came to."""

    path: Path
    kind: str
    reason: str  # why it is incomplete, or empty
    texts: int
    claims: tuple[Claim, ...]
    seen: Mapping[str, Seen]
    impact: Mapping[str, impact.ImpactTable]


def compare(plan: Plan, candidates: int, repeats: int, observe: Observer = silent) -> Compared:
    """Ask about candidates side by side, and keep it as a run below ``plan.out``."""
    task = task_of(plan.task, candidates)
    if task.turns:
        raise ConfigError(f"the task {task.name!r} is a conversation, which shows no candidates side by side.")
    if plan.data is None and task.seeds_path is None:
        raise ConfigError(f"the task {task.name!r} brings no texts; give some with --data FILE.")
    kind = task.default_format
    server = {spec: {**said, "logprobs": False} for spec, said in {EVERY: {}, **plan.server}.items()}
    asked = plan.but(formats=(), server=server, order=1, until_decided=False, replicates=1, wordings=1)
    parts = prepare(asked, task=task)
    for model in parts.models:
        if model.style == "text":
            raise ConfigError(
                f"{model.name} is a classifier: it gets one text at a time and cannot compare candidates."
            )
    about: dict[str, Any] = {"kind": kind, "candidates": candidates, "repeats": repeats}
    with RunFolder.create(Path(plan.out), plan_record(parts) | {"panels": about}) as folder:
        return run_sync(lambda: _compare(parts, folder, observe, {}, **about))


def resume(path: Path, limits: Mapping[str, object], observe: Observer = silent) -> tuple[Plan, Compared]:
    """Finish the run of panels in ``path``: nothing that was answered is asked again."""
    with RunFolder.open(path, write=True) as folder:
        about = folder.plan["panels"]
        plan = Plan.from_dict(folder.plan["plan"] | limits)
        parts = prepare(plan, task=task_of(plan.task, about["candidates"]))
        require_same_inputs(folder.plan, plan_record(parts))
        return plan, run_sync(lambda: _compare(parts, folder, observe, recalled(folder, parts), **about))


async def _compare(
    parts: Parts, folder: RunFolder, observe: Observer, answered: Answered, *, kind: str, candidates: int, repeats: int
) -> Compared:
    started, clock = datetime.now(UTC), time.monotonic()
    task, table = parts.task, Observations()
    seen = {model.name: Seen() for model in parts.models}
    parts.budget.keep(folder.path / BOOK)
    tell_proxies(parts.models, observe)
    loop = State(parts, folder, observe=observe, answered=answered)
    rounds, rng = source(parts), Random(parts.plan.seed)
    texts = 0
    try:
        while not loop.status_reason:
            cases, checks, _ = await rounds.next(rng)
            if not cases:
                break
            folder.add_cases((case, {v.id: checks[v.id] for v in case.variants}, None) for case in cases)
            here = [p for case in cases for p in panels(task, kind, case, checks, candidates, repeats)]
            folder.add_prompts((panel.id, panel.prompt) for panel in here if not panel.replicate)
            texts += len({panel.case.id for panel in here})
            asked = [(p, Request(prompt=p.prompt, replicate=p.replicate, variant_id=p.id)) for p in here]
            for tally in loop.tallies:
                _take(table, seen[tally.model.name], kind, tally.model.name, await loop.ask(tally, asked))
                loop.stop(tally.client)
            observe(Progress(phase="generate", done=texts, planned=parts.seeds))
    finally:
        rounds.close()
        parts.budget.close()
        for model in parts.models:
            await model.aclose()
    about = question(task, parts.plan, parts.dictionaries, {}, {})
    about = dataclasses.replace(about, number=True, outcomes=(), unit=UNIT, graded=frozenset(), delta=None)
    counts = {
        name: [impact.Count(category=g, n=one.of[g], x=one.top[g]) for g in sorted(one.of)]
        for name, one in seen.items()
    }
    done = Compared(
        path=folder.path,
        kind=kind,
        reason=loop.status_reason,
        texts=texts,
        claims=tuple(claims(table, about)) if len(table) else (),
        seen=seen,
        impact={name: impact.table(rows, one_per_run=True) for name, rows in counts.items() if rows},
    )
    folder.write_run(_record(parts, folder, done, table, started, time.monotonic() - clock))
    return done


def _take(table: Observations, seen: Seen, kind: str, model: str, answers: Sequence[tuple[Panel, Answer]]) -> None:
    """Add what each version got: of complete pairs of orders alone, so that no place weighs more than another."""
    got: dict[str, list[float]] = {}
    versions: dict[str, tuple[Case, Variant]] = {}
    halves: dict[tuple[str, int], dict[bool, float]] = {}
    for panel, answer in answers:
        for v in panel.shown:
            versions[v.id] = panel.case, v
        if answer.status == "not_asked":
            seen.not_asked += 1
            continue
        order = order_in(answer, len(panel.shown))
        seen.answers["unparsed" if answer.status == "ok" and order is None else answer.status] += 1
        if order is None:
            continue
        if kind == RANKING:
            seen.chosen[f"place {order[0] + 1}"] += 1
            (attribute,) = {a for v in panel.shown for a in v.attributes}
            for rank, place in enumerate(order):
                group = panel.shown[place].groups[attribute]
                got.setdefault(panel.shown[place].id, []).append(100.0 * (rank == 0))
                seen.top[group] += rank == 0
                seen.of[group] += 1
                seen.ranks[group] += rank + 1
            continue
        seen.chosen[TIE if len(order) != 1 else (FIRST, SECOND)[order[0]]] += 1
        variant = next(v for v in panel.shown if v is not panel.case.original)
        won = 0.0 if len(order) != 1 else 100.0 if panel.shown[order[0]] is variant else -100.0
        both = halves.setdefault((variant.id, panel.replicate), {})
        both[panel.shown[0] is variant] = won
        if len(both) == 2:
            got.setdefault(variant.id, []).append(sum(both.values()) / 2)
            got.setdefault(panel.case.original.id, [0.0])
    for name, values in got.items():
        case, version = versions[name]
        if case.source is not None:
            table.sources[case.id] = case.source
        row = table.shape(case.id, shape_of(version.edits), version.id, tuple(version.groups.items()))
        table.answers(row, model=model, format=kind, answers=[Answer(status="ok", value=v) for v in values])


def _record(
    parts: Parts, folder: RunFolder, done: Compared, table: Observations, started: datetime, seconds: float
) -> dict[str, object]:
    """``run.json``, with what all reports of claims need."""
    spec = parts.plan.as_dict() | {"models": list(done.seen), "kind": "score"}
    spoken = {"deterministic": False, "style": "chat", "reported": []}
    return {
        **frame(folder.id, folder.plan_sha256, spec, parts.facts, started, seconds, reason=done.reason),
        "counts": {"seeds": len(table.texts.values), **parts.budget.as_record(parts.models)},
        "claims": done.claims,
        "findings": findings.of_claims(done.claims, [table]),
        "models": {
            name: {"counts": dict(one.answers), "answers": dict(one.chosen)} | spoken for name, one in done.seen.items()
        },
        "panels": {"kind": done.kind}
        | {
            name: {
                "answers": dict(seen.answers),
                "not_asked": seen.not_asked,
                "chosen": dict(seen.chosen),
                "top": dict(seen.top),
                "rankings": dict(seen.of),
                "mean_rank": {group: seen.ranks[group] / n for group, n in seen.of.items()},
                "position": seen.position,
                "impact": {row.count.category: None if row.ratio is None else float(row.ratio) for row in rows},
            }
            for name, seen in done.seen.items()
            for rows in (done.impact[name].rows if name in done.impact else (),)
        },
        "vocabulary": {
            "favourable": None,
            "attributes": sorted({c.attribute for c in done.claims}),
            "groups": {d.attribute: {g.name: g.label for g in d.groups.values()} for d in parts.dictionaries},
        },
    }


# -- candidates next to each other ----------------------------------------------------------------------------


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
