"""``audit show`` and ``verify``: what is behind the findings of a run, asked again, and what codes mean."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from auditor.cli import frame, run_folders
from auditor.cli.frame import option, print_as, say, screen
from auditor.cli.run_folders import find_intact, find_run, find_text_run, with_waivers
from auditor.core import reading
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan
from auditor.core.record import code_sha256
from auditor.core.record import head as head_of
from auditor.core.shown import plural, quoted
from auditor.report.words import visible as clean
from auditor.store.folder import RunFolder
from auditor.store.integrity import LIMITS, check_signature, checked, compare_head, ends_of, verify_folder
from auditor.store.integrity import sign as sign_run


@frame.argument(
    "run", "RUN|CODE", "A run folder, its name under reports/, or latest; or a code or word of a report (codes: all)."
)
@frame.argument(
    "id", "[ID]", "A finding (F001), a variant or a case. Default: a list of findings.", required=False, type=str
)
@frame.switch("--again", help="Ask the prompts of ID again; the cache is not used.")
@option("replicates", default=5, help="With --again: times each prompt is asked (default 5).")
@frame.printed
@run_folders.models
@run_folders.address
@run_folders.yes
@frame.waivers
def show(
    *,
    run: Path,
    id: str | None,
    again: bool,
    replicates: int,
    format: str,
    model: tuple[str, ...],
    base_url: str | None,
    yes: bool,
    waivers: Path | None,
) -> int:
    """Show one finding, variant or case of RUN with prompts and answers, or ask it again; or explain a CODE."""
    from auditor.core import explain
    from auditor.report.terminal import list_findings, render_finding
    from auditor.run.free import opinion

    if again:
        if id is None:
            raise ConfigError(f"--again takes an ID. List them: audit show {quoted(run)}")
        from auditor.run.audit import replay

        path = find_text_run(run, "show --again")
        times = Plan(replicates=replicates).replicates or replicates
        named = run_folders.Named.of((RunFolder.open(path).record().get("spec") or {}) | {"max_calls": times})
        command = f"show {quoted(path)} {quoted(id)} --again"
        named.consent(path, again=command, yes=yes, named=model, base_url=base_url)
        answers = replay(path, id, replicates=times)
        return print_as(format, answers, _again(answers, times))
    if format != "terminal":
        raise ConfigError("--format json goes with --again. The whole run: audit report RUN --format json")
    word = str(run)
    if id is None and not run_folders.is_run(run) and (run.name == word or explain.every(word)):
        sys.stdout.write(explain.overview() if word == "codes" else explain.explain(word))
        return 0
    path = find_intact(run)
    record = with_waivers(RunFolder.open(path).run(), waivers)
    if id is None:
        sys.stdout.write(list_findings(record, **screen()))
        return 0
    if record.spec.kind == "tabular":
        from auditor.report.terminal import render_row_finding

        sys.stdout.write(render_row_finding(record, id, **screen()))
        return 0
    evidence = RunFolder.open(path).evidence()
    judged = partial(opinion, record, evidence)
    sys.stdout.write(render_finding(record, evidence, id, judged=judged, **screen()))
    return 0


@frame.run_argument
@frame.flag("--head", help="The head noted elsewhere when the run ended.")
@frame.file("--sign", help="Sign the head with this Ed25519 key (PEM) into RUN; extra sign.")
@frame.file("--signed-by", help="The public key (PEM) that must have signed the head; extra sign.")
def verify(*, run: Path, head: str | None, sign: Path | None, signed_by: Path | None) -> int:
    """Check that plan, record, journals and report of RUN are as they were written; say what was checked.

    Exit 1 where something was changed.
    """
    from auditor.agent.session import SESSION

    path = find_run(run, outcomes=True)
    if (path / SESSION).is_file():
        if head or sign or signed_by:
            raise ConfigError(
                f"Heads and signatures are those of runs; the runs of this session are in {path / 'runs'}."
            )
        from auditor.cli.agent import verify_session

        return verify_session(path)
    problems = verify_folder(path)
    if head is not None and not problems:
        problems = compare_head(path, head)
    if not problems and sign is not None:
        say(f"Signed: {sign_run(path, sign)}")
    signed: list[str] = []
    if not problems:
        problems, signed = check_signature(path, signed_by)
    say(*problems)
    if problems:
        for n, end in enumerate(ends_of(path), 1):
            say(f"End {n} in the register: {end.time}, {end.status or 'no status'}.")
        return 1
    folder = RunFolder.open(path)
    say(f"{path}: nothing that was checked was changed.", *checked(path), *signed, _code(folder), *_input(folder))
    say(_head(folder, head), *LIMITS)
    return 0


def _head(folder: RunFolder, noted: str | None) -> str:
    if not folder.has_record():
        return "The run did not end, so it has no head yet."
    compared = "which is the one given" if noted is not None else "compared with none (--head)"
    return f"Head: {head_of(folder.record())}, {compared}."


def _code(folder: RunFolder) -> str:
    """Whether the code that is installed is that of the run: no fault of the folder, and good to know."""
    code = folder.run().provenance.code if folder.has_record() else None
    if code is None:
        return "The run names no code of the tool."
    then, now = code.sha256, code_sha256()["sha256"]
    if then == now:
        return f"The code of the tool is the same as installed here (SHA-256 {then})."
    return f"The code of the tool differs from the one installed here: SHA-256 {then} then, {now} now."


def _input(folder: RunFolder) -> list[str]:
    """For tables of recorded outcomes: whether the file that they were computed from is the one that was read."""
    if not folder.has_record() or not run_folders.of_outcomes(folder.plan):
        return []
    file = Path(folder.plan["plan"]["data"])
    if not file.is_file():
        return [f"{file}, the file of outcomes, is missing here."]
    same = reading.sha256(file) == folder.record()["provenance"]["outcomes"]["sha256"]
    return [f"{file} is {'the' if same else 'NOT the'} file of outcomes that was read."]


def _again(replayed: dict[str, Any], replicates: int) -> list[str]:
    lines = [f"{replayed['id']} on {replayed['model']}: {plural(replicates, 'new answer')} to each prompt", ""]
    for cell in replayed["cells"]:
        edits = "; ".join(f"{e['attribute']}: {e['source']} → {e['target']}" for e in cell["edits"]) or "no edit"
        lines.append(f"{cell['role']:<10}{clean(edits)}")
        for when in ("before", "now"):
            labels = ", ".join(f"{clean(label)} {n}×" for label, n in cell[when].items()) or "no answer"
            lines.append(f"{'':<10}{when:<8}{labels}")
    return lines
