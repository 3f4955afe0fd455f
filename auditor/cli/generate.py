"""``audit generate``: cases.jsonl and prompts.jsonl, no model calls."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from auditor.cli import common
from auditor.cli.common import invoke
from auditor.cli.options import takes
from auditor.cli.progress import Draw
from auditor.core.plan import Plan, resolve

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@takes("generate", Plan)
def generate(format: common.Format = "terminal", config: common.Config = None, **options: object) -> int:
    """Write cases and prompts to a run folder, to be answered by any gateway and judged with `audit score`."""
    from auditor.run.result import generate as make

    common.check_format(format)
    path = make(resolve(options, config), observe=Draw())
    counts = _counts(path)
    if format == "json":
        sys.stdout.write(json.dumps({"run": str(path), **counts}) + "\n")
    else:
        told = ", ".join(f"{n:,} {name}" for name, n in counts.items())
        common.say(
            path,
            f"  {told}",
            "  cases.jsonl    originals and variants, discarded ones with the reason",
            '  prompts.jsonl  what to ask; answer each line as {"prompt_sha256": …, "replicate": 0, "output": …}',
            f"Then: audit score {common.quoted(path)} --responses FILE",
        )
    return 0


def _counts(path: Path) -> dict[str, int]:
    """Texts, variants, and those that the check of variants keeps; placebos and further wordings apart."""
    from auditor.core.types import is_beside, text_of
    from auditor.store.folder import RunFolder

    texts: set[str] = set()
    variants = valid = placebos = 0
    for case, checks in RunFolder.open(path).cases():
        texts.add(text_of(case.id))
        for variant in case.variants:
            kept = variant.id not in checks or checks[variant.id].status != "invalid"
            placebos += kept and is_beside(variant)
            variants += not is_beside(variant)
            valid += kept and not is_beside(variant)
    return {"texts": len(texts), "variants": variants, "valid": valid, "placebos": placebos}


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "generate", argv)
