"""Findings about single hidden changes, one for each text, the strongest first, and which are interactions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from auditor.core.types import ClaimVerdict, Finding, Interaction, Verdict
from auditor.measure.claim_words import hidden_text
from auditor.measure.enough import ALPHA
from auditor.measure.intervals import percent
from auditor.measure.multiplicity import benjamini_hochberg
from auditor.measure.noise import hidden_by_chance
from auditor.measure.observations import Arm, Direction, Ints, Judged, Observations
from auditor.measure.settings import Settings

MAX_HIDDEN = 200  # hidden findings for each model and format: the strongest of all
HIDDEN = "HID201"
ALONE = Interaction(
    kind="not_tested",
    why="not every part of this change was asked and answered beside it, or it comes from a directed search",
)
VERDICTS: Mapping[str, ClaimVerdict] = {
    "confirmed": "shown",
    "threshold_crossing": "not_determined",
    "not_tested": "not_tested",
}


class Seen(NamedTuple):
    """A verdict with the row of its version, and the directions of its edits."""

    verdict: Verdict
    version: int
    directions: tuple[Direction, ...]

    @classmethod
    def of(cls, table: Observations, told: Judged, rows: Ints) -> Iterator[Seen]:
        """The verdicts in ``rows`` of the judgements of a table."""
        found = zip(table.verdicts(rows.tolist()), told.version[rows].tolist(), told.shape[rows].tolist(), strict=True)
        return (cls(v, version, table.shapes.values[code].directions) for v, version, code in found)


def hidden_findings(tables: Iterable[Observations], settings: Settings) -> list[Finding]:
    """One finding for each text with a hidden variant: the strongest, by contrast in standard errors.

    Confirmed interactions come first; at most `MAX_HIDDEN` of one model and format are listed.
    """
    fresh = _fresh(settings)
    best: dict[tuple[str, str], dict[str, tuple[Rank, Seen, Interaction]]] = {}
    for one in hidden_variants(tables):
        v = one.verdict
        told = _told(v, settings, fresh)
        texts = best.setdefault((v.model, v.format), {})
        rank = _rank(v, told)
        if v.case_id not in texts or rank < texts[v.case_id][0]:
            texts[v.case_id] = rank, one, told
    return [
        _finding(one, told, settings)
        for key in sorted(best)
        for _, one, told in sorted(best[key].values(), key=lambda one: one[0])[:MAX_HIDDEN]
    ]


def hidden_variants(tables: Iterable[Observations]) -> Iterator[Seen]:
    """The hidden variants of the tables; placebos are none."""
    for table in tables:
        told = table.judged()
        edited = np.array([s.arm == Arm.EDITED for s in table.shapes.values], dtype=bool)
        rows = np.flatnonzero((told.hidden == 1) & edited[told.shape])
        yield from Seen.of(table, told, rows)


Rank = tuple[bool, float, float, str, str]


def _rank(v: Verdict, told: Interaction) -> Rank:
    return told.kind != "confirmed", -told.strength, -(v.distance or 0.0), v.case_id, v.variant_id


def _finding(one: Seen, told: Interaction, settings: Settings) -> Finding:
    v, directions = one.verdict, one.directions
    return Finding(
        id="",
        kind="hidden",
        code=HIDDEN,
        model=v.model,
        format=v.format,
        attributes=v.attributes,
        directions=directions,
        verdict=VERDICTS[told.kind],
        interaction=told.kind,
        noise=settings.noise.get(v.model),
        p_value=told.p_value,
        p_adjusted=told.p_adjusted,
        exemplars=(v.variant_id,),
        text=hidden_text(v, directions),
        notes=(*((told.why,) if told.why else ()), *_contrast_note(told), *_chance_note(v, settings)),
    )


def _fresh(settings: Settings) -> Mapping[tuple[str, str, str], float]:
    """Adjusted p values of the exact tests on fresh answers, over all candidates that were asked again."""
    p_values = [(key, p) for key, p in settings.fresh.items() if p is not None]
    q_values = benjamini_hochberg([p for _, p in p_values])
    return {key: q for (key, _), q in zip(p_values, q_values, strict=True) if q is not None}


def _told(v: Verdict, settings: Settings, fresh: Mapping[tuple[str, str, str], float]) -> Interaction:
    """What is known of a hidden variant: against placebo edits, and against its parts on fresh answers."""
    key = (v.model, v.variant_id, v.format)
    told = settings.interactions.get(key, ALONE)
    if told.kind != "confirmed" or settings.deterministic.get(v.model, False):
        return told
    again = settings.confirmed.get(key)
    if again is False:
        return _replaced(told, "threshold_crossing", "did not come again when its prompts were repeated")
    if told.scale != "share":  # scores carry their own spread into the placebo edits
        return told
    if key not in fresh:
        return _replaced(told, "not_tested", "not confirmed by repeating its prompts")
    if fresh[key] > ALPHA:
        why = f"on fresh answers it does not differ from each of its parts (exact test, adjusted p = {fresh[key]:.2g})"
        return _replaced(told, "threshold_crossing", why)
    return told


def _replaced(told: Interaction, kind: str, why: str) -> Interaction:
    return dataclasses.replace(told, kind=kind, why=why)  # type: ignore[arg-type]


def _chance_note(v: Verdict, settings: Settings) -> tuple[str, ...]:
    """How many joint variants would look hidden by noise alone; only stated for two attributes."""
    noise = settings.noise.get(v.model)
    if noise is None or len(v.attributes) != 2:
        return ()
    rate, _ = hidden_by_chance(noise.value, settings.replicates.get(v.model, 1))
    if rate <= 0.0:
        return ()
    return (f"at the measured noise, {percent(rate)} % of joint variants would look hidden by chance",)


def _contrast_note(told: Interaction) -> tuple[str, ...]:
    """How far the joint change goes beyond its parts, beside what placebo edits do."""
    if told.contrast is None or told.se is None:
        return ()
    if told.scale == "share":
        return (
            f"beyond all of its parts by {100 * abs(told.contrast):.0f} points of the label's share (placebo edits: "
            f"standard deviation {100 * told.se:.0f})",
        )
    unit = " log odds" if told.scale == "log_odds" else ""
    return (
        f"interaction contrast: {told.contrast:+.2f}{unit} (joint effect minus the sum of the single ones; placebo "
        f"edits: standard deviation {told.se:.2f})",
    )
