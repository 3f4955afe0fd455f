"""What the exchange formats share: a finding in one sentence, its key, its waiver, its level."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.core import waivers
from auditor.core.record import RunRecord, Waived
from auditor.core.types import Finding
from auditor.report import cautions, claimed, words
from auditor.report.cards import Brief

ORDER = {"shown": 0, "shown_for_words": 1, "not_determined": 2, "bounded": 3, "not_tested": 4}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One finding as every exchange format shows it. The texts are not escaped."""

    id: str
    key: str
    code: str
    kind: str
    verdict: str
    model: str
    format: str
    place: str  # attributes or directions, in words
    sentence: str
    finding: Finding
    waiver: Waived | None
    example: Brief | None = None

    @property
    def counts(self) -> bool:
        """Whether it is shown and not waived: what ``--fail-on shown`` counts."""
        return self.verdict == "shown" and self.waiver is None


def rows(record: RunRecord) -> list[Row]:
    """Every finding, the shown ones first, then in the order of the record."""
    waived = waivers.of(record)
    noun, claims = noun_of(record), claimed.index(record)
    made = [
        Row(
            id=f.id,
            key=waivers.key(f),
            code=f.code,
            kind=f.kind,
            verdict=f.verdict,
            model=f.model,
            format=f.format,
            place=words.direction(f.directions) or words.attributes(f.attributes),
            sentence=sentence(record, f, noun, claims),
            finding=f,
            waiver=waived.get(f.id),
        )
        for f in record.findings
    ]
    return sorted(made, key=lambda row: ORDER.get(row.verdict, 4))


def sentence(record: RunRecord, finding: Finding, noun: str, claims: claimed.Claims) -> str:
    """What was measured, with interval and noise."""
    if not is_tabular(record):
        told = claimed.told(record, finding, claims)
        return claimed.sentence(told) if told is not None else words.claim_sentence(finding, noun)
    text = f"{finding.model}: {finding.text or finding.code}"
    rate = finding.rate
    return (f"{text}: {words.rate_text(rate)}" if rate else text).rstrip(".") + "."


def is_tabular(record: RunRecord) -> bool:
    """Whether the record is of a search over rows."""
    return record.spec.kind == "tabular"


def noun_of(record: RunRecord) -> str:
    """What the answers of the run are called: label, score, decision."""
    return "label" if is_tabular(record) else words.noun(record)


def title(record: RunRecord) -> str:
    """The heading of a report."""
    spec = record.spec
    if is_tabular(record):
        return f"Tabular bias test report: {spec.data or spec.task or 'rows'}"
    return f"Bias test report: {spec.task or 'unnamed task'}"


def counted(record: RunRecord) -> dict[str, int]:
    """How many findings carry each verdict, and how many of the shown ones are waived."""
    out = dict.fromkeys(ORDER, 0)
    for finding in record.findings:
        out[finding.verdict] = out.get(finding.verdict, 0) + 1
    waived = waivers.of(record)
    shown = (f.id for f in record.findings if f.verdict == "shown")
    return out | {"waived": sum(id in waived for id in shown)}


def partial(record: RunRecord) -> str:
    """Why the run is partial, as a sentence; empty for a complete one."""
    if record.status != "partial":
        return ""
    reason = (record.status_reason or "no reason was recorded").rstrip(".")
    figures = "" if cautions.variant(record) else " The figures cover what was answered until then."
    return f"Partial run: {reason}.{figures}"


def summary(record: RunRecord) -> str:
    """How many findings carry which verdict, in one sentence."""
    n = counted(record)
    parts = [f"{n[name]} {words.VERDICTS[name]}" for name in ORDER if n.get(name)]
    found = words.plural(sum(n[name] for name in ORDER), "finding")
    text = f"{found}" + (f": {', '.join(parts)}" if parts else "")
    one = sum((f.kind, f.verdict) == ("hidden", "shown") for f in record.findings)
    more = [f"{one} of the shown about one text, not about a rate"] if one else []
    more += [f"{n['waived']} of the shown waived"] if n["waived"] else []
    return f"{text} ({'; '.join(more)})." if more else f"{text}."
