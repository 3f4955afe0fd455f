"""The answers of a run as a log of inspect_ai: one sample for each prompt, one epoch for each replicate."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from auditor.contrib.imports.mapping import Roles
from auditor.run.answers import COLUMNS, AnswerRow

VERSION = 2  # of the log format
SCORER = "audit"
WITHIN = "metadata."  # where the fields of a row stand in a sample


def log(record: Mapping[str, Any], rows: Iterable[AnswerRow]) -> str:
    """A log as JSON.

    Parameters
    ----------
    record : mapping
        Of the run.
    rows : iterable of AnswerRow
        Its answers.
    """
    samples = [_sample(row) for row in rows]
    provenance, spec = record["provenance"], record["spec"]
    ids = list(dict.fromkeys(sample["id"] for sample in samples))
    epochs = max((sample["epoch"] for sample in samples), default=1)
    models = list(record["models"])
    made = {
        "version": VERSION,
        "status": "success" if record["status"] == "complete" else "cancelled",
        "eval": {
            "eval_id": record["id"],
            "run_id": record["id"],
            "created": provenance["started"],
            "task": str(spec["task"]),
            "task_id": record["id"],
            "task_version": 0,
            "task_attribs": {},
            "task_args": {},
            "dataset": {"name": spec["task"], "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": models[0] if len(models) == 1 else ", ".join(models),
            "model_args": {},
            "config": {"epochs": epochs},
            "packages": {"llm-bias-auditor": record["tool_version"]},
            "scorers": [{"name": SCORER}],
        },
        "plan": {"name": "plan", "steps": []},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": []},
        "stats": {"started_at": provenance["started"], "completed_at": provenance["ended"], "model_usage": {}},
        "samples": samples,
    }
    return json.dumps(made, ensure_ascii=False) + "\n"


def roles(given: Roles) -> Roles:
    """The roles of a table of answers, for the samples of a log."""
    return given.model_copy(
        update={
            "text": tuple(WITHIN + name for name in given.text),
            "model": tuple(WITHIN + name for name in given.model),
            "format": tuple(WITHIN + name for name in given.format),
            "where": {WITHIN + name: values for name, values in given.where.items()},
            **{
                role: WITHIN + name
                for role in ("answer", "source", "edits", "version", "replicate", "status", "score")
                if (name := getattr(given, role)) is not None
            },
        }
    )


def _sample(row: AnswerRow) -> dict[str, Any]:
    said = "" if row.answer is None else str(row.answer)
    fields = {name: value for name, value in dataclasses.asdict(row).items() if name in COLUMNS}
    message = {"role": "assistant", "content": said}
    return {
        "id": f"{row.variant_id} {row.model} {row.format}",
        "epoch": row.replicate + 1,
        "input": row.changed_text,
        "target": "",
        "messages": [{"role": "user", "content": row.changed_text}, message],
        "output": {"model": row.model, "choices": [{"message": message, "stop_reason": "stop"}], "completion": said},
        "scores": {SCORER: {"value": said if row.answer is None else row.answer, "answer": said}},
        "metadata": fields,
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }
