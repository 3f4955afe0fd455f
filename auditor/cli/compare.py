"""``audit compare`` and ``audit watch``: what two runs, or a series of them, found differently."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from auditor.cli import frame
from auditor.cli.common import find_intact, put
from auditor.cli.frame import option
from auditor.cli.screen import say
from auditor.core.errors import ConfigError
from auditor.core.record import read
from auditor.core.types import names
from auditor.store.folder import RunFolder

WORSE, CHANGED = ("worse", "new", "never"), ("changed", "never")  # what --fail-on takes
APART = (
    "{} holds tables of recorded outcomes (impact), the other run a test of a model (treatment): they measure "
    "different things, and no figure of one can be laid beside one of the other."
)
UNLIKE = (
    "{} is a search over rows of a table, {} an audit of texts: they asked different questions, and no figure of one "
    "can be laid beside one of the other. Compare two runs of one kind."
)


def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="The run before: a folder, its name, or latest.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The run after.")],
    format: frame.PageFormat = "terminal",
    out: Annotated[Path | None, option("out", help="Write it here instead of printing it.")] = None,
    full: frame.Full = False,
    fail_on: Annotated[
        str | None, option("fail_on", help="Exit 1 on: worse, new (or both, comma-separated); never.")
    ] = None,
) -> int:
    """Compare two runs: plans first, then rates (better, worse) and findings (new, gone)."""
    from auditor.contrib.ll144 import other_tables as of_outcomes
    from auditor.measure import comparison as of_texts
    from auditor.report import side_by_side
    from auditor.run import observed, outcome_folder
    from auditor.tables import tabular_compare as of_rows

    words = names(fail_on or ())
    for word in words:
        if word not in WORSE:
            raise ConfigError(f"--fail-on of compare takes {', '.join(WORSE)}; got {word!r}.")
    paths = [find_intact(run, outcomes=True) for run in (before, after)]
    folders = [RunFolder.open(path) for path in paths]
    if _both(paths, [outcome_folder.is_outcomes(folder.record()) for folder in folders], APART):
        if set(words) - {"never"}:
            raise ConfigError("--fail-on worse, new: tables of recorded outcomes hold no findings.")
        tables = of_outcomes.compare(*(read(folder.record()) for folder in folders))
        put(dataclasses.asdict(tables), format, side_by_side.tables(tables), out, full=full)
        return 0
    if _both(paths, [folder.plan.get("kind") == "tabular" for folder in folders], UNLIKE):
        rows = of_rows.compare(*map(of_rows.read, paths))
        put(dataclasses.asdict(rows), format, side_by_side.searches(rows), out, full=full)
        # Which slices are kept hangs on the others, so a new one is none that was not there before.
        fresh = any(e.kind != "slice" and e.fate in words for e in rows.entries)
        return int(fresh or any(s.change in words for s in rows.scores))
    sides = [observed.side(path) for path in paths]
    texts = of_texts.compare(*sides)
    document = side_by_side.runs(texts, [side.record for side in sides])
    put(dataclasses.asdict(texts), format, document, out, full=full)
    return int(any(r.change in words for r in texts.rates) or any(f.fate in words for f in texts.findings))


def _both(paths: Sequence[Path], are: Sequence[bool], why: str) -> bool:
    """Whether both runs are of one kind; where only one is, they cannot be compared."""
    if any(are) and not all(are):
        raise ConfigError(why.format(paths[are.index(True)], paths[are.index(False)]))
    return all(are)


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of the runs (--out of audit run --plan F).")
    ],
    format: frame.PageFormat = "terminal",
    out: Annotated[Path | None, option("out", help="Write it here instead of printing it.")] = None,
    fail_on: Annotated[str | None, option("fail_on", help="Exit 1 on: changed (at the last run); never.")] = None,
) -> int:
    """Follow the runs in DIR that have one plan: figures by date, and changes found at any number of looks."""
    from auditor.report import studies
    from auditor.run.watch import watch as follow

    if fail_on is not None and fail_on not in CHANGED:
        raise ConfigError(f"--fail-on of watch takes {', '.join(CHANGED)}; got {fail_on!r}.")
    series = follow(folder)
    put(series.as_record(), format, studies.watched(series), out)
    if fail_on is None:
        return 0
    holds = fail_on == "changed" and series.changed
    sys.stdout.flush()
    say(f"--fail-on: {fail_on}: {'holds' if holds else 'does not hold'}", to=sys.stderr)
    return int(holds)
