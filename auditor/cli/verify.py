"""``audit verify RUN``: check a run folder's hashes and hash chains."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from auditor.cli import common
from auditor.cli.common import find_run, invoke

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def verify(run: common.RunArgument) -> int:
    """Check that plan, record and journals of RUN are as they were written; say what was checked. Exit 1 if not."""
    from auditor.store.verify import checked, verify_folder

    path = find_run(run, outcomes=True)
    problems = verify_folder(path)
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    if not problems:
        sys.stdout.write(f"{path}: nothing that was checked was changed.\n")
        sys.stdout.writelines(f"{line}\n" for line in checked(path))
        sys.stdout.write(_code(path))
        sys.stdout.write(_input(path))
    return 1 if problems else 0


def _code(path: Path) -> str:
    """Whether the code that is installed is that of the run: no fault of the folder, and good to know."""
    from auditor.provenance import code_sha256
    from auditor.store.folder import RunFolder

    folder = RunFolder.open(path)
    told = (folder.record().get("provenance") or {}).get("code") if folder.has_record() else None
    if not told:
        return "The run names no code of the tool.\n"
    then, now = told.get("sha256"), code_sha256()["sha256"]
    return (
        f"The code of the tool was that which is installed here (SHA-256 {then}).\n"
        if then == now
        else f"The code of the tool was not that which is installed here: SHA-256 {then} then, {now} now.\n"
    )


def _input(path: Path) -> str:
    """For tables of recorded outcomes: whether the file that they were computed from is the one that was read."""
    from auditor.pipeline import outcomes
    from auditor.store.folder import RunFolder

    folder = RunFolder.open(path)
    if not folder.has_record() or not outcomes.is_outcomes(folder.plan):
        return ""
    file = Path(folder.plan["plan"]["data"])
    same = outcomes.still_there(folder.record(), file)
    if same is None:
        return f"{file}, the file of outcomes, is not at hand here.\n"
    return f"{file} is {'the' if same else 'NOT the'} file of outcomes that was read.\n"


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "verify", argv)
