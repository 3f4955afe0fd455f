"""The run record of a tabular search: estimates, findings with their verdicts, finds as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from auditor.suites.tabular.result import Score, TabularResult, plain
from auditor.suites.tabular.schema import Schema
from auditor.suites.tabular.schemafile import dump
from auditor.types import Finding, digest


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
        "rows_in_domain": str(schema.size),
        "cases_in_domain": str(schema.cases),
        "constraints": [c.text for c in schema.constraints],
        "sha256": digest(dump(schema)),
    }


def finds_csv(schema: Schema, result: TabularResult) -> str:
    """The distinct discriminatory cases as CSV, without the protected columns."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    free = [schema.columns[i] for i in schema.free_index.tolist()]
    writer.writerow([c.name for c in free])
    if result.found is not None:
        for row in result.found[:, schema.free_index].tolist():
            writer.writerow([c.raw(code) for c, code in zip(free, row, strict=True)])
    return file.getvalue()


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
            text=f"{found:,} distinct cases were found whose label changes with {', '.join(schema.protected)}",
            notes=("searched for, not sampled: the number says nothing about how often this happens",),
        )
    else:
        rate = score.estimate
        shown = rate.low > 0 and not rate.note.startswith("not valid")
        bounded = delta is not None and rate.high < delta
        finding = Finding(
            id=f"T{number}",
            kind="claim",
            code=f"tabular-{score.name.replace('_', '-')}",
            model=model,
            attributes=score.columns,
            verdict="bounded" if bounded else "shown" if shown else "not_determined",
            rate=rate,
            text=f"{score.name} score of {', '.join(score.columns)}, {score.population}",
        )
    return dict(plain(finding))
