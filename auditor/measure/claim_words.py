"""What a claim says, in words: what was measured, never a judgement."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.core.counting import plural, verb
from auditor.core.types import SHOWN, Estimate, Interaction, Verdict
from auditor.measure.claims import OTHERS, Claim
from auditor.measure.intervals import percent, with_interval
from auditor.measure.observations import Direction
from auditor.measure.rates import Counts


def claim_text(
    attributes: Sequence[str],
    directions: Sequence[Direction],
    rate: Estimate | None,
    seeds: Estimate | None,
    deterministic: bool,
    noise: Estimate | None,
) -> str:
    """What was measured, in one sentence; no judgement."""
    names = " and ".join(_plain(a) for a in attributes)
    if rate is None:
        return f"no answer to a changed prompt could be judged where {names} terms were changed"
    change = f"when {names} terms were changed"
    if len(directions) == 1 and len(attributes) == 1:
        change += f" from {_plain(directions[0][1])} to {_plain(directions[0][2])}"
    elif len(attributes) > 1:
        change += " together"
    interval = f"{rate.level * 100:.0f} %: {percent(rate.low)}–{percent(rate.high)} %"
    base = f"{plural(rate.n_variants or 0, 'variant')} of {plural(rate.n, 'seed')} ({interval})"
    text = f"the label changed in {percent(rate.value)} % of {base} {change}"
    if seeds is not None and seeds.value > 0:
        text += f", on {percent(seeds.value)} % of the seeds at least once"
    return f"{text}; {_noise_text(deterministic, noise)}"


def _noise_text(deterministic: bool, noise: Estimate | None) -> str:
    if deterministic:
        return "the same prompt repeated changed in 0 % (declared deterministic)"
    if noise is None:
        return "the same prompt was not repeated"
    return f"two answers to the same prompt differed in {with_interval(noise)}"


def claim_notes(attributes: Sequence[str], counts: Counts, rate: Estimate | None) -> list[str]:
    """What else was measured: what was lost, how many changes are hidden."""
    notes = [rate.note] if rate is not None and rate.note else []
    lost = int(counts.lost.sum())
    if lost:
        notes.append(
            f"{plural(lost, 'variant')} {verb(lost, 'was', 'were')} not judged (no majority, or too few answers that "
            "parse)"
        )
    hidden = int(counts.hidden.sum())
    if len(attributes) > 1 and hidden:
        total = int(counts.violations.sum())
        notes.append(f"{hidden} of {total} changes are hidden: no smaller set of these attributes changed the label")
    return notes


def placebo_notes(claim: Claim | None) -> list[str]:
    """What placebo edits of the same shape did."""
    if claim is None:
        return []
    if claim.shares is None or claim.estimate is None or claim.low is None or claim.high is None:
        return [f"changes are not compared with placebo edits: {claim.why}"]
    edited, placebo = claim.shares
    return [
        f"placebo edits of the same shape changed the label in {percent(placebo)} %, edits of the group in "
        f"{percent(edited)} % of the same {plural(claim.texts, 'text')}: {_points(claim.estimate)} points more "
        f"(95 %: {_points(claim.low)} to {_points(claim.high)})"
    ]


def net_text(claim: Claim) -> str:
    """What was measured, in one sentence."""
    if not claim.groups:
        return f"the label changed more often with {_sets(claim.attribute)} than under placebo edits of the same shape"
    group, reference = (_plain(g) for g in claim.groups)
    reference = f"other groups of {_plain(claim.attribute)}" if reference == OTHERS else reference
    texts = plural(claim.texts, "text")
    if claim.family == "refusal":
        what = "got no label (refused, filtered or not readable)"
        return f"texts about {group} {what} {_difference(claim)} than the same texts about {reference} ({texts})"
    if claim.scale == "number":
        more = "lower" if (claim.estimate or 0) < 0 else "higher"
        size = f"{abs(claim.estimate or 0):.3g} {claim.unit}".strip()
        interval = f"95 %: {claim.low:.3g} to {claim.high:.3g}"
        return (
            f"the mean answer was {size} {more} for texts about {group} than for the same texts about {reference} "
            f"({interval}; {texts})"
        )
    return (
        f"texts about {group} got the label {claim.label} {_difference(claim)} than the same texts about {reference} "
        f"({texts})"
    )


def which_way(claim: Claim | None) -> tuple[str, ...]:
    """Of attributes whose verdict is that of a net difference: which, since how often answers change is another."""
    if claim is None or claim.family != "net" or claim.verdict not in SHOWN:
        return ()
    return (f"what is shown is which way answers change: {net_text(claim)}",)


def _difference(claim: Claim) -> str:
    value, low, high = claim.estimate, claim.low, claim.high
    if claim.scale == "log_odds":
        value, low, high = claim.share_difference, claim.share_low, claim.share_high
    assert value is not None
    assert low is not None
    assert high is not None
    return (
        f"{_points(abs(value))} percentage points {'less' if value < 0 else 'more'} often "
        f"(95 %: {_points(low)} to {_points(high)})"
    )


def net_notes(claim: Claim) -> tuple[str, ...]:
    """How the claim was reached, and what it would take where it is open."""
    notes = [claim.why] if claim.why else []
    if claim.scale == "log_odds" and claim.estimate is not None:
        notes.append(
            f"on the log odds of the label: {claim.estimate:+.3f} (95 %: {claim.low:+.3f} to {claim.high:+.3f}), "
            "which decides"
        )
    if claim.words_low is not None and claim.words_high is not None and claim.scale != "number":
        scale = "log odds " if claim.scale == "log_odds" else ""
        shown = (
            f"{claim.words_low:+.3f} to {claim.words_high:+.3f}"
            if scale
            else (f"{_points(claim.words_low)} to {_points(claim.words_high)} points")
        )
        notes.append(f"for these words alone: {scale}95 % {shown}; {claim.words:.1f} words stand for the groups")
    if claim.calls_needed is not None:
        notes.append(f"some {claim.calls_needed:,} calls would decide it, as far as texts do")
    return tuple(notes)


def _points(share: float) -> str:
    text = f"{100 * abs(share):.1f}"
    return f"−{text}" if share < 0 and float(text) else text


def _sets(attribute: str) -> str:
    return " and ".join(_plain(a) for a in attribute.split("+"))


def hidden_text(verdict: Verdict, directions: Sequence[Direction]) -> str:
    """What was measured for one hidden variant, in one sentence."""
    changes = " and ".join(f"{_plain(a)} ({_plain(s)} → {_plain(t)})" for a, s, t in directions)
    alone = "either was changed alone" if verdict.order == 2 else "fewer of them were changed"
    return (
        f"the label changed from {verdict.original_output} to {verdict.variant_output} when {changes} terms "
        f"were changed together; it stayed {verdict.original_output} when {alone}"
    )


def chance_note(rate: float) -> tuple[str, ...]:
    """How many joint variants would look hidden by noise alone; only stated for two attributes."""
    if rate <= 0.0:
        return ()
    return (f"at the measured noise, {percent(rate)} % of joint variants would look hidden by chance",)


def contrast_note(known: Interaction) -> tuple[str, ...]:
    """How far the joint change goes beyond its parts, beside what placebo edits do."""
    if known.contrast is None or known.se is None:
        return ()
    if known.scale == "share":
        return (
            f"beyond all of its parts by {100 * abs(known.contrast):.0f} points of the label's share (placebo edits: "
            f"standard deviation {100 * known.se:.0f})",
        )
    unit = " log odds" if known.scale == "log_odds" else ""
    return (
        f"interaction contrast: {known.contrast:+.2f}{unit} (joint effect minus the sum of the single ones; placebo "
        f"edits: standard deviation {known.se:.2f})",
    )


def _plain(name: str) -> str:
    return name.replace("_", " ")
