"""What the exchange formats share: a finding in one sentence, its key, its waiver, its level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from auditor.core import waivers
from auditor.report import claimed, unread, words

Data = Mapping[str, Any]
SHOWN = ("shown", "shown_for_words")
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
    finding: Data
    waiver: Data | None

    @property
    def counts(self) -> bool:
        """Whether it is shown and not waived: what ``--fail-on shown`` counts."""
        return self.verdict == "shown" and self.waiver is None


def rows(record: Data) -> list[Row]:
    """Every finding, the shown ones first, then in the order of the record."""
    waived = waivers.of(record)
    noun, claims = noun_of(record), claimed.index(record)
    made = [
        Row(
            id=str(f["id"]),
            key=waivers.key(f),
            code=str(f["code"]),
            kind=str(f["kind"]),
            verdict=str(f["verdict"]),
            model=str(f["model"]),
            format=str(f.get("format") or ""),
            place=words.direction(f.get("directions") or ()) or words.attributes(f.get("attributes") or ()),
            sentence=sentence(record, f, noun, claims),
            finding=f,
            waiver=waived.get(str(f["id"])),
        )
        for f in record.get("findings", ())
    ]
    return sorted(made, key=lambda row: ORDER.get(row.verdict, 4))


def sentence(record: Data, finding: Data, noun: str, claims: claimed.Claims) -> str:
    """What was measured, with interval and noise."""
    if not is_tabular(record):
        told = claimed.told(record, finding, claims)
        return claimed.sentence(told) if told is not None else words.claim_sentence(finding, noun)
    text = f"{finding['model']}: {finding.get('text') or finding['code']}"
    rate = finding.get("rate")
    return (f"{text}: {words.rate_text(rate)}" if rate else text).rstrip(".") + "."


def is_tabular(record: Data) -> bool:
    """Whether the record is of a search over rows."""
    return bool(record.get("spec", {}).get("kind") == "tabular")


def noun_of(record: Data) -> str:
    """What the answers of the run are called: label, score, decision."""
    return "label" if is_tabular(record) else words.noun(record)


def title(record: Data) -> str:
    """The heading of a report."""
    spec = record.get("spec", {})
    if is_tabular(record):
        return f"Tabular bias test report: {spec.get('data') or spec.get('task') or 'rows'}"
    return f"Bias test report: {spec.get('task', 'unnamed task')}"


def counted(record: Data) -> dict[str, int]:
    """How many findings carry each verdict, and how many of the shown ones are waived."""
    out = dict.fromkeys(ORDER, 0)
    for finding in record.get("findings", ()):
        out[finding["verdict"]] = out.get(finding["verdict"], 0) + 1
    waived = waivers.of(record)
    shown = (f["id"] for f in record.get("findings", ()) if f["verdict"] == "shown")
    return out | {"waived": sum(id in waived for id in shown)}


def partial(record: Data) -> str:
    """Why the run is partial, as a sentence; empty for a complete one."""
    if record.get("status") != "partial":
        return ""
    reason = str(record.get("status_reason") or "no reason was recorded").rstrip(".")
    figures = "" if unread.variant(record) else " The figures cover what was answered until then."
    return f"Partial run: {reason}.{figures}"


def estimates(record: Data) -> Iterator[Data]:
    """Every estimate of the record."""
    yield from record.get("estimates", ())


def summary(record: Data) -> str:
    """How many findings carry which verdict, in one sentence."""
    n = counted(record)
    parts = [f"{n[name]} {words.VERDICTS[name]}" for name in ORDER if n.get(name)]
    found = words.plural(sum(n[name] for name in ORDER), "finding")
    text = f"{found}" + (f": {', '.join(parts)}" if parts else "")
    one = sum((f["kind"], f["verdict"]) == ("hidden", "shown") for f in record.get("findings", ()))
    more = [f"{one} of the shown about one text, not about a rate"] if one else []
    more += [f"{n['waived']} of the shown waived"] if n["waived"] else []
    return f"{text} ({'; '.join(more)})." if more else f"{text}."
