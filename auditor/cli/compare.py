"""``audit compare``: two runs side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from auditor.cli import frame
from auditor.cli.frame import option
from auditor.cli.run_folders import find_intact
from auditor.cli.screen import put
from auditor.core.errors import ConfigError
from auditor.core.types import names
from auditor.store.folder import RunFolder

WORSE = ("worse", "new", "never")  # what --fail-on takes
OUTCOMES = (
    "{} holds tables of recorded outcomes: audit compare is for runs of a model. Read both tables: "
    "audit report RUN --format csv"
)
UNLIKE = (
    "{} is a search over rows of a table, {} an audit of texts. They asked different questions, so their figures "
    "cannot be compared. Compare two runs of one kind."
)


@frame.argument("runs", "RUN…", "Two runs, before and after: folders, names, or latest.", nargs=-1, required=True)
@frame.page
@frame.out(help="Write it here instead of printing it.")
@frame.full
@option("fail_on", help="Exit 1 on: worse, new (or both, with a comma); never.")
def compare(*, runs: Sequence[Path], format: str, out: Path | None, full: bool, fail_on: str | None) -> int:
    """Compare two runs: plans first, then rates (better, worse) and findings (new, gone)."""
    if len(runs) != 2:
        raise ConfigError("audit compare takes two runs: BEFORE AFTER. Of a series, compare the last two.")
    from auditor.measure import comparison as of_texts
    from auditor.report import side_by_side
    from auditor.run import observed, outcome_folder
    from auditor.tables.tabular_record import compared as of_rows

    words = names(fail_on or ())
    for word in words:
        if word not in WORSE:
            raise ConfigError(f"--fail-on takes {', '.join(WORSE)}; got {word!r}.")
    paths = [find_intact(run, outcomes=True) for run in runs]
    folders = [RunFolder.open(path) for path in paths]
    for path, folder in zip(paths, folders, strict=True):
        if outcome_folder.is_outcomes(folder.record()):
            raise ConfigError(OUTCOMES.format(path))
    rows = [folder.plan.get("kind") == "tabular" for folder in folders]
    if any(rows) and not all(rows):
        raise ConfigError(UNLIKE.format(paths[rows.index(True)], paths[rows.index(False)]))
    if all(rows):
        compared = of_rows(*(folder.run() for folder in folders))
        document = side_by_side.runs(compared)
    else:
        sides = [observed.side(path) for path in paths]
        compared = of_texts.compare(*sides)
        document = side_by_side.runs(compared, [side.record for side in sides])
    put(dataclasses.asdict(compared), format, document, out, full=full)
    return int(any(r.change in words for r in compared.rates) or any(f.fate in words for f in compared.findings))
