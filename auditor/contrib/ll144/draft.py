"""The record of one computation as plain data; reports are made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import compress
from typing import Any

from auditor._version import __version__
from auditor.contrib.ll144.applicants import Bound, Breakdown, Cell, Person, Source, breakdown, tally
from auditor.contrib.ll144.decisions import STATED
from auditor.contrib.ll144.decisions import Settings as Settings
from auditor.core.errors import ConfigError
from auditor.measure.impact import Row, median_rule, ratio_text, round_half_up

SCHEMA_VERSION = "1.0"
TIES = Fraction(1, 10)
FACTS = ("n", "x", "reference", "excluded_reference", "steady_reference", "omnibus_p")  # of an `ImpactTable`


def from_people(people: Sequence[Person], source: Source, settings: Settings, *, mode: str) -> dict[str, Any]:
    """Compute the record from applicants; ``mode`` is selection, scoring or classification (groups are outcomes)."""
    without = 0
    if mode != "classification":
        without = sum(p.outcome is None for p in people)
        people = [p for p in people if p.outcome is not None]
        if not people:
            raise ConfigError("nobody in the data has an outcome: the column is empty in every line")
    rule, hits = None, [mode != "classification" and bool(p.outcome) for p in people]
    if mode == "scoring":
        known = any if settings.partly_known else all
        every = [p for p in people if settings.unknown_in_median or known((p.sex, p.race))] or people
        rule = median_rule([p.outcome for p in every if p.outcome is not None])
        hits = [p.outcome is not None and p.outcome > rule.median for p in people]
    parts: dict[str, Breakdown] = {}
    for name in sorted({p.group for p in people if p.group is not None}):
        own = [p.group == name for p in people]
        if mode == "classification":
            cells = tally(people, own)
        else:
            cells = tally(compress(people, own), compress(hits, own))
        parts[name or "(empty)"] = _compute(cells, settings)
    record = _record(mode, source, settings, _compute(tally(people, hits), settings), parts)
    record["data"]["without_outcome"] = without
    if rule is not None:
        record["ll144"] |= {
            "median": float(rule.median),
            "median_population": "all" if settings.unknown_in_median else "known",
            "median_n": rule.n,
            "overall_count": f"{rule.above}/{rule.n}",
            "overall_rate": rule.above / rule.n,
            "tie_share": rule.tied / rule.n,
            "tie_count": f"{rule.tied}/{rule.n}",
        }
        if Fraction(rule.tied, rule.n) > TIES:
            tied, above = Fraction(100 * rule.tied, rule.n), Fraction(100 * rule.above, rule.n)
            record["warnings"].append(
                f"{round_half_up(tied, 1)} % of the scores are tied at the median; only strictly higher scores "
                f"count, so the overall scoring rate is {round_half_up(above, 1)} %, not about half. The ratios "
                "depend on where the scale has its steps."
            )
    return record


def from_counts(cells: Sequence[Cell], source: Source, settings: Settings, *, mode: str) -> dict[str, Any]:
    """Compute the record from counts; with scores the median cannot be checked."""
    record = _record(mode, source, settings, _compute(cells, settings))
    record["data"]["aggregated"] = True
    if mode == "scoring":
        record["warnings"].append(
            "Counts above the median were given, not scores: the median itself and ties at it cannot be checked."
        )
    return record


def _compute(cells: Sequence[Cell], settings: Settings) -> Breakdown:
    return breakdown(cells, excluded=settings.excluded, partly_known=settings.partly_known)


def _record(
    mode: str, source: Source, settings: Settings, whole: Breakdown, parts: Mapping[str, Breakdown] | None = None
) -> dict[str, Any]:
    """Return the record of all people and of each group; of classes, groups alone have tables."""
    groups = [{"group": name, **_pool(part)} for name, part in (parts or {}).items()]
    warnings = [*whole.warnings, *(f"{name}: {w}" for name, part in (parts or {}).items() for w in part.warnings)]
    own = _pool(whole)
    if mode == "classification":
        own |= {"tables": None, "table_facts": None, "unknown_bounds": [], "unknown_bounds_reason": "see the groups"}
    if not settings.source:
        warnings.append(
            "Where the outcomes come from was not given (--source). Without it nobody can tell whether they "
            "are those of the system in question, and 5-303 asks for it in the published summary."
        )
    if settings.data_kind is None:
        warnings.append(
            "Whether these are historical or test data was not said (--data-kind historical or --data-kind "
            "test), and is taken for neither. The rule asks for historical data where there are enough (5-302)."
        )
    for column, value, n in source.unmapped:
        warnings.append(f"{n:,} with {column} = {value!r}: no category of the rule; counted as unknown.")
    warnings += _exclusions(settings, own, groups)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "ll144",
        "status": "draft",
        "tool": {"name": "llm-bias-auditor", "version": __version__},
        "data": {
            "file": source.file,
            "sha256": source.sha256,
            "rows": source.rows,
            "source": settings.source,
            "aggregated": False,
            "without_outcome": 0,
            "unmapped": [{"column": c, "value": v, "n": n} for c, v, n in source.unmapped],
        },
        "ll144": {
            "mode": mode,
            **settings.model_dump(mode="json", include=set(STATED)),
            "unknown_sex": whole.unknown_sex,
            "unknown_race_ethnicity": whole.unknown_race,
            "median": None,
            "median_population": None,
            "overall_rate": None,
            "tie_share": None,
            **own,
            "groups": groups,
        },
        "warnings": warnings,
    }


def _exclusions(settings: Settings, whole: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Refuse to leave out a category of 2 % or more; name small categories that were computed all the same."""
    rows = [row for pool in (whole, *groups) for table in (pool["tables"] or {}).values() for row in table]
    notes = []
    for category in settings.excluded:
        matching = [r for r in rows if r["category"] == category]
        if not matching:
            known = ", ".join(dict.fromkeys(r["category"] for r in rows))
            raise ConfigError(f"--exclude-below-2-percent: unknown category {category!r}. Known: {known}")
        large = [r for r in matching if r["n"] and not r["below_two_percent"]]
        if large and not groups:
            share = round_half_up(Fraction(str(100 * large[0]["share"])), 2)
            raise ConfigError(
                f"--exclude-below-2-percent: {category} is {share} % of the known records; only categories "
                "below 2 % may be left out (6 RCNY 5-301(d))"
            )
        if large:
            notes.append(f"{category} was left out of the ratios of every group; in some it is 2 % or more.")
    small = [r["category"] for r in rows if r["below_two_percent"] and not r["excluded"]]
    if small:
        notes.append(f"Below 2 % of the known records, computed all the same: {', '.join(dict.fromkeys(small))}.")
    return notes


def _pool(part: Breakdown) -> dict[str, Any]:
    """Return the tables of all people, or of a group."""
    return {
        "unknown_count": part.unknown,
        "tables": {name: [_row(row) for row in t.rows] for name, t in part.tables.items()},
        "table_facts": {
            name: {fact: getattr(t, fact) for fact in FACTS} | {"ir_ci_method": t.interval_method}
            for name, t in part.tables.items()
        },
        "unknown_bounds": [_bound(b) for b in part.bounds],
        "unknown_bounds_reason": part.bounds_reason,
    }


def _row(row: Row) -> dict[str, Any]:
    count, ratio = row.count, row.ratio
    return {
        "category": count.category,
        "n": count.n,
        "x": count.x,
        "rate": None if count.rate is None else float(count.rate),
        "rate_text": None if count.rate is None else f"{round_half_up(100 * count.rate, 1)} %",
        "impact_ratio": None if ratio is None else float(ratio),
        "impact_ratio_text": None if ratio is None else ratio_text(ratio),
        "impact_ratio_exact": None if ratio is None else f"{ratio.numerator}/{ratio.denominator}",
        "ratio_to_excluded_text": None if row.ratio_to_excluded is None else ratio_text(row.ratio_to_excluded),
        "ratio_to_steady_text": None if row.ratio_to_steady is None else ratio_text(row.ratio_to_steady),
        "ir_ci95": None if row.interval is None else list(row.interval),
        "reason": row.reason or None,
        "share": None if row.share is None else float(row.share),
        "below_two_percent": row.small,
        "excluded": row.justification is not None,
        "justification": row.justification,
        "below_four_fifths": row.below_four_fifths,
        "fisher_p": row.p,
        "fisher_p_holm": row.p_holm,
        "z": row.z,
        "one_person_flip": row.one_person_flip,
    }


def _bound(bound: Bound) -> dict[str, object]:
    texts = {"low_text": ratio_text(bound.low, 2), "high_text": ratio_text(bound.high, 2)}
    return {**asdict(bound), "low": float(bound.low), "high": float(bound.high), **texts}
