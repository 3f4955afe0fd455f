"""What the controls of a run showed, for its record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from auditor.core.types import Estimate

if TYPE_CHECKING:
    from auditor.run.loop import Loop
    from auditor.run.tally import Tally


HINTER = "the protocol has none"


NO_TWO = "no prompt has two answers that could be read"


def noise(loop: Loop, tally: Tally) -> Estimate | dict[str, object]:
    """The same-prompt noise of one model: an estimate, a declaration, or why there is none."""
    from auditor.measure.rates import noise_floor

    if tally.model.deterministic:
        return {"declared": True}
    if loop.plan.oracle == "probability":
        return none("scores are compared, and the noise of labels says nothing about them")
    if loop.parts.task.kind.by_degrees:
        return none("see the table of differences")
    estimate = noise_floor(loop.observed.table, tally.model.name) if tally.replicates > 1 else None
    return estimate or none("no prompt was asked twice" if tally.replicates == 1 else NO_TWO)


def of_run(loop: Loop, noise: Mapping[str, Estimate | dict[str, object]]) -> dict[str, object]:
    """All controls of a run by name; one that was not run says why."""
    from auditor.measure import rates

    table = loop.observed.table
    validity = {
        arm: {"rate": bad / n, "n": n} if n else {"status": "not_tested", "reason": f"no {arm}"}
        for arm, (bad, n) in loop.agreement.items()
    }
    hinter = loop.plan.protocol != "default"
    return {
        "noise_floor": _plain(noise),
        "validity": validity
        if loop.parts.agreement is not None
        else {"status": "not_tested", "reason": "the cases came from a file"},
        "placebo": _plain(rates.placebo_controls(table)) or none(HINTER if hinter else _no_placebo(loop)),
        "placebo_hidden": _plain(rates.placebo_hidden(table))
        or none(HINTER if hinter else "no joint placebo variant was judged"),
        "positive_control": _positive(loop, hinter=hinter),
        "canary": _canary(loop, hinter=hinter),
        "answers_by_group": rates.answers_by_group(table),
    }


def _plain(told: Mapping[str, object]) -> dict[str, object]:
    """Estimates, at any depth, as plain data; what has none is left out."""
    out = {
        name: dataclasses.asdict(value)
        if isinstance(value, Estimate)
        else _plain(value)
        if isinstance(value, Mapping)
        else value
        for name, value in told.items()
    }
    return {name: value for name, value in out.items() if value != {}}


def _no_placebo(loop: Loop) -> str:
    return "no placebo variant was asked" if loop.counts["placebos"] else "the cases have no placebo variants"


def none(reason: str) -> dict[str, object]:
    """What stands for a control that was not run."""
    return {"status": "not_tested", "reason": reason}


def _positive(loop: Loop, *, hinter: bool) -> dict[str, object]:
    """On what share of the control pairs the answers differed, by model and format."""
    from auditor.measure.intervals import clopper_pearson
    from auditor.run.controls import SEEN, seen_by_format

    out: dict[str, object] = {}
    for tally in loop.tallies:
        for name, (seen, hits, of) in seen_by_format(tally).items():
            rate = dataclasses.replace(
                clopper_pearson(hits, of),
                note="seen" if seen else f"not seen: fewer than {100 * SEEN:.0f} % of the pairs",
            )
            key = tally.model.name if len(tally.control) == 1 else f"{tally.model.name}, {name}"
            out[key] = dataclasses.asdict(rate) | {"seen": seen}
    if out:
        return out
    if hinter:
        return none(HINTER)
    return none(loop.status_reason or "the task brings no control texts, or their answers were not recorded")


def _canary(loop: Loop, *, hinter: bool) -> dict[str, object]:
    """Whether the first prompts were answered alike at the start, in the middle and at the end."""
    import numpy as np

    from auditor.measure.drift import shift

    out: dict[str, object] = {}
    for tally in loop.tallies:
        if tally.model.deterministic:
            out[tally.model.name] = none("the model is declared deterministic")
            continue
        asked = [[times.get(t, ()) for t in ("start", "middle", "end")] for times in tally.canaries.values()]
        found = shift(asked, rng=np.random.default_rng([loop.plan.seed, 4]))
        out[tally.model.name] = (
            none("no prompt was asked again at the end") if found is None else dataclasses.asdict(found)
        )
    return none(HINTER) if hinter else out
