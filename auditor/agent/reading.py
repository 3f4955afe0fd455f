"""The figures of a run, and nothing else of it.

What is handed to a planner goes through here: counts, rates, names of attributes and groups of the shipped
dictionaries, ids. No tested text, no answer, no label, no message of a server.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from auditor.agent.records import Direction, Figures, Rate, Row
from auditor.core.record import Plain, RunRecord, read
from auditor.core.record.base import Control
from auditor.core.types import Estimate, Finding

COUNTS = (
    "seeds", "cases", "variants", "valid", "discarded", "calls", "cached", "failed", "filtered", "unparsed", "refused",
)  # fmt: skip
LOST = {
    "unparsed": "were no answer that the task knows",
    "refused": "were refusals",
    "filtered": "were kept back by the provider's filter",
    "failed": "were failed calls",
}
DIGITS = 6


def figures(plain: Plain | RunRecord) -> Figures:
    """Counts and rates of a run record: a row for each model, prompt format and attribute set, directions shown."""
    record = read(plain)
    models = {name: f"M{n}" for n, name in enumerate(record.models, 1)}
    floors = record.controls.of("noise_floor") or Control()
    told = structs.asdict(record.counts)
    return Figures(
        complete=record.status == "complete",
        counts={name: told[name] or 0 for name in COUNTS},
        noise=max((_rate(f.estimate).value for f in floors.parts.values() if f.estimate is not None), default=None),
        sets=tuple(
            _row(record, f, models) for f in record.findings if f.kind == "claim" and f.code not in ("DIR110", "REF120")
        ),
        directions=tuple(
            Direction(finding=f.id, model=models.get(f.model, "M0"), steps=f.directions, verdict=f.verdict)
            for f in record.findings
            if f.code == "DIR110" and f.verdict == "shown"
        ),
    )


def _row(record: RunRecord, finding: Finding, models: Mapping[str, str]) -> Row:
    wanted, model = finding.attributes, finding.model
    rows = {
        row.name: row.estimate
        for row in reversed(record.estimates)
        if (row.attributes, row.model, row.format) == (wanted, model, finding.format)
        and row.directions is None
        and row.kind is None
    }
    by_seed, rate, p = rows.get("seed_violation_rate"), finding.rate, finding.p_adjusted
    hidden = [f for f in record.findings if (f.kind, f.attributes, f.model) == ("hidden", wanted, model)]
    placebo = _rate(rows["placebo_rate"]) if "placebo_rate" in rows else None
    noise = _rate(finding.noise) if finding.noise is not None else None
    return Row(
        finding=finding.id,
        model=models.get(model, "M0"),
        attributes=wanted,
        verdict=finding.verdict,
        p_adjusted=None if p is None else round(p, DIGITS),
        rate=None if rate is None else _rate(rate),
        seeds=0 if rate is None else rate.n,
        seeds_changed=0 if by_seed is None else round(by_seed.value * by_seed.n),
        placebo=placebo.value if placebo else None,
        noise=noise.value if noise else None,
        deterministic=record.models[model].deterministic,
        intervals={"placebo": placebo, "noise": noise},
        hidden=len(hidden),
        hidden_shown=sum(f.verdict == "shown" for f in hidden),
    )


def _rate(estimate: Estimate) -> Rate:
    """Value and interval of an estimate."""
    value, low, high = (round(x, DIGITS) for x in (estimate.value, estimate.low, estimate.high))
    return Rate(value=value, low=low, high=high)


def sentence(row: Row) -> str:
    """One attribute set in words, for a reason or a report.

    Examples
    --------
    >>> sentence(Row(attributes=("age",)))
    'age: not measured'
    """
    from auditor.report import words

    name = words.attributes(row.attributes)
    if row.rate is None:
        return f"{name}: not measured"
    text = (
        f"{name}: {words.interval(row.rate)} of the variants changed the answer, "
        f"on {row.seeds_changed} of {words.plural(row.seeds, 'seed')}"
    )
    if row.placebo is not None:
        text += f"; placebo edits {words.percent(row.placebo)}"
    if row.hidden:
        text += f"; {words.plural(row.hidden, 'hidden change')} looked at"
    return text


def promising(row: Row) -> bool:
    """Whether more answers changed than placebo edits bring about, on any seed."""
    return bool(row.rate and row.seeds_changed and row.rate.value > (row.placebo or 0.0))


def unread(values: Figures | None) -> str:
    """Why a run measured nothing at all; empty where it measured something, or did not end.

    Examples
    --------
    >>> counts = {"calls": 40, "cached": 0, "unparsed": 40, "refused": 0, "failed": 0}
    >>> unread(Figures(complete=True, counts=counts, sets=(Row(),)))
    'no answer of this run could be judged: of 40 answers, 40 were no answer that the task knows'
    """
    if values is None or any(row.rate is not None for row in values.sets):
        return ""
    counts = values.counts
    asked = counts["calls"] + counts["cached"]
    if not asked:
        return "no answer came"
    if sum(counts.get(name, 0) for name in LOST) < asked:
        return ""  # amounts and texts are judged without a rate
    why = [f"{counts[name]:,} {how}" for name, how in LOST.items() if counts.get(name)]
    return f"no answer of this run could be judged: of {asked:,} answers, {', '.join(why)}"


def lines(values: Figures) -> list[str]:
    """All sets of a run in words; sets without a change last."""
    rows = sorted(values.sets, key=lambda r: (not promising(r), len(r.attributes), r.attributes))
    return [sentence(row) for row in rows]
