"""``audit replay RUN ID``: ask the prompts of one finding again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from auditor.cli import common, consent
from auditor.cli.common import find_text_run, invoke
from auditor.cli.options import option
from auditor.cli.progress import Draw
from auditor.cli.show import Id
from auditor.core.counting import plural
from auditor.core.plan import Plan

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def replay(
    run: common.RunArgument,
    id: Id,
    replicates: Annotated[int, option("replicates", help="Times each prompt is asked.")] = 5,
    format: common.Format = "terminal",
    model: consent.Models = None,
    base_url: consent.Address = None,
    yes: consent.Yes = False,
) -> int:
    """Ask the prompts of one finding of RUN again; the cache is not used."""
    from auditor.run.result import replay as ask
    from auditor.store.folder import RunFolder

    common.check_format(format)
    replicates = Plan(replicates=replicates).replicates or replicates
    path = find_text_run(run, "replay")
    spec = RunFolder.open(path).record().get("spec") or {}
    again = f"replay {common.quoted(path)} {common.quoted(id)}"
    named = consent.Named.of_texts(spec)
    named.consent(path, again=again, yes=yes, given=model or (), base_url=base_url)
    found = ask(path, id, replicates=replicates, observe=Draw())
    return common.print_as(format, found, lambda found: _lines(found, replicates))


def _lines(found: dict[str, Any], replicates: int) -> list[str]:
    from auditor.report.words import visible as clean

    lines = [f"{found['id']} on {found['model']}: {plural(replicates, 'new answer')} to each prompt", ""]
    for cell in found["cells"]:
        edits = "; ".join(f"{e['attribute']}: {e['source']} → {e['target']}" for e in cell["edits"]) or "no edit"
        lines.append(f"{cell['role']:<10}{clean(edits)}")
        for when in ("before", "now"):
            told = ", ".join(f"{clean(label)} {n}×" for label, n in cell[when].items()) or "no answer"
            lines.append(f"{'':<10}{when:<8}{told}")
    return lines


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "replay", argv)
