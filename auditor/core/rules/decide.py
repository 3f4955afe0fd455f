"""Whether a rule holds for a run record, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.core.errors import ConfigError
from auditor.core.record import NamedEstimate, Plain, RunRecord, read
from auditor.core.rules.syntax import CALLS, OPS, SCORES, Count, Join, Not, Rate, Rule, parse
from auditor.core.types import Estimate, Finding

ENDS = {"value": "", "low": "lower end of ", "high": "upper end of "}
PRIMARY = ("violation_rate", "causal")  # what "rate" is in a record of texts, and of rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """One part of a rule that holds: in words, and the ids of the findings behind it."""

    text: str
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Whether the rule holds, and the parts of it that made it so."""

    holds: bool
    matches: tuple[Match, ...] = ()


def evaluate(rule: Rule | str, record: Plain | RunRecord) -> Outcome:
    """Whether ``rule`` holds for a run record, and why.

    Parts about rates that the run did not measure are unknown; the rule is decided without them where it
    can be, and else a `ConfigError` lists what was measured.

    Examples
    --------
    >>> evaluate("shown", {"findings": [], "estimates": [], "counts": {}}).holds
    False
    """
    rule = parse(rule) if isinstance(rule, str) else rule
    evaluation = _Evaluation(read(record))
    holds = evaluation.value(rule)
    if holds is None:
        raise ConfigError(
            f"--fail-on cannot be decided: {', '.join(dict.fromkeys(evaluation.missing))} was not measured in this "
            f"run. Measured: {'; '.join(evaluation.measured()) or 'nothing'}.{evaluation.why()}"
        )
    return Outcome(holds=holds, matches=tuple(dict.fromkeys(evaluation.matches)) if holds else ())


class _Evaluation:
    """One evaluation: collects what held and what was missing."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.waived = record.waived
        self.matches: list[Match] = []
        self.missing: list[str] = []
        self.rows = record.tabular  # of a search over rows
        names = {e.name for e in record.estimates}
        self.claimed: dict[tuple[str, tuple[str, ...]], list[Finding]] = defaultdict(list)
        for finding in record.findings:
            if finding.kind == "claim" and not finding.code.startswith("REF"):
                self.claimed[finding.model, finding.attributes].append(finding)
        self.primary = next((name for name in PRIMARY if name in names), PRIMARY[self.rows is not None])

    def value(self, rule: Rule, *, wanted: bool = True) -> bool | None:
        """True, False or None for unknown (Kleene's logic); ``wanted`` is what a match would be."""
        if isinstance(rule, Not):
            part = self.value(rule.part, wanted=not wanted)
            return None if part is None else not part
        if isinstance(rule, Join):
            mark = len(self.matches)
            values = [self.value(part, wanted=wanted) for part in rule.parts]
            decides = rule.word == "or"
            known = decides if decides in values else None if None in values else not decides
            if known is not wanted:
                del self.matches[mark:]
            return known
        return self.count(rule, wanted) if isinstance(rule, Count) else self.rate(rule, wanted)

    def keep(self, holds: bool, wanted: bool, text: str, findings: tuple[str, ...] = ()) -> None:
        if holds == wanted:
            self.matches.append(Match(text=text, findings=findings))

    def count(self, rule: Count, wanted: bool) -> bool | None:
        ids: tuple[str, ...] = ()
        counts = self.record.counts
        if rule.name == "never":
            return False
        if rule.name == "partial":
            holds = self.record.status == "partial"
            self.keep(holds, wanted, "the run is partial" if holds else "the run is complete")
            return holds
        if rule.name == "hidden" and self.rows is not None:
            sets = self.rows.lattice
            n: float | None = sets[-1].hidden if len(sets) > 1 else None
            what = "rows whose label only several columns together change (hidden)"
        elif rule.name in ("shown", "hidden"):
            ids = tuple(self.shown(hidden=rule.name == "hidden"))
            n = len(ids)
            what = "hidden findings shown" if rule.name == "hidden" else "findings shown"
        elif rule.name == "violations":
            by_order = counts.violations
            n = None if by_order is None else sum(by_order.values())
            what = "variants with another answer"
            if self.rows is not None and self.rows.mode != "search":  # a search counts sets of columns
                n, what = counts.discriminatory, "cases whose label changes"
        else:
            n, what = counts.lost.get(rule.name), f"{rule.name} answers"
        if n is None:
            self.missing.append(rule.name)
            return None
        if rule.share:
            asked = counts.rows_asked or (counts.fresh or 0) + (counts.cached or 0)
            share = n / asked if asked else 0.0
            holds = OPS[rule.op](share, rule.number)
            self.keep(holds, wanted, f"{what}: {n:g} of {asked} ({100 * share:.3g} %)")
            return holds
        holds = OPS[rule.op](n, rule.number)
        self.keep(holds, wanted, f"{what}: {n:g}", ids)
        return holds

    def shown(self, *, hidden: bool) -> list[str]:
        return [
            f.id
            for f in self.record.findings
            if f.verdict == "shown" and f.id not in self.waived and (f.kind == "hidden" or not hidden)
        ]

    def rate(self, rule: Rate, wanted: bool) -> bool | None:
        rows = [e for e in self.record.estimates if self.about(e, rule)]
        if not rows:
            self.missing.append(rule.text)
            return None
        holds = False
        for row in rows:
            claims = self.claims(row)
            if claims and all(id in self.waived for id in claims):
                continue
            value = _end(row.estimate, rule.end)
            if OPS[rule.op](value, rule.number):
                holds = True
                subject = ", ".join(part for part in (row.model, row.format) if part)
                place = _place(row.attributes, row.directions)
                name = next((k for k, v in SCORES.items() if v == row.name), "rate")
                text = f"{ENDS[rule.end]}{name}({place}) of {subject}: {100 * value:.3g} %"
                text += f" ({row.population})" if row.population else ""
                self.keep(True, wanted, text, tuple(claims))
        if not holds:
            self.keep(False, wanted, f"not {rule.text} {rule.op} {rule.number:g}")
        return holds

    def about(self, row: NamedEstimate, rule: Rate) -> bool:
        if row.name != SCORES.get(rule.score, self.primary) or row.kind:
            return False
        if rule.directions:
            return tuple(sorted(row.directions or ())) == rule.directions
        if row.directions:
            return False
        attributes = tuple(sorted(row.attributes))
        return bool(attributes) if rule.attributes is None else attributes == rule.attributes

    def claims(self, row: NamedEstimate) -> list[str]:
        """The findings that make a claim of this rate."""
        return [
            f.id
            for f in self.claimed.get((row.model, row.attributes), ())
            if (self.rows is None or f.code == f"tabular-{row.name.replace('_', '-')}")
            and (f.format or "") in ("", row.format or "")
            and f.directions == (row.directions or ())
        ]

    def measured(self) -> list[str]:
        names = {v: k for k, v in SCORES.items()} if self.rows is not None else {self.primary: "rate"}
        rows = (e for e in self.record.estimates if e.name in names)
        rows = (e for e in rows if not e.directions and not e.kind)
        return sorted({f"{names[e.name]}({_place(e.attributes, None)})" for e in rows})

    def why(self) -> str:
        """Why a search over rows has no such figure, and what to write instead; empty for texts."""
        if self.rows is None:
            return ""
        reasons = []
        if any("(" in text for text in self.missing) and self.rows.sampling == "directed":
            reasons.append(
                f"The cases of {self.rows.method} were searched for, and are no sample: they have no rate. "
                "Use shown or violations > N, or measure scores with --method themis"
            )
        if "hidden" in self.missing:
            reasons.append("Hidden rows take two protected columns or more, and a mode that judges their sets")
        if any(name in self.missing for name in CALLS):
            reasons.append(f"{', '.join(CALLS)} are counted where a language model or a server is asked")
        return "".join(f" {text}." for text in reasons)


def _end(estimate: Estimate, name: str) -> float:
    """The value of an estimate, or an end of its interval."""
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}[name]


def _place(attributes: Sequence[str], directions: Sequence[Sequence[str]] | None) -> str:
    if directions:
        return " x ".join(f"{a}: {source} -> {target}" for a, source, target in directions)
    return " x ".join(attributes) or "all"
