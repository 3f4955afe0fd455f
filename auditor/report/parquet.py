"""Every verdict as one Parquet table."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from auditor.core.errors import MissingDependency
from auditor.core.protocols import Renderer
from auditor.core.record import Plain, RunRecord, read
from auditor.core.types import Variant, Verdict
from auditor.report import cards, diff


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

    name = "parquet.v1"
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
        told = read(record)
        rows = [_row(verdict, evidence) for verdict in self.verdicts]
        step = pa.struct([("attribute", pa.string()), ("source", pa.string()), ("target", pa.string())])
        schema = pa.schema(
            [
                ("case_id", pa.string()),
                ("variant_id", pa.string()),
                ("model", pa.string()),
                ("format", pa.string()),
                ("arm", pa.string()),
                ("order", pa.int32()),
                ("attributes", pa.list_(pa.string())),
                ("directions", pa.list_(step)),
                ("outcome", pa.string()),
                ("hidden", pa.bool_()),
                ("original_output", pa.string()),
                ("variant_output", pa.string()),
                ("distance", pa.float64()),
                ("reason", pa.string()),
                ("original_text", pa.string()),
                ("variant_text", pa.string()),
            ],
            metadata={"run": str(told.id), "tool_version": str(told.tool_version)},
        )
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), file, compression="zstd")
        return file.getvalue()


def _row(verdict: Verdict, evidence: object) -> dict[str, object]:
    case, variant = _texts(verdict, evidence)
    steps = variant.directions if variant is not None else ()
    return {
        "case_id": verdict.case_id,
        "variant_id": verdict.variant_id,
        "model": verdict.model,
        "format": verdict.format,
        "arm": "edited" if verdict.order else "placebo",
        "order": verdict.order,
        "attributes": list(verdict.attributes),
        "directions": [{"attribute": a, "source": s, "target": t} for a, s, t in steps],
        "outcome": verdict.outcome,
        "hidden": verdict.hidden,
        "original_output": _encodable(verdict.original_output),
        "variant_output": _encodable(verdict.variant_output),
        "distance": verdict.distance,
        "reason": _encodable(verdict.reason),
        "original_text": None if case is None else _encodable(diff.as_text(case.original.input)),
        "variant_text": None if variant is None else _encodable(diff.as_text(variant.input)),
    }


def _texts(verdict: Verdict, evidence: object) -> tuple[Any, Variant | None]:
    if evidence is None:
        return None, None
    case, variant, _ = cards.look_up(evidence, verdict.variant_id)
    return case, variant


def _encodable(text: str | None) -> str | None:
    """Lone surrogates, which no UTF-8 column holds, become escapes."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode("utf-8")
