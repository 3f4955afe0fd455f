"""The claims of a record as lines of a table: effect, noise, placebo, verdict."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.core.record import RunRecord
from auditor.core.record.parts import Control
from auditor.core.types import Finding
from auditor.report import claimed, tabular, view, words
from auditor.report.compliance_gates import kind_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One line of the table of claims."""

    id: str
    what: str
    model: str
    effect: str
    texts: int | None
    noise: str
    placebo: str
    verdict: str
    p: str
    notes: tuple[str, ...]
    sentence: str


def claims(record: RunRecord, noun: str) -> tuple[Claim, ...]:
    """Every claim of the record, in its order."""
    index = claimed.index(record)
    return tuple(_claim(record, f, noun, index) for f in record.findings if f.kind == "claim")


def _claim(record: RunRecord, f: Finding, noun: str, index: claimed.Claims) -> Claim:
    rate = f.rate
    subject = view.Subject(model=f.model, format=f.format, name=f.model)
    attributes = f.attributes
    directions = f.directions
    what = words.direction(directions) or words.attributes(attributes)
    p = f.p_adjusted
    rows = kind_of(record) == "rows"
    if rows:
        what = _score(record, f, what)
    noise = (
        Control.of(f.noise)
        if f.noise is not None
        else None
        if rows
        else view.noise_of(record, subject, attributes)
    )
    told, shown, n = claimed.told(record, f, index), effect(f), rate.n if rate else None
    if told is not None:
        what, n = told.subject, told.claim.texts
        shown = "too wide" if told.effect.vague else f"{told.effect.text} {told.effect.unit}"
    placebo = None if directions or rows else view.find(record, "placebo_rate", subject, attributes)
    return Claim(
        id=f.id,
        what=what,
        model=f.model,
        effect=shown,
        texts=n,
        noise="not applicable" if rows and noise is None else view.noise_text(noise),
        placebo="–" if rows or directions else words.interval(placebo),
        verdict=f.verdict,
        p="–" if p is None else "<0.0001" if p < 0.0001 else f"{p:.2g}",
        notes=f.notes,
        sentence=claimed.sentence(told)
        if told is not None
        else words.sentence(f.text)
        if f.text
        else words.claim_sentence(f, noun),
    )


def _score(record: RunRecord, finding: Finding, columns: str) -> str:
    """Which score of which columns on which rows a claim of tabular search is about."""
    key = finding.code.removeprefix("tabular-").replace("-", "_")
    about = (s for s in record.rows.measured if (s.name, s.columns) == (key, finding.attributes))
    of = next((s.population for s in about if s.estimate == finding.rate), "")
    return f"{tabular.SCORES.get(key, key)}: {columns}" + (f" ({of})" if of else "")


def effect(finding: Finding) -> str:
    """The figure of a claim. A signed difference is told in points, a rate in percent."""
    rate = finding.rate
    if rate is None:
        return "not measured"
    value, low, high = (100 * x for x in (rate.value, rate.low, rate.high))
    if low < 0 or finding.code.startswith(("DIR", "REF")):
        low, high = max(low, -100.0), min(high, 100.0)  # shares cannot differ by more
        return f"{value:+.1f} points ({low:+.1f} to {high:+.1f})"
    if finding.code.startswith("tabular-"):  # of several levels, so each is named
        return words.rate_text(rate)
    return words.interval(rate)


def own(claim: Finding) -> bool:
    """Whether a finding is a claim about an attribute set, and not about a direction in it or refusals."""
    return not claim.directions and not claim.code.startswith(("DIR", "REF"))
