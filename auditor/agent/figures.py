"""Figures of each run, and what they show together. A planner gets what `public` returns: no text, label or message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import structs

from auditor.agent.values import OF_REPORT, Entry, Figures, Question, Row
from auditor.core.record import RunRecord
from auditor.core.record.base import Control
from auditor.core.record.measured import Bounds
from auditor.core.types import VERDICTS, ClaimVerdict, Estimate, Finding
from auditor.core.verdict import UNFIT
from auditor.report import words
from auditor.report.claimed import RATES

COUNTS = (
    "seeds", "cases", "variants", "valid", "discarded", "asked", "cached", "failed", "filtered", "unparsed", "refused",
)  # fmt: skip
LOST = {
    "unparsed": "did not match any answer of the task",
    "refused": "were refusals",
    "filtered": "were kept back by the provider's filter",
    "failed": "were failed calls",
}
OF_SETS = ("MUT", "SCO", "GEN")  # codes of findings about how often answers changed, or by how much
DIGITS = 6
ALPHA = 0.05
MOST = 2  # comparisons of groups that a report names for one set
Key = tuple[str, tuple[str, ...]]  # model and attribute set


def figures(record: RunRecord) -> Figures:
    """Return counts and rates of a run: a row for each model, prompt format and attribute set."""
    models = {name: f"M{n}" for n, name in enumerate(record.models, 1)}
    floors = record.controls.of("noise_floor") or Control()
    counts = structs.asdict(record.counts) | {"asked": record.counts.fresh}
    return Figures(
        complete=record.status == "complete",
        unfit={models.get(c.model, "M0"): UNFIT[c.code] for c in reversed(record.cautions) if c.code in UNFIT},
        counts={name: counts[name] or 0 for name in COUNTS},
        noise=max((_rate(f.estimate).value for f in floors.parts.values() if f.estimate is not None), default=None),
        sets=tuple(
            _row(record, f, models.get(f.model, "M0"))
            for f in record.findings
            if f.kind == "claim" and f.code[:3] in OF_SETS
        ),
    )


def public(values: Figures | None) -> dict[str, Any] | None:
    """Return the figures that a planner may see."""
    if values is None:
        return None
    plain: dict[str, Any] = msgspec.to_builtins(values)
    return plain | {"sets": [{k: v for k, v in row.items() if k not in OF_REPORT} for row in plain["sets"]]}


def _row(record: RunRecord, finding: Finding, model: str) -> Row:
    wanted, named = finding.attributes, finding.model
    rows = {
        row.name: row.estimate
        for row in reversed(record.estimates)
        if (row.attributes, row.model, row.format) == (wanted, named, finding.format)
        and row.directions is None
        and row.kind is None
    }
    by_seed, rate, place, verdict = rows.get("seed_violation_rate"), finding.rate, finding.claim, finding.verdict
    if finding.code.startswith(RATES) and rate is not None:  # who is worse off goes before how often answers change
        place, verdict = _decides(record, finding), "not_determined"
    own = record.claims[place] if place is not None and record.claims else None
    p = finding.p_adjusted if own is None else own.p_adjusted
    return Row(
        finding=next((f.id for f in record.findings if place is not None and f.claim == place), finding.id),
        model=model,
        attributes=wanted,
        verdict=verdict if own is None or rate is None else own.verdict,
        p_adjusted=None if p is None else round(p, DIGITS),
        rate=None if rate is None else _rate(rate),
        seeds=0 if rate is None else rate.n,
        seeds_changed=0 if by_seed is None else round(by_seed.value * by_seed.n),
        placebo=_rate(rows["placebo_rate"]) if "placebo_rate" in rows else None,
        noise=_rate(finding.noise) if finding.noise is not None else None,
        deterministic=record.models[named].deterministic,
        hidden=sum((f.kind, f.attributes, f.model) == ("hidden", wanted, named) for f in record.findings),
        why="" if own is None else own.why,
        said=_said(record, finding),
    )


def _decides(record: RunRecord, finding: Finding) -> int | None:
    """Return the claim that the verdict of a set of attributes rests on; it is bounded where all are."""
    claims, about = record.claims or (), (finding.model, finding.format, set(finding.attributes))
    mine = [n for n, c in enumerate(claims) if (c.model, c.format, set(c.attribute.split("+"))) == about]
    mine = [n for n in mine if claims[n].p_value is not None]
    tested = [n for n in mine if claims[n].family in ("net", "omnibus")]
    tested = tested or [n for n in mine if claims[n].family == "instability"]
    states = {claims[n].verdict for n in tested} - {"bounded"} or {"bounded"}
    alike = [n for n in tested if claims[n].verdict == min(states, key=VERDICTS.index)]
    return min(alike, key=lambda n: (claims[n].p_adjusted or 0.0, claims[n].p_value or 0.0), default=None)


def _said(record: RunRecord, finding: Finding) -> tuple[str, ...]:
    """Say who got what, of the comparisons of this set that say most, and how often answers changed."""
    from auditor.report import claimed

    place, names = (finding.model, finding.format), set(finding.attributes)
    mine = [c for c in record.claims or () if (c.model, c.format) == place and set(c.attribute.split("+")) == names]
    mine = sorted((c for c in mine if c.verdict != "not_tested"), key=claimed.order)
    pairs = [c for c in mine if c.family not in ("instability", "omnibus")][:MOST]
    made = (claimed.state(record, c) for c in (*pairs, *(c for c in mine if c.family == "instability")))
    return tuple(" ".join(filter(None, (one.who, one.amount))) for one in made if one is not None)


def _rate(estimate: Estimate) -> Bounds:
    """Return value and interval of an estimate."""
    value, low, high = (round(x, DIGITS) for x in (estimate.value, estimate.low, estimate.high))
    return Bounds(value=value, low=low, high=high)


def measure(row: Row) -> str:
    """Say what was measured of one attribute set."""
    if row.rate is None:
        return " ".join(row.said) or "not measured"
    text = (
        f"{words.interval(row.rate)} of the variants changed the answer, "
        f"on {row.seeds_changed} of {words.plural(row.seeds, 'seed')}"
    )
    if row.placebo is not None:
        text += f"; placebo edits {words.percent(row.placebo.value)}"
    if row.hidden:
        text += f"; {words.plural(row.hidden, 'hidden change')} looked at"
    return text


def promising(row: Row) -> bool:
    """Return whether more answers changed than placebo edits bring about, on any seed."""
    return bool(row.rate and row.seeds_changed and row.rate.value > (row.placebo.value if row.placebo else 0.0))


def unread(values: Figures | None) -> str:
    """Return why a run measured nothing; empty where it measured something, or did not end."""
    if values is None or any(row.rate is not None for row in values.sets):
        return ""
    counts = values.counts
    asked = counts["asked"] + counts["cached"]
    if not asked:
        return "no answer came"
    if sum(counts.get(name, 0) for name in LOST) < asked:
        return ""  # amounts and texts are judged without a rate
    why = [f"{counts[name]:,} {how}" for name, how in LOST.items() if counts.get(name)]
    return f"no answer of this run could be judged: of {asked:,} answers, {', '.join(why)}"


# -- what the runs show together ----------------------------------------------------------------------------


def level(number: int) -> float:
    """Return the significance level of the ``number``-th fresh run of a session, counted from 1."""
    return float(ALPHA / 2**number)


def _settled(row: Row, alpha: float) -> ClaimVerdict:
    """Return the verdict of a set of a fresh run under ``alpha``: the run's own, or less; only the first may bound."""
    late = row.p_adjusted is not None and row.p_adjusted >= alpha
    if (row.verdict == "shown" and late) or (row.verdict == "bounded" and alpha < level(1)):
        return "not_determined"
    return row.verdict


def questions(runs: Iterable[Entry], declared: Iterable[tuple[str, ...]]) -> list[Question]:
    """Return one entry per model and attribute set, ``declared`` ones in any case: verdict, run, explorations."""
    asked = list(declared)
    table: dict[Key, Question] = {}

    def of(model: str, names: tuple[str, ...]) -> Question:
        return table.setdefault((model, names), Question(model=model, attributes=names, declared=names in asked))

    for run in runs:
        for row in run.figures.sets if run.figures else ():
            entry = of(row.model, row.attributes)
            if not run.counts_as_fresh or run.level is None:
                entry.explored.append(run.name)
                continue
            verdict = _settled(row, run.level)
            newer = verdict == entry.verdict == "not_determined" and row.seeds >= (entry.row or row).seeds
            if entry.run is None or newer or VERDICTS.index(verdict) < VERDICTS.index(entry.verdict):
                entry.verdict, entry.run, entry.finding = verdict, run.name, row.finding
                entry.level, entry.row = run.level, row
    for model in {model for model, _ in table} or {"M1"}:
        for one in asked:
            of(model, one)
    return sorted(table.values(), key=lambda q: (q.model, not q.declared, len(q.attributes), q.attributes))
