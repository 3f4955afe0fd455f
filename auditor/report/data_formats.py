"""Rows of data in the formats of others: CSV, Parquet, Every Eval Ever, AI Verify."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from auditor.core.errors import ConfigError, MissingDependency
from auditor.core.protocols import Renderer
from auditor.core.record import Asked, Claim, NamedEstimate, Plain, RunRecord, read
from auditor.core.shown import csv_text
from auditor.core.types import Estimate, Finding, Verdict
from auditor.measure.rates import ARMS
from auditor.report import cards, claimed
from auditor.report import compliance_facts as facts
from auditor.report import compliance_frameworks as frameworks
from auditor.report import compliance_page as page

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

    name = "csv.v1"
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
            "p_value": f.p_value,
            "p_adjusted": f.p_adjusted,
            "exemplars": " ".join(f.exemplars),
            "text": f.text or row.sentence,
            "notes": " | ".join(f.notes),
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


# -- Every Eval Ever (arXiv 2606.14516) -------------------------------------------------------------------

SCHEMA = "0.3.0"
MEASURED = {
    "net": "{scale} of {label}, {group} minus {reference}, in the same texts; 0: no difference.",
    "refusal": "{scale} of refusals, {group} minus {reference}, in the same texts; 0: no difference.",
    "instability": "{scale} of answers that change with the group, beyond placebo edits of the same texts.",
    "interaction": "What a joint change does to the {scale} of {label} beyond the sum of its parts; 0: nothing.",
}


class EveryEvalEver(Renderer):
    """Claims in the exchange format of evaluation results: JSON lines, a record for each model.

    Every claim that has an estimate is a result. The format wants to know whether less is better. Of a difference,
    neither is: it says that less is, and the description that 0 means no difference.
    """

    name = "every-eval-ever.v1"
    suffix = ".every-eval-ever.jsonl"

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the lines.

        Raises
        ------
        ConfigError
            A run of this kind makes no claims.
        """
        record = read(record)
        if record.claims is None:
            raise ConfigError("every-eval-ever holds claims, and this run makes no claims")
        lines = (_evaluation(record, name, asked) for name, asked in record.models.items())
        return "".join(json.dumps(line, sort_keys=True, allow_nan=False) + "\n" for line in lines)


def _evaluation(record: RunRecord, model: str, asked: Asked) -> dict[str, object]:
    ended = record.provenance.ended or record.provenance.finished or record.provenance.started or ""
    stamp = str(int(datetime.fromisoformat(ended).timestamp())) if ended else "0"
    id = model.replace(":", "/")
    filled = record.responsible.fields if record.responsible else {}
    claims = [c for c in record.claims or () if c.model == model and c.estimate is not None]
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"auditor-{record.spec.task}/{id}/{stamp}",
        "evaluation_timestamp": record.provenance.started or ended,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "LLM bias auditor",
            "source_type": "evaluation_run",
            "source_organization_name": filled.get("organisation") or "not stated",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "llm-bias-auditor",
            "version": record.tool_version or "unknown",
            "additional_details": {"run": record.id or "", "status": record.status},
        },
        "model_info": {
            "name": model,
            "id": id,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "fingerprint": asked.fingerprint or "",
                "reported": ", ".join(asked.reported),
            },
        },
        "evaluation_results": [_claim(record, claim) for claim in claims],
    }


def _claim(record: RunRecord, claim: Claim) -> dict[str, object]:
    group, reference = (*claim.groups, "", "")[:2]
    between = f"{claim.attribute}: {group}/{reference}" if group else claim.attribute
    seeds = record.provenance.seeds
    bounded = claim.scale == "share" and claim.family != "interaction"
    interval = {"lower": claim.low, "upper": claim.high, "confidence_level": 0.95}
    known = claim.low is not None and claim.high is not None
    what = MEASURED[claim.family].format(
        scale=claim.scale.replace("_", " "), label=claim.label or "the answer", group=group, reference=reference
    )
    details = {
        "verdict": claim.verdict,
        "why": claim.why,
        "words": claim.words,
        "format": claim.format,
        "estimate for these words": claim.words_estimate,
        "low for these words": claim.words_low,
        "high for these words": claim.words_high,
        "p adjusted": claim.p_adjusted,
    }
    return {
        "evaluation_name": " ".join(filter(None, (claim.family, between, claim.label))),
        "source_data": {
            "dataset_name": seeds.source or f"embedded texts of {record.spec.task}",
            "source_type": "other",
            "additional_details": _strings({"sha256": seeds.sha256, "texts": seeds.n}),
        },
        "metric_config": {
            "evaluation_description": what[0].upper() + what[1:],
            "lower_is_better": True,
            "score_type": "continuous",
            "min_score": -1.0 if bounded else "-Infinity",
            "max_score": 1.0 if bounded else "Infinity",
        },
        "score_details": {
            "score": claim.estimate,
            "details": _strings(details),
            "uncertainty": {"num_samples": claim.texts} | ({"confidence_interval": interval} if known else {}),
        },
    }


def _strings(values: Mapping[str, object]) -> dict[str, str]:
    """What is known, as the format's further details must be: text."""
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


# -- AI Verify --------------------------------------------------------------------------------------------

HOSTED = ("openai", "langchain", "http")


class AiVerifyJson(Renderer):
    """``--format ai-verify-json``: a run as a test result of AI Verify, our figures inside ``output``.

    The schema (`common/schemas/aiverify.testresult.schema.json` in the foundation's repository) asks for ``gid``,
    ``cid``, ``start_time``, ``time_taken``, ``test_arguments`` and ``output``, and leaves ``output`` to each test.
    It has no place for intervals or for what was not tested: both stand in ``output``.
    """

    name = "ai-verify-json.v1"
    suffix = ".ai-verify.json"

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the test result as JSON, ASCII only.

        Raises
        ------
        ConfigError
            The record is of ``audit ll144``: no model was tested.
        """
        record = read(record)
        if facts.kind_of(record) == "outcomes":
            raise ConfigError("--format ai-verify-json needs a run of a model; outcomes of people are no test of one")
        return json.dumps(ai_verify(record), indent=2, sort_keys=True, allow_nan=False) + "\n"


def ai_verify(record: RunRecord) -> dict[str, object]:
    """The test result as plain data."""
    spec, made, seeds = record.spec, record.provenance, record.provenance.seeds
    rows = facts.kind_of(record) == "rows"
    dataset = f"urn:llm-bias-auditor:run:{record.id or 'unknown'}"
    if seeds.sha256 or rows:  # the texts or rows by hash where it is known
        dataset = f"urn:sha256:{seeds.sha256 or record.rows.schema.sha256}"
    models = list(record.models or spec.models)
    has, absent = facts.known(record, None), facts.absent(record, None)
    crossings = frameworks.cross(frameworks.load("ai-verify"), has, absent)
    by_kind = {kind: [f for f in record.findings if f.kind == kind] for kind in ("claim", "hidden")}
    return {
        "gid": "llm-bias-auditor",
        "cid": "counterfactual-rows" if rows else "counterfactual-texts",
        "version": record.tool_version or "0",
        "start_time": made.started or "",
        "time_taken": made.seconds or 0.0,
        "test_arguments": {
            "testDataset": dataset,
            "mode": "api" if any(m.split(":")[0] in HOSTED for m in models) else "upload",
            "modelType": "regression" if spec.kind == "score" else "classification",
            "algorithmArgs": record.raw.get("spec") or {},
        },
        "output": {
            "run": record.id,
            "status": record.status,
            "models": models,
            "claims": [
                _attributed(f)
                | {
                    "directions": [list(d) for d in f.directions],
                    "rate": None if f.rate is None else dataclasses.asdict(f.rate),
                    "p_adjusted": f.p_adjusted,
                }
                for f in by_kind["claim"]
            ],
            "hidden": [_attributed(f) for f in by_kind["hidden"]],
            "gates": [{"name": g.name, "state": g.state, "result": g.result} for g in facts.gates(record)],
            "deviations": [dict(zip(("what", "planned", "actual"), d, strict=True)) for d in page.deviations(record)],
            "not_tested": list(facts.not_tested(record, None)),
            "checklist": [{"item": c.clause.ref, "level": c.level, "lacking": list(c.lacking)} for c in crossings],
            "hashes": dict(page.hashes(record)),
        },
        "artifacts": ["report.ai-verify.html"],
    }


def _attributed(f: Finding) -> dict[str, object]:
    return {"id": f.id, "model": f.model, "attributes": list(f.attributes), "verdict": f.verdict}
