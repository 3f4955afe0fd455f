"""Findings about single hidden changes, and how surely each is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from auditor.stats.claim_words import hidden_text
from auditor.stats.noise import hidden_by_chance
from auditor.stats.settings import Settings
from auditor.stats.summary import Edited, Key, percent
from auditor.types import ClaimVerdict, Estimate, Finding, Verdict

MAX_HIDDEN = 25  # hidden findings for each model, format and attribute set
HIDDEN = "HID201"


def hidden_findings(
    verdicts: Sequence[Verdict],
    edits: Mapping[str, Edited],
    settings: Settings,
    noise: Mapping[str, Estimate | None],
) -> list[Finding]:
    """One finding for each hidden variant, those that came again first; at most `MAX_HIDDEN` of one kind."""
    by_key: dict[Key, list[Verdict]] = {}
    for v in verdicts:
        if v.hidden:
            by_key.setdefault(Key(v.model, v.format, v.attributes), []).append(v)
    out: list[Finding] = []
    for key in sorted(by_key, key=lambda k: (k.model, k.format, len(k.attributes), k.attributes)):
        ordered = clearest(by_key[key])
        rank = [_confirmation(v, settings)[0] != "shown" for v in ordered]
        chosen = [v for _, v in sorted(zip(rank, ordered, strict=True), key=lambda pair: pair[0])][
            :MAX_HIDDEN
        ]
        chance = _chance_note(key, settings, noise.get(key.model))
        for v in chosen:
            verdict, note = _confirmation(v, settings)
            out.append(
                Finding(
                    id="",
                    kind="hidden",
                    code=HIDDEN,
                    model=v.model,
                    format=v.format,
                    attributes=v.attributes,
                    directions=edits[v.variant_id].directions,
                    verdict=verdict,
                    noise=noise.get(v.model),
                    exemplars=(v.variant_id,),
                    text=hidden_text(v, edits[v.variant_id].directions),
                    notes=(note, *chance, *_contrast_note(v, settings)),
                )
            )
    return out


def clearest(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The violations, those with the largest distance first."""
    found = [v for v in verdicts if v.outcome == "violation"]
    return sorted(found, key=lambda v: (-(v.distance or 0.0), v.case_id, v.variant_id))


def _confirmation(verdict: Verdict, settings: Settings) -> tuple[ClaimVerdict, str]:
    if settings.deterministic.get(verdict.model, False):
        return "shown", "declared deterministic: repeatable as it stands"
    confirmed = settings.confirmed.get((verdict.model, verdict.variant_id, verdict.format))
    if confirmed is None:
        return "not_determined", "not yet confirmed by repeating its prompts"
    if confirmed:
        return "shown", "came again when its prompts were repeated"
    return "not_determined", "did not come again when its prompts were repeated"


def _chance_note(key: Key, settings: Settings, noise: Estimate | None) -> tuple[str, ...]:
    """How many joint variants would look hidden by noise alone; only stated for two attributes."""
    if noise is None or len(key.attributes) != 2:
        return ()
    labels = settings.labels.get(key.model, {})
    replicates = max((len(arm) for arms in labels.values() for arm in arms.values()), default=1)
    rate, _ = hidden_by_chance(noise.value, replicates)
    if rate <= 0.0:
        return ()
    return (f"at the measured noise, {percent(rate)} % of joint variants would look hidden by chance",)


def _contrast_note(verdict: Verdict, settings: Settings) -> tuple[str, ...]:
    """How far the joint effect on the score differs from the sum of the single ones."""
    value = settings.contrasts.get((verdict.model, verdict.variant_id, verdict.format))
    if value is None:
        return ()
    return (
        f"interaction contrast on the probability scale: {100 * value:+.1f} percentage points (joint effect "
        "minus the sum of the single ones; near 0 means that the effects add up and cross a threshold together)",
    )
