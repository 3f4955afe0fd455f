"""``audit compare``: two runs side by side, or several of one plan by date."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from auditor.cli import frame
from auditor.cli.frame import option
from auditor.cli.run_folders import find_intact
from auditor.cli.screen import put, say
from auditor.core.errors import ConfigError
from auditor.core.types import names
from auditor.store.folder import RunFolder

WORSE, CHANGED = ("worse", "new", "never"), ("changed", "never")  # what --fail-on takes
OUTCOMES = (
    "{} holds tables of recorded outcomes: audit compare is for runs of a model. Read both tables: "
    "audit report RUN --format csv"
)
UNLIKE = (
    "{} is a search over rows of a table, {} an audit of texts: they asked different questions, and no figure of one "
    "can be laid beside one of the other. Compare two runs of one kind."
)


@frame.argument(
    "runs",
    "RUN…",
    "Two runs, before and after: folders, names, or latest; or three and more of one plan, or the folder that holds "
    "them, to follow them by date.",
    nargs=-1,
    required=True,
)
@frame.page
@frame.out(help="Write it here instead of printing it.")
@frame.full
@option("fail_on", help="Exit 1 on: worse, new (or both, with a comma); of several runs: changed; never.")
def compare(*, runs: Sequence[Path], format: str, out: Path | None, full: bool, fail_on: str | None) -> int:
    """Compare two runs: plans first, then rates (better, worse) and findings (new, gone).

    Of one folder, or of three and more runs, those that have the plan of the last one are followed: figures by date,
    and changes found at any number of looks.
    """
    if len(runs) != 2:
        return _follow(runs, format, out, fail_on)
    from auditor.measure import comparison as of_texts
    from auditor.report import side_by_side
    from auditor.run import observed, outcome_folder
    from auditor.tables.tabular_record import compared as of_rows

    words = names(fail_on or ())
    for word in words:
        if word not in WORSE:
            raise ConfigError(f"--fail-on of two runs takes {', '.join(WORSE)}; got {word!r}.")
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


def _follow(runs: Sequence[Path], format: str, out: Path | None, fail_on: str | None) -> int:
    """Follow runs that have one plan."""
    from auditor.report import studies
    from auditor.run.watch import watch

    if fail_on is not None and fail_on not in CHANGED:
        raise ConfigError(f"--fail-on of several runs takes {', '.join(CHANGED)}; got {fail_on!r}.")
    series = watch(runs[0]) if len(runs) == 1 else watch(*(find_intact(run) for run in runs))
    put(series.as_record(), format, studies.watched(series), out)
    if fail_on is None:
        return 0
    holds = fail_on == "changed" and series.changed
    sys.stdout.flush()
    say(f"--fail-on: {fail_on}: {'holds' if holds else 'does not hold'}", to=sys.stderr)
    return int(holds)
