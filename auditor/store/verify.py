"""Checks a whole run folder: chains, cross references, and the register."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from auditor.core.counting import plural
from auditor.core.errors import ConfigError, RunFolderError
from auditor.core.provenance import head
from auditor.core.shown import quoted
from auditor.store.chain import Problem, verify
from auditor.store.files import file_sha256
from auditor.store.folder import CASES, GROWING, JOURNALS, PLAN, PROMPTS, REPORT, RESPONSES, RUN, VERDICTS, RunFolder
from auditor.store.journal import Head, genesis, read
from auditor.store.register import FILE, Event, events


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
    `LIMITS` says what this cannot show.
    """
    folder = RunFolder.open(path)
    problems = _chains(folder, folder.heads())
    problems += _register(folder)
    problems += _named(folder)
    if not problems:
        problems += _references(folder)
    return problems


LIMITS = (
    "Not shown: that a model gave these answers; what was deleted before the first end of the run; a folder that was "
    "made anew as a whole together with its register.",
    "Note the head elsewhere when the run ends, and compare it later with --head; or sign it with --sign.",
)


def require_intact(path: Path) -> None:
    """Refuse to go on with a run folder, or to show it, where something in it was changed.

    Of a run that was cut off after an end, only what that end named is compared: the journals grew since.

    Raises
    ------
    RunFolderError
        Something was changed; the message names the first place.
    """
    folder = RunFolder.open(path)
    own = _events(folder)
    cut_off = not folder.has_record() or bool(own and own[-1].event == "resumed")
    problems = _chains(folder, {} if cut_off else folder.heads())
    problems += _ends(folder, own) if cut_off else _register(folder) + _named(folder)
    # A line that was cut off by a kill is no change, and a report that was edited is not read again.
    problems = [p for p in problems if p.kind != "torn" and p.file != REPORT]
    if problems:
        more = f" (and {plural(len(problems) - 1, 'further place')})" if len(problems) > 1 else ""
        raise RunFolderError(
            f"{path} is not as it was written: {problems[0]}{more}.", below=f"Run: audit verify {quoted(path)}"
        )


def ends_of(path: Path) -> list[Event]:
    """Every end that the register names of a run, oldest first."""
    return [event for event in _events(RunFolder.open(path)) if event.event == "ended"]


def compare_head(path: Path, given: str) -> list[Problem]:
    """What is wrong where ``given`` is the head that was noted when the run ended.

    Raises
    ------
    ConfigError
        It is no hash.
    """
    noted = given.strip().lower()
    if len(noted) != 64 or set(noted) - set("0123456789abcdef"):
        raise ConfigError(f"--head takes the 64 digits that a report or a run names as its head; got {given!r}")
    now = head(RunFolder.open(path).record())
    return [] if noted == now else [_whole(RUN, f"the head is {now}, not {noted}: this is another record")]


def _events(folder: RunFolder) -> list[Event]:
    return [event for event in events(folder.path.parent) if event.run == folder.id]


def _chains(folder: RunFolder, heads: Mapping[str, Head]) -> list[Problem]:
    problems: list[Problem] = []
    for name in JOURNALS:
        problems += verify(folder.path / name, genesis(name, folder.plan_sha256), heads.get(name))
    return problems


def _ends(folder: RunFolder, own: Iterable[Event]) -> list[Problem]:
    """Where journals do not hold any more what they held at an end of the run: they are only ever appended to."""
    wanted: dict[str, dict[int, tuple[str, str]]] = {name: {} for name in GROWING}
    for event in own:
        for name, kept in event.journal.items():
            if name in wanted and kept.records:
                wanted[name][kept.records] = kept.hash, event.time
    problems = []
    for name, ends in wanted.items():
        found = _hashes(folder.path / name, set(ends))
        for records, (last, time) in sorted(ends.items()):
            if found.get(records) != last:
                message = (
                    f"the {plural(records, 'record')} that were there when the run ended at {time} are not "
                    "there any more: they were deleted or made anew since"
                )
                problems.append(_whole(name, message))
                break
    return problems


def _hashes(path: Path, numbers: set[int]) -> dict[int, str]:
    """The hashes at the end of some lines of a journal, counted from 1."""
    if not numbers or not path.is_file():
        return {}
    with path.open("rb") as file:
        return {n: line[-67:-3].decode("ascii", "replace") for n, line in enumerate(file, 1) if n in numbers}


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
    own = _events(folder)
    by_run, by_register = "plan_sha256" in told, any(e.plan_sha256 for e in own)
    sources = [name for name, there in ((RUN, by_run), (FILE, by_register)) if there]
    found = [
        f"{PLAN}: the SHA-256 is that in {' and '.join(sources)}."
        if sources
        else f"{PLAN}: nothing names its SHA-256, so it was not checked by itself."
    ]
    if folder.has_record():
        entered = any(e.run_sha256 for e in own)
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
    if (folder.path / REPORT).is_file():
        named = any(e.report_sha256 for e in own)
        found.append(
            f"{REPORT}: the SHA-256 is that in {FILE}."
            if named
            else f"{REPORT}: not checked: nothing names its SHA-256."
        )
    return found + _history(folder, own)


def _history(folder: RunFolder, own: Sequence[Event]) -> list[str]:
    """How often the run ended, as the register tells it, or that none does."""
    if not own:
        there = (folder.path.parent / FILE).is_file()
        why = f"{FILE} beside the folder does not name this run" if there else f"there is no {FILE} beside the folder"
        return [f"NOT CHECKED: {why}: whether the run ended before, or was made anew, cannot be seen."]
    found = [
        f"End {n}: {event.time}, {event.status or 'no status'}, SHA-256 of {RUN} {event.run_sha256}."
        for n, event in enumerate((e for e in own if e.event == "ended"), 1)
    ]
    started = plural(sum(e.event == "resumed" for e in own), "time")
    return [f"The register names {plural(len(found), 'end')} of this run, which was resumed {started}.", *found]


def _register(folder: RunFolder) -> list[Problem]:
    register = folder.path.parent / FILE
    if not register.is_file():
        return []
    problems = verify(register, genesis(FILE, ""))
    if problems:
        return problems
    plan = run = report = ""
    own = _events(folder)
    for event in own:
        plan, run = event.plan_sha256 or plan, event.run_sha256 or run
        report = event.report_sha256 or report
    problems += _ends(folder, own)
    if report and (folder.path / REPORT).is_file() and file_sha256(folder.path / REPORT) != report:
        problems.append(_whole(REPORT, f"is not the file whose hash {FILE} names: it was changed after the run"))
    if plan and not run and (folder.path / RUN).is_file():
        message = f"it names the start of this run and not its end, but {RUN} is there: lines at the end are missing"
        problems.append(Problem(file=FILE, line=None, kind="missing", message=message))
    if plan and plan != folder.plan_sha256:
        problems.append(_whole(PLAN, f"is not the plan that {FILE} names for this run: it was changed"))
    if run:
        path = folder.path / RUN
        if not path.is_file():
            problems.append(Problem(file=RUN, line=None, kind="missing", message=f"{FILE} names it, but it is missing"))
        elif file_sha256(path) != run:
            problems.append(_whole(RUN, f"is not the file whose hash {FILE} names: it was changed after the run"))
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
        elif file_sha256(path) != sha256:
            problems.append(_whole(name, f"is not the file whose hash {RUN} names: it was changed after the run"))
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
