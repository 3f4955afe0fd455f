"""What version 0.3 took away: commands, options and values of options, each with what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "score": "use audit import --generated RUN ANSWERS",
    "replay": "use audit show RUN ID --again",
    "explain": "use audit show CODE",
    "watch": "use audit compare BEFORE AFTER on the last two runs",
    "groups": "read the differences between groups in audit report RUN --full",
    "models": "use audit list models",
    "plugins": "use audit list plugins",
    "tasks": "use audit list tasks",
    "dictionary": "use audit list dictionaries",
    "grammar": "use audit list grammars",
    "cache": "use audit list cache",
    "validity": "read variants in audit report RUN --format answers",
    "tabular resume": "use audit resume RUN",
    "list grammars coverage": "read Coverage in audit report RUN",
    "list grammars sample": "use audit generate --suite grammar --suite-option grammar=FILE --limit N",
    "list dictionaries show": "use audit list dictionaries ATTRIBUTE",
    "list cache clear": "use audit list cache --clear",
}
VALUES: Mapping[str, str] = {
    "--format every-eval-ever": "use --format json",
    "--format ai-verify-json": "use --format json",
    "--format inspect": "use --format answers",
    "--format parquet": "use --format answers",
    "--format answers-parquet": "use --format answers",
    "--with rubric": "write it into a file: --prompt FILE",
    "--with reasoning": "write it into a file: --prompt FILE",
    "--with few-shot": "give a task file with examples: --prompt FILE",
}
OPTIONS: Mapping[str, str] = {  # of commands that do not know them any more
    "--scores": "read the differences between groups in audit report RUN --full",
    "--insertions": "use --suite grammar or texts that name the attribute",
    "--rankings": "use audit import --map",
    "--section": "print the figures from audit report RUN --format json",
    "--planner": "use audit mcp: any client of the Model Context Protocol plans",
    "--planner-base-url": "use audit mcp: any client of the Model Context Protocol plans",
    "--planner-max-calls": "use audit mcp: any client of the Model Context Protocol plans",
    "--planner-max-cost": "use audit mcp: any client of the Model Context Protocol plans",
    "--strategy": "use --suite joint-first",
    "--scope": "every edit changes all words of a group in a text",
    "--read": "use audit report FOLDER",
    "--resume": "use audit resume FOLDER",
    "--mode": "use --theta to search sets of columns",
    "--columns": "use --column NAME=COLUMN, or of tables --protected NAME,NAME",
    "--seed-source": "sg starts from clusters of --data",
    "--distance": "for numbers give --distance-threshold",
    "--distance-scale": "use --distance-threshold, in the model's own units",
    "--published": "compare the ratios of audit ll144 --counts with the published ones",
    "--slices": "run audit tabular on the rows of a subgroup",
    "--retrain": "use audit augment RUN and train the model again yourself",
    "--profile": "give rows with --data: apparent scores are about them",
    "--text-column": "use --column text=COLUMN",
    "--label-column": "use --column label=COLUMN",
    "--id-column": "use --column id=COLUMN",
    "--source-column": "use --column source=COLUMN",
    "--messages": "use --column messages=ROLES",
    "--answer-path": "use --column answer=PATH",
    "--max-tokens": "use --server max-tokens=N",
    "--temperature": "use --server temperature=T",
    "--timeout": "use --server timeout=SECONDS",
    "--reasoning-effort": "use --server reasoning-effort=WORD",
    "--extra-body": "use --server extra-body=FILE",
    "--header": "use --server header=NAME=VARIABLE",
    "--logprobs": "use --server logprobs=yes",
    "--no-logprobs": "use --server logprobs=no",
    "--per-model": 'use --server "SPEC NAME=VALUE …"',
    "--price-in": "use --price IN,OUT",
    "--price-out": "use --price IN,OUT",
    "--grammar": "use --suite-option grammar=NAME",
    "--generation": "use --suite-option generation=prob or generation=rand",
    "--epsilon": "use --tolerance",
    "--embedding": "use --judge encoder:hf:NAME",
    "--engine": "use --jobs ray:N",
    "--base": "import the table with audit import --map: its `format` names the prompts",
    "--repeat": "--replicates N asks each prompt N times",
    "--sample": "use --limit N, on a file in random order",
}


def instead(option: str) -> str:
    """Return what to use instead of an option (``--max-tokens``), a key or a keyword (``max_tokens``), or ""."""
    flag = option if option.startswith("--") else f"--{option.replace('_', '-')}"
    flag = {"--timeout-s": "--timeout", "--headers": "--header"}.get(flag, flag)
    return f"{option} was removed in 0.3; {OPTIONS[flag]}." if flag in OPTIONS else ""
