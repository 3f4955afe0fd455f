"""The answers of a finished run as one table, of which ``audit import`` makes the same claims."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from auditor.contrib.imports.mapping import Roles
from auditor.core import talk
from auditor.core.errors import ConfigError
from auditor.core.record import RunRecord
from auditor.core.shown import csv_text
from auditor.core.types import Answer, Case, Response, Variant, Verdict
from auditor.measure.observations import Shape, place_of, score_in, shape_of
from auditor.models.client import unanswered
from auditor.run.preparation import dictionaries_of, plan_of
from auditor.run.state import question
from auditor.store.folder import Evidence
from auditor.tasks import of_plan
from auditor.tasks.answers import Style

UNASKED = "not asked"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AnswerRow:
    """One answer, with what was asked and how it was judged."""

    text_id: str
    variant_id: str
    arm: str  # "original", "edited", "placebo" or "reworded"
    attributes: str
    groups: str  # attribute and group of each change
    words_out: str
    words_in: str
    text: str  # the original
    changed_text: str  # what the model was asked about
    model: str
    format: str
    replicate: int
    status: str
    answer: str | float | None  # the label, the number, the text; a set of labels is JSON
    score: float | None  # the number of an answer, or the log odds of the label that is compared
    outcome: str | None  # of the verdict on the variant, as the next two
    hidden: bool | None
    distance: float | None
    sampling: str
    valid: bool
    edits: str  # all of them, as JSON
    place: int  # how much of the original comes before the first edit, in thousandths
    source: str | None  # what the text was made of; texts of one source are one unit
    conversation: str | None  # all of it, a paragraph a message; None where one question was asked


COLUMNS = tuple(field.name for field in dataclasses.fields(AnswerRow))


class Answers:
    """Reads the answers of a run of texts."""

    def __init__(self, record: RunRecord, evidence: Evidence, verdicts: Iterable[Verdict]) -> None:
        if record.spec.suite == "import" or record.tabular is not None:
            raise ConfigError(f"{record.id} holds no texts: only runs of texts have a table of answers.")
        self.evidence, self.record, self.models = evidence, record, record.models
        self.plan = plan_of(record.raw["spec"])
        self.task = of_plan(self.plan)
        claims = record.claims or ()
        self.outcomes = tuple(dict.fromkeys(c.label for c in claims if c.family == "net" and c.label))
        self._verdicts: dict[tuple[str, str, str], Verdict] = {(v.variant_id, v.model, v.format): v for v in verdicts}

    def __iter__(self) -> Iterator[AnswerRow]:
        for case, checks in self.evidence.cases():
            for variant in (case.original, *case.variants):
                shape, check = shape_of(variant.edits), checks.get(variant.id)
                valid = check is None or check.status != "invalid"
                yield from (self._row(case, variant, shape, r, valid) for r in self._came(variant, shape))

    def _came(self, variant: Variant, shape: Shape) -> Iterator[Response]:
        """The answers about a variant, and what stands for a prompt that a run which stopped had no time for."""
        came: dict[tuple[str, str], list[Response]] = {}
        for response in self.evidence.responses(variant.id):
            came.setdefault((response.model, response.format), []).append(response)
        about: dict[str, Any] = {"variant_id": variant.id, "replicate": 0, "error": UNASKED}
        for name, model in self.models.items():
            asked = 1 if shape.kind == "wording" else model.replicates or 1
            for form in model.formats:
                prompts = (p for p in self.evidence.prompts(variant.id) if p.format == form)
                unasked = (Response(prompt_sha256=p.sha256, format=form, model=name, **about) for p in prompts)
                answers = [r for r in came.get((name, form), ()) if r.replicate < asked]
                yield from answers or itertools.islice(unasked, 1)

    def _row(self, case: Case, variant: Variant, shape: Shape, response: Response, valid: bool) -> AnswerRow:
        if response.error == UNASKED:
            answer = Answer(status="not_asked")
        elif response.error is not None:
            answer = unanswered(response.error)
        else:
            style: Style = "text" if self.models[response.model].style == "text" else "chat"
            answer = self.task.read(response.output or "", style, response.format)
        value, output = answer.value, response.output or ""
        score = score_in(dataclasses.replace(answer, scores=response.scores), self.task.score_of)
        verdict = self._verdicts.get((variant.id, response.model, response.format))
        return AnswerRow(
            text_id=case.id,
            variant_id=variant.id,
            arm=shape.arm.name.lower(),
            attributes=" + ".join(shape.attributes),
            groups=" + ".join(f"{a}: {before} > {after}" for a, before, after in shape.directions),
            words_out=" + ".join(shape.words_out),
            words_in=" + ".join(shape.words_in),
            text=_plain(case.original.input),
            changed_text=_plain(variant.input),
            model=response.model,
            format=response.format,
            replicate=response.replicate,
            status=answer.status,
            answer=json.dumps(value) if isinstance(value, tuple) else value,
            score=None if math.isnan(score) else score,
            outcome=None if verdict is None else verdict.outcome,
            hidden=None if verdict is None else verdict.hidden,
            distance=None if verdict is None else verdict.distance,
            sampling=case.sampling,
            valid=valid,
            edits=msgspec.json.encode(variant.edits).decode(),
            place=place_of(variant.edits, case.original.input),
            source=case.source,
            conversation=talk.shown(output) if talk.messages_of(output) is not None else None,
        )

    def roles(self) -> Roles:
        """What ``audit import`` needs to compute the claims of the run from these rows."""
        seen: dict[str, list[bool]] = {}
        control = self.record.controls.of("positive_control")
        for key, one in control.parts.items() if control else ():
            if (name := key.partition(", ")[0]) in self.models and one.positive:
                seen.setdefault(name, []).append(one.positive.seen)
        asked = question(self.task, self.plan, dictionaries_of(self.plan), {}, {})
        return Roles(
            text=("text_id",),
            source="source",
            answer="answer",
            kind=self.task.kind.column,
            favourable=() if self.task.kind.text else self.outcomes,
            unit=asked.unit,
            edits="edits",
            place="place",
            version="variant_id",
            model=("model",),
            format=("format",),
            replicate="replicate",
            status="status",
            score="score",
            where={"sampling": ("iid",), "valid": ("true", "True")},
            references=asked.references,
            primary=asked.primary,
            unmarked={attribute: tuple(groups) for attribute, groups in asked.unmarked.items() if groups},
            graded=tuple(f for f in self.task.formats if f in asked.graded),
            control={name: all(seen[name]) for name in self.models if name in seen},
            task=self.task.name,
            delta=asked.delta,
        )

    def csv(self) -> str:
        """The table as CSV that no spreadsheet takes for formulas."""
        rows = ([str(v).lower() if isinstance(v, bool) else v for v in dataclasses.astuple(row)] for row in self)
        return csv_text([COLUMNS, *rows])


def _plain(text: object) -> str:
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
