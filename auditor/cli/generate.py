"""``audit generate``: cases.jsonl and prompts.jsonl, no model calls."""

from __future__ import annotations

import json
import sys

import typer

from auditor.cli import common
from auditor.cli.common import Draw, invoke, split

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def generate(
    task: common.Task = None,
    data: common.Data = None,
    text_column: common.TextColumn = None,
    label_column: common.LabelColumn = None,
    id_column: common.IdColumn = None,
    limit: common.Limit = None,
    attributes: common.Attributes = None,
    groups: common.Groups = None,
    order: common.Order = None,
    suite: common.Suite = None,
    grammar: common.Grammar = None,
    generation: common.Generation = None,
    dictionary: common.Dictionaries = None,
    scope: common.Scope = None,
    who: common.Who = None,
    per_seed: common.PerSeed = None,
    wordings: common.Wordings = None,
    carrier: common.Carrier = None,
    insertions: common.Insertions = False,
    gate: common.Gate = None,
    jobs: common.Jobs = None,
    formats: common.Formats = None,
    protocol: common.Protocol = None,
    seed: common.SeedOption = None,
    parser: common.ParserName = None,
    out: common.Out = None,
    format: common.Format = "terminal",
    config: common.Config = None,
) -> int:
    """Write cases and prompts to a run folder, to be answered by any gateway and judged with `audit score`."""
    from auditor.core.plan import resolve
    from auditor.run.result import generate as make

    common.check_format(format)
    plan = resolve(
        {
            "task": task,
            "data": data,
            "text_column": text_column,
            "label_column": label_column,
            "id_column": id_column,
            "limit": limit,
            "attributes": split(attributes),
            "groups": split(groups),
            "order": order,
            "suite": suite,
            "grammar": grammar,
            "generation": generation,
            "dictionaries": tuple(dictionary or ()),
            "scope": scope,
            "who": who,
            "per_seed": per_seed,
            "wordings": wordings,
            "carrier": split(carrier),
            "insertions": insertions or None,
            "gate": gate,
            "jobs": jobs,
            "formats": split(formats),
            "protocol": protocol,
            "seed": seed,
            "parser": parser,
            "out": out,
        },
        config,
    )
    path = make(plan, observe=Draw())
    if format == "json":
        sys.stdout.write(json.dumps({"run": str(path)}) + "\n")
    else:
        common.say(
            path,
            "  cases.jsonl    originals and variants, discarded ones with the reason",
            '  prompts.jsonl  what to ask; answer each line as {"prompt_sha256": …, "replicate": 0, "output": …}',
            f"Then: audit score {common.quoted(path)} --responses FILE",
        )
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "generate", argv)
