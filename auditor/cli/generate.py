"""``audit generate``: cases.jsonl and prompts.jsonl, no model calls."""

from __future__ import annotations

import json
import sys

import typer

from auditor.cli import common
from auditor.cli.common import Draw, invoke
from auditor.cli.options import takes
from auditor.core.plan import Plan, resolve

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@takes("generate", Plan)
def generate(format: common.Format = "terminal", config: common.Config = None, **options: object) -> int:
    """Write cases and prompts to a run folder, to be answered by any gateway and judged with `audit score`."""
    from auditor.run.result import generate as make

    common.check_format(format)
    path = make(resolve(options, config), observe=Draw())
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
