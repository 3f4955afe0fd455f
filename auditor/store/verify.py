"""Checks a whole run folder: chains, cross references, and the register."""

from __future__ import annotations

import hashlib
from pathlib import Path

from auditor.counting import plural
from auditor.store.folder import CASES, JOURNALS, PLAN, PROMPTS, RESPONSES, RUN, VERDICTS, RunFolder
from auditor.store.journal import Problem, genesis, read, verify
from auditor.store.register import FILE, events


def verify_folder(path: Path) -> list[Problem]:
    """Everything that can be seen to be wrong with a run folder.

    Recomputes the hash chain of each journal from ``plan.json`` on, compares its end with ``run.json``,
    compares the plan and the files beside it with the hashes that ``run.json`` names, compares both with the
    register of runs beside the folder, and looks for answers and verdicts that nothing was asked for.

    Parameters
    ----------
    path : Path
        The run folder. It is only read.

    Returns
    -------
    list of Problem
        Empty if nothing is wrong.

    Raises
    ------
    RunFolderError
        It is no run folder, or it is of a newer format.

    Notes
    -----
    A chain shows that records were not changed afterwards. It does not show that a model really gave these
    answers, nor can it see a folder that was made anew as a whole together with its register.
    """
    folder = RunFolder.open(path)
    heads = folder.heads()
    problems: list[Problem] = []
    for name in JOURNALS:
        problems += verify(folder.path / name, genesis(name, folder.plan_sha256), heads.get(name))
    problems += _register(folder)
    problems += _named(folder)
    if not problems:
        problems += _references(folder)
    return problems


def checked(path: Path) -> list[str]:
    """What `verify_folder` had to look at, in sentences: a folder without records is not called intact.

    Parameters
    ----------
    path : Path
        A run folder in which `verify_folder` saw nothing wrong.
    """
    folder = RunFolder.open(path)
    records = {name: sum(1 for _ in read(folder.path / name)) for name in JOURNALS}
    full = [f"{name} ({plural(n, 'record')})" for name, n in records.items() if n]
    empty = [name for name, n in records.items() if not n]
    told = (folder.record().get("provenance") or {}) if folder.has_record() else {}
    ends = [e for e in events(folder.path.parent) if e["run"] == folder.id]
    by_run, by_register = "plan_sha256" in told, any("plan_sha256" in e for e in ends)
    sources = [name for name, there in ((RUN, by_run), (FILE, by_register)) if there]
    found = [
        f"{PLAN}: the SHA-256 is that in {' and '.join(sources)}."
        if sources
        else f"{PLAN}: nothing names its SHA-256, so it was not checked by itself."
    ]
    if folder.has_record():
        entered = any("run_sha256" in e for e in ends)
        found.append(
            f"{RUN}: the SHA-256 is that in {FILE}."
            if entered
            else f"{RUN}: not checked: no {FILE} beside the folder names its SHA-256."
        )
    found += [f"{name}: the SHA-256 is that in {RUN}." for name in sorted(told.get("files") or {})]
    if full:
        found.append(f"Journals: every line is as it was written in {', '.join(full)}.")
    if empty:
        found.append(f"Empty journals, in which there was nothing to check: {', '.join(empty)}.")
    return found


def _register(folder: RunFolder) -> list[Problem]:
    register = folder.path.parent / FILE
    if not register.is_file():
        return []
    problems = verify(register, genesis(FILE, ""))
    if problems:
        return problems
    plan, run = None, None
    for event in events(folder.path.parent):
        if event["run"] == folder.id:
            plan, run = event.get("plan_sha256", plan), event.get("run_sha256", run)
    if plan is not None and run is None and (folder.path / RUN).is_file():
        message = f"it names the start of this run and not its end, but {RUN} is there: lines at the end are missing"
        problems.append(Problem(file=FILE, line=None, kind="missing", message=message))
    if plan is not None and plan != folder.plan_sha256:
        problems.append(_whole(PLAN, f"is not the plan that {FILE} names for this run: it was changed"))
    if run is not None:
        path = folder.path / RUN
        if not path.is_file():
            problems.append(
                Problem(file=RUN, line=None, kind="missing", message=f"{FILE} names it, but it is missing")
            )
        elif hashlib.sha256(path.read_bytes()).hexdigest() != run:
            problems.append(
                _whole(RUN, f"is not the file whose hash {FILE} names: it was changed after the run")
            )
    return problems


def _named(folder: RunFolder) -> list[Problem]:
    """What ``run.json`` names by hash: the plan, and the files that a search over rows wrote beside it."""
    if not folder.has_record():
        return []
    told = folder.record().get("provenance") or {}
    if not isinstance(told, dict) or not isinstance(told.get("files") or {}, dict):
        return [_whole(RUN, "does not say where it comes from: it was changed after the run")]
    problems = []
    plan = told.get("plan_sha256")
    if plan is not None and plan != folder.plan_sha256:
        problems.append(_whole(PLAN, f"is not the plan whose hash {RUN} names: one of the two was changed"))
    for name, sha256 in sorted((told.get("files") or {}).items()):
        path = folder.path / name
        if not path.is_file():
            missing = f"{RUN} names it, but it is missing"
            problems.append(Problem(file=name, line=None, kind="missing", message=missing))
        elif hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            problems.append(
                _whole(name, f"is not the file whose hash {RUN} names: it was changed after the run")
            )
    return problems


def _references(folder: RunFolder) -> list[Problem]:
    """Records that refer to what is not there; one problem for each file."""
    known = {variant.id for case, _ in folder.cases() for variant in (case.original, *case.variants)}
    asked = {record["prompt_sha256"] for record in read(folder.path / PROMPTS)}
    problems: list[Problem] = []
    for name, field, there, what in (
        (PROMPTS, "variant_id", known, CASES),
        (RESPONSES, "prompt_sha256", asked, PROMPTS),
        (VERDICTS, "variant_id", known, CASES),
    ):
        for line, record in enumerate(read(folder.path / name), 1):
            # The texts of the positive control belong to the task, and those of a judge to answers, not to a case.
            if record[field] not in there and not str(record[field]).startswith(("control.", "judge.")):
                message = f"{field} {record[field]!r} is not in {what}"
                problems.append(Problem(file=name, line=line, kind="missing", message=message))
                break
    return problems


def _whole(file: str, message: str) -> Problem:
    return Problem(file=file, line=None, kind="changed", message=message)
