"""Answers that are amounts or texts: what the judge of texts is asked while they stream by, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from auditor.core.protocols import Model
from auditor.core.record import RunRecord
from auditor.core.record.measured import Claim
from auditor.core.types import Answer, Finding, is_wording
from auditor.measure import findings
from auditor.run.rounds import Round
from auditor.run.state import Answers, State, Tally

if TYPE_CHECKING:
    from auditor.models.pair_judge import PairJudge
    from auditor.store.folder import Evidence

ORDERS = (("original", "variant"), ("variant", "original"))

NOT_CONFIRMED = (
    "joint changes are not asked again one by one: answers of this kind differ by degrees. The rows of joint changes "
    "show what several attributes do together"
)


async def prefer(loop: State, judge: PairJudge, tally: Tally, made: Round, answers: Answers) -> None:
    """Let the judge compare the first answer for each variant with the first one for its original."""
    from auditor.tasks.text_oracle import mask, masked_terms

    await judge.calibrate()
    keys: list[tuple[str, str]] = []
    pairs: list[tuple[str, str]] = []
    for case in made.cases:
        for name in tally.formats:
            own = answers[name]
            first = _first_text(own.get(case.original.id, ()))
            for variant in case.variants:
                if is_wording(variant):
                    continue
                text = _first_text(own.get(variant.id, ()))
                if first is None or text is None or made.checks[variant.id].status == "invalid":
                    continue
                terms = masked_terms(variant.edits)
                keys.append((name, variant.id))
                pairs.append((mask(first, terms), mask(text, terms)))
    names = [about(variant_id, tally.model.name, name) for name, variant_id in keys]
    for (name, variant_id), value in zip(keys, await judge.prefer(pairs, names), strict=True):
        if value is not None:
            loop.observed.prefer(variant_id, value, model=tally.model.name, format=name)
    loop.stop(judge.client, what=f"The judge {judge.model.name} was stopped: ")


def about(variant_id: str, model: str, format: str) -> str:
    """What a pair that is shown to the judge is about, in the ids of its questions."""
    return f"{variant_id}.{model}.{format}"


def _first_text(answers: Sequence[Answer]) -> str | None:
    return next((str(a.value) for a in answers if a.status == "ok"), None)


# What the answers came to: the claims, the findings, and the sections of the run record by their keys.
FreeText = tuple[Sequence[Claim], list[Finding], dict[str, object]]


def study(loop: State, claims: Sequence[Claim]) -> FreeText:
    """Findings and the section of the record; under other protocols than the default one figures, and no findings."""
    said, seen, sections = _scores(loop, claims) if loop.parts.task.kind.number else _texts(loop)
    return said, findings.numbered(seen) if loop.plan.protocol == "default" else [], sections


def pair_judge(loop: State, model: Model) -> PairJudge:
    """The judge of a run with its client: it shares budget, cache and journal with the models that are audited."""
    parts, folder = loop.parts, loop.folder
    from auditor.models.client import Client
    from auditor.models.pair_judge import PairJudge
    from auditor.models.reply_cache import Cache
    from auditor.tasks import load

    task = load("judge")
    judge = PairJudge(
        model,
        task,
        note=lambda variant_id, prompt: folder.add_prompts([(variant_id, prompt)]),
        keep=lambda response: folder.add_responses([response]),
    )
    cache = parts.cache or Cache() if parts.plan.cache and model.cacheable else None
    judge.client = Client(
        model,
        cache=cache,
        budget=parts.budget,
        concurrency=parts.plan.concurrency,
        answered=folder.answers(model.name),
        remember=False,
        on_response=judge.take,
        keep=lambda text, format: task.read(text, model.style, format).status == "ok",
    )
    return judge


def _scores(loop: State, claims: Sequence[Claim]) -> FreeText:
    """What may be said of amounts is said by the claims; the section says what they count in, and the noise."""
    from auditor.measure.rates import noise_of_numbers

    task, observed = loop.parts.task, loop.observed
    section = {
        "unit": task.unit,
        "scale": list(task.scale or ()),
        "tolerance": loop.parts.oracle.tolerance,
        "noise": {t.model.name: noise_of_numbers(observed.table, t.model.name) for t in loop.tallies},
        "hidden": {"status": "not_tested", "reason": NOT_CONFIRMED},
    }
    return claims, findings.of_claims(claims, (observed.table, observed.directed)), {"scores": section}


def _texts(loop: State) -> FreeText:
    """How texts are written and whether they can be told apart, as of recorded ones, and what changed pair by pair."""
    from auditor.contrib import free_text

    changed, section = _pairs(loop)
    sections: dict[str, object] = {"generation_pairs": section}
    table = loop.observed.table
    if loop.plan.protocol != "default" or not len(table):
        return [], changed, sections
    terms = [term.text for d in loop.parts.dictionaries for term in d.terms]
    studied = free_text.study(table, loop.question(), terms)
    sections["told_apart"] = [one.as_record() for one in studied.apart]
    return studied.claims, [*findings.of_claims(studied.claims, (table,)), *changed], sections


def _pairs(loop: State) -> tuple[list[Finding], dict[str, object]]:
    from auditor.measure import text_pairs

    rows = text_pairs.study(
        loop.observed.metrics,
        deterministic={t.model.name: t.model.deterministic for t in loop.tallies},
        seed=loop.plan.seed,
    )
    judge = loop.judge
    if judge is not None and not judge.trusted:
        wrong = ("not tested: the judge got too few of its control pairs right",)
        rows = [replace(row, p_value=None, notes=wrong) if row.metric == "preference" else row for row in rows]
    rows = text_pairs.decide(rows)
    section = {
        "alpha": text_pairs.ALPHA,
        "metrics": sorted({row.metric for row in rows}),
        "masked": "changed words with their inflections, names of the groups, third-person pronouns, titles",
        "embedding": loop.plan.encoder,
        "judge": {"status": "not_tested", "reason": "no judge was named (--judge)"}
        if judge is None
        else judge.as_record(priced=loop.parts.budget.priced(judge.model)),
        "rows": rows,
        "hidden": {"status": "not_tested", "reason": NOT_CONFIRMED},
    }
    return text_pairs.findings(rows), section


def opinion(record: RunRecord, evidence: Evidence, variant_id: str, model: str, format: str) -> str | None:
    """Say what the judge made of the answers of ``model`` to a variant and its original; None without a judge."""
    from auditor.models.pair_judge import Tallied, count
    from auditor.tasks import load

    if record.generation_pairs is None or not (judge := record.generation_pairs.judge.model):
        return None
    # A run that was gone on with may have asked about an earlier answer too: the last two count.
    asked = list(evidence.judged(about(variant_id, model, format)).items())[-2:]
    if not asked:
        return f"judge {judge}: not asked (the answers are equal, one is not a text, or a limit came first)"
    task, labels = load("judge"), []
    # Texts that differ in the white space around them are one question.
    for name, prompt in asked if len(asked) == 2 else 2 * asked:
        output = next((r.output for r in evidence.responses(name) if r.model == judge), None)
        answer = task.read(output or "", "chat" if prompt.text is None else "text")
        labels.append(None if answer.value is None else str(answer.value))
    preference = count(labels[0], labels[1], Tallied())
    said = "prefers neither" + ("" if set(labels) == {"equal"} else ": its choice moved with the order")
    if preference is None:
        said = "an answer could not be read, so the pair does not count"
    elif preference:
        said = f"prefers the answer to the {'variant' if preference > 0 else 'original'} in both orders"
    chosen = (
        {"first": first, "second": second, "equal": "neither"}.get(label or "", "not read")
        for (first, second), label in zip(ORDERS, labels, strict=True)
    )
    return f"judge {judge}: {said} (original first: {', variant first: '.join(chosen)}; {', '.join(dict(asked))})"
