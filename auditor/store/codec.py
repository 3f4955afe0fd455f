"""Values to and from the plain records of a run folder; the field names are the run folder contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.core.types import Case, Check, Edit, Input, Message, Prompt, Response, Usage, Variant, Verdict

Record = dict[str, Any]


def edit_record(edit: Edit) -> Record:
    """One edit as plain data."""
    return {
        "attribute": edit.attribute,
        "kind": edit.kind,
        "source_group": edit.source_group,
        "target_group": edit.target_group,
        "source": edit.source,
        "target": edit.target,
        "where": edit.where if isinstance(edit.where, str) else list(edit.where),
    }


def case_record(case: Case, checks: Mapping[str, Check]) -> Record:
    """One line of ``cases.jsonl``.

    Only what a check found invalid is ``valid: false``. A variant without a check has ``check`` None and the
    reason that none was run; one that a check could not decide has ``status`` "unknown".
    """
    return {
        "id": case.id,
        "suite": case.suite,
        "sampling": case.sampling,
        "label": case.label,
        "original": {
            "id": case.original.id,
            "input": _input_record(case.original.input),
            "groups": dict(case.original.groups),
        },
        "variants": [_variant_record(variant, checks.get(variant.id)) for variant in case.variants],
    }


def _variant_record(variant: Variant, check: Check | None) -> Record:
    record: Record = {
        "id": variant.id,
        "input": _input_record(variant.input),
        "order": variant.order,
        "groups": dict(variant.groups),
        "edits": [edit_record(edit) for edit in variant.edits],
    }
    if check is None:
        return record | {"valid": True, "reason": "no validity check was run", "check": None}
    record |= {"valid": check.status != "invalid", "reason": check.reason, "check": check.check}
    if check.status == "unknown":
        record["status"] = "unknown"
    return record


def _input_record(value: Input) -> Any:
    return value if isinstance(value, str) else dict(value)


def case_value(record: Mapping[str, Any]) -> Case:
    """The case of one line of ``cases.jsonl``."""
    return Case(
        id=record["id"],
        suite=record["suite"],
        sampling=record["sampling"],
        label=record.get("label"),
        original=_variant_value(record["original"]),
        variants=tuple(_variant_value(variant) for variant in record["variants"]),
    )


def _variant_value(record: Mapping[str, Any]) -> Variant:
    return Variant(
        id=record["id"],
        input=record["input"],
        groups=record.get("groups", {}),
        edits=tuple(_edit_value(edit) for edit in record.get("edits", ())),
    )


def _edit_value(record: Mapping[str, Any]) -> Edit:
    where = record["where"]
    return Edit(
        attribute=record["attribute"],
        kind=record["kind"],
        source_group=record["source_group"],
        target_group=record["target_group"],
        source=record["source"],
        target=record["target"],
        where=where if isinstance(where, str) else (where[0], where[1]),
    )


def check_values(record: Mapping[str, Any]) -> dict[str, Check]:
    """The checks of one line of ``cases.jsonl``; variants that no check saw are left out."""
    checks = {}
    for variant in record["variants"]:
        if variant.get("check") is None:
            continue
        status: Any = variant.get("status") or ("valid" if variant["valid"] else "invalid")
        checks[variant["id"]] = Check(
            variant_id=variant["id"], check=variant["check"], status=status, reason=variant["reason"]
        )
    return checks


def prompt_record(variant_id: str, prompt: Prompt) -> Record:
    """One line of ``prompts.jsonl``."""
    return {
        "variant_id": variant_id,
        "format": prompt.format,
        "prompt_sha256": prompt.sha256,
        **prompt.payload(),
    }


def prompt_value(record: Mapping[str, Any]) -> tuple[str, Prompt]:
    """Variant id and prompt of one line of ``prompts.jsonl``."""
    messages = record.get("messages")
    return record["variant_id"], Prompt(
        format=record["format"],
        sha256=record["prompt_sha256"],
        text=record.get("input"),
        messages=None if messages is None else tuple(Message(**message) for message in messages),
    )


def usage_record(usage: Usage) -> Record:
    """Tokens of one call as plain data."""
    return {"tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out}


def response_record(response: Response) -> Record:
    """One line of ``responses.jsonl``: it holds ``output`` or ``error``, never both."""
    usage = response.usage
    record: Record = {
        "variant_id": response.variant_id,
        "prompt_sha256": response.prompt_sha256,
        "format": response.format,
        "replicate": response.replicate,
        "scores": None if response.scores is None else dict(response.scores),
        "cached": response.cached,
        "latency_s": response.latency_s,
        "usage": None if usage is None else usage_record(usage),
        "cost_usd": response.cost_usd,
        "model": response.model,
        "model_reported": response.model_reported,
    }
    if response.cut_off:
        record["cut_off"] = True
    if response.error is None:
        record["output"] = response.output
        if response.detail:  # of a redacted run: what the output was
            record["output_sha256"] = response.detail
    else:
        record |= {"error": response.error, "detail": response.detail}
    return record


def response_value(record: Mapping[str, Any]) -> Response:
    """The response of one line of ``responses.jsonl``."""
    usage = record.get("usage")
    return Response(
        variant_id=record["variant_id"],
        prompt_sha256=record["prompt_sha256"],
        format=record["format"],
        replicate=record["replicate"],
        output=record.get("output"),
        error=record.get("error"),
        detail=record.get("detail") or record.get("output_sha256", ""),
        scores=record.get("scores"),
        cached=record.get("cached", False),
        latency_s=record.get("latency_s", 0.0),
        usage=None if usage is None else Usage(**usage),
        cost_usd=record.get("cost_usd"),
        model=record.get("model", ""),
        model_reported=record.get("model_reported"),
        cut_off=record.get("cut_off", False),
    )


def verdict_record(verdict: Verdict) -> Record:
    """One line of ``verdicts.jsonl``."""
    return {
        "case_id": verdict.case_id,
        "variant_id": verdict.variant_id,
        "order": verdict.order,
        "attributes": list(verdict.attributes),
        "outcome": verdict.outcome,
        "hidden": verdict.hidden,
        "original_output": verdict.original_output,
        "variant_output": verdict.variant_output,
        "distance": verdict.distance,
        "reason": verdict.reason,
        "model": verdict.model,
        "format": verdict.format,
    }


def verdict_value(record: Mapping[str, Any]) -> Verdict:
    """The verdict of one line of ``verdicts.jsonl``."""
    return Verdict(
        case_id=record["case_id"],
        variant_id=record["variant_id"],
        order=record["order"],
        attributes=tuple(record["attributes"]),
        outcome=record["outcome"],
        hidden=record["hidden"],
        original_output=record["original_output"],
        variant_output=record["variant_output"],
        distance=record["distance"],
        reason=record["reason"],
        model=record.get("model", ""),
        format=record.get("format", ""),
    )
