"""What a claim says, in words: what was measured, never a judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.counting import plural, verb
from auditor.stats.arms import Compared
from auditor.stats.noise import Excess
from auditor.stats.summary import Counts, Direction, Key, percent, with_interval
from auditor.types import Estimate, Verdict


class Measured(NamedTuple):
    """What one claim rests on."""

    cells: list[Counts]
    noise: Estimate | None
    test: Excess | None
    placebo: Compared | None


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


def claim_notes(key: Key, known: Measured, rate: Estimate | None) -> list[str]:
    """What else was measured: the noise, what was lost, how many changes are hidden."""
    cells, test = known.cells, known.test
    notes = [rate.note] if rate is not None and rate.note else []
    if test is not None:
        notes.append(
            f"answers to changed and unchanged prompts differ by {percent(max(0.0, test.value))} percentage "
            f"points more than answers to one prompt ({plural(test.n, 'seed')}, permutation test)"
        )
    lost = sum(cell.lost for cell in cells)
    if lost:
        notes.append(
            f"{plural(lost, 'variant')} {verb(lost, 'was', 'were')} not judged (no majority, or too few answers that "
            "parse)"
        )
    hidden = sum(cell.hidden for cell in cells)
    if len(key.attributes) > 1 and hidden:
        total = sum(cell.violations for cell in cells)
        notes.append(
            f"{hidden} of {total} changes are hidden: no smaller set of these attributes changed the label"
        )
    return notes


def placebo_notes(placebo: Compared | None, upper: float | None, rate: Estimate | None) -> list[str]:
    """What placebo edits did, and the smallest delta that could have been bounded."""
    notes = []
    if placebo is not None and placebo.rate is not None:
        notes.append(
            f"placebo edits, which change no group, changed the label in {with_interval(placebo.rate)} of "
            f"{plural(placebo.rate.n_variants or 0, 'variant')} of {plural(placebo.rate.n, 'seed')}"
        )
        over = placebo.over
        if over is not None:
            notes.append(
                f"excess over placebo: {100 * over.value:.1f} percentage points ({over.level * 100:.0f} %: "
                f"{100 * over.low:.1f} to {100 * over.high:.1f}; {plural(over.n, 'seed')}, p = "
                f"{over.p_value:.2g} before "
                "correction)"
            )
    elif placebo is None and rate is not None:
        notes.append("without placebo edits: any other change of wording may change the label as often")
    if upper is not None:
        notes.append(f"the smallest delta this run could have bounded is {percent(upper, up=True)} %")
    return notes


def hidden_text(verdict: Verdict, directions: Sequence[Direction]) -> str:
    """What was measured for one hidden variant, in one sentence."""
    changes = " and ".join(f"{_plain(a)} ({_plain(s)} → {_plain(t)})" for a, s, t in directions)
    alone = "either was changed alone" if verdict.order == 2 else "fewer of them were changed"
    return (
        f"the label changed from {verdict.original_output} to {verdict.variant_output} when {changes} terms "
        f"were changed together; it stayed {verdict.original_output} when {alone}"
    )


def _plain(name: str) -> str:
    return name.replace("_", " ")
