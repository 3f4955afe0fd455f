"""How help texts are laid out: options under headings, commands of a group with their whole first sentence."""

from __future__ import annotations

import types
from typing import Any

import typer

MANY = 15  # options; a command with more has them under headings
HEADINGS: dict[str, tuple[str, ...]] = {
    "What is asked, and of whom": (
        "task", "model", "base_url", "data", "text_column", "label_column", "id_column", "limit", "target",
        "favourable", "schema", "formats", "prompt_format", "judge", "embedding", "plan", "config", "trust_pickle",
    ),
    "How a server is asked": ("max_tokens", "temperature", "timeout_s", "reasoning_effort", "extra_body", "headers"),
    "What is changed": (
        "attributes", "groups", "protected", "order", "suite", "grammar", "generation", "dictionary", "scope", "who",
        "per_seed", "wordings", "carrier", "insertions", "gate", "test_discarded", "parser", "seed_source",
    ),
    "How it is measured": (
        "protocol", "replicates", "oracle", "epsilon", "reference", "tolerance", "delta", "until_decided", "seed",
        "strategy", "logprobs", "method", "mode", "measure", "confidence", "theta", "max_samples", "columns", "set_",
        "retrain", "max_evaluations", "profile", "distance", "distance_threshold", "distance_scale",
    ),
    "Limits, cost and speed": (
        "max_calls", "max_cost", "max_seconds", "price_in", "price_out", "dry_run", "yes", "concurrency", "batch",
        "engine", "jobs", "no_cache",
    ),
    "What comes out": ("out", "output", "format", "full", "fail_on", "journal", "redact", "slices"),
}  # fmt: skip
_HEADING = {name: heading for heading, names in HEADINGS.items() for name in names}


def laid_out(app: typer.Typer) -> Any:
    """The command of ``app``, with its help texts laid out."""
    command: Any = typer.main.get_command(app)
    for one in getattr(command, "commands", {}).values():
        if not one.short_help and one.help:
            one.short_help = " ".join(one.help.split("\n\n")[0].split())
        _set(one)
    _set(command)
    return command


def _set(command: Any) -> None:
    if len(command.params) > MANY:
        command.format_options = types.MethodType(_options, command)


def _options(command: Any, context: Any, formatter: Any) -> None:
    """Write the arguments, then the options under their headings."""
    rows: dict[str, list[tuple[str, str]]] = {
        "Arguments": [],
        **{heading: [] for heading in HEADINGS},
        "Further": [],
    }
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            argument = parameter.param_type_name == "argument"
            rows["Arguments" if argument else _HEADING.get(parameter.name, "Further")].append(record)
    for heading, mine in rows.items():
        if mine:
            with formatter.section(heading):
                formatter.write_dl(mine)
