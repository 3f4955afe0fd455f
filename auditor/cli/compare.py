"""``audit compare A B``: what two runs found differently."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import common, pages
from auditor.cli.common import find_intact, invoke
from auditor.cli.options import option
from auditor.core.types import names

if TYPE_CHECKING:
    from auditor.measure.compared import RowsComparison, TablesComparison

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
FAIL_ON = ("worse", "new", "never")


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="The run before: a folder, its name, or latest.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The run after.")],
    format: pages.Format = "terminal",
    out: Annotated[Path | None, option("out", help="Write it here instead of printing it.")] = None,
    full: common.Full = False,
    fail_on: Annotated[
        str | None, option("fail_on", help="Exit 1 on: worse, new (or both, comma-separated); never.")
    ] = None,
) -> int:
    """Compare two runs: plans first, then rates (better, worse) and findings (new, gone)."""
    import dataclasses

    from auditor.core.errors import ConfigError
    from auditor.measure import compare as comparing
    from auditor.report import ll144_report, two_runs, two_searches
    from auditor.run import stored

    format = pages.checked(format)
    words = names(fail_on or ())
    for word in words:
        if word not in FAIL_ON:
            raise ConfigError(f"--fail-on of compare takes {', '.join(FAIL_ON)}; got {word!r}.")
    paths = [find_intact(run, outcomes=True) for run in (before, after)]
    tables = _tables(paths)
    if tables is not None:
        if set(words) - {"never"}:
            raise ConfigError("--fail-on worse, new: tables of recorded outcomes hold no findings.")
        pages.put(dataclasses.asdict(tables), format, ll144_report.compared(tables), out, full=full)
        return 0
    if (rows := _rows(paths)) is not None:
        pages.put(dataclasses.asdict(rows), format, two_searches.build(rows), out, full=full)
        worse = [s for s in rows.scores if s.change in words]
        # Which slices are kept hangs on the others, so a new one is none that was not there before.
        fresh = [e for e in rows.entries if e.kind != "slice" and e.fate in words]
        return 1 if worse or fresh else 0
    sides = [stored.side(path) for path in paths]
    found = comparing.compare(*sides)
    document = two_runs.build(found, [side.record for side in sides])
    pages.put(dataclasses.asdict(found), format, document, out, full=full)
    bad = [r for r in found.rates if r.change in words] + [f for f in found.findings if f.fate in words]
    return 1 if bad else 0


def _tables(paths: Sequence[Path]) -> TablesComparison | None:
    """The comparison of two sets of tables of recorded outcomes; None where neither run holds any."""
    from auditor.contrib.ll144 import compare as beside
    from auditor.core.errors import ConfigError
    from auditor.core.record import read
    from auditor.run import outcomes
    from auditor.store.folder import RunFolder

    records = [RunFolder.open(path).record() for path in paths]
    kinds = [outcomes.is_outcomes(record) for record in records]
    if not any(kinds):
        return None
    if not all(kinds):
        which = paths[kinds.index(True)]
        raise ConfigError(
            f"{which} holds tables of recorded outcomes (impact), the other run a test of a model (treatment): they "
            "measure different things, and no figure of one can be laid beside one of the other."
        )
    return beside.compare(*map(read, records))


def _rows(paths: Sequence[Path]) -> RowsComparison | None:
    """The comparison of two searches over rows; None where neither run is one."""
    from auditor.core.errors import ConfigError
    from auditor.store.folder import RunFolder
    from auditor.tables import compare as beside

    kinds = [RunFolder.open(path).plan.get("kind") == "tabular" for path in paths]
    if not any(kinds):
        return None
    if not all(kinds):
        rows, texts = (paths[kinds.index(kind)] for kind in (True, False))
        raise ConfigError(
            f"{rows} is a search over rows of a table, {texts} an audit of texts: they asked different questions, and "
            "no figure of one can be laid beside one of the other. Compare two runs of one kind."
        )
    return beside.compare(*map(beside.read, paths))


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "compare", argv)
