"""Rows of data in the formats of others: CSV and Parquet."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Iterator
from typing import Any

from auditor.core.errors import MissingDependency
from auditor.core.protocols import Renderer
from auditor.core.record import NamedEstimate, Plain, RunRecord, read
from auditor.core.shown import csv_text
from auditor.core.types import Estimate, Finding, Verdict
from auditor.measure.rates import ARMS
from auditor.report import cards, claimed

# -- CSV --------------------------------------------------------------------------------------------------

COLUMNS = (
    "row", "id", "key", "name", "arm", "verdict", "waived", "model", "format", "attributes", "directions", "kind",
    "value", "low", "high", "level", "n", "n_skipped", "n_variants", "method", "p_value", "p_adjusted",
    "exemplars", "text", "notes",
)  # fmt: skip


class CsvReport(Renderer):
    """One row for each finding (``row`` = finding), each estimate, each figure of a suite; UTF-8 with a header.

    Shares are numbers in [0, 1]; what is missing is empty. A text that begins like a formula (``=``, ``+``,
    ``-``, ``@`` and their wide forms, also after white space or a separator) gets an apostrophe in front, and
    acting characters are made visible.
    """

    name = "csv"
    suffix = ".csv"

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the table."""
        lines = ([line.get(name) for name in COLUMNS] for line in _lines(read(record)))
        return csv_text([COLUMNS, *lines], newlines=False)


def _lines(record: RunRecord) -> Iterator[dict[str, object]]:
    for row in claimed.rows(record):
        f, waiver = row.finding, row.waiver
        yield {
            "row": "finding",
            "id": f.id,
            "key": row.key,
            "name": f.code,
            "arm": "edited",
            "verdict": f.verdict,
            "waived": f"until {waiver.expires}, {waiver.owner}: {waiver.reason}" if waiver is not None else "",
            **_place(f),
            **_figures(f.rate),
            "p_value": None if (p := claimed.tested_p(f)) is None else f.p_value,
            "p_adjusted": p,
            "exemplars": " ".join(f.exemplars),
            "text": f.text or row.sentence,
            "notes": " | ".join(row.notes),
        }
    for e in record.estimates:
        yield {
            "row": "estimate",
            "name": e.name,
            "arm": ARMS.get(e.name, "edited"),
            **_place(e),
            **_figures(e.estimate),
            "text": e.population,
            "notes": e.estimate.note,
        }
    for one in record.figures or ():
        yield {
            "row": "figure",
            "name": one.figure,
            **{name: getattr(one, name) for name in ("model", "format", "value", "low", "high")},
            "n": one.cases,
            "n_skipped": one.left_out,
            "text": one.what,
        }


def _place(entry: Finding | NamedEstimate) -> dict[str, object]:
    return {
        "model": entry.model,
        "format": entry.format,
        "kind": entry.kind,
        "attributes": " + ".join(entry.attributes),
        "directions": " + ".join(f"{a}: {source} > {target}" for a, source, target in entry.directions or ()),
    }


def _figures(estimate: Estimate | None) -> dict[str, object]:
    return {} if estimate is None else {k: v for k, v in dataclasses.asdict(estimate).items() if k != "note"}


# -- Parquet ----------------------------------------------------------------------------------------------


class ParquetReport(Renderer):
    """One row for each verdict: what was changed, both texts, both answers, the outcome.

    The texts are the very ones that were asked: a table is data, and is not made safe for a screen. The ``arm`` of a
    placebo variant is "placebo", of any other "edited"; the answer for the original stands in every row.
    Needs the extra ``parquet``.

    Parameters
    ----------
    verdicts : iterable of Verdict
        Those of the run.
    """

    name = "parquet"
    suffix = ".parquet"

    def __init__(self, verdicts: Iterable[Verdict] = ()) -> None:
        self.verdicts = verdicts

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> bytes:
        """Write the table.

        Raises
        ------
        MissingDependency
            pyarrow is not installed.
        """
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise MissingDependency("The Parquet table", "pyarrow", "parquet") from error
        step = pa.struct([(name, pa.string()) for name in ("attribute", "source", "target")])
        types = {
            "order": pa.int32(),
            "attributes": pa.list_(pa.string()),
            "directions": pa.list_(step),
            "hidden": pa.bool_(),
            "distance": pa.float64(),
        }
        plain = read(record)
        metadata = {"run": str(plain.id), "tool_version": str(plain.tool_version)}
        schema = pa.schema([(name, types.get(name, pa.string())) for name in FIELDS], metadata=metadata)
        rows = [dict(zip(FIELDS, _verdict(verdict, evidence), strict=True)) for verdict in self.verdicts]
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), file, compression="zstd")
        return file.getvalue()


FIELDS = (
    "case_id", "variant_id", "model", "format", "arm", "order", "attributes", "directions", "outcome", "hidden",
    "original_output", "variant_output", "distance", "reason", "original_text", "variant_text",
)  # fmt: skip


def _verdict(v: Verdict, evidence: object) -> Iterator[object]:
    """A value for each of `FIELDS`."""
    case, variant, _ = (None, None, "") if evidence is None else cards.look_up(evidence, v.variant_id)
    steps = variant.directions if variant is not None else ()
    yield from (v.case_id, v.variant_id, v.model, v.format, "edited" if v.order else "placebo", v.order)
    yield list(v.attributes)
    yield [{"attribute": a, "source": s, "target": t} for a, s, t in steps]
    yield from (v.outcome, v.hidden, _encodable(v.original_output), _encodable(v.variant_output))
    yield from (v.distance, _encodable(v.reason))
    yield None if case is None else _encodable(cards.as_text(case.original.input))
    yield None if variant is None else _encodable(cards.as_text(variant.input))


def _encodable(text: str | None) -> str | None:
    """Lone surrogates, which no UTF-8 column holds, become escapes."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode("utf-8")
