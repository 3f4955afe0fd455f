"""Attributes of which a plan has too few texts to decide anything: known, and said, before the first call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from random import Random

import numpy as np

from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer
from auditor.core.types import Progress, SourceText
from auditor.measure.contrasts import Versions
from auditor.measure.enough import texts_needed
from auditor.measure.net import pairs
from auditor.measure.observations import attributes_of
from auditor.run.dryrun import FEW, left_out, versions
from auditor.run.loop import silent
from auditor.run.observed import question
from auditor.run.parts import Parts, prepare

MOST = 500  # texts that are looked at; of more, a sample


@dataclass(frozen=True, slots=True)
class Lacking:
    """An attribute without enough texts: those of its clearest claim, and how many that needs."""

    texts: int
    needed: int


def planned(
    plan: Plan,
    *,
    models: Sequence[Model] | None = None,
    seeds: Iterable[SourceText] | None = None,
    observe: Observer = silent,
) -> Parts:
    """`prepare`, without the attributes of which a hosted model would be asked in vain, where the plan names none.

    What is left out, and a plan that can decide nothing, is told to ``observe``.
    """
    parts = prepare(plan, models=models, seeds=seeds)
    if plan.small and plan.attributes is None and not plan.groups and parts.texts:
        lacking, others = count(parts)
        if lacking and others:
            told = parts.facts["seeds"]
            parts = prepare(plan.but(attributes=others), models=parts.models, seeds=parts.texts)
            parts.facts |= {"seeds": told, FEW: {name: asdict(one) for name, one in sorted(lacking.items())}}
    for line in left_out(parts):
        observe(Progress(phase="plan", done=0, message=line))
    return parts


def count(parts: Parts) -> tuple[dict[str, Lacking], tuple[str, ...]]:
    """The attributes with too few texts for a difference of 30 points, and the others."""
    texts = list(parts.texts)
    if len(texts) > MOST:
        texts = Random(parts.plan.seed).sample(texts, MOST)
    ratio = len(parts.texts) / len(texts)
    apart = prepare(parts.plan, models=parts.models, seeds=texts)
    table = versions(apart)
    columns = table.columns()
    asked = question(parts.task, parts.plan, parts.dictionaries, {}, dict.fromkeys(parts.task.labels or (), 1))
    layout = Versions(table, columns).where(np.ones(len(columns.version_text), dtype=bool))
    lacking, others = {}, []
    for attribute in attributes_of(table):
        found = []
        for pair in pairs(layout.names(attribute), attribute, asked):
            contrast, _ = layout.contrast(attribute, pair.group, pair.against)
            needed = pair.needed("number" if asked.number else "share")
            found.append((contrast.sides * ratio / needed, round(len(contrast.text) * ratio), needed))
        enough, here, needed = max(found, default=(0.0, 0, texts_needed()))
        if enough < 1:
            lacking[attribute] = Lacking(here, needed)
        else:
            others.append(attribute)
    return lacking, tuple(others)
