"""The run record of a tabular search: estimates, findings with their verdicts, finds as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.core.counting import plural, verb
from auditor.core.shown import csv_text
from auditor.core.types import ClaimVerdict, Finding, digest
from auditor.tables.given import bins_note, within
from auditor.tables.result import Score, TabularResult, plain
from auditor.tables.schema import Schema
from auditor.tables.schemafile import dump
from auditor.tables.slices import Slices
from auditor.tables.wald import NOTE

FEWEST = 10  # rows below which a score is called neither shown nor bounded
NAMES = {
    "apparent_causal": "apparent causal score",
    "apparent_group": "apparent group score",
    "discriminatory_share": "share of cases whose label changes with a change",
}


def sections(schema: Schema, result: TabularResult, model: str, delta: float | None) -> dict[str, Any]:
    """The parts of ``run.json`` that follow from a result: counts, estimates, findings and ``tabular``.

    Parameters
    ----------
    model : str
        The spec that was asked.
    delta : float, optional
        The largest score that counts as bounded.
    """
    section = result.to_record()
    if note := bins_note(schema):
        section["notes"].append(note)
    scores = (*section["scores"], *section["minimal_sets"])
    return {
        "counts": dict(section["counts"]),
        "estimates": [_estimate(model, score) for score in scores],
        "findings": [_finding(model, delta, schema, result, i, s) for i, s in enumerate(_claims(result), 1)],
        "tabular": section | {"schema": described(schema)},
    }


def described(schema: Schema) -> dict[str, Any]:
    """What a report says about a schema."""
    return {
        "name": schema.name,
        "columns": schema.d,
        "protected": list(schema.protected),
        "binned": [c.name for c in schema.columns if c.kind == "binned"],
        "rows_in_domain": str(schema.size),
        "cases_in_domain": str(schema.cases),
        "constraints": [c.text for c in schema.constraints],
        "sha256": digest(dump(schema)),
    }


def finds_csv(schema: Schema, result: TabularResult) -> str:
    """The distinct discriminatory cases as CSV, without the protected columns: given rows first, as they are."""
    index = schema.free_index.tolist()
    rows: list[list[Any]] = [[schema.names[i] for i in index]]
    for found in (result.found_given, result.found):
        if found is not None:
            holds, codes = within(schema, found)
            rows += [[holds.columns[i].raw(row[i]) for i in index] for row in codes.tolist()]
    return csv_text(rows)


def _estimate(model: str, score: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": score["name"],
        "model": model,
        "format": "",
        "attributes": list(score["columns"]),
        "directions": None,
        "kind": None,
        "estimate": score["estimate"],
        "population": score["population"],
    }


def slice_findings(model: str, schema: Schema, found: Slices, first: int) -> list[dict[str, Any]]:
    """The slices that are shown, as findings numbered from ``first``."""
    result = []
    for number, one in enumerate(found.shown, first):
        where = " and ".join(f"{name} = {value}" for name, value in one.where)
        finding = Finding(
            id=f"T{number}",
            kind="claim",
            code="tabular-slice",
            model=model,
            attributes=schema.protected,
            verdict="shown",
            rate=one.estimate,
            p_adjusted=one.p,
            text=f"the label of {one.changes:,} of {plural(one.n, 'row')} with {where} changes, {found.population}",
            notes=(
                f"{found.tested:,} slices were looked at; the interval holds for all of them together at "
                f"{found.level * 100:g} %",
                f"among all other rows the share is {one.rest:.2%}",
            ),
        )
        result.append(dict(plain(finding)))
    return result


def _claims(result: TabularResult) -> list[Score | None]:
    """What findings are made of: every score, and None for the finds of a directed search, which have no rate."""
    claims: list[Score | None] = [*result.scores, *result.minimal_sets]
    return claims if result.sampling == "iid" else [*claims, None]


def _finding(
    model: str, delta: float | None, schema: Schema, result: TabularResult, number: int, score: Score | None
) -> dict[str, Any]:
    """One claim with its verdict: shown, bounded below δ, or not determined."""
    found = result.counts["discriminatory"]
    if score is None:
        finding = Finding(
            id=f"T{number}",
            kind="claim",
            code="tabular-finds",
            model=model,
            attributes=schema.protected,
            verdict="shown" if found else "not_determined",
            text=f"{plural(found, 'distinct case')} {verb(found, 'was', 'were')} found whose label "
            f"changes with {', '.join(schema.protected)}",
            notes=("searched for, not sampled: the number says nothing about how often this happens",),
        )
    else:
        rate = score.estimate
        valid = NOTE not in rate.note  # the paper's own rule has no interval that a verdict could rest on
        shown = rate.low > 0
        bounded = delta is not None and rate.high < delta
        verdict: ClaimVerdict = "bounded" if bounded else "shown" if shown else "not_determined"
        few = rate.n < FEWEST and not rate.method.startswith("enumeration")
        if few:
            verdict = "not_determined"
        finding = Finding(
            id=f"T{number}",
            kind="claim",
            code=f"tabular-{score.name.replace('_', '-')}",
            model=model,
            attributes=score.columns,
            verdict=verdict if valid else "not_tested",
            rate=rate,
            text=f"{NAMES.get(score.name, score.name + ' score')} of {', '.join(score.columns)}, {score.population}",
            notes=(f"{plural(rate.n, 'row')}: fewer than {FEWEST} support no statement",) if few else (),
        )
    return dict(plain(finding))
