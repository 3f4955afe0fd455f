"""The controls of a run, and a paper's own counting, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from auditor.core.record import Counts, RunRecord
from auditor.core.record.parts import Control, Losses
from auditor.report import words
from auditor.report.rows import DECLARED

PAPER_COLUMNS = ("Model", "Pair", "Joint errors", "Atomic errors", "Hidden", "Valid, joint")
FEW_SEEDS = 6
LOSSES = ("refused", "filtered", "unparsed", "failed")
CONTROL_NAMES = {
    "noise_floor": "Same-prompt noise",
    "validity": "Agreement problems",
    "placebo": "Placebo edits",
    "positive_control": "Positive control",
    "canary": "Same prompts later",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line of the controls: what, for whom, the figure or the reason why there is none."""

    name: str
    scope: str
    result: str
    ran: bool = True
    few: bool = False  # of one attribute set, on fewer than `FEW_SEEDS` seeds


def losses(rows: Iterable[Losses]) -> tuple[str, ...]:
    """The kinds of answers that are told of: what a provider's filter kept back only where it kept something back."""
    filtered = any(row.filtered for row in rows)
    return tuple(name for name in LOSSES if filtered or name != "filtered")


def lost(counts: Counts) -> str:
    """How many prompts got no answer that counts, of how many that were asked or found in the cache.

    Examples
    --------
    >>> lost(Counts(refused=0, unparsed=2, failed=0, calls=3, cached=861))
    'refused 0, unparsed 2, failed 0 of 864 (3 asked, 861 from the cache)'
    """
    told = ", ".join(f"{name} {words.count(counts.lost.get(name))}" for name in losses([counts]))
    calls, cached = counts.calls, counts.cached or 0
    if calls is None:
        return told
    return f"{told} of {words.count(calls + cached)} ({words.count(calls)} asked, {words.count(cached)} from the cache)"


def lines(record: RunRecord) -> Iterable[Line]:
    """Yield one line per control; those that were not run say why."""
    controls = record.controls.every
    for key in [*CONTROL_NAMES, *sorted(set(controls) - set(CONTROL_NAMES))]:
        name = CONTROL_NAMES.get(key, key.replace("_", " ").capitalize())
        if key not in controls:
            yield Line(name=name, scope="", result="not run: the run record holds no result", ran=False)
        else:
            yield from control(name, "", controls[key])


def control(name: str, scope: str, told: Control) -> Iterable[Line]:
    """One control as lines: a rate, a test, or why it was not run."""
    if told.parts:
        for key, part in sorted(told.parts.items()):
            yield from control(name, f"{scope}, {key}" if scope else key, part)
        return
    few = told.estimate is not None and ", " in scope and told.estimate.n < FEW_SEEDS
    yield Line(name=name, scope=scope, result=_result(told), ran=told.reason is None, few=few)


def _result(told: Control) -> str:
    if told.reason is not None:
        return f"not run: {told.reason}"
    if told.declared:
        return DECLARED
    if (found := told.estimate) is not None:
        return f"{words.interval(found)} · n = {words.count(found.n)}" + (f" · {found.note}" if found.note else "")
    if (shift := told.shift) is not None:
        what = "answered differently" if shift.shifted else "no shift seen"
        return (
            f"{what}: p = {shift.p_value:.2g} ({words.plural(shift.prompts, 'prompt')}, "
            f"{words.plural(shift.answers, 'answer')})"
        )
    if told.rate is not None:
        return words.percent(told.rate) + (f" of {words.count(told.n)}" if told.n is not None else "")
    return told.text


def paper(record: RunRecord) -> Iterable[tuple[str, ...]]:
    """Lay out the measures of ``--protocol hinter``, one line per model and pair of attributes."""

    def share(part: int, whole: int) -> str:
        value = words.percent(part / whole) if whole else "none"
        return f"{value} ({words.count(part)} of {words.count(whole)})"

    for model, pairs in record.hinter.items():
        for pair in pairs:
            joint = pair.joint
            atomic = (f"{a}: {share(x.errors, x.tested)}" for a, x in pair.atomic.items())
            yield (
                model,
                words.attributes(pair.attributes),
                share(joint.errors, joint.tested),
                "; ".join(atomic),
                share(pair.hidden, joint.errors),
                share(joint.valid, joint.generated),
            )
