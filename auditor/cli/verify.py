"""``audit verify RUN``: check a run folder's hashes and hash chains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.cli import common
from auditor.cli.common import find_run, invoke, say

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def verify(
    run: common.RunArgument,
    head: Annotated[
        str | None, typer.Option("--head", help="The head that was noted elsewhere when the run ended.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign the head with this Ed25519 key (PEM) into RUN; extra sign.")
    ] = None,
    signed_by: Annotated[
        Path | None,
        typer.Option("--signed-by", help="The public key (PEM) that must have signed the head; extra sign."),
    ] = None,
) -> int:
    """Check that plan, record, journals and report of RUN are as they were written; say what was checked.

    Exit 1 where something was changed.
    """
    from auditor.store import signature
    from auditor.store.verify import LIMITS, checked, compare_head, ends_of, verify_folder

    path = find_run(run, outcomes=True)
    problems = verify_folder(path)
    if head is not None and not problems:
        problems = compare_head(path, head)
    if not problems and sign is not None:
        say(f"Signed: {signature.sign(path, sign)}")
    signed: list[str] = []
    if not problems:
        problems, signed = signature.check(path, signed_by)
    say(*problems)
    if problems:
        for n, end in enumerate(ends_of(path), 1):
            say(f"End {n} in the register: {end.time}, {end.status or 'no status'}.")
        return 1
    say(f"{path}: nothing that was checked was changed.", *checked(path), *signed, *_code(path), *_input(path))
    say(*_head(path, head), *LIMITS)
    return 0


def _head(path: Path, given: str | None) -> list[str]:
    from auditor.core.provenance import head
    from auditor.store.folder import RunFolder

    folder = RunFolder.open(path)
    if not folder.has_record():
        return ["The run did not end, so it has no head yet."]
    told = "which is the one given" if given is not None else "compared with none (--head)"
    return [f"Head: {head(folder.record())}, {told}."]


def _code(path: Path) -> list[str]:
    """Whether the code that is installed is that of the run: no fault of the folder, and good to know."""
    from auditor.core.provenance import code_sha256
    from auditor.store.folder import RunFolder

    folder = RunFolder.open(path)
    told = (folder.record().get("provenance") or {}).get("code") if folder.has_record() else None
    if not told:
        return ["The run names no code of the tool."]
    then, now = told.get("sha256"), code_sha256()["sha256"]
    return [
        f"The code of the tool was that which is installed here (SHA-256 {then})."
        if then == now
        else f"The code of the tool was not that which is installed here: SHA-256 {then} then, {now} now."
    ]


def _input(path: Path) -> list[str]:
    """For tables of recorded outcomes: whether the file that they were computed from is the one that was read."""
    from auditor.run import outcomes
    from auditor.store.folder import RunFolder

    folder = RunFolder.open(path)
    if not folder.has_record() or not outcomes.is_outcomes(folder.plan):
        return []
    file = Path(folder.plan["plan"]["data"])
    same = outcomes.still_there(folder.record(), file)
    if same is None:
        return [f"{file}, the file of outcomes, is not at hand here."]
    return [f"{file} is {'the' if same else 'NOT the'} file of outcomes that was read."]


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "verify", argv)
