"""What commands share: finding a run, printing results, and the exit code of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from auditor.cli.screen import EXIT_INCOMPLETE, complain, say, screen
from auditor.core import reading, rules, waivers
from auditor.core.errors import ConfigError, RunFolderError
from auditor.core.record import head, read
from auditor.core.shown import quoted
from auditor.store.folder import RunFolder
from auditor.store.integrity import require_intact

if TYPE_CHECKING:
    from auditor.report.document import Document
    from auditor.run.result import Result


def find_run(name: Path, *, outcomes: bool = False, begun: tuple[str, ...] = ("plan.json",)) -> Path:
    """The run folder: a path, or a name under ``reports/``.

    Folders with tables of recorded outcomes (``audit ll144``) hold no prompts and answers: only commands that say
    ``outcomes`` get them. ``begun`` are the files that show that ``latest`` has something a command can take.
    """
    from auditor.run.outcome_folder import is_outcomes

    path = next((path for path in (name, Path("reports") / name, *_latest(name, begun)) if path.is_dir()), None)
    if path is None:
        known = sorted(p.name for p in Path("reports").glob("*") if (p / "plan.json").is_file())[-5:]
        hint = f" Latest under reports/: {', '.join(known)}." if known else " Run `audit --task sentiment` to make one."
        raise RunFolderError(f"{name}: there is no such run folder.{hint}")
    if not outcomes and (path / "plan.json").is_file() and is_outcomes(RunFolder.open(path).plan):
        raise RunFolderError(
            f"{path} holds tables of recorded outcomes (audit ll144): no model was asked anything.",
            below=f"Go on with: audit report {quoted(path)}",
        )
    return path


def _latest(name: Path, files: tuple[str, ...]) -> list[Path]:
    """The newest run below ``reports/`` for ``latest``, below another folder for ``FOLDER/latest``."""
    if name.name != "latest":
        return []
    where = Path("reports") if name == Path("latest") else name.parent
    begun = {path.parent: path.stat().st_mtime_ns for file in files for path in where.glob(f"*/{file}")}
    return sorted(begun, key=lambda path: (begun[path], path.name))[-1:]


def find_intact(name: Path, *, outcomes: bool = False) -> Path:
    """As `find_run`; a folder in which something was changed is refused."""
    path = find_run(name, outcomes=outcomes)
    if (path / "plan.json").is_file():
        require_intact(path)
    return path


def find_text_run(name: Path, command: str) -> Path:
    """As `find_intact`, for commands that work on texts only."""
    path = find_intact(name)
    why = {
        "import": f"holds recorded answers without their prompts, and audit {command} works on prompts.",
        "tabular": f"is a search over rows of a table, and audit {command} works on texts. Its figures and pairs stand "
        "in its report.",
    }.get(str(RunFolder.open(path).plan.get("kind")))
    if why is not None:
        raise ConfigError(f"{path} {why}", below=f"Go on with: audit report {quoted(path)}")
    return path


def must_be_new(file: Path, why: str) -> Path:
    """Refuse to write over a file that is there."""
    if file.exists():
        raise ConfigError(f"{file} {why}")
    return file


def prints_page(folder: str, what: str) -> Callable[[], int]:
    """A command that prints the page about files of one kind."""

    def describe() -> int:
        sys.stdout.write(reading.shipped(folder, "README.md").read_text(encoding="utf-8"))
        return 0

    describe.__doc__ = f"Describe {what} files field by field."
    return describe


def print_as(format: str, values: object, lines: Iterable[object], *, ordered: bool = True, code: int = 0) -> int:
    """Print ``values`` as JSON, keys in order, or ``lines``, which are not made before; returns ``code``."""
    if format == "json":
        sys.stdout.write(json.dumps(msgspec.to_builtins(values), indent=2, sort_keys=ordered) + "\n")
    else:
        say(*lines)
    return code


def put(
    values: Mapping[str, object], format: str, document: Document, out: Path | None = None, *, full: bool = True
) -> None:
    """Print ``document``, or ``values`` as JSON; with ``out`` write it there, in full."""
    from auditor.report import html, markdown, terminal
    from auditor.report.page import Page
    from auditor.report.run_json import JsonReport

    if format == "json":
        text = JsonReport().render(dict(values))
    elif format == "terminal":
        text = terminal.write(Page(**screen()), document, full=full or out is not None)
    else:
        text = (html if format == "html" else markdown).write(document)
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        say(out)


def with_waivers(record: dict[str, object], path: Path | None = None) -> dict[str, object]:
    """The record with the waivers of ``path``, or of ``waivers.toml`` here where there is one."""
    from datetime import UTC, datetime

    file = path or Path(waivers.FILE)
    if path is None and not file.is_file():
        return record
    today = datetime.now(UTC).date()
    return waivers.apply(record, waivers.load(file), today, source=file.name)


def judge(record: dict[str, object], rule: str | None, *, partial: bool) -> int:
    """The exit code of a record under ``--fail-on``: incomplete beats findings; says in one line on stderr why."""
    if rule is None:
        return EXIT_INCOMPLETE if partial else 0
    if partial:
        say(f"--fail-on: not decided, since the run is incomplete: {rule}", to=sys.stderr)
        return EXIT_INCOMPLETE
    outcome = rules.evaluate(rule, record)
    if outcome.holds:
        reasons = [m.text + (f" ({_some(m.findings)})" if m.findings else "") for m in outcome.matches]
        say(f"--fail-on: {'; '.join(reasons) or rule}: holds", to=sys.stderr)
        return 1
    unwaived = {name: value for name, value in record.items() if name != "waivers"}
    before = rules.evaluate(rule, unwaived) if record.get("waivers") else outcome
    if before.holds:
        waived = [id for m in before.matches for id in m.findings]
        which = f" ({_some(waived)})" if waived else ""
        say(f"--fail-on: does not hold, since what it is about is waived{which}: {rule}", to=sys.stderr)
    else:
        say(f"--fail-on: does not hold: {rule}", to=sys.stderr)
    return 0


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:10]) + (" …" if len(ids) > 10 else "")


def say_where(path: Path) -> None:
    """Name the report of a run, and its head, to be noted."""
    say(f"Report: {path / 'report.html'}", f"Head: {head(RunFolder.open(path).record())}", to=sys.stderr)


def finish(result: Result, *, format: str, fail_on: str | None, full: bool = False) -> int:
    """Print a result and return the exit code of its run."""
    from auditor.cli.consent import Named
    from auditor.report import proposed, run_checks

    record = with_waivers(result.record)
    if "waivers" in record:
        result.record["waivers"] = record["waivers"]
    sys.stdout.write((result.to_json() if format == "json" else result.to_text(**screen(), full=full)) + "\n")
    sys.stdout.flush()
    if result.path is not None:
        say_where(result.path)
    if not result.complete:
        typed = read(result.record)
        reason = f"The run is incomplete: {result.run.status_reason}"
        if variant := run_checks.variant(typed):
            complain(reason, f"Run: audit show {quoted(result.path)} {quoted(variant)}")
        else:
            raised = proposed.raised(typed)
            further = " A higher limit is for the whole run." if raised else ""
            named = Named.of_texts(result.record["spec"]).options()
            complain(f"{reason}{further}", f"Go on with: audit resume {quoted(result.path)}{named}{raised}")
    return judge(record, fail_on, partial=not result.complete)
