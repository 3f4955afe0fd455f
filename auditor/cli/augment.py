"""``audit augment RUN``: retraining data from the violations of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.cli import common
from auditor.cli.common import find_intact, invoke
from auditor.cli.options import option
from auditor.core.counting import plural

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def augment(
    run: common.RunArgument,
    out: Annotated[Path, option("out", help="Where the rows go: .jsonl, or .csv.")],
    top: Annotated[
        int | None,
        typer.Option("--top", help="Only cases with one of the N words with the highest rates (published: 5, 10)."),
    ] = None,
    share: Annotated[
        float | None, typer.Option("--share", help="Rows in percent of the training data (published: 0.25 to 10).")
    ] = None,
    train_rows: Annotated[
        int | None, typer.Option("--train-rows", help="Rows of the training data; with --share.")
    ] = None,
    model: Annotated[str | None, option("models", help="Whose violations (default: the first of the run).")] = None,
    seed: Annotated[int, option("seed")] = 7,
) -> int:
    """Write texts whose answer changed in RUN, with the label that both sides should get."""
    from auditor.report.words import visible as clean
    from auditor.run.augment import augment as collect
    from auditor.run.augment import write, write_rows
    from auditor.store.folder import RunFolder
    from auditor.tables.augment import augment_rows, described

    path = find_intact(run)
    if RunFolder.open(path).plan.get("kind") == "tabular":
        found_rows = augment_rows(path, share=share, train_rows=train_rows, seed=seed)
        write_rows(found_rows.columns, found_rows.rows, out)
        common.say(*described(found_rows, out))
        return 0
    path = common.find_text_run(run, "augment")
    with RunFolder.open(path) as folder:
        folder.require_texts("writing training texts")
        found = collect(folder, top=top, share=share, train_rows=train_rows, model=model, seed=seed)
    write(found.rows, out)
    lines = [f"{out}: {len(found.rows)} of {plural(found.available, 'text')} from the violations of {found.model}"]
    if found.tokens:
        lines.append(f"words: {', '.join(map(clean, found.tokens))}")
    if found.wanted is not None and found.wanted > found.available:
        lines.append(f"{found.wanted} were asked for; a longer run (--limit) finds more violations to draw from.")
    by_model = sum(row.label_source == "model" for row in found.rows)
    if by_model:
        lines.append(
            f"{by_model} labels are the model's own answers to the originals: look through them before training."
        )
    lines += [f"left out, {why}: {n}" for why, n in found.dropped.items()]
    common.say(*lines)
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "augment", argv)
